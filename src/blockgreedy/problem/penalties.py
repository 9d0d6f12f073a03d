"""The separable penalty in NumPy: the readable twin of ``cpp/math/penalties.hpp``.

One form covers l1, elastic net, per-feature weights, non-negative weights and boxes::

    r_j(z) = alpha·u_j·|z| + l2_j/2·z²   on   lower_j ≤ z ≤ upper_j,   lower_j ≤ 0 ≤ upper_j

u_j = 0 leaves a feature unpenalised, u_j = inf excludes it (its weight stays 0).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from blockgreedy.base.cached import cached_property

Array = NDArray[np.float64]


_FAR_BOUND = 1e8


def without_far_bounds(lower: Array, upper: Array) -> tuple[Array, Array]:
    """The bounds of unpenalised features, but infinite where they lie far beyond all weights.

    What is proven without such a bound holds with it as well, and as a price for what rounding leaves of x_j·θ = 0 it
    would be all there is.
    """
    return np.where(lower <= -_FAR_BOUND, -np.inf, lower), np.where(upper >= _FAR_BOUND, np.inf, upper)


def within_reach(bound: Array, l1: Array, most: float) -> Array:
    """Bounds, as distances from 0, no farther than where an L1 penalty is ``most``; infinite ones stay."""
    with np.errstate(over="ignore"):
        reach = np.divide(most, l1, out=np.full(len(l1), np.inf), where=l1 > 0)
    return np.where(np.isinf(bound), bound, np.fmin(bound, reach))


def _product(exponent: int, a: float, b: float) -> float:
    """a·b·2^exponent, which alone may leave the range of float64."""
    (x, i), (y, j) = math.frexp(a), math.frexp(b)
    try:
        return math.ldexp(x * y, i + j + exponent)
    except OverflowError:
        return math.inf


@dataclass(frozen=True)
class Penalty:
    """All functions work on every coordinate at once; ``at(j)`` narrows to some of them."""

    alpha: float
    unit: Array  # u_j, 0 for excluded features (their box is [0, 0])
    ridge: float  # l2 of the problem
    scales: Array | None  # the ridge is on scales_j·z; None: on z
    lower: Array
    upper: Array

    @cached_property
    def l1(self) -> Array:
        """alpha·u_j"""
        return self.alpha * self.unit

    @cached_property
    def l2(self) -> float | Array:
        """l2_j: one for all, or one for each where columns are standardised."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.ridge if self.scales is None else self.ridge * self.scales**2

    def at(self, j: NDArray[np.intp] | list[int]) -> Penalty:
        scales = None if self.scales is None else self.scales[j]
        return replace(self, unit=self.unit[j], scales=scales, lower=self.lower[j], upper=self.upper[j])

    def value(self, z: Array, exponent: int = 0) -> float:
        """Σ_j r_j(z_j)·2^exponent; infinite outside of the box."""
        if np.any(z < self.lower) or np.any(z > self.upper):
            return float("inf")
        # alpha·u and scales² may leave the range of float64 where u·z and scales·z do not
        with np.errstate(over="ignore"):
            size = float(np.sum(self.unit * np.abs(z)))
            scaled = z if self.scales is None or self.ridge == 0 else self.scales * z
            if exponent == 0:
                return self.alpha * size + (0.5 * self.ridge * float(np.dot(scaled, scaled)) if self.ridge else 0.0)
        most = float(np.max(np.abs(scaled), initial=0.0))
        if not (np.isfinite(size) and np.isfinite(most)):
            return float("inf")
        by = math.frexp(most)[1]
        squares = float(np.sum(np.ldexp(scaled, -by) ** 2))
        return _product(exponent, self.alpha, size) + _product(exponent + 2 * by, 0.5 * self.ridge, squares)

    def prox(self, w: Array, grad: Array, curvature: Array) -> Array:
        """argmin_z curvature/2·(z − w)² + grad·(z − w) + r(z)"""
        v = curvature * w - grad
        shrunk = np.sign(v) * np.maximum(np.abs(v) - self.l1, 0.0)
        total = curvature + self.l2
        seen = total > 0  # the loss does not see an empty column
        z = np.divide(shrunk, total, out=np.zeros_like(v), where=seen)
        return np.where(seen, np.clip(z, self.lower, self.upper), np.where(self.l1 > 0, 0.0, w))

    def gain(self, w: Array, z: Array, grad: Array, curvature: Array) -> Array:
        """What moving from w to z lowers that model by; |z| − |w| written so that it does not cancel."""
        step = z - w
        l1_change = np.where(z * w > 0, np.sign(w) * step, np.abs(z) - np.abs(w))
        return -(step * (grad + self.l2 * w + 0.5 * (curvature + self.l2) * step) + self.l1 * l1_change)

    def moves(self, w: Array, z: Array, grad: Array, curvature: Array) -> NDArray[np.bool_]:
        """Whether the step is more than the rounding of ``prox``."""
        total = curvature + self.l2
        rounding = 1e-12 * (curvature * np.abs(w) + np.abs(grad))
        return np.asarray((np.abs(z - w) * total > rounding) | ((total == 0) & (z != w)), dtype=np.bool_)

    def conjugate(self, v: Array, most: float = np.inf) -> Array:
        """sup_z v·z − r(z), coordinate by coordinate.

        ``most``: what the penalty may be at most, which keeps z from going on to a bound that stands for none, such
        as 1e20; where there is no bound at all it changes nothing.
        """
        excess = np.maximum(np.abs(v) - self.l1, 0.0)
        bound = np.where(v > 0, self.upper, -self.lower)
        bound = within_reach(bound, self.l1, most)
        if np.any(np.asarray(self.l2) > 0):
            l2 = np.broadcast_to(self.l2, excess.shape)
            z: Array = np.minimum(np.divide(excess, l2, out=np.full_like(v, np.inf), where=l2 > 0), bound)
            z[excess == 0] = 0.0
            return z * (excess - 0.5 * self.l2 * z)
        return np.multiply(excess, bound, out=np.zeros_like(v), where=excess > 0)

    def subgradient_distance(self, w: Array, grad: Array) -> Array:
        """Distance from −grad to ∂r(w): 0 exactly at a minimum."""
        slope = -(grad + self.l2 * w)
        low = np.where(w > 0, self.l1, -self.l1)
        high = np.where(w < 0, -self.l1, self.l1)
        below = np.where(w > self.lower, np.maximum(low - slope, 0.0), 0.0)
        above = np.where(w < self.upper, np.maximum(slope - high, 0.0), 0.0)
        return np.maximum(below, above)

    @property
    def is_free(self) -> NDArray[np.bool_]:
        """Unpenalised and unbounded on at least one side: an equality or a sign constraint in the dual."""
        lower, upper = without_far_bounds(self.lower, self.upper)
        free = (self.l1 == 0) & (np.asarray(self.l2) == 0) & (np.isinf(lower) | np.isinf(upper))
        return np.asarray(free, dtype=np.bool_)
