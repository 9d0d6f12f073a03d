"""How a problem is shared among the ranks of a grid: which rows and columns each of them takes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockgreedy.backends.tiles import tuning
from blockgreedy.backends.tiles.grid import Grid, cuts
from blockgreedy.backends.tiles.local import Team
from blockgreedy.backends.tiles.own_rows import OwnRows
from blockgreedy.backends.tiles.shard import OwnPenalty, Shard
from blockgreedy.backends.tiles.sparse_columns import cut_rows, make_columns
from blockgreedy.backends.tiles.tile import Piece, Tile
from blockgreedy.problem.tiled_columns import TiledColumns

if TYPE_CHECKING:
    from blockgreedy.base.design import TiledDesign
    from blockgreedy.problem.design import Design
    from blockgreedy.problem.null_model import NullModel
    from blockgreedy.problem.problem import Problem


def own_rows_and_columns(design: Design | TiledColumns, grid: Grid) -> tuple[slice, slice]:
    """Of this rank's tile."""
    row_cuts, column_cuts = cuts(design.shape[0], grid.shape[0]), cuts(design.shape[1], grid.shape[1])
    if isinstance(design, TiledColumns):
        # whole row groups where there are enough of them: rows of a stored tile would have to be copied
        row_cuts = _aligned(row_cuts, design.tiles.row_cuts)
    rows = slice(*(int(at) for at in row_cuts[grid.row : grid.row + 2]))
    return rows, slice(*(int(at) for at in column_cuts[grid.column : grid.column + 2]))


def shard_of(problem: Problem, null: NullModel, grid: Grid, n_threads: int, memory: int | None = None) -> Shard:
    """``problem`` and its null model are in the units in which it is solved. ``memory``: bytes of a rank."""
    n, design, team = problem.n_samples, problem.design, Team(n_threads)
    rows, columns = own_rows_and_columns(design, grid)
    order = design.tiles.features if isinstance(design, TiledColumns) else None
    features = np.arange(columns.start, columns.stop) if order is None else np.asarray(order[columns], dtype=np.int64)
    own = cuts(rows.stop - rows.start, grid.shape[1])
    mine = slice(rows.start + int(own[grid.column]), rows.start + int(own[grid.column + 1]))
    weights = np.full(mine.stop - mine.start, 1 / n) if problem.row_weights is None else problem.row_weights[mine]
    offset = None if problem.offset is None else problem.offset[mine]
    y = np.ascontiguousarray(problem.y[mine])
    return Shard(
        grid,
        _tile_of(design, rows, columns, features),
        OwnRows(problem.loss, y, np.ascontiguousarray(weights), offset, team),
        _penalty_of(problem, features),
        _may_be_free(problem),
        team,
        n_threads,
        columns.start,
        features,
        own,
        rows.start,
        problem.fit_intercept,
        null.objective,
        null.floor,
        _most_entries(problem, grid, memory),
    )


def _most_entries(problem: Problem, grid: Grid, memory: int | None) -> float:
    """What the working set may hold on all ranks: two thirds of what is left, since columns change places."""
    if memory is None:
        return np.inf
    rows, columns = problem.n_samples / grid.all.size, problem.n_features / grid.shape[1]
    base = tuning.BASE_BYTES + 8 * (tuning.NUMBERS_PER_ROW * rows + tuning.NUMBERS_PER_COLUMN * columns)
    size = problem.design.dtype.itemsize
    bytes_of_entry = 4 + size + (4 if size > 4 else 0)
    return grid.all.size * max(memory - base, 0.25 * memory) / (1.5 * bytes_of_entry)


def _aligned(wanted: NDArray[np.int64], stored: NDArray[np.int64]) -> NDArray[np.int64]:
    """The stored cuts nearest to the wanted ones, where they are different ones."""
    near = stored[np.argmin(np.abs(stored[None, :] - wanted[:, None]), axis=1)]
    return near if np.all(np.diff(near) > 0) else wanted


def _may_be_free(problem: Problem) -> bool:
    """Whether features of some rank may be without penalty: what all ranks know without asking."""
    u = problem.penalty_weights
    return problem.l2 == 0 and (problem.alpha == 0 or (u is not None and bool(np.any(u == 0))))


def _penalty_of(problem: Problem, features: NDArray[np.int64]) -> OwnPenalty:
    penalty, ones = problem.penalty_at(features), np.ones(len(features))
    unit = ones if problem.penalty_weights is None else problem.penalty_weights[features]
    l2_unit = ones if problem.l2_weights is None else problem.l2_weights[features]
    unit = np.where(np.isinf(unit), 0.0, unit)
    return OwnPenalty(unit, l2_unit, penalty.lower, penalty.upper, problem.alpha, problem.l2)


def _tile_of(design: Any, rows: slice, columns: slice, features: NDArray[np.int64]) -> Tile:
    shape = rows.stop - rows.start, columns.stop - columns.start
    nothing = np.zeros(0, dtype=np.intp), np.zeros((shape[0], 0))
    if not isinstance(design, TiledColumns):
        matrix = design.columns
        if shape != design.shape:
            matrix = _cut_out(matrix, rows, columns)
        whole = Piece(slice(0, shape[0]), slice(0, shape[1]), lambda: matrix)
        return Tile(shape, design.dtype, [whole], *nothing)
    pieces = _stored_pieces(design.tiles, rows, columns)
    _, here, there = np.intersect1d(features, design.moved, return_indices=True)
    if not len(here):
        return Tile(shape, design.dtype, pieces, *nothing)
    order = np.argsort(here)
    return Tile(shape, design.dtype, pieces, here[order], design.moved_columns(rows)[:, there[order]])


def _cut_out(matrix: Any, rows: slice, columns: slice) -> Any:
    cut = matrix[rows, columns]
    if not sp.issparse(matrix):
        return np.asfortranarray(cut)
    counts = np.diff(cut.indptr)
    cut.sort_indices()
    return make_columns(cut.shape[0], counts, cut.indices.astype(np.int32, copy=False), cut.data)


def _stored_pieces(tiles: TiledDesign, rows: slice, columns: slice) -> list[Piece]:
    """The parts of stored tiles that lie in these rows and columns."""
    pieces = []
    for r, (top, bottom) in enumerate(zip(tiles.row_cuts[:-1].tolist(), tiles.row_cuts[1:].tolist(), strict=True)):
        first, last = max(top, rows.start), min(bottom, rows.stop)
        for c, (left, right) in enumerate(
            zip(tiles.column_cuts[:-1].tolist(), tiles.column_cuts[1:].tolist(), strict=True)
        ):
            begin, end = max(left, columns.start), min(right, columns.stop)
            if first >= last or begin >= end:
                continue
            of_rows = None if (first, last) == (top, bottom) else (first - top, last - top)
            cut = partial(_part_of, tiles, r, c, of_rows, (begin - left, end - left))
            if of_rows is not None:  # a copy of some rows: made once
                copied = cut()
                cut = partial(_same, copied)
            pieces.append(
                Piece(
                    slice(first - rows.start, last - rows.start),
                    slice(begin - columns.start, end - columns.start),
                    cut,
                    partial(tiles.will_need, r, c),
                )
            )
    return pieces


def _same(matrix: Any) -> Any:
    return matrix


def _part_of(tiles: TiledDesign, r: int, c: int, rows: tuple[int, int] | None, columns: tuple[int, int]) -> Any:
    tile = tiles.tile(r, c)
    begin, end = columns
    if (begin, end) != (0, tile.shape[1]):
        pointers = tile.indptr[begin : end + 1]
        entries = slice(int(pointers[0]), int(pointers[-1]))
        counts = np.diff(pointers)
        tile = make_columns(tile.shape[0], counts, tile.indices[entries], tile.data[entries])
    if rows is None:
        return tile
    every = np.unique(np.array([0, *rows, tile.shape[0]], dtype=np.int64))
    return cut_rows(tile, every)[int(np.searchsorted(every, rows[0]))]
