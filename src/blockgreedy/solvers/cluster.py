"""A fit by several processes: which ranks there are, their grid, and the run that rank 0 leads."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.tiles.agreement import agreed, error_of
from blockgreedy.backends.tiles.communicator import Alone, Communicator
from blockgreedy.backends.tiles.grid import Grid
from blockgreedy.backends.tiles.mpi import MpiRank
from blockgreedy.backends.tiles.needs import check_memory, check_statistics, check_tiles
from blockgreedy.backends.tiles.relevant import RelevantColumns, handed_round, relevant_in_units
from blockgreedy.backends.tiles.share import columns_of_ranks, most_entries, own_rows_and_columns, shard_of
from blockgreedy.backends.tiles.watch import watching
from blockgreedy.backends.tiles.worker import TileWorker
from blockgreedy.base.deadline import NEVER, Deadline
from blockgreedy.base.threads import blas_limited, resolve_threads
from blockgreedy.base.validate import shown, whole
from blockgreedy.problem.tiled_columns import TiledColumns
from blockgreedy.solvers.checkpoint import Checkpoint, Saved, fingerprint_of
from blockgreedy.solvers.run import Limits, Recorder, run_to_solution
from blockgreedy.solvers.solution import Solution
from blockgreedy.solvers.tile_engine import TileEngine
from blockgreedy.solvers.trace import Record

if TYPE_CHECKING:
    from blockgreedy.backends.tiles.shard import Shard
    from blockgreedy.problem.null_model import NullModel
    from blockgreedy.problem.problem import Problem
    from blockgreedy.solvers.dask_solver import DaskEngines

Array = NDArray[np.float64]
Result = TypeVar("Result")


def communicator_of(cluster: Any) -> Communicator:
    """Ours of what the user holds: a communicator of mpi4py, or one of ours."""
    if isinstance(cluster, MpiRank):
        return cluster
    if hasattr(cluster, "Get_rank") and hasattr(cluster, "Allreduce"):
        return MpiRank(cluster)
    if all(hasattr(cluster, name) for name in ("rank", "size", "reduce", "exchange")):
        ranks: Communicator = cluster
        return ranks
    raise TypeError(
        f"cluster={shown(cluster)} is not known; use a communicator of mpi4py, such as MPI.COMM_WORLD, or a Client "
        "of Dask"
    )


def is_client(cluster: Any) -> bool:
    """Whether it is a client of Dask; asked without importing Dask."""
    return any(
        kind.__name__ == "Client" and kind.__module__.startswith("distributed") for kind in type(cluster).__mro__
    )


def threads_beside(cluster: Any) -> int:
    """Threads of a rank, where nobody says how many: ranks on one machine share its cores."""
    if is_client(cluster):  # workers use those that Dask gave them
        return resolve_threads()
    ranks = communicator_of(cluster)
    return ranks.threads() if isinstance(ranks, MpiRank) else resolve_threads()


def best_grid(problem: Problem, n_relevant: int, size: int) -> tuple[int, int]:
    """Row groups and column groups with the shortest messages: n/R rows of θ, and 2p/C columns of the gradient.

    p counts the relevant columns. Of a store no more row groups than it has, or ranks would have to copy the rows of
    tiles.
    """
    (n, p), design = problem.design.shape, problem.design
    most_rows = design.tiles.grid[0] if isinstance(design, TiledColumns) else n
    shapes = [(rows, size // rows) for rows in range(1, size + 1) if size % rows == 0]
    possible = [(r, c) for r, c in shapes if r <= min(n, most_rows) and c <= p] or shapes
    return min(possible, key=lambda shape: n / shape[0] + 2 * n_relevant / shape[1])


def grid_of(grid: tuple[int, int]) -> tuple[int, int]:
    """What the user gave, checked."""
    try:
        rows, columns = (whole("grid", part, 1) for part in grid)
    except (TypeError, ValueError):
        raise ValueError(f"grid={shown(grid)} must be two whole numbers, row groups and column groups") from None
    return rows, columns


def checked_grid(grid: tuple[int, int] | None, size: int) -> tuple[int, int] | None:
    """What the user asked for, if anything."""
    if grid is None:
        return None
    rows, columns = grid_of(grid)
    if rows * columns != size:
        raise ValueError(f"grid={rows} × {columns} needs {rows * columns} ranks; the cluster has {size}")
    return rows, columns


class Gang:
    """The ranks that solve a problem together: rank 0 leads, the others do the same."""

    def __init__(
        self,
        cluster: Any,
        grid: tuple[int, int] | None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
        memory: int | None = None,
    ) -> None:
        """``memory``: bytes that a rank may take, where a working set is to be held small for it."""
        self._ranks = communicator_of(cluster)
        self._shape = checked_grid(grid, self._ranks.size)
        self._checkpoint, self._resume, self._memory = checkpoint, resume, memory
        self._watched = ExitStack()

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
        deadline: Deadline = NEVER,
    ) -> TileEngine:
        """On every rank, with the same arguments. ``least_alpha``: the last of a path."""
        ranks = self._ranks
        null = problem.null_model if null is None else null
        self._watch()
        if isinstance(ranks, MpiRank) and ranks.size > 1:  # workers of Dask have one thread of BLAS by default
            self._watched.enter_context(blas_limited(n_threads))
        try:
            _check_same(ranks, problem, tol, self._shape)
            kept, saved = agreed(ranks, lambda: self._begin(problem))
            relevant, least = agreed(ranks, lambda: _relevant_of_share(problem, n_threads, least_alpha, ranks))
            scaling = problem.scaling
            is_shared = scaling.inner.design.is_tiled
            with self._all_or_none():
                # processors of different kinds add up differently: what decides how long vectors are is rank 0's word
                of_first, least = ranks.broadcast((None if is_shared else relevant, least))
                relevant = relevant if is_shared else of_first
                count = np.array([len(relevant)])
                count = ranks.reduce(count) if is_shared else count
                grid = Grid(ranks, *(self._shape or best_grid(scaling.inner, int(count[0]), ranks.size)))
                if is_shared:
                    relevant = handed_round(ranks, relevant, columns_of_ranks(scaling.inner.design, grid.shape))
            check_memory(scaling.inner, grid, ranks, relevant)
            inner_null = scaling.null_in(null)
            own = relevant.inside(own_rows_and_columns(scaling.inner.design, grid)[1])
            widest = int(ranks.reduce(np.array([len(own)]), "max")[0])
            room = most_entries(scaling.inner, grid.shape, widest, self._memory)

            def make_shard() -> Shard:
                check_tiles(scaling.inner, grid, n_threads)
                return shard_of(scaling.inner, inner_null, grid, n_threads, own, least, room)

            shard = agreed(ranks, make_shard)
            # the null model may have met its deadline on one rank and not on another
            wanted = null.tol(tol)
            shard.f_null, shard.floor, wanted = ranks.broadcast((shard.f_null, shard.floor, wanted))
            with self._all_or_none():
                engine = TileEngine(problem, TileWorker(shard, wanted), null, start, began, deadline)
        except BaseException:
            self._watched.close()
            raise
        engine.checkpoint = kept
        if saved is not None:
            engine.resume(saved)
        return engine

    def _watch(self) -> None:
        if isinstance(self._ranks, MpiRank):
            watch = self._watched.enter_context(self._ranks.watched())
        elif isinstance(self._ranks, Alone) and self._checkpoint is not None:
            watch = self._watched.enter_context(watching(None))
        else:
            return
        if self._checkpoint is not None and not watch.checkpoint:
            watch.checkpoint = os.fspath(self._checkpoint)
            watch.command = f"solve(…, checkpoint={watch.checkpoint!r}, resume=True)"

    def _begin(self, problem: Problem) -> tuple[Checkpoint | None, Saved | None]:
        if self._checkpoint is None or self._ranks.rank > 0:
            return None, None
        kept = Checkpoint(self._checkpoint, problem)
        return kept, kept.begin(self._resume)

    def run(self, engine: TileEngine, lead: Callable[[], Result]) -> Result:
        """What ``lead`` returns on rank 0, where it moves the engine; on every rank. So do its errors."""
        with self._watched:
            if self._ranks.rank > 0:
                with self._all_or_none():
                    engine.worker.follow()
                    result, failed = self._ranks.broadcast(None)
                if failed is not None:
                    raise error_of(*failed)
                return cast("Result", result.whole(engine) if isinstance(result, _Told) else result)
            try:
                result = lead()
            except BaseException as error:
                if engine.worker.is_busy:
                    with self._all_or_none():
                        raise
                engine.worker.end()
                self._ranks.broadcast((None, (type(error).__name__, str(error))))
                raise
            engine.worker.end()
            self._ranks.broadcast((_told(result), None))
            return result

    @contextmanager
    def _all_or_none(self) -> Iterator[None]:
        """What fails in here on one rank leaves the others waiting: they end with it."""
        try:
            yield
        except BaseException as error:
            if isinstance(self._ranks, MpiRank) and self._ranks.size > 1:
                self._ranks.abort(error)
            raise


@dataclass(frozen=True)
class _Told:
    """A solution on its way to the other ranks: these have names and the dual point, and most weights are 0."""

    solution: Solution
    n_features: int
    features: NDArray[np.intp]
    values: Array
    has_dual: bool  # not all zeros, which is what is left of one that turned out to be infeasible

    def whole(self, engine: TileEngine) -> Solution:
        coef = np.zeros(self.n_features)
        coef[self.features] = self.values
        dual = engine.here.dual_out(engine.worker.found_dual)
        dual = dual if self.has_dual else np.zeros(len(dual))
        return replace(self.solution, coef=coef, dual=dual, feature_names=engine.problem.feature_names)


def _told(result: Any) -> Any:
    if not isinstance(result, Solution):
        return result
    features, nothing = np.flatnonzero(result.coef), np.zeros(0)
    return _Told(
        replace(result, coef=nothing, dual=nothing, feature_names=None), len(result.coef), features,
        result.coef[features], bool(np.any(result.dual)),
    )  # fmt: skip


def _relevant_of_share(
    problem: Problem, n_threads: int, least_alpha: float | None, ranks: Communicator
) -> tuple[RelevantColumns, float]:
    """Those in this rank's share of a store's columns; of a matrix in memory all of them, on every rank.

    And the least alpha, both in the units in which the problem is solved from here on.
    """
    share = (ranks.rank, ranks.size) if problem.design.is_tiled else (0, 1)
    check_statistics(problem.scaling.inner, share)
    return relevant_in_units(problem, n_threads, least_alpha, share)


def _check_same(ranks: Communicator, problem: Problem, tol: float, grid: tuple[int, int] | None) -> None:
    """Ranks that were given different problems would prove something of a mixture of them."""
    if ranks.size == 1:
        return
    own = json.dumps(agreed(ranks, lambda: _known_everywhere(problem)) | {"tol": tol, "grid": grid})
    found = [json.loads(part.tobytes()) for part in ranks.gather(np.frombuffer(own.encode(), dtype=np.uint8))]
    first = found[0]
    for rank, facts in enumerate(found):
        what = next((name for name in facts if not _is_alike(facts[name], first.get(name))), None)
        if what is not None:
            theirs = f"{first.get(what)} on rank 0 and {facts[what]} on rank {rank}"
            raise ValueError(f"ranks must solve the same problem: {what} is {theirs}")


def _known_everywhere(problem: Problem) -> dict[str, Any]:
    """The fingerprint; of weights, which processors of different kinds compute with other last digits, sums."""
    facts = fingerprint_of(problem)
    for name in ("row_weights", "penalty_weights"):
        values = getattr(problem, name)
        if isinstance(values, np.ndarray):
            finite = np.where(np.isfinite(values), values, 0.0)
            moment = float(finite @ np.linspace(1.0, 2.0, len(finite)))
            del facts[f"the checksum of {name}"]
            facts[f"the sum of {name}"] = [int(np.sum(np.isinf(values))), float(np.sum(finite)), moment]
    return facts


def _is_alike(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return all(abs(a - b) <= 1e-9 * abs(a) for a, b in zip(one, other, strict=True))
    return bool(one == other)


def gang_of(
    cluster: Any,
    grid: tuple[int, int] | None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    memory: int | None = None,
) -> Gang | DaskEngines:
    """Of what the user calls the cluster; the arguments are those of ``Gang``."""
    if is_client(cluster):
        from blockgreedy.solvers.dask_solver import DaskEngines

        return DaskEngines(cluster, grid, checkpoint, resume, memory)
    return Gang(cluster, grid, checkpoint, resume, memory)


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
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    memory: int | None = None,
) -> Solution:
    """``solve`` on every rank of a cluster; all of them return the solution."""
    gang = gang_of(cluster, grid, checkpoint, resume, memory)
    null = problem.fit_null_model(limits.deadline, n_threads)
    limits = replace(limits, ended="" if null.status == "converged" else null.status)
    engine = gang.engine(
        problem, tol=tol, n_threads=n_threads, null=null, start=start, began=began, deadline=limits.deadline
    )
    recorder = Recorder(engine, *trace, callback)
    found = gang.run(engine, lambda: run_to_solution(problem, recorder, limits, tol=tol, began=began, partition=None))
    return replace(found, grid=engine.worker.shard.grid.shape)
