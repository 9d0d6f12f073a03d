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
    options = {**case.options, "cv": splits, "fit_intercept": case.problem["fit_intercept"]}
    model, outcome.seconds = timed(lambda: getattr(bg, case.estimator)(**options).fit(case.X, case.y))
    outcome.statuses.append(model.status_)
    curve = np.asarray(model.cv_results_["mean_test_score"])
    alphas = np.asarray(model.alphas_)
    X = sp.csr_array(case.X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = [_scores(case, X, train, test, alphas) for train, test in splits]
    true = np.average(scores, axis=0, weights=[len(test) for _, test in splits])
    if not np.all(np.isfinite(true)):
        outcome.statuses.append("unknown")
        return
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
    if case.problem["loss"] == "squared":
        from sklearn.linear_model import lasso_path

        A, b = X[train].toarray(), y[train]
        means = A.mean(axis=0) if intercept else np.zeros(A.shape[1])
        middle = b.mean() if intercept else 0.0
        A, b = np.asfortranarray(A - means), b - middle
        _, coefs, gaps = lasso_path(A, b, alphas=alphas, precompute=A.T @ A, Xy=A.T @ b, tol=_TIGHT, max_iter=3000)
        predictions = X[test] @ coefs + (middle - means @ coefs)
        unsure = gaps > 1e-6 * (b @ b)  # an optimum that nobody knows
        return np.where(unsure, np.nan, -np.mean((y[test][:, None] - predictions) ** 2, axis=0))
    scores = []
    # scikit-learn's optimisers are not sharp enough here; the certificates of single fits are judged by other classes
    sign = np.where(y == np.max(y), 1.0, -1.0)
    problem = bg.Problem(X[train], sign[train], loss="logistic", alpha=1.0, fit_intercept=intercept)
    for alpha in alphas:
        solution = bg.solve(problem.with_alpha(alpha), tol=_TIGHT, n_threads=1)
        margins = sign[test] * (X[test] @ solution.coef + solution.intercept)
        scores.append(-2 * np.mean(np.logaddexp(0, -margins)))
    return np.array(scores)
