"""What rules ask a ``State`` about, checked: numbers of features and blocks, steps, curvatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.base.validate import shown

Array = NDArray[np.float64]
Features = NDArray[np.intp]


def array_of(given: Any) -> NDArray[Any]:
    """What a rule gave as an array; where it cannot be one, an empty table, which no check accepts."""
    try:
        return np.asarray(given)
    except ValueError:
        return np.zeros((0, 0))


def places(name: str, asked: Any, count: int) -> Features:
    """Whole numbers below ``count``. A mask is none, and would be taken for the numbers 0 and 1."""
    found = array_of(asked)
    if found.ndim == 1 and found.size == 0:
        return np.zeros(0, dtype=np.intp)
    if found.ndim != 1 or found.dtype.kind not in "iu" or found.min() < 0 or found.max() >= count:
        hint = "; np.flatnonzero makes them of a mask" if found.dtype.kind == "b" else ""
        raise ValueError(
            f"{name}={shown(asked)} must be a list or flat array of whole numbers from 0 to {count - 1}{hint}"
        )
    return found.astype(np.intp, copy=False)


def numbers(name: str, asked: Any, count: int) -> Array:
    """One number for each of ``count`` features."""
    found = array_of(asked)
    if found.shape != (count,) or (found.size > 0 and found.dtype.kind not in "iuf"):
        raise ValueError(f"{name}={shown(asked)} must be {count} numbers, one for each feature")
    return found.astype(np.float64, copy=False)


def curvatures(asked: Any, count: int, is_finite: Callable[[], bool]) -> Array:
    """Those of a quadratic model. Of a run that blew up they may be anything."""
    found = numbers("curvature", asked, count)
    if not np.all(found >= 0) and is_finite():
        raise ValueError(
            f"curvature={shown(asked)} must be {count} numbers of at least 0, one for each feature; "
            f"one of them is {found[~(found >= 0)][0]:g}"
        )
    return found
