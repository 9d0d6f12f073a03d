"""The working set, cut anew by rows over all ranks: each of its columns travels once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.tiles import tuning
from blockgreedy.backends.tiles.grid import Grid
from blockgreedy.backends.tiles.sparse_columns import (
    column_keys,
    cut_rows,
    join_columns,
    make_columns,
    packed,
    take_columns,
    unpacked,
)
from blockgreedy.backends.tiles.tile import Tile

Array = NDArray[np.float64]
Features = NDArray[np.intp]


@dataclass(frozen=True)
class Entrants:
    """What the owner of columns says of those that enter: the same on every rank."""

    ids: NDArray[np.int64]
    unit: Array  # u_j: their penalty is alpha·u_j
    l2_unit: Array  # and l2 times this
    lower: Array
    upper: Array
    key: NDArray[np.uint64]

    @staticmethod
    def none() -> Entrants:
        empty = np.zeros(0)
        return Entrants(np.zeros(0, np.int64), empty, empty, empty, empty, np.zeros(0, np.uint64))

    def at(self, places: NDArray[np.intp]) -> Entrants:
        return Entrants(*(getattr(self, name)[places] for name in self.__dataclass_fields__))

    def __add__(self, other: Entrants) -> Entrants:
        pairs = ((getattr(self, name), getattr(other, name)) for name in self.__dataclass_fields__)
        return Entrants(*(np.concatenate(pair) for pair in pairs))


class Recut:
    """Columns that were in a working set, in the rows that this rank owns, in the order in which they came."""

    def __init__(self, grid: Grid, tile: Tile, row_cuts: NDArray[np.int64], first_row: int, n_own_rows: int) -> None:
        """``row_cuts`` divide the rows of the row group among its ranks; ``first_row`` is the group's."""
        self._grid, self._tile, self._row_cuts, self._first_row = grid, tile, row_cuts, first_row
        self.facts = Entrants.none()
        self.aliases = np.zeros(0, dtype=np.int64)  # among those that were added last
        empty = np.zeros(0, np.int32)
        self._columns = make_columns(n_own_rows, empty, empty, np.zeros(0, tile.dtype))

    def places(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Where these columns stand, and which of them are held at all."""
        order = np.argsort(self.facts.ids, kind="stable")
        found = np.searchsorted(self.facts.ids, ids, sorter=order)
        found = np.minimum(found, max(len(order) - 1, 0))
        places = order[found] if len(order) else np.zeros(len(ids), np.intp)
        held = self.facts.ids[places] == ids if len(order) else np.zeros(len(ids), np.bool_)
        return places, held

    def add(self, entrants: Entrants, own: Features, merges: bool) -> None:
        """``entrants``: of this rank's columns, those that nobody holds yet; ``own`` their numbers in the tile.

        Columns that equal one that is held, or one before them, and have the same penalty, become its aliases: they
        are not held, and do not travel. Not with l2, where copies share a weight (``merges``).
        """
        columns = self._tile.take(own)
        key = self._grid.above.reduce(column_keys(columns, self._first_row), "keys")
        told = [entrants.ids, entrants.unit, entrants.l2_unit, entrants.lower, entrants.upper, key]
        parts = self._grid.beside.gather(np.concatenate([part.view(np.uint64) for part in told]), "working set")
        tables = [part.reshape(6, -1) for part in parts]
        ids, keys = (np.concatenate([table[k] for table in tables]) for k in (0, 5))
        unit, l2_unit, lower, upper = (
            np.concatenate([table[k] for table in tables]).view(np.float64) for k in range(1, 5)
        )
        new = Entrants(ids.view(np.int64), unit, l2_unit, lower, upper, keys)
        is_new = ~self._repeats(new) if merges else np.ones(len(ids), dtype=np.bool_)
        self.aliases = new.ids[~is_new]
        self.facts = self.facts + new.at(np.flatnonzero(is_new))
        mine = np.isin(entrants.ids, self.aliases, invert=True)
        columns = columns if np.all(mine) else take_columns(columns, np.flatnonzero(mine))
        sent = [packed(piece) for piece in cut_rows(columns, self._row_cuts)]
        n = self._columns.shape[0]
        found = [unpacked(part, n, columns.dtype) for part in self._grid.beside.exchange(sent, "columns")]
        self._columns = join_columns(n, [self._columns, *found])

    def _repeats(self, new: Entrants) -> NDArray[np.bool_]:
        """Which columns equal one before them."""
        both = self.facts + new
        same = np.stack([both.key, *(part.view(np.uint64) for part in (both.unit, both.lower, both.upper))])
        _, first, group = np.unique(same, axis=1, return_index=True, return_inverse=True)
        is_first = first[np.ravel(group)] == np.arange(same.shape[1])
        # where a bound is finite, a copy can go on where its like has to stop
        unlimited = (np.isinf(new.lower) | (new.lower == 0)) & (np.isinf(new.upper) | (new.upper == 0))
        return np.asarray(~is_first[len(self.facts.ids) :] & (new.unit > 0) & unlimited)

    def chosen(self, places: NDArray[np.intp]) -> tuple[Any, Entrants]:
        """The columns at these places, and the facts; others are let go of when they outweigh them."""
        columns, facts = take_columns(self._columns, places), self.facts.at(places)
        # by number, which is the same on every rank; their entries are not
        if len(self.facts.ids) > tuning.KEPT_COLUMNS * len(places) + tuning.KEPT_AT_LEAST:
            self._columns, self.facts = columns, facts
        return columns, facts
