"""The null model: what can be explained without any penalised feature; the scale of `tol` and of alpha_max.

With an intercept alone it is on the way of every fast solve, so it is a formula or a few passes over the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.certificate import are_few
from blockgreedy.columns import dense_columns

if TYPE_CHECKING:
    from blockgreedy.problem import Problem

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_FAR = 40.0  # log(1 + exp(−40)) is 4e-18: where a logistic minimum at infinity is given up


@dataclass(frozen=True)
class NullModel:
    """The minimum over the intercept and unpenalised weights with all penalised ones at zero."""

    features: NDArray[np.intp]  # the unpenalised ones
    coef: Array  # their weights
    intercept: float
    objective: float
    dual: Array  # ω·loss′ there

    def full_coef(self, n_features: int) -> Array:
        w = np.zeros(n_features)
        w[self.features] = self.coef
        return w


def fit_null_model(problem: Problem) -> NullModel:
    """The best intercept alone, then Newton's method with the unpenalised features (usually none, or a handful).

    Beyond 500 of them they stay at 0: the null model is the scale of `tol`, not part of any proof.
    """
    y, loss = problem.y, problem.loss
    features = np.zeros(0, dtype=np.intp)
    if problem.penalty_weights is not None:
        features = np.flatnonzero(problem.penalty_weights == 0)
        features = features if are_few(problem.X, features) else features[:0]
    with np.errstate(over="ignore", invalid="ignore"):
        b = _best_intercept(problem) if problem.fit_intercept else 0.0
        if loss.is_classifier and problem.offset is None and not len(features):
            # all predictions are b: a loss at each label is enough
            labels, shared = np.array([-1.0, 1.0]), np.full(2, b)
            value = float(np.dot(_class_shares(problem), loss.value(labels, shared)))
            dual = problem.weigh(loss.deriv(labels, shared)[(y > 0).astype(np.intp)])
            return NullModel(features, np.zeros(0), b, value, dual)
        predictions = np.full(problem.n_samples, b) if problem.offset is None else problem.offset + b
        value = problem.mean(loss.value(y, predictions))
    if not np.isfinite(value):
        culprit, largest = "y", float(np.max(np.abs(y)))
        if problem.offset is not None and (loss.is_classifier or np.max(np.abs(problem.offset)) > largest):
            culprit, largest = "offset", float(np.max(np.abs(problem.offset)))
        raise ValueError(f"{culprit} has values up to {largest:g}, for which the loss overflows; rescale {culprit}")
    w = np.zeros(len(features))
    if len(features):
        w, b, predictions, value = _descend(problem, features, b, predictions, value)
    return NullModel(features, w, b, value, problem.dual_at(predictions))


def _class_shares(problem: Problem) -> tuple[float, float]:
    """Weights of the negative and of the positive rows; they add up to 1."""
    positive = problem.y > 0
    if problem.row_weights is None:
        count = int(np.count_nonzero(positive))
        return (problem.n_samples - count) / problem.n_samples, count / problem.n_samples
    return problem.mean(np.where(positive, 0.0, 1.0)), problem.mean(np.where(positive, 1.0, 0.0))


def _best_intercept(problem: Problem) -> float:
    """argmin over b of Σ ω_i loss(y_i, b + offset_i): a formula, or the root of an increasing function.

    Derivatives of losses increase with the prediction, so the root lies between the solutions that the least and the
    greatest offset (or target) alone would have.
    """
    y, offset, loss = problem.y, problem.offset, problem.loss
    if loss.is_classifier:
        negative, positive = _class_shares(problem)
        if loss.name == "logistic":
            share = min(negative, positive)
            b = np.log(positive) - np.log(negative) if share > 0 else np.copysign(_FAR, positive - negative)
        else:
            share, b = min(negative, positive), (positive - negative) / (positive + negative)
        if offset is None:
            return float(b)
        used = offset if problem.row_weights is None else offset[problem.row_weights > 0]
        low, high = float(b - np.max(used)), float(b - np.min(used))
        if share == 0:  # one class: any b beyond its last row explains it
            return high if positive > 0 else low
        start = float(b) - problem.mean(offset)
    else:
        y = y if offset is None else y - offset
        offset = None
        start = problem.mean(y)
        start += problem.mean(y - start)
        if loss.name == "squared":
            return start
        used = y if problem.row_weights is None else y[problem.row_weights > 0]
        low, high, start = float(np.min(used)), float(np.max(used)), float(np.median(used))

    def slopes(b: float) -> tuple[float, float, float]:
        t = np.full(problem.n_samples, b) if offset is None else offset + b
        first = loss.deriv(y, t)
        size = np.abs(first)
        second = size * (1.0 - size) if loss.name == "logistic" else loss.curvature(y, t)  # saves an exp per row
        return problem.mean(first), problem.mean(second), problem.mean(size)

    return _root(slopes, low, high, min(max(start, low), high))


def _root(slopes: Callable[[float], tuple[float, float, float]], low: float, high: float, b: float) -> float:
    """Newton's method inside a bracket; bisection where it would leave it or slows down."""
    previous = high - low
    for _ in range(200):
        first, second, size = slopes(b)
        if abs(first) <= 2 * _EPS * size:
            break
        low, high = (low, b) if first > 0 else (b, high)
        trial = b - first / second if second > 0 else np.inf
        if not low < trial < high or abs(trial - b) > 0.5 * previous:
            trial = low + 0.5 * (high - low)
        if not low < trial < high:
            break
        previous, b = abs(trial - b), trial
    return b


def _descend(
    problem: Problem, features: NDArray[np.intp], b: float, predictions: Array, value: float
) -> tuple[Array, float, Array, float]:
    """(weights, intercept, predictions, objective) of the minimum over these features and the intercept."""
    y, loss = problem.y, problem.loss
    penalty, columns = problem.penalty.at(features), dense_columns(problem.X, features)
    w, base, at_zero = np.zeros(len(features)), predictions - b, value

    def slope(w: Array, predictions: Array) -> tuple[Array, float, float]:
        theta = problem.dual_at(predictions)
        grad, by_b = columns.T @ theta, float(np.sum(theta)) if problem.fit_intercept else 0.0
        return grad, by_b, max(float(np.max(penalty.subgradient_distance(w, grad))), abs(by_b))

    grad, by_b, residual = slope(w, predictions)
    for _ in range(500):
        if residual == 0 or value <= 1e-13 * at_zero:  # separable classes: the minimum is at infinity
            break
        improved = False
        # The true curvature first; where the loss is flat it may not help, and a majoriser always does.
        for curvature in (np.maximum(loss.curvature(y, predictions), 1e-14), loss.majoriser(y, predictions)):
            weights = problem.weigh(curvature)
            total, centre = float(np.sum(weights)), np.zeros(len(features))
            if problem.fit_intercept:  # eliminated: it takes its best value for any weights
                centre = weights @ columns / total
            centred = columns - centre
            hessian = centred.T @ (weights[:, None] * centred)
            step = _solve_quadratic(hessian, grad - centre * by_b, w, penalty) - w
            step_b = -(by_b / total + float(centre @ step))
            for size in (1.0, 0.5, 0.25, 0.1, 0.01):
                trial, trial_b = w + size * step, b + size * step_b
                trial_predictions = columns @ trial + trial_b + base
                trial_value = problem.mean(loss.value(y, trial_predictions)) + penalty.value(trial)
                trial_slope = slope(trial, trial_predictions)
                # once the objective is down to its rounding, the slope decides
                close = trial_value <= value * (1 + 4 * _EPS) and trial_slope[2] < 0.5 * residual
                improved = trial_value < value or close
                if improved:
                    break
            if improved:
                w, b, predictions, value = trial, trial_b, trial_predictions, trial_value
                grad, by_b, residual = trial_slope
                break
        if not improved:
            break
    return w, b, predictions, value


def _solve_quadratic(hessian: Array, grad: Array, w: Array, penalty: Any) -> Array:
    """argmin of the quadratic model plus l2 and box: a linear system, or cyclic descent where bounds bind."""
    ridge = penalty.l2 * np.eye(len(w))  # one l2 for all, or a row of them: diagonal either way
    step = np.linalg.lstsq(hessian + ridge, -(grad + penalty.l2 * w), rcond=None)[0]
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
