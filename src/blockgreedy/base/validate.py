"""Checks of single arguments: each returns the value in its plain type, or raises an error with name and value."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

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


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name}={shown(value)} must be True or False")
    return bool(value)


def may_call(name: str, value: Any) -> None:
    if value is not None and not callable(value):
        raise ValueError(f"{name}={shown(value)} must be a function, or None")


def one_of(name: str, value: Any, accepted: Iterable[str]) -> str:
    accepted = tuple(accepted)
    if not isinstance(value, str) or value not in accepted:
        raise ValueError(f"{name}={shown(value)} is not known; use one of {', '.join(map(repr, accepted))}")
    return value


def shown(value: Any) -> str:
    """A value for a message: on one line, and short."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a whole number of 5,000 digits has no text in Python
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 80 else text[:79] + "…"
