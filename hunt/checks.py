"""What must hold: runs a Case with the package and holds the result against the oracle."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

import blockgreedy as bg
from hunt.case import Case, dense
from hunt.optimum import minimise
from hunt.oracle import CLASSIFIERS, Exact

_LATE = 3.0  # seconds of processor time that a run may take beyond max_seconds: these problems are tiny
_DRIFT = 1e-13  # of the null model's objective, which no tol comes near: predictions are updated, not recomputed
_FAR = 20  # powers of ten beyond which a problem may be refused with advice


# Every check, the worst first.
SEVERITY = (
    "crash", "hang", "false certificate", "false gap", "negative gap", "infeasible dual", "false objective",
    "outside bounds", "overtime", "stall", "cross-validation", "refit", "bits", "modified", "null model", "scales",
    "rise", "exception", "recheck", "status", "message", "trace", "warning",
)  # fmt: skip


@dataclass
class Finding:
    check: str  # which promise was broken
    detail: str


@dataclass
class Outcome:
    """What became of a case."""

    statuses: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)  # true relative errors of stalls
    seconds: float = 0.0

    def found(self, check: str, detail: str) -> None:
        self.findings.append(Finding(check, detail))

    @property
    def worst(self) -> Finding | None:
        """One defect breaks several promises; this is the one to name it by."""
        return min(self.findings, key=lambda finding: SEVERITY.index(finding.check), default=None)


def run(case: Case) -> Outcome:
    """Does what the case says and looks at everything that comes back."""
    outcome = Outcome()
    kept = _bytes(case)
    began = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            _CALLS[case.call](case, outcome)
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
    outcome.seconds = time.perf_counter() - began[0]
    for warning in heard:
        if warning.category is RuntimeWarning:
            outcome.found("warning", f"{warning.filename.rsplit('/', 1)[-1]}:{warning.lineno}: {warning.message}")
            break
    if _bytes(case) != kept:
        outcome.found("modified", "X, y or an option is not what it was before the call")
    limit = case.options.get("max_seconds")
    if limit is not None and time.process_time() - began[1] > limit + _LATE:
        outcome.found("overtime", f"{time.process_time() - began[1]:.1f} s with max_seconds={limit:g}")
    return outcome


# Solutions.


def _solve(case: Case, outcome: Outcome) -> None:
    problem = bg.Problem(case.X, case.y, **case.problem)
    exact = _exact(case, problem, outcome)
    solution = solve(case, problem)
    check_solution(case, problem, exact, solution, outcome)
    if case.seed % 8 == 0 and not case.has_budget:
        other = solve(case, problem, n_threads=2)
        _same_bits(solution, other, "n_threads=1 and n_threads=2", outcome)


def solve(case: Case, problem: bg.Problem, **options: Any) -> bg.Solution:
    """The package's solve, with the case's callback."""
    given = {"n_threads": 1, **case.options, **options}
    if case.stop is not None:
        given["callback"] = stopping(*case.stop)
    return bg.solve(problem, **given)


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
        outcome.found("negative gap", f"{gap!r}, {_part(gap, f_null):.3g} of the null model's objective")
    if verdict.complaints and status == "converged":
        outcome.found("infeasible dual", "; ".join(verdict.complaints))
    true = primal - verdict.value + verdict.leak
    if not verdict.complaints:
        if not gap >= true - floor:
            outcome.found("false gap", f"reported {gap!r}, is {float(true)!r}; rounding allows {floor:.3g}")
        if status == "converged" and not true <= case.tol * f_null * (1 + 1e-6) + floor:
            outcome.found(
                "false certificate",
                f"converged to tol={case.tol:.3g}, but the relative gap is {_part(true, f_null):.6g}",
            )
    elif status != "converged" and np.isfinite(gap):
        outcome.found("infeasible dual", f"gap {gap:.3g} with status {status}: " + "; ".join(verdict.complaints))
    if status in ("stalled", "max_iter") and not case.has_budget:
        _judge_stall(case, exact, f_null, w, b, gap, floor, outcome)


def _judge_stall(
    case: Case, exact: Exact, f_null: Any, w: np.ndarray, b: float, gap: float, floor: float, outcome: Outcome
) -> None:
    if case.tol * f_null <= 10 * floor:  # nobody could have proved it
        outcome.statuses[-1:] = ["at rounding"]
        return
    _, _, best = minimise(exact, w, b)
    error = _part(exact.primal(w, b) - best, f_null)
    outcome.errors.append(error)
    if case.must_converge and error > case.tol:
        outcome.found(
            "stall",
            f"relative gap {_part(gap, f_null):.3g} for tol={case.tol:.3g}; the true relative error is {error:.3g}",
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


def _exact(case: Case, problem: bg.Problem, outcome: Outcome) -> Exact:
    """The problem in extended precision; standard deviations are the package's once they are found right."""
    exact = Exact(case.X, case.y, **case.problem)
    if not case.problem.get("standardize"):
        return exact
    rounding = 1e-15 * len(exact.y) ** 0.5 * np.max(np.abs(exact.X), axis=0, initial=0)
    wrong = np.abs(problem.scales - exact.sd) > 1e-9 * exact.sd + rounding
    if np.any(wrong):
        j = int(np.flatnonzero(wrong)[0])
        outcome.found("scales", f"sd of column {j} is {float(exact.sd[j])!r}, not {float(problem.scales[j])!r}")
    return Exact(case.X, case.y, scales=problem.scales, **case.problem)


def _same_bits(one: bg.Solution, other: bg.Solution, what: str, outcome: Outcome) -> None:
    for name in ("coef", "intercept", "objective", "gap", "dual", "status", "n_iter"):
        a, b = getattr(one, name), getattr(other, name)
        same = a.tobytes() == b.tobytes() if isinstance(a, np.ndarray) else a == b or (a != a and b != b)
        if not same:
            outcome.found("bits", f"{name} differs between {what}")
            return


# Forms of X.


def forms(X: np.ndarray) -> Iterator[tuple[str, str, Any]]:
    """(group, name, X): the results of a group are equal bit for bit."""
    csc = sp.csc_array(X)
    yield "sparse", "csc", csc
    yield "sparse", "csr", sp.csr_array(X)
    yield "sparse", "coo", sp.coo_array(X)
    wide = csc.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    yield "sparse", "csc with int64 indices", wide
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    yield "sparse", "csr with int64 indices", wide
    turned = csc.copy()
    for j in range(X.shape[1]):
        part = slice(turned.indptr[j], turned.indptr[j + 1])
        turned.indices[part], turned.data[part] = turned.indices[part][::-1].copy(), turned.data[part][::-1].copy()
    turned.has_sorted_indices = False
    yield "sparse", "csc with unsorted indices", turned
    coo = sp.coo_array(X)
    twice = (np.r_[coo.data / 2, coo.data / 2], (np.r_[coo.row, coo.row], np.r_[coo.col, coo.col]))
    yield "sparse", "coo with every entry in two halves", sp.coo_array(twice, shape=X.shape)
    yield "dense", "dense in C order", np.ascontiguousarray(X)
    yield "dense", "dense in Fortran order", np.asfortranarray(X)
    if np.all(np.round(X) == X) and np.max(np.abs(X), initial=0) < 1000:
        yield "dense", "dense int64", X.astype(np.int64)
        yield "sparse", "csc int32", csc.astype(np.int32)
        if np.all((X == 0) | (X == 1)):
            yield "dense", "dense bool", X.astype(bool)
    if np.all(X.astype(np.float32) == X):
        yield "sparse float32", "csc float32", csc.astype(np.float32)
        yield "sparse float32", "csr float32", sp.csr_array(X).astype(np.float32)
        yield "dense float32", "dense float32", np.asfortranarray(X.astype(np.float32))


def _formats(case: Case, outcome: Outcome) -> None:
    first: dict[str, tuple[str, bg.Solution]] = {}
    for group, name, X in forms(dense(case.X)):
        problem = bg.Problem(X, case.y, **case.problem)
        solution = solve(case, problem)
        if group in first:
            _same_bits(first[group][1], solution, f"{first[group][0]} and {name}", outcome)
        else:
            first[group] = name, solution
            check_solution(case, problem, _exact(case, problem, outcome), solution, outcome)
        if outcome.findings:
            return


# Paths.


def _path(case: Case, outcome: Outcome) -> None:
    problem = bg.Problem(case.X, case.y, **case.problem)
    path = bg.solve_path(problem, **{"n_threads": 1, "keep_duals": True, **case.options})
    ratio = case.options.get("l1_ratio")
    exact, f_null = None, None
    for k, point in enumerate(path.points):
        alpha, l2 = point.alpha, case.problem.get("l2", 0.0)
        if ratio is not None:
            alpha, l2 = ratio * point.alpha, (1 - ratio) * point.alpha
        here = problem.with_alpha(alpha, l2)
        exact = Exact(case.X, case.y, **{**case.problem, "alpha": alpha, "l2": l2}, scales=problem.scales)
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


# Estimators.


def _fit(case: Case, outcome: Outcome) -> None:
    from sklearn.exceptions import ConvergenceWarning

    model = estimator(case)
    problem = dict(case.problem)
    rows = {name: problem.pop(name) for name in ("sample_weight", "offset") if name in problem}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if case.before is not None:
            model.fit(*case.before)
        model.fit(case.X, case.y, **rows)
    outcome.statuses.append(model.status_)
    w, b = np.ravel(np.asarray(model.coef_, dtype=np.float64)), float(np.ravel(model.intercept_)[0])
    gap = float(np.ravel(model.dual_gap_)[0])
    arguments = {**case.problem, "alpha": model.alpha_ if case.estimator.endswith("CV") else case.problem["alpha"]}
    ours = bg.Problem(case.X, case.y, **arguments)
    exact = _exact(case, ours, outcome)
    if case.estimator.endswith("CV"):
        exact = Exact(case.X, case.y, **arguments, scales=ours.scales)
    f_null = null_objective(ours, exact, outcome)
    primal, floor = exact.primal(w, b), exact.floor(w, b)
    if not np.isfinite(primal):
        outcome.found("outside bounds", "coef_ is not finite or not inside its bounds")
        return
    rivals = [("the oracle", minimise(exact, w, b, 0.3)[2])]
    peer = _peer(case, arguments)
    if peer is not None:
        rivals.append(("scikit-learn", exact.primal(*peer)))
    name, best = min(rivals, key=lambda rival: rival[1])
    error = primal - best
    if gap < -floor:
        outcome.found("negative gap", f"dual_gap_ is {gap!r}")
    if not error <= gap + 2 * floor:
        outcome.found(
            "false gap",
            f"dual_gap_ is {gap!r}, but {name} is better by {float(error)!r}; rounding allows {floor:.3g}",
        )
    if model.status_ == "converged" and not error <= case.tol * f_null * (1 + 1e-6) + 2 * floor:
        outcome.found(
            "false certificate",
            f"converged to tol={case.tol:.3g}, but {name} is better by {_part(error, f_null):.6g} of the null model",
        )
    if model.status_ in ("stalled", "max_iter") and not case.has_budget:
        outcome.errors.append(_part(error, f_null))
    if case.estimator == "LassoCV":
        _check_cv(case, model, outcome)


def estimator(case: Case) -> Any:
    """The estimator whose problem is the case's."""
    problem = dict(case.problem)
    options = {"n_threads": 1, **case.options}
    for name in ("loss", "sample_weight", "offset"):
        problem.pop(name, None)
    if "huber_delta" in problem:
        problem["delta"] = problem.pop("huber_delta")
    l2 = problem.pop("l2", 0.0)
    if case.estimator.endswith("CV"):
        problem.pop("alpha")
    else:
        problem["alpha"] = problem["alpha"] + l2
    return getattr(bg, case.estimator)(**problem, **options)


def _peer(case: Case, arguments: dict[str, Any]) -> tuple[np.ndarray, float] | None:
    """scikit-learn's weights, where it has the model."""
    plain = {"loss", "alpha", "l2", "fit_intercept", "positive", "huber_delta"}
    if arguments["loss"] != "squared" or any(
        arguments.get(name) not in (None, False) for name in set(arguments) - plain
    ):
        return None
    from sklearn.linear_model import ElasticNet

    alpha, l2 = arguments["alpha"], arguments.get("l2", 0.0)
    model = ElasticNet(
        alpha=alpha + l2, l1_ratio=alpha / (alpha + l2), fit_intercept=arguments["fit_intercept"],
        positive=arguments.get("positive", False), tol=1e-12, max_iter=2000,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(dense(case.X).astype(np.float64), case.y)
    return model.coef_, float(model.intercept_)


def _check_cv(case: Case, model: Any, outcome: Outcome) -> None:
    """The best mean squared error over folds is not above scikit-learn's by more than 2 % of the null model's."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LassoCV

    if case.problem.get("standardize"):
        return
    peer = LassoCV(
        alphas=np.asarray(model.alphas_), cv=case.options["cv"], fit_intercept=case.problem["fit_intercept"],
        positive=case.problem.get("positive", False), tol=1e-8, max_iter=2000,
    )  # fmt: skip
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        peer.fit(dense(case.X).astype(np.float64), case.y)
    if any(issubclass(warning.category, ConvergenceWarning) for warning in caught):
        return  # no optimum to compare with: a path that stops early may predict better by chance
    ours, theirs = np.min(np.mean(model.mse_path_, axis=1)), np.min(np.mean(peer.mse_path_, axis=1))
    null = np.var(case.y) if case.problem["fit_intercept"] else np.mean(np.square(case.y))
    if not ours <= theirs + 0.02 * null + 1e-6 * theirs:
        outcome.found("cross-validation", f"best mean squared error {ours:.6g}, scikit-learn's is {theirs:.6g}")


def _part(value: Any, whole: Any) -> float:
    """value/whole, for a whole that may be 0 (a constant target)."""
    return float(value / whole) if whole > 0 else float(np.inf if value > 0 else 0.0)


def _bytes(case: Case) -> list[bytes]:
    """Everything that a call could change."""
    arrays = []
    for value in (case.X, case.y, *case.problem.values(), *case.options.values()):
        if sp.issparse(value):
            arrays += [getattr(value, name) for name in ("data", "indices", "indptr") if hasattr(value, name)]
        elif isinstance(value, np.ndarray):
            arrays.append(value)
    return [array.tobytes() for array in arrays]


_CALLS: dict[str, Callable[[Case, Outcome], None]] = {
    "solve": _solve,
    "formats": _formats,
    "path": _path,
    "fit": _fit,
}
