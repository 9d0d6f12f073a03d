"""The arguments of a Problem, checked: what is wrong, where, and what is accepted.

Vectors are copies, so that the problem stays what it was when the caller's arrays change.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from blockgreedy.base.design import LabelledDesign, TiledDesign
from blockgreedy.base.reals import as_array, in_host_memory, is_missing, is_number, real_array
from blockgreedy.base.validate import flag, non_negative, shown

__all__ = [
    "bound",
    "feature_weights",
    "flag",
    "labels",
    "named_design",
    "non_negative",
    "point",
    "row_offset",
    "row_weights",
    "targets",
    "warn_of_mean",
]

Array = NDArray[np.float64]
_FAR_FROM_0 = 10.0  # standard deviations between 0 and the mean of the targets


def warn_of_mean(design: Any, y: Array) -> None:
    """Targets far from 0 and no intercept: the weights are spent on the mean. A constant column is an intercept."""
    with np.errstate(over="ignore"):
        squares = float(np.einsum("i,i->", y, y)) * len(y)
        # (mean/sd)² > 100 leaves sd² less than 1 % of the mean square; twice that for rounding
        if 0 < squares < np.inf and squares > 1.02 * float(np.sum(y)) ** 2:
            return
    size = float(np.max(np.abs(y), initial=0.0))
    scaled = y / size if 0 < size < np.inf else y  # squares of large targets would overflow
    mean, sd = size * float(np.mean(scaled)), size * float(np.std(scaled))
    if not 0 < _FAR_FROM_0 * sd < abs(mean):
        return
    if design.is_tiled:
        return  # it would take a look at every column
    X = design.columns
    low, high = X.min(axis=0), X.max(axis=0)
    if sp.issparse(X):
        low, high = low.toarray(), high.toarray()
    if not np.any((low == high) & (low != 0)):
        warnings.warn(
            f"y has mean {mean:.4g} and standard deviation {sd:.2g}, but the model has no intercept: "
            "fit_intercept=True fits one",
            stacklevel=3,
        )


def point(name: str, values: ArrayLike, length: int) -> Array:
    """Not copied: it is looked at and forgotten."""
    array = real_array(name, values)
    if array.shape != (length,):
        raise ValueError(f"{name} has shape {array.shape}, expected ({length},)")
    return np.ascontiguousarray(array, dtype=np.float64)


def labels(y: ArrayLike, n: int) -> NDArray[Any]:
    """One number, boolean or text per row, none of them missing."""
    array = as_array("y", y)
    if array.shape != (n,):
        raise ValueError(f"y has shape {array.shape}, expected ({n},): one target per row of X")
    if array.dtype.kind == "O":
        for i, label in enumerate(array):
            if is_missing(label):
                raise ValueError(f"y[{i}] is {shown(label)}; drop the rows without a target first")
        if all(map(is_number, array)):
            array = np.array(array.tolist())  # in the type that the numbers have
    if array.dtype.kind == "f":
        _all_finite("y", array)
    return array


def named_design(X: Any, y: Any) -> tuple[Any, Any, NDArray[np.str_] | None]:
    """Matrix, targets and names of the columns, of a Dataset, a table of named columns or plain arrays."""
    if isinstance(X, LabelledDesign):
        if y is None and not X.labelled:
            raise ValueError(f"X is {X!r}, which has no labels; give y")
        return X.X, X.y if y is None else y, X.feature_names
    if isinstance(X, TiledDesign):
        if y is None and not X.labelled:
            raise ValueError(f"X is {X!r}, which has no labels; give y")
        return X, X.labels if y is None else y, X.feature_names
    if y is None:
        raise TypeError("y is missing: it may be left out only where X is a blockgreedy.Dataset or Store")
    in_host_memory("X", X)
    names = getattr(X, "columns", None)
    named = names is not None and not callable(names) and all(isinstance(name, str) for name in names)
    return X, y, np.array(list(names), dtype=np.str_) if named else None  # type: ignore[arg-type]


def targets(y: ArrayLike, n: int, is_classifier: bool) -> tuple[Array, NDArray[Any] | None]:
    given = labels(y, n)
    if not is_classifier:
        if any(isinstance(label, (str, bytes)) for label in given[:1]):
            raise TypeError(
                f"y has dtype {given.dtype}; a regression loss needs numbers, a classification loss takes text"
            )
        numbers = np.array(real_array("y", given), dtype=np.float64)
        return (numbers if given.dtype == np.float64 else _all_finite("y", numbers)), None
    if given.dtype.kind not in "biufUSTO":
        raise TypeError(f"y has dtype {given.dtype}; a classification loss takes numbers, booleans or text")
    try:
        classes = np.unique(given)
    except TypeError as error:
        raise TypeError(f"y holds values of different kinds, which have no order: {error}") from error
    if len(classes) == 1 and given.dtype.kind in "iuf" and abs(classes[0]) == 1:
        classes = np.array([-1, 1], dtype=classes.dtype if given.dtype.kind != "u" else np.int64)
    if len(classes) != 2:
        first = ", ".join(map(shown, classes[:5].tolist()))
        raise ValueError(
            f"y holds {len(classes)} distinct value(s) ({first}{', …' if len(classes) > 5 else ''}); "
            "a classification loss needs exactly two"
        )
    return np.where(given == classes[1], 1.0, -1.0), classes


def _per_row(name: str, values: ArrayLike, n: int) -> Array:
    array = real_array(name, values)
    if array.shape != (n,):
        raise ValueError(f"{name} has shape {array.shape}, expected ({n},): one number per row of X")
    return _all_finite(name, np.array(array, dtype=np.float64))


def _all_finite(name: str, array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind not in "fc":
        return array
    # A NaN or an infinity makes the sum one too, which is cheaper to see; large numbers may do so as well.
    with np.errstate(over="ignore", invalid="ignore"):
        is_finite = bool(np.isfinite(np.sum(array)))
    if not is_finite and not np.all(np.isfinite(array)):
        bad = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(
            f"{name} holds NaN or infinite values: {name}[{bad}] is {array[bad]}; every value must be finite"
        )
    return array


def row_weights(sample_weight: ArrayLike | None, n: int) -> Array | None:
    """ω, or None where all weights are equal."""
    if sample_weight is None:
        return None
    weights = _per_row("sample_weight", sample_weight, n)
    lowest, highest = float(np.min(weights)), float(np.max(weights))
    if lowest < 0:
        bad = int(np.argmin(weights))
        raise ValueError(f"sample_weight[{bad}] is {lowest}; weights must be at least 0")
    if highest == 0:
        raise ValueError("sample_weight is 0 everywhere; at least one row needs a weight above 0")
    if lowest == highest:
        return None
    weights = weights / highest  # so that no sum overflows
    return np.asarray(weights / np.sum(weights))


def row_offset(offset: ArrayLike | None, n: int) -> Array | None:
    if offset is None:
        return None
    given = real_array("offset", offset)
    values = _per_row("offset", np.full(n, given) if given.ndim == 0 else given, n)
    return values if np.any(values) else None


def feature_weights(weights: ArrayLike | None, p: int) -> Array | None:
    if weights is None:
        return None
    u = point("penalty_weights", weights, p).copy()
    bad = np.flatnonzero(~(u >= 0))
    if len(bad):
        raise ValueError(
            f"penalty_weights must be at least 0 (0 = unpenalised, inf = excluded); "
            f"penalty_weights[{bad[0]}] is {u[bad[0]]}"
        )
    return u


def bound(name: str, bound: ArrayLike | None, p: int, side: float) -> float | Array:
    """A scalar when all features share it. side is -1 for lower, +1 for upper."""
    if bound is None:
        return side * float("inf")
    values = real_array(name, bound)
    values = values.astype(np.float64) if values.ndim == 0 else point(name, values, p).copy()
    bad = np.flatnonzero(~(side * values >= 0))
    if len(bad):
        which = f"{name}[{bad[0]}] is {values[bad[0]]}" if values.ndim else f"{name} is {values}"
        raise ValueError(f"{name} must satisfy lower ≤ 0 ≤ upper; {which}")
    return float(values) if values.ndim == 0 else values
