"""What must hold: runs a Case with the package and holds the result against the oracle."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import blockgreedy as bg
from hunt.case import PATIENCE, Case, dense
from hunt.certificates import (
    check_point,
    check_same_bits,
    check_same_path,
    check_solution,
    exact_problem,
    null_objective,
    sound_scales,
)
from hunt.changes import check_change
from hunt.curves import check_curve
from hunt.damage import check_damage
from hunt.deadlines import check_deadline
from hunt.entries import check_features, check_null_model
from hunt.fits import check_fit
from hunt.forks import check_forks
from hunt.forms import forms
from hunt.lateness import on_time
from hunt.oracle import CLASSIFIERS, Exact
from hunt.outcome import Outcome
from hunt.ranks import by_ranks, matrix_and_targets

_QUICK = 1.0  # seconds of a fit by ranks that is done again
_FAR = 20  # powers of ten beyond which a problem may be refused with advice


def run(case: Case) -> Outcome:
    """Does what the case says and looks at everything that comes back."""
    outcome = Outcome()
    kept = _bytes(case)
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            CALLS[case.call](case, outcome)
        except (ValueError, OverflowError) as error:
            advice = any(word in str(error) for word in ("rescale", "overflow", "Rescale"))
            if case.exponent > _FAR and advice:
                outcome.statuses.append("refused")
            else:
                outcome.found("exception", f"{type(error).__name__}: {error}")
        except KeyboardInterrupt:
            outcome.found("exception", "KeyboardInterrupt was raised instead of returning what there is")
        except Exception as error:
            outcome.found("exception", f"{type(error).__name__}: {error}")
    outcome.seconds = time.perf_counter() - began
    for warning in heard:
        if warning.category is RuntimeWarning and Path(warning.filename).parent != Path(__file__).parent:
            outcome.found("warning", f"{warning.filename.rsplit('/', 1)[-1]}:{warning.lineno}: {warning.message}")
            break
    if _bytes(case) != kept:
        outcome.found("modified", "X, y or an option is not what it was before the call")
    return outcome


# Solutions.


def _solve(case: Case, outcome: Outcome) -> None:
    with matrix_and_targets(case) as (X, y):
        problem = bg.Problem(X, y, **case.problem)
        exact = exact_problem(case, problem, outcome)
        solution, *others = on_time(case, outcome, partial(solutions, case, problem))
        check_solution(case, problem, exact, solution, outcome)
        for rank, other in enumerate(others, 1):
            check_same_bits(solution, other, f"rank 0 and rank {rank}", outcome)
        if _is_repeated(case, solution.seconds):
            other = solve(case, problem, n_threads=2)
            check_same_bits(solution, other, "n_threads=1 and n_threads=2", outcome)


def _is_repeated(case: Case, seconds: float) -> bool:
    if case.grid is None:
        return case.seed % 8 == 0 and not case.has_budget
    return case.seed % 4 == 0 and case.options.get("max_seconds", PATIENCE) >= PATIENCE and seconds < _QUICK


def solve(case: Case, problem: bg.Problem, **options: Any) -> bg.Solution:
    """The package's solve, with the case's callback."""
    return solutions(case, problem, **options)[0]


def solutions(case: Case, problem: bg.Problem, **options: Any) -> list[bg.Solution]:
    """The same of every rank."""

    def work(**ranks: Any) -> bg.Solution:
        given = {"n_threads": 1, **case.options, **options, **ranks}
        if case.stop is not None:
            given["callback"] = stopping(*case.stop)
        return bg.solve(problem, **given)

    return by_ranks(case, work)


def stopping(how: str, at: int) -> Callable[[Any], bool]:
    """A callback that ends the run at its record number ``at``."""
    seen = -1

    def callback(record: Any) -> bool:
        nonlocal seen
        seen += 1
        if seen >= at and how == "raise":
            raise KeyboardInterrupt
        return seen >= at

    return callback


# Forms of X.


def _formats(case: Case, outcome: Outcome) -> None:
    first: dict[str, tuple[str, bg.Solution]] = {}
    for group, name, X in forms(dense(case.X)):
        problem = bg.Problem(X, case.y, **case.problem)
        solution = on_time(case, outcome, partial(solve, case, problem))
        if case.has_budget:
            check_solution(case, problem, exact_problem(case, problem, outcome), solution, outcome)
        elif group in first:
            check_same_bits(first[group][1], solution, f"{first[group][0]} and {name}", outcome)
        else:
            first[group] = name, solution
            check_solution(case, problem, exact_problem(case, problem, outcome), solution, outcome)
        if outcome.findings:
            return


# Paths.


def _path(case: Case, outcome: Outcome) -> None:
    with matrix_and_targets(case) as (X, y):
        problem = bg.Problem(X, y, **case.problem)
        options = {"n_threads": 1, "keep_duals": True, **case.options}

        def paths(**changed: Any) -> list[bg.SolutionPath]:
            return by_ranks(case, lambda **ranks: bg.solve_path(problem, **{**options, **changed}, **ranks))

        path, *others = on_time(case, outcome, paths)
        for rank, other in enumerate(others, 1):
            check_same_path(path, other, f"rank 0 and rank {rank}", outcome)
        if case.grid is not None and _is_repeated(case, path.seconds):
            check_same_path(path, paths(n_threads=2)[0], "n_threads=1 and n_threads=2", outcome)
        _check_path(case, problem, path, outcome)


def _check_path(case: Case, problem: bg.Problem, path: bg.SolutionPath, outcome: Outcome) -> None:
    ratio = case.options.get("l1_ratio")
    scales = sound_scales(case, problem, outcome)
    for k, point in enumerate(path.points):
        alpha, l2 = point.alpha, case.problem.get("l2", 0.0)
        if ratio is not None:
            alpha, l2 = ratio * point.alpha, (1 - ratio) * point.alpha
        here = problem.with_alpha(alpha, l2)
        exact = Exact(case.X, case.y, **{**case.problem, "alpha": alpha, "l2": l2}, scales=scales)
        f_null = null_objective(here, exact, outcome)
        outcome.statuses.append(point.status)
        check_point(
            case, exact, f_null, path.coef(k), point.intercept, point.objective, point.gap, point.dual, point.status,
            outcome,
        )  # fmt: skip
        if outcome.findings:
            outcome.findings[0].detail = f"point {k}, alpha={point.alpha!r}: {outcome.findings[0].detail}"
            return
    if case.seed % 4 == 0 and path.points and case.problem["loss"] not in CLASSIFIERS:
        _check_refit(case, path, len(path.points) - 1, outcome)


def _check_refit(case: Case, path: bg.SolutionPath, k: int, outcome: Outcome) -> None:
    """Of the features of a point, without any penalty."""
    solution = path.refit(k, n_threads=1)
    free = Exact(case.X, case.y, **{**case.problem, "alpha": 0.0, "l2": 0.0, "standardize": False})
    value, floor = free.primal(solution.coef, solution.intercept), free.floor(solution.coef, solution.intercept)
    if not abs(solution.objective - value) <= 10 * floor:
        outcome.found("refit", f"objective {solution.objective!r}, the loss of its weights is {float(value)!r}")


def _bytes(case: Case) -> list[bytes]:
    """Everything that a call could change."""
    arrays = []
    for value in (case.X, case.y, *case.problem.values(), *case.options.values()):
        if sp.issparse(value):
            arrays += [getattr(value, name) for name in ("data", "indices", "indptr") if hasattr(value, name)]
        elif isinstance(value, np.ndarray):
            arrays.append(value)
    return [array.tobytes() for array in arrays]


CALLS: dict[str, Callable[[Case, Outcome], None]] = {
    "solve": _solve,
    "formats": _formats,
    "path": _path,
    "fit": check_fit,
    "null model": check_null_model,
    "with_features": check_features,
    "curve": check_curve,
    "fork": check_forks,
    "change": check_change,
    "damage": check_damage,
    "deadline": check_deadline,
}
