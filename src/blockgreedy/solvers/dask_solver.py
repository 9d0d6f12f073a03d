"""The tile solver on a cluster of Dask: the client leads, and goes on with another gang where one is lost."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.tiles.dask_rank import DualValue, Standing
from blockgreedy.backends.tiles.needs import check_statistics
from blockgreedy.backends.tiles.parcel import Parcel
from blockgreedy.backends.tiles.relevant import relevant_in_units
from blockgreedy.backends.tiles.share import Place, columns_of_ranks, most_entries, parcel_of
from blockgreedy.base.deadline import NEVER, Deadline
from blockgreedy.base.threads import resolve_threads
from blockgreedy.base.validate import shown
from blockgreedy.problem.tiled_columns import TiledColumns
from blockgreedy.solvers.checkpoint import Checkpoint
from blockgreedy.solvers.cluster import best_grid, grid_of
from blockgreedy.solvers.dask_gang import Cluster, DaskGang, GangLostError, Member, SchedulerLostError
from blockgreedy.solvers.dask_tiles import DaskTiles
from blockgreedy.solvers.tile_engine import TileEngine

if TYPE_CHECKING:
    from blockgreedy.backends.tiles.worker import TileWorker
    from blockgreedy.problem.null_model import NullModel
    from blockgreedy.problem.problem import Problem

Array = NDArray[np.float64]
Result = TypeVar("Result")

_MOST_LOSSES = 3  # gangs lost one after the other without an iteration in between
_FOR_RESTART = 5.0  # seconds in which a worker that was lost may come back, before the others go on without it
_FOR_ANY = 15.0  # seconds in which some worker must come
_STEPS_TO_PROVE = 20  # iterations that find a lost proof again


class ClusterLostError(RuntimeError):
    """A fit that cannot go on, for want of a cluster.

    Attributes
    ----------
    coef, intercept : ndarray and float, or None
        The weights of the last iteration, if there was one: ``solve(…, coef_init=error.coef,
        intercept_init=error.intercept)`` goes on from there, on any cluster or on one machine.
    """

    coef: Array | None = None
    intercept: float | None = None


@dataclass(frozen=True)
class _GridShape:
    shape: tuple[int, int]


@dataclass(frozen=True)
class _ShardFacts:
    f_null: float
    lowest: float
    grid: _GridShape


class DaskWorkers:
    """In the place of rank 0's ``TileWorker``: commands go to the gang, and are asked again of the next one.

    After every iteration the client knows the weights. Another gang, on a grid of its own, starts from them, so a
    worker that dies costs the iteration that it was in.
    """

    def __init__(
        self,
        client: Any,
        problem: Problem,
        null: NullModel,
        grid: tuple[int, int] | None,
        tol: float,
        memory: int | None = None,
        least_alpha: float | None = None,
        deadline: Deadline = NEVER,
    ) -> None:
        self._deadline = deadline
        self._cluster = Cluster(client)
        self._problem, self._grid, self._tol, self._memory = problem, grid, null.tol(tol), memory
        check_statistics(problem.scaling.inner, (0, 1))
        self._relevant, self._least_alpha = relevant_in_units(problem, resolve_threads(), least_alpha)
        self._inner, self._null = problem.scaling.inner, problem.scaling.null_in(null)
        self._gang: DaskGang | None = None
        self._n_ranks = 0  # of the first gang
        self._alphas: tuple[float, float] | None = None  # alpha and l2, once they have changed
        self._begun_at = 0, 0  # iterations and entries read before this gang began
        self._verified: tuple[DaskGang, tuple[Any, ...], float] | None = None
        self._n_lost = 0
        self.solver = Standing(0, np.nan, DualValue(0.0), np.nan, 0.0, 0, 0, np.zeros(0, dtype=np.int64), np.zeros(0))
        self._has_started = False
        try:
            self._cluster.take_turn()
            self._with_gang(lambda gang: None)
        except BaseException as error:
            self.end(in_order=False)
            raise self._as_users_see_it(error) from (error if isinstance(error, SchedulerLostError) else None)

    # -- what the engine asks of a worker

    def together(self, name: str, *args: Any) -> Any:
        if name == "totals":
            return np.array([float(self.solver.nonzeros_touched), 0.0])  # no worker is told to stop
        if name == "support":
            return self.solver.features, self.solver.values
        try:
            return self._with_gang(lambda gang: self._asked(gang, name, *args))
        except (GangLostError, SchedulerLostError) as error:
            raise self._as_users_see_it(error) from error

    def end(self, in_order: bool = True) -> None:
        gang, self._gang = self._gang, None
        if gang is not None:
            gang.end(in_order)
        self._cluster.end_turn()

    # -- one gang after the other

    def _with_gang(self, work: Callable[[DaskGang], Result]) -> Result:
        while True:
            try:
                gang = self._gang
                if gang is None:
                    gang = self._form()
                    self._restore(gang)
                return work(gang)
            except GangLostError as lost:
                self._n_lost += 1
                self._drop_gang()
                if self._n_lost > _MOST_LOSSES:
                    raise
                warnings.warn(
                    f"{lost}: the fit goes on from iteration {self.solver.n_iter} with the workers there are",
                    RuntimeWarning,
                    stacklevel=6,
                )

    def _drop_gang(self) -> None:
        gang, self._gang = self._gang, None
        if gang is not None:
            gang.end(in_order=False)

    def _form(self) -> DaskGang:
        """A gang of the workers that answer. Raises GangLostError where one is lost before it is ready."""
        gang = DaskGang(self._cluster, self._inner.loss.name.replace("_", "-"))
        members = self._members(gang)
        shape = self._shape(len(members))
        members = members[: shape[0] * shape[1]]
        self._gang, self._n_ranks = gang, max(self._n_ranks, len(members))
        self.shard = _ShardFacts(self._null.objective, self._inner.lowest, _GridShape(shape))
        gang.begin(members, shape, self._parcels(members, shape), self._tol)
        return gang

    def _members(self, gang: DaskGang) -> list[Member]:
        """All there are at first; later as many as there were, if they come back in time."""
        began = time.perf_counter()
        while True:
            members, n_known = self._cluster.members(gang.name)
            waited = time.perf_counter() - began
            # one that is known and does not answer is not about to come back
            if members and (n_known >= self._n_ranks or waited > _FOR_RESTART):
                return members
            if waited > _FOR_ANY:
                raise GangLostError("no worker of the cluster answers")
            time.sleep(0.2)

    def _shape(self, n_workers: int) -> tuple[int, int]:
        design = self._inner.design
        tiles = design.tiles if isinstance(design, TiledColumns) else None
        if self._grid is not None:
            rows, columns = grid_of(self._grid)
            if rows * columns <= n_workers:
                return rows, columns
            if self._n_ranks == 0:
                raise ValueError(
                    f"grid={rows} × {columns} needs {rows * columns} workers; {n_workers} of the cluster answer"
                )
        if isinstance(tiles, DaskTiles):
            return tiles.best_grid(n_workers, len(self._relevant))
        return best_grid(self._inner, len(self._relevant), n_workers)

    def _parcels(
        self, members: Sequence[Member], shape: tuple[int, int]
    ) -> Iterator[tuple[Parcel, Sequence[tuple[int, int]], Sequence[Any]]]:
        groups = columns_of_ranks(self._inner.design, shape)
        widest = max(len(self._relevant.inside(columns)) for columns in groups)
        room = most_entries(self._inner, shape, widest, self._memory)
        for rank, member in enumerate(members):
            place = Place(shape, *divmod(rank, shape[1]))
            parcel = parcel_of(self._inner, self._null, place, self._relevant, self._least_alpha, room)
            tiles = parcel.matrix
            if isinstance(tiles, DaskTiles):
                places = tiles.places(parcel)
                held = sum(tiles.tile_bytes(*place) for place in places)
                member.refuse_if_small(parcel, held)
                yield parcel, places, [tiles.futures[place] for place in places]
            else:
                member.refuse_if_small(parcel, 0)
                yield parcel, (), ()

    def _restore(self, gang: DaskGang) -> None:
        """Takes a gang to where the last one was."""
        known = self.solver
        self._begun_at = known.n_iter, known.nonzeros_touched
        if self._alphas is not None:
            gang.ask("lower_alpha", *self._alphas)
        if not self._has_started:
            return
        was_proven = known.gap <= known.enough
        self._tell(gang, "start", known.features, known.values, known.intercept)
        if was_proven:
            self._prove(gang, lambda: self.solver.gap <= self.solver.enough or self._deadline.has_passed())

    def _prove(self, gang: DaskGang, is_enough: Callable[[], bool]) -> None:
        for _ in range(_STEPS_TO_PROVE):
            if is_enough():
                return
            self._tell(gang, "step")

    def _asked(self, gang: DaskGang, name: str, *args: Any) -> Any:
        if name == "dual" and self._verified is not None and self._verified[0] is not gang:
            _, _, value = self._verified  # of a point that went with its gang: one that is as good
            self._prove(gang, lambda: self.solver.dual.value >= value)
            if self.solver.dual.value < value:
                raise GangLostError("the dual point was lost with a worker at the end of the fit; run it again")
        result = self._tell(gang, name, *args)
        if name == "lower_alpha":
            self._alphas = args
        elif name == "verify":
            self._verified = gang, args, float(result[2])
        return result

    def _tell(self, gang: DaskGang, name: str, *args: Any) -> Any:
        result, standing = gang.ask(name, *args)
        if name == "start":
            self._has_started = True
        elif name == "step":
            self._n_lost = 0
        if standing is not None:
            n_iter, touched = self._begun_at
            self.solver = replace(
                standing, n_iter=n_iter + standing.n_iter, nonzeros_touched=touched + standing.nonzeros_touched
            )
        return result

    def _as_users_see_it(self, error: BaseException) -> BaseException:
        if not isinstance(error, (GangLostError, SchedulerLostError)):
            return error
        known, scaling = self.solver, self._problem.scaling
        goes_on = ""
        seen = ClusterLostError()
        if self._has_started and len(known.features):
            values = scaling.weights_out(known.features, known.values)
            seen.coef = np.zeros(self._problem.n_features)
            seen.coef[known.features] = values
            seen.intercept = scaling.intercept_out(known.intercept, known.features, values)
            goes_on = "; the error's coef and intercept are the weights of the last iteration, to start from"
        at = f" after iteration {known.n_iter}" if self._has_started else " before its first iteration"
        seen.args = (f"the fit on the cluster ended{at}: {error}{goes_on}",)
        return seen


class DaskEngines:
    """What ``Gang`` is for ranks that call ``solve`` together: here the client alone does."""

    def __init__(
        self,
        client: Any,
        grid: tuple[int, int] | None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
        memory: int | None = None,
    ) -> None:
        """The arguments are those of ``Gang``; the client writes the checkpoint."""
        if grid is not None:
            grid_of(grid)
        if client.status != "running":
            raise ValueError(f"cluster={shown(client)} is not connected: its status is {client.status!r}")
        self._client, self._grid, self._memory = client, grid, memory
        self._checkpoint, self._resume = checkpoint, resume

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
        """``n_threads`` is for the client; workers use those that Dask gave them."""
        null = problem.null_model if null is None else null
        kept = None if self._checkpoint is None else Checkpoint(self._checkpoint, problem)
        saved = None if kept is None else kept.begin(self._resume)
        workers = DaskWorkers(self._client, problem, null, self._grid, tol, self._memory, least_alpha, deadline)
        engine = TileEngine(problem, cast("TileWorker", workers), null, start, began, deadline)
        engine.checkpoint = kept
        if saved is not None:
            engine.resume(saved)
        return engine

    def run(self, engine: TileEngine, lead: Callable[[], Result]) -> Result:
        is_whole = False
        try:
            result = lead()
            is_whole = True
            return result
        finally:
            cast("Any", engine.worker).end(is_whole)
