"""Losses in NumPy: the readable twin of ``cpp/math/losses.hpp``.

A loss is scalar maths of a target ``y`` and a prediction ``t``; it never sees X. ``conjugate(y, u)`` is
sup_t u·t − value(y, t), infinite outside of its domain. The traits say what a loss can do: solvers ask these, never
which loss it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlog1py, xlogy

from blockgreedy.base.names import LOSS_NAMES, LossName
from blockgreedy.base.validate import one_of, positive

Array = NDArray[np.float64]
FAR = 40.0  # log(1 + exp(−40)) is 4e-18: where a logistic minimum at infinity is given up


@dataclass(frozen=True)
class Loss(ABC):
    name: ClassVar[LossName]
    curvature_bound: ClassVar[float]  # supremum of the second derivative, β in the paper; inf where there is none
    is_classifier: ClassVar[bool] = False  # targets are −1 and 1
    depends_on_residual: ClassVar[bool] = False  # a function of t − y: targets may be shifted, and offsets taken off
    is_quadratic: ClassVar[bool] = False  # its quadratic model is the loss itself, everywhere
    has_flat_parts: ClassVar[bool] = False  # the second derivative is 0 on whole intervals
    has_plateau: ClassVar[bool] = False  # the loss itself is 0 on a half line
    gives_probabilities: ClassVar[bool] = False  # exp(−loss) is the probability of a class: see ``probabilities``
    parameter: ClassVar[str | None] = None  # the argument of Problem that it takes

    @property
    def code(self) -> int:
        """Its number in the core."""
        return LOSS_NAMES.index(self.name)

    @property
    def derivative_bound(self) -> float:
        """Supremum of |derivative|; inf where there is none."""
        return float("inf")

    def null_intercept(self, negative: float, positive: float) -> float | None:
        """Of a classifier: the best constant prediction for these shares of the classes; None: no formula."""
        return None

    def minus_two_log_likelihood(self, n_rows: float, losses: Array) -> Array | None:
        """Of models with these mean losses, up to a constant; None where the loss belongs to no likelihood."""
        return None

    def probabilities(self, decision: Array) -> Array:
        """Of the positive class, where ``gives_probabilities``."""
        raise TypeError(f"loss={self.name!r} gives no probabilities")

    @abstractmethod
    def value(self, y: Array, t: Array) -> Array: ...

    @abstractmethod
    def deriv(self, y: Array, t: Array) -> Array: ...

    @abstractmethod
    def curvature(self, y: Array, t: Array) -> Array: ...

    def curvature_of(self, y: Array, t: Array, deriv: Array) -> Array:
        """The curvature, where the derivative is known: cheaper for some."""
        return self.curvature(y, t)

    @abstractmethod
    def conjugate(self, y: Array, u: Array) -> Array: ...

    def lowest(self, y: Array) -> Array:
        """The infimum over t: what a dual point of 0 proves of a row."""
        return -self.conjugate(y, np.zeros_like(y)) + 0.0  # never −0

    def into_domain(self, y: Array, u: Array) -> Array:
        """The nearest point of the conjugate's domain."""
        return u

    def scaled(self, factor: float) -> Loss:
        """The loss L' with L'(factor·y, factor·t) = factor²·L(y, t); targets of a classifier are never scaled."""
        return self


class Squared(Loss):
    """½(t − y)²"""

    name, curvature_bound = "squared", 1.0
    depends_on_residual = is_quadratic = True

    def minus_two_log_likelihood(self, n_rows: float, losses: Array) -> Array:
        with np.errstate(divide="ignore"):
            return n_rows * np.log(2 * losses)  # the variance is estimated too

    def value(self, y: Array, t: Array) -> Array:
        return 0.5 * (t - y) ** 2

    def deriv(self, y: Array, t: Array) -> Array:
        return t - y

    def curvature(self, y: Array, t: Array) -> Array:
        return np.ones_like(t)

    def conjugate(self, y: Array, u: Array) -> Array:
        return u * (0.5 * u + y)


class Logistic(Loss):
    """log(1 + exp(−y t)), y = ±1"""

    name, curvature_bound, is_classifier = "logistic", 0.25, True
    gives_probabilities = True

    @property
    def derivative_bound(self) -> float:
        return 1.0

    def null_intercept(self, negative: float, positive: float) -> float:
        if min(negative, positive) == 0:
            return float(np.copysign(FAR, positive - negative))
        return float(np.log(positive) - np.log(negative))

    def minus_two_log_likelihood(self, n_rows: float, losses: Array) -> Array:
        return 2 * n_rows * losses

    def probabilities(self, decision: Array) -> Array:
        return np.asarray(expit(decision), dtype=np.float64)

    def value(self, y: Array, t: Array) -> Array:
        return np.logaddexp(0.0, -y * t)

    def deriv(self, y: Array, t: Array) -> Array:
        return np.asarray(-y * expit(-y * t), dtype=np.float64)

    def curvature(self, y: Array, t: Array) -> Array:
        p = np.asarray(expit(-np.abs(t)), dtype=np.float64)
        return p * (1.0 - p)

    def curvature_of(self, y: Array, t: Array, deriv: Array) -> Array:
        size = np.abs(deriv)
        return size * (1.0 - size)  # saves an exp per row

    def conjugate(self, y: Array, u: Array) -> Array:
        a = -y * u  # probability of the other class
        inside = (a >= 0) & (a <= 1)
        a = np.where(inside, a, 0.0)
        return np.where(inside, xlogy(a, a) + xlog1py(1.0 - a, -a), np.inf)

    def into_domain(self, y: Array, u: Array) -> Array:
        return -y * np.clip(-y * u, 0.0, 1.0)


class SquaredHinge(Loss):
    """max(0, 1 − y t)², y = ±1 (no ½, as in LIBLINEAR)"""

    name, curvature_bound, is_classifier = "squared_hinge", 2.0, True
    has_flat_parts = has_plateau = True

    def null_intercept(self, negative: float, positive: float) -> float:
        return (positive - negative) / (positive + negative)

    def value(self, y: Array, t: Array) -> Array:
        return np.maximum(0.0, 1.0 - y * t) ** 2

    def deriv(self, y: Array, t: Array) -> Array:
        return -2.0 * y * np.maximum(0.0, 1.0 - y * t)

    def curvature(self, y: Array, t: Array) -> Array:
        return np.where(y * t < 1.0, 2.0, 0.0)

    def conjugate(self, y: Array, u: Array) -> Array:
        a = -y * u
        return np.where(a >= 0, a * (0.25 * a - 1.0), np.inf)

    def into_domain(self, y: Array, u: Array) -> Array:
        return -y * np.maximum(-y * u, 0.0)


@dataclass(frozen=True)
class Huber(Loss):
    """½r² for |r| ≤ delta, delta(|r| − delta/2) beyond, r = t − y"""

    delta: float = 1.35
    name, curvature_bound = "huber", 1.0
    depends_on_residual = has_flat_parts = True
    parameter = "huber_delta"

    @property
    def derivative_bound(self) -> float:
        return self.delta

    def value(self, y: Array, t: Array) -> Array:
        r = np.abs(t - y)
        return np.where(r > self.delta, self.delta * (r - 0.5 * self.delta), 0.5 * r**2)

    def deriv(self, y: Array, t: Array) -> Array:
        return np.clip(t - y, -self.delta, self.delta)

    def curvature(self, y: Array, t: Array) -> Array:
        return np.where(np.abs(t - y) <= self.delta, 1.0, 0.0)

    def conjugate(self, y: Array, u: Array) -> Array:
        return np.where(np.abs(u) <= self.delta, u * (0.5 * u + y), np.inf)

    def scaled(self, factor: float) -> Loss:
        return Huber(delta=factor * self.delta)

    def into_domain(self, y: Array, u: Array) -> Array:
        return np.clip(u, -self.delta, self.delta)


LOSSES: dict[str, type[Loss]] = {loss.name: loss for loss in (Squared, Logistic, SquaredHinge, Huber)}


def make_loss(name: str, huber_delta: float) -> Loss:
    one_of("loss", name, LOSS_NAMES)
    delta = positive("huber_delta", huber_delta)
    return Huber(delta=delta) if name == "huber" else LOSSES[name]()
