"""What a cross-validation found out about each alpha; the estimators and ``blockgreedy cv`` make one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Scores of held-out rows along the alphas; greater is better.

    Attributes
    ----------
    scoring : str
        "deviance" or the name of a scorer.
    alphas : ndarray of shape (n_alphas,)
        Descending.
    mean, std_error : ndarray of shape (n_alphas,)
        Mean score over the folds, and its standard error.
    nonzeros : ndarray of shape (n_alphas,)
        Number of nonzero weights, the mean over the folds.
    alpha_min, alpha_1se : float
        The alpha of the best mean score, and the largest one within one standard error of it.
    n_folds : int
        Number of folds.
    fold_scores : ndarray of shape (n_folds, n_alphas) or None
        The scores of each fold.
    """

    scoring: str
    alphas: Array
    mean: Array
    std_error: Array
    nonzeros: Array
    alpha_min: float
    alpha_1se: float
    n_folds: int
    fold_scores: Array | None = None

    @property
    def shown(self) -> Array:
        """The mean scores with the usual sign: a deviance is positive, and lower is better."""
        return -self.mean if self.scoring == "deviance" else self.mean

    @property
    def shown_folds(self) -> list[Array]:
        """The scores of each fold with the usual sign; an empty list if they are not known."""
        sign = -1.0 if self.scoring == "deviance" else 1.0
        return [] if self.fold_scores is None else [sign * scores for scores in self.fold_scores]

    @property
    def better(self) -> str:
        return "lower" if self.scoring == "deviance" else "greater"
