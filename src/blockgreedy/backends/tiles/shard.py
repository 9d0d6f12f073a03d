"""A rank's share of a problem: its tile, its rows, the penalty of its columns, and sums over all ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.tiles.grid import Grid
from blockgreedy.backends.tiles.local import Team
from blockgreedy.backends.tiles.own_rows import OwnRows
from blockgreedy.backends.tiles.tile import Tile
from blockgreedy.problem.penalties import without_far_bounds

Array = NDArray[np.float64]


class OwnPenalty:
    """l1_j·|w| + l2_j/2·w² on lower_j ≤ w ≤ upper_j, of the columns that a rank works on."""

    def __init__(self, unit: Array, l2_unit: Array, lower: Array, upper: Array, alpha: float, l2: float) -> None:
        """``unit`` is u_j, 0 for features that are excluded, whose bounds are 0."""
        self.unit, self.l2_unit, self.lower, self.upper = unit, l2_unit, lower, upper
        self._is_unbounded = bool(np.all(unit > 0) and np.all(np.isinf(lower)) and np.all(np.isinf(upper)))
        self.move_to(alpha, l2)

    def move_to(self, alpha: float, l2: float) -> None:
        self.alpha, self.ridge = alpha, l2
        self.l1, self.l2 = alpha * self.unit, l2 * self.l2_unit
        far = without_far_bounds(self.lower, self.upper)
        unpenalised = (self.l1 == 0) & (self.l2 == 0)
        self.dual_lower = np.where(unpenalised, far[0], self.lower)  # bounds as a dual point sees them
        self.dual_upper = np.where(unpenalised, far[1], self.upper)
        self._least_l1 = float(np.min(self.l1, initial=np.inf))  # may underflow

    def value(self, features: NDArray[np.intp], values: Array) -> float:
        return float(np.sum(self.l1[features] * np.abs(values) + 0.5 * self.l2[features] * values * values))

    @property
    def is_plain(self) -> bool:
        """Whether every feature is penalised by L1 alone, as in most problems."""
        return self._is_unbounded and self.ridge == 0 and self._least_l1 > 0

    @property
    def is_free(self) -> NDArray[np.bool_]:
        """Unpenalised and unbounded on a side: they constrain the dual point by an equality or a sign."""
        unbounded = np.isinf(self.dual_lower) | np.isinf(self.dual_upper)
        free = (self.l1 == 0) & (self.l2 == 0) & unbounded
        return np.asarray(free, dtype=np.bool_)


@dataclass
class Shard:
    grid: Grid
    tile: Tile
    rows: OwnRows
    penalty: OwnPenalty
    may_be_free: bool  # some feature of some rank may be unpenalised
    team: Team
    norms: Array  # ‖x_j‖ of its columns over all rows, or a little more
    entries: Array  # how many entries they have there
    least_alpha: float  # other columns have no weight at this alpha, or above
    first: int  # its columns are numbered from here on, those of other ranks from elsewhere
    features: NDArray[np.int64]  # what its columns are
    row_cuts: NDArray[np.int64]  # how the rows of the row group are divided among its ranks
    first_row: int  # of the row group
    fit_intercept: bool
    f_null: float
    floor: float  # a gap that is enough whatever tol says
    lowest: float  # no objective is lower: what a dual point of 0 proves
    most_entries: float = np.inf  # of the working set, on all ranks together
    check_unchanged: Callable[[], None] = lambda: None  # that the matrix is still what was read of it

    @property
    def has_l2(self) -> bool:
        return self.penalty.ridge > 0

    def over_rows(self, *values: float) -> Array:
        """Sums over the rows of all ranks."""
        return self.grid.all.reduce(np.array(values, dtype=np.float64), "rows")

    def over_columns(self, *values: float) -> Array:
        """Sums over the columns of all ranks. Ranks of a column group hold the same columns: the first one counts."""
        return self.over_rows(*(values if self.grid.row == 0 else np.zeros(len(values))))

    def largest(self, *values: float) -> Array:
        return self.grid.all.reduce(np.array(values, dtype=np.float64), "columns", "max")

    def products(self, theta: Array, due: NDArray[np.bool_]) -> Array:
        """x_j·θ of this rank's columns that are due, over all rows; 0 for the others."""
        whole = np.concatenate(self.grid.beside.gather(theta, "theta"))
        if self.grid.shape[0] == 1:
            return self.tile.products(whole, due, self.team)
        found = np.zeros(self.tile.n_features)
        found[due] = self.grid.above.reduce(self.tile.products(whole, due, self.team)[due], "gradient")
        return found

    def predictions(self, weights: Array, intercept: float) -> Array:
        """Xw + intercept + offset in this rank's rows."""
        features = np.flatnonzero(weights)
        whole = self.grid.beside.reduce(self.tile.combine(features, weights[features]), "predictions")
        c = self.grid.column
        own = whole[self.row_cuts[c] : self.row_cuts[c + 1]] + intercept
        return own if self.rows.offset is None else own + self.rows.offset
