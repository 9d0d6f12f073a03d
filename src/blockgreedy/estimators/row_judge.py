"""Held-out rows judged by a scorer that looks at X and at the fitted model, not at predictions alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.base.cached import cached_property
from blockgreedy.estimators.folds import Fold, Judge
from blockgreedy.problem.problem import Problem
from blockgreedy.solvers.solution_path import PathPoint

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RowJudge(Judge):
    """Makes an estimator of each fold's models, and cuts the rows held out from X, once for each fold."""

    X: Any = None
    # (a row of weights and an intercept for each model, alpha, l1_ratio) → a fitted estimator
    make_model: Callable[[Array, Array, float, float], Any] | None = None
    _rows: dict[int, Any] = field(default_factory=dict)

    @cached_property
    def _by_rows(self) -> Any:
        return self.X.tocsr() if hasattr(self.X, "tocsr") else self.X

    def score_of(
        self, fold: Fold, problem: Problem, models: Sequence[PathPoint], l1_ratio: float, told: Array | None
    ) -> float:
        if id(fold) not in self._rows:
            self._rows[id(fold)] = self._by_rows[fold.held_out]
        coefs = np.zeros((len(models), problem.n_features))
        for coef, model in zip(coefs, models, strict=True):
            coef[model.features] = model.values
        intercepts = np.array([model.intercept for model in models])
        assert self.make_model is not None
        estimator = self.make_model(coefs, intercepts, models[0].alpha, l1_ratio)
        return self.score(estimator, self._rows[id(fold)], self.y[fold.held_out], **self.params_of(fold))
