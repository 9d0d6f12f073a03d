"""Checks of single arguments: each returns the value in its plain type, or raises an error with name and value."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

Name = TypeVar("Name", bound=str)

MAX_SEED = 2**64 - 1  # the random generator counts in 64 bits
_MAX_ALPHAS = 100_000  # of a path
_LARGEST = 2**63 - 1  # what the core and NumPy can count to


def _index(value: Any) -> int | None:
    """A whole number of any type; None for everything else."""
    try:
        return None if isinstance(value, bool) or getattr(value, "ndim", 0) != 0 else operator.index(value)
    except Exception:  # a type's own __index__ can raise anything
        return None


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    found = _index(value)
    if found is None or not least <= found <= (_LARGEST if most is None else most):
        if most is None and found is not None and found > _LARGEST:
            most = _LARGEST
        wanted = f"from {least} to {most}" if most is not None else f"of at least {least}"
        raise ValueError(f"{name}={shown(value)} must be a whole number {wanted}")
    return found


def count_of(name: str, value: Any, everything: int, most: int) -> int:
    """A number of workers as joblib counts them: below 0 from the end, so that -1 is all of them."""
    found = _index(value)
    if found is None or found == 0 or found > most:
        raise ValueError(
            f"{name}={shown(value)} must be a whole number from 1 to {most}, a negative number as in joblib (-1: "
            "all, -2: all but one), or None"
        )
    return found if found > 0 else max(1, everything + 1 + found)


def number(name: str, value: Any) -> float:
    """One real number. Text, truth values and what float() would lose a part of (complex numbers, dates) are none."""
    kind = getattr(getattr(value, "dtype", None), "kind", "f")
    try:
        if isinstance(value, (bool, str, bytes, bytearray)) or kind not in "iuf" or getattr(value, "ndim", 0) != 0:
            raise TypeError
        return float(value)
    except Exception:  # a type's own __float__ can raise anything
        raise ValueError(f"{name}={shown(value)} must be a number") from None


def at_least(name: str, value: Any, least: float) -> float:
    """A number that may be infinite."""
    found = number(name, value)
    if not found >= least:
        raise ValueError(f"{name}={shown(value)} must be a number of at least {least:g}")
    return found


def above_zero(name: str, value: Any, otherwise: str = "") -> float:
    """A number that may be infinite; ``otherwise`` ends the message with what else is accepted."""
    found = number(name, value)
    if not found > 0:
        raise ValueError(f"{name}={shown(value)} must be above 0{otherwise}")
    return found


def non_negative(name: str, value: Any) -> float:
    """A finite number of at least 0."""
    found = _number_or_nan(name, value)
    if not (math.isfinite(found) and found >= 0):
        raise ValueError(f"{name}={shown(value)} must be a finite number of at least 0")
    return found


def positive(name: str, value: Any) -> float:
    """A finite number above 0."""
    found = _number_or_nan(name, value)
    if not (math.isfinite(found) and found > 0):
        raise ValueError(f"{name}={shown(value)} must be a finite number above 0")
    return found


def _number_or_nan(name: str, value: Any) -> float:
    """nan for what is no number: the caller's message names a number as well."""
    try:
        return number(name, value)
    except ValueError:
        return math.nan


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name}={shown(value)} must be True or False")
    return bool(value)


def may_call(name: str, value: Any) -> None:
    if value is not None and not callable(value):
        raise ValueError(f"{name}={shown(value)} must be a function, or None")


def one_of(name: str, value: Any, accepted: Iterable[Name]) -> Name:
    accepted = tuple(accepted)
    if not isinstance(value, str) or value not in accepted:
        raise ValueError(f"{name}={shown(value)} is not known; use one of {', '.join(map(repr, accepted))}")
    return value


def seed_of(name: str, value: Any) -> int:
    return whole(name, value, 0, MAX_SEED)


def float_type(name: str, value: Any, *, may_be_none: bool = False) -> Any:
    """float32 or float64, as anything that NumPy takes for a type; None stays None where it may."""
    if value is None and may_be_none:
        return None
    if np.dtype(value) not in (np.float32, np.float64):
        raise ValueError(f"{name}={value!r} must be {'None, ' if may_be_none else ''}float32 or float64")
    return value


def l1_ratio_of(l1_ratio: Any) -> float:
    ratio = number("l1_ratio", l1_ratio)
    if not 0 <= ratio <= 1:
        raise ValueError(f"l1_ratio={shown(l1_ratio)} must be from 0 to 1")
    return ratio


def check_ratio(l1_ratio: Any, l2: float, alphas: Any = None) -> float:
    """The l1_ratio of a path, whose largest alpha is alpha_max/l1_ratio unless ``alphas`` are given."""
    if not 0 <= number("l1_ratio", l1_ratio) <= 1 or (l1_ratio == 0 and alphas is None):
        raise ValueError(
            f"l1_ratio={shown(l1_ratio)} must be from 0 to 1, and above 0 unless a list of alphas is given"
        )
    if l2 > 0:
        raise ValueError(f"l1_ratio={l1_ratio!r} sets the ridge penalty, so it cannot be combined with l2={l2}")
    return float(l1_ratio)


def check_grid(n_alphas: Any, eps: Any, *, may_be_1: bool = False) -> int:
    """The number of alphas of a path from alpha_max down to eps·alpha_max."""
    fraction = number("eps", eps)
    if not (0 < fraction < 1 or (may_be_1 and fraction == 1)):
        limit = "at most 1" if may_be_1 else "below 1"
        raise ValueError(
            f"eps={shown(eps)} must be above 0 and {limit}: it is the smallest alpha as a fraction of the largest"
        )
    return whole("n_alphas", n_alphas, 1, None if may_be_1 else _MAX_ALPHAS)


def check_limits(
    tol: Any, max_iter: Any, max_seconds: Any, trace_iters: Any = None, trace_seconds: Any = None
) -> None:
    """Refuses what cannot limit a run."""
    at_least("tol", tol, 0)
    for name, value in (("max_iter", max_iter), ("trace_iters", trace_iters)):
        if value is not None:
            whole(name, value, 1)
    for name, seconds in (("max_seconds", max_seconds), ("trace_seconds", trace_seconds)):
        if seconds is not None:
            above_zero(name, seconds, ", or None")


def shown(value: Any) -> str:
    """A value for a message: on one line, and short."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a whole number of 5,000 digits has no text in Python
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 80 else text[:79] + "…"
