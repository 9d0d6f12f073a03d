"""The quadratic model of the objective on the working set, and its minimisation.

    q(z) = g·(z − w) + ½ (z − w)ᵀ(ZᵀZ + l2)(z − w) + Σ l1_j |z_j|   on   lower ≤ z ≤ upper

Vectors of the working set are the same on every rank; a product ZᵀZp is the only message.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.tiles import tuning
from blockgreedy.backends.tiles.time_left import NO_LIMIT, TimeLeft

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass
class WorkingPenalty:
    """The penalty of the working set's columns."""

    l1: Array
    l2: Array
    lower: Array
    upper: Array

    def value_or_inf(self, z: Array) -> float:
        """inf outside of the bounds."""
        if np.any(z < self.lower) or np.any(z > self.upper):
            return float("inf")
        return float(np.sum(self.l1 * np.abs(z) + 0.5 * self.l2 * z * z))

    def clip(self, z: Array) -> Array:
        return np.clip(z, self.lower, self.upper)


@dataclass
class InterceptModel:
    """The intercept of the model, which follows from the weights: columns are centred without being changed.

    Its best step for a step d of the weights is −(slope + coupling·d)/mass; put into the model, it takes the shares
    below off products, slopes and diagonal.
    """

    coupling: Array  # Σ h_i x_ij of each column
    mass: float  # Σ h_i
    slope: float  # Σ θ_i

    def step(self, d: Array) -> float:
        return -(self.slope + float(self.coupling @ d)) / self.mass

    def share(self, p: Array) -> Array:
        return self.coupling * (float(self.coupling @ p) / self.mass)

    @property
    def slope_share(self) -> Array:
        return self.coupling * (self.slope / self.mass)

    @property
    def diagonal_share(self) -> Array:
        return self.coupling**2 / self.mass

    def linear_change(self, d: Array, shift: float) -> float:
        """What the model of the weights alone leaves out of the objective's slope along the step."""
        return float(self.slope_share @ d) + self.slope * shift


class Model:
    def __init__(
        self,
        weights: Array,
        gradient: Array,
        diagonal: Array,
        penalty: WorkingPenalty,
        product: Callable[[Array, NDArray[np.int32]], Array],
        kappa: float,
        time: TimeLeft = NO_LIMIT,
    ) -> None:
        """``time``: which products ask for; once it is up, what is begun comes to an end."""
        self.start, self.z = weights, weights.copy()
        self.penalty, self.kappa, self._time = penalty, kappa, time
        self.diagonal = diagonal + penalty.l2
        self._product, self._all = product, np.arange(len(weights), dtype=np.int32)
        self.slope = gradient + penalty.l2 * weights  # of the smooth part, at z
        self._first_slope = self.slope
        self.change = 0.0  # of the model since the start: never positive
        self.n_products = 0

    def product(self, p: Array, wanted: NDArray[np.int32] | None = None) -> Array:
        """(ZᵀZ + l2)p, of the columns that are wanted (None: all)."""
        self.n_products += 1
        wanted = self._all if wanted is None else wanted
        return self._product(p, wanted) + (self.penalty.l2 * p)[wanted]

    def linear_change(self, z: Array) -> float:
        """From the start to z, without curvature: what the objective falls by at first, at least."""
        l1 = float(np.sum(self.penalty.l1 * (np.abs(z) - np.abs(self.start))))
        return float(self._first_slope @ (z - self.start)) + l1

    @property
    def excess(self) -> float:
        """How far |slope| exceeds its threshold at most, as a part of it: scaling a dual point costs so much."""
        penalised = self.penalty.l1 > 0
        over = np.abs(self.slope[penalised]) / self.penalty.l1[penalised] - 1
        return float(np.max(over, initial=0.0))

    def cycle(self, truncated: bool, goal: float | None = None) -> None:
        """``goal``: how far slopes may exceed their thresholds, where that is what the model is solved for."""
        for _ in range(tuning.PROX_STEPS):
            self._prox_step()
            if self._time.is_up:
                return
        self._newton_step(tuning.CG_MOST_TRUNCATED if truncated else tuning.CG_MOST, goal)

    def _l1_change(self, z: Array) -> float:
        return float(np.sum(self.penalty.l1 * (np.abs(z) - np.abs(self.z))))

    def _prox_step(self) -> None:
        pen = self.penalty
        scale = self.kappa * self.diagonal
        scale = np.where(scale > 0, scale, np.inf)
        v = self.z - self.slope / scale
        z = pen.clip(np.sign(v) * np.maximum(np.abs(v) - pen.l1 / scale, 0.0))
        step = z - self.z
        linear = float(self.slope @ step) + self._l1_change(z)
        if not linear < 0:
            return
        bent = self.product(step)
        curvature = float(step @ bent)
        size = min(1.0, -linear / curvature) if curvature > 0 else 1.0
        if size < 1 and linear + 0.5 * curvature <= 0.5 * (size * linear + 0.5 * size * size * curvature):
            size = 1.0
        self._move(self.z + size * step, size * bent, size * size * curvature)
        self.kappa = max(
            tuning.KAPPA_MARGIN * curvature / float(np.sum(self.diagonal * step * step)),
            tuning.KAPPA_FADE * self.kappa,
        )

    def _move(self, z: Array, bent: Array, curvature: float) -> None:
        self.change += float(self.slope @ (z - self.z)) + self._l1_change(z) + 0.5 * curvature
        self.slope = self.slope + bent
        self.z = z

    def _newton_step(self, most: int, goal: float | None) -> None:
        pen, z = self.penalty, self.z
        inside = (z > pen.lower) & (z < pen.upper)
        # a weight without penalty may leave its bound, if that is where it is drawn
        leaves = ((z < pen.upper) & (self.slope < 0)) | ((z > pen.lower) & (self.slope > 0))
        free = np.where(pen.l1 == 0, inside | leaves, (z != 0) & inside) & (self.diagonal > 0)
        if not np.any(free):
            return
        slope = self.slope + pen.l1 * np.sign(z)
        direction, bent, gain = self._conjugate_gradients(free, slope, most, goal)
        if not gain > 0:
            return
        target = self._into_orthant(z + direction)
        best: tuple[float, Array, Array, float] | None = None
        cut = (target != z + direction) & free
        if not np.any(cut):
            full = self.product(direction)
            self._move(target, full, float(direction @ full))
            return
        frozen = cut
        for attempt in range(1 + tuning.MOST_FREEZES):
            step = target - z
            full = self.product(step)
            curvature = float(step @ full)
            change = float(self.slope @ step) + self._l1_change(target) + 0.5 * curvature
            if best is None or change < best[0]:
                best = change, target, full, curvature
            is_last = attempt == tuning.MOST_FREEZES or self._time.is_up
            if -best[0] >= tuning.CLIPPED_KEEPS * gain or is_last:
                break
            # weights that would change their sign stay at zero, and the rest is solved again
            fixed = np.where(frozen, target - z, 0.0)
            bent_fixed = self.product(fixed)
            direction2, _, _ = self._conjugate_gradients(free & ~frozen, slope + bent_fixed, most, goal)
            trial = z + fixed + direction2
            target = self._into_orthant(trial)
            frozen = frozen | ((target != trial) & free)
        assert best is not None
        size = self._best_size(direction, bent)
        z_there = self._at(direction, size)
        there = size * float(self.slope @ direction) + 0.5 * size * size * float(direction @ bent)
        there += self._l1_change(z_there)
        if there < min(best[0], 0.0) and -best[0] < tuning.CLIPPED_KEEPS * gain:
            full = self.product(direction)
            self._move(z_there, size * full, size * size * float(direction @ full))
        elif best[0] < 0:
            self._move(best[1], best[2], best[3])

    def _into_orthant(self, z: Array) -> Array:
        """Weights that change their sign stop at zero, others at their bounds."""
        same = (z * self.z >= 0) | (self.penalty.l1 == 0)
        return self.penalty.clip(np.where(same, z, 0.0))

    def _at(self, direction: Array, size: float) -> Array:
        """The point after a step; weights that reach 0 there are 0."""
        z = self.z + size * direction
        z[np.abs(z) <= 1e-12 * np.abs(self.z)] = 0.0
        return self.penalty.clip(z)

    def _best_size(self, direction: Array, bent: Array) -> float:
        """The step up to 1 that lowers the model most along the direction, signs changing on the way.

        Along a line the model is a convex parabola with kinks where weights pass 0: the minimum is where its slope
        changes sign. Costs no product.
        """
        pen, moving = self.penalty, direction != 0
        d, z, l1 = direction[moving], self.z[moving], pen.l1[moving]
        with np.errstate(over="ignore"):
            room = np.where(d > 0, pen.upper[moving] - z, pen.lower[moving] - z) / d
        most = min(1.0, float(np.min(room, initial=1.0)))
        kinks = np.divide(-z, d, out=np.full(len(z), np.inf), where=(z != 0) & (l1 > 0))
        passed = np.flatnonzero((kinks > 0) & (kinks < most))
        passed = passed[np.argsort(kinks[passed])]
        at, curvature = np.append(kinks[passed], most), float(direction @ bent)
        start = float(self.slope @ direction) + float(np.sum(l1 * d * np.where(z != 0, np.sign(z), np.sign(d))))
        slopes = start + np.concatenate([[0.0], np.cumsum(2 * l1[passed] * np.abs(d[passed]))])  # of each piece, at 0
        for piece, end in enumerate(at):
            if slopes[piece] + curvature * end >= 0:
                begin = at[piece - 1] if piece else 0.0
                inside = -slopes[piece] / curvature if curvature > 0 else begin
                return float(min(max(inside, begin), end))
        return most

    def _conjugate_gradients(
        self, free: Mask, slope: Array, most: int, goal: float | None
    ) -> tuple[Array, Array, float]:
        """The step, its product on the free weights, and what it lowers the quadratic by."""
        ids = np.flatnonzero(free).astype(np.int32)
        residual = -slope[ids]
        scale = 1.0 / self.diagonal[ids]
        step, bent = np.zeros(len(ids)), np.zeros(len(ids))
        y = scale * residual
        p, rho, gain = y, float(residual @ y), 0.0
        spread = np.zeros(len(slope))
        near = np.zeros(len(ids)) if goal is None else 0.5 * goal * self.penalty.l1[ids]
        for _ in range(most if goal is None else tuning.CG_MOST_ENDGAME):
            if not rho > 0:
                break
            spread[ids] = p
            q = self.product(spread, ids)
            curvature = float(p @ q)
            if not curvature > 0:
                break
            size = rho / curvature
            step, bent, residual = step + size * p, bent + size * q, residual - size * q
            more = 0.5 * size * rho
            gain += more
            if self._time.is_up:
                break
            if (more <= tuning.CG_SHARE * gain) if goal is None else bool(np.all(np.abs(residual) <= near)):
                break
            y = scale * residual
            rho, before = float(residual @ y), rho
            p = y + rho / before * p
        direction, full = np.zeros(len(slope)), np.zeros(len(slope))
        direction[ids], full[ids] = step, bent
        return direction, full, gain
