"""The last digits of a small model: Newton's method in float64 on the features that are in it.

The solver proves a gap; two runs that end within it agree to a few digits only. On small data a dense system is cheap
and settles the rest: fits that should be the same (weights against repeated rows, another order of rows) then are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.columns import dense_columns
from blockgreedy.problem import Problem
from blockgreedy.solve import Solution

Array = NDArray[np.float64]

SMALL = 20_000  # entries of X
_MOST_WEIGHTS, _MOST_NUMBERS = 300, 1_000_000  # of the dense system: sparse data may be small with many rows
_EPS = float(np.finfo(np.float64).eps)


def is_small(problem: Problem) -> bool:
    X: Any = problem.X
    return int(X.size) <= SMALL  # for sparse X: the entries stored


def polish(problem: Problem, solution: Solution) -> None:
    """Moves the solution to the minimum over its own features and signs, where that is found; never up."""
    penalty, w = problem.penalty, solution.coef
    features = np.flatnonzero((w != 0) & (w > penalty.lower) & (w < penalty.upper))
    n_weights = len(features)
    if n_weights > _MOST_WEIGHTS or n_weights * problem.n_samples > _MOST_NUMBERS:
        return
    columns = dense_columns(problem.X, features)
    others = w.copy()
    others[features] = 0.0
    fixed = problem.decision(others)
    if problem.fit_intercept:
        columns = np.column_stack([columns, np.ones(problem.n_samples)])
    if columns.shape[1] == 0:
        return
    own = penalty.at(features)
    signs = np.sign(w[features])
    slope = np.zeros(columns.shape[1])
    slope[:n_weights] = own.l1 * signs
    ridge = np.zeros(columns.shape[1])
    ridge[:n_weights] = own.l2
    at = np.append(w[features], solution.intercept)[: columns.shape[1]]
    start = at
    for _ in range(10):
        predictions = fixed + columns @ at
        grad = columns.T @ problem.dual_at(predictions) + slope + ridge * at
        curvature = problem.weigh(problem.loss.curvature(problem.y, predictions))
        hessian = columns.T @ (curvature[:, None] * columns) + np.diag(ridge)
        step = np.linalg.lstsq(hessian, -grad, rcond=None)[0]
        at = at + step
        here = at[:n_weights]
        if not np.all(here * signs > 0) or np.any(here < own.lower) or np.any(here > own.upper):
            return
        if np.max(np.abs(step)) <= 4 * _EPS * np.max(np.abs(at)):
            break
    coef = w.copy()
    coef[features] = at[:n_weights]
    intercept = float(at[-1]) if problem.fit_intercept else 0.0
    objective = problem.objective(coef, intercept)
    far = np.max(np.abs(at - start)) > 0.1 * np.max(np.abs(start))  # a singular system may lead anywhere
    if far or not objective <= solution.objective * (1 + 8 * _EPS):
        return
    solution.gap = max(0.0, solution.gap - max(0.0, solution.objective - objective))
    solution.coef, solution.intercept, solution.objective = coef, intercept, min(objective, solution.objective)
