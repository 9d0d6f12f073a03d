"""The watch over the default solver: when to stop, what to record, what to return."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.cpu import CpuModel
from blockgreedy.problem.null_model import ROUNDING
from blockgreedy.solvers.guard import Guarded, guard
from blockgreedy.solvers.polish import polish
from blockgreedy.solvers.trace import Record, Trace

if TYPE_CHECKING:
    from blockgreedy import _core
    from blockgreedy.partitions.partition import Partition
    from blockgreedy.problem.null_model import NullModel
    from blockgreedy.problem.problem import Problem

Array = NDArray[np.float64]

MAX_ITER = 1000
_MORE_ITERATIONS = 100  # after a renewal
_MAX_RENEWALS = 3  # after that, what rounding leaves is what there is


def run_working_set(
    problem: Problem,
    n_threads: int,
    *,
    n_blocks: int,
    partition: Partition | None,
    tol: float,
    max_iter: int | None,
    max_seconds: float,
    start: tuple[Array, float] | None,
    trace_iters: int | None,
    trace_seconds: float | None,
    callback: Callable[[Record], bool | None] | None,
) -> dict[str, Any]:
    """Runs until converged or out of budget; the fields of a Solution."""
    began = time.perf_counter()
    null = None
    if start is not None or problem.fit_intercept or problem.has_unpenalised:
        null = problem.fit_null_model(began + max_seconds)
    run = _Run(problem, n_threads, n_blocks, partition, tol, null)
    engine, trace = run.engine, Trace()
    limit = MAX_ITER if max_iter is None else max_iter
    last_seconds = -np.inf
    status = "" if null is None or null.status == "converged" else null.status
    stop = False

    def record(due: bool) -> bool:
        nonlocal last_seconds
        seconds = time.perf_counter() - began
        if not due and (
            (trace_iters is not None and engine.n_iter % trace_iters != 0)
            or (trace_seconds is not None and seconds - last_seconds < trace_seconds)
        ):
            return False
        last_seconds = seconds
        now = Record(
            iteration=engine.n_iter,
            seconds=seconds,
            objective=run.scaling.value_out(engine.objective),
            nonzeros=engine.n_support,
            nonzeros_touched=engine.nonzeros_touched,
            critical_nonzeros=engine.nonzeros_touched,
            active_blocks=engine.n_blocks,
            gap=run.scaling.value_out(engine.objective - engine.dual_value),
        )
        trace.records.append(now)
        return callback is not None and bool(callback(now))

    try:
        status = ("interrupted" if run.start(start) else "") or status
        engine = run.engine
        if not np.isfinite(run.scaling.value_out(engine.objective)):
            _ = problem.null_model  # says which values overflow
            raise ValueError("the objective is not finite where the solve starts; rescale X, y or the start")
        stop = record(True)
        while not status:
            if engine.objective - engine.dual_value <= engine.enough:
                status = "converged"
            elif stop:
                status = "interrupted"
            elif engine.n_iter >= limit:
                status = "max_iter"
            elif time.perf_counter() - began >= max_seconds:
                status = "max_seconds"
            else:
                improved, interrupted = engine.step()
                if interrupted:
                    status = "interrupted"
                elif not improved:
                    status = "stalled"
                else:
                    stop = record(False)
            # a limit that the user has not set is a stall by another name
            may_renew = status in ("converged", "stalled") or (status == "max_iter" and max_iter is None)
            if may_renew and run.renewed(status):
                status = ""
                limit = max(limit, engine.n_iter + _MORE_ITERATIONS)
    except KeyboardInterrupt:
        status = "interrupted"
    if not trace.records or trace.records[-1].iteration != engine.n_iter:
        try:
            record(True)
        except KeyboardInterrupt:  # from the callback: the record is there
            status = "interrupted"
    point = run.guarded(status)
    status = final_status(status, point)
    last = trace.records[-1]
    if abs(last.objective - point.objective) > ROUNDING * point.objective:  # the iterations' own had drifted
        trace.records[-1] = replace(last, objective=point.objective, gap=point.gap)
    run.coef[point.features] = point.values
    dual = engine.release_dual() if point.other_dual is None else point.other_dual
    phases = dict(zip(engine.phases, engine.seconds, strict=True))
    seconds, checks = time.perf_counter() - began, phases["certificate"] + phases["guard"]
    return {
        "coef": run.coef,
        "intercept": point.intercept,
        "objective": point.objective,
        "gap": point.gap,
        "dual": run.scaling.dual_out(dual),
        "status": status,
        "message": _message(status, point.gap, run.scaling.value_out(engine.f_null), tol, engine.n_iter),
        "n_iter": engine.n_iter,
        "seconds": seconds - checks,
        "check_seconds": checks,
        "phase_seconds": phases,
        "trace": trace,
    }


def final_status(status: str, point: Guarded) -> str:
    """The status that the guard allows."""
    if status == "interrupted":
        return status
    if point.is_proven:
        return "converged"
    return "stalled" if status == "converged" else status


def rescale(problem: Problem) -> None:
    """Once; there are no other units to try."""
    if problem.column_units.exponents is not None:
        raise ValueError("X has columns whose values span more than float64 can scale; drop or transform them")
    problem.rescale_columns()


class _Run:
    """The engine on a problem, and what is done where its numbers do not hold."""

    def __init__(
        self,
        problem: Problem,
        n_threads: int,
        n_blocks: int,
        partition: Partition | None,
        tol: float,
        null: NullModel | None,
    ) -> None:
        self.problem, self.null = problem, null
        self._made_of = n_threads, n_blocks, partition, tol
        self.n_renewals, self._last = 0, ""
        self._point: Guarded | None = None
        self._make()

    def _make(self) -> None:
        n_threads, n_blocks, partition, tol = self._made_of
        self.scaling = self.problem.scaling
        self.model = CpuModel(self.scaling.inner, n_threads)
        f_null, floor = -1.0, 0.0
        if self.null is not None:
            null = self.scaling.null_in(self.null)
            f_null, floor = null.objective, null.floor
        self.engine: _core.WorkingSet = self.model.working_set(n_blocks, partition, tol, f_null, floor)
        self.coef = np.zeros(self.problem.n_features)  # memory is only touched where a weight is set

    def start(self, given: tuple[Array, float] | None) -> bool:
        """From there, or from the null model, which is also taken where what is given is worse; True on Ctrl-C."""
        for at in (given, None):
            if at is not None and not np.any(at[0]) and at[1] == 0:
                continue
            interrupted = self._start_at(at)
            if self.engine.out_of_range:
                rescale(self.problem)
                self._make()
                interrupted = self._start_at(at)
            if at is not None and self.problem.loss.has_plateau and not interrupted:
                interrupted = self._back_to_the_edge(at)
            if interrupted or at is None or self.engine.objective <= self.engine.f_null:
                return interrupted
            self.coef[:] = 0
        return False

    def _back_to_the_edge(self, at: tuple[Array, float]) -> bool:
        """Halves a start as long as that lowers the objective; True on Ctrl-C.

        Deep inside a plateau of the loss a quadratic model knows no scale, and steps would stay tiny.
        """
        while True:
            before, half = self.engine.objective, (at[0] / 2, at[1] / 2)
            if self._start_at(half):
                return True
            if not self.engine.objective < before:
                return self._start_at(at)
            at = half

    def _start_at(self, at: tuple[Array, float] | None) -> bool:
        if at is None:
            if self.null is None:
                return self.engine.start(self.coef, 0.0)
            null = self.scaling.null_in(self.null)
            self.coef[null.features] = null.coef
            return self.engine.start(self.coef, null.intercept)
        self.coef[:] = self.scaling.coef_in(at[0])
        return self.engine.start(self.coef, self.scaling.intercept_in(at[1], slice(None), at[0]))

    def renewed(self, status: str) -> bool:
        """Whether the solve is to go on from weights whose predictions were computed anew.

        Predictions that were carried along from a far start, or a model in float32, may have gone astray; the guard
        shows it. Small problems are then solved in float64 first.
        """
        point = self.guarded(status)
        if point.is_proven or self.n_renewals == _MAX_RENEWALS:
            return False
        before, b = self.engine.objective, point.inner_intercept
        drifted = (
            abs(before - self.engine.verify(point.features, self.coef[point.features], b)[0]) > ROUNDING * before
        )
        better = polish(self.scaling.inner, self.coef, b) if status != "converged" else None
        if better is not None and self.scaling.inner.objective(*better) >= before * (1 - ROUNDING):
            better = None
        if better is None and not drifted:
            return False
        self.n_renewals += 1
        if better is not None:
            self.coef[:], b = better
        self._point = None
        self.engine.start(self.coef, b)
        return True

    def guarded(self, status: str) -> Guarded:
        if self._point is None or self._last != status:
            thorough = status not in ("converged", "interrupted")
            self._point = self._guard(thorough)
            if status == "converged" and not self._point.is_proven:
                self._point = self._guard(True)
            self._last = status
        return self._point

    def _guard(self, thorough: bool) -> Guarded:
        # what is returned is this array: whatever is in it counts, be it in the engine's support or not
        features = np.flatnonzero(self.coef).astype(np.int32)
        return guard(self.scaling, self.model, self.engine, self.coef, features, thorough)


def _message(status: str, gap: float, f_null: float, tol: float, n_iter: int) -> str:
    reached = f"relative gap {gap / f_null:.2g}, asked for {tol:.2g}" if f_null > 0 else f"gap {gap:.2g}"
    if status == "converged":
        return f"converged: {reached}"
    if status == "max_iter":
        return f"stopped at max_iter={n_iter}: {reached}; raise max_iter or tol"
    if status == "max_seconds":
        return f"stopped at max_seconds: {reached}; raise max_seconds or tol"
    if status == "stalled":
        return f"no step lowers the objective in floating point any more: {reached}; raise tol"
    return f"interrupted: {reached}; the best point so far is returned"
