"""How a problem is shared among the ranks of a grid: which rows and columns each of them takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.tiles import tuning
from blockgreedy.backends.tiles.grid import Grid, cuts
from blockgreedy.backends.tiles.local import Team
from blockgreedy.backends.tiles.parcel import Parcel
from blockgreedy.backends.tiles.relevant import RelevantColumns, relevant_columns
from blockgreedy.backends.tiles.shard import OwnPenalty, Shard
from blockgreedy.backends.tiles.sparse_columns import make_columns, some_rows
from blockgreedy.problem.tiled_columns import TiledColumns

if TYPE_CHECKING:
    from blockgreedy.problem.design import Design
    from blockgreedy.problem.null_model import NullModel
    from blockgreedy.problem.problem import Problem


@dataclass(frozen=True)
class Place:
    """Of a rank in a grid that is somewhere else: what ``Grid`` says of it."""

    shape: tuple[int, int]
    row: int
    column: int


def own_rows_and_columns(design: Design | TiledColumns, grid: Grid | Place) -> tuple[slice, slice]:
    """Of this rank's tile."""
    row_cuts, column_cuts = cuts(design.shape[0], grid.shape[0]), cuts(design.shape[1], grid.shape[1])
    if isinstance(design, TiledColumns):
        # whole row groups where there are enough of them: rows of a stored tile would have to be copied
        must = design.tiles.are_apart
        row_cuts = _aligned(row_cuts, design.tiles.row_cuts, must)
        column_cuts = _aligned(column_cuts, design.tiles.column_cuts, must) if must else column_cuts
    rows = slice(*(int(at) for at in row_cuts[grid.row : grid.row + 2]))
    return rows, slice(*(int(at) for at in column_cuts[grid.column : grid.column + 2]))


def columns_of_ranks(design: Design | TiledColumns, shape: tuple[int, int]) -> list[slice]:
    """The column group of every rank of a grid."""
    groups = [own_rows_and_columns(design, Place(shape, 0, c))[1] for c in range(shape[1])]
    return groups * shape[0]


def shard_of(
    problem: Problem,
    null: NullModel,
    grid: Grid,
    n_threads: int,
    relevant: RelevantColumns | None = None,
    least_alpha: float | None = None,
    most_entries: float = np.inf,
) -> Shard:
    """``problem`` and its null model are in the units in which it is solved.

    ``relevant``: the columns that can have a weight at ``least_alpha`` (default: the problem's alpha).
    ``most_entries``: of the working set, on all ranks together; the same number on every rank.
    """
    if relevant is None:
        relevant = relevant_columns(problem, n_threads, least_alpha)
    return parcel_of(problem, null, grid, relevant, least_alpha, most_entries).shard(grid, n_threads)


def parcel_of(
    problem: Problem,
    null: NullModel,
    grid: Grid | Place,
    relevant: RelevantColumns,
    least_alpha: float | None = None,
    most_entries: float = np.inf,
) -> Parcel:
    """The share of the rank at a place of a grid; the arguments are those of ``shard_of``."""
    n, design, c = problem.n_samples, problem.design, grid.column
    rows, columns = own_rows_and_columns(design, grid)
    relevant = relevant.inside(columns)
    order = design.tiles.features if isinstance(design, TiledColumns) else None
    features = relevant.places if order is None else np.asarray(order[relevant.places], dtype=np.int64)
    own = cuts(rows.stop - rows.start, grid.shape[1])
    mine = slice(rows.start + int(own[c]), rows.start + int(own[c + 1]))
    weights = np.full(mine.stop - mine.start, 1 / n) if problem.row_weights is None else problem.row_weights[mine]
    matrix, numbers, moved, by = _matrix_of(design, rows, relevant, features, is_sent=isinstance(grid, Place))
    return Parcel(
        rows,
        columns,
        own,
        relevant,
        features,
        problem.alpha if least_alpha is None else least_alpha,
        matrix,
        numbers,
        design.dtype,
        moved,
        by,
        problem.loss,
        np.ascontiguousarray(problem.y[mine]),
        np.ascontiguousarray(weights),
        None if problem.offset is None else problem.offset[mine],
        _penalty_of(problem, features),
        _may_be_free(problem),
        problem.fit_intercept,
        null.objective,
        null.floor,
        problem.lowest,
        most_entries,
    )


def most_entries(problem: Problem, shape: tuple[int, int], n_columns: int, memory: int | None) -> float:
    """What the working set may hold on all ranks: what is left but for a fifth, since columns come and go.

    ``n_columns``: the relevant ones of the column group that has most. ``memory``: bytes of a rank.
    """
    if memory is None:
        return np.inf
    size, itemsize = shape[0] * shape[1], problem.design.dtype.itemsize
    own = tuning.NUMBERS_PER_ROW * problem.n_samples / size + tuning.NUMBERS_PER_COLUMN * n_columns
    base = tuning.BASE_BYTES + 8 * (own + tuning.NUMBERS_PER_FEATURE * problem.n_features)
    bytes_of_entry = 4 + itemsize + (4 if itemsize > 4 else 0) + tuning.BYTES_OF_SUMS
    return size * max(memory - base, 0.25 * memory) / (1.25 * bytes_of_entry)


def _aligned(wanted: NDArray[np.int64], stored: NDArray[np.int64], must: bool) -> NDArray[np.int64]:
    """The stored cuts nearest to the wanted ones, where they are different ones, or are made to be."""
    at = np.argmin(np.abs(stored[None, :] - wanted[:, None]), axis=1)
    if must and len(stored) >= len(wanted):
        runs = np.arange(len(wanted))
        at = np.maximum.accumulate(at - runs) + runs  # each beyond the one before
        at = np.minimum(at, len(stored) - len(wanted) + runs)  # and room for those that follow
    near = stored[at]
    return near if np.all(np.diff(near) > 0) else wanted


def _may_be_free(problem: Problem) -> bool:
    """Whether features of some rank may be without penalty: what all ranks know without asking."""
    u = problem.penalty_weights
    return problem.l2 == 0 and (problem.alpha == 0 or (u is not None and bool(np.any(problem.alpha * u == 0))))


def _penalty_of(problem: Problem, features: NDArray[np.int64]) -> OwnPenalty:
    penalty, ones = problem.penalty_at(features), np.ones(len(features))
    unit = ones if problem.penalty_weights is None else problem.penalty_weights[features]
    l2_unit = ones if problem.ridge_scales is None else problem.ridge_scales[features] ** 2
    # where alpha·u underflows, a feature is without penalty, for every part of the solver
    unit = np.where(np.isinf(unit) | (problem.alpha * unit == 0), 0.0, unit)
    return OwnPenalty(unit, l2_unit, penalty.lower, penalty.upper, problem.alpha, problem.l2)


def _matrix_of(
    design: Any, rows: slice, relevant: RelevantColumns, features: NDArray[np.int64], is_sent: bool
) -> tuple[Any, NDArray[np.int32], NDArray[np.intp], NDArray[np.float64]]:
    """The matrix of a parcel, what its columns are there, and which of them are moved by how much.

    Where all rows stay, nothing is copied, unless it is sent and the other columns would weigh more.
    """
    places = relevant.places
    nothing = np.zeros(0, dtype=np.intp), np.zeros(0)
    if not isinstance(design, TiledColumns):
        if rows.stop - rows.start == design.shape[0]:
            begin, end = (int(places[0]), int(places[-1]) + 1) if len(places) else (0, 0)
            view = _columns_between(design.columns, begin, end)
            if not is_sent or 2 * np.sum(relevant.entries) >= view.size:
                return view, (places - begin).astype(np.int32), *nothing
        return _cut_out(design.columns, rows, places), np.arange(len(places), dtype=np.int32), *nothing
    _, here, there = np.intersect1d(features, design.moved, return_indices=True)
    order = np.argsort(here)
    return design.tiles, np.zeros(0, dtype=np.int32), here[order], design.shifts[there[order]]


def _columns_between(matrix: Any, begin: int, end: int) -> Any:
    """Without a copy."""
    if isinstance(matrix, np.ndarray):
        return matrix[:, begin:end]
    if (begin, end) == (0, matrix.shape[1]):
        return matrix
    pointers = matrix.indptr[begin : end + 1]
    entries = slice(int(pointers[0]), int(pointers[-1]))
    return make_columns(matrix.shape[0], np.diff(pointers), matrix.indices[entries], matrix.data[entries])


def _cut_out(matrix: Any, rows: slice, places: NDArray[np.int64]) -> Any:
    """A copy of some rows of some columns."""
    if isinstance(matrix, np.ndarray):
        return np.asfortranarray(matrix[rows, places])
    return some_rows(Team(1), matrix, rows.start, rows.stop, places)
