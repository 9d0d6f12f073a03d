"""Problems with numbers at the ends of float64: denormals, scales to 1e±300, standardised ridges, far limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from hunt.case import Case, dense
from hunt.draws import Rng, draw_tol, plain_case, with_alpha
from hunt.oracle import CLASSIFIERS

_TINY = (5e-324, 1e-323, 1e-320, 1e-315, 1e-310, 2.3e-308, 1e-300)
_FORMS: tuple[Callable[[np.ndarray], Any], ...] = (
    sp.csc_array, sp.csr_array, sp.coo_array, np.asfortranarray, np.ascontiguousarray,
)  # fmt: skip
FAR = 300  # the exponent of a case that may be refused with advice


def in_any_form(rng: Rng, X: np.ndarray) -> Any:
    return _FORMS[int(rng.integers(len(_FORMS)))](X)


def _exponent(rng: Rng, most: int) -> int:
    return int(rng.choice([10, 30, 100, 150, 155, 160, 200, 250, 290, 300])) % (most + 1) * int(rng.choice([-1, 1]))


# What is done to a matrix. Each returns the exponent of the largest scale: 0 where ordinary numbers remain.


def _first_entries(rng: Rng, X: np.ndarray) -> int:
    """Columns that start with the same number next to 0, as features that underflow do."""
    columns = rng.random(X.shape[1]) < 0.7
    if rng.random() < 0.6:  # near 1, so that products with the first entry are that entry again
        X[:] = 1 + np.clip(X, -2, 2) / 5 * 10.0 ** -rng.uniform(0, 4)
    X[0, columns] = 5e-324 if rng.random() < 0.4 else float(rng.choice(_TINY))
    return 0


def _single_entries(rng: Rng, X: np.ndarray) -> int:
    where = rng.random(X.shape) < 0.1
    X[where] = rng.choice(_TINY, size=int(np.sum(where))) * rng.choice([-1, 1], size=int(np.sum(where)))
    return 0


def _densities(rng: Rng, X: np.ndarray) -> int:
    """exp(−d²): a few numbers near 1, many that underflow."""
    X[:] = np.exp(-float(rng.choice([1, 30, 200])) * X**2)
    return 0


def _denormal_columns(rng: Rng, X: np.ndarray) -> int:
    columns = rng.random(X.shape[1]) < rng.choice([0.1, 0.5])
    X[:, columns] *= float(10.0 ** -rng.uniform(305, 322))
    return FAR


def _denormal_constants(rng: Rng, X: np.ndarray) -> int:
    X[:, int(rng.integers(X.shape[1]))] = float(rng.choice(_TINY))
    return FAR


def _far_columns(rng: Rng, X: np.ndarray) -> int:
    columns = np.flatnonzero(rng.random(X.shape[1]) < 0.4)
    for j in columns:
        X[:, j] *= 10.0 ** _exponent(rng, 300)
    return FAR


_STYLES = (_first_entries, _single_entries, _densities, _denormal_columns, _denormal_constants, _far_columns)


def denormals(rng: Rng) -> Case:
    case = plain_case(rng, 1e-8)
    X, problem, n = dense(case.X).copy(), case.problem, case.shape[0]
    case.exponent = _STYLES[int(rng.integers(len(_STYLES)))](rng, X)
    largest = np.max(np.abs(X), axis=0)
    if np.any((largest > 0) & (largest < 1e-290)):  # columns that are small as a whole
        case.exponent = FAR
    if rng.random() < 0.2:  # the same in another column, where it counts as a multiple or does not
        X = np.hstack([X, X[:, [int(rng.integers(X.shape[1]))]] * float(rng.choice([1.0, -1.0, 0.5, 3.0]))])
    if rng.random() < 0.2:
        problem["sample_weight"] = 10.0 ** rng.uniform(*sorted([0.0, float(rng.choice([-300, -150, -30, 290]))]), n)
        if rng.random() < 0.5:
            problem["sample_weight"] = np.exp(rng.normal(size=n)) * 10.0 ** _exponent(rng, 290)
        case.exponent = FAR
    # not beside columns of extreme scale: weights and alpha, of which they are the scale, could be beyond float64
    if case.exponent == 0 and rng.random() < 0.2 and problem["loss"] not in CLASSIFIERS:
        scale = 10.0 ** _exponent(rng, 120)  # the objective is of size y²
        case.y = case.y * scale
        if "huber_delta" in problem:
            problem["huber_delta"] *= scale
        case.exponent = FAR
    case.X = in_any_form(rng, X)
    if rng.random() < 0.2:
        with np.errstate(all="ignore"):
            case.X = case.X.astype(np.float32)
            case.X = case.X if np.all(np.isfinite(dense(case.X))) else in_any_form(rng, X)
    if rng.random() < 0.2:
        case.call = "path"
        case.options["n_alphas"], case.options["eps"] = int(rng.integers(2, 8)), 1e-2
    case.must_converge = case.exponent == 0
    return with_alpha(rng, case, 1e-4)


def standardized(rng: Rng) -> Case:
    """standardize=True with a ridge, on columns of any scale."""
    case = plain_case(rng, 1e-9)
    X, problem, options = dense(case.X).copy(), case.problem, case.options
    problem["standardize"] = True
    style = rng.random()
    if style < 0.4:
        case.exponent = _far_columns(rng, X)
    elif style < 0.5:
        case.exponent = _denormal_columns(rng, X)
    elif style < 0.7:  # far from 0
        X += rng.choice([0.0, 10.0, 1e4, 1e7], size=X.shape[1])
    elif style < 0.8:  # whole numbers that float32 holds, with digits that its sums do not
        X = np.round(2 * X) + rng.choice([0.0, 1e6, 1e7], size=X.shape[1])
        case.X = in_any_form(rng, X.astype(np.float32))
        return with_alpha(rng, case, 1e-4)
    case.X = in_any_form(rng, X)
    how = rng.random()
    if how < 0.5:
        problem["l2"] = float(10.0 ** rng.uniform(-6, 2))
        case = with_alpha(rng, case, 1e-4)
        if rng.random() < 0.3:
            problem["alpha"] = 0.0
    elif how < 0.8:
        case.call, problem["alpha"] = "path", 1.0
        options["n_alphas"], options["eps"] = int(rng.integers(2, 8)), 1e-2
        options["l1_ratio"] = float(rng.choice([0.1, 0.5, 0.9]))
    else:
        case = with_alpha(rng, case, 1e-4)
        ratio = float(rng.choice([0.1, 0.5, 0.9]))
        if problem["loss"] == "squared":
            case.call, case.estimator, options["l1_ratio"] = "fit", "ElasticNet", ratio
        problem["alpha"], problem["l2"] = problem["alpha"] * ratio, problem["alpha"] * (1 - ratio)
    if rng.random() < 0.2:
        u = np.where(rng.random(X.shape[1]) < 0.3, 0.0, 1.0)
        if np.any(u > 0) and case.exponent == 0:
            problem["penalty_weights"] = u
    return case


def _some_limits(rng: Rng, p: int) -> np.ndarray:
    """Limits that bind, that stand for none, and none."""
    kinds = rng.random(p)
    near, far = rng.exponential(0.3, p), 10.0 ** rng.uniform(-3, 300, p)
    usual = rng.choice([1e3, 1e6, 1e9, 1e12, 1e20, float(np.finfo(float).max)], size=p)
    limits = np.where(kinds < 0.3, near, np.where(kinds < 0.5, far, np.where(kinds < 0.8, usual, np.inf)))
    return limits if rng.random() < 0.5 else np.where(kinds < 0.2, limits, float(rng.choice([1e9, 1e20, 1e300])))


def limits(rng: Rng) -> Case:
    case = plain_case(rng, 1e-8)
    p, problem = case.shape[1], case.problem
    sides = rng.random()
    if sides < 0.7:
        problem["upper"] = _some_limits(rng, p)
    if sides > 0.4:
        problem["lower"] = -_some_limits(rng, p)
    elif rng.random() < 0.3:
        problem["positive"] = True
    if rng.random() < 0.2:
        problem["l2"] = float(10.0 ** rng.uniform(-6, 0))
    problem["standardize"] = bool(rng.random() < 0.1)
    case.options["tol"] = draw_tol(rng, 1e-8)
    case.must_converge = case.must_prove = True
    return with_alpha(rng, case, 1e-4)
