"""Random problems by class. Each generator draws a Case from its own random numbers; class name and seed say all."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from hunt.case import Case, dense
from hunt.draws import (
    Rng,
    draw_deadline,
    draw_labels,
    draw_response,
    plain_case,
    stored,
    with_alpha,
)
from hunt.extremes import denormals, limits, standardized
from hunt.grids import on_a_grid
from hunt.oracle import CLASSIFIERS, Exact
from hunt.tables import tables
from hunt.uses import changes, curves, damage, deadlines, forks, indices


def make(kind: str, seed: int) -> Case:
    """The case of a class and a seed."""
    rng = np.random.default_rng([zlib.crc32(kind.encode()), seed])
    with np.errstate(all="ignore"):
        case = CLASSES[kind](rng)
    draw_deadline(rng, case)
    case.kind, case.seed = kind, seed
    return case


# The classes.


def plain(rng: Rng) -> Case:
    return with_alpha(rng, plain_case(rng))


def scales(rng: Rng) -> Case:
    case = plain_case(rng, 1e-6)
    case.problem["fit_intercept"] = bool(rng.random() < 0.5)
    X, y = dense(case.X).copy(), case.y.copy()
    dtype = np.float32 if rng.random() < 0.2 else np.float64
    # X·1e±300 with y·1e±300: keep what squares and products of both can hold in extended precision
    k = int(rng.choice([3, 6, 10, 15, 20, 30, 44, 60, 100, 150, 200, 280])) * int(rng.choice([-1, 1]))
    k = int(np.clip(k, -30, 30)) if dtype is np.float32 else k
    style, used = rng.random(), abs(k)
    if style < 0.4:
        X *= 10.0**k
    elif style < 0.6 and case.problem["loss"] not in CLASSIFIERS:
        k = int(np.clip(k, -120, 120))  # the objective is of size y²
        y = y * 10.0**k
        if "huber_delta" in case.problem:
            case.problem["huber_delta"] *= 10.0**k
        used = abs(k)
    elif style < 0.8:
        X[:, rng.random(X.shape[1]) < 0.4] *= 10.0**k
    else:
        low = int(rng.choice([2, 5, 10, 20]))
        X *= 10.0 ** rng.integers(-low, low + 1, X.shape[1])
        used = low
    case.X, case.y, case.exponent = X.astype(dtype), y, used
    case.must_converge = used <= 20
    return with_alpha(rng, case, 1e-3)


def duplicates(rng: Rng) -> Case:
    case = plain_case(rng, 1e-8)
    X = dense(case.X).copy()
    n = X.shape[0]
    columns = [X]
    for _ in range(int(rng.integers(1, 5))):
        j = int(rng.integers(X.shape[1]))
        columns.append(
            [
                X[:, [j]],
                -X[:, [j]],
                X[:, [j]] + 10.0 ** rng.integers(-14, -2) * rng.normal(size=(n, 1)),
                X @ rng.normal(size=(X.shape[1], 2)),
                np.repeat(X[:, [j]], int(rng.integers(2, 40)), axis=1),
                np.zeros((n, int(rng.integers(1, 4)))),
                np.ones((n, 1)) * float(rng.normal()),
            ][int(rng.integers(7))]
        )
    X = np.hstack(columns)[:, :120]
    X = X[:, rng.permutation(X.shape[1])]
    case.X = stored(rng, X)
    if sp.issparse(case.X) and rng.random() < 0.4:  # stored zeros
        full = sp.csc_array(np.where(X == 0, 1.0, X) * (rng.random(X.shape) < 0.9))
        rows, cols = full.indices, np.repeat(np.arange(X.shape[1]), np.diff(full.indptr))
        full.data = X[rows, cols]
        case.X = full
    return with_alpha(rng, case, 1e-5)


def _limits(rng: Rng, p: int) -> np.ndarray:
    """Upper bounds: some infinite, some 0."""
    return np.where(rng.random(p) < 0.4, np.inf, rng.exponential(0.3, p) * (rng.random(p) < 0.7))


def bounds(rng: Rng) -> Case:
    case = plain_case(rng, 1e-8)
    n, p = case.shape
    problem = case.problem
    if rng.random() < 0.02:  # many unpenalised features
        k = int(rng.integers(20, 110))
        X = rng.normal(size=(60, k + 5))
        case.X, case.y = X, draw_labels(rng, X[:, 0] + X[:, -1] + rng.normal(size=60))
        problem.update(loss="logistic", positive=True, fit_intercept=True, alpha=0.05)
        problem["penalty_weights"] = np.r_[np.zeros(k), np.ones(5)]
        case.options["max_seconds"] = 1.0
        return case
    if rng.random() < 0.5:
        if rng.random() < 0.3:
            problem["positive"] = True
        else:
            problem["lower"] = -_limits(rng, p)
        if rng.random() < 0.6:
            problem["upper"] = _limits(rng, p)
    if rng.random() < 0.6:
        u = rng.exponential(1.0, p)
        u[rng.random(p) < rng.choice([0.0, 0.1, 0.5])] = 0.0
        u[rng.random(p) < rng.choice([0.0, 0.1, 0.4])] = np.inf
        if np.sum(u == 0) >= n // 2:
            u[u == 0] = 1.0
        problem["penalty_weights"] = u
    if rng.random() < 0.4:
        problem["l2"] = float(10.0 ** rng.uniform(-6, 2))
    problem["standardize"] = bool(rng.random() < 0.3)
    return with_alpha(rng, case, 1e-5)


def weights(rng: Rng) -> Case:
    case = plain_case(rng, 1e-8)
    n = case.shape[0]
    style = rng.random()
    if style < 0.4:
        s = 10.0 ** rng.uniform(-1, 1, n) ** int(rng.choice([1, 3]))
        s = 10.0 ** rng.uniform(-float(rng.choice([1, 4, 8])), 0, n) if rng.random() < 0.6 else s
    elif style < 0.7:
        s = rng.integers(0, 4, n).astype(float)
    else:
        s = np.ones(n)
    s[rng.random(n) < rng.choice([0.0, 0.2])] = 0.0
    if np.sum(s > 0) < 2 or (case.problem["loss"] in CLASSIFIERS and len(np.unique(case.y[s > 0])) < 2):
        s = np.ones(n)
    if style < 0.8:
        case.problem["sample_weight"] = s
    if rng.random() < 0.6:
        if case.problem["loss"] in CLASSIFIERS:
            offset = rng.normal(size=n) * float(rng.choice([1e-3, 1.0, 30.0]))
        else:
            size = float(rng.choice([1e-3, 1.0, 1e3, 1e7]))
            base = size * np.abs(rng.normal(size=n))
            if rng.random() < 0.5:  # predictions of an earlier model: nearly y
                case.y = case.y + base
            offset = base
        case.problem["offset"] = offset
    return with_alpha(rng, case, 1e-4)


def warm(rng: Rng) -> Case:
    case = plain_case(rng, 1e-9)
    case = with_alpha(rng, case, 1e-4)
    X = dense(case.X).copy()
    n, p = X.shape
    problem = case.problem
    X[:, rng.random(p) < rng.choice([0.0, 0.3])] = 0.0  # empty now
    case.X = sp.csc_array(X) if sp.issparse(case.X) else X
    if problem["loss"] not in CLASSIFIERS and rng.random() < 0.15:
        case.y = np.full(n, float(rng.choice([0.0, 3.0, 0.1, 1e6])))
    if rng.random() < 0.3:  # through an estimator
        earlier = rng.normal(size=(n, p)) if rng.random() < 0.5 else X + (X == 0) * rng.normal(size=(n, p))
        first_y = case.y if problem["loss"] in CLASSIFIERS else draw_response(rng, earlier)
        case.call, case.before = "fit", (earlier, first_y)
        case.estimator = _ESTIMATOR_OF[problem["loss"]]
        case.options["warm_start"] = True
        return case
    size = float(rng.choice([1e-3, 1.0, 7.0, 100.0, 1e6]))
    case.options["coef_init"] = size * rng.normal(size=p) * (rng.random(p) < rng.choice([0.2, 1.0]))
    if problem["fit_intercept"] and rng.random() < 0.7:
        case.options["intercept_init"] = float(size * rng.normal())
    if rng.random() < 0.2:
        u = np.where(rng.random(p) < 0.3, np.inf, 1.0)
        problem["penalty_weights"] = u
        case.options["coef_init"] = np.where(np.isinf(u), 0.0, case.options["coef_init"])
    if rng.random() < 0.3:
        X[:, int(rng.integers(p))] *= float(rng.choice([1e3, 1e6, 1e8]))
        case.X = X
    return case


def formats(rng: Rng) -> Case:
    case = plain_case(rng, 1e-7)
    X = dense(case.X)
    style = rng.random()
    if style < 0.3:
        X = np.round(4 * X)
    elif style < 0.4:
        X = (X > 0.5).astype(float)
    else:
        X = X.astype(np.float32).astype(np.float64)
    case.X, case.call = X, "formats"
    return with_alpha(rng, case, 1e-3)


def paths(rng: Rng) -> Case:
    case = plain_case(rng, 1e-7) if rng.random() < 0.7 else tables(rng)
    case.must_converge = False
    case.call = "path"
    case.problem["alpha"] = 1.0
    options = case.options
    if rng.random() < 0.7:
        options["n_alphas"], options["eps"] = int(rng.integers(2, 15)), float(10.0 ** rng.uniform(-4, -0.5))
    else:
        largest = Exact(case.X, case.y, **case.problem).alpha_max() or 1.0
        options["alphas"] = (largest * 10.0 ** rng.uniform(-4, 0.2, int(rng.integers(1, 8)))).tolist()
    if rng.random() < 0.3:
        options["l1_ratio"] = float(rng.choice([0.1, 0.5, 0.9, 1.0]))
    elif rng.random() < 0.2:
        case.problem["l2"] = float(10.0 ** rng.uniform(-4, 0))
    if rng.random() < 0.2:
        options["max_nonzeros"] = int(rng.integers(0, 10))
    return case


_ESTIMATOR_OF = {
    "squared": "Lasso",
    "huber": "HuberLasso",
    "logistic": "LogisticRegression",
    "squared_hinge": "SquaredHingeClassifier",
}


def estimators(rng: Rng) -> Case:
    case = tables(rng) if rng.random() < 0.5 else with_alpha(rng, plain_case(rng, 1e-8), 1e-4)
    case.must_converge = False
    problem = case.problem
    case.call, case.estimator = "fit", _ESTIMATOR_OF[problem["loss"]]
    if problem["loss"] == "squared" and rng.random() < 0.3:
        case.estimator = "ElasticNet"
        ratio, alpha = float(rng.choice([0.2, 0.5, 0.9])), problem["alpha"]
        case.options["l1_ratio"] = ratio
        problem["alpha"], problem["l2"] = alpha * ratio, alpha * (1 - ratio)
    if problem["loss"] in ("squared", "logistic") and rng.random() < 0.12 and case.shape[0] >= 25:
        case.estimator = "LassoCV" if problem["loss"] == "squared" else "LogisticRegressionCV"
        case.options = {"tol": case.tol, "n_alphas": int(rng.integers(3, 12)), "cv": 3}
        problem["alpha"] = 1.0
        problem.pop("l2", None)
    if rng.random() < 0.3:
        case.X = (case.X if sp.issparse(case.X) else np.asarray(case.X)).astype(np.float32)
    if rng.random() < 0.2:
        problem["positive"] = True
    return case


def family(rng: Rng) -> Case:
    case = with_alpha(rng, plain_case(rng, 1e-6), 1e-3)
    if rng.random() < 0.3:  # other units, and with them large weights
        case = (tables, scales)[int(rng.integers(2))](rng)
        case.must_converge = False
    n = case.shape[0]
    if rng.random() < 0.4:
        s = 10.0 ** rng.uniform(-float(rng.choice([1, 4, 8])), 0, n) * (rng.random(n) > rng.choice([0.0, 0.2]))
        if np.sum(s > 0) >= 2 and (case.problem["loss"] not in CLASSIFIERS or len(np.unique(case.y[s > 0])) == 2):
            case.problem["sample_weight"] = s
    if rng.random() < 0.3:
        case.problem["offset"] = rng.normal(size=n) * float(rng.choice([1e-3, 1.0, 30.0]))
    method = str(rng.choice(["scd", "shotgun", "greedy", "thread-greedy", "block-greedy"]))
    case.options |= {"method": method, "max_iter": int(rng.choice([1, 5, 50, 500])), "seed": int(rng.integers(100))}
    if method in ("thread-greedy", "block-greedy"):
        case.options["n_blocks"] = int(min(case.shape[1], rng.integers(1, 9)))
    if method in ("shotgun", "block-greedy"):
        most = case.shape[1] if method == "shotgun" else case.options["n_blocks"]
        case.options["blocks_per_iter"] = int(rng.integers(1, most + 1))
    case.options["update"] = str(rng.choice(["add", "line-search", "sweep", "joint"]))
    return case


def interrupts(rng: Rng) -> Case:
    case = with_alpha(rng, plain_case(rng, 1e-10), 1e-5)
    style = rng.random()
    if style < 0.7:
        case.stop = (str(rng.choice(["return", "raise"])), int(rng.integers(0, 6)))
    elif style < 0.85:
        case.options["max_iter"] = int(rng.integers(1, 4))
    else:
        case.options["max_seconds"] = float(10.0 ** rng.uniform(-7, -2))
    if rng.random() < 0.2:
        case.options["trace_iters"] = 1000
    return case


def tiles(rng: Rng) -> Case:
    """A problem of another class, by a grid of ranks."""
    kinds = (plain, tables, scales, duplicates, bounds, weights, warm, formats, paths, interrupts)
    return on_a_grid(rng, kinds[int(rng.integers(len(kinds)))](rng))


CLASSES: dict[str, Callable[[Rng], Case]] = {
    f.__name__: f
    for f in (
        plain, tables, scales, duplicates, bounds, weights, warm, formats, paths, estimators, family, interrupts,
        tiles, denormals, standardized, limits, indices, curves, forks, changes, damage, deadlines,
    )
}  # fmt: skip
