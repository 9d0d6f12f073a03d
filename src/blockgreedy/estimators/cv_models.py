"""LassoCV, ElasticNetCV, LogisticRegressionCV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin

from blockgreedy.base.validate import l1_ratio_of
from blockgreedy.estimators.base import Array
from blockgreedy.estimators.checks import weights_of_rows
from blockgreedy.estimators.classifiers import (
    LogisticRegression,
    ProbabilisticMixin,
    SparseClassifierMixin,
    for_each_class,
)
from blockgreedy.estimators.cross_validation import CrossValidated, ScoringMixin
from blockgreedy.estimators.fit_tasks import begin_tasks, hears_callbacks
from blockgreedy.estimators.folds import Fold
from blockgreedy.estimators.parameters import with_parameters
from blockgreedy.estimators.regressors import ElasticNet, Lasso
from blockgreedy.estimators.scoring import is_deviance
from blockgreedy.problem.problem import Problem


@dataclass(eq=False, repr=False)
class CrossValidatedRegressor(ScoringMixin, RegressorMixin, CrossValidated):
    """Least squares at the alpha that predicts held-out rows best."""

    @hears_callbacks
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        offset: Any = None,
        groups: Any = None,
        **params: Any,
    ) -> Self:
        """Chooses alpha by cross-validation, then fits all rows.

        Parameters
        ----------
        X, y, offset
            As in ``fit`` of ``Lasso``.
        sample_weight : float or array of shape (n_samples,), optional
            Weights of the rows, in fits and in scores.
        groups : array of shape (n_samples,), optional
            For splitters that keep groups together.
        **params
            What the splitter and the scorer ask for, if scikit-learn's metadata routing is enabled.
        """
        routed = self._route("fit", params, sample_weight=sample_weight, groups=groups)
        X, y = self._checked(X, y, y_numeric=True)
        begin_tasks(self, X, y, sample_weight)
        weights = weights_of_rows(sample_weight, X)
        folds = self._folds(X, y, weights, routed)
        problem = self._problem(X, y, weights, offset, loss="squared", alpha=0.0)
        offsets = [None if offset is None else np.broadcast_to(np.asarray(offset, dtype=np.float64), len(y))]

        def of_fold(fold: Fold) -> Sequence[Problem]:
            return [problem.with_sample_weight(fold.weights)]

        judge = self._judge_with(X, np.asarray(y, np.float64), offsets, weights, routed)
        choice = self._choose([problem], of_fold, folds, judge)
        if is_deviance(self.scoring):
            self.mse_path_ = -self.score_path_
        return self._refit([problem], [""], choice, one=True)

    def predict(self, X: Any) -> Array:
        """X @ coef_ + intercept_"""
        return self._decision(X)

    def _model_of(self, coefs: Array, intercepts: Array, alpha: float, l1_ratio: float) -> Lasso | ElasticNet:
        single = ElasticNet if hasattr(self, "l1_ratio") else Lasso
        model: Lasso | ElasticNet = self._as(single, coefs[0], float(intercepts[0]), alpha, l1_ratio)
        return model


@with_parameters
@dataclass(eq=False, repr=False)
class LassoCV(CrossValidatedRegressor):
    """A ``Lasso`` whose alpha is chosen by cross-validation.

    Parameters
    ----------
    {cv}
    {common}
    {cv_attributes}
    mse_path_ : ndarray of shape (n_alphas, n_folds)
        Mean squared errors, if ``scoring`` is "deviance".

    Examples
    --------
    >>> import numpy as np
    >>> import blockgreedy as bg
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 20))
    >>> y = 3 * X[:, 4] + rng.normal(size=100)
    >>> model = bg.LassoCV(selection="1se").fit(X, y)
    >>> np.flatnonzero(model.coef_)
    array([4])
    """


@with_parameters
@dataclass(eq=False, repr=False)
class ElasticNetCV(CrossValidatedRegressor):
    """An ``ElasticNet`` whose alpha, and l1_ratio if it is a list, are chosen by cross-validation.

    Parameters
    ----------
    l1_ratio : float or list of float, default 0.5
        Share of the L1 norm, above 0 and up to 1.
    {cv}
    {common}
    {cv_attributes}
    l1_ratio_ : float
        The chosen one.
    mse_path_ : ndarray in the shape of ``score_path_``
        Mean squared errors, if ``scoring`` is "deviance".
    """

    l1_ratio: float | Sequence[float] = 0.5

    def _ratios(self) -> list[float]:
        return [l1_ratio_of(ratio) for ratio in np.atleast_1d(np.asarray(self.l1_ratio)).tolist()]


@with_parameters
@dataclass(eq=False, repr=False)
class LogisticRegressionCV(ProbabilisticMixin, ScoringMixin, SparseClassifierMixin, CrossValidated):
    """A ``LogisticRegression`` whose alpha is chosen by cross-validation.

    More than two classes are fitted one-vs-rest, with the same alpha for all classes.

    Parameters
    ----------
    l1_ratio : float or list of float, default 1.0
        Share of the L1 norm, above 0 and up to 1.
    class_weight : "balanced" or dict, optional
        Factors of the sample weights of each class; "balanced" is computed from the training rows of each fold. The
        scores of held-out rows are computed without class weights.
    {cv}
    {common}
    {classes}
    {cv_attributes}
    l1_ratio_ : float
        The chosen one.
    C_ : float
        1/(alpha_·Σs).
    """

    l1_ratio: float | Sequence[float] = 1.0
    class_weight: dict[Any, float] | str | None = None

    _is_classifier: ClassVar[bool] = True

    def _ratios(self) -> list[float]:
        return [l1_ratio_of(ratio) for ratio in np.atleast_1d(np.asarray(self.l1_ratio)).tolist()]

    @hears_callbacks
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        offset: Any = None,
        groups: Any = None,
        **params: Any,
    ) -> Self:
        """Chooses alpha by cross-validation, then fits all rows.

        The arguments are those of ``LogisticRegression.fit``, and ``groups`` as in ``LassoCV.fit``. Weights of rows
        count in fits and in scores; ``params`` are what the splitter and the scorer ask for, if scikit-learn's
        metadata routing is enabled.
        """
        routed = self._route("fit", params, sample_weight=sample_weight, groups=groups)
        X, y = self._checked(X, y)
        begin_tasks(self, X, y, sample_weight)
        codes = self._learn_classes(y)
        weights = weights_of_rows(sample_weight, X)
        folds = self._folds(X, y, weights, routed)
        balanced, total = self._balance(self.class_weight, codes, weights)
        offsets = self._offsets(offset, X.shape[0])
        signs = self._signs(codes)
        first = self._problem(X, signs[0], balanced, offsets[0], loss="logistic", alpha=0.0)
        problems = for_each_class(first, signs, offsets)

        def of_fold(fold: Fold) -> Sequence[Problem]:
            row_weights, _ = self._balance(self.class_weight, codes, fold.weights)
            return for_each_class(first.with_sample_weight(row_weights), signs, offsets)

        judge = self._judge_with(X, np.asarray(y), offsets, weights, routed, self.classes_)
        choice = self._choose(problems, of_fold, folds, judge, self.classes_)
        self.C_ = 1.0 / (choice.alpha * total)
        return self._refit(problems, self._names(), choice, one=False)

    def _model_of(self, coefs: Array, intercepts: Array, alpha: float, l1_ratio: float) -> LogisticRegression:
        model: LogisticRegression = self._as(LogisticRegression, coefs, intercepts, alpha, l1_ratio)
        model.classes_ = self.classes_
        return model
