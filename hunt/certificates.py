"""What must hold of a point, its objective and its certificate, held against the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np

import blockgreedy as bg
from hunt.case import Case
from hunt.optimum import minimise
from hunt.oracle import Exact
from hunt.outcome import Outcome

_LEAST, _LEAST_NORMAL = 5e-324, 2.3e-308  # the least number, and the least one with all of its digits, or nearly
_DRIFT = 1e-13  # of the null model's objective, which no tol comes near: predictions are updated, not recomputed


def check_solution(case: Case, problem: bg.Problem, exact: Exact, solution: bg.Solution, outcome: Outcome) -> None:
    """A Solution: its certificate, message and trace."""
    f_null = null_objective(problem, exact, outcome)
    outcome.statuses.append(solution.status)
    check_point(
        case, exact, f_null, solution.coef, solution.intercept, solution.objective, solution.gap, solution.dual,
        solution.status, outcome,
    )  # fmt: skip
    status, message = solution.status, solution.message
    words = {"stalled": "no step", "diverged": "the run"}.get(status, status)
    if words not in message:
        outcome.found("message", f"status is {status!r}, message {message!r}")
    allowed = {"converged", "stalled", "max_iter"}
    allowed |= {"max_seconds"} if case.options.get("max_seconds") else set()
    allowed |= {"interrupted"} if case.stop is not None else set()
    allowed |= {"diverged"} if case.options.get("method", "auto") != "auto" else set()
    if status not in allowed:
        outcome.found("status", f"{status!r} without a reason")
    objective = np.asarray(solution.trace["objective"])
    _check_drift(case, problem, exact, solution, float(f_null), outcome)
    if case.options.get("method", "auto") == "auto":
        floor = exact.floor(solution.coef, solution.intercept)
        rise = np.max(np.diff(objective), initial=0.0)
        # a solve that goes on from predictions computed anew has the objective that its weights have
        if rise > floor + 1e-9 * objective[0]:
            outcome.found("rise", f"the objective rose by {rise:.3g} of {objective[0]:.6g} along the trace")
        if len(objective) and abs(objective[-1] - solution.objective) > floor:
            outcome.found("trace", f"ends at {objective[-1]!r}, the solution at {solution.objective!r}")
        if status == "converged" and not any(f.check in _FALSE for f in outcome.findings):
            again = problem.duality_gap(solution.coef, solution.intercept, dual=solution.dual)
            if not again <= case.tol * float(f_null) * (1 + 1e-6) + 10 * floor:
                outcome.found("recheck", f"Problem.duality_gap says {again:.6g}, the solution {solution.gap:.6g}")


_FALSE = ("false gap", "false objective", "false certificate", "infeasible dual", "negative gap", "outside bounds")


def _check_drift(
    case: Case, problem: bg.Problem, exact: Exact, solution: bg.Solution, f_null: float, outcome: Outcome
) -> None:
    """What was carried from step to step is what the same weights have when they are evaluated anew."""
    w, b = solution.coef, solution.intercept
    if outcome.findings or solution.status == "diverged":
        return
    again, true = problem.objective(w, b), exact.primal(w, b)
    unavoidable = 10 * abs(again - true) + 1e-12 * max(true, f_null) + 1e-320
    if not abs(solution.objective - true) <= unavoidable:
        outcome.found("drift", f"objective {solution.objective!r}, evaluated anew {again!r}, is {float(true)!r}")


def check_point(
    case: Case,
    exact: Exact,
    f_null: Any,
    w: np.ndarray,
    b: float,
    objective: float,
    gap: float,
    dual: np.ndarray | None,
    status: str,
    outcome: Outcome,
) -> None:
    """A point and its certificate."""
    primal = exact.primal(w, b)
    if not np.isfinite(primal):
        outcome.found("outside bounds", "the weights are not finite or not inside their bounds")
        return
    floor = exact.floor(w, b) + _DRIFT * float(f_null)
    if not abs(objective - primal) <= floor:
        outcome.found("false objective", f"reported {objective!r}, is {float(primal)!r}; rounding allows {floor:.3g}")
    if dual is None:
        outcome.found("infeasible dual", "no dual point was returned")
        return
    verdict = exact.dual(dual, w, b)
    floor += verdict.floor
    if gap < -floor:
        outcome.found("negative gap", f"{gap!r}, {share(gap, f_null):.3g} of the null model's objective")
    if verdict.complaints and status == "converged":
        outcome.found("infeasible dual", "; ".join(verdict.complaints))
    true = primal - verdict.value + verdict.leak
    if not verdict.complaints:
        if not gap >= true - floor:
            outcome.found("false gap", f"reported {gap!r}, is {float(true)!r}; rounding allows {floor:.3g}")
        if status == "converged" and not true <= case.tol * f_null * (1 + 1e-6) + max(floor, exact.least_gap()):
            outcome.found(
                "false certificate",
                f"converged to tol={case.tol:.3g}, but the relative gap is {share(true, f_null):.6g}",
            )
    elif status != "converged" and np.isfinite(gap):
        outcome.found("infeasible dual", f"gap {gap:.3g} with status {status}: " + "; ".join(verdict.complaints))
    if status in ("stalled", "max_iter") and not case.has_budget:
        # a far limit makes rounding of the dual value large; who must prove has to do so without it
        floor = exact.floor(w, b) + _DRIFT * float(f_null) if case.must_prove else floor
        _judge_stall(case, exact, f_null, w, b, gap, floor, outcome)


def _judge_stall(
    case: Case, exact: Exact, f_null: Any, w: np.ndarray, b: float, gap: float, floor: float, outcome: Outcome
) -> None:
    if case.tol * f_null <= 10 * floor:  # nobody could have proved it
        outcome.statuses[-1:] = ["at rounding"]
        return
    _, _, best = minimise(exact, w, b)
    error = share(exact.primal(w, b) - best, f_null)
    outcome.errors.append(error)
    if case.must_converge and error > case.tol:
        outcome.found(
            "stall",
            f"relative gap {share(gap, f_null):.3g} for tol={case.tol:.3g}; the true relative error is {error:.3g}",
        )
    elif case.must_prove:
        outcome.found(
            "unproved",
            f"relative gap {share(gap, f_null):.3g} for tol={case.tol:.3g} at weights whose error is {error:.3g}",
        )


def null_objective(problem: bg.Problem, exact: Exact, outcome: Outcome) -> Any:
    """The scale of tol, by the oracle where it has one."""
    ours = exact.null_objective()
    null = problem.null_model
    w = null.full_coef(problem.n_features)
    here, floor = exact.primal(w, null.intercept), exact.floor(w, null.intercept)
    if not abs(here - null.objective) <= floor:
        outcome.found("null model", f"says {null.objective!r}, its weights have {float(here)!r}")
    if ours is None:
        return here
    if not here - ours <= 1e-9 * ours + floor:
        outcome.found("null model", f"has {float(here)!r}, the best intercept {float(ours)!r}")
    return ours


def exact_problem(case: Case, problem: bg.Problem, outcome: Outcome) -> Exact:
    """The problem in extended precision; standard deviations are the package's once they are found right."""
    return Exact(case.X, case.y, **case.problem, scales=sound_scales(case, problem, outcome))


def sound_scales(case: Case, problem: bg.Problem, outcome: Outcome) -> np.ndarray | None:
    """The package's standard deviations, and in the place of wrong ones, which are a finding, the right ones."""
    if not case.problem.get("standardize"):
        return None
    exact = Exact(case.X, case.y, **{**case.problem, "alpha": 1.0})
    rounding = 1e-15 * len(exact.y) ** 0.5 * np.max(np.abs(exact.X), axis=0, initial=0) + _LEAST
    right = np.abs(problem.scales - exact.sd) <= 1e-9 * exact.sd + rounding  # not where it is no number
    constant = (problem.scales == 0) & (exact.sd < _LEAST_NORMAL)  # its weight could not be written
    if not np.all(right | constant):
        j = int(np.flatnonzero(~(right | constant))[0])
        outcome.found("scales", f"sd of column {j} is {float(exact.sd[j])!r}, not {float(problem.scales[j])!r}")
    return np.where(right | constant, problem.scales, exact.sd)


_SOLUTION = ("coef", "intercept", "objective", "gap", "dual", "status", "n_iter")
_POINT = ("alpha", "features", "values", *_SOLUTION[1:])


def check_same_path(one: bg.SolutionPath, other: bg.SolutionPath, what: str, outcome: Outcome) -> None:
    if len(one.points) != len(other.points):
        outcome.found("bits", f"the number of points differs between {what}")
    for here, there in zip(one.points, other.points, strict=False):
        check_same_bits(here, there, what, outcome, _POINT)


def check_same_bits(one: Any, other: Any, what: str, outcome: Outcome, names: tuple[str, ...] = _SOLUTION) -> None:
    for name in names:
        a, b = getattr(one, name), getattr(other, name)
        same = a.tobytes() == b.tobytes() if isinstance(a, np.ndarray) else a == b or (a != a and b != b)
        if not same:
            outcome.found("bits", f"{name} differs between {what}")
            return


def share(value: Any, whole: Any) -> float:
    """value/whole, for a whole that may be 0 (a constant target)."""
    return float(value / whole) if whole > 0 else float(np.inf if value > 0 else 0.0)
