"""The encoding of a table that is larger than memory, learned from batches of its rows.

Categories are learned first; if there are crosses, a second pass counts the combinations of the categories.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from blockgreedy.base.files import growing
from blockgreedy.base.memory import bytes_text
from blockgreedy.data.column import Column
from blockgreedy.data.encode import no_values, recoded, refuse_type, words_of
from blockgreedy.data.encoding import Cross, Encoding, Source
from blockgreedy.data.key_counts import KeyCounts
from blockgreedy.data.treatment import Plan

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PER_VALUE = 200  # bytes of a category in memory
_BLOCK = 1 << 17  # numbers at a time
_RADIX = 16  # bits of a number that are looked at in a pass


class SourceLearner:
    """What becomes of a column: its categories with how often they occur, or numbers and what fills their gaps."""

    def __init__(self, name: str, plan: Plan, folder: Path) -> None:
        self.name, self.role, self.fill = name, plan.roles[name], plan.fills.get(name)
        self.counts: dict[str, int] = {}
        self.from_numbers = False
        self._sums: list[float] = []
        self._n_numbers = 0
        self._file = folder / f"numbers-{list(plan.roles).index(name):04}.raw"
        self._is_new = True

    def see(self, column: Column, where: str) -> None:
        if self.role == "whole?" and not _is_whole(column):
            self.role, self.counts = "numbers", {}
        if self.role != "numbers":
            self._see_words(column, where)
        if self.role != "categories":  # whatever it turns out to be
            refuse_type(column, where)
            if isinstance(self.fill, str):
                self._see_numbers(column)

    def _see_words(self, column: Column, where: str) -> None:
        found = words_of(column, where)
        self.from_numbers = column.is_number
        for value, count in zip(found.values, found.counts().tolist(), strict=True):
            if count:
                self.counts[value] = self.counts.get(value, 0) + count

    def _see_numbers(self, column: Column) -> None:
        values = column.numbers()
        values = values[~np.isnan(values)]
        self._n_numbers += len(values)
        if self.fill == "mean":
            self._sums.append(float(np.sum(values)))
        else:
            with growing(self._file, anew=self._is_new) as file:
                file.write(values.tobytes())
            self._is_new = False

    def source(self, min_count: int, where: str) -> Source:
        is_whole = self.role == "whole?" and bool(self.counts)
        if self.role == "categories" or is_whole:
            self._file.unlink(missing_ok=True)
            kept = sorted(value for value, count in self.counts.items() if count >= min_count)
            return Source(self.name, tuple(kept), from_numbers=self.from_numbers)
        if not isinstance(self.fill, str):
            return Source(self.name, fill=self.fill)
        if not self._n_numbers:
            raise no_values(self.name, self.fill, where)
        if self.fill == "mean":
            return Source(self.name, fill=math.fsum(self._sums) / self._n_numbers)
        fill = median_of(self._file, self._n_numbers)
        self._file.unlink()
        return Source(self.name, fill=fill)


def _is_whole(column: Column) -> bool:
    """Of a batch, which may have no values at all."""
    if column.kind != "real":
        return column.kind == "whole"
    values = column.numbers()
    values = values[~np.isnan(values)]
    return bool(np.all(np.isfinite(values)) and np.all(values == np.floor(values)))


class TableLearner:
    """``see`` hears of all rows; after ``columns_done`` once more, if there are crosses."""

    def __init__(self, plan: Plan, folder: Path, n_bytes: int) -> None:
        self.plan, self.folder, self.n_bytes = plan, folder, n_bytes
        self.columns = {name: SourceLearner(name, plan, folder) for name in plan.roles}
        self.sources: tuple[Source, ...] = ()

    def see(self, columns: Mapping[str, Column], where: str) -> None:
        for name, learner in self.columns.items():
            learner.see(columns[name], where)
        if self._held > self.n_bytes:
            largest = max(self.columns.values(), key=lambda learner: len(learner.counts))
            raise ValueError(
                f"{where}: the categories take more than the {bytes_text(self.n_bytes)} that memory=… leaves for "
                f"them; column {largest.name!r} has {len(largest.counts):,} of them so far. Leave it out "
                f"(drop={largest.name!r}), or raise memory"
            )

    @property
    def _held(self) -> int:
        return _PER_VALUE * sum(len(learner.counts) for learner in self.columns.values())

    def columns_done(self, where: str) -> list[tuple[str, ...]]:
        """The crosses, whose combinations are to be counted."""
        self.sources = tuple(one.source(self.plan.min_count, where) for one in self.columns.values())
        categorical = [source.name for source in self.sources if source.categories is not None]
        crossed = self.plan.crosses(categorical)
        self._widths = {source.name: source.n_features for source in self.sources}
        for names in crossed:
            if math.prod(max(self._widths[name], 1) for name in names) >= 2**63:
                raise ValueError(
                    f"cross={','.join(names)}: {where} has more than 2^63 combinations of these categories; "
                    "cross fewer columns, or raise min_count"
                )
        share = max(self.n_bytes - self._held, self.n_bytes // 8) // max(len(crossed), 1)
        self._keys = {names: KeyCounts(self.folder, f"combinations-{k:04}", share) for k, names in enumerate(crossed)}
        self._places = Encoding(self.sources).category_places()
        return crossed

    def see_crosses(self, columns: Mapping[str, Column], where: str) -> None:
        used = {name for names in self._keys for name in names}
        codes = {name: recoded(words_of(columns[name], where), self._places[name]) for name in used}
        for names, counts in self._keys.items():
            keys = np.zeros(len(codes[names[0]]), dtype=np.int64)
            there = np.ones(len(keys), dtype=np.bool_)
            for name in names:
                keys = keys * max(self._widths[name], 1) + codes[name]
                there &= codes[name] >= 0
            counts.add(keys[there])

    def encoding(self) -> Encoding:
        crosses = []
        for names, counts in self._keys.items():
            keys = counts.frequent(self.plan.min_count)
            digits = np.empty((len(names), len(keys)), dtype=np.int32)
            for k in range(len(names) - 1, -1, -1):
                keys, digits[k] = np.divmod(keys, max(self._widths[names[k]], 1))
            crosses.append(Cross(names, digits))
        return Encoding(self.sources, tuple(crosses), self.plan.min_count, self.plan.dropped)


def median_of(path: Path, n_values: int) -> float:
    """Of the float64 numbers in a file: its middle ones are found by their bits, 16 at a time, in four passes."""
    middle = [_selected(path, k) for k in {(n_values - 1) // 2, n_values // 2}]
    return float(np.mean(middle))


def _selected(path: Path, place: int) -> float:
    """The number at this place of the ascending order."""
    prefix, known = np.uint64(0), 0  # the leading bits of the number that is looked for
    while known < 64:
        counts = np.zeros(1 << _RADIX, dtype=np.int64)
        rest = np.uint64(64 - known - _RADIX)
        for keys in _ordered_bits(path):
            own = keys if not known else keys[(keys >> np.uint64(64 - known)) == prefix]
            digits = (own >> rest) & np.uint64((1 << _RADIX) - 1)
            counts += np.bincount(digits.astype(np.int64), minlength=1 << _RADIX)
        below = np.cumsum(counts)
        digit = int(np.searchsorted(below, place, side="right"))
        place -= int(below[digit - 1]) if digit else 0
        prefix, known = (prefix << np.uint64(_RADIX)) | np.uint64(digit), known + _RADIX
    bits = prefix ^ np.uint64(1 << 63) if prefix >> np.uint64(63) else ~prefix
    return float(np.array([bits], dtype=np.uint64).view(np.float64)[0])


def _ordered_bits(path: Path) -> Any:
    """Numbers of 64 bits that ascend as the floating-point numbers do."""
    with path.open("rb") as file:
        while len(values := np.fromfile(file, dtype=np.float64, count=_BLOCK)):
            bits: NDArray[np.uint64] = values.view(np.uint64)
            yield np.where(bits >> np.uint64(63), ~bits, bits | np.uint64(1 << 63))
