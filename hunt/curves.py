"""What must hold of a cross-validation: its curve is that of folds fitted tightly, its choice no worse."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

import blockgreedy as bg
from hunt.case import Case
from hunt.lateness import timed
from hunt.outcome import Outcome

_NEAR = 1e-3  # of the score of the first alpha
_TIGHT = 1e-9


def check_curve(case: Case, outcome: Outcome) -> None:
    from sklearn.model_selection import KFold

    splits = list(KFold(case.options["cv"], shuffle=True, random_state=0).split(case.y))
    if case.problem["loss"] == "logistic" and any(len(np.unique(case.y[rows])) < 2 for rows, _ in splits):
        return
    options = {
        **{k: v for k, v in case.options.items() if k != "tol"},
        "cv": splits,
        "fit_intercept": case.problem["fit_intercept"],
    }
    model, outcome.seconds = timed(lambda: getattr(bg, case.estimator)(**options).fit(case.X, case.y))
    outcome.statuses.append(model.status_)
    curve = np.asarray(model.cv_results_["mean_test_score"])
    alphas = np.asarray(model.alphas_)
    X = sp.csr_array(case.X)
    scores = [_scores(case, X, train, test, alphas) for train, test in splits]
    true = np.average(scores, axis=0, weights=[len(test) for _, test in splits])
    size, off = abs(true[0]), np.abs(curve - true)
    if np.max(off) > _NEAR * size:
        k = int(np.argmax(off))
        outcome.found(
            "curve", f"score {curve[k]:.6g} at alpha number {k} of {len(alphas)}, of tight folds {true[k]:.6g}"
        )
    chosen = int(np.argmin(np.abs(alphas - model.alpha_)))
    if true[chosen] < np.max(true) - _NEAR * size:
        best = int(np.argmax(true))
        outcome.found(
            "choice", f"alpha number {chosen} scores {true[chosen]:.6g}, number {best} scores {true[best]:.6g}"
        )


def _scores(case: Case, X: Any, train: np.ndarray, test: np.ndarray, alphas: np.ndarray) -> np.ndarray:
    """Of one fold, each alpha fitted to the training rows as a problem of its own."""
    intercept, y = case.problem["fit_intercept"], case.y
    scores = []
    if case.problem["loss"] == "squared":
        from sklearn.linear_model import Lasso

        dense_enough = X.shape[1] <= 1000
        train_X = X[train].toarray(order="F") if dense_enough else X[train].tocsc()
        model = Lasso(fit_intercept=intercept, tol=_TIGHT, max_iter=20_000, warm_start=True)
        for alpha in alphas:
            model.set_params(alpha=alpha)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(train_X, y[train])
            scores.append(-np.mean((y[test] - X[test] @ np.ravel(model.coef_) - model.intercept_) ** 2))
        return np.array(scores)
    # scikit-learn's optimisers are not sharp enough here; the certificates of single fits are judged by other classes
    sign = np.where(y == np.max(y), 1.0, -1.0)
    problem = bg.Problem(X[train], sign[train], loss="logistic", alpha=1.0, fit_intercept=intercept)
    for alpha in alphas:
        solution = bg.solve(problem.with_alpha(alpha), tol=_TIGHT, n_threads=1)
        margins = sign[test] * (X[test] @ solution.coef + solution.intercept)
        scores.append(-2 * np.mean(np.logaddexp(0, -margins)))
    return np.array(scores)
