"""What must hold of the null model and of a problem restricted to some of its features."""

from __future__ import annotations

from functools import partial

import numpy as np

import blockgreedy as bg
from hunt.case import Case, dense
from hunt.certificates import check_solution, exact_problem, null_objective, share, sound_scales
from hunt.lateness import on_time
from hunt.optimum import minimise
from hunt.oracle import Exact
from hunt.outcome import Outcome

_PER_COLUMN = ("penalty_weights", "lower", "upper")


def check_null_model(case: Case, outcome: Outcome) -> None:
    """The best intercept and unpenalised weights, against the oracle's optimiser."""
    problem = bg.Problem(case.X, case.y, **case.problem)
    exact = exact_problem(case, problem, outcome)
    null_objective(problem, exact, outcome)
    null = problem.null_model
    outcome.statuses.append(null.status)
    free = np.flatnonzero(exact.u == 0)
    given = {k: v for k, v in case.problem.items() if k not in ("alpha", "standardize", *_PER_COLUMN)}
    part = Exact(dense(case.X)[:, free], case.y, **given, alpha=0.0, scales=None)
    w = null.full_coef(problem.n_features)[free]
    here = part.primal(w, null.intercept)
    error = share(here - minimise(part, w, null.intercept)[2], here)
    if case.problem.get("l2") and len(free):
        return  # a ridge of unpenalised weights is that of the whole problem
    if here > 1e-9 and error > 1e-6:
        outcome.found("null model", f"its relative error is {error:.3g}, at objective {float(here):.6g}")


def check_features(case: Case, outcome: Outcome) -> None:
    """A problem restricted to some features is that of their columns."""
    features = case.use["features"]
    whole = bg.Problem(case.X, case.y, **case.problem)
    problem = whole.with_features(features, case.problem["alpha"])
    options = {k: v for k, v in case.options.items() if k not in ("method", "n_blocks")}
    solution = on_time(case, outcome, partial(bg.solve, problem, n_threads=1, **options))
    given = {k: v[features] if k in _PER_COLUMN and np.ndim(v) else v for k, v in case.problem.items()}
    scales = sound_scales(case, whole, outcome)
    part = Exact(dense(case.X)[:, features], case.y, **given, scales=None if scales is None else scales[features])
    check_solution(case, problem, part, solution, outcome)
