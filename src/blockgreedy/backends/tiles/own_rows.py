"""The rows that a rank owns: predictions, dual point θ and curvatures there, and sums over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.tiles.local import LocalLoss, Team
from blockgreedy.problem.losses import Loss

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RowSums:
    """What sums over all rows say of a θ."""

    square: float
    moved: float  # squared distance from the θ of the last scan
    sum: float
    along: float  # of a quadratic loss: θ·y
    scaled_square: float  # and Σ θ²/ω

    @property
    def norm(self) -> float:
        return float(np.sqrt(self.square))

    @property
    def distance(self) -> float:
        return float(np.sqrt(self.moved))

    def best_scale(self, is_lasso: bool) -> float:
        if not is_lasso or not self.scaled_square > 0:
            return 1.0
        return min(1.0, max(0.0, -self.along / self.scaled_square))


class OwnRows:
    """``weights`` are ω_i: 1/n, or the sample weights divided by their sum."""

    def __init__(self, loss: Loss, y: Array, weights: Array, offset: Array | None, team: Team) -> None:
        self.loss, self.y, self.weights, self.offset = loss, y, weights, offset
        self._local = LocalLoss(loss, y, weights, team)
        self.predictions = np.zeros(len(y))
        self.theta = np.zeros(len(y))  # ω_i loss′
        self.root = np.zeros(
            len(y), dtype=np.float32
        )  # √(ω_i curvature) of the quadratic that the next step minimises

    def __len__(self) -> int:
        return len(self.y)

    def move_to(self, predictions: Array, margin: float, flat: float) -> float:
        """Takes these predictions; returns the loss."""
        self.predictions = predictions
        loss, self.theta, self.root = self._local.evaluate(predictions, margin, flat)
        return loss

    def losses_along(self, direction: Array, steps: Array) -> Array:
        """The loss after each step along a direction of the predictions."""
        return self._local.along(self.predictions, direction, steps)

    def theta_after(self, direction: Array) -> Array:
        """θ after a whole step along a direction of the predictions."""
        return self._local.evaluate(self.predictions + direction, -np.inf, 0.0)[1]

    @property
    def curvature(self) -> Array:
        return np.square(self.root.astype(np.float64))

    def _unweighted(self, theta: Array) -> Array:
        return np.divide(theta, self.weights, out=np.zeros(len(self)), where=self.weights > 0)

    def into_domain(self, theta: Array) -> Array:
        """The nearest θ of which the loss has a conjugate."""
        u = self._unweighted(theta)
        inside = self.loss.into_domain(self.y, u)
        return np.where(inside == u, theta, self.weights * inside)

    def inside_domain(self, theta: Array) -> NDArray[np.bool_]:
        """Rows whose θ can move both ways."""
        u = self._unweighted(theta)
        step = 1e-9 * np.maximum(np.abs(u), 1e-9)
        ahead, back = u + step, u - step
        both = (self.loss.into_domain(self.y, ahead) == ahead) & (self.loss.into_domain(self.y, back) == back)
        return np.asarray(both & (self.weights > 0), dtype=np.bool_)

    def conjugate(self, theta: Array) -> float:
        """Σ ω loss*(y, θ/ω) − θ·offset, for θ inside the domain up to rounding."""
        u = self.loss.into_domain(self.y, self._unweighted(theta))
        value = float(np.sum(self.weights * self.loss.conjugate(self.y, u)))
        return value if self.offset is None else value - float(np.sum(theta * self.offset))

    def best_scale_sums(self, theta: Array) -> tuple[float, float]:
        """θ·(y − offset) and Σ θ²/ω: of a quadratic loss, their ratio is minus the scale that suits θ best."""
        y = self.y if self.offset is None else self.y - self.offset
        return float(np.sum(theta * y)), float(np.sum(theta * self._unweighted(theta)))
