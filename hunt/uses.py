"""Problems in use: coarse cross-validations, forks, data that change, damaged files, deadlines, wide indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from hunt.case import Case, dense
from hunt.draws import LOSSES, Rng, draw_matrix, draw_response, plain_case, with_alpha
from hunt.oracle import CLASSIFIERS
from hunt.recipes import correlated, counts, made, raw_table, text, walks


def curves(rng: Rng) -> Case:
    """A cross-validation on few alphas, so that a fold has far to go from one to the next."""
    labels, noise = bool(rng.random() < 0.5), float(rng.choice([0.5, 3.0, 10.0]))
    if rng.random() < 0.6:  # folds side by side
        per = int(rng.choice([36, 60]))
        p = int(rng.choice([60, 150, 600]))
        recipe = text(rng, int(rng.choice([5000, 8000])), p, per * 3 if p < 200 else per, noise, labels)
    else:
        n = int(np.exp(rng.uniform(np.log(100), np.log(1500))))
        p = int(rng.integers(2, max(n // 8, 3)))
        recipe = text(rng, n, p, int(rng.integers(1, p + 1)), noise, labels)
        if rng.random() < 0.5:
            recipe.append("X = X.toarray()")
    X, y = made(recipe)
    options: dict[str, Any] = {"n_alphas": int(rng.integers(2, 13)), "cv": 3}
    options["eps"] = float(rng.choice([0.003, 0.03, 0.1, 0.3]))
    problem = {"loss": "logistic" if labels else "squared", "alpha": 1.0, "fit_intercept": bool(rng.random() < 0.5)}
    case = Case("", 0, X, y, "curve", problem, options, recipe=recipe)
    case.estimator = "LogisticRegressionCV" if labels else "LassoCV"
    return case


def forks(rng: Rng) -> Case:
    case = with_alpha(rng, plain_case(rng, 1e-8), 1e-3)
    case.problem["standardize"] = bool(rng.random() < 0.3)
    if rng.random() < 0.5:  # rows, which are turned into columns
        case.X = sp.csr_array(dense(case.X))
    case.call = "fork"
    case.use = {
        "busy": [
            str(rng.choice(["convert", "solve", "path", "fit", "cv", "family", "rescale", "store"])) for _ in "ab"
        ],
        "forks": 6,
        "pause": float(rng.choice([1e-4, 1e-2, 5e-2])),
        "seed": int(rng.integers(10**6)),
    }
    return case


ROW_CHANGES = (
    "number", "reversed", "swapped", "scaled", "infinite", "permuted indices", "moved indices", "moved pointer",
    "moved pointers", "index too large", "negative index", "last pointer too large", "negative pointer", "target",
)  # fmt: skip
STORE_CHANGES = (
    "indices", "some indices", "pointers", "values", "some values", "nan", "swapped values", "targets",
    "swapped targets", "statistics", "truncated", "gone",
)  # fmt: skip


def changes(rng: Rng) -> Case:
    """Rows that change in place between two uses, or a store that changes on disk during one."""
    n, p = int(rng.integers(30, 400)), int(rng.integers(3, 60))
    X = draw_matrix(rng, n, p) * (rng.random((n, p)) < 0.3)
    y = draw_response(rng, X + 1e-9 * rng.normal(size=X.shape))
    loss = str(rng.choice(LOSSES))
    y = np.where(y > np.median(y), 1.0, -1.0) if loss in CLASSIFIERS else y
    case = Case("", 0, sp.csr_array(X), y, "change", {"loss": loss}, {"tol": float(rng.choice([1e-5, 1e-9]))})
    case.problem["fit_intercept"] = bool(rng.random() < 0.5)
    if rng.random() < 0.5:
        case.use = {"what": "rows", "change": str(rng.choice(ROW_CHANGES))}
        case.use["first"] = str(rng.choice(["nothing", "null model", "solve", "alpha_max", "X"]))
        case.use["then"] = str(rng.choice(["solve", "path", "family", "objective"]))
        # rows have a fingerprint; columns and dense arrays are shared, and nobody looks whether they change
    else:
        case.use = {"what": "store", "change": str(rng.choice(STORE_CHANGES)), "at": int(rng.integers(0, 4))}
        case.use["groups"] = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        case.use["memory"] = bool(rng.random() < 0.3)
    case.use["seed"] = int(rng.integers(10**6))
    return with_alpha(rng, case, 1e-3, 0.5)


FILES = (
    "model.npz",
    "data.npz",
    "data.svm",
    "data.csv",
    "data.feather",
    "data.parquet",
    "made.store",
    "fit.checkpoint",
)
DAMAGES = ("bytes", "header", "truncated", "zeros", "inserted", "member missing", "member cut", "member of others")


def damage(rng: Rng) -> Case:
    X = np.round(rng.normal(size=(12, 4)), 3)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    case = Case("", 0, X, y, "damage", {"loss": "logistic", "alpha": 0.01})
    case.use = {"file": str(rng.choice(FILES)), "damage": str(rng.choice(DAMAGES)), "seed": int(rng.integers(10**6))}
    return case


def deadlines(rng: Rng) -> Case:
    """Problems that take seconds, and little time."""
    loss = str(rng.choice(LOSSES))
    labels = loss in CLASSIFIERS
    style = int(rng.integers(6))
    if style == 0:
        recipe = walks(rng, int(rng.choice([3000, 20000, 60000])), 40, labels)
    elif style == 1:
        recipe = raw_table(rng, int(rng.choice([1000, 30000])), labels)
    elif style == 2:
        recipe = correlated(rng, int(rng.choice([300, 1500])), int(rng.choice([1000, 3000])), labels)
    elif style == 3:
        recipe = counts(rng, int(rng.choice([2000, 20000])), 3000, labels)
    else:
        recipe = text(rng, int(rng.choice([2000, 6000])), int(rng.choice([600, 5000])), 40, 1.0, labels)
    X, y = made(recipe)
    p = X.shape[1]
    problem: dict[str, Any] = {"loss": loss, "alpha": float(10.0 ** rng.uniform(-8, -1))}
    problem["fit_intercept"] = bool(rng.random() < 0.7)
    if rng.random() < 0.25:
        problem["alpha"] = 0.0
    if loss == "huber":
        problem["huber_delta"] = float(np.std(y)) * float(rng.choice([1e-3, 0.3, 1.5])) + 1e-9
    if rng.random() < 0.3:
        problem["l2"] = float(10.0 ** rng.uniform(-8, 0))
    problem["standardize"] = bool(rng.random() < 0.3)
    if rng.random() < 0.2:
        problem["penalty_weights"] = np.where(np.arange(p) < int(rng.choice([1, 20, 100])), 0.0, 1.0)
    options: dict[str, Any] = {"tol": float(10.0 ** rng.uniform(-12, -3))}
    options["max_seconds"] = float(np.exp(rng.uniform(np.log(0.02), np.log(0.5))))
    case = Case("", 0, X, y, "deadline", problem, options, recipe=recipe)
    how = rng.random()
    case.use = {"call": "solve"}
    if how < 0.15:
        case.use, options["n_alphas"] = {"call": "path"}, int(rng.choice([3, 100]))
    elif how < 0.3:
        case.use = {"call": "family"}
        options["method"] = str(rng.choice(["scd", "shotgun", "greedy", "thread-greedy", "block-greedy"]))
    elif how < 0.4:
        del options["max_seconds"]
        options["max_iter"], case.use = 1, {"call": "one iteration"}
    return case


def indices(rng: Rng) -> Case:
    """Sparse X with wide indices, as SciPy makes of large matrices and of stacked ones, and unpenalised columns."""
    case = plain_case(rng, 1e-8)
    X = dense(case.X).copy()
    X[rng.random(X.shape) < rng.choice([0.3, 0.7])] = 0.0
    n, p = X.shape
    X[:, rng.random(p) < rng.choice([0.0, 0.3])] = 0.0
    case.X = widened(rng, X)
    problem, options = case.problem, case.options
    if rng.random() < 0.6 and p > 1:
        u = np.where(rng.random(p) < min(0.3, 0.2 * n / p), 0.0, 1.0)
        u[-1] = 1.0
        problem["penalty_weights"] = u
    problem["standardize"] = bool(rng.random() < 0.3)
    if rng.random() < 0.2:
        problem["l2"] = float(10.0 ** rng.uniform(-4, 0))
    case = with_alpha(rng, case, 1e-4)
    how = rng.random()
    if how < 0.2:
        case.call, options["n_alphas"], options["eps"] = "path", int(rng.integers(2, 6)), 1e-2
    elif how < 0.35:
        case.call = "null model"
    elif how < 0.5:
        case.call = "with_features"
        case.use = {"features": np.flatnonzero(rng.random(p) < 0.6)}
        case.call = case.call if len(case.use["features"]) else "solve"
    elif how < 0.65 and n >= 25:
        case.call = "fit"
        case.estimator = {"squared": "LassoCV", "logistic": "LogisticRegressionCV"}.get(problem["loss"], "")
        if not case.estimator:
            case.call = "solve"
        else:
            problem.pop("l2", None)
            case.options, problem["alpha"] = {"tol": case.tol, "n_alphas": 4, "cv": 3}, 1.0
    elif how < 0.75:
        options |= {"method": str(rng.choice(["scd", "thread-greedy"])), "max_iter": 50}
    return case


def widened(rng: Rng, X: np.ndarray) -> Any:
    """X with int64 indices: both arrays, as SciPy has them."""
    form = rng.random()
    if form < 0.2:
        wide = sp.coo_array(X)
        wide.coords = tuple(c.astype(np.int64) for c in wide.coords)
        return wide
    wide = sp.csc_array(X) if form < 0.6 else sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    return wide
