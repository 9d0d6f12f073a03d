"""The tile of a rank: the rows of its row group × the columns of its column group, in pieces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy import _core
from blockgreedy.backends.tiles.sparse_columns import join_columns, stack_rows, take_columns
from blockgreedy.problem.passes import core_matrix, weighted_squares

Array = NDArray[np.float64]
Features = NDArray[np.intp]


@dataclass(frozen=True)
class Piece:
    """A part of the tile that is one matrix: canonical CSC or a Fortran-ordered array."""

    rows: slice  # of the row group
    columns: slice  # of the column group
    matrix: Callable[[], Any]  # in memory, or mapped anew: nothing of it stays in memory after use
    announce: Callable[[], None] = lambda: None  # that it is used soon

    @property
    def width(self) -> int:
        return int(self.columns.stop - self.columns.start)


class Tile:
    """Gradients need all of its columns, or those that may matter; a working set takes copies of some."""

    def __init__(
        self, shape: tuple[int, int], dtype: np.dtype[Any], pieces: list[Piece], moved: Features, own: NDArray[Any]
    ) -> None:
        """``moved``: columns that take the place of those in the pieces, ascending, and ``own`` what they hold."""
        self.n_rows, self.n_features = shape
        self.dtype, self._pieces, self._moved, self._own = dtype, pieces, moved, own
        self.nonzeros_touched = 0

    def products(self, theta: Array, due: NDArray[np.bool_], team: _core.Team) -> Array:
        """x_j·θ of the columns that are due, 0 for the others."""
        total = np.zeros(self.n_features)
        elsewhere = due.copy()
        elsewhere[self._moved] = False
        used = [piece for piece in self._pieces if elsewhere[piece.columns].any()]
        for piece, after in zip_longest(used, used[1:]):
            if after is not None:
                after.announce()
            found, marked = np.zeros(piece.width), elsewhere[piece.columns].view(np.uint8)
            part = np.ascontiguousarray(theta[piece.rows])
            self.nonzeros_touched += _core.marked_products(team, core_matrix(piece.matrix()), part, marked, found)
            total[piece.columns] += found
        if len(self._moved):
            total[self._moved] = np.where(due[self._moved], self._own.T @ theta, 0.0)
            self.nonzeros_touched += self._own.size
        return total

    def squares(self, n_threads: int) -> Array:
        """‖x_j‖² of the rows here."""
        total = np.zeros(self.n_features)
        for piece in self._pieces:
            total[piece.columns] += weighted_squares(core_matrix(piece.matrix()), None, n_threads)
        if len(self._moved):
            total[self._moved] = np.sum(np.square(self._own, dtype=np.float64), axis=0)
        return total

    def take(self, features: Features) -> Any:
        """A copy of these columns, which ascend, as CSC."""
        moved = np.isin(features, self._moved)
        stored = self._stored(features[~moved])
        if np.any(moved):
            own = take_columns(self._own, np.searchsorted(self._moved, features[moved]))
            both = join_columns(self.n_rows, [stored, own])
            place = np.empty(len(features), dtype=np.intp)
            place[~moved], place[moved] = np.arange(stored.shape[1]), stored.shape[1] + np.arange(own.shape[1])
            stored = take_columns(both, place)
        self.nonzeros_touched += int(stored.nnz)
        return stored

    def _stored(self, features: Features) -> Any:
        parts: dict[int, list[Any]] = {}
        for piece in self._pieces:
            first, end = np.searchsorted(features, [piece.columns.start, piece.columns.stop])
            row = parts.setdefault(piece.rows.start, [])
            if first < end or not row:
                row.append(take_columns(piece.matrix(), features[first:end] - piece.columns.start))
        return stack_rows([join_columns(row[0].shape[0], row) for _, row in sorted(parts.items())])

    def combine(self, features: Features, values: Array) -> Array:
        """Σ values_k x_k over these columns."""
        return np.asarray(self.take(features) @ values, dtype=np.float64)
