"""Column: a column of a table, whatever holds it, as numbers or as categories."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Kind = Literal["whole", "real", "bool", "text", "other"]
NUMBERS: tuple[Kind, ...] = ("whole", "real", "bool")


@dataclass(frozen=True)
class Words:
    """The values of a column as text: ``values[codes[i]]`` is that of row i; where the code is -1 it is missing."""

    codes: NDArray[np.int32]
    values: list[str]

    def counts(self) -> NDArray[np.int64]:
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.values)).astype(np.int64)


class Column(ABC):
    """A column of a table. Subclasses know how it is held: ``ArrayColumn`` here, ``ArrowColumn`` in arrow.py.

    ``kind`` is what the values are, and ``type`` how their holder calls them, for messages.
    """

    name: str
    kind: Kind
    type: str

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def numbers(self) -> NDArray[np.float64]:
        """As numbers, NaN where a value is missing. Not for text."""

    @abstractmethod
    def array(self) -> NDArray[Any]:
        """Numbers in the type that they are held in. Not for text, and nothing may be missing."""

    @abstractmethod
    def words(self) -> Words:
        """As text. Whole numbers are written without a decimal point, whatever type they have."""

    @property
    def is_number(self) -> bool:
        return self.kind in NUMBERS

    def is_whole(self) -> bool:
        """Whether all values but missing ones are whole numbers. With missing ones they are often held as floats."""
        if self.kind != "real":
            return self.kind == "whole"
        values = self.numbers()
        values = values[~np.isnan(values)]
        return bool(len(values) and np.all(np.isfinite(values)) and np.all(values == np.floor(values)))


class ArrayColumn(Column):
    """A column in a NumPy array: numbers, booleans, dates, text, or objects of these kinds, None where missing."""

    def __init__(self, name: str, values: NDArray[Any]) -> None:
        if values.ndim != 1:
            raise ValueError(f"column {name!r} must have one dimension, got shape {values.shape}")
        self.name, self.type, self._objects = name, str(values.dtype), None
        if values.dtype.kind in "OT":
            values, self._objects = _of_objects(name, values)
            self.type = "text" if self._objects is not None else str(values.dtype)
        elif values.dtype.kind in "US":
            self._objects, self.type = _of_text(values), "text"
        kinds: dict[str, Kind] = {"b": "bool", "i": "whole", "u": "whole", "f": "real", "U": "text", "O": "text"}
        self.kind = "text" if self._objects is not None else kinds.get(values.dtype.kind, "other")
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def numbers(self) -> NDArray[np.float64]:
        return self._values.astype(np.float64)

    def array(self) -> NDArray[Any]:
        return self._values

    def words(self) -> Words:
        if self._objects is not None:
            return self._objects
        return words_of_array(self._values)


def words_of_array(values: NDArray[Any]) -> Words:
    """Numbers, booleans and dates as text."""
    if values.dtype.kind == "b":
        return Words(values.astype(np.int32), ["false", "true"])
    missing = (
        np.isnat(values) if values.dtype.kind in "mM" else np.isnan(values) if values.dtype.kind == "f" else None
    )
    if missing is not None and missing.any():
        codes = np.full(len(values), -1, dtype=np.int32)
        found = words_of_array(values[~missing])
        codes[~missing] = found.codes
        return Words(codes, found.values)
    distinct, codes = _distinct(values)
    if values.dtype.kind in "mM":
        return Words(codes, [str(value).replace("T", " ") for value in distinct])
    return Words(codes, [number_text(value) for value in distinct.tolist()])


def number_text(value: float) -> str:
    """3 for 3.0, which files and frames hold as either, and otherwise the fewest digits that tell numbers apart."""
    return str(int(value)) if value == value // 1 and abs(value) < 2**63 else repr(value)


def _distinct(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Ascending, and the place of each value among them; without sorting where a counter for each fits."""
    if len(values) and values.dtype.kind in "iu":
        least, most = int(values.min()), int(values.max())
        if most - least < 4 * len(values) and least >= -(2**62) and most < 2**62:
            offsets = values.astype(np.int64) - least
            is_there = np.zeros(most - least + 1, dtype=np.bool_)
            is_there[offsets] = True
            places = (np.cumsum(is_there) - 1).astype(np.int32)
            return np.flatnonzero(is_there) + least, places[offsets]
    distinct, codes = np.unique(values, return_inverse=True)
    return distinct, codes.astype(np.int32).ravel()


def _of_text(values: NDArray[Any]) -> Words:
    distinct, codes = np.unique(values, return_inverse=True)
    texts = [value.decode() if isinstance(value, bytes) else str(value) for value in distinct.tolist()]
    places = codes.astype(np.int32).ravel()
    if "" in texts:  # an empty field is missing, as in a file
        places[places == texts.index("")] = -1
    return Words(places, texts)


def is_missing(value: Any) -> bool:
    """None, NaN, NaT, pandas' NA."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def _of_objects(name: str, values: NDArray[Any]) -> tuple[NDArray[Any], Words | None]:
    """Objects that are numbers as an array of them; anything else as text."""
    places: dict[Any, int] = {}
    codes = np.fromiter((places.setdefault(_told_apart(name, v), len(places)) for v in values), np.int32, len(values))
    distinct = [value for _, value in places]
    missing = np.array([is_missing(value) for value in distinct], dtype=np.bool_)
    there = [value for value, is_gone in zip(distinct, missing, strict=True) if not is_gone]
    if all(isinstance(value, (bool, np.bool_)) for value in there) and there and not missing.any():
        return np.array(distinct, dtype=np.bool_)[codes], None
    if all(map(_is_number, there)):
        whole = not missing.any() and all(isinstance(value, (int, np.integer)) for value in there)
        if whole and all(abs(int(value)) < 2**63 for value in there):
            return np.array([int(v) for v in distinct], dtype=np.int64)[codes], None
        numbers = [np.nan if is_gone else float(v) for v, is_gone in zip(distinct, missing, strict=True)]
        return np.array(numbers, dtype=np.float64)[codes], None
    # 1, "1" and 1.0 are one category; an empty text is missing, as in a file
    texts = ["" if is_gone else _text(v) for v, is_gone in zip(distinct, missing, strict=True)]
    kept = {text: k for k, text in enumerate(dict.fromkeys(filter(None, texts)))}
    recode = np.array([kept.get(text, -1) for text in texts] or [-1], dtype=np.int32)
    return values, Words(recode[codes] if len(codes) else codes, list(kept))


def _told_apart(name: str, value: Any) -> tuple[Any, Any]:
    """True and 1 are equal, and NaN differs from itself."""
    try:
        hash(value)
    except TypeError:
        raise ValueError(
            f"column {name!r} holds {value!r}, of type {type(value).__name__}; accepted are numbers, booleans, dates "
            "and text"
        ) from None
    return (None, None) if is_missing(value) else (type(value), value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _text(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode()
    return number_text(float(value) if isinstance(value, np.floating) else value) if _is_number(value) else str(value)
