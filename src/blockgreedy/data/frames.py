"""Tables that Python holds (data frames, dicts, arrays) → Columns. No package beyond NumPy is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from blockgreedy.base.reals import collected
from blockgreedy.data.column import ArrayColumn, Column, Words

_ACCEPTED = (
    "accepted are a data frame of pandas or polars, a table of pyarrow, a dict of arrays, a structured array and an "
    "array with two dimensions"
)


def columns_of(table: Any, names: Sequence[str] | None = None) -> dict[str, Column]:
    """The columns of a table. ``names`` are those of an array with two dimensions (default: x0, x1, …)."""
    columns = {column.name: column for column in _columns(collected(table), names)}
    lengths = {name: len(column) for name, column in columns.items()}
    if not columns:
        raise ValueError("the table has no columns")
    first, n_rows = next(iter(lengths.items()))
    for name, length in lengths.items():
        if length != n_rows:
            raise ValueError(f"column {name!r} has {length:,} rows, and column {first!r} has {n_rows:,}")
    return columns


def has_names(table: Any) -> bool:
    """Whether its columns have names of their own, and not numbers alone."""
    return isinstance(table, Mapping) or not (
        isinstance(table, (list, tuple)) or (isinstance(table, np.ndarray) and table.dtype.names is None)
    )


def _columns(table: Any, names: Sequence[str] | None) -> list[Column]:
    if names is not None and (has_names(table) or not isinstance(table, np.ndarray)):
        raise ValueError(f"names={names!r} is for arrays with two dimensions; {type(table).__name__} has its own")
    if isinstance(table, Mapping):
        return [ArrayColumn(str(name), _array(str(name), values)) for name, values in table.items()]
    if type(table).__module__.split(".")[0] == "pyarrow" and hasattr(table, "schema"):
        from blockgreedy.data.arrow import ArrowColumn

        return [ArrowColumn(name, table.column(name)) for name in table.schema.names]
    if isinstance(table, np.ndarray) and table.dtype.names is not None:
        return [ArrayColumn(name, np.ascontiguousarray(table[name])) for name in table.dtype.names]
    if hasattr(table, "columns") and hasattr(table, "dtypes"):
        labels = [str(name) for name in table.columns]
        twice = [name for name in labels if labels.count(name) > 1] if len(set(labels)) < len(labels) else []
        if twice:
            raise ValueError(f"the table has several columns named {twice[0]!r}; column names must differ")
        return [_of_series(str(name), table[name]) for name in table.columns]
    if isinstance(table, (np.ndarray, list, tuple)):
        array = np.asarray(table)
        if array.ndim == 2:
            labels = [f"x{k}" for k in range(array.shape[1])] if names is None else [str(name) for name in names]
            if len(labels) != array.shape[1]:
                raise ValueError(f"names has {len(labels):,} entries, and the table {array.shape[1]:,} columns")
            return [ArrayColumn(name, np.ascontiguousarray(array[:, k])) for k, name in enumerate(labels)]
    shape = f" of shape {table.shape}" if hasattr(table, "shape") else ""
    raise ValueError(f"the table is a {type(table).__name__}{shape}; {_ACCEPTED}")


class _CategoricalColumn(ArrayColumn):
    """A column of pandas' categories, which is held as codes already."""

    def __init__(self, name: str, codes: Any, categories: Any) -> None:
        distinct = ArrayColumn(name, np.asarray(categories))
        words = distinct.words()
        recode = np.append(words.codes, np.int32(-1))  # a missing value, -1, takes the last
        super().__init__(name, np.asarray(codes))
        self.type, self.kind = "categories", "text"
        self._objects = Words(recode[np.asarray(codes)], words.values)


def _of_series(name: str, series: Any) -> Column:
    dtype = series.dtype
    if hasattr(dtype, "categories") and hasattr(series, "cat") and hasattr(series.cat, "codes"):
        return _CategoricalColumn(name, series.cat.codes.to_numpy(), dtype.categories)
    kind = getattr(dtype, "kind", None)
    # pandas' own numbers with missing values; plain NumPy types need no such care
    if not isinstance(dtype, np.dtype) and kind in ("i", "u", "f") and bool(series.isna().any()):
        return ArrayColumn(name, series.to_numpy(dtype=np.float64, na_value=np.nan))
    return ArrayColumn(name, np.asarray(series.to_numpy()))


def _array(name: str, values: Any) -> Any:
    """Lists become arrays without turning numbers beside text, or None, into something else."""
    if hasattr(values, "dtype") and hasattr(values, "to_numpy"):
        return np.asarray(values.to_numpy())
    if isinstance(values, np.ndarray):
        return values
    values = list(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
