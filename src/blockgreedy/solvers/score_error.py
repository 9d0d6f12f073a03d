"""How far the scores of folds still are from those of exact models, judged while the folds are solved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from blockgreedy.problem.problem import Problem

Array = NDArray[np.float64]

# Steps at an alpha end where scores are thought to be closer than this to exact ones, as a part of the null model's.
NEAR = 2e-4
# Errors of scores, as a part of gaps: at first, at least (a step may leave scores where they are by chance), and how
# far what a step shows may lower what earlier ones have shown.
_FIRST, _LEAST, _SLOWEST = 10.0, 0.03, 0.5
_LEAST_FALL = 0.1  # of a gap, below which a step says nothing about its end


class ScoreError:
    """Estimates the error of scores from gaps: both are of first order in the distance of the weights to exact ones.

    The error per gap is learnt from steps: one that lowers the gap from g to h and changes scores by c shows an error
    of c/(g − h) per gap. It is learnt from the mean of the folds' changes, in which signs do not cancel. It grows old
    in proportion to the fall of alpha: supports grow, and models begin to overfit. With the square of the fall grids
    of 12 alphas took 10 % more passes, for the same largest error (130 draws of benchmarks/cv/coarse.py).
    """

    def __init__(self) -> None:
        self._per_gap = _FIRST
        self._gap, self._scores, self._alpha = np.inf, np.zeros(0), np.inf
        self.value, self.fall = np.inf, 1.0  # the error; the last alpha, divided by this one

    def begin(self, alpha: float) -> None:
        """At another alpha, of which nothing is known."""
        self.fall = 1.0 if np.isinf(self._alpha) else self._alpha / alpha if alpha > 0 else np.inf
        self._alpha = alpha
        self._per_gap = min(self._per_gap * self.fall, max(self._per_gap, _FIRST))
        self._gap, self.value = np.inf, np.inf

    def see(self, scores: Array, gaps: Array) -> None:
        """After a step: of each fold, as parts of the null model's objective. Infinite scores teach nothing."""
        gap = float(np.mean(gaps))
        if np.isfinite(self._gap) and np.all(np.isfinite(scores)) and np.all(np.isfinite(self._scores)):
            change, fall = float(np.mean(np.abs(scores - self._scores))), self._gap - gap
            if fall > _LEAST_FALL * self._gap:
                self._per_gap = max(change / fall, _SLOWEST * self._per_gap, _LEAST)
            elif self._gap > 0:
                self._per_gap = max(change / self._gap, self._per_gap)
        self._gap, self._scores = gap, scores
        self.value = self._per_gap * gap

    @property
    def is_small(self) -> bool:
        return self.value <= NEAR


class HeldOut:
    """The rows of a fold that have no weight, and what is known of them: targets and offsets as they were given."""

    def __init__(self, problem: Problem) -> None:
        rows = np.zeros(0, dtype=np.intp) if problem.row_weights is None else np.flatnonzero(problem.row_weights == 0)
        y, offset, _ = problem.given
        self.rows, self._loss, self._y = rows, problem.loss, y[rows]
        self._offset = 0.0 if offset is None else offset[rows]

    def mean_loss(self, predictions: Array) -> float:
        """Of predictions for all rows, without their offset; 0 if there are no such rows."""
        if not len(self.rows):
            return 0.0
        with np.errstate(over="ignore"):
            return float(np.mean(self._loss.value(self._y, predictions[self.rows] + self._offset)))
