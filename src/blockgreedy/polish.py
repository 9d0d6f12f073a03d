"""The last digits of a small model: Newton's method in float64 on the features that are in it.

The solver proves a gap; two runs that end within it agree to a few digits only, and its models are in float32, which
can be too coarse for nearly parallel columns. On small data a dense system is cheap and settles the rest: fits that
should be the same (weights against repeated rows, another order of rows) then are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.columns import dense_columns

if TYPE_CHECKING:
    from blockgreedy.problem import Problem

Array = NDArray[np.float64]

_SMALL = 20_000  # entries of X
_MOST_WEIGHTS, _MOST_NUMBERS = 300, 1_000_000  # of the dense system: sparse data may be small with many rows
_EPS = float(np.finfo(np.float64).eps)


def is_small(problem: Problem) -> bool:
    """Whether X is so small that a dense system in float64 costs next to nothing."""
    X: Any = problem.X
    return int(X.size) <= _SMALL  # for sparse X: the entries stored


def polish(problem: Problem, w: Array, intercept: float) -> tuple[Array, float] | None:
    """The minimum over the features and signs of this point, if it is found near by and is no higher."""
    features = np.flatnonzero(w)
    penalty = problem.penalty_at(features)
    free = (w[features] > penalty.lower) & (w[features] < penalty.upper)
    features, penalty = features[free], penalty.at(np.flatnonzero(free))
    n_weights = len(features)
    if n_weights > _MOST_WEIGHTS or n_weights * problem.n_samples > _MOST_NUMBERS:
        return None
    columns = dense_columns(problem.X, features)
    others = w.copy()
    others[features] = 0.0
    fixed = problem.decision(others)
    if problem.fit_intercept:
        columns = np.column_stack([columns, np.ones(problem.n_samples)])
    if columns.shape[1] == 0:
        return None
    signs = np.sign(w[features])
    signs[penalty.l1 == 0] = 0  # these may change theirs
    slope = np.zeros(columns.shape[1])
    slope[:n_weights] = penalty.l1 * signs
    ridge = np.zeros(columns.shape[1])
    ridge[:n_weights] = penalty.l2
    at = np.append(w[features], intercept)[: columns.shape[1]]
    start = at
    for _ in range(10):
        predictions = fixed + columns @ at
        grad = columns.T @ problem.dual_at(predictions) + slope + ridge * at
        curvature = problem.weigh(problem.loss.curvature(problem.y, predictions))
        hessian = columns.T @ (curvature[:, None] * columns) + np.diag(ridge)
        if not np.all(np.isfinite(hessian)):
            return None
        step = np.linalg.lstsq(hessian, -grad, rcond=None)[0]
        at = at + step
        here = at[:n_weights]
        if np.any(here * signs < 0) or np.any(here < penalty.lower) or np.any(here > penalty.upper):
            return None
        if np.max(np.abs(step)) <= 4 * _EPS * np.max(np.abs(at)):
            break
    coef = w.copy()
    coef[features] = at[:n_weights]
    b = float(at[-1]) if problem.fit_intercept else 0.0
    far = np.max(np.abs(at - start)) > 0.1 * np.max(np.abs(start))  # a singular system may lead anywhere
    if far or not problem.objective(coef, b) <= problem.objective(w, intercept) * (1 + 8 * _EPS):
        return None
    return coef, b
