"""A case as a script of its own: the data written out, the call, and what is wrong with the answer."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from hunt.case import Case, dense
from hunt.optimum import minimise
from hunt.oracle import CLASSIFIERS, Exact
from hunt.outcome import Finding
from hunt.rank_script import is_stored, on_ranks, rank_imports, rank_settings, store_lines
from hunt.use_script import (
    change_lines,
    curve_lines,
    damage_lines,
    deadline_lines,
    fork_lines,
    wide_lines,
)

_LITERAL = 600  # numbers that are written out; more are packed

_SHOWN_BY_A_POINT = ("false certificate", "false gap", "infeasible dual", "stall")

_LOSS_CODE = {
    "squared": "(t - y) ** 2 / 2",
    "huber": "np.where(abs(t - y) <= {delta}, (t - y) ** 2 / 2, {delta} * (abs(t - y) - L({delta}) / 2))",
    "logistic": "np.log1p(np.exp(-abs(y * t))) + np.maximum(-y * t, 0)",
    "squared_hinge": "np.maximum(0, 1 - y * t) ** 2",
}


def script(case: Case, finding: Finding) -> str:
    """The text; it prints what the package says and, beside it, what extended precision says."""
    body = _BODIES[case.call](case)
    if finding.check == "refit":
        body = [*body[:2], "solution = path.refit(len(path) - 1)"]
        body += ["print(solution, solution.coef, solution.intercept)"]
    lines = [
        f"# {finding.check}: {finding.detail}",
        f"# Found by the hunt: python -m hunt --case {case.kind}:{case.seed}",
        "import numpy as np",
        *(["import scipy.sparse as sp"] if _uses_sparse(case) else []),
        "",
        "import blockgreedy as bg",
        *rank_imports(case),
        "",
        *rank_settings(case),
        *(["inf = np.inf"] if _has_inf(case) else []),
        *(case.recipe or [f"X = {_matrix(case.X)}", f"y = {_array(case.y)}", *wide_lines(case.X)]),
        *body,
    ]
    if case.call not in ("solve", "path", "fit", "formats"):
        return "\n".join(lines) + "\n"
    if finding.check in ("hang", "crash", "exception", "late", "bits", "modified", "warning", "cross-validation"):
        return "\n".join(lines) + "\n"
    return "\n".join(lines + _judgement(case, finding.check in _SHOWN_BY_A_POINT)) + "\n"


def _uses_sparse(case: Case) -> bool:
    written = "sp." in "".join(case.recipe) or case.call in ("formats", "damage")
    return written or sp.issparse(case.X) or is_stored(case)


def _has_inf(case: Case) -> bool:
    given = [*case.problem.values(), *case.options.values()]
    return any(np.any(np.isinf(value)) for value in given if isinstance(value, np.ndarray))


def _array(values: Any) -> str:
    array = np.asarray(values)
    kind = f", dtype=np.{array.dtype}" if array.dtype not in (np.float64, np.int64) else ""
    if array.size > _LITERAL:
        packed = base64.b85encode(np.ascontiguousarray(array).tobytes()).decode()
        return f'np.frombuffer(__import__("base64").b85decode({packed!r}), np.{array.dtype}).reshape({array.shape})'
    if array.ndim == 2:
        rows = ",\n    ".join(repr(row.tolist()) for row in array)
        return f"np.array([\n    {rows},\n]{kind})"
    return f"np.array({array.tolist()!r}{kind})"


def _matrix(X: Any) -> str:
    return f"sp.{X.format}_array({_array(dense(X))})" if sp.issparse(X) else _array(X)


def _arguments(given: dict[str, Any]) -> str:
    def text(value: Any) -> str:
        return _array(value) if isinstance(value, np.ndarray) else repr(value)

    return ", ".join(f"{name}={text(value)}" for name, value in given.items() if not _is_default(name, value))


def _is_default(name: str, value: Any) -> bool:
    defaults = {"fit_intercept": False, "standardize": False, "positive": False, "loss": "squared", "l2": 0.0}
    return name in defaults and np.ndim(value) == 0 and value == defaults[name]


def _problem(case: Case) -> list[str]:
    arguments = _arguments(case.problem)
    if is_stored(case):
        return [*store_lines(case), f"problem = bg.Problem(store, {arguments})"]
    return [f"problem = bg.Problem(X, y, {arguments})"]


def _options(case: Case) -> str:
    options = {"n_threads": 1, **case.options} if case.grid is None else case.options
    return _arguments(options)


def _solve(case: Case) -> list[str]:
    lines = [*_problem(case)]
    arguments = ["problem", _options(case)]
    if case.stop is not None:
        how, at = case.stop
        act = "raise KeyboardInterrupt" if how == "raise" else "return True"
        lines += ["seen = []", "def callback(record):", "    seen.append(record)"]
        lines += [f"    if len(seen) > {at}:", f"        {act}"]
        arguments += ["callback=callback"]
    return [
        *lines,
        *on_ranks(case, "solution", "bg.solve", arguments),
        "print(solution, solution.coef, solution.intercept)",
        "w, b, objective, gap = solution.coef, solution.intercept, solution.objective, solution.gap",
        'print("the package\'s own check of the gap:", problem.duality_gap(w, b, dual=solution.dual))',
    ]


def _formats(case: Case) -> list[str]:
    return [
        "for form in (sp.csc_array, sp.csr_array, sp.coo_array, np.ascontiguousarray, np.asfortranarray):",
        f"    problem = bg.Problem(form(X), y, {_arguments(case.problem)})",
        f"    solution = bg.solve(problem, {_arguments({'n_threads': 1, **case.options})})",
        "    print(form.__name__, solution, solution.coef, solution.intercept)",
        "w, b, objective, gap = solution.coef, solution.intercept, solution.objective, solution.gap",
    ]


def _path(case: Case) -> list[str]:
    ratio = case.options.get("l1_ratio")
    here = "point.alpha" if ratio is None else f"{ratio!r} * point.alpha, {1 - ratio!r} * point.alpha"
    return [
        *_problem(case),
        *on_ranks(case, "path", "bg.solve_path", ["problem", "keep_duals=True", _options(case)]),
        "for k, point in enumerate(path.points):",
        f"    checked = problem.with_alpha({here}).duality_gap(path.coef(k), point.intercept, dual=point.dual)",
        '    print(point.status, "objective", point.objective, "gap", point.gap, "by the package\'s check", checked)',
    ]


def _fit(case: Case) -> list[str]:
    from hunt.fits import estimator

    asked = estimator(case).get_params()
    default = type(estimator(case))().get_params()
    given = {k: v for k, v in asked.items() if v is not default[k] and not np.array_equal(v, default[k])}
    rows = {k: v for k, v in case.problem.items() if k in ("sample_weight", "offset")}
    text = ", ".join(f"{k}={_array(v) if isinstance(v, np.ndarray) else repr(v)}" for k, v in given.items())
    lines = [f"model = bg.{case.estimator}({text})"]
    if case.before is not None:
        lines += [f"model.fit({_matrix(case.before[0])}, {_array(case.before[1])})"]
    return [
        *lines,
        f"model.fit(X, y{', ' + _arguments(rows) if rows else ''})",
        "print(model.status_, model.coef_, model.intercept_, model.dual_gap_)",
        "w, b = np.ravel(model.coef_).astype(float), float(np.ravel(model.intercept_)[0])",
        "objective, gap = None, float(np.ravel(model.dual_gap_)[0])",
    ]


def _judgement(case: Case, by_a_point: bool) -> list[str]:
    """The objective in extended precision, and a better point if there is one."""
    problem = dict(case.problem)
    if case.call == "path" or problem.get("standardize") or case.estimator.endswith("CV"):
        return []
    exact = Exact(case.X, case.y, **problem)
    loss = _LOSS_CODE[problem.get("loss", "squared")].format(delta=repr(problem.get("huber_delta", 1.35)))
    offset = " + L(1) * " + _array(problem["offset"]) if problem.get("offset") is not None else ""
    mean = f"np.mean({loss})"
    if problem.get("sample_weight") is not None:
        mean = f"np.average({loss}, weights=L(1) * {_array(problem['sample_weight'])})"
    u = problem.get("penalty_weights")
    l1 = "abs(w)" if u is None else f"{_array(np.where(np.isinf(u), 0.0, u))} * abs(w)"
    ridge = f" + L({problem['l2']!r}) / 2 * np.sum(w * w)" if problem.get("l2") else ""
    signs = ["y = np.where(y == y.max(), 1, -1)"] if problem.get("loss") in CLASSIFIERS else []
    lines = [
        "",
        "# In extended precision, without the package.",
        "L = np.longdouble",
        f"A = L(1) * X{'.toarray()' if sp.issparse(case.X) else ''}",
        *signs,
        "def value(w, b):",
        "    w = L(1) * w",
        f"    t = A @ w + L(b){offset}",
        f"    return {mean} + L({problem['alpha']!r}) * np.sum({l1}){ridge}",
        'print("objective", objective, "gap", gap, "| objective in extended precision", value(w, b))',
    ]
    if by_a_point:
        w, b, _ = minimise(exact, np.zeros(case.shape[1]), 0.0)
        lines += [
            f"better = {_array(w)}, {b!r}",
            'print("another point", better, "is better by", value(w, b) - value(*better))',
        ]
    return lines


def _null_model(case: Case) -> list[str]:
    return [*_problem(case), "print(problem.null_model)"]


def _with_features(case: Case) -> list[str]:
    features = _array(case.use["features"])
    options = {k: v for k, v in case.options.items() if k != "method"}
    return [
        *_problem(case),
        f"problem = problem.with_features({features}, {case.problem['alpha']!r})",
        f"solution = bg.solve(problem, {_arguments(options)})",
        "print(solution, solution.coef, solution.intercept)",
        "print(problem.duality_gap(solution.coef, solution.intercept, dual=solution.dual))",
    ]


_BODIES: dict[str, Callable[[Case], list[str]]] = {
    "solve": _solve,
    "path": _path,
    "fit": _fit,
    "formats": _formats,
    "null model": _null_model,
    "with_features": _with_features,
    "curve": curve_lines,
    "fork": lambda case: fork_lines(case, _problem(case)),
    "change": change_lines,
    "damage": damage_lines,
    "deadline": lambda case: deadline_lines(case, _problem(case), _arguments(case.options)),
}
