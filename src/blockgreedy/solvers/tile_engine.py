"""The engine of a fit on a cluster: rank 0 of the tile solver, and what its loop asks of all ranks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.engine import Counters, Ended, EngineBase, Point
from blockgreedy.backends.tiles.watch import stop_was_asked
from blockgreedy.base.deadline import NEVER, Deadline
from blockgreedy.problem.certificate import ROUNDING, is_believed
from blockgreedy.solvers.interrupt import Deferred

if TYPE_CHECKING:
    from blockgreedy.backends.tiles.solver import TileSolver
    from blockgreedy.backends.tiles.worker import TileWorker
    from blockgreedy.base.names import Status
    from blockgreedy.problem.null_model import NullModel
    from blockgreedy.problem.problem import Problem
    from blockgreedy.solvers.checkpoint import Checkpoint, Saved

Array = NDArray[np.float64]
_MAX_RENEWALS = 3


class TileEngine(EngineBase):
    """What leads the workers of all ranks through a run. Ctrl-C is heard between iterations: ranks stay in step."""

    def __init__(
        self,
        problem: Problem,
        worker: TileWorker,
        null: NullModel,
        start: tuple[Array, float] | None,
        began: float | None = None,
        deadline: Deadline = NEVER,
    ) -> None:
        self.problem, self.worker, self.null, self.given = problem, worker, null, start
        self.scaling = self.here = problem.scaling
        self._deadline = deadline
        self._began = time.perf_counter() if began is None else began
        self._n_renewals = 0
        self._touched = 0
        self.checkpoint: Checkpoint | None = None
        self._earlier = 0, 0  # iterations and entries read before the checkpoint that this run goes on from
        self._seconds = {"iterations": 0.0, "guard": 0.0}
        # of which weights and dual value, and what ``_evaluate`` found; none after a move
        self._evaluated: tuple[tuple[bytes, bytes, float, float], tuple[float, float, float]] | None = None

    @property
    def _solver(self) -> TileSolver:
        return self.worker.solver  # on a cluster of Dask that of another gang, where one was lost

    @property
    def n_iter(self) -> int:
        return self._earlier[0] + self._solver.n_iter

    @property
    def f_null(self) -> float:
        return self.scaling.value_out(self.worker.shard.f_null)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    @property
    def objective(self) -> float:
        return self.scaling.value_out(self._solver.objective)

    @property
    def dual_value(self) -> float:
        return self.scaling.value_out(self._solver.dual.value)

    @property
    def gap(self) -> float:
        return self.scaling.value_out(self._solver.gap)

    @property
    def enough(self) -> float:
        return self.scaling.value_out(self._solver.enough)

    def is_enough(self, share: float = 1.0) -> bool:
        return self._solver.gap <= share * self._solver.enough

    def start(self) -> bool:
        self._evaluated = None
        null = self.scaling.null_in(self.null)
        with Deferred() as ctrl_c:
            if self.given is not None:
                coef, intercept = self.given
                features = np.flatnonzero(coef)
                inner = self.scaling.intercept_in(intercept, slice(None), coef)
                values = self.scaling.weights_in(features, coef[features])
                self.worker.together("start", features.astype(np.int64), values, inner)
            if self.given is None or not self._solver.objective <= null.objective:
                self.worker.together("start", null.features.astype(np.int64), null.coef, null.intercept)
        if not np.isfinite(self.objective):
            raise ValueError("the objective is not finite where the solve starts; rescale X, y or the start")
        return ctrl_c.pressed or stop_was_asked()

    def resume(self, saved: Saved) -> None:
        """To be called before the start, which is then where the checkpoint was."""
        self.given = saved.start(self.problem.n_features)
        self._earlier = saved.n_iter, saved.nonzeros_touched

    def step(self, n_iter: int, seconds: float) -> Ended:
        began, self._evaluated = time.perf_counter(), None
        with Deferred() as ctrl_c:
            improved = self.worker.together("step", self._deadline.seconds_left())
            touched, stops = self.worker.together("totals")
            self._touched = self._earlier[1] + int(touched)
            if self.checkpoint is not None:
                self._save(self.checkpoint)
        self._seconds["iterations"] += time.perf_counter() - began
        if ctrl_c.pressed or stops > 0:
            return "interrupted"
        return "" if improved else "stalled"

    def _save(self, checkpoint: Checkpoint) -> None:
        features, inner_values = self.worker.together("support")
        values = self.here.weights_out(features, inner_values)
        intercept = self.here.intercept_out(self._solver.intercept, features, values)
        checkpoint.write(features, values, intercept, self.n_iter, self._touched)

    def move_to(self, problem: Problem) -> bool:
        self._evaluated = None
        self.here = self.scaling if problem is self.problem else self.scaling.with_alpha(problem)
        inner = self.here.inner
        self._n_renewals = 0
        with Deferred() as ctrl_c:
            self.worker.together("lower_alpha", inner.alpha, inner.l2)
        return ctrl_c.pressed

    def certify(self) -> None:
        self.worker.together("certify")

    def renew(self, status: Status) -> bool:
        """Whether predictions that were carried along have gone astray: then it goes on from the weights alone."""
        if self._n_renewals == _MAX_RENEWALS:
            return False
        before = self._solver.objective
        point = self.point(status, with_dual=False)
        if point.is_proven or abs(before - self._verified) <= ROUNDING * abs(before):
            return False
        self._n_renewals += 1
        self._evaluated = None
        with Deferred() as ctrl_c:
            self.worker.together("start", *self.worker.together("support"), self._solver.intercept)
        if ctrl_c.pressed:
            raise KeyboardInterrupt
        return True

    def point(self, status: Status, with_dual: bool = True) -> Point:
        """What is returned, evaluated again by all ranks from the weights and the dual point alone."""
        began, scaling, worker = time.perf_counter(), self.here, self.worker
        with Deferred():
            if status not in ("converged", "interrupted"):
                worker.together("certify", self._deadline.for_the_end().seconds_left())
            ids, inner_values = worker.together("support")
            features = ids.astype(np.int32)
            values = scaling.weights_out(features, inner_values)
            intercept = scaling.intercept_out(self._solver.intercept, features, values)
            returned = scaling.weights_in(features, values)
            inner_intercept = scaling.intercept_in(intercept, features, values)
            objective, penalty, dual_value = self._evaluate(ids, returned, inner_intercept)
            self._verified = objective
            dual = scaling.dual_out(worker.together("dual")) if with_dual else None
        if not scaling.is_identity:
            own = scaling.penalty_in(features, values)
            objective, penalty = objective - penalty + own, own
        lowest = worker.shard.lowest
        if not is_believed(dual_value, objective, lowest, worker.shard.f_null):
            dual_value, dual = lowest, None if dual is None else np.zeros(len(dual))
        gap = max(objective - dual_value, 0.0) if np.isfinite(objective) else np.inf
        self._seconds["guard"] += time.perf_counter() - began
        value = scaling.value_out(objective)
        return Point(
            features, values, intercept, value, value - scaling.value_out(penalty), scaling.value_out(gap),
            gap <= self._solver.enough, dual,
        )  # fmt: skip

    def _evaluate(self, ids: NDArray[np.int64], weights: Array, intercept: float) -> tuple[float, float, float]:
        """Objective, penalty and dual value from weights and dual point alone, by all ranks.

        Before a run ends it asks twice, of the same: whether to go on, and what to return.
        """
        of = ids.tobytes(), weights.tobytes(), float(intercept), float(self._solver.dual.value)
        if self._evaluated is None or self._evaluated[0] != of:
            self._evaluated = of, self.worker.together("verify", ids, weights, intercept)
        return self._evaluated[1]

    def support(self) -> NDArray[np.int32]:
        return np.asarray(self.worker.together("support")[0], dtype=np.int32)

    def counters(self) -> Counters:
        return Counters(self._solver.n_support, self._touched, self._touched, self.worker.shard.grid.shape[1])

    def remark(self, status: Status) -> str:
        failure = "" if self.checkpoint is None else self.checkpoint.failure
        return f"the last checkpoint could not be written: {failure}" if failure else ""

    def phase_seconds(self) -> dict[str, float]:
        return dict(self._seconds)
