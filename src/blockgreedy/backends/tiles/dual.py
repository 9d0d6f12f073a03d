"""Dual points of the tile solver: moved onto equalities, scaled until feasible, and the best of them so far."""

from __future__ import annotations

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
        if self.count:
            self.norms = np.sqrt(shard.over_rows(*np.sum(columns**2, axis=0)))
            self._columns = columns / np.where(self.norms > 0, self.norms, 1.0)

    def left(self, theta: Array) -> Array:
        """Products of the columns, as they are, with θ."""
        if not self.count:
            return np.zeros(0)
        return self._shard.over_rows(*(self._columns.T @ theta)) * self.norms

    def moved_onto(self, theta: Array, curvature: Array) -> Array | None:
        """The θ of the domain that keeps the equalities and is nearest in the metric of the curvatures; or None."""
        if not self.count:
            return theta
        rows = self._shard.rows
        best, best_error = None, _FEASIBLE
        for floor, most in _ATTEMPTS:
            metric = np.maximum(curvature, floor * rows.weights * rows.loss.curvature_bound)
            moved = rows.into_domain(theta)
            for _ in range(most):
                products, hessian, norm = self._sums(moved, metric)
                error = float(np.linalg.norm(products)) / norm if norm > 0 else 0.0
                if error <= best_error:
                    best, best_error = moved, error
                if error <= _SETTLED:
                    return moved
                step = np.linalg.pinv(hessian, hermitian=True) @ products
                after = rows.into_domain(moved - metric * (self._columns @ step))
                if not float(self._shard.over_rows(float(np.any(after != moved)))[0]):
                    break
                moved = after
            if best is not None:
                return best
        return None

    def _sums(self, theta: Array, metric: Array) -> tuple[Array, Array, float]:
        """columnsᵀθ, columnsᵀ metric columns over rows that may still move, and ‖θ‖."""
        rows, k = self._shard.rows, self.count
        products = self._columns.T @ theta
        free = rows.into_domain(theta - 1e-9 * metric * (self._columns @ products)) == (
            theta - 1e-9 * metric * (self._columns @ products)
        )
        weighted = (metric * free)[:, None] * self._columns
        sums = self._shard.over_rows(*products, *(self._columns.T @ weighted).ravel(), float(np.sum(theta * theta)))
        return sums[:k], sums[k:-1].reshape(k, k), float(np.sqrt(sums[-1]))


class DualPoint:
    """The best dual point so far, in this rank's rows, and its value."""

    def __init__(self, shard: Shard, norms: Array, equalities: Equalities) -> None:
        self._shard, self._norms, self.equalities = shard, norms, equalities
        self.forget()

    def forget(self) -> None:
        self.theta, self.value = np.zeros(len(self._shard.rows)), 0.0  # always feasible

    def offer(self, theta: Array, products: Array, multipliers: Array) -> bool:
        """Takes θ, scaled until it keeps the inequalities, if that is better. θ must keep the equalities.

        ``products`` of columns that keep their thresholds for sure may be 0. ``multipliers``: weights of the
        unpenalised columns, and the intercept: what is left of an equality costs that much.
        """
        scale = self._scale(theta, products)
        value = self.value_of(theta, products, scale, multipliers)
        if value > self.value:
            self.theta, self.value = scale * theta, value
            return True
        return False

    def value_of(self, theta: Array, products: Array, scale: float, multipliers: Array) -> float:
        """The dual value of scale·θ; −inf where an equality is broken by more than rounding."""
        shard, penalty = self._shard, self._shard.penalty
        conjugate, square = shard.over_rows(shard.rows.conjugate(scale * theta), float(np.sum(theta * theta)))
        norm = float(np.sqrt(square))
        l1, rounding = penalty.l1, tuning.PRODUCT_ROUNDING * norm * self._norms
        size = scale * (np.abs(products) + np.where(products != 0, rounding, 0.0))
        excess = np.maximum(size - l1, 0.0)
        bound = np.where(products < 0, penalty.upper, -penalty.lower)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(penalty.l2 > 0, np.minimum(excess / penalty.l2, bound), bound)
        reach = np.where((excess > 0) & ~penalty.is_free, reach, 0.0)
        inner = float(np.sum(reach * (excess - 0.5 * penalty.l2 * reach)))
        penalties = float(shard.sum_over_columns(np.array([inner]))[0])
        left = self.equalities.left(scale * theta)
        if self.equalities.count and np.any(np.abs(left) > _FEASIBLE * scale * norm * self.equalities.norms):
            return -np.inf
        return -float(conjugate) - penalties - float(np.sum(np.abs(left * multipliers)))

    def _scale(self, theta: Array, products: Array) -> float:
        shard, penalty, loss = self._shard, self._shard.penalty, self._shard.rows.loss
        along, square = shard.rows.best_scale_sums(theta) if loss.is_quadratic else (0.0, 0.0)
        along, square, norm = shard.over_rows(along, square, float(np.sum(theta * theta)))
        bound = np.where(products < 0, penalty.upper, -penalty.lower)
        limited = np.isinf(bound) & (penalty.l2 == 0) & (penalty.unit > 0) & (products != 0)
        size = np.abs(products[limited]) + tuning.PRODUCT_ROUNDING * np.sqrt(norm) * self._norms[limited]
        with np.errstate(divide="ignore"):
            ratio = shard.max_over_columns(float(np.max(size / penalty.l1[limited], initial=0.0)))
        feasible = 1.0 if ratio <= 1 else (1 - 1e-15) / ratio
        if loss.is_quadratic and square > 0 and not self._has_l2:
            return min(feasible, max(0.0, -along / square))
        return feasible

    @property
    def _has_l2(self) -> bool:
        return bool(np.any(self._shard.penalty.l2 > 0))
