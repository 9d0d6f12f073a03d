"""The working set, cut anew by rows over all ranks: each of its columns travels once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.tiles import tuning
from blockgreedy.backends.tiles.grid import Grid
from blockgreedy.backends.tiles.local import Team, WorkingColumns, column_keys, working_columns
from blockgreedy.backends.tiles.sparse_columns import (
    cut_rows,
    gather,
    make_columns,
    packed,
    unpacked,
)
from blockgreedy.backends.tiles.tile import Tile
from blockgreedy.base.cached import cached_property
from blockgreedy.problem.columns import as_dense

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
    entries: Array  # of all rows
    key: NDArray[np.uint64]

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """In which ids ascend."""
        return np.argsort(self.ids, kind="stable")

    @staticmethod
    def none() -> Entrants:
        empty = np.zeros(0)
        return Entrants(np.zeros(0, np.int64), empty, empty, empty, empty, empty, np.zeros(0, np.uint64))

    def at(self, places: NDArray[np.intp]) -> Entrants:
        return Entrants(*(getattr(self, name)[places] for name in self.__dataclass_fields__))

    def __add__(self, other: Entrants) -> Entrants:
        pairs = ((getattr(self, name), getattr(other, name)) for name in self.__dataclass_fields__)
        return Entrants(*(np.concatenate(pair) for pair in pairs))


class Recut:
    """Columns that were in a working set, in the rows that this rank owns, in the matrices in which they came."""

    def __init__(
        self, grid: Grid, tile: Tile, row_cuts: NDArray[np.int64], first_row: int, n_own_rows: int, team: Team
    ) -> None:
        """``row_cuts`` divide the rows of the row group among its ranks; ``first_row`` is the group's."""
        self._grid, self._tile, self._row_cuts, self._first_row = grid, tile, row_cuts, first_row
        self._n_rows, self._team = n_own_rows, team
        self.facts = Entrants.none()
        self.most_entries = np.inf  # of all ranks
        empty = np.zeros(0, np.int32)
        self._matrices = [make_columns(n_own_rows, empty, empty, np.zeros(0, tile.dtype))]
        self._where = np.zeros((0, 2), dtype=np.int32)  # of each column its matrix, and its number there

    def places(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Where these columns stand, and which of them are held at all."""
        order = self.facts.order
        found = np.searchsorted(self.facts.ids, ids, sorter=order)
        found = np.minimum(found, max(len(order) - 1, 0))
        places = order[found] if len(order) else np.zeros(len(ids), np.intp)
        held = self.facts.ids[places] == ids if len(order) else np.zeros(len(ids), np.bool_)
        return places, held

    def enter(
        self, own: Features, facts: Entrants, numbers: Array, merges: bool
    ) -> tuple[NDArray[np.intp], Array, NDArray[np.int64]]:
        """Where the columns stand that all ranks chose, their numbers, and those that turned out to repeat others.

        ``own``: the columns of the tile that this rank chose, ``facts`` what is to be known of them (but their keys),
        and ``numbers`` two numbers of each, which change. Columns that nobody holds are sent round, unless they equal
        one that is held, or one before them, and have the same penalty: they do not enter. Not with l2, where copies
        share a weight (``merges``).
        """
        is_new = ~self.places(facts.ids)[1]
        columns = self._tile.take(own[is_new], self._team)
        new = facts.at(np.flatnonzero(is_new))
        told = [
            np.array([len(own)]),
            facts.ids,
            *numbers,
            new.unit,
            new.l2_unit,
            new.lower,
            new.upper,
            new.entries,
        ]
        parcel = np.concatenate([part.view(np.uint64) for part in told])
        parcels = self._parcels(parcel, column_keys(columns, self._first_row))
        opened = [_opened(parcel) for parcel in parcels]
        ids = np.concatenate([part[0] for part in opened])
        everybodys = np.concatenate([part[1] for part in opened], axis=1)
        held = self.places(ids)[1]
        aliases = np.zeros(0, dtype=np.int64)
        if not np.all(held):
            told_of = np.concatenate([part[2] for part in opened], axis=1)
            unit, l2_unit, lower, upper, entries = told_of[:5].view(np.float64)
            entrants = Entrants(ids[~held], unit, l2_unit, lower, upper, entries, told_of[5])
            self._make_room(self.places(ids[held])[0], float(np.sum(entries)))
            aliases = self._add(entrants, columns, new.ids, merges)
        places, held = self.places(ids)
        return places[held], everybodys[:, held], aliases

    def _parcels(self, parcel: NDArray[np.uint64], keys: NDArray[np.uint64]) -> list[NDArray[np.uint64]]:
        """What each column group says of its columns, and the keys of the new ones, of all rows.

        ``keys`` are those of this rank's rows, to be added up over the row groups. Where there are column groups too,
        they travel with the parcels: that takes one round instead of two.
        """
        n_columns = self._grid.shape[1]
        if n_columns == 1:
            return [np.concatenate([parcel, self._grid.above.reduce(keys, "keys") if len(keys) else keys])]
        told = np.concatenate([parcel, keys]) if self._grid.row == 0 else keys
        parts = self._grid.all.gather(told, "working set")
        found = [part.copy() for part in parts[:n_columns]]
        for rank, part in enumerate(parts[n_columns:]):
            whole = found[rank % n_columns]
            whole[len(whole) - len(part) :] += part
        return found

    def _add(self, entrants: Entrants, columns: Any, own: NDArray[np.int64], merges: bool) -> NDArray[np.int64]:
        """Takes new columns of all ranks, of which this one has ``own``; returns those that repeat others."""
        is_new = ~self._repeats(entrants) if merges else np.ones(len(entrants.ids), dtype=np.bool_)
        aliases = entrants.ids[~is_new]
        self.facts = self.facts + entrants.at(np.flatnonzero(is_new))
        travel = np.flatnonzero(np.isin(own, aliases, invert=True))
        if len(travel) < len(own):
            columns = gather(self._team, columns.shape[0], [(columns, 0, travel.astype(np.int32))])
        found = [columns]
        if len(self._row_cuts) > 2:
            sent = [packed(piece) for piece in cut_rows(self._team, columns, self._row_cuts)]
            came = self._grid.beside.exchange(sent, "columns")
            found = [unpacked(part, self._n_rows, columns.dtype) for part in came]
        for matrix in found:
            numbers = np.arange(matrix.shape[1], dtype=np.int32)
            own_places = np.stack([np.full(len(numbers), len(self._matrices), dtype=np.int32), numbers], axis=1)
            self._where = np.concatenate([self._where, own_places])
            self._matrices.append(matrix)
        return aliases

    def _repeats(self, new: Entrants) -> NDArray[np.bool_]:
        """Which columns equal one before them."""
        both = self.facts + new
        same = np.stack([both.key, *(part.view(np.uint64) for part in (both.unit, both.lower, both.upper))])
        _, first, group = np.unique(same, axis=1, return_index=True, return_inverse=True)
        is_first = first[np.ravel(group)] == np.arange(same.shape[1])
        # where a bound is finite, a copy can go on where its like has to stop
        unlimited = (np.isinf(new.lower) | (new.lower == 0)) & (np.isinf(new.upper) | (new.upper == 0))
        return np.asarray(~is_first[len(self.facts.ids) :] & (new.unit > 0) & unlimited)

    def chosen(self, places: NDArray[np.intp]) -> tuple[WorkingColumns, Entrants]:
        """The columns at these places, and the facts."""
        facts = self.facts.at(places)
        return working_columns(self._matrices, self._where[places], self._team), facts

    def _make_room(self, places: NDArray[np.intp], coming: float) -> None:
        """Lets go of columns that are not wanted, where they are many beside those that are, and those that come.

        One matrix after the other: there need not be room for two of each.
        """
        wanted = float(np.sum(self.facts.entries[places])) + coming
        most = min(tuning.KEPT_ENTRIES * wanted + tuning.KEPT_AT_LEAST, max(self.most_entries, wanted))
        if float(np.sum(self.facts.entries)) + coming <= most:
            return
        self.facts, where = self.facts.at(places), self._where[places]
        for k, matrix in enumerate(self._matrices):
            own = np.flatnonzero(where[:, 0] == k)
            if len(own) < matrix.shape[1]:
                self._matrices[k] = gather(self._team, self._n_rows, [(matrix, 0, where[own, 1])])
                where[own, 1] = np.arange(len(own))
        self._where = where

    def dense(self, places: NDArray[np.intp]) -> tuple[Array, Entrants]:
        """The same, as an array: for few columns."""
        return as_dense(self._copied(places)), self.facts.at(places)

    def _copied(self, places: NDArray[np.intp]) -> Any:
        where = self._where[places]
        parts = [
            (matrix, 0, np.where(where[:, 0] == k, where[:, 1], -1))
            for k, matrix in enumerate(self._matrices)
            if np.any(where[:, 0] == k) or k == 0
        ]
        return gather(self._team, self._n_rows, parts)


def _opened(parcel: NDArray[np.uint64]) -> tuple[NDArray[np.int64], Array, NDArray[np.uint64]]:
    """Ids, the two numbers of each, and six facts of each that is new, of one rank's parcel."""
    n = int(parcel[0])
    ids, numbers, facts = parcel[1 : 1 + n], parcel[1 + n : 1 + 3 * n], parcel[1 + 3 * n :]
    return ids.view(np.int64), numbers.view(np.float64).reshape(2, n), facts.reshape(6, -1)
