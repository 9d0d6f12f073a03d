"""Dual points of the tile solver: moved onto equalities, scaled until feasible, and the best of them so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.tiles import tuning
from blockgreedy.backends.tiles.shard import Shard
from blockgreedy.backends.tiles.time_left import TimeLeft
from blockgreedy.problem.penalties import within_reach, without_far_bounds

Array = NDArray[np.float64]

_SETTLED = 2e-15  # what is left of an equality, as a part of ‖θ‖
_FEASIBLE = 1e-12  # what may be left
_AS_FAST = 10  # a product of matrices, beside the decompositions that Deadline counts in
# Least curvature of a row that moves, as a part of the bound, and steps: rows where the loss is flat move at last.
_ATTEMPTS = ((1e-12, 8), (1e-3, 30), (1.0, 30))


class Equalities:
    """What unpenalised columns and the intercept ask of θ: x·θ = 0, or a sign of it where a weight is bounded.

    Their columns are few; every rank has its rows of them, as dense columns of norm 1.
    """

    def __init__(self, shard: Shard, columns: Array, lower: Array, upper: Array) -> None:
        """``columns`` and bounds: of the unpenalised ones, without the intercept."""
        lower, upper = without_far_bounds(lower, upper)
        if shard.fit_intercept:
            columns = np.column_stack([columns, np.ones(len(shard.rows))])
            lower, upper = np.append(lower, -np.inf), np.append(upper, np.inf)
        columns = np.where((shard.rows.weights > 0)[:, None], columns, 0.0)
        self._shard, self.count = shard, columns.shape[1]
        self._lower, self._upper = lower, upper
        self.norms = np.sqrt(shard.over_rows(*np.sum(columns**2, axis=0))) if self.count else np.zeros(0)
        self._columns = columns / np.where(self.norms > 0, self.norms, 1.0)

    def left_of(self, theta: Array) -> Array:
        """What is left of constraints that θ should keep: products of the columns with it, 0 where they may be so."""
        if not self.count:
            return np.zeros(0)
        return self._broken(self._shard.over_rows(*(self._columns.T @ theta))) * self.norms

    def are_kept(self, left: Array, norm: float) -> bool:
        """Whether no more than rounding is left, of a θ of this norm."""
        return bool(np.all(np.abs(left) <= _FEASIBLE * norm * self.norms))

    def _broken(self, products: Array) -> Array:
        """Products that pull a weight towards a side without bound."""
        return np.where(np.where(products < 0, np.isinf(self._upper), np.isinf(self._lower)), products, 0.0)

    def moved_onto(
        self, theta: Array, curvature: Array, measure: Callable[[Array], tuple[float, ...]], time: TimeLeft
    ) -> tuple[Array, Array, Array] | None:
        """The θ of the domain that keeps the constraints and is near in the metric of the curvatures.

        With what rounding leaves of their products, and sums over all rows of what ``measure`` says of it, the first
        of which is ‖θ‖²: they travel together. None where the constraints cannot be kept, or not in time.
        """
        rows, theta = self._shard.rows, self._shard.rows.into_domain(theta)
        if not self.count:
            return theta, np.zeros(0), self._shard.over_rows(*measure(theta))
        best, best_error = None, _FEASIBLE
        work = self.count**2 * (len(rows) / _AS_FAST + self.count)  # of a step
        for floor, most in _ATTEMPTS:
            metric, moved = np.maximum(curvature, floor * rows.weights * rows.loss.curvature_bound), theta
            before, active = np.inf, np.isinf(self._lower) & np.isinf(self._upper)
            for _ in range(most):
                if time.is_too_short_for(work, self._shard.over_rows):
                    return best
                products, hessian, measured = self._sums(moved, metric, measure)
                norm = float(np.sqrt(measured[0]))
                broken = self._broken(products)
                is_new = (np.abs(broken) > _SETTLED * norm) & ~active
                active = active | is_new  # found broken, a constraint is an equality from here on
                error = float(np.linalg.norm(broken)) / norm if norm > 0 else 0.0
                if error <= best_error:
                    best, best_error = (moved, broken * self.norms, measured), error
                if error <= _SETTLED or (error >= before and not np.any(is_new)):
                    break
                before = error
                step = np.zeros(self.count)
                own = np.ix_(active, active)
                step[active] = np.linalg.pinv(hessian[own], hermitian=True) @ products[active]
                moved = rows.into_domain(moved - metric * (self._columns @ step))
            if best is not None:
                return best
        return None

    def _sums(
        self, theta: Array, metric: Array, measure: Callable[[Array], tuple[float, ...]]
    ) -> tuple[Array, Array, Array]:
        """columnsᵀθ, columnsᵀ metric columns over rows that are not at the end of the domain, and what is asked."""
        k, free = self.count, self._shard.rows.inside_domain(theta)
        weighted = (metric * free)[:, None] * self._columns
        sums = self._shard.over_rows(
            *(self._columns.T @ theta), *(self._columns.T @ weighted).ravel(), *measure(theta)
        )
        return sums[:k], sums[k : k + k * k].reshape(k, k), sums[k + k * k :]


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
    most_penalty: float  # what the penalty of no better point exceeds
    rounding: float = tuning.PROOF_ROUNDING  # part of ‖x_j‖‖θ‖ by which products count as larger
    scale: float = 1.0

    @property
    def _bound(self) -> Array:
        """How far a weight may go in the direction that its column pulls."""
        return np.where(self.products < 0, self.shard.penalty.dual_upper, -self.shard.penalty.dual_lower)

    @property
    def ratio(self) -> float:
        """How far it exceeds the inequalities of this rank's columns, which no bound and no l2 relaxes."""
        penalty = self.shard.penalty
        if penalty.is_plain:  # the same in fewer passes over the columns
            size = self.rounding * self.norm * self.norms
            size += np.abs(self.products)
            size *= self.products != 0
            size /= penalty.l1
            return float(np.max(size, initial=0.0))
        limited = np.isinf(self._bound) & (penalty.l2 == 0) & (penalty.unit > 0) & (self.products != 0)
        size = np.abs(self.products[limited]) + self.rounding * self.norm * self.norms[limited]
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
        if shard.grid.row > 0 or penalty.is_plain:  # a plain penalty's inequalities are kept: scaling has seen to it
            return value
        rounding = np.where(self.products != 0, self.rounding * self.norm * self.norms, 0.0)
        excess = np.maximum(scale * (np.abs(self.products) + rounding) - penalty.l1, 0.0)
        # columns without bound and l2 keep their inequality: scaling has seen to it
        bound = within_reach(self._bound, penalty.l1, self.most_penalty)
        reach = np.where(np.isfinite(bound), bound, 0.0)
        if shard.has_l2:
            by_l2 = np.divide(excess, penalty.l2, out=np.full(len(excess), np.inf), where=penalty.l2 > 0)
            reach = np.where(penalty.l2 > 0, np.minimum(by_l2, bound), reach)
        reach[excess == 0] = 0.0
        return value - float(np.sum(reach * (excess - 0.5 * penalty.l2 * reach)))


class DualPoint:
    """The best dual point so far, in this rank's rows, and its value."""

    def __init__(self, n_rows: int, lowest: float) -> None:
        """``lowest``: what a point of 0 proves."""
        self._n_rows, self._lowest = n_rows, lowest
        self.forget()

    def forget(self) -> None:
        self.theta, self.value = np.zeros(self._n_rows), self._lowest  # always feasible

    def take(self, candidate: Candidate, value: float) -> bool:
        """Keeps it if its value is better."""
        if not value > self.value:
            return False
        self.theta, self.value = candidate.scale * candidate.theta, value
        return True
