"""The tile of a rank: the rows of its row group × the columns of its column group, in pieces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockgreedy import _core
from blockgreedy.backends.tiles.sparse_columns import as_csc, gather
from blockgreedy.problem.passes import combine_some_columns, core_matrix, weighted_squares

Array = NDArray[np.float64]
Features = NDArray[np.intp]
_AT_ONCE = 1000  # columns that are copied to be added up


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

    def take(self, features: Features, team: _core.Team) -> Any:
        """A copy of these columns, as CSC."""
        moved = np.isin(features, self._moved)
        parts = []
        for piece in self._pieces:
            here = (features >= piece.columns.start) & (features < piece.columns.stop) & ~moved
            if np.any(here):
                numbers = np.where(here, features - piece.columns.start, -1).astype(np.int32)
                matrix = piece.matrix()
                if not sp.issparse(matrix):  # its columns alone, not all of them
                    own = np.flatnonzero(here)
                    matrix, numbers = as_csc(np.asfortranarray(matrix[:, numbers[own]])), np.full(len(here), -1)
                    numbers[own] = np.arange(len(own))
                parts.append((matrix, piece.rows.start, numbers))
        if np.any(moved) or not parts:
            numbers = np.where(moved, np.searchsorted(self._moved, features), -1)
            parts.append((as_csc(self._own.astype(self.dtype)), 0, numbers))
        found = gather(team, self.n_rows, parts)
        self.nonzeros_touched += int(found.nnz)
        return found

    def combine(self, features: Features, values: Array, team: _core.Team) -> Array:
        """Σ values_k x_k over these columns, some at a time: copies of all could be most of the tile."""
        total = np.zeros(self.n_rows)
        for first in range(0, len(features), _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            columns = core_matrix(self.take(features[part], team))
            total += combine_some_columns(columns, np.arange(len(features[part])), values[part])
        return total
