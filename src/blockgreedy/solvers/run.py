"""The loop of every run: when to stop, what to record, and what the status is at the end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from blockgreedy.base.deadline import NEVER
from blockgreedy.problem.certificate import ROUNDING
from blockgreedy.solvers.solution import Solution, message
from blockgreedy.solvers.trace import Record, Trace

if TYPE_CHECKING:
    from blockgreedy.backends.engine import Engine, Point, Steps
    from blockgreedy.base.deadline import Deadline
    from blockgreedy.base.names import Status
    from blockgreedy.partitions.partition import Partition
    from blockgreedy.problem.problem import Problem

_MORE_ITERATIONS = 100  # after a renewal


@dataclass(frozen=True)
class Limits:
    """When a run ends though it has not converged."""

    max_iter: int
    deadline: Deadline
    may_extend: bool = False  # nobody asked for this max_iter: reaching it is a stall by another name
    sure: float = 1.0  # the part of the gap asked for that ends the run before its first step
    ended: Status | Literal[""] = ""  # why there is no time for even one step


class Recorder:
    """The trace of a run: which iterations it records, and the callback that hears of each record."""

    def __init__(
        self,
        engine: Engine,
        trace_iters: int | None = None,
        trace_seconds: float | None = None,
        callback: Callable[[Record], bool | None] | None = None,
    ) -> None:
        self.engine, self.trace, self.callback = engine, Trace(), callback
        self._iters, self._seconds = trace_iters, trace_seconds
        self._next_iter = float("inf") if trace_iters is None else trace_iters
        self._next_seconds = float("inf") if trace_seconds is None else trace_seconds

    def until_due(self) -> tuple[float, float]:
        """Iterations and seconds until the next record."""
        return self._next_iter - self.engine.n_iter, self._next_seconds - self.engine.seconds

    def record(self, *, always: bool = False) -> bool:
        """Records where the engine stands, if that is due; True if the callback wants to stop.

        Without an interval every iterate is recorded whose gap is known.
        """
        engine, seconds = self.engine, self.engine.seconds
        is_new = not self.trace.records or self.trace.records[-1].iteration != engine.n_iter
        due = self._iters is None and self._seconds is None and not math.isnan(engine.gap)
        if self._iters is not None and engine.n_iter >= self._next_iter:
            due, self._next_iter = True, self._next_iter + self._iters
        due = due or seconds >= self._next_seconds
        if not is_new or not (due or always):
            return False
        if self._seconds is not None:
            self._next_seconds = seconds + self._seconds
        counters = engine.counters()
        now = Record(
            iteration=engine.n_iter,
            seconds=seconds,
            objective=engine.objective,
            nonzeros=counters.nonzeros,
            nonzeros_touched=counters.nonzeros_touched,
            critical_nonzeros=counters.critical_nonzeros,
            active_blocks=counters.active_blocks,
            gap=engine.gap,
            spectral_radius=counters.spectral_radius,
        )
        self.trace.records.append(now)
        return self.callback is not None and bool(self.callback(now))

    def correct(self, point: Point, n_iter: int) -> None:
        """The last record says what was recomputed of the point, where the iterations' own values had drifted."""
        if not self.trace.records or self.trace.records[-1].iteration != n_iter:  # Ctrl-C inside the last record
            return
        last = self.trace.records[-1]
        if point.is_last and abs(last.objective - point.objective) > ROUNDING * point.objective:
            self.trace.records[-1] = replace(last, objective=point.objective, gap=point.gap)


def run(
    engine: Steps,
    begin: Callable[[], bool],
    limits: Limits,
    recorder: Recorder | None = None,
) -> Status:
    """Runs the engine until a reason to stop holds, and returns it.

    ``begin`` takes the engine to its first iterate (``Engine.start`` or ``move_to``). Ctrl-C and the callback are
    heard between steps. When time is up it goes on to nothing that would only improve the result.
    """
    status: Status | Literal[""] = limits.ended
    stop, first, limit, sure = False, engine.n_iter, limits.max_iter, limits.sure

    def reason() -> Status | Literal[""]:
        if engine.is_enough(sure):
            return "converged"
        if stop:
            return "interrupted"
        if engine.n_iter - first >= limit:
            return "max_iter"
        return "max_seconds" if limits.deadline.has_passed() else ""

    try:
        if begin():
            status = "interrupted"
        if recorder is not None:
            stop = recorder.record(always=True)
        while not status:
            status = reason()
            if not status:
                n_iter, seconds = (np.inf, np.inf) if recorder is None else recorder.until_due()
                left = min(n_iter, first + limit - engine.n_iter)
                told = engine.step(int(left), min(seconds, limits.deadline.seconds_left()))
                sure = 1.0
                if recorder is not None:
                    stop = recorder.record() or stop
                if told and told != "interrupted" and engine.is_enough():
                    status = "converged"
                else:
                    status = told
            may_renew = status in ("converged", "stalled") or (status == "max_iter" and limits.may_extend)
            if status == "stalled" and limits.deadline.has_passed():
                status = "max_seconds"  # nobody looks for another way on
            elif status and may_renew and not limits.deadline.has_passed() and engine.renew(status):
                status = ""
                if limits.may_extend:
                    limit = max(limit, engine.n_iter - first + _MORE_ITERATIONS)
    except KeyboardInterrupt:
        status = "interrupted"
    if recorder is not None:
        try:
            recorder.record(always=True)
        except KeyboardInterrupt:  # from the callback: the record is there
            status = "interrupted"
    assert status
    return status


def final_status(status: Status, point: Point, deadline: Deadline = NEVER) -> Status:
    """The status that the recomputed point allows. ``deadline``: when it is too late to go on from there."""
    if status in ("interrupted", "diverged"):
        return status
    if point.is_proven:
        return "converged"
    if status != "converged":
        return status
    return "max_seconds" if deadline.has_passed() else "stalled"


def run_to_solution(
    problem: Problem,
    recorder: Recorder,
    limits: Limits,
    *,
    tol: float,
    began: float,
    partition: Partition | None,
) -> Solution:
    """A run from its start to the Solution."""
    engine = recorder.engine
    status = run(engine, engine.start, limits, recorder)
    n_iter = engine.n_iter
    point = engine.point(status)
    status = final_status(status, point, limits.deadline)
    recorder.correct(point, n_iter)
    coef = np.zeros(problem.n_features)
    coef[point.features] = point.values
    assert point.dual is not None
    seconds, checks = time.perf_counter() - began, engine.check_seconds()
    return Solution(
        coef=coef,
        intercept=point.intercept,
        objective=point.objective,
        gap=point.gap,
        dual=point.dual,
        status=status,
        message=message(status, point.gap, engine.f_null, tol, n_iter, engine.remark(status)),
        n_iter=n_iter,
        seconds=seconds - checks,
        check_seconds=checks,
        trace=recorder.trace,
        phase_seconds=engine.phase_seconds(),
        partition=partition,
        feature_names=problem.feature_names,
        alpha=problem.alpha,
        l2=problem.l2,
        f_null=engine.f_null,
    )
