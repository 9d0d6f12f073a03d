"""The arguments of a Problem, checked: what is wrong, where, and what is accepted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def in_host_memory(name: str, array: Any) -> None:
    """Refuses arrays of a GPU, which NumPy turns into something odd or fails on with an odd message."""
    kind = type(array)
    library = kind.__module__.split(".")[0]
    device = getattr(getattr(array, "device", None), "type", "cpu") if library == "torch" else "cpu"
    if device != "cpu" or library in ("cupyx", "cudf") or hasattr(array, "__cuda_array_interface__"):
        way = {"torch": f"{name}.cpu()", "cupy": f"{name}.get()", "cupyx": f"{name}.get()"}.get(library, "")
        raise TypeError(
            f"{name} is a {kind.__module__}.{kind.__qualname__} in the memory of a GPU; this solver runs on the CPU: "
            f"copy it to host memory first{f' with {way}' if way else ''}"
        )


def non_negative(name: str, value: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not (np.isfinite(number) and number >= 0):
        raise ValueError(f"{name}={value!r} must be a finite number of at least 0")
    return number


def point(name: str, values: ArrayLike, length: int) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (length,):
        raise ValueError(f"{name} has shape {array.shape}, expected ({length},)")
    return array


def targets(y: ArrayLike, n: int, is_classifier: bool) -> tuple[Array, NDArray[Any] | None]:
    in_host_memory("y", y)
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(f"y has shape {labels.shape}, expected ({n},): one target per row of X")
    if labels.dtype.kind == "f" and not np.all(np.isfinite(labels)):
        raise ValueError("y holds NaN or infinite values")
    if not is_classifier:
        if labels.dtype.kind not in "biuf":
            raise TypeError(
                f"y has dtype {labels.dtype}; a regression loss needs numbers, a classification loss takes text"
            )
        return np.ascontiguousarray(labels, dtype=np.float64), None
    classes = np.unique(labels)
    if len(classes) == 1 and labels.dtype.kind in "iuf" and abs(classes[0]) == 1:
        classes = np.array([-1, 1], dtype=classes.dtype if labels.dtype.kind != "u" else np.int64)
    if len(classes) != 2:
        shown = ", ".join(map(repr, classes[:5].tolist()))
        raise ValueError(
            f"y holds {len(classes)} distinct value(s) ({shown}{', …' if len(classes) > 5 else ''}); "
            "a classification loss needs exactly two"
        )
    return np.where(labels == classes[1], 1.0, -1.0), classes


def _per_row(name: str, values: ArrayLike, n: int) -> Array:
    in_host_memory(name, values)
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} holds something that is not a number; it takes {n} numbers, one per row") from None
    if array.shape != (n,):
        raise ValueError(f"{name} has shape {array.shape}, expected ({n},): one number per row of X")
    if not np.all(np.isfinite(array)):
        bad = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"{name}[{bad}] is {array[bad]}; every value must be finite")
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
    values = _per_row("offset", np.full(n, offset) if np.ndim(offset) == 0 else offset, n)
    return values.copy() if np.any(values) else None


def flag(name: str, value: bool) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name}={value!r} must be True or False")
    return bool(value)


def feature_weights(weights: ArrayLike | None, p: int) -> Array | None:
    if weights is None:
        return None
    u = np.ascontiguousarray(point("penalty_weights", weights, p))
    if np.any(np.isnan(u)) or np.any(u < 0):
        raise ValueError(
            "penalty_weights must be at least 0 (0 = unpenalised, inf = excluded); negative or NaN found"
        )
    return u


def bound(name: str, bound: ArrayLike | None, p: int, side: float) -> float | Array:
    """A scalar when all features share it. side is -1 for lower, +1 for upper."""
    if bound is None:
        return side * float("inf")
    values = np.asarray(bound, dtype=np.float64)
    if values.ndim > 0:
        values = np.ascontiguousarray(point(name, values, p))
    if np.any(np.isnan(values)) or np.any(side * values < 0):
        raise ValueError(f"{name} must satisfy lower ≤ 0 ≤ upper; got a value on the other side of 0, or NaN")
    return float(values) if values.ndim == 0 else values
