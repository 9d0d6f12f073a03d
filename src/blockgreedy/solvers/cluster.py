"""A fit by several processes: which ranks there are, their grid, and the run that rank 0 leads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

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
    from blockgreedy.problem.null_model import NullModel
    from blockgreedy.problem.problem import Problem
    from blockgreedy.solvers.dask_solver import DaskEngines

Array = NDArray[np.float64]
Result = TypeVar("Result")


def communicator_of(cluster: Any) -> Communicator:
    """Ours of what the user holds: a communicator of mpi4py, or one of ours."""
    if hasattr(cluster, "Get_rank") and hasattr(cluster, "Allreduce"):
        from blockgreedy.backends.tiles.mpi import MpiRank

        return MpiRank(cluster)
    if all(hasattr(cluster, name) for name in ("rank", "size", "reduce", "exchange")):
        ranks: Communicator = cluster
        return ranks
    raise TypeError(
        f"cluster={shown(cluster)} is not known; use a communicator of mpi4py, such as MPI.COMM_WORLD, "
        "or a Client of Dask"
    )


def best_grid(n_samples: int, n_features: int, size: int) -> tuple[int, int]:
    """Row groups and column groups with the shortest messages: n/R rows of θ, and 2p/C columns of the gradient."""
    shapes = [(rows, size // rows) for rows in range(1, size + 1) if size % rows == 0]
    possible = [(r, c) for r, c in shapes if r <= n_samples and c <= n_features] or shapes
    return min(possible, key=lambda shape: n_samples / shape[0] + 2 * n_features / shape[1])


def grid_of(grid: tuple[int, int]) -> tuple[int, int]:
    """What the user gave, checked."""
    try:
        rows, columns = (whole("grid", part, 1) for part in grid)
    except (TypeError, ValueError):
        raise ValueError(f"grid={shown(grid)} must be two whole numbers, row groups and column groups") from None
    return rows, columns


def checked_grid(grid: tuple[int, int] | None, problem: Problem, size: int) -> tuple[int, int]:
    if grid is None:
        return best_grid(problem.n_samples, problem.n_features, size)
    rows, columns = grid_of(grid)
    if rows * columns != size:
        raise ValueError(f"grid={rows} × {columns} needs {rows * columns} ranks; the cluster has {size}")
    return rows, columns


class Gang:
    """The ranks that solve a problem together: rank 0 leads, the others do the same."""

    def __init__(self, cluster: Any, grid: tuple[int, int] | None, problem: Problem) -> None:
        self._ranks = communicator_of(cluster)
        self._shape = checked_grid(grid, problem, self._ranks.size)

    def engine(
        self,
        problem: Problem,
        *,
        tol: float,
        n_threads: int,
        null: NullModel | None,
        start: tuple[Array, float] | None = None,
        least_alpha: float | None = None,
        began: float | None = None,
    ) -> TileEngine:
        """On every rank, with the same arguments. ``least_alpha`` is what engines of a path are told."""
        null, scaling = problem.null_model if null is None else null, problem.scaling
        shard = shard_of(scaling.inner, scaling.null_in(null), Grid(self._ranks, *self._shape), n_threads)
        return TileEngine(problem, TileWorker(shard, tol), null, start, began)

    def run(self, engine: TileEngine, lead: Callable[[], Result]) -> Result:
        """What ``lead`` returns on rank 0, where it moves the engine; on every rank."""
        if self._ranks.rank > 0:
            engine.worker.follow()
            found: Result = self._ranks.broadcast(None)
            return found
        try:
            result = lead()
        finally:
            engine.worker.end()
        self._ranks.broadcast(result)
        return result


def gang_of(cluster: Any, grid: tuple[int, int] | None, problem: Problem) -> Gang | DaskEngines:
    """Of what the user calls the cluster."""
    if any(kind.__name__ == "Client" and kind.__module__.startswith("distributed") for kind in type(cluster).__mro__):
        from blockgreedy.solvers.dask_solver import DaskEngines

        return DaskEngines(cluster, grid)
    return Gang(cluster, grid, problem)


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
    gang = gang_of(cluster, grid, problem)
    null = problem.fit_null_model(limits.deadline, n_threads)
    limits = replace(limits, ended="" if null.status == "converged" else null.status)
    engine = gang.engine(problem, tol=tol, n_threads=n_threads, null=null, start=start, began=began)
    recorder = Recorder(engine, *trace, callback)
    return gang.run(engine, lambda: run_to_solution(problem, recorder, limits, tol=tol, began=began, partition=None))
