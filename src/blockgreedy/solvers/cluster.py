"""A fit by several processes: which ranks there are, their grid, and the run that rank 0 leads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.tiles.communicator import Communicator
from blockgreedy.backends.tiles.grid import Grid
from blockgreedy.backends.tiles.share import shard_of
from blockgreedy.backends.tiles.worker import TileWorker
from blockgreedy.base.validate import shown, whole
from blockgreedy.solvers.run import Limits, Recorder, run_to_solution
from blockgreedy.solvers.solution import Solution
from blockgreedy.solvers.tile_engine import TileEngine
from blockgreedy.solvers.trace import Record

if TYPE_CHECKING:
    from blockgreedy.problem.problem import Problem

Array = NDArray[np.float64]


def communicator_of(cluster: Any) -> Communicator:
    """Ours of what the user holds: a communicator of mpi4py, or one of ours."""
    if hasattr(cluster, "Get_rank") and hasattr(cluster, "Allreduce"):
        from blockgreedy.backends.tiles.mpi import MpiRank

        return MpiRank(cluster)
    if all(hasattr(cluster, name) for name in ("rank", "size", "reduce", "exchange")):
        ranks: Communicator = cluster
        return ranks
    raise TypeError(f"cluster={shown(cluster)} is not known; use a communicator of mpi4py, such as MPI.COMM_WORLD")


def best_grid(n_samples: int, n_features: int, size: int) -> tuple[int, int]:
    """Row groups and column groups with the shortest messages: n/R rows of θ, and 2p/C columns of the gradient."""
    shapes = [(rows, size // rows) for rows in range(1, size + 1) if size % rows == 0]
    possible = [(r, c) for r, c in shapes if r <= n_samples and c <= n_features] or shapes
    return min(possible, key=lambda shape: n_samples / shape[0] + 2 * n_features / shape[1])


def checked_grid(grid: tuple[int, int] | None, problem: Problem, size: int) -> tuple[int, int]:
    if grid is None:
        return best_grid(problem.n_samples, problem.n_features, size)
    try:
        rows, columns = (whole("grid", part, 1) for part in grid)
    except (TypeError, ValueError):
        raise ValueError(f"grid={shown(grid)} must be two whole numbers, row groups and column groups") from None
    if rows * columns != size:
        raise ValueError(f"grid={rows} × {columns} needs {rows * columns} ranks; the cluster has {size}")
    return rows, columns


def solve_together(
    problem: Problem,
    cluster: Any,
    grid: tuple[int, int] | None,
    *,
    tol: float,
    limits: Limits,
    n_threads: int,
    start: tuple[Array, float] | None,
    trace: tuple[int | None, float | None],
    callback: Callable[[Record], bool | None] | None,
    began: float,
) -> Solution:
    """``solve`` on every rank of a cluster; all of them return the solution."""
    ranks = communicator_of(cluster)
    shape = checked_grid(grid, problem, ranks.size)
    null = problem.fit_null_model(limits.deadline, n_threads)
    limits = replace(limits, ended="" if null.status == "converged" else null.status)
    scaling = problem.scaling
    worker = TileWorker(shard_of(scaling.inner, scaling.null_in(null), Grid(ranks, *shape), n_threads), tol)
    if not worker.shard.grid.leads:
        worker.follow()
        found: Solution = ranks.broadcast(None)
        return found
    engine = TileEngine(problem, worker, start, began)
    recorder = Recorder(engine, *trace, callback)
    try:
        solution = run_to_solution(problem, recorder, limits, tol=tol, began=began, partition=None)
    finally:
        worker.end()
    ranks.broadcast(solution)
    return solution
