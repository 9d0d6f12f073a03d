"""The watch over a run of the block-greedy family: when to stop, what to record, which point to return."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.partitions.spectrum import spectral_radius
from blockgreedy.problem.certificate import scaled_dual_point
from blockgreedy.solvers.trace import Record, Trace

if TYPE_CHECKING:
    from blockgreedy.backends.cpu import CpuModel
    from blockgreedy.partitions.partition import Partition
    from blockgreedy.problem.problem import Problem
    from blockgreedy.solvers.options import FamilyOptions

Array = NDArray[np.float64]

_BLOW_UP = 2.0  # objective beyond this multiple of the null model's
_MIN_SAMPLES = 10  # single steps looked at before a run may be called cycling
_NOTICEABLE = 1e-10  # a change of the objective below this part of the null model's may be rounding


class Watch:
    """State of one run. ``check`` is called between stretches of iterations, with the clock stopped."""

    def __init__(
        self,
        problem: Problem,
        model: CpuModel,
        partition: Partition,
        options: FamilyOptions,
        trace_spectral_radius: bool,
    ) -> None:
        self.problem, self.model, self.partition, self.options = problem, model, partition, options
        self.trace_spectral_radius = trace_spectral_radius
        self.f_null = problem.null_model.objective
        self.engine = model.block_greedy(partition, options)
        self.trace = Trace()
        self.seconds = 0.0
        self.best_objective = np.inf
        self.best_iteration = 0
        self.best_support: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self.best_values: Array = np.zeros(0)
        self.dual: Array = np.zeros(problem.n_samples)  # feasible, and proves that the objective is at least 0
        self.dual_value = 0.0
        self.wasted_steps: list[bool] = []  # since the best point: did a single step move without lowering?

    def run(self, n_iter: int, max_seconds: float) -> bool:
        """Up to n_iter iterations; True if Ctrl-C was pressed."""
        started = time.perf_counter()
        _, interrupted = self.engine.run(n_iter, max_seconds)
        self.seconds += time.perf_counter() - started
        return bool(interrupted)

    def run_and_sample(self, n_iter: int, max_seconds: float) -> bool:
        """The same; where the rule may diverge, the last two iterations are looked at one by one.

        Two, because a cycle of length two would otherwise always be seen in the same half.
        """
        singles = min(2, n_iter) if self.options.may_diverge else 0
        if n_iter > singles and self.run(n_iter - singles, max_seconds):
            return True
        for _ in range(singles):
            objective, Xw = self.engine.objective(), self.engine.Xw.copy()
            self.keep_if_best(objective)
            if self.run(1, max_seconds):
                return True
            fell = self.engine.objective() < objective - _NOTICEABLE * self.f_null
            moved = not np.allclose(self.engine.Xw, Xw, rtol=1e-8, atol=1e-8 * float(np.max(np.abs(Xw), initial=0.0)))
            self.wasted_steps.append(moved and not fell)
        return False

    def keep_if_best(self, objective: float) -> None:
        if objective < self.best_objective:
            if objective < self.best_objective - _NOTICEABLE * self.f_null:
                self.best_iteration, self.wasted_steps = self.engine.n_iter, []
            self.best_objective = objective
            self.best_support = np.flatnonzero(self.engine.coef)
            self.best_values = self.engine.coef[self.best_support]

    def check(self) -> tuple[float, float]:
        """(objective, gap) here; keeps the best point and the best dual point."""
        objective = self.engine.objective()
        theta, value = scaled_dual_point(self.problem, self.engine.Xw, self.model)
        if value > self.dual_value:
            self.dual, self.dual_value = theta, value
        self.keep_if_best(objective)
        return objective, objective - self.dual_value

    def divergence(self, objective: float) -> str | None:
        """What kind of divergence this is, if any."""
        if not self.options.may_diverge:
            return None
        if not objective <= max(_BLOW_UP * self.f_null, self.trace.records[0].objective):
            return "blew up"
        window = max(100, 10 * self.options.n_blocks / self.options.blocks_per_iter)
        stale = self.engine.n_iter - self.best_iteration >= window and len(self.wasted_steps) >= _MIN_SAMPLES
        return "cycles" if stale and np.mean(self.wasted_steps) >= 0.25 else None

    def spectral_radius(self) -> float:
        """Of the features that the last iteration accepted: 1 if orthogonal, their number if copies; nan if none."""
        return spectral_radius(self.problem.X, self.engine.accepted) if self.trace_spectral_radius else np.nan

    def record(self, objective: float, gap: float) -> Record:
        support = np.flatnonzero(self.engine.coef)
        active = len(np.unique(self.partition.block_of[support]))
        record = Record(
            iteration=self.engine.n_iter,
            seconds=self.seconds,
            objective=objective,
            nonzeros=len(support),
            nonzeros_touched=self.engine.nonzeros_touched,
            critical_nonzeros=self.engine.critical_nonzeros,
            active_blocks=active,
            gap=gap,
            spectral_radius=self.spectral_radius(),
        )
        self.trace.records.append(record)
        return record


def run_family(
    problem: Problem,
    model: CpuModel,
    partition: Partition,
    options: FamilyOptions,
    *,
    tol: float,
    max_iter: int,
    max_seconds: float,
    start: Array | None,
    stop_on_divergence: bool,
    trace_iters: int | None,
    trace_seconds: float | None,
    trace_spectral_radius: bool,
    callback: Callable[[Record], bool | None] | None,
) -> dict[str, Any]:
    """Runs until converged, diverged or out of budget; the fields of a Solution."""
    began = time.perf_counter()
    watch = Watch(problem, model, partition, options, trace_spectral_radius)
    null = problem.null_model
    enough = max(tol * null.objective, null.floor) if tol > 0 else 0.0  # 0: experiments end by rules of their own
    if problem.alpha > 0 and problem.alpha >= model.alpha_needed(null.dual, at_null=True):
        start = None  # the null model is a solution, wherever we were to start from
    if start is not None:
        watch.engine.set_weights(start)
    elif len(null.features):
        watch.engine.set_sparse_weights(null.features, null.coef)
    status, kind = "", None
    use_checks = trace_iters is None and trace_seconds is None
    next_iter = trace_iters or 0
    next_seconds = trace_seconds or float("inf")
    objective = gap = np.nan
    try:
        objective, gap = watch.check()
        stop = _tell(callback, watch.record(objective, gap))
        while True:
            iteration = watch.engine.n_iter
            elapsed = time.perf_counter() - began
            if gap <= enough:
                status = "converged"
            elif kind is not None and stop_on_divergence:
                status = "diverged"
            elif stop:
                status = "interrupted"
            elif iteration >= max_iter:
                status = "max_iter"
            elif elapsed >= max_seconds:
                status = "max_seconds"
            if status:
                break
            next_check = min((iteration // options.check_every + 1) * options.check_every, max_iter)
            aims = [next_check] + ([next_iter] if trace_iters else [])
            allowed = min(max_seconds - elapsed, next_seconds - watch.seconds)
            reached_check = min(aims) == next_check
            advance = watch.run_and_sample if reached_check else watch.run
            stop = advance(min(aims) - iteration, max(allowed, 0.0))
            gap = np.nan
            if watch.engine.n_iter >= next_check or stop:
                objective, gap = watch.check()
                kind = watch.divergence(objective)
            due = use_checks and not np.isnan(gap)
            if trace_iters and watch.engine.n_iter >= next_iter:
                due, next_iter = True, next_iter + trace_iters
            if trace_seconds and watch.seconds >= next_seconds:
                due, next_seconds = True, watch.seconds + trace_seconds
            if due:
                if np.isnan(gap):
                    objective = watch.engine.objective()
                stop = _tell(callback, watch.record(objective, gap)) or stop
    except KeyboardInterrupt:
        status = "interrupted"
    return _finish(watch, status, kind, time.perf_counter() - began, tol, keep_last=not stop_on_divergence)


def _tell(callback: Callable[[Record], bool | None] | None, record: Record) -> bool:
    return callback is not None and bool(callback(record))


def _finish(watch: Watch, status: str, kind: str | None, wall: float, tol: float, keep_last: bool) -> dict[str, Any]:
    """The point to return, its objective recomputed from the weights alone."""
    model, engine = watch.model, watch.engine
    n_iter = engine.n_iter
    last = engine.objective()
    if not watch.trace.records or watch.trace.records[-1].iteration != n_iter:
        watch.record(last, np.nan)
    take_last = last <= watch.best_objective or (keep_last and status != "converged")
    if not take_last:
        engine.set_sparse_weights(watch.best_support, watch.best_values)
    coef = engine.release_weights()
    objective = model.objective(coef, model.predict(coef))
    gap = np.inf
    if np.isfinite(objective):
        gap = max(objective - watch.dual_value, 0.0)  # below 0 it is rounding
    return {
        "coef": coef,
        "objective": objective,
        "gap": gap,
        "dual": watch.dual,
        "status": status,
        "message": _message(watch, status, kind, n_iter, gap, tol),
        "n_iter": n_iter,
        "seconds": watch.seconds,
        "check_seconds": wall - watch.seconds,
        "trace": watch.trace,
    }


def _message(watch: Watch, status: str, kind: str | None, n_iter: int, gap: float, tol: float) -> str:
    o = watch.options
    reached = f"relative gap {gap / watch.f_null:.2g}, asked for {tol:.2g}" if watch.f_null > 0 else f"gap {gap:.2g}"
    if status == "converged":
        return f"converged: {reached}"
    if status == "diverged":
        remedies = ["update='joint' or 'sweep', which never raise the objective"]
        if o.blocks_per_iter > 1:
            remedies.append(f"fewer blocks_per_iter (now {o.blocks_per_iter} of n_blocks={o.n_blocks})")
            remedies.append("a partition that keeps correlated features in one block, e.g. partition='clustered'")
        if o.per_block > 1:
            remedies.append(f"per_block=1 (now {o.per_block})")
        return (
            f"the run {kind}: concurrent steps with update={o.update!r} overshoot on correlated features; "
            f"the best point seen is returned ({reached}). Try {'; or '.join(remedies)}"
        )
    diverging = f"; the run {kind}, see on_divergence" if kind is not None else ""
    if status == "max_iter":
        return f"stopped at max_iter={n_iter}: {reached}; raise max_iter or tol{diverging}"
    if status == "max_seconds":
        return f"stopped at max_seconds: {reached}; raise max_seconds or tol{diverging}"
    return f"interrupted: {reached}; the best point so far is returned"
