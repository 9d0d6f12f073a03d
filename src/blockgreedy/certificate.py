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

from blockgreedy.columns import dense_columns

if TYPE_CHECKING:
    from blockgreedy.problem import Problem

Array = NDArray[np.float64]

FEASIBLE = 1e-12  # how far rounding may carry a dual point out of its constraints, relative to their size
_MAX_UNPENALISED = 500  # unpenalised columns are handled as a dense array: up to so many of them
_MAX_ENTRIES = 50_000_000  # and up to this size


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


class Unpenalised:
    """The features without penalty that are unbounded on one side or both.

    They constrain the dual by x_j·θ = 0 or by the sign of x_j·θ. There are few of them, if any, so their columns
    are kept as a dense array.
    """

    def __init__(self, problem: Problem, features: NDArray[np.intp]) -> None:
        self.columns = dense_columns(problem.X, features)
        self.norms = np.sqrt(np.sum(self.columns**2, axis=0))
        self.lower, self.upper = problem.penalty.lower[features], problem.penalty.upper[features]

    def violated(self, theta: Array) -> NDArray[np.bool_]:
        """Which constraints θ breaks by more than rounding."""
        v = -(self.columns.T @ theta)
        slack = FEASIBLE * self.norms * np.linalg.norm(theta)
        too_high, too_low = np.isinf(self.upper) & (v > slack), np.isinf(self.lower) & (v < -slack)
        return np.asarray(too_high | too_low, dtype=np.bool_)

    def conjugate(self, theta: Array) -> float:
        """Their share of Σ r_j*(−x_j·θ) where no constraint is broken: that of the bounded sides."""
        v = -(self.columns.T @ theta)
        up = np.where(np.isinf(self.upper), 0.0, self.upper)
        down = np.where(np.isinf(self.lower), 0.0, -self.lower)
        return float(np.sum(np.maximum(v, 0.0) * up + np.maximum(-v, 0.0) * down))


class TooManyUnpenalisedError(Exception):
    """No dual point but 0 is looked for."""


def unpenalised(problem: Problem) -> Unpenalised | None:
    """None where every feature is penalised."""
    if problem.l2 > 0 or (problem.alpha > 0 and (problem.penalty_weights is None or np.all(problem.penalty_weights))):
        return None
    features = np.flatnonzero(problem.penalty.is_free)
    if not _are_few(problem.X, features):
        raise TooManyUnpenalisedError
    return Unpenalised(problem, features) if len(features) else None


def _are_few(X: Any, features: NDArray[np.intp]) -> bool:
    return len(features) <= _MAX_UNPENALISED and X.shape[0] * len(features) <= _MAX_ENTRIES


def loss_conjugate(problem: Problem, theta: Array) -> float:
    """mean loss*(y, n·θ) for θ inside the domain up to rounding (n·(delta/n) may exceed delta by a bit)."""
    u = problem.loss.into_domain(problem.y, problem.n_samples * theta)
    return float(np.mean(problem.loss.conjugate(problem.y, u)))


def _has_conjugate_term(problem: Problem) -> bool:
    """Whether r* is anything but the indicator of the constraints."""
    finite = np.isfinite(problem.lower) & (np.asarray(problem.lower) != 0)
    finite = finite | (np.isfinite(problem.upper) & (np.asarray(problem.upper) != 0))
    return problem.l2 > 0 or bool(np.any(finite))


def dual_value(problem: Problem, theta: Array, passes: ColumnPasses) -> float:
    """D(θ), −inf where θ is infeasible by more than rounding."""
    inside = problem.loss.into_domain(problem.y, problem.n_samples * theta) / problem.n_samples
    if np.max(np.abs(inside - theta)) > FEASIBLE / problem.n_samples:
        return -np.inf
    scale, value = 1.0, -loss_conjugate(problem, inside)
    if problem.l2 == 0 and problem.alpha > 0:
        needed = passes.alpha_needed(theta)
        if needed > problem.alpha * (1 + FEASIBLE):
            return -np.inf
        scale = _just_inside(problem.alpha, needed)
    try:
        apart = unpenalised(problem)
    except TooManyUnpenalisedError:
        return -np.inf
    if apart is not None:
        if np.any(apart.violated(theta)):
            return -np.inf
        value -= apart.conjugate(theta)
    return value - (passes.penalty_conjugate(theta, scale) if _has_conjugate_term(problem) else 0.0)


def _just_inside(alpha: float, needed: float) -> float:
    """The factor ≤ 1 that brings θ inside the inequalities, rounding of the product included."""
    return 1.0 if needed <= alpha else alpha / needed * (1 - 4 * np.finfo(float).eps)


@np.errstate(over="ignore", invalid="ignore")  # a diverging point has no dual value, and that is all
def scaled_dual_point(problem: Problem, Xw: Array, passes: ColumnPasses) -> tuple[Array, float]:
    """The residual of a primal point, projected and scaled until feasible, and its dual value.

    Where that fails it is θ = 0, which is always feasible and proves that the objective is at least 0.
    """
    nothing = np.zeros(problem.n_samples), 0.0
    theta = problem.loss.deriv(problem.y, Xw) / problem.n_samples
    if not np.all(np.isfinite(theta)):
        return nothing
    try:
        apart = unpenalised(problem)
    except TooManyUnpenalisedError:
        return nothing
    if apart is not None:
        projected = _project(problem, theta, Xw, apart)
        if projected is None:
            return nothing
        theta = projected
    needed = passes.alpha_needed(theta) if problem.alpha > 0 else 0.0
    has_term = _has_conjugate_term(problem)
    best, best_value = nothing
    for scale in _scales(problem, theta, needed):
        value = -loss_conjugate(problem, scale * theta)
        if has_term:
            value -= passes.penalty_conjugate(theta, scale)
        if apart is not None:
            value -= apart.conjugate(scale * theta)
        if value > best_value:
            best, best_value = scale * theta, value
    return best, best_value


def _scales(problem: Problem, theta: Array, needed: float) -> list[float]:
    """Factors worth trying: the largest feasible one up to 1, and for the squared loss the best feasible one."""
    feasible = _just_inside(problem.alpha, needed)
    if problem.l2 > 0:
        return [1.0] if feasible == 1.0 else [1.0, feasible]
    if problem.loss.name != "squared" or problem.alpha == 0 or _has_conjugate_term(problem):
        return [feasible]
    u = problem.n_samples * theta
    norm = float(np.dot(u, u))
    limit = problem.alpha / needed * (1 - 4 * np.finfo(float).eps) if needed > 0 else np.inf
    return [min(limit, max(0.0, -float(np.dot(u, problem.y)) / norm))] if 0 < norm < np.inf else [feasible]


def _project(problem: Problem, theta: Array, Xw: Array, apart: Unpenalised) -> Array | None:
    """θ moved onto the constraints of the unpenalised features, inside the loss's domain; None if that fails.

    Constraints found broken become equalities. The move is weighted with the loss's curvature: it is a Newton
    step in those features, so it shrinks near the ends of the domain and seldom leaves it.
    """
    n = problem.n_samples
    weights = np.maximum(problem.loss.curvature(problem.y, Xw), 1e-12)
    held = np.zeros(len(apart.norms), dtype=np.bool_)
    inverse = columns = None
    for _ in range(20):
        broken = apart.violated(theta)
        if not np.any(broken):
            return theta
        if np.any(broken & ~held):
            held |= broken
            if np.sum(held) >= n:  # only θ = 0 is left
                return None
            columns, inverse = apart.columns[:, held], None
        assert columns is not None
        if inverse is None:
            inverse = np.linalg.pinv(columns.T @ (weights[:, None] * columns), hermitian=True)
        move = weights * (columns @ (inverse @ (columns.T @ theta)))
        theta = problem.loss.into_domain(problem.y, n * (theta - move)) / n
    return None


def fit_null_model(problem: Problem) -> NullModel:
    """Newton's method on the unpenalised features (usually none, or a handful).

    Beyond 500 of them the zero model stands in: the null model is the scale of `tol`, not part of any proof.
    """
    y, n, loss = problem.y, problem.n_samples, problem.loss
    features = np.zeros(0, dtype=np.intp)
    if problem.penalty_weights is not None:
        features = np.flatnonzero(problem.penalty_weights == 0)
        features = features if _are_few(problem.X, features) else features[:0]
    w, Xw = np.zeros(len(features)), np.zeros(n)
    with np.errstate(over="ignore"):
        value = float(np.mean(loss.value(y, Xw)))
    if not np.isfinite(value):
        raise ValueError(f"y has values up to {np.max(np.abs(y)):g}, for which the loss overflows; rescale y")
    if len(features):
        w, Xw, value = _descend_from_zero(problem, features, value)
    return NullModel(features, w, value, loss.deriv(y, Xw) / n)


def _descend_from_zero(problem: Problem, features: NDArray[np.intp], value: float) -> tuple[Array, Array, float]:
    """(weights, predictions, objective) of the minimum over these features alone."""
    y, n, loss = problem.y, problem.n_samples, problem.loss
    penalty, columns = problem.penalty.at(features), dense_columns(problem.X, features)
    w, Xw = np.zeros(len(features)), np.zeros(n)
    for _ in range(500):
        grad = columns.T @ loss.deriv(y, Xw) / n
        improved = False
        # The true curvature first; where the loss is flat it may not help, and a majoriser always does.
        for curvature in (np.maximum(loss.curvature(y, Xw), 1e-10), loss.majoriser(y, Xw)):
            target = _solve_quadratic(columns.T @ (curvature[:, None] * columns) / n, grad, w, penalty)
            for size in (1.0, 0.5, 0.25, 0.1, 0.01):
                trial = w + size * (target - w)
                trial_Xw = columns @ trial
                trial_value = float(np.mean(loss.value(y, trial_Xw))) + penalty.value(trial)
                improved = trial_value < value
                if improved:
                    break
            if improved:
                w, Xw, value = trial, trial_Xw, trial_value
                break
        if not improved:
            break
    return w, Xw, value


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
