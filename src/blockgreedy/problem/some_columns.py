"""Some of the columns of a matrix of rows: those that a solve works with, and the proof that others do not matter.

Turning rows into columns takes as long as a solve, and few columns ever get a weight. Three rules say which:

- A column of m entries has |x_j·θ| ≤ m·max|x|·max|θ_i|. Losses with bounded derivative bound θ, so columns that stay
  below their threshold have no weight at the solution and keep their constraints at every dual point. Enough where
  most columns are short, such as those of one-hot codes.
- Most columns that get a weight have a large gradient where a solve starts; some of the rows show which. What is
  found with these is optimal for them; for all others one pass over the rows adds up x_j·θ of the dual point. Columns
  that break their threshold are turned as well, with those that are near, and the solve goes on. Where none does, the
  dual point keeps the constraints of all columns, and proves what it would prove with all of them at hand.
- Where both leave too many columns, a pass over the rows adds up Σ_i |x_ij|·max|θ_i|, which is far less than m·max|x|
  where values differ, and needs no proof later either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.problem.columns import Columns, columns_of_rows, products_of_rows, reaches_of_rows

if TYPE_CHECKING:
    from blockgreedy import _core
    from blockgreedy.problem.problem import Problem

Array = NDArray[np.float64]

_NEAR_START = 0.7  # an estimated gradient of this share of the threshold is large
_NEAR_END = 0.8  # the same of a true one, where columns turned out to be missing
_SAMPLE, _LEAST_SHARE = 1024, 8  # rows that estimate gradients: so many, but no fewer than one of eight
# Shares of the entries. Reachable columns need no proof and none of them is missing, so that near ones are looked for
# where reachable ones are many, and taken where they are half as many. All columns are made where neither saves much.
_FEW_REACHABLE, _MOST_REACHABLE, _MOST_NEAR = 0.5, 0.75, 0.4
_MOST_NEAR_REACHING = 0.5  # columns that are near have values that reach: where they are more, no pass would pay
_VERY_FEW = 0.1  # near ones: as many again cost less than to find one of them missing


class SomeColumns:
    """Columns of rows for one problem."""

    def __init__(self, rows: _core.Rows, problem: Problem, n_threads: int) -> None:
        self._rows, self._n_threads = rows, n_threads  # not the problem, whose matrix this belongs to
        self._shape, self._size = problem.design.shape, problem.design.size
        self._are_all_that_matter = False
        weights = 1 / problem.n_samples if problem.row_weights is None else problem.row_weights
        self._row_weights, self._bound = weights, problem.loss.derivative_bound  # of entries of θ, a unit of weight
        self._penalty = problem.alpha, problem.penalty_weights, problem.lower, problem.upper
        self._kept = np.zeros(problem.n_features, dtype=np.uint8)
        self._columns: Columns = None
        self.n_touched = 0  # entries, in passes over the rows

    @property
    def columns(self) -> Columns:
        """All features; those that are not here are empty."""
        if self._columns is None:
            self.n_touched += self._size
            self._columns = columns_of_rows(self._rows, self._kept, self._shape, self._n_threads)
        return self._columns

    def has(self, features: NDArray[np.integer[Any]]) -> bool:
        return bool(np.all(self._kept[features]))

    def begin(self, theta: Array, features: NDArray[np.integer[Any]]) -> bool:
        """Chooses columns for a solve that starts at θ, with weights of these features; False: all of them."""
        self._are_all_that_matter = bool(np.isfinite(self._bound))
        most = self._bound * float(np.max(self._row_weights)) if self._are_all_that_matter else _largest(theta)
        self._kept[features] = 1
        self._rows.mark_reachable(most, *self._penalty, self._kept)
        share = self._share()
        if share <= _FEW_REACHABLE:
            return True
        near = np.zeros_like(self._kept)
        near[features] = 1
        every = min(max(self._shape[0] // _SAMPLE, 1), _LEAST_SHARE)
        products = self._products(theta, every)
        self._rows.mark_near(products, _NEAR_START, *self._penalty, near)
        if self._rows.n_entries(near) <= _VERY_FEW * self._size:
            self._rows.mark_near(products, _NEAR_START / 2, *self._penalty, near)
        del products  # whose memory is used again
        near_share = self._rows.n_entries(near) / self._size
        if near_share > min(_MOST_NEAR, share / 2):
            return share <= _MOST_REACHABLE or (near_share <= _MOST_NEAR_REACHING and self._keep_reaching(features))
        self._kept = near & self._kept if self._are_all_that_matter else near
        self._are_all_that_matter = False
        return True

    def _keep_reaching(self, features: NDArray[np.integer[Any]]) -> bool:
        """Keeps only columns whose own values could bring them to their threshold; whether they are few."""
        if not self._are_all_that_matter:
            return False
        self.n_touched += self._size
        most = np.broadcast_to(self._bound * self._row_weights, self._shape[:1])
        self._kept[:] = 0
        self._kept[features] = 1
        self._rows.mark_reaching(reaches_of_rows(self._rows, most, self._n_threads), *self._penalty, self._kept)
        return self.are_few

    def _share(self) -> float:
        return self._rows.n_entries(self._kept) / self._size

    def misses(self, theta: Array) -> bool:
        """Whether a dual point breaks, or may break, the constraint of a column that is not here."""
        return not self._are_all_that_matter and self._n_missing(self._products(theta), theta) > 0

    def add_missing(self, theta: Array) -> bool:
        """Adds the columns whose constraint a dual point breaks; False if there are none. ``columns`` changes."""
        if self._are_all_that_matter:
            return False
        products = self._products(theta)
        if self._n_missing(products, theta) == 0:
            return False
        self._columns = None
        self._rows.mark_near(products, _NEAR_END, *self._penalty, self._kept)
        if self._n_missing(products, theta) > 0:  # values so large that rounding hides a threshold
            self._kept[:] = 1
        return True

    @property
    def are_few(self) -> bool:
        """False where all columns had better be made."""
        return self._share() <= _MOST_REACHABLE

    def _products(self, theta: Array, every: int = 1) -> Array:
        self.n_touched += self._size // every
        return products_of_rows(self._rows, theta, self._n_threads, every)

    def _n_missing(self, products: Array, theta: Array) -> int:
        return self._rows.count_missing(products, _largest(theta), *self._penalty, self._kept)


def _largest(theta: Array) -> float:
    return float(max(np.max(theta), -np.min(theta)))
