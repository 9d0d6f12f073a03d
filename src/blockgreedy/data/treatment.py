"""Treatment: what the user wants to become of a table's columns; Plan: the same, for a given table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from itertools import combinations
from numbers import Real
from typing import Any, Literal

from blockgreedy.base.validate import whole
from blockgreedy.data.column import Kind

Names = str | Iterable[str] | None
Fill = float | str | Mapping[str, float | str] | None
Crosses = str | Iterable[str | Iterable[str]] | None
# "whole?": categories if all values turn out to be whole numbers, else numbers
Role = Literal["categories", "numbers", "whole?"]
ALL = "all"
TREATMENTS = ("categorical", "drop", "fill", "cross", "min_count")  # the options that ``Treatment.of`` takes
_AVERAGES = ("mean", "median")
_FILL_HELP = "accepted are a number, mean or median, for all columns or for single ones: price=0,age=median"
_CROSS_HELP = (
    "accepted are two or more column names, A,B, or all:2 (all:3) for all pairs (triples) of categorical columns"
)


@dataclass(frozen=True)
class Treatment:
    """The options ``categorical``, ``drop``, ``fill``, ``cross`` and ``min_count``, checked as far as possible
    without a table."""

    categorical: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    fill: tuple[
        tuple[str | None, float | str], ...
    ] = ()  # column or pattern, None for all; the last that fits counts
    cross: tuple[tuple[str, ...] | int, ...] = ()  # columns, or how many of all categorical ones
    min_count: int = 1

    @classmethod
    def of(
        cls,
        categorical: Names = None,
        drop: Names = None,
        fill: Fill = None,
        cross: Crosses = None,
        min_count: int = 1,
    ) -> Treatment:
        min_count = whole("min_count", min_count, 1)
        return cls(
            _listed("categorical", categorical), _listed("drop", drop), _fills(fill), _crosses(cross), min_count
        )

    @property
    def is_default(self) -> bool:
        return self == Treatment()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def plan(self, kinds: Mapping[str, Kind], target: str | None = None, where: str = "the table") -> Plan:
        """For a table with these columns; ``target`` is none of the features."""
        names = [name for name in kinds if name != target]
        dropped = _chosen("drop", self.drop, names, target, where)
        features = [name for name in names if name not in dropped]
        named = _chosen("categorical", self.categorical, features, target, where, (ALL,), dropped)
        wants_all = ALL in self.categorical and ALL not in features
        roles = {name: _role(kinds[name], name in named, wants_all) for name in features}
        fills: dict[str, float | str] = {}
        for pattern, value in self.fill:
            matching = (
                features if pattern is None else _chosen("fill", (pattern,), features, target, where, (), dropped)
            )
            for name in matching:
                if roles[name] != "categories":
                    fills[name] = value
                elif pattern == name:
                    raise ValueError(
                        f"fill: column {name!r} of {where} holds categories, whose missing values are encoded as all "
                        "zeros; fill is for columns of numbers"
                    )
        for cross in self.cross:
            for name in () if isinstance(cross, int) else cross:
                _known("cross", name, features, target, where, dropped)
                if roles[name] == "numbers":
                    raise ValueError(
                        f"cross: column {name!r} of {where} holds numbers; add categorical={name!r} to cross its "
                        "values"
                    )
        return Plan(roles, frozenset(named), tuple(dropped), fills, self.cross, self.min_count)


@dataclass(frozen=True)
class Plan:
    """What becomes of each column, in the order of the table."""

    roles: Mapping[str, Role]
    named: frozenset[str]  # in categorical
    dropped: tuple[str, ...]
    fills: Mapping[str, float | str]
    cross: tuple[tuple[str, ...] | int, ...]
    min_count: int

    def crosses(self, categorical: list[str]) -> list[tuple[str, ...]]:
        """The columns of each cross; a set of columns is crossed once."""
        found: dict[frozenset[str], tuple[str, ...]] = {}
        for cross in self.cross:
            if isinstance(cross, int):
                if len(categorical) < cross:
                    raise ValueError(
                        f"cross=all:{cross} needs at least {cross} categorical columns, and there are "
                        f"{len(categorical)}; columns of numbers become categorical with categorical=…"
                    )
                wanted: Iterable[tuple[str, ...]] = combinations(categorical, cross)
            else:
                wanted = [cross]
            for columns in wanted:
                numbers = [name for name in columns if name not in categorical]
                if numbers:
                    raise ValueError(
                        f"cross: column {numbers[0]!r} holds numbers; add categorical={numbers[0]!r} to cross its "
                        "values"
                    )
                found.setdefault(frozenset(columns), columns)
        return list(found.values())


def _role(kind: Kind, is_named: bool, wants_all: bool) -> Role:
    if is_named or kind == "text" or (wants_all and kind in ("whole", "bool")):
        return "categories"
    return "whole?" if wants_all and kind == "real" else "numbers"


def _listed(option: str, names: Names) -> tuple[str, ...]:
    if names is None:
        return ()
    listed = [names] if isinstance(names, str) else list(names)
    for name in listed:
        if not isinstance(name, str) or not name.strip():
            raise ValueError(
                f"{option}={names!r} must be names of columns: text such as a,b or site_*, or a list of it"
            )
    return tuple(listed)


def _fills(fill: Fill) -> tuple[tuple[str | None, float | str], ...]:
    if fill is None:
        return ()
    if isinstance(fill, Mapping):
        return tuple((str(name), _fill_value(fill, value)) for name, value in fill.items())
    if isinstance(fill, str):
        found: list[tuple[str | None, float | str]] = []
        for part in fill.split(","):
            name, equals, value = part.rpartition("=")
            if equals and not name.strip():
                raise ValueError(f"fill={fill!r}: {part!r} names no column; {_FILL_HELP}")
            found.append((name.strip() if equals else None, _fill_value(fill, value)))
        # what holds for all columns comes first, so that single columns can differ from it
        return tuple(sorted(found, key=lambda entry: entry[0] is not None))
    return ((None, _fill_value(fill, fill)),)


def _fill_value(fill: Any, value: Any) -> float | str:
    if isinstance(value, str) and value.strip() in _AVERAGES:
        return value.strip()
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, (str, Real)) else float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"fill={fill!r}: {value!r} is not a value to fill in; {_FILL_HELP}")
    return number


def _crosses(cross: Crosses) -> tuple[tuple[str, ...] | int, ...]:
    if cross is None:
        return ()
    return tuple(_cross(entry) for entry in ([cross] if isinstance(cross, str) else cross))


def _cross(entry: Any) -> tuple[str, ...] | int:
    if isinstance(entry, str) and entry.startswith(f"{ALL}:"):
        size = entry.removeprefix(f"{ALL}:")
        if size not in ("2", "3"):
            raise ValueError(f"cross={entry!r}: {size!r} must be 2 or 3; {_CROSS_HELP}")
        return int(size)
    names = tuple(name.strip() for name in entry.split(",")) if isinstance(entry, str) else tuple(entry)
    if not all(isinstance(name, str) and name for name in names) or len(names) < 2:
        raise ValueError(f"cross={entry!r} is not a cross; {_CROSS_HELP}")
    if len(set(names)) < len(names):
        raise ValueError(f"cross={entry!r} names a column twice; {_CROSS_HELP}")
    return names


def _chosen(
    option: str,
    asked: tuple[str, ...],
    names: list[str],
    target: str | None,
    where: str,
    words: tuple[str, ...] = (),
    dropped: Iterable[str] = (),
) -> list[str]:
    """The columns that are named, or that a pattern fits, in the order of the table. Names come before patterns."""
    found: set[str] = set()
    for text in asked:
        for part in [text] if text in names else [part.strip() for part in text.split(",")]:
            fits = [part] if part in names else [name for name in names if fnmatchcase(name, part)]
            if not fits and part not in words:
                _known(option, part, names, target, where, dropped)
            found.update(fits)
    return [name for name in names if name in found]


def _known(option: str, name: str, names: list[str], target: str | None, where: str, dropped: Iterable[str]) -> None:
    if name in names:
        return
    for is_so, what in ((name == target, "holds the labels"), (name in dropped, "is dropped")):
        if is_so:
            raise ValueError(f"{option}: column {name!r} of {where} {what}; {columns_text(names, 'other columns')}")
    if name and any(letter in name for letter in "*?["):
        raise ValueError(f"{option}: no column of {where} matches {name!r}; {columns_text(names)}")
    raise ValueError(f"{option}: {where} has no column {name!r}; {columns_text(names)}")


def columns_text(names: Iterable[str], which: str = "columns") -> str:
    listed = list(names)
    return f"its {which} are {', '.join(listed[:20])}{', …' if len(listed) > 20 else ''}"
