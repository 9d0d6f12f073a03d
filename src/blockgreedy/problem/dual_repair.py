"""A dual point moved onto the constraints that it breaks: the last resort of a proof.

Scaling θ until it keeps all constraints costs little where it breaks them by little. Where alpha is tiny beside the
terms that cancel in x_j·θ, or columns depend on each other, rounding alone makes θ break them by a multiple, and a
scaled point proves nothing although the weights are right. Here θ is moved instead, by the least that brings all
broken columns to their thresholds at once. Dense and in float64: for problems with few such columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.problem.columns import dense_columns

if TYPE_CHECKING:
    from blockgreedy.base.deadline import Deadline
    from blockgreedy.problem.certificate import ColumnPasses
    from blockgreedy.problem.problem import Problem

Array = NDArray[np.float64]
Features = NDArray[np.integer[Any]]

_MOST_COLUMNS, _MOST_NUMBERS = 400, 4_000_000  # of the dense system
PRODUCT_ROUNDING = 2e-15  # part of ‖x_j‖‖θ‖: what x_j·θ may differ by, added up in another order (candidates.hpp)
_INSIDE = 1 - 1e-9  # of the threshold that a column is brought to


def repaired_dual_points(
    problem: Problem,
    theta: Array,
    Xw: Array,
    features: Features,
    signs: Array,
    passes: ColumnPasses,
    until: Deadline,
) -> Iterator[Array]:
    """Points near θ that keep the constraints, or nearly; the caller scales and judges them. None when time is up.

    ``features`` and ``signs`` are those of the weights that θ belongs to: at a solution x_j·θ = −alpha·sign there.
    """
    penalty = problem.penalty
    limited = ~penalty.is_free & (penalty.l1 > 0) & (np.asarray(penalty.l2) == 0)
    limited &= np.isinf(penalty.lower) | np.isinf(penalty.upper)
    equal = np.flatnonzero(penalty.is_free)
    support = limited[features]
    for towards_zero in (False, True):
        # Threshold of each support column; then 0, which columns that depend on each other can always keep.
        constrained = features[support]
        target = np.zeros(len(constrained)) if towards_zero else -signs[support] * penalty.l1[constrained] * _INSIDE
        point = theta
        for _ in range(6):
            if (
                len(constrained) + len(equal) + 1 > _MOST_COLUMNS
                or len(constrained) * problem.n_samples > _MOST_NUMBERS
            ):
                return
            if until.has_passed():
                return
            system = _System(problem, Xw, constrained, equal, until)
            # twice what the products will be counted with: scaling θ is dear where rows lie on the domain's boundary
            margin = 2 * PRODUCT_ROUNDING * system.norms * float(np.linalg.norm(point))
            limit = np.maximum(penalty.l1[constrained] - margin[: len(constrained)], 0.0)
            point = system.solve(theta, np.clip(target, -limit, limit))
            products = passes.products(point)
            over = limited & (np.abs(products) > penalty.l1)
            over &= np.isinf(np.where(products > 0, -penalty.lower, penalty.upper))
            over[constrained] = False
            if not np.any(over):
                break
            new = np.flatnonzero(over)
            constrained = np.concatenate([constrained, new])
            aims = np.zeros(len(new)) if towards_zero else np.sign(products[new]) * penalty.l1[new] * _INSIDE
            target = np.concatenate([target, aims])
        yield point


class _System:
    """Columns whose products with θ are prescribed, and the intercept and unpenalised ones, whose are 0."""

    def __init__(self, problem: Problem, Xw: Array, constrained: Features, equal: Features, until: Deadline) -> None:
        self._problem, self._until = problem, until
        columns = dense_columns(problem.X, np.concatenate([constrained, equal]))
        if problem.fit_intercept:
            columns = np.column_stack([columns, np.ones(problem.n_samples)])
        if problem.row_weights is not None:
            columns[problem.row_weights == 0] = 0.0
        largest = np.max(np.abs(columns), axis=0, initial=0.0)
        self.norms = np.zeros(columns.shape[1])
        filled = largest > 0
        columns = columns[:, filled] / largest[filled]
        norms = np.sqrt(np.sum(columns**2, axis=0))
        self.norms[filled] = largest[filled] * norms
        self._filled, self._columns = filled, columns / norms
        curvature = problem.loss.curvature(problem.y, Xw)
        self._weights = problem.weigh(np.maximum(curvature, 1e-9 * problem.loss.curvature_bound))

    def solve(self, theta: Array, products: Array) -> Array:
        """The nearest point with these products with the constrained columns, in the domain of the loss.

        "Nearest" is weighted with the loss's curvature, as a Newton step would move θ. Rows that reach the end of the
        domain stay there, and the others do their part.
        """
        aims = np.zeros(len(self.norms))
        aims[: len(products)] = products
        aims = aims[self._filled] / self.norms[self._filled]
        roots = np.sqrt(self._weights)
        free = np.ones(len(theta), dtype=np.bool_)
        loss, y, problem = self._problem.loss, self._problem.y, self._problem
        best, best_error = theta, np.inf
        for _ in range(12):
            missing = aims - self._columns.T @ theta
            error = float(np.max(np.abs(missing), initial=0.0))
            if not error < best_error:  # nor where a step led out of the numbers
                break
            best, best_error = theta, error
            if error == 0 or not self._until.has_time_for(self._columns.size * self._columns.shape[1]):
                break
            scaled = (roots * free)[:, None] * self._columns
            step = np.linalg.lstsq(scaled.T, missing, rcond=1e-13)[0] * roots * free
            u = problem.unweigh(theta + step)
            inside = loss.into_domain(y, u)
            free &= inside == u
            theta = np.where(inside == u, theta + step, problem.weigh(inside))
        return best
