"""Fitted estimators as fitted models of scikit-learn, which predict the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from blockgreedy.estimators.sparse_coef import dense_coef


class ToSklearnMixin:
    def to_sklearn(self) -> Any:
        """A fitted model of scikit-learn with the same predictions; it needs no blockgreedy where it is used.

        Its parameters state the same objective as far as scikit-learn can; ``standardize``, ``penalty_weights``,
        bounds and limits on time are not among them, so that to fit it again may give another model.

        Returns
        -------
        estimator
            ``Lasso`` or ``ElasticNet`` for the squared loss, ``SGDRegressor(loss="huber")`` for ``HuberLasso``,
            ``LogisticRegression`` for two classes, ``OneVsRestClassifier`` of it for more, ``LinearSVC`` for
            ``SquaredHingeClassifier`` (``SGDClassifier`` where its l1_ratio is below 1). Models that chose alpha
            become those of the alpha chosen.
        """
        check_is_fitted(self)
        return self._counterpart()

    def _counterpart(self) -> Any:
        raise TypeError(f"scikit-learn has no model that predicts as {type(self).__name__} does")


def _with(model: Any, fitted: Any, **attributes: Any) -> Any:
    """The model with these attributes, and what ours knows of the columns of X."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(fitted, name):
            attributes[name] = getattr(fitted, name)
    for name, value in attributes.items():
        setattr(model, name, value)
    return model


def lasso_of(fitted: Any, alpha: float, l1_ratio: float | None) -> Any:
    """Lasso, or ElasticNet where there is an l1_ratio."""
    from sklearn.linear_model import ElasticNet, Lasso

    kind = Lasso if l1_ratio is None else ElasticNet
    options = {} if l1_ratio is None else {"l1_ratio": l1_ratio}
    model = kind(alpha=alpha, fit_intercept=fitted.fit_intercept, positive=fitted.positive, **options)
    return _with(
        model, fitted, coef_=dense_coef(fitted).copy(), intercept_=_plain(fitted.intercept_),
        n_iter_=fitted.n_iter_, dual_gap_=fitted.dual_gap_,
    )  # fmt: skip


def _plain(intercept: Any) -> Any:
    return np.array(intercept) if np.ndim(intercept) else float(intercept)


def huber_of(fitted: Any, alpha: float, delta: float) -> Any:
    """SGDRegressor, whose Huber loss has no scale either; of several targets one for each."""
    from sklearn.linear_model import SGDRegressor
    from sklearn.multioutput import MultiOutputRegressor

    def one(coef: Any, intercept: float, n_iter: int) -> Any:
        model = SGDRegressor(
            loss="huber", penalty="l1", alpha=alpha, epsilon=delta, fit_intercept=fitted.fit_intercept
        )
        return _with(model, fitted, coef_=coef.copy(), intercept_=np.array([intercept]), n_iter_=n_iter, t_=1.0)

    coef = dense_coef(fitted)
    if coef.ndim == 1:
        return one(coef, float(fitted.intercept_), fitted.n_iter_)
    parts = zip(coef, fitted.intercept_, fitted.n_iter_, strict=True)
    singles = [one(w, float(b), int(n)) for w, b, n in parts]
    return _with(MultiOutputRegressor(singles[0]), fitted, estimators_=singles)


def logistic_of(fitted: Any, cost: float, l1_ratio: float) -> Any:
    """LogisticRegression of two classes, or one of each class against the rest."""
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.preprocessing import LabelBinarizer

    coef, intercept = dense_coef(fitted), np.asarray(fitted.intercept_, dtype=np.float64)
    n_iter = np.atleast_1d(fitted.n_iter_).astype(np.int32)

    def one(k: int, classes: Any) -> Any:
        rows = slice(k, k + 1)
        return _with(
            _logistic(fitted, cost, l1_ratio), fitted, classes_=classes,
            coef_=coef[rows].copy(), intercept_=intercept[rows].copy(), n_iter_=n_iter[rows],
        )  # fmt: skip

    if len(fitted.classes_) == 2:
        return one(0, fitted.classes_.copy())
    singles = [one(k, np.array([0, 1])) for k in range(len(coef))]
    binarizer = LabelBinarizer(sparse_output=True).fit(fitted.classes_)
    model = OneVsRestClassifier(_logistic(fitted, cost, l1_ratio))
    if not hasattr(OneVsRestClassifier, "classes_"):  # a property until scikit-learn 1.8
        model.classes_ = binarizer.classes_
    return _with(model, fitted, estimators_=singles, label_binarizer_=binarizer)


def _logistic(fitted: Any, cost: float, l1_ratio: float) -> Any:
    import sklearn
    from sklearn.linear_model import LogisticRegression
    from sklearn.utils.fixes import parse_version

    options: dict[str, Any] = {"C": cost, "l1_ratio": l1_ratio, "solver": "saga"}
    if parse_version(sklearn.__version__) < parse_version("1.8"):
        options["penalty"] = "elasticnet"
    # a factor for each class would count twice: those of one class against the rest are of all classes
    weights = fitted.class_weight if len(fitted.classes_) == 2 else None
    return LogisticRegression(fit_intercept=fitted.fit_intercept, class_weight=weights, **options)


def margins_of(fitted: Any, alpha: float, cost: float, l1_ratio: float) -> Any:
    """LinearSVC, which has no elastic net; SGDClassifier has."""
    from sklearn.linear_model import SGDClassifier
    from sklearn.svm import LinearSVC

    options = {"fit_intercept": fitted.fit_intercept, "class_weight": fitted.class_weight}
    coef, intercept = dense_coef(fitted).copy(), np.array(fitted.intercept_, dtype=np.float64)
    if l1_ratio == 1 and 0 < cost < np.inf:
        model = LinearSVC(penalty="l1", loss="squared_hinge", dual=False, C=cost, **options)
    else:
        model = SGDClassifier(loss="squared_hinge", penalty="elasticnet", alpha=alpha, l1_ratio=l1_ratio, **options)
    n_iter = int(np.max(fitted.n_iter_))
    return _with(model, fitted, coef_=coef, intercept_=intercept, classes_=fitted.classes_.copy(), n_iter_=n_iter)
