"""The tile of a rank: the rows of its row group × the relevant columns of its column group, in pieces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockgreedy.backends.tiles.local import Team, products_of
from blockgreedy.backends.tiles.sparse_columns import as_csc, gather
from blockgreedy.problem.passes import combine_some_columns, core_matrix

Array = NDArray[np.float64]
Features = NDArray[np.intp]


@dataclass(frozen=True)
class Piece:
    """A part of the tile that is one matrix: canonical CSC or a Fortran-ordered array."""

    rows: slice  # of the row group
    columns: slice  # of the tile's
    numbers: NDArray[np.int32]  # what these columns are in the matrix, which may have others beside them
    matrix: Callable[[], Any]  # in memory, or mapped anew: nothing of it stays in memory after use
    announce: Callable[[], None] = lambda: None  # that it is used soon

    def numbers_of(self, features: Features) -> tuple[Features, NDArray[np.int32]]:
        """Which of these columns of the tile are here, and what they are in the matrix."""
        here = np.flatnonzero((features >= self.columns.start) & (features < self.columns.stop))
        return here, self.numbers[features[here] - self.columns.start]


class Tile:
    """Gradients need all of its columns, or those that may matter; a working set takes copies of some."""

    def __init__(
        self, shape: tuple[int, int], dtype: np.dtype[Any], pieces: list[Piece], moved: Features, own: NDArray[Any]
    ) -> None:
        """``moved``: columns that take the place of those in the pieces, ascending, and ``own`` what they hold."""
        self.n_rows, self.n_features = shape
        self.dtype, self._pieces, self._moved, self._own = dtype, pieces, moved, own
        self.nonzeros_touched = 0

    def products(self, theta: Array, due: NDArray[np.bool_], team: Team) -> Array:
        """x_j·θ of the columns that are due, 0 for the others."""
        total = np.zeros(self.n_features)
        elsewhere = due.copy()
        elsewhere[self._moved] = False
        used = [piece for piece in self._pieces if elsewhere[piece.columns].any()]
        for piece, after in zip_longest(used, used[1:]):
            if after is not None:
                after.announce()
            here = np.flatnonzero(elsewhere[piece.columns])
            found, read = products_of(piece.matrix(), theta[piece.rows], piece.numbers[here], team)
            total[here + piece.columns.start] += found
            self.nonzeros_touched += read
        if len(self._moved):
            total[self._moved] = np.where(due[self._moved], self._own.T @ theta, 0.0)
            self.nonzeros_touched += self._own.size
        return total

    def take(self, features: Features, team: Team) -> Any:
        """A copy of these columns, as CSC."""
        moved = np.isin(features, self._moved)
        parts = []
        for piece in self._pieces:
            here, own = piece.numbers_of(np.where(moved, -1, features))
            if len(here):
                numbers, matrix = np.full(len(features), -1, dtype=np.int32), piece.matrix()
                if sp.issparse(matrix):
                    numbers[here] = own
                else:  # its columns alone, not all of them
                    matrix, numbers[here] = as_csc(np.asfortranarray(matrix[:, own])), np.arange(len(own))
                parts.append((matrix, piece.rows.start, numbers))
        if np.any(moved) or not parts:
            numbers = np.where(moved, np.searchsorted(self._moved, features), -1)
            parts.append((as_csc(self._own.astype(self.dtype)), 0, numbers))
        found = gather(team, self.n_rows, parts)
        self.nonzeros_touched += int(found.nnz)
        return found

    def combine(self, features: Features, values: Array) -> Array:
        """Σ values_k x_k over these columns, read where they are."""
        total, moved = np.zeros(self.n_rows), np.isin(features, self._moved)
        for piece in self._pieces:
            here, numbers = piece.numbers_of(np.where(moved, -1, features))
            if len(here):
                total[piece.rows] += combine_some_columns(core_matrix(piece.matrix()), numbers, values[here])
        if np.any(moved):
            total += self._own[:, np.searchsorted(self._moved, features[moved])] @ values[moved]
        return total
