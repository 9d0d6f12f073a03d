"""The watch over the default solver: when to stop, what to record, what to return."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.certificate import scaled_dual_point
from blockgreedy.trace import Record, Trace

if TYPE_CHECKING:
    from blockgreedy import _core
    from blockgreedy.backends.cpu import CpuModel
    from blockgreedy.partition import Partition
    from blockgreedy.problem import Problem

Array = NDArray[np.float64]

MAX_ITER = 1000


def run_working_set(
    problem: Problem,
    model: CpuModel,
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
        null = problem.null_model
    if start is None:
        coef = np.zeros(problem.n_features)  # memory is only touched where a weight is set
        intercept = 0.0
        if null is not None:
            coef[null.features] = null.coef
            intercept = null.intercept
    else:
        coef, intercept = start[0].copy(), start[1]
    engine = model.working_set(n_blocks, partition, tol, -1.0 if null is None else null.objective)
    trace = Trace()
    limit = MAX_ITER if max_iter is None else max_iter
    last_seconds = -np.inf
    status = ""
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
            objective=engine.objective,
            nonzeros=engine.n_support,
            nonzeros_touched=engine.nonzeros_touched,
            critical_nonzeros=engine.nonzeros_touched,
            active_blocks=engine.n_blocks,
            gap=engine.objective - engine.dual_value,
        )
        trace.records.append(now)
        return callback is not None and callback(now) is True

    try:
        if engine.start(coef, intercept):
            status = "interrupted"
        if not np.isfinite(engine.objective):
            _ = problem.null_model  # says which values overflow
            raise ValueError("the objective is not finite where the solve starts; rescale X, y or the start")
        stop = record(True)
        while not status:
            if engine.objective - engine.dual_value <= tol * engine.f_null or engine.explained:
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
    except KeyboardInterrupt:
        status = "interrupted"
    if not trace.records or trace.records[-1].iteration != engine.n_iter:
        record(True)
    status, gap, better = prove(problem, model, engine, tol, status)
    dual = engine.release_dual() if better is None else better
    phases = dict(zip(engine.phases, engine.seconds, strict=True))
    seconds = time.perf_counter() - began
    return {
        "coef": coef,
        "intercept": engine.intercept,
        "objective": engine.objective,
        "gap": gap,
        "dual": dual,
        "status": status,
        "message": _message(status, gap, engine.f_null, tol, engine.n_iter),
        "n_iter": engine.n_iter,
        "seconds": seconds - phases["certificate"],
        "check_seconds": phases["certificate"],
        "phase_seconds": phases,
        "trace": trace,
    }


def prove(
    problem: Problem, model: CpuModel, engine: _core.WorkingSet, tol: float, status: str
) -> tuple[str, float, Array | None]:
    """(status, gap, dual point where it is not the engine's own) of a solve that ends here, with this status."""
    unproved = status not in ("converged", "interrupted")
    if unproved:
        engine.certify()
    dual_value, better = engine.dual_value, None
    if unproved and engine.objective - dual_value > tol * engine.f_null:
        point, value = scaled_dual_point(problem, np.array(engine.predictions), model)
        if value > dual_value:
            better, dual_value = point, value
    gap = engine.objective - dual_value
    gap = 0.0 if abs(gap) <= 1e-13 * engine.objective or engine.explained else gap  # rounding, of either sign
    return "converged" if unproved and gap <= tol * engine.f_null else status, gap, better


def _message(status: str, gap: float, f_null: float, tol: float, n_iter: int) -> str:
    reached = f"relative gap {gap / f_null:.2g}, asked for {tol:.2g}" if f_null > 0 else f"gap {gap:.2g}"
    if status == "converged":
        return f"converged: {reached}"
    if status == "max_iter":
        return f"stopped at max_iter={n_iter}: {reached}; raise max_iter or tol"
    if status == "max_seconds":
        return f"stopped at max_seconds: {reached}; raise max_seconds or tol"
    if status == "stalled":
        return (
            f"no step lowers the objective in floating point any more: {reached}; raise tol, and rescale X and y "
            "if their values are far from 1"
        )
    return f"interrupted: {reached}; the best point so far is returned"
