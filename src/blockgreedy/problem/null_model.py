"""The null model: what can be explained without any penalised feature; the scale of `tol` and of alpha_max.

With an intercept alone it is on the way of every fast solve, so it is a formula or a few passes over the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.base.deadline import NEVER, Deadline
from blockgreedy.problem.certificate import ROUNDING, are_few
from blockgreedy.problem.losses import FAR

if TYPE_CHECKING:
    from blockgreedy.base.names import Status
    from blockgreedy.problem.problem import Problem

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
CLOSE = 1e-7  # of a step of Newton's method, whose error is squared by the next
UNFINISHED = "unfinished_null_model"  # where a problem keeps that which a run had no time for


@dataclass(frozen=True)
class NullModel:
    """The minimum over the intercept and unpenalised weights with all penalised ones at zero."""

    features: NDArray[np.intp]  # the unpenalised ones
    coef: Array  # their weights
    intercept: float
    objective: float
    dual: Array  # ω·loss′ there
    floor: float  # a gap that is enough whatever `tol` says
    status: Status = "converged"  # or "max_seconds", "interrupted": as far as it got

    def tol(self, tol: float) -> float:
        """What can be asked for. Where time was up before the null model was found, its objective is too high a scale
        for any ``tol``, and nothing but rounding is enough."""
        return tol if self.status == "converged" else 0.0

    def enough(self, tol: float) -> float:
        """The gap that is enough."""
        return max(self.tol(tol) * self.objective, self.floor)

    def restated(self, **changes: Any) -> NullModel:
        return replace(self, **changes)

    def full_coef(self, n_features: int) -> Array:
        w = np.zeros(n_features)
        w[self.features] = self.coef
        return w


class OutOfRangeError(Exception):
    """A column is too large or too small for the solver: the problem has to be scaled."""


def known_null_model(problem: Problem, deadline: Deadline, n_threads: int) -> NullModel:
    """The null model, fitted in the units of the inner problem and kept with the problem once it has converged."""
    known: NullModel | None = problem.__dict__.get("null_model")
    if known is not None:
        return known
    scaling = problem.scaling
    if not scaling.is_identity:
        null = scaling.null_out(known_null_model(scaling.inner, deadline, n_threads))
    else:
        try:
            null = fit_null_model(problem, deadline, n_threads)
        except OutOfRangeError:
            problem.rescale_columns()
            return known_null_model(problem, deadline, n_threads)
    if not np.isfinite(null.objective):
        raise ValueError(_overflow(problem))
    problem.__dict__["null_model" if null.status == "converged" else UNFINISHED] = null
    return null


def null_so_far(problem: Problem) -> NullModel:
    """The null model; where the time of a run was up before it was found, what that run took for it."""
    known: NullModel | None = problem.__dict__.get("null_model") or problem.__dict__.get(UNFINISHED)
    return problem.null_model if known is None else known


def _overflow(problem: Problem) -> str:
    """Which values make the loss overflow."""
    culprit, largest = "y", float(np.max(np.abs(problem.y)))
    if problem.offset is not None and (problem.loss.is_classifier or np.max(np.abs(problem.offset)) > largest):
        culprit, largest = "offset", float(np.max(np.abs(problem.offset)))
    return f"{culprit} has values up to {largest:g}, for which the loss overflows; rescale {culprit}"


def fit_null_model(problem: Problem, deadline: Deadline, n_threads: int) -> NullModel:
    """The best intercept alone, then the default solver on the unpenalised features (usually none, or a handful).

    Beyond 500 of them they stay at 0: the null model is the scale of `tol`, not part of any proof.
    """
    y, loss = problem.y, problem.loss
    features = np.zeros(0, dtype=np.intp)
    if problem.penalty_weights is not None:
        features = np.flatnonzero(problem.penalty_weights == 0)
        features = features if are_few(problem, features) else features[:0]
    with np.errstate(over="ignore", invalid="ignore"):
        b = best_intercept(problem, until=deadline) if problem.fit_intercept else 0.0
        if loss.is_classifier and problem.offset is None and not len(features):
            # all predictions are b: a loss at each label is enough
            labels, shared = np.array([-1.0, 1.0]), np.full(2, b)
            value = float(np.dot(_class_shares(problem), loss.value(labels, shared)))
            dual = problem.weigh(loss.deriv(labels, shared)[(y > 0).astype(np.intp)])
            return NullModel(features, np.zeros(0), b, value, dual, _floor(problem, value, value))
        predictions = np.full(problem.n_samples, b) if problem.offset is None else problem.offset + b
        value = problem.mean(loss.value(y, predictions))
    w = np.zeros(len(features))
    by_intercept = value
    status: Status = "max_seconds" if deadline.has_passed() else "converged"
    if len(features) and np.isfinite(value) and status == "converged":
        w, b, status = _unpenalised(problem, features, b, value, deadline, n_threads)
        predictions = problem.decision(_spread(w, features, problem.n_features), b)
        value = problem.mean(loss.value(y, predictions)) + problem.penalty_at(features).value(w)
    return NullModel(
        features, w, b, value, problem.dual_at(predictions), _floor(problem, by_intercept, value), status
    )


def _unpenalised(
    problem: Problem, features: NDArray[np.intp], intercept: float, value: float, deadline: Deadline, n_threads: int
) -> tuple[Array, float, Status]:
    """Weights of these features and the intercept; ``value`` is the objective of this intercept alone."""
    from blockgreedy.solvers.unpenalised import fit_unpenalised  # the one place where a problem needs a solver

    few = problem.with_features(features, alpha=0.0)
    try:
        return fit_unpenalised(few, intercept, value, deadline, n_threads)
    except OutOfRangeError:
        if not problem.design.is_tiled:
            raise
    few.rescale_columns()  # tiles stay as they are, but these columns are a copy
    scaling, none = few.scaling, np.zeros(len(features))
    begin = scaling.intercept_in(intercept, slice(None), none)
    w, b, status = fit_unpenalised(scaling.inner, begin, scaling.inner.objective(none, begin), deadline, n_threads)
    w = scaling.weights_out(slice(None), w)
    return w, scaling.intercept_out(b, slice(None), w), status


def _floor(problem: Problem, by_intercept: float, value: float) -> float:
    """Rounding of what there is to explain: what the intercept leaves of the targets, what is left of the classes.

    Where the null model separates the classes, its loss is rounding of the loss at 0.
    """
    if not problem.loss.is_classifier:
        return ROUNDING * by_intercept
    rounding = ROUNDING * loss_at_zero(problem)
    return rounding if value <= 10 * rounding else ROUNDING * value


def loss_at_zero(problem: Problem) -> float:
    """Of a classifier, for which it is one number whatever the labels."""
    return float(problem.loss.value(np.ones(1), np.zeros(1))[0])


def _spread(values: Array, features: NDArray[np.intp], n_features: int) -> Array:
    w = np.zeros(n_features)
    w[features] = values
    return w


def _class_shares(problem: Problem) -> tuple[float, float]:
    """Weights of the negative and of the positive rows; they add up to 1."""
    positive = problem.y > 0
    if problem.row_weights is None:
        count = int(np.count_nonzero(positive))
        return (problem.n_samples - count) / problem.n_samples, count / problem.n_samples
    return problem.mean(np.where(positive, 0.0, 1.0)), problem.mean(np.where(positive, 1.0, 0.0))


@dataclass(frozen=True)
class ConstantRange:
    """Of a classifier: between which numbers the best constant prediction lies."""

    low: float
    high: float
    only_class: int  # 1 or −1 where all rows with weight have this label: then no prediction is the best

    @classmethod
    def of(cls, problem: Problem) -> ConstantRange:
        negative, positive = _class_shares(problem)
        b = problem.loss.null_intercept(negative, positive)
        low, high = (-FAR, FAR) if b is None else (b, b)
        return cls(low, high, 0 if min(negative, positive) > 0 else 1 if positive > 0 else -1)


def best_intercept(problem: Problem, near: float | None = None, close: float = 0.0, until: Deadline = NEVER) -> float:
    """argmin over b of Σ ω_i loss(y_i, b + offset_i): a formula, or the root of an increasing function.

    Derivatives of losses increase with the prediction, so the root lies between the solutions that the least and the
    greatest offset (or target) alone would have. ``near``: where to start looking. ``close``: a step of this size is
    the last (``CLOSE`` where the start is right but for rounding). ``until``: when the best so far will do.
    """
    y, offset, loss = problem.y, problem.offset, problem.loss
    if loss.is_classifier:
        constant = ConstantRange.of(problem)
        has_formula = constant.low == constant.high
        if offset is None and has_formula:
            return constant.low
        used = np.zeros(1) if offset is None else offset
        used = used if offset is None or problem.row_weights is None else used[problem.row_weights > 0]
        low, high = float(constant.low - np.max(used)), float(constant.high - np.min(used))
        if constant.only_class != 0:  # any b beyond its last row explains it
            return high if constant.only_class > 0 else low
        start = (constant.low if has_formula else 0.0) - (0.0 if offset is None else problem.mean(offset))
    elif not loss.depends_on_residual:
        raise TypeError(f"loss {loss.name!r} has no rule for the intercept: see null_intercept")
    else:
        y = y if offset is None else y - offset
        offset = None
        start = problem.mean(y)
        start += problem.mean(y - start)
        if loss.is_quadratic:
            return start
        used = y if problem.row_weights is None else y[problem.row_weights > 0]
        low, high, start = float(np.min(used)), float(np.max(used)), float(np.median(used))

    def slopes(b: float) -> tuple[float, float, float]:
        t = np.full(problem.n_samples, b) if offset is None else offset + b
        first = loss.deriv(y, t)
        size = np.abs(first)
        second = loss.curvature_of(y, t, first)
        return problem.mean(first), problem.mean(second), problem.mean(size)

    return _root(slopes, low, high, min(max(start if near is None else near, low), high), close, until)


def _root(
    slopes: Callable[[float], tuple[float, float, float]],
    low: float,
    high: float,
    b: float,
    close: float,
    until: Deadline,
) -> float:
    """Newton's method inside a bracket; bisection where it would leave it or slows down.

    The last step has this size at most, relative to 1 or b; what is left is about its square.
    """
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
        if previous <= close * (1 + abs(b)) or until.has_passed():
            break
    return b
