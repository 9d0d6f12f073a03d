"""``plot()`` of the models that choose alpha by cross-validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from blockgreedy.estimators.scoring import is_deviance

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class ScorePlotMixin:
    def plot(self) -> Figure:
        """Scores of the held-out rows against alpha: mean, standard error, each fold, and both choices of alpha.

        A matplotlib figure, which notebooks show by themselves; pyplot's current figure where pyplot is imported. Of
        several l1_ratios that which was chosen is drawn.
        """
        from blockgreedy.reports.plots import scores_figure

        check_is_fitted(self, "cv_results_")
        fitted: Any = self
        found = fitted.cv_results_
        drawn = (found["l1_ratio"] == fitted.l1_ratio_) & (found["alpha"] > 0) & np.isfinite(found["mean_test_score"])
        deviance = is_deviance(fitted.scoring)
        sign = -1.0 if deviance else 1.0
        folds = [sign * scores[drawn] for name, scores in found.items() if name.startswith("split")]
        name = fitted.scoring if isinstance(fitted.scoring, str) else "score"
        if deviance:
            name = "deviance" if fitted._is_classifier else "mean squared error"
        means = sign * found["mean_test_score"][drawn], found["std_error"][drawn]
        return scores_figure(found["alpha"][drawn], *means, folds, (fitted.alpha_min_, fitted.alpha_1se_), name)
