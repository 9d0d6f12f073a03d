"""Choosing alpha by cross-validation: the best score, or the sparser model within a standard error of it.

``alpha_min_`` predicts best on held-out rows, on average over the folds. That average is itself uncertain:
``alpha_1se_`` is the largest alpha whose score is at most one standard error worse; it often has far fewer features.
The data are generated; it takes a few seconds.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

import blockgreedy as bg

Array = NDArray[np.float64]
WIDTH = 48


def make_data(seed: int = 0) -> tuple[Array, Array]:
    """400 features, of which ten matter, some of them little."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 400))
    return X, X[:, :10] @ np.linspace(1.0, 0.1, 10) + rng.normal(size=len(X))


def print_curve(model: Any, what: str) -> None:
    """Mean loss of the held-out rows, and one standard error to each side, along the alphas."""
    loss, error = -model.cv_results_["mean_test_score"], model.cv_results_["std_error"]
    at = [int(np.argmin(np.abs(model.alphas_ - alpha))) for alpha in (model.alpha_min_, model.alpha_1se_)]
    low, high = float(np.min(loss - error)), float(np.max(loss + error))

    def place(value: float) -> int:
        return round((WIDTH - 1) * (value - low) / (high - low))

    print(f"  {'alpha':>8}  nonzeros  {what}, mean ± standard error")
    for k in sorted({*range(0, len(loss), 7), *at}):
        line = [" "] * WIDTH
        for column in range(place(loss[k] - error[k]), place(loss[k] + error[k]) + 1):
            line[column] = "─"
        line[place(loss[k])] = "●"
        name = " ← alpha_min_" if k == at[0] else " ← alpha_1se_" if k == at[1] else ""
        nonzeros = model.cv_results_["mean_nonzeros"][k]
        print(f"  {model.alphas_[k]:8.4f}  {nonzeros:8.1f}  {loss[k]:.3f} ± {error[k]:.3f}  {''.join(line)}{name}")


def main() -> None:
    X, target = make_data()
    train, test, y, y_test = train_test_split(X, target, test_size=0.5, random_state=0)

    print("LassoCV, ten folds")
    setting: dict[str, Any] = {"cv": 10, "n_alphas": 60, "eps": 0.01, "random_state": 0}  # shuffled folds
    lasso = bg.LassoCV(**setting).fit(train, y)
    print_curve(lasso, "squared error")
    for name, alpha in (("alpha_min_", lasso.alpha_min_), ("alpha_1se_", lasso.alpha_1se_)):
        model = bg.Lasso(alpha).fit(train, y)
        kept = np.count_nonzero(model.coef_)
        print(f"  {name} {alpha:.4f}: {kept} features, R² on test rows {model.score(test, y_test):.3f}")

    print("\nLogisticRegressionCV, ten folds: is the target above 0?")
    label, label_test = np.where(y > 0, "yes", "no"), np.where(y_test > 0, "yes", "no")
    logistic = bg.LogisticRegressionCV(**setting, selection="1se").fit(train, label)
    print_curve(logistic, "deviance")
    # selection="1se": the fitted model is the one at alpha_1se_
    other = bg.LogisticRegression(logistic.alpha_min_).fit(train, label)
    for name, model in (("alpha_min_", other), ("alpha_1se_", logistic)):
        probabilities = model.predict_proba(test)
        area, loss = roc_auc_score(label_test, probabilities[:, 1]), log_loss(label_test, probabilities)
        kept = np.count_nonzero(model.coef_)
        print(f"  {name}: {kept} features; on test rows: AUC {area:.3f}, log loss {loss:.3f}")

    # Any scorer of scikit-learn can be used instead; on small data calling it takes longer than the fits.
    by_auc = bg.LogisticRegressionCV(cv=5, n_alphas=30, random_state=0, scoring="roc_auc").fit(train, label)
    best = np.max(by_auc.cv_results_["mean_test_score"])
    print(f"  by AUC: alpha {by_auc.alpha_:.4f} (best mean {best:.3f}), C {by_auc.C_:.2f}")
    if not (lasso.alpha_1se_ >= lasso.alpha_min_ and logistic.alpha_ == logistic.alpha_1se_):
        sys.exit("alpha_1se_ is below alpha_min_, or was not chosen")


if __name__ == "__main__":
    main()
