"""The matrix of a problem that lies in tiles, such as a store on disk: used tile by tile, never as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockgreedy.base.forks import in_child
from blockgreedy.base.threads import resolve_threads
from blockgreedy.problem.columns import assemble
from blockgreedy.problem.passes import (
    column_products,
    combine_some_columns,
    core_matrix,
    squared_norms,
    weighted_squares,
)

if TYPE_CHECKING:
    from blockgreedy.base.design import TiledDesign

Array = NDArray[np.float64]
Features = NDArray[np.integer[Any]]


_CHUNK = 1 << 16  # columns whose statistics are looked at together: they stay in the cache
_CANCELLED = 1e-6  # a difference of squares this much smaller than they are has lost too many digits
_far: WeakKeyDictionary[TiledDesign, dict[float, tuple[NDArray[np.intp], Array]]] = WeakKeyDictionary()


class TiledColumns:
    """What a problem asks of its matrix (see ``Design``), in the order of the features."""

    is_sparse = is_tiled = True
    is_of_rows = False

    def __init__(self, tiles: TiledDesign, n_threads: int | None = None) -> None:
        self.tiles, self._n_threads = tiles, n_threads
        self.shape, self.dtype, self.size = tiles.shape, tiles.dtype, tiles.n_entries
        self.moved, self.shifts = np.zeros(0, dtype=np.intp), np.zeros(0)  # features that are moved, and by how much

    @property
    def columns(self) -> Any:
        raise MemoryError(
            f"this needs the whole matrix in memory, and X is a store of {self.shape[0]:,} × {self.shape[1]:,} with "
            f"{self.size:,} entries; solve(…, cluster=…) works on its tiles, store.dataset() reads all of it"
        )

    def moved_by(self, features: NDArray[np.intp], by: Array) -> TiledColumns:
        """The same matrix, with so much taken off these columns, which are nearly full: few, and kept in memory."""
        other = TiledColumns(self.tiles, self._n_threads)
        other.moved, other.shifts = features, by
        return other

    def moved_columns(self, rows: slice = slice(None)) -> NDArray[Any]:
        """The moved ones, as an array of their own."""
        whole = np.asarray(self._taken(self.moved).toarray()[rows], dtype=self.dtype)
        return np.asfortranarray(whole - self.shifts.astype(self.dtype))

    def far_columns(self, far: float) -> tuple[NDArray[np.intp], Array]:
        """Columns whose mean is so many standard deviations from 0, and their means."""
        known_far = _far.setdefault(self.tiles, {})
        if far not in known_far:
            known_far[far] = self._look_for_far(far)
        return known_far[far]

    def _look_for_far(self, far: float) -> tuple[NDArray[np.intp], Array]:
        cuts, order = self.tiles.column_cuts, self.tiles.features
        found, values = [np.zeros(0, dtype=np.intp)], [np.zeros(0)]
        for c, width in enumerate(np.diff(cuts).tolist()):
            known = self.tiles.statistics_of(c)
            for begin in range(0, width, _CHUNK):
                means = known.mean[begin : begin + _CHUNK]
                spreads = np.sqrt(known.squares[begin : begin + _CHUNK] / self.shape[0])
                chosen = np.flatnonzero((np.abs(means) > far * spreads) & (spreads > 0))
                values.append(means[chosen])
                found.append(chosen + begin + int(cuts[c]))
        places, means = np.concatenate(found), np.concatenate(values)
        features = places if order is None else order[places].astype(np.intp)
        ascending = np.argsort(features)
        # differences are exact in the type of the values
        return features[ascending], means[ascending].astype(self.dtype).astype(np.float64)

    @property
    def moved_places(self) -> NDArray[np.int64]:
        """Where the moved columns stand."""
        return self._places(self.moved) if len(self.moved) else np.zeros(0, dtype=np.int64)

    def take(self, features: Features) -> Any:
        """A copy of these columns."""
        chosen = self._taken(features)
        if not np.any(np.isin(features, self.moved)):
            return chosen
        dense = chosen.toarray()
        _, here, there = np.intersect1d(features, self.moved, return_indices=True)
        dense[:, here] -= self.shifts[there].astype(self.dtype)
        return sp.csc_array(dense)

    def _taken(self, features: Features) -> Any:
        places = self._places(np.asarray(features))
        order = np.argsort(places, kind="stable")
        counts = np.zeros(len(places), dtype=np.int64)
        parts: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []  # column, row, value
        for r, c, rows, columns in self._groups():
            wanted = order[
                np.searchsorted(places[order], columns.start) : np.searchsorted(places[order], columns.stop)
            ]
            if not len(wanted):
                continue
            chosen = self.tiles.some_columns(r, c, places[wanted] - columns.start)
            own = np.diff(chosen.indptr)
            counts[wanted] += own
            parts.append((np.repeat(wanted, own), chosen.indices + np.int32(rows.start), np.array(chosen.data)))
        pointers = np.zeros(len(places) + 1, dtype=np.int64)
        np.cumsum(counts, out=pointers[1:])
        column = np.concatenate([part[0] for part in parts]) if parts else np.zeros(0, np.int64)
        by_column = np.argsort(column, kind="stable")  # row groups came in order: rows stay ascending
        indices = np.concatenate([part[1] for part in parts])[by_column] if parts else np.zeros(0, np.int32)
        data = np.concatenate([part[2] for part in parts])[by_column] if parts else np.zeros(0, self.dtype)
        return assemble(sp.csc_array, data, indices.astype(np.int32), pointers, (self.shape[0], len(places)))

    def sum_and_size(self, features: Features, w: Array) -> tuple[Array, float]:
        """X[:, features] @ w and Σ|w_j|‖x_j‖."""
        matrix = core_matrix(self.take(features))
        every = np.arange(len(features))
        size = float(np.sum(np.abs(w) * np.sqrt(squared_norms(matrix, every))))
        return combine_some_columns(matrix, every, w), size

    def products(self, theta: Array) -> Array:
        """x_j·θ of every column."""
        in_place, threads = np.zeros(self.shape[1]), resolve_threads(self._n_threads)
        for k, (r, c, rows, columns) in enumerate(self._groups()):
            if _sharers is None or k % _sharers.size == _sharers.rank:
                part = np.ascontiguousarray(theta[rows])
                in_place[columns] += column_products(core_matrix(self.tiles.sound_tile(r, c)), part, threads)
        found = self._in_order(in_place if _sharers is None else _sharers.reduce(in_place))
        if len(self.moved):
            found[self.moved] = self.moved_columns().T @ theta
        return found

    def norms(self) -> Array:
        in_place, threads = np.zeros(self.shape[1]), resolve_threads(self._n_threads)
        for r, c, _, columns in self._groups():
            in_place[columns] += weighted_squares(core_matrix(self.tiles.sound_tile(r, c)), None, threads)
        found = self._in_order(np.sqrt(in_place))
        if len(self.moved):
            found[self.moved] = np.sqrt(np.sum(np.square(self.moved_columns(), dtype=np.float64), axis=0))
        return found

    def scales(self, row_weights: Array | None, centred: bool, n_threads: int) -> Array:
        """Standard deviation of every column, or the root of its mean square; 0 for a column that does not vary."""
        n = self.shape[0]
        mean, squares = self._known("mean"), self._known("squares") / n
        if row_weights is not None:
            mean, squares = self.products(row_weights), np.zeros(self.shape[1])
            for r, c, rows, columns in self._groups():
                part = np.ascontiguousarray(row_weights[rows])
                squares[columns] += weighted_squares(core_matrix(self.tiles.sound_tile(r, c)), part, n_threads)
            whole = self._in_order(squares)
            squares = np.maximum(whole - mean * mean, 0.0)
            cancelled = np.flatnonzero((squares <= _CANCELLED * whole) & (whole > 0))
            self._mend_differences(cancelled, row_weights, mean, squares)
        if not centred:
            return np.sqrt(squares + mean * mean)
        return np.where(self._known("least") == self._known("most"), 0.0, np.sqrt(squares))

    def _mend_differences(self, features: NDArray[np.intp], row_weights: Array, mean: Array, squares: Array) -> None:
        """Weighted means and variances of columns far from 0, which are full, about a value of their own."""
        at_once = max(1, _CHUNK * 16 // self.shape[0])
        for begin in range(0, len(features), at_once):
            own = features[begin : begin + at_once]
            columns = self._taken(own).toarray().astype(np.float64)
            middle = columns[int(np.argmax(row_weights))].copy()  # a view would move with its row
            columns -= middle
            means = row_weights @ columns
            squares[own], mean[own] = row_weights @ np.square(columns - means), means + middle

    def entries(self, counted: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """How many entries every column has, in these rows."""
        if counted is None:
            return self._known("entries").astype(np.int64)
        in_place = np.zeros(self.shape[1], dtype=np.int64)
        for r, c, rows, columns in self._groups():
            tile = self.tiles.sound_tile(r, c)
            before = np.append(0, np.cumsum(counted[rows][tile.indices]))
            in_place[columns] += np.diff(before[tile.indptr])
        return self._in_order(in_place)

    def alike(self, features: Features) -> NDArray[np.int64]:
        """Columns with as many entries as one of these, and the same first row: few, but all multiples of it."""
        counts = self.entries()
        candidates = np.flatnonzero(np.isin(counts, counts[features]) & (counts > 0))
        places, first = self._places(candidates), np.full(len(candidates), -1, dtype=np.int64)
        for r, c, rows, columns in self._groups():
            wanted = np.flatnonzero((first < 0) & (places >= columns.start) & (places < columns.stop))
            if len(wanted):
                tile = self.tiles.tile(r, c)
                at = places[wanted] - columns.start
                filled = tile.indptr[at] < tile.indptr[at + 1]
                first[wanted[filled]] = rows.start + tile.indices[tile.indptr[at[filled]]].astype(np.int64)
        key = counts[candidates] * self.shape[0] + first
        return np.asarray(candidates[np.isin(key, key[np.isin(candidates, features)])])

    def _known(self, name: str) -> Array:
        """What the tiles' statistics say of every column."""
        groups = (getattr(self.tiles.statistics_of(c), name) for c in range(len(self.tiles.column_cuts) - 1))
        return np.asarray(self._in_order(np.concatenate(list(groups))), dtype=np.float64)

    def near(self, *_: Any) -> None:
        """No columns are better than others: the tile solver reads them where they are."""
        return

    def _groups(self) -> Iterator[tuple[int, int, slice, slice]]:
        """Tiles, row group by row group, with their rows and places of columns."""
        rows, columns = self.tiles.row_cuts, self.tiles.column_cuts
        for r in range(len(rows) - 1):
            for c in range(len(columns) - 1):
                yield r, c, slice(int(rows[r]), int(rows[r + 1])), slice(int(columns[c]), int(columns[c + 1]))

    def _in_order(self, in_place: NDArray[Any]) -> NDArray[Any]:
        """From the order of the places to that of the features."""
        features = self.tiles.features
        if features is None:
            return in_place
        ordered = np.empty_like(in_place)
        ordered[features] = in_place
        return ordered

    def _places(self, features: NDArray[Any]) -> NDArray[np.int64]:
        if self.tiles.features is None:
            return features.astype(np.int64)
        place_of = np.empty(self.shape[1], dtype=np.int64)
        place_of[self.tiles.features] = np.arange(self.shape[1])
        return np.asarray(place_of[features])


class Sharers(Protocol):
    """Processes that hold the same problem and ask it the same questions."""

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def reduce(self, values: NDArray[Any]) -> NDArray[Any]:
        """The sum of what they hand in."""
        ...


_sharers: Sharers | None = None


@contextmanager
def shared_by(sharers: Sharers) -> Iterator[None]:
    """Inside, each of them reads some of the tiles, where products with all columns are asked for."""
    global _sharers
    before, _sharers = _sharers, sharers
    try:
        yield
    finally:
        _sharers = before


@in_child
def _share_no_more() -> None:
    global _sharers
    _sharers = None
