"""The default solver as cross-validation uses it: predictions count, and nothing is proven to anybody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.engine import Ended, Point
from blockgreedy.solvers.score_error import HeldOut, ScoreError
from blockgreedy.solvers.working_set import WorkingSetEngine

if TYPE_CHECKING:
    from blockgreedy.base.names import Status
    from blockgreedy.problem.problem import Problem

Array = NDArray[np.float64]

# A first step that lowers the objective by more than this part of the null model's may be worth a second. Measured:
# on Reuters the curve of five folds is then within 1e-4 of that of exact ones; a proof of 1e-4 takes twice the time.
_LARGE = 1e-5
# A second step is worth it if it gains this; if not, alphas do without it: one, then two, four, eight of them.
_WORTHWHILE, _MOST_WITHOUT = 5e-8, 8
# Neighbours tell each other so much only on fine grids (100 alphas down to 1e-3: 1.07 from one to the next). After a
# larger fall of alpha steps go on until scores are near those of exact models. On fine grids that took up to three
# times as long on dense data: proven gaps are small, and only their roots bound what scores are off by.
_FAR = 1.2
# Predictions are carried along; where objectives differ by more than this, so may scores.
_DRIFT = 1e-9


class FoldEngine(WorkingSetEngine):
    """A ``WorkingSetEngine`` whose points are not evaluated again: objectives and gaps are those of its iterations.

    They serve to judge which scores must be known better. ``has_drifted`` says, at the end of a path, whether the
    predictions still are those of the weights.
    """

    def __init__(self, problem: Problem, *, finest_step: float = 0.0, **options: Any) -> None:
        """``finest_step``: above 0, steps are taken until one gains no more than this part of the null model's
        objective. Otherwise as many as tol needs, a second where that has paid at the alphas before, and far from
        those as many as scores need.
        """
        super().__init__(problem, **options)
        self._finest_step = finest_step
        self._decreases: list[float] = []  # of the steps at this alpha, as parts of the null model's objective
        self._without, self._left = 0, 0  # alphas that are to do without a second step, and how many are left of them
        self._held_out, self._error = HeldOut(problem), ScoreError()
        self._error.begin(problem.alpha)
        # Whether the weights come from far away, as those of an alpha that is solved again may
        self._is_far = self.given is not None
        self._is_stuck = False  # no step gets any further

    @property
    def predictions(self) -> Array:
        """Of all rows, those of weight 0 too; without the offset of the latter."""
        return np.asarray(self.core.predictions)

    def is_enough(self, share: float = 1.0) -> bool:
        return not self._wants_more() and super().is_enough(share)

    def _wants_more(self) -> bool:
        if self._finest_step > 0:
            return not self._decreases or self._decreases[-1] > self._finest_step
        if self._is_far and len(self._decreases) > 0 and self.core.f_null > 0:
            return not (self._error.is_small or self._is_stuck)
        return len(self._decreases) == 1 and self._left == 0 and self._decreases[0] > _LARGE

    def step(self, n_iter: int, seconds: float) -> Ended:
        before = self.core.objective
        ended = super().step(n_iter, seconds)
        f_null = self.core.f_null
        self._decreases.append((before - self.core.objective) / f_null if f_null > 0 and not ended else 0.0)
        self._is_stuck = ended != ""
        if self._is_far and self._finest_step == 0 and f_null > 0:
            loss = self._held_out.mean_loss(self.scaling.predictions_out(self.predictions))
            self._error.see(np.array([loss / self.f_null]), np.sqrt([max(self.gap, 0.0) / self.f_null]))
        return ended

    def move_to(self, problem: Problem) -> bool:
        if len(self._decreases) == 2:
            pays = self._decreases[1] > _WORTHWHILE
            self._without = 0 if pays else min(max(1, 2 * self._without), _MOST_WITHOUT)
            self._left = self._without
        elif self._left > 0:
            self._left -= 1
        self._decreases, self._is_stuck = [], False
        self._error.begin(problem.alpha)
        self._is_far = self._error.fall > _FAR
        return super().move_to(problem)

    def renew(self, status: Status) -> bool:
        return False

    def point(self, status: Status, with_dual: bool = True) -> Point:
        features = self.core.support()
        values = self.scaling.weights_out(features, self.coef[features])
        intercept = self.scaling.intercept_out(self.core.intercept, features, values)
        loss = self.objective - self.scaling.value_out(self.core.penalty)
        return Point(features, values, intercept, self.objective, loss, self.gap, self.is_enough(), None)

    def has_drifted(self) -> bool:
        features = self.core.support()
        objective, _, _ = self.core.verify(features, self.coef[features], self.core.intercept)
        return bool(abs(objective - self.core.objective) > _DRIFT * self.core.f_null)
