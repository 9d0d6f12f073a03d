"""From scikit-learn: the same models fitted by both packages, their objectives and weights side by side.

The objectives of both are computed here with NumPy. docs/migrate-scikit-learn.md has the table of parameters.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn import linear_model, svm
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.fixes import parse_version

import blockgreedy as bg

Array = NDArray[np.float64]
# scikit-learn 1.8 replaced penalty="l1" by l1_ratio=1
RENAMED = parse_version(sklearn.__version__) >= parse_version("1.8")
L1: dict[str, Any] = {"l1_ratio": 1} if RENAMED else {"penalty": "l1"}


def make_data(seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 150)) + 0.5
    return X, X[:, :8] @ np.linspace(2.0, 0.5, 8) + 2 * rng.normal(size=len(X)) - 2.0


def squared(y: Array, t: Array) -> Array:
    return 0.5 * (y - t) ** 2


def logistic(y: Array, t: Array) -> Array:
    return np.logaddexp(0.0, -y * t)


def squared_hinge(y: Array, t: Array) -> Array:
    return np.maximum(0.0, 1 - y * t) ** 2


def main() -> None:
    X, y = make_data()
    signs = np.where(y > np.median(y), 1.0, -1.0)
    C, alpha = 0.05, 0.1
    tight: dict[str, Any] = {"tol": 1e-8, "max_iter": 100_000, "random_state": 0}
    worst = 0.0

    def compare(name: str, theirs: Any, ours: Any, loss: Any, target: Array, l1: float, l2: float = 0.0) -> None:
        """Fits both models and computes the objective of each: mean loss + l1‖w‖₁ + l2/2‖w‖²."""
        nonlocal worst
        values, coefs = [], []
        for model in (theirs, ours):
            model.fit(X, target)
            w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
            values.append(np.mean(loss(target, X @ w + b)) + l1 * np.sum(np.abs(w)) + l2 / 2 * np.sum(w**2))
            coefs.append(w)
        apart = np.max(np.abs(coefs[0] - coefs[1]))
        gap = float(np.max(ours.dual_gap_))
        worst = max(worst, values[1] - values[0] - gap)
        nonzeros = np.count_nonzero(coefs[1])
        print(f"{name:38}  {values[0]:.9f}  {values[1]:.9f}  {gap:7.0e}  {apart:7.0e}  {nonzeros:3d}")

    print(f"{'':38}  scikit-learn  blockgreedy  our gap  weights  non-")
    print(f"{'':38}    objective     objective           differ  zeros")
    # Same parameters, same meaning.
    compare("Lasso", linear_model.Lasso(alpha=alpha, **tight), bg.Lasso(alpha=alpha, tol=1e-9), squared, y, alpha)
    theirs = linear_model.ElasticNet(alpha=alpha, l1_ratio=0.7, **tight)
    ours = bg.ElasticNet(alpha=alpha, l1_ratio=0.7, tol=1e-9)
    compare("ElasticNet", theirs, ours, squared, y, 0.7 * alpha, 0.3 * alpha)

    # C multiplies the sum of the losses, alpha the penalty that is added to their mean: alpha = 1/(C·n).
    alpha = 1 / (C * len(X))
    theirs = linear_model.LogisticRegression(C=C, solver="saga", **L1, **tight)
    compare("LogisticRegression, saga", theirs, bg.LogisticRegression(C=C, tol=1e-9), logistic, signs, alpha)
    compare("the same, by our alpha", theirs, bg.LogisticRegression(alpha=alpha, tol=1e-9), logistic, signs, alpha)

    # liblinear penalises the intercept like a weight, ours never: the models differ. A large intercept_scaling makes
    # that penalty small.
    theirs = linear_model.LogisticRegression(C=C, solver="liblinear", **L1, **tight)
    compare("LogisticRegression, liblinear", theirs, bg.LogisticRegression(C=C, tol=1e-9), logistic, signs, alpha)
    theirs = linear_model.LogisticRegression(C=C, solver="liblinear", intercept_scaling=1e3, **L1, **tight)
    compare("liblinear, intercept_scaling=1000", theirs, bg.LogisticRegression(C=C, tol=1e-9), logistic, signs, alpha)
    theirs = svm.LinearSVC(C=C, penalty="l1", dual=False, fit_intercept=False, **tight)
    ours = bg.SquaredHingeClassifier(C=C, fit_intercept=False, tol=1e-9)
    compare("LinearSVC(penalty='l1'), no intercept", theirs, ours, squared_hinge, signs, alpha)

    # Three classes: scikit-learn's default model is multinomial; ours is one-vs-rest.
    classes = np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))
    ours = bg.LogisticRegression(C=C, tol=1e-9).fit(X, classes)
    each = OneVsRestClassifier(linear_model.LogisticRegression(C=C, solver="saga", **L1, **tight)).fit(X, classes)
    joint = linear_model.LogisticRegression(C=C, solver="saga", **L1, **tight).fit(X, classes)
    print("\nthree classes, largest difference of our probabilities")
    for name, model in (("OneVsRestClassifier(LogisticRegression)", each), ("the multinomial model", joint)):
        print(f"  from {name}: {np.max(np.abs(ours.predict_proba(X) - model.predict_proba(X))):.0e}")

    theirs, ours = linear_model.LassoCV(cv=5).fit(X, y), bg.LassoCV(cv=5).fit(X, y)
    print(f"LassoCV: alpha {theirs.alpha_:.5f} and {ours.alpha_:.5f}; alpha_1se_ of ours: {ours.alpha_1se_:.5f}")
    if worst > 1e-12:
        sys.exit(f"an objective of ours is above scikit-learn's by {worst:.1e} more than the gap allows")


if __name__ == "__main__":
    main()
