"""Arrays of real numbers, made of what users hold; whatever is not a real number is refused by name and place."""

from __future__ import annotations

import datetime
import decimal
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockgreedy.base.validate import shown

_TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
_NUMBERS = (numbers.Real, decimal.Decimal, np.bool_)
_SECONDS = "convert dates and times to numbers first, for example seconds: (t - t.min()) / np.timedelta64(1, 's')"
_ACCEPTED = "it must hold real numbers (float32, float64, integers or booleans)"


def is_lazy(table: Any) -> bool:
    """Whether it is a LazyFrame of polars: a query that was not made yet."""
    return type(table).__module__.split(".")[0] == "polars" and type(table).__name__ == "LazyFrame"


def collected(table: Any) -> Any:
    """A LazyFrame of polars with its query made; anything else as it is."""
    return table.collect() if is_lazy(table) else table


def in_host_memory(name: str, array: Any) -> None:
    """Refuses arrays of a GPU and lazy tables, of which NumPy makes something odd, or an odd message."""
    kind = type(array)
    library = kind.__module__.split(".")[0]
    if is_lazy(array):
        raise TypeError(f"{name} is a LazyFrame of polars, which holds no values yet: pass {name}.collect()")
    device = getattr(getattr(array, "device", None), "type", "cpu") if library == "torch" else "cpu"
    if device != "cpu" or library in ("cupyx", "cudf") or hasattr(array, "__cuda_array_interface__"):
        way = {"torch": f"{name}.cpu()", "cupy": f"{name}.get()", "cupyx": f"{name}.get()"}.get(library, "")
        raise TypeError(
            f"{name} is a {kind.__module__}.{kind.__qualname__} in the memory of a GPU; this solver runs on the CPU: "
            f"copy it to host memory first{f' with {way}' if way else ''}"
        )


def as_array(name: str, values: Any) -> NDArray[Any]:
    """``np.asarray``, but nothing is lost on the way (masks), and a failure names the argument."""
    if sp.issparse(values):
        raise TypeError(f"{name} is a sparse matrix; a dense array is accepted, such as {name}.toarray()")
    in_host_memory(name, values)
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked values; fill them in or drop their rows first")
    try:
        return np.asarray(values)
    except Exception as error:  # rows of different lengths, an array on a GPU: each library raises its own
        raise ValueError(f"{name} cannot be read as an array ({type(values).__name__}): {error}") from error


def real_array(name: str, values: Any, columns: Sequence[Any] | None = None) -> NDArray[Any]:
    """``as_array`` of real numbers in their own type; Python's own numbers in an object array become float64.

    ``columns`` are the names of the columns of a table, for the message.
    """
    array = as_array(name, values)
    kind = array.dtype.kind
    if kind == "f" and array.dtype.itemsize > 8:
        return _narrowed(name, array)
    if kind in "biuf":
        return array
    if kind == "O":
        return _of_objects(name, array, columns)
    if kind in "mM":
        raise TypeError(f"{name} has dtype {array.dtype}; {_SECONDS}")
    first = f" (the first is {shown(array.flat[:1].tolist()[0])})" if array.size else ""
    raise TypeError(f"{name} has dtype {array.dtype}{first}; {_ACCEPTED}")


def _narrowed(name: str, array: NDArray[Any]) -> NDArray[np.float64]:
    """Longer floats as float64, none of which becomes infinite."""
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float64)
    if np.any(np.isinf(narrow) & np.isfinite(array)):
        raise ValueError(f"{name} holds a number beyond the range of float64: {np.max(np.abs(array))}")
    return narrow


def is_number(value: object) -> bool:
    """A timedelta64 calls itself a whole number; it is not one here."""
    return isinstance(value, _NUMBERS) and not isinstance(value, _TIMES)


def is_missing(value: object) -> bool:
    """None, NaN, and what pandas has for them, whose types are known by name so that pandas need not be there."""
    if isinstance(value, decimal.Decimal):
        return value.is_nan()
    is_nan = isinstance(value, (float, np.floating)) and bool(np.isnan(value))
    return value is None or type(value).__name__ in ("NAType", "NaTType") or is_nan


def _of_objects(name: str, array: NDArray[Any], columns: Sequence[Any] | None) -> NDArray[np.float64]:
    for at, value in enumerate(array.flat):
        if is_number(value):
            continue
        place = np.unravel_index(at, array.shape)
        where = f"{name}[{', '.join(map(str, place))}]" if place else name
        if columns is not None:
            where += f" (column {columns[int(place[-1])]!r})"
        if is_missing(value):
            advice = "fill missing values in or drop them first"
        elif isinstance(value, _TIMES):
            advice = _SECONDS
        else:
            advice = _ACCEPTED
        raise TypeError(f"{name} has dtype object and {where} is {shown(value)}; {advice}")
    try:
        return array.astype(np.float64)
    except (OverflowError, ValueError) as error:
        raise ValueError(f"{name} holds a number beyond the range of float64: {error}") from error
