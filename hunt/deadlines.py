"""What must hold of problems that take seconds: limits are heard, objectives are true."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np

import blockgreedy as bg
from hunt.case import Case
from hunt.lateness import on_time, timed
from hunt.oracle import Exact
from hunt.outcome import Outcome

_CLOSE = 1e-9  # of an objective in float64
_WHOLE = 3.0  # what one iteration may cost, in units of the whole fit


def check_deadline(case: Case, outcome: Outcome) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if case.use["call"] == "one iteration":
            _check_one_iteration(case, outcome)
            return
        points = on_time(case, outcome, partial(run_once, case))
    for alpha, w, b, point in points:
        outcome.statuses.append(point.status)
        value = _objective(case, alpha, w, b)
        if not abs(point.objective - value) <= _CLOSE * max(value, _objective(case, alpha, 0 * w, 0.0)):
            outcome.found("false objective", f"reported {point.objective!r}, is {value!r}")
        if not point.gap >= -_CLOSE * value:
            outcome.found("negative gap", f"{point.gap!r}")


def run_once(case: Case) -> list[tuple[float, np.ndarray, float, Any]]:
    """Solves or follows the path; alpha, weights, intercept and the point itself."""
    problem = bg.Problem(case.X, case.y, **case.problem)
    if case.use["call"] == "path":
        path = bg.solve_path(problem, n_threads=1, **case.options)
        return [(point.alpha, path.coef(k), point.intercept, point) for k, point in enumerate(path.points)]
    solution = bg.solve(problem, n_threads=1, **case.options)
    return [(case.problem["alpha"], solution.coef, solution.intercept, solution)]


def _check_one_iteration(case: Case, outcome: Outcome) -> None:
    """max_iter=1 does not take longer than the whole fit."""
    whole = {k: v for k, v in case.options.items() if k != "max_iter"}

    def seconds(**options: Any) -> float:
        return timed(lambda: bg.solve(bg.Problem(case.X, case.y, **case.problem), n_threads=1, **options))[1]

    with_all, with_one = seconds(**whole, max_seconds=2.0), seconds(**case.options, max_seconds=10.0)
    outcome.statuses.append("max_iter")
    if with_one > _WHOLE * with_all + 0.1:
        again = min(seconds(**case.options, max_seconds=10.0) for _ in range(2))
        if again > _WHOLE * with_all + 0.1:
            outcome.found("late", f"max_iter=1 takes {again:.2f} s, the whole fit {with_all:.2f} s")


def _objective(case: Case, alpha: float, w: np.ndarray, b: float) -> float:
    """In float64: the rows are too many for more."""
    given = {k: case.problem[k] for k in ("loss", "huber_delta") if k in case.problem}
    rows = Exact(np.zeros((len(case.y), 1)), case.y, alpha=0.0, offset=case.X @ w + b, **given)
    u = case.problem.get("penalty_weights", np.ones(len(w)))
    scales = _scales(case) if case.problem["standardize"] else np.ones(len(w))
    used = w != 0
    scaled = (np.abs(w) * scales)[used]
    ridge = case.problem.get("l2", 0.0) / 2 * float(np.sum(scaled**2))
    return float(rows.primal(np.zeros(1))) + alpha * float(np.sum(u[used] * scaled)) + ridge


def _scales(case: Case) -> np.ndarray:
    """Standard deviations, or root mean squares without an intercept."""
    X = case.X.toarray() if hasattr(case.X, "toarray") else case.X
    return np.sqrt(np.mean((X - (np.mean(X, axis=0) if case.problem["fit_intercept"] else 0.0)) ** 2, axis=0))
