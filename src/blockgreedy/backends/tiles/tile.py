"""The tile of a rank: the rows of its row group × the columns of its column group, in pieces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy import _core
from blockgreedy.backends.tiles.sparse_columns import join_columns, stack_rows, take_columns
from blockgreedy.problem.passes import core_matrix

Array = NDArray[np.float64]
Features = NDArray[np.intp]


@dataclass(frozen=True)
class Piece:
    """A part of the tile that is one matrix: canonical CSC or a Fortran-ordered array, in memory or mapped."""

    first_row: int
    first_column: int
    columns: Any

    @property
    def rows(self) -> slice:
        return slice(self.first_row, self.first_row + self.columns.shape[0])

    @property
    def width(self) -> int:
        return int(self.columns.shape[1])


class Tile:
    """Gradients need all of its columns, or those that may matter; a working set takes copies of some."""

    def __init__(self, n_rows: int, n_features: int, pieces: list[Piece], team: _core.Team) -> None:
        self.n_rows, self.n_features, self.pieces, self._team = n_rows, n_features, pieces, team
        self.dtype = pieces[0].columns.dtype
        self.nonzeros_touched = 0

    def products(self, theta: Array, due: NDArray[np.bool_]) -> Array:
        """x_j·θ of the columns that are due, 0 for the others."""
        total = np.zeros(self.n_features)
        for piece in self.pieces:
            own = slice(piece.first_column, piece.first_column + piece.width)
            marked = due[own].view(np.uint8)
            if not marked.any():
                continue
            found = np.zeros(piece.width)
            self.nonzeros_touched += _core.marked_products(
                self._team, core_matrix(piece.columns), np.ascontiguousarray(theta[piece.rows]), marked, found
            )
            total[own] += found
        return total

    def squares(self) -> Array:
        """‖x_j‖² of the rows here."""
        total = np.zeros(self.n_features)
        for piece in self.pieces:
            own = slice(piece.first_column, piece.first_column + piece.width)
            total[own] += _core.weighted_squares(core_matrix(piece.columns), None, 1)
        return total

    def take(self, features: Features) -> Any:
        """A copy of these columns, ascending, as CSC."""
        parts: dict[int, list[Any]] = {}
        for piece in self.pieces:
            first, end = np.searchsorted(features, [piece.first_column, piece.first_column + piece.width])
            own = take_columns(piece.columns, features[first:end] - piece.first_column)
            parts.setdefault(piece.first_row, []).append(own)
        whole = stack_rows([join_columns(row[0].shape[0], row) for _, row in sorted(parts.items())])
        self.nonzeros_touched += int(whole.nnz)
        return whole

    def combine(self, features: Features, values: Array) -> Array:
        """Σ values_k x_k over these columns."""
        return np.asarray(self.take(features) @ values, dtype=np.float64)
