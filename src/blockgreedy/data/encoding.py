"""Encoding: how the columns of a table became features, so that other tables can become the same ones."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from blockgreedy.base.cached import cached_property

if TYPE_CHECKING:
    from numpy.typing import NDArray

CROSSED = " × "  # between the parts of a cross


@dataclass(frozen=True)
class Source:
    """A column: its categories, a feature for each, or None for a column of numbers, which is one feature.

    ``fill`` takes the place of missing numbers. ``from_numbers`` says that the categories were numbers, so that 1.0
    in a text file is category 1; otherwise text is taken as it stands.
    """

    name: str
    categories: tuple[str, ...] | None = None
    fill: float | None = None
    from_numbers: bool = False

    @property
    def n_features(self) -> int:
        return 1 if self.categories is None else len(self.categories)


@dataclass(frozen=True, eq=False)
class Cross:
    """Two or more columns of categories. Column j of ``codes`` holds one combination: a place in the categories of
    each column. Combinations ascend."""

    columns: tuple[str, ...]
    codes: NDArray[np.int32]

    @property
    def n_features(self) -> int:
        return int(self.codes.shape[1])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cross) and self.columns == other.columns and np.array_equal(self.codes, other.codes)

    def __hash__(self) -> int:
        return hash((self.columns, self.codes.tobytes()))


@dataclass(frozen=True)
class Encoding:
    """How columns became features: those of each column, in the order of ``columns``, then those of each cross.

    Values in fewer than ``min_count`` rows have no feature. ``dropped`` columns were left out.
    """

    columns: tuple[Source, ...]
    crosses: tuple[Cross, ...] = ()
    min_count: int = 1
    dropped: tuple[str, ...] = ()

    @cached_property
    def places(self) -> dict[str, int]:
        return {source.name: k for k, source in enumerate(self.columns)}

    def category_places(self) -> dict[str, dict[str, int]]:
        """Where each category stands among those of its column. Not kept: it takes more than the categories."""
        return {
            source.name: {value: k for k, value in enumerate(source.categories)}
            for source in self.columns
            if source.categories is not None
        }

    @cached_property
    def groups(self) -> tuple[tuple[tuple[str, ...], int, int], ...]:
        """(names of columns, first feature, end): every column, and every cross, with its features."""
        found: list[tuple[tuple[str, ...], int, int]] = []
        start = 0
        for names, part in [((s.name,), s) for s in self.columns] + [(c.columns, c) for c in self.crosses]:
            found.append((names, start, start + part.n_features))
            start += part.n_features
        return tuple(found)

    @property
    def n_features(self) -> int:
        return self.groups[-1][2] if self.groups else 0

    def source_of(self, feature: int) -> tuple[str, ...]:
        """The names of the columns that a feature was made of: one, or those of a cross."""
        if not 0 <= feature < self.n_features:
            raise ValueError(f"feature={feature!r} must be a whole number from 0 to {self.n_features - 1}")
        return self.groups[bisect_right(self._starts, feature) - 1][0]

    @cached_property
    def _starts(self) -> list[int]:
        return [start for _, start, _ in self.groups]

    @property
    def feature_names(self) -> NDArray[np.str_]:
        """``price`` for a column of numbers, ``site=a`` for a category, ``site=a × hour=3`` for a cross."""
        names: list[str] = []
        parts: dict[str, list[str]] = {}
        for source in self.columns:
            parts[source.name] = [f"{source.name}={value}" for value in source.categories or ()]
            names += [source.name] if source.categories is None else parts[source.name]
        for cross in self.crosses:
            words = [
                [parts[name][code] for code in codes]
                for name, codes in zip(cross.columns, cross.codes.tolist(), strict=True)
            ]
            names += map(CROSSED.join, zip(*words, strict=True))
        return np.array(names, dtype=np.str_)

    def keys_of(self, cross: Cross) -> NDArray[np.int64]:
        """What the core calls combinations: their codes as the digits of one number."""
        keys = np.zeros(cross.n_features, dtype=np.int64)
        for name, codes in zip(cross.columns, cross.codes, strict=True):
            keys = keys * self.columns[self.places[name]].n_features + codes
        return keys

    def to_json(self) -> dict[str, Any]:
        columns = []
        for source in self.columns:
            entry: dict[str, Any] = {"name": source.name}
            if source.categories is not None:
                entry |= {"categories": list(source.categories), "from_numbers": source.from_numbers}
            elif source.fill is not None:
                entry["fill"] = source.fill
            columns.append(entry)
        crosses = [{"columns": list(cross.columns), "codes": cross.codes.tolist()} for cross in self.crosses]
        return {
            "columns": columns, "crosses": crosses, "min_count": self.min_count, "dropped": list(self.dropped)
        }  # fmt: skip

    @classmethod
    def of_json(cls, plain: Any) -> Encoding | None:
        """Also what was written before there were crosses: a list of names with their categories, or null."""
        if plain is None:
            return None
        if isinstance(plain, list):
            return cls(tuple(map(_source_of_pair, plain)))
        if not isinstance(plain, dict) or not isinstance(plain.get("columns"), list):
            raise ValueError(f"encoding: {plain!r} must be an object with a list of columns")
        columns = tuple(map(_source_of_json, plain["columns"]))
        widths = {source.name: len(source.categories) for source in columns if source.categories is not None}
        if len({source.name for source in columns}) < len(columns):
            raise ValueError("encoding: names of columns must differ")
        crosses = tuple(_cross_of_json(entry, widths) for entry in plain.get("crosses", ()))
        min_count, dropped = plain.get("min_count", 1), plain.get("dropped", [])
        if not isinstance(min_count, int) or not _is_texts(dropped):
            raise ValueError("encoding: min_count must be a whole number, and dropped a list of names")
        return cls(columns, crosses, min_count, tuple(dropped))


def _is_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _source_of_pair(column: Any) -> Source:
    if (
        isinstance(column, list)
        and len(column) == 2
        and isinstance(column[0], str)
        and (column[1] is None or _is_texts(column[1]))
    ):
        return Source(column[0], None if column[1] is None else tuple(column[1]))
    raise ValueError(f"encoding: {column!r} must be the name of a column and its categories, or null")


def _source_of_json(entry: Any) -> Source:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise ValueError(f"encoding: {entry!r} must be a column with a name")
    categories, fill = entry.get("categories"), entry.get("fill")
    if categories is not None and not _is_texts(categories):
        raise ValueError(f"encoding: the categories of {entry['name']!r} must be a list of text")
    if fill is not None and (isinstance(fill, bool) or not isinstance(fill, (int, float)) or not math.isfinite(fill)):
        raise ValueError(f"encoding: the fill of {entry['name']!r} must be a number, got {fill!r}")
    return Source(
        entry["name"],
        None if categories is None else tuple(categories),
        None if fill is None else float(fill),
        bool(entry.get("from_numbers", False)),
    )


def _cross_of_json(entry: Any, widths: dict[str, int]) -> Cross:
    names: Any = entry.get("columns") if isinstance(entry, dict) else None
    if not _is_texts(names) or len(names) < 2 or not all(name in widths for name in names):
        raise ValueError(f"encoding: a cross must be of two or more columns of categories, got {names!r}")
    codes = np.array(entry.get("codes"), dtype=object)
    if codes.ndim != 2 or len(codes) != len(names) or not all(type(code) is int for code in codes.flat):
        raise ValueError(
            f"encoding: the codes of the cross {names!r} must be a list of whole numbers for each column"
        )
    for name, own in zip(names, codes, strict=True):
        if not all(0 <= code < widths[name] for code in own):
            raise ValueError(f"encoding: codes of the cross {names!r} lie beyond the categories of {name!r}")
    whole = codes.astype(np.int32)
    order = np.lexsort(whole[::-1])
    if np.any(order != np.arange(whole.shape[1])) or np.any(np.all(whole[:, 1:] == whole[:, :-1], axis=0)):
        raise ValueError(f"encoding: combinations of the cross {names!r} must ascend and differ")
    return Cross(tuple(names), whole)
