"""Dual points and duality gaps: how every solver proves its accuracy.

The dual of ``mean loss(y, Xw) + r(w)`` is ``D(θ) = −(1/n) Σ loss*(y_i, n·θ_i) − Σ_j r_j*(−x_j·θ)``; at the
solution θ = loss′(y, Xw)/n. With l2 = 0 an unbounded feature asks |x_j·θ| ≤ alpha·u_j, an unpenalised one
x_j·θ = 0. Any feasible θ bounds the error of any w: f(w) − f* ≤ f(w) − D(θ).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from blockgreedy.problem import Problem

Array = NDArray[np.float64]

FEASIBLE = 1e-12  # how far rounding may carry a dual point out of its constraints, relative to alpha
_MAX_FREE_ENTRIES = 50_000_000  # unpenalised columns are handled as a dense array up to this size


class ColumnPasses(Protocol):
    """What a certificate needs of X: Problem offers it in NumPy, CpuModel on the core's threads."""

    def alpha_needed(self, theta: Array, at_null: bool = False) -> float: ...

    def penalty_conjugate(self, theta: Array, scale: float) -> float: ...


@dataclass(frozen=True)
class NullModel:
    """The minimum over unpenalised weights with all penalised ones at zero."""

    features: NDArray[np.intp]  # the unpenalised ones
    coef: Array  # their weights
    objective: float
    dual: Array  # loss′/n there

    def full_coef(self, n_features: int) -> Array:
        w = np.zeros(n_features)
        w[self.features] = self.coef
        return w


def loss_conjugate(problem: Problem, theta: Array) -> float:
    return float(np.mean(problem.loss.conjugate(problem.y, problem.n_samples * theta)))


def _has_conjugate_term(problem: Problem) -> bool:
    """Whether r* is anything but the indicator of the constraints."""
    finite = np.isfinite(problem.lower) & (np.asarray(problem.lower) != 0)
    finite = finite | (np.isfinite(problem.upper) & (np.asarray(problem.upper) != 0))
    return problem.l2 > 0 or bool(np.any(finite))


def dual_value(problem: Problem, theta: Array, passes: ColumnPasses) -> float:
    """D(θ), −inf where θ is infeasible by more than rounding."""
    scale = 1.0
    if problem.l2 == 0:
        needed = passes.alpha_needed(theta)
        if needed > problem.alpha * (1 + FEASIBLE) + _unpenalised_slack(problem):
            return -np.inf
        scale = _just_inside(problem, needed)
        if not _is_orthogonal_to_free(problem, theta):
            return -np.inf
    conjugate = passes.penalty_conjugate(theta, scale) if _has_conjugate_term(problem) else 0.0
    inside = problem.loss.into_domain(problem.y, problem.n_samples * theta) / problem.n_samples
    if np.max(np.abs(inside - theta)) > FEASIBLE / problem.n_samples:
        return -np.inf
    return -loss_conjugate(problem, inside) - conjugate


def _unpenalised_slack(problem: Problem) -> float:
    """With alpha = 0 no factor but 0 brings θ inside: what rounding leaves is measured against alpha_max."""
    return FEASIBLE * problem.alpha_max if problem.alpha == 0 else 0.0


def _just_inside(problem: Problem, needed: float) -> float:
    """The factor ≤ 1 that brings θ inside the inequalities, rounding of the product included."""
    if needed <= problem.alpha + _unpenalised_slack(problem):
        return 1.0
    return problem.alpha / needed * (1 - 4 * np.finfo(float).eps)


@np.errstate(over="ignore", invalid="ignore")  # a diverging point has no dual value, and that is all
def scaled_dual_point(problem: Problem, Xw: Array, passes: ColumnPasses) -> tuple[Array, float]:
    """The residual of a primal point, projected and scaled until feasible, and its dual value (−inf if it failed)."""
    theta = problem.loss.deriv(problem.y, Xw) / problem.n_samples
    if not np.all(np.isfinite(theta)):
        return np.zeros_like(theta), -np.inf
    projected = project_on_free(problem, theta, Xw)
    if projected is None:
        return theta, -np.inf
    needed = passes.alpha_needed(projected)
    has_term = _has_conjugate_term(problem)
    best, best_value = projected, -np.inf
    for scale in _scales(problem, projected, needed):
        value = -loss_conjugate(problem, scale * projected)
        if has_term:
            value -= passes.penalty_conjugate(projected, scale)
        if value > best_value:
            best, best_value = scale * projected, value
    return best, best_value


def _scales(problem: Problem, theta: Array, needed: float) -> list[float]:
    """Factors worth trying: the largest feasible one up to 1, and for the squared loss the best feasible one."""
    feasible = _just_inside(problem, needed)
    if problem.l2 > 0:
        return [1.0] if feasible == 1.0 else [1.0, feasible]
    if problem.loss.name != "squared" or problem.alpha == 0 or _has_conjugate_term(problem):
        return [feasible]
    u = problem.n_samples * theta
    norm = float(np.dot(u, u))
    limit = problem.alpha / needed * (1 - 4 * np.finfo(float).eps) if needed > 0 else np.inf
    return [min(limit, max(0.0, -float(np.dot(u, problem.y)) / norm))] if 0 < norm < np.inf else [feasible]


def _free_columns(problem: Problem) -> Array | None:
    """The unpenalised, unbounded columns as a dense array; None if there are none."""
    if problem.l2 > 0 or (problem.alpha > 0 and problem.penalty_weights is None):
        return None
    free = np.flatnonzero(problem.penalty.is_free)
    return _dense(problem.X, free) if len(free) else None


def _dense(X: Any, features: NDArray[np.intp]) -> Array | None:
    if X.shape[0] * len(features) > _MAX_FREE_ENTRIES:
        raise MemoryError(f"{len(features)} unpenalised features on {X.shape[0]} samples are too many to certify")
    columns = X[:, features]
    return np.asarray(columns.toarray() if hasattr(columns, "toarray") else columns, dtype=np.float64)


def _is_orthogonal_to_free(problem: Problem, theta: Array) -> bool:
    columns = _free_columns(problem)
    if columns is None:
        return True
    size = np.sqrt(np.sum(columns**2, axis=0)) * np.linalg.norm(theta)
    return bool(np.all(np.abs(columns.T @ theta) <= FEASIBLE * np.maximum(size, 1e-300)))


def project_on_free(problem: Problem, theta: Array, Xw: Array) -> Array | None:
    """θ moved onto x_j·θ = 0 for the unpenalised features, inside the loss's domain; None if that fails.

    The move is weighted with the loss's curvature: it is a Newton step in those features, so it shrinks near
    the ends of the domain and seldom leaves it.
    """
    try:
        columns = _free_columns(problem)
    except MemoryError:
        return None
    if columns is None:
        return theta
    n = problem.n_samples
    weights = np.maximum(problem.loss.curvature(problem.y, Xw), 1e-12)
    for _ in range(50):
        if _is_orthogonal_to_free(problem, theta):
            return theta
        scaled = weights[:, None] * columns
        move = scaled @ np.linalg.lstsq(columns.T @ scaled, columns.T @ theta, rcond=None)[0]
        theta = problem.loss.into_domain(problem.y, n * (theta - move)) / n
    return None


def fit_null_model(problem: Problem) -> NullModel:
    """Newton's method on the unpenalised features (usually none, or a handful)."""
    y, n, loss = problem.y, problem.n_samples, problem.loss
    Xw = np.zeros(n)
    features = np.zeros(0, dtype=np.intp)
    if problem.penalty_weights is not None:
        features = np.flatnonzero(problem.penalty_weights == 0)
    if len(features) == 0:
        return NullModel(features, np.zeros(0), float(np.mean(loss.value(y, Xw))), loss.deriv(y, Xw) / n)
    penalty = problem.penalty.at(features)
    columns = _dense(problem.X, features)
    assert columns is not None
    w = np.zeros(len(features))
    value = float(np.mean(loss.value(y, Xw)))
    for _ in range(200):
        curvature = np.maximum(loss.curvature(y, Xw), 1e-10)
        grad = columns.T @ loss.deriv(y, Xw) / n
        hessian = columns.T @ (curvature[:, None] * columns) / n
        target = _solve_quadratic(hessian, grad, w, penalty)
        size, improved = 1.0, False
        while size > 1e-10 and not improved:
            trial = w + size * (target - w)
            trial_Xw = columns @ trial
            trial_value = float(np.mean(loss.value(y, trial_Xw))) + penalty.value(trial)
            improved = trial_value < value
            size *= 0.5
        if not improved:
            break
        w, Xw, value = trial, trial_Xw, trial_value
    return NullModel(features, w, value, loss.deriv(y, Xw) / n)


def _solve_quadratic(hessian: Array, grad: Array, w: Array, penalty: Any) -> Array:
    """argmin of the quadratic model plus l2 and box: a linear system, or cyclic descent where bounds bind."""
    step = np.linalg.lstsq(hessian + penalty.l2 * np.eye(len(w)), -(grad + penalty.l2 * w), rcond=None)[0]
    target = w + step
    if np.all(target >= penalty.lower) and np.all(target <= penalty.upper):
        return np.asarray(target)
    z = w.copy()
    model_grad = grad.copy()
    for _ in range(1000):
        largest = 0.0
        for j in range(len(z)):
            one = penalty.at([j])
            new = one.prox(z[[j]], model_grad[[j]], hessian[[j], [j]])[0]
            model_grad += hessian[:, j] * (new - z[j])
            largest = max(largest, abs(new - z[j]))
            z[j] = new
        if largest <= 1e-14 * max(1.0, float(np.max(np.abs(z)))):
            break
    return z
