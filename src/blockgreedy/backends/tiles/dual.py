"""Dual points of the tile solver: moved onto equalities, scaled until feasible, and the best of them so far."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.tiles import tuning
from blockgreedy.backends.tiles.shard import Shard

Array = NDArray[np.float64]

_SETTLED = 2e-15  # what is left of an equality, as a part of ‖θ‖
_FEASIBLE = 1e-12  # what may be left
# Least curvature of a row that moves, as a part of the bound, and steps: rows where the loss is flat move at last.
_ATTEMPTS = ((1e-12, 8), (1e-3, 30), (1.0, 30))


class Equalities:
    """Unpenalised columns and the intercept, as dense columns of norm 1 in this rank's rows: x·θ = 0 for each."""

    def __init__(self, shard: Shard, columns: Array) -> None:
        """``columns``: the unpenalised ones, without the intercept."""
        if shard.fit_intercept:
            columns = np.column_stack([columns, np.ones(len(shard.rows))])
        columns = np.where((shard.rows.weights > 0)[:, None], columns, 0.0)
        self._shard, self.count = shard, columns.shape[1]
        self.norms = np.sqrt(shard.over_rows(*np.sum(columns**2, axis=0))) if self.count else np.zeros(0)
        self._columns = columns / np.where(self.norms > 0, self.norms, 1.0)

    def left_of(self, theta: Array) -> Array:
        """Products of the columns with θ."""
        return self._shard.over_rows(*(self._columns.T @ theta)) * self.norms if self.count else np.zeros(0)

    def moved_onto(self, theta: Array, curvature: Array) -> tuple[Array, Array] | None:
        """The θ of the domain that keeps the equalities and is nearest in the metric of the curvatures.

        With what rounding leaves of their products; None where they cannot be kept.
        """
        rows, theta = self._shard.rows, self._shard.rows.into_domain(theta)
        if not self.count:
            return theta, np.zeros(0)
        best, best_error = None, _FEASIBLE
        for floor, most in _ATTEMPTS:
            metric, moved = np.maximum(curvature, floor * rows.weights * rows.loss.curvature_bound), theta
            before = np.inf
            for _ in range(most):
                left, hessian, norm = self._sums(moved, metric)
                error = float(np.linalg.norm(left)) / norm if norm > 0 else 0.0
                if error <= best_error:
                    best, best_error = (moved, left * self.norms), error
                if error <= _SETTLED or error >= before:
                    break
                before = error
                step = np.linalg.pinv(hessian, hermitian=True) @ left
                moved = rows.into_domain(moved - metric * (self._columns @ step))
            if best is not None:
                return best
        return None

    def _sums(self, theta: Array, metric: Array) -> tuple[Array, Array, float]:
        """columnsᵀθ, columnsᵀ metric columns over the rows that are not at the end of the domain, and ‖θ‖."""
        rows, k = self._shard.rows, self.count
        free = rows.inside_domain(theta)
        weighted = (metric * free)[:, None] * self._columns
        sums = self._shard.over_rows(
            *(self._columns.T @ theta), *(self._columns.T @ weighted).ravel(), float(np.sum(theta * theta))
        )
        return sums[:k], sums[k:-1].reshape(k, k), float(np.sqrt(sums[-1]))


@dataclass
class Candidate:
    """A point that keeps the equalities, and its products with this rank's columns.

    Products of columns that keep their thresholds for sure may be 0.
    """

    shard: Shard
    norms: Array  # ‖x_j‖
    theta: Array
    products: Array
    norm: float  # ‖θ‖
    best_scale: float  # of a quadratic loss, without inequalities; 1 for others
    scale: float = 1.0

    @property
    def ratio(self) -> float:
        """How far it exceeds the inequalities of this rank's columns, which no bound relaxes."""
        penalty = self.shard.penalty
        bound = np.where(self.products < 0, penalty.upper, -penalty.lower)
        limited = np.isinf(bound) & (penalty.l2 == 0) & (penalty.unit > 0) & (self.products != 0)
        size = np.abs(self.products[limited]) + tuning.PRODUCT_ROUNDING * self.norm * self.norms[limited]
        with np.errstate(divide="ignore"):
            return float(np.max(size / penalty.l1[limited], initial=0.0))

    def scale_to(self, ratio: float) -> None:
        """``ratio``: the largest of all ranks."""
        feasible = 1.0 if ratio <= 1 else (1 - 1e-15) / ratio
        self.scale = min(feasible, self.best_scale)

    @property
    def value(self) -> float:
        """This rank's share of the dual value."""
        shard, penalty, scale = self.shard, self.shard.penalty, self.scale
        value = -shard.rows.conjugate(scale * self.theta)
        if shard.grid.row > 0:
            return value
        rounding = np.where(self.products != 0, tuning.PRODUCT_ROUNDING * self.norm * self.norms, 0.0)
        excess = np.maximum(scale * (np.abs(self.products) + rounding) - penalty.l1, 0.0)
        bound = np.where(self.products < 0, penalty.upper, -penalty.lower)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(penalty.l2 > 0, np.minimum(excess / penalty.l2, bound), bound)
        reach = np.where((excess > 0) & ~penalty.is_free, reach, 0.0)
        return value - float(np.sum(reach * (excess - 0.5 * penalty.l2 * reach)))


class DualPoint:
    """The best dual point so far, in this rank's rows, and its value."""

    def __init__(self, n_rows: int) -> None:
        self._n_rows = n_rows
        self.forget()

    def forget(self) -> None:
        self.theta, self.value = np.zeros(self._n_rows), 0.0  # always feasible

    def take(self, candidate: Candidate, value: float) -> bool:
        """Keeps it if its value is better."""
        if not value > self.value:
            return False
        self.theta, self.value = candidate.scale * candidate.theta, value
        return True
