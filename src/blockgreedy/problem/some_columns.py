"""Some of the columns of a matrix of rows: those that a solve works with, and the proof that the others do not matter.

Turning rows into columns takes as long as a solve. Few columns ever get a weight, and most of those that do are far
above their threshold where a solve starts, or near it. So a solve begins with the columns whose gradient there is
large. What it finds is optimal for them; for all others one pass over the rows adds up x_j·θ of the dual point.
Columns that break their threshold are turned as well, with those that are near, and the solve goes on. Where none
does, the dual point keeps the constraints of all columns, and proves what it would prove with all of them at hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.problem.columns import Columns, columns_of_rows, products_of_rows

if TYPE_CHECKING:
    from blockgreedy import _core
    from blockgreedy.problem.problem import Problem

Array = NDArray[np.float64]

_NEAR_START = 0.5  # a gradient of this share of the threshold is large, at the start
_NEAR_END = 0.8  # and where columns turned out to be missing
_MOST = 0.6  # of the entries; beyond that all columns are made: passes over the rows would cost more than they save


class SomeColumns:
    """Columns of rows for one problem."""

    def __init__(self, rows: _core.Rows, problem: Problem, n_threads: int) -> None:
        self._rows, self._shape, self._n_threads = rows, problem.design.shape, n_threads
        self._size = problem.design.size
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

    @property
    def are_few(self) -> bool:
        """False where all columns had better be made."""
        return self._rows.n_entries(self._kept) <= _MOST * self._size

    def begin(self, theta: Array, features: NDArray[np.integer[Any]]) -> None:
        """Chooses the columns whose gradient is large at θ, and these features."""
        self._kept[features] = 1
        self._rows.mark_near(self._products(theta), _NEAR_START, *self._penalty, self._kept)

    def misses(self, theta: Array) -> bool:
        """Whether a dual point breaks, or may break, the constraint of a column that is not here."""
        return self._n_missing(self._products(theta), theta) > 0

    def add_missing(self, theta: Array) -> bool:
        """Adds the columns whose constraint a dual point breaks. False if there are none; else ``columns`` changes."""
        products = self._products(theta)
        if self._n_missing(products, theta) == 0:
            return False
        self._columns = None
        self._rows.mark_near(products, _NEAR_END, *self._penalty, self._kept)
        return True

    def _products(self, theta: Array) -> Array:
        self.n_touched += self._size
        return products_of_rows(self._rows, theta, self._n_threads)

    def _n_missing(self, products: Array, theta: Array) -> int:
        largest = float(max(np.max(theta), -np.min(theta)))
        return self._rows.count_missing(products, largest, *self._penalty, self._kept)
