"""The engine of the block-greedy family: stretches of the core's iterations between checks of the gap.

The clock runs only inside stretches; objective, gap and divergence are looked at from outside.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.cpu import block_greedy
from blockgreedy.backends.engine import Counters, Ended, EngineBase, Point
from blockgreedy.base.deadline import NEVER, Deadline
from blockgreedy.problem.certificate import is_believed, scaled_dual_point
from blockgreedy.problem.core_problem import CoreProblem
from blockgreedy.problem.null_model import null_so_far
from blockgreedy.solvers.recording import NOTHING, CoreTelemetry, Recording
from blockgreedy.solvers.step_scale import radius_of

if TYPE_CHECKING:
    from blockgreedy.base.names import Status
    from blockgreedy.partitions.partition import Partition
    from blockgreedy.problem.problem import Problem
    from blockgreedy.solvers.options import FamilyOptions
    from blockgreedy.solvers.telemetry import Telemetry

Array = NDArray[np.float64]

_BLOW_UP = 2.0  # objective beyond this multiple of the null model's
_MIN_SAMPLES = 10  # single steps looked at before a run may be called cycling
_MAX_RENEWALS = 3
_NOTICEABLE = 1e-10  # what the best objective falls by in a while if a run gets on, as a part of the null model's
_MOVED = 1e-7  # a step that changes predictions by more than this part changes the objective by more than rounding


class FamilyEngine(EngineBase):
    """A member of the family on a problem, the best point that it has seen and the best dual point."""

    def __init__(
        self,
        problem: Problem,
        partition: Partition,
        options: FamilyOptions,
        *,
        tol: float,
        n_threads: int,
        max_iter: int,
        start: tuple[Array, float] | None,
        stop_on_divergence: bool,
        trace_spectral_radius: bool,
        recording: Recording = NOTHING,
        deadline: Deadline = NEVER,
    ) -> None:
        """``max_iter``: the last iteration, after which the gap is checked."""
        self._began = time.perf_counter()
        self.problem, self.partition, self.options, self._given = problem, partition, options, start
        self._max_iter, self._stop_on_divergence = max_iter, stop_on_divergence
        self._trace_spectral_radius = trace_spectral_radius
        self.model = CoreProblem(problem, n_threads)
        null = self.null = null_so_far(problem)
        self._deadline = deadline
        self.f_null = null.objective
        # with tol=0, experiments end by rules of their own
        self.enough = null.enough(tol) if tol > 0 else 0.0
        self.core = self._make_core()
        self._recorded = CoreTelemetry(self.core, problem, recording) if recording.rows else None
        self.seconds = 0.0
        self.gap = np.nan
        self.dual: Array = np.zeros(problem.n_samples)  # feasible
        self.dual_value = problem.lowest
        self._first_objective = np.inf
        self._best_objective = np.inf
        self._last_noticed = np.inf  # the best objective when it last was noticeably better
        self._best_iteration = 0  # when that was
        self._best_support: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self._best_values: Array = np.zeros(0)
        self._best_intercept = 0.0
        self._wasted_steps: list[bool] = []  # since the best point: did a single step move without lowering?
        self._kind: str | None = None  # of divergence
        self._n_renewals = 0

    def _make_core(self) -> Any:
        """What makes the iterations and holds the weights: the core's ``BlockGreedy`` or what stands in for it."""
        return block_greedy(self.model, self.partition, self.options, self._deadline.seconds_left())

    @property
    def n_iter(self) -> int:
        return int(self.core.n_iter)

    @property
    def objective(self) -> float:
        return float(self.core.objective())

    def start(self) -> bool:
        problem, null = self.problem, self.null
        at_null = problem.alpha > 0 and problem.alpha >= self.model.alpha_needed(null.dual, at_null=True)
        if self._given is not None and not at_null:  # else the null model is a solution, wherever we were to start
            self.core.set_weights(*self._given, self._deadline.seconds_left())
        elif len(null.features):
            self.core.set_sparse_weights(null.features, null.coef, null.intercept, self._deadline.seconds_left())
        self.certify()
        self._first_objective = self.objective
        return False

    def step(self, n_iter: int, seconds: float) -> Ended:
        """Up to the next check of the gap."""
        every = self.options.check_every
        next_check = min((self.n_iter // every + 1) * every, self._max_iter)
        target = min(self.n_iter + n_iter, next_check)
        advance = self._run_and_sample if target == next_check else self._run
        self.gap = np.nan
        interrupted = advance(target - self.n_iter, max(seconds, 0.0))
        if self.n_iter >= next_check or interrupted:
            self.certify()
            self._kind = self._divergence()
        if interrupted:
            return "interrupted"
        return "diverged" if self._kind is not None and self._stop_on_divergence else ""

    @property
    def telemetry(self) -> Telemetry | None:
        """What the iterations did, if it is recorded."""
        return None if self._recorded is None else self._recorded.telemetry

    def _run(self, n_iter: int, max_seconds: float) -> bool:
        """Up to n_iter iterations; True if Ctrl-C was pressed."""
        if self._recorded is None:
            return self._advance(n_iter, max_seconds)[1]
        last, started = self.n_iter + n_iter, self.seconds
        while self.n_iter < last:
            piece = int(min(last - self.n_iter, self._recorded.recording.until_due(self.n_iter)))
            done, interrupted = self._advance(piece, max_seconds - (self.seconds - started))
            self._recorded.fetch()
            if interrupted or done < piece:
                return interrupted
        return False

    def _advance(self, n_iter: int, max_seconds: float) -> tuple[int, bool]:
        """Iterations of the core, on the clock: how many were made, and whether Ctrl-C was pressed."""
        started = time.perf_counter()
        done, interrupted = self.core.run(n_iter, max_seconds, self._deadline.seconds_left())
        self.seconds += time.perf_counter() - started
        return int(done), bool(interrupted)

    def _run_and_sample(self, n_iter: int, max_seconds: float) -> bool:
        """The same; where the rule may diverge, the last two iterations are looked at one by one.

        Two, because a cycle of length two would otherwise always be seen in the same half.
        """
        singles = min(2, n_iter) if self.options.may_diverge else 0
        if n_iter > singles and self._run(n_iter - singles, max_seconds):
            return True
        for _ in range(singles):
            objective, Xw = self.core.objective(), self.core.Xw.copy()
            self._keep_if_best(objective)
            if self._run(1, max_seconds):
                return True
            with np.errstate(over="ignore", invalid="ignore"):  # of a run that blows up and goes on
                moved = bool(self._largest(self.core.Xw - Xw) > _MOVED * self._largest(Xw))
            self._wasted_steps.append(moved and not self.core.objective() < objective)
        return False

    def _largest(self, predictions: Array) -> float:
        """The largest magnitude in rows with weight."""
        weights = self.problem.row_weights
        return float(np.max(np.abs(predictions), initial=0.0, where=True if weights is None else weights > 0))

    def _keep_if_best(self, objective: float) -> None:
        if objective < self._best_objective:
            if objective < self._last_noticed - _NOTICEABLE * self.f_null:  # together: steps may be short
                self._last_noticed, self._best_iteration, self._wasted_steps = objective, self.n_iter, []
            self._best_objective = objective
            self._best_support = np.flatnonzero(self.core.coef)
            self._best_values = self.core.coef[self._best_support]
            self._best_intercept = self.core.intercept

    def certify(self) -> None:
        """Gap here, at the best intercept for the weights; keeps the best point and the best dual point."""
        end = self._deadline.for_the_end()
        self.core.fit_intercept(end.seconds_left())
        objective = self.objective
        if self.telemetry is not None:  # its last row was written before the intercept was fitted
            self.telemetry.correct_objective(self.n_iter, objective)
        theta, value = scaled_dual_point(self.problem, self.core.Xw, self.model, objective, until=end)
        if value > self.dual_value:
            self.dual, self.dual_value = theta, value
        self._keep_if_best(objective)
        self.gap = objective - self.dual_value

    def _divergence(self) -> str | None:
        """What kind of divergence this is, if any."""
        if not self.options.may_diverge:
            return None
        if not self.objective <= max(_BLOW_UP * self.f_null, self._first_objective):
            return "blew up"
        window = max(100, 10 * self.options.n_blocks / self.options.blocks_per_iter)
        stale = self.n_iter - self._best_iteration >= window and len(self._wasted_steps) >= _MIN_SAMPLES
        return "cycles" if stale and np.mean(self._wasted_steps) >= 0.25 else None

    def renew(self, status: Status) -> bool:
        """Goes on from predictions computed anew where those that were carried along claim more than they show."""
        if status != "converged" or self._n_renewals == _MAX_RENEWALS:
            return False
        coef, intercept = self.core.coef.copy(), self.core.intercept
        if self._evaluated(coef, intercept)[1] <= self.enough:
            return False
        self._n_renewals += 1
        self.core.set_weights(coef, intercept, self._deadline.seconds_left())
        self.certify()
        return True

    def support(self) -> NDArray[np.int32]:
        return np.flatnonzero(self.core.coef).astype(np.int32)

    def counters(self) -> Counters:
        """With the spectral radius of the features that the last iteration accepted, where it is asked for.

        It is 1 if they are orthogonal, their number if they are copies, nan if there are none.
        """
        support = self.support()
        radius = radius_of(self.problem, self.core.accepted) if self._trace_spectral_radius else np.nan
        active = len(np.unique(self.partition.block_of[support]))
        return Counters(len(support), self.core.nonzeros_touched, self.core.critical_nonzeros, active, radius)

    def point(self, status: Status, with_dual: bool = True) -> Point:
        """The best point seen, objective and gap computed from its weights and the dual point alone."""
        if self._recorded is not None:
            self._recorded.fetch()  # what Ctrl-C left there
        last = self.core.objective()
        keep_last = not self._stop_on_divergence and status != "converged"
        is_last = last <= self._best_objective or keep_last
        if not is_last:
            seconds = self._deadline.seconds_left()
            self.core.set_sparse_weights(self._best_support, self._best_values, self._best_intercept, seconds)
        intercept = self.core.intercept
        coef = self.core.release_weights()
        features = np.flatnonzero(coef).astype(np.int32)
        objective, gap = self._evaluated(coef, intercept)
        loss = objective - self.problem.penalty.value(coef)
        return Point(
            features, coef[features], intercept, objective, loss, gap, bool(gap <= self.enough), self.dual, is_last
        )

    @np.errstate(over="ignore", invalid="ignore")  # of a run that blew up
    def _evaluated(self, coef: Array, intercept: float) -> tuple[float, float]:
        """Objective and gap, as whoever computes them from what is returned finds them."""
        if not (np.all(np.isfinite(coef)) and np.isfinite(intercept)):
            return np.nan, np.inf
        lowest = self.problem.lowest
        objective, gap = self.problem.objective_and_gap(coef, intercept, self.dual)
        if not is_believed(objective - gap, objective, lowest, self.f_null):
            self.dual, gap = np.zeros(self.problem.n_samples), objective - lowest
        return objective, max(gap, 0.0) if np.isfinite(objective) else np.inf  # below 0 it is rounding

    def check_seconds(self) -> float:
        return time.perf_counter() - self._began - self.seconds

    def remark(self, status: Status) -> str:
        """Of a diverging run: what it does, why, and what to change."""
        o = self.options
        if self._kind is None or status == "interrupted":
            return "" if o.step_scale == 1 else f"step_scale was {o.step_scale:.3g}"
        if status != "diverged":
            return f"the run {self._kind}, see on_divergence"
        remedies = ["update='joint' or 'sweep', which never raise the objective"]
        if o.update == "add":
            now = "" if o.step_scale == 1 else f" (now {o.step_scale:.3g})"
            remedies.append(f"a smaller step_scale, such as 'theory'{now}")
        if o.blocks_per_iter > 1:
            remedies.append(f"fewer blocks_per_iter (now {o.blocks_per_iter} of n_blocks={o.n_blocks})")
            remedies.append("a partition that keeps correlated features in one block, e.g. partition='clustered'")
        if o.per_block > 1:
            remedies.append(f"per_block=1 (now {o.per_block})")
        return (
            f"the run {self._kind}: concurrent steps with update={o.update!r} overshoot on correlated features. "
            f"Try {'; or '.join(remedies)}"
        )
