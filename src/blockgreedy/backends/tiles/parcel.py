"""A rank's share of a problem as plain data, which can be sent to where the rank is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.tiles import tuning
from blockgreedy.backends.tiles.grid import Grid
from blockgreedy.backends.tiles.local import Team
from blockgreedy.backends.tiles.own_rows import OwnRows
from blockgreedy.backends.tiles.pieces import stored_pieces
from blockgreedy.backends.tiles.relevant import RelevantColumns
from blockgreedy.backends.tiles.shard import OwnPenalty, Shard
from blockgreedy.backends.tiles.tile import Piece, Tile
from blockgreedy.base.design import TiledDesign
from blockgreedy.problem.columns import as_dense
from blockgreedy.problem.losses import Loss

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Parcel:
    """Rows and columns are places in the matrix of the whole problem, in the units in which it is solved."""

    rows: slice  # of the row group
    columns: slice  # of the column group
    own: NDArray[np.int64]  # how the rows of the row group are divided among its ranks
    relevant: RelevantColumns  # of its columns: those that the rank works on
    features: NDArray[np.int64]  # what these are
    least_alpha: float  # that they are relevant for
    matrix: Any  # what has these columns: an array or CSC with ``numbers``, or tiles, such as a store, by its path
    numbers: NDArray[np.int32]  # what the relevant columns are in the matrix, where that is not made of tiles
    dtype: np.dtype[Any]
    moved: NDArray[np.intp]  # of tiles: which of the relevant columns something is taken off from
    by: Array  # and how much
    loss: Loss
    y: Array  # of this rank's own rows
    weights: Array
    offset: Array | None
    penalty: OwnPenalty
    may_be_free: bool  # some feature of some rank may be unpenalised
    fit_intercept: bool
    f_null: float
    floor: float
    lowest: float
    most_entries: float  # of the working set, on all ranks together

    @property
    def nbytes(self) -> int:
        """Memory that the tile takes where it is used, and what is kept for each row and column beside it."""
        n_rows, n_columns = self.rows.stop - self.rows.start, len(self.features)
        of_vectors = 8 * (tuning.NUMBERS_PER_ROW * len(self.y) + 3 * n_rows + tuning.NUMBERS_PER_COLUMN * n_columns)
        return int(of_vectors + self._tile_bytes + n_rows * len(self.moved) * self.dtype.itemsize)

    @property
    def _tile_bytes(self) -> int:
        if not isinstance(self.matrix, TiledDesign):
            parts = (self.matrix,) if isinstance(self.matrix, np.ndarray) else (
                self.matrix.data, self.matrix.indices, self.matrix.indptr
            )  # fmt: skip
            return sum(int(part.nbytes) for part in parts)
        total, tiles = 0.0, self.matrix
        for r, of_rows in enumerate(_parts_inside(tiles.row_cuts, self.rows)):
            for c, of_columns in enumerate(_parts_inside(tiles.column_cuts, self.columns)):
                if of_rows and of_columns:
                    total += of_rows * of_columns * tiles.tile_bytes(r, c)
        return int(total)

    def shard(self, grid: Grid, n_threads: int) -> Shard:
        """The share where it is used, by a rank of the grid."""
        team = Team(n_threads)
        return Shard(
            grid,
            self._tile(team),
            OwnRows(self.loss, self.y, self.weights, self.offset, team),
            self.penalty,
            self.may_be_free,
            team,
            self.relevant.norms,
            self.relevant.entries,
            self.least_alpha,
            self.columns.start,
            self.features,
            self.own,
            self.rows.start,
            self.fit_intercept,
            self.f_null,
            self.floor,
            self.lowest,
            self.most_entries,
            self.matrix.check_unchanged if isinstance(self.matrix, TiledDesign) else _nothing,
        )

    def _tile(self, team: Team) -> Tile:
        shape = self.rows.stop - self.rows.start, len(self.features)
        nothing = np.zeros(0, dtype=np.intp), np.zeros((shape[0], 0))
        if not isinstance(self.matrix, TiledDesign):
            matrix = self.matrix
            whole = Piece(slice(0, shape[0]), slice(0, shape[1]), self.numbers, lambda: matrix)
            return Tile(shape, self.dtype, [whole], *nothing)
        pieces = stored_pieces(self.matrix, self.rows, self.relevant.places, team)
        if not len(self.moved):
            return Tile(shape, self.dtype, pieces, *nothing)
        as_stored = Tile(shape, self.dtype, pieces, *nothing).take(self.moved, team)
        own = np.asfortranarray(as_dense(as_stored), dtype=self.dtype)
        return Tile(shape, self.dtype, pieces, self.moved, own - self.by.astype(self.dtype))


def _nothing() -> None:
    """For matrices in memory."""


def _parts_inside(cuts: NDArray[np.int64], wanted: slice) -> list[float]:
    """Of every run between two cuts, the part that lies inside."""
    first, last = np.maximum(cuts[:-1], wanted.start), np.minimum(cuts[1:], wanted.stop)
    return list(np.maximum(last - first, 0) / np.maximum(np.diff(cuts), 1))
