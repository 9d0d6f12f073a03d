"""Losses in NumPy: the readable twin of ``cpp/blockgreedy/losses.hpp``.

A loss is scalar maths of a target ``y`` and a prediction ``t``; it never sees X. ``conjugate(y, u)`` is
sup_t u·t − value(y, t), infinite outside of its domain. ``smoothness`` is the supremum of the second
derivative (β in the paper).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlog1py, xlogy

from blockgreedy.options import number, one_of, shown

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Loss:
    name: ClassVar[str]
    code: ClassVar[int]  # its number in the core
    smoothness: ClassVar[float]
    is_classifier: ClassVar[bool] = False
    has_plateau: ClassVar[bool] = False  # 0 on a whole half line, with all derivatives

    def value(self, y: Array, t: Array) -> Array:
        raise NotImplementedError

    def deriv(self, y: Array, t: Array) -> Array:
        raise NotImplementedError

    def curvature(self, y: Array, t: Array) -> Array:
        raise NotImplementedError

    def conjugate(self, y: Array, u: Array) -> Array:
        raise NotImplementedError

    def into_domain(self, y: Array, u: Array) -> Array:
        """The nearest point of the conjugate's domain."""
        return u

    def scaled(self, factor: float) -> Loss:
        """The loss L' with L'(factor·y, factor·t) = factor²·L(y, t); targets of a classifier are never scaled."""
        return self


class Squared(Loss):
    """½(t − y)²"""

    name, code, smoothness = "squared", 0, 1.0

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

    name, code, smoothness, is_classifier = "logistic", 1, 0.25, True

    def value(self, y: Array, t: Array) -> Array:
        return np.logaddexp(0.0, -y * t)

    def deriv(self, y: Array, t: Array) -> Array:
        return np.asarray(-y * expit(-y * t), dtype=np.float64)

    def curvature(self, y: Array, t: Array) -> Array:
        p = np.asarray(expit(-np.abs(t)), dtype=np.float64)
        return p * (1.0 - p)

    def conjugate(self, y: Array, u: Array) -> Array:
        a = -y * u  # probability of the other class
        inside = (a >= 0) & (a <= 1)
        a = np.where(inside, a, 0.0)
        return np.where(inside, xlogy(a, a) + xlog1py(1.0 - a, -a), np.inf)

    def into_domain(self, y: Array, u: Array) -> Array:
        return -y * np.clip(-y * u, 0.0, 1.0)


class SquaredHinge(Loss):
    """max(0, 1 − y t)², y = ±1 (no ½, as in LIBLINEAR)"""

    name, code, smoothness, is_classifier = "squared_hinge", 2, 2.0, True
    has_plateau = True

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
    name, code, smoothness = "huber", 3, 1.0

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
    one_of("loss", name, LOSSES)
    try:
        delta = number("huber_delta", huber_delta)
    except ValueError:
        delta = float("nan")
    if not (np.isfinite(delta) and delta > 0):
        raise ValueError(f"huber_delta={shown(huber_delta)} must be a finite number above 0")
    return Huber(delta=delta) if name == "huber" else LOSSES[name]()
