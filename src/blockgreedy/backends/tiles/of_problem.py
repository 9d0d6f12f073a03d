"""A rank's share of a problem that is in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from blockgreedy import _core
from blockgreedy.backends.tiles.grid import Grid, cuts
from blockgreedy.backends.tiles.own_rows import OwnRows
from blockgreedy.backends.tiles.shard import OwnPenalty, Shard
from blockgreedy.backends.tiles.tile import Piece, Tile

if TYPE_CHECKING:
    from blockgreedy.problem.problem import Problem


def shard_of(problem: Problem, grid: Grid, team: _core.Team) -> Shard:
    """``problem`` is in the units in which it is solved."""
    n, p = problem.n_samples, problem.n_features
    rows, features = cuts(n, grid.shape[0]), cuts(p, grid.shape[1])
    a, b = rows[grid.row : grid.row + 2]
    first, end = features[grid.column : grid.column + 2]
    columns = problem.X if grid.all.size == 1 else problem.X[a:b, first:end]
    if not sp.issparse(columns):
        columns = np.asfortranarray(columns)
    else:
        columns.sort_indices()
    own = cuts(b - a, grid.shape[1])
    mine = slice(a + own[grid.column], a + own[grid.column + 1])
    weights = np.full(mine.stop - mine.start, 1 / n) if problem.row_weights is None else problem.row_weights[mine]
    offset = None if problem.offset is None else problem.offset[mine]
    penalty = problem.penalty_at(np.arange(first, end))
    unit = np.ones(end - first) if problem.penalty_weights is None else problem.penalty_weights[first:end]
    l2_unit = np.ones(end - first) if problem.l2_weights is None else problem.l2_weights[first:end]
    null = problem.null_model
    return Shard(
        grid,
        Tile(int(b - a), int(end - first), [Piece(0, 0, columns)], team),
        OwnRows(problem.loss, np.ascontiguousarray(problem.y[mine]), np.ascontiguousarray(weights), offset, team),
        OwnPenalty(
            np.where(np.isinf(unit), 0.0, unit), l2_unit, penalty.lower, penalty.upper, problem.alpha, problem.l2
        ),
        int(first),
        own,
        int(a),
        problem.fit_intercept,
        null.objective,
        null.floor,
    )
