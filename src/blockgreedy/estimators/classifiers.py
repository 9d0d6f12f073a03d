"""LogisticRegression, SquaredHingeClassifier: two classes, or one against the rest for each of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from blockgreedy.base.validate import above_zero
from blockgreedy.estimators.base import Array, SparseLinearModel
from blockgreedy.estimators.checks import class_weights, share, weights_of_rows
from blockgreedy.estimators.fit_tasks import begin_tasks, hears_callbacks
from blockgreedy.estimators.parameters import with_parameters
from blockgreedy.estimators.scoring import chosen_class, log_probabilities
from blockgreedy.estimators.to_sklearn import logistic_of, margins_of
from blockgreedy.problem.problem import Problem


class SparseClassifierMixin(ClassifierMixin):
    """Two classes with one model, or several with one model for each against the rest, on the same columns."""

    def _learn_classes(self, y: NDArray[Any]) -> NDArray[np.intp]:
        """Sets ``classes_``; the number of each row's class."""
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y holds 1 class only ({self.classes_.tolist()[0]!r}); a classifier needs samples of at least 2"
            )
        return np.asarray(codes, dtype=np.intp)

    def _balance(
        self, class_weight: Any, codes: NDArray[np.intp], weights: Array | None
    ) -> tuple[Array | None, float]:
        """Row weights with those of the classes, and their sum."""
        if class_weight is not None:
            factors = class_weights(class_weight, self.classes_, codes, weights)
            weights = factors if weights is None else weights * factors
        return weights, float(len(codes) if weights is None else np.sum(weights))

    def _signs(self, codes: NDArray[np.intp]) -> list[Array]:
        """Targets of each model."""
        positives = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        return [np.where(codes == positive, 1.0, -1.0) for positive in positives]

    def _names(self) -> list[str]:
        """Of each model in messages."""
        return [""] if len(self.classes_) == 2 else [f"class {label!r}: " for label in self.classes_.tolist()]

    def _offsets(self, offset: Any, n_samples: int) -> list[Array | None]:
        """Of each model."""
        n_models = len(self._names())
        if offset is None:
            return [None] * n_models
        values = np.asarray(offset, dtype=np.float64)
        if n_models == 1:
            return [np.broadcast_to(values, n_samples) if values.ndim == 0 else values]
        if values.shape != (n_samples, n_models):
            raise ValueError(
                f"offset has shape {values.shape}, expected ({n_samples}, {n_models}): one column for each class"
            )
        return list(np.ascontiguousarray(values.T))

    @property
    def penalty(self) -> str:
        """``SelectFromModel`` looks at it: with "l1" it drops weights of 0 alone, else all below the mean."""
        ratios = getattr(self, "l1_ratio_", getattr(self, "l1_ratio", 1.0))
        return "l1" if np.all(np.asarray(ratios) == 1) else "elasticnet"

    def decision_function(self, X: Any) -> Array:
        """Xw + b: above 0 for the second class; a column for each of more than two classes."""
        decision = self._decision(X)
        return np.asarray(decision[:, 0] if decision.shape[1] == 1 else decision)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row."""
        chosen = chosen_class(self._decision(X))
        return np.asarray(self.classes_[chosen])


class ProbabilisticMixin:
    """Probabilities of a logistic model. Of more than two classes each model's own are scaled to add up to 1."""

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities of each class."""
        return log_probabilities(self._decision(X))  # type: ignore[attr-defined]

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of each class."""
        return np.exp(self.predict_log_proba(X))


def for_each_class(first: Problem, signs: Sequence[Array], offsets: Sequence[Array | None]) -> list[Problem]:
    """The problems of all models, given that of the first; they share its columns."""
    first.shares_design = len(signs) > 1
    return [first, *(first.with_targets(y, offset) for y, offset in zip(signs[1:], offsets[1:], strict=True))]


@dataclass(eq=False, repr=False)
class SparseClassifier(SparseClassifierMixin, SparseLinearModel):
    """Predicts the class by the sign of Xw + b, or by the largest of several."""

    _loss: ClassVar[str] = "logistic"
    alpha: float | None = None
    C: float = 1.0
    l1_ratio: float = 1.0
    class_weight: dict[Any, float] | str | None = None

    @hears_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        """Fits the weights.

        Parameters
        ----------
        X : sparse matrix or array of shape (n_samples, n_features)
            The design matrix.
        y : array of shape (n_samples,)
            Classes: numbers or strings.
        sample_weight : float or array of shape (n_samples,), optional
            Weights of the rows.
        offset : array of shape (n_samples,), or (n_samples, n_classes) with more than two classes, optional
            Added to every decision value of the fit; ``predict`` does not know it.
        """
        X, y = self._checked(X, y)
        begin_tasks(self, X, y, sample_weight)
        codes = self._learn_classes(y)
        weights, total = self._balance(self.class_weight, codes, weights_of_rows(sample_weight, X))
        signs, offsets = self._signs(codes), self._offsets(offset, X.shape[0])
        alpha = self._alpha(total)
        penalties = share(alpha, self.l1_ratio)
        first = self._problem(X, signs[0], weights, offsets[0], loss=self._loss, **penalties)
        outcome = self._solve_all(for_each_class(first, signs, offsets), self._names())
        self._keep(outcome, one=False)
        self.alpha_, self.C_ = alpha, 1.0 / (alpha * total) if alpha * total > 0 else np.inf
        return self._conclude(outcome)

    def _alpha(self, total: float) -> float:
        """alpha, or what C means: C·Σ loss + ‖w‖₁ is (1/Σs)·Σ loss + alpha‖w‖₁, times C·Σs."""
        if self.alpha is not None:
            if self.C != 1.0:
                raise ValueError(
                    f"alpha={self.alpha!r} and C={self.C!r} both set the weight of the penalty; give one of them "
                    "(C=1.0, its default, or alpha=None)"
                )
            return self.alpha
        cost = above_zero("C", self.C, "; or give alpha, the weight of the penalty")
        return 1.0 / (cost * total) if total > 0 else 1.0  # weights of 0 everywhere: Problem says so


@with_parameters
@dataclass(eq=False, repr=False)
class LogisticRegression(ProbabilisticMixin, SparseClassifier):
    """Logistic regression with an L1 or elastic-net penalty.

    (1/Σs) Σ s_i log(1 + exp(−y_i(x_i·w + b))) + alpha·l1_ratio‖w‖₁ + alpha(1 − l1_ratio)/2·‖w‖².

    More than two classes are fitted one-vs-rest, and their probabilities are scaled to add up to 1. (scikit-learn's
    default is the multinomial model.) Each class then has sparse weights that distinguish it from all others.

    Parameters
    ----------
    {penalty}
    {common}
    {classes}
    {penalty_attributes}

    Examples
    --------
    >>> import blockgreedy as bg
    >>> data = bg.data.text_like(300, 400, 10.0)
    >>> model = bg.LogisticRegression(alpha=0.001).fit(data.X, data.y)
    >>> model.predict_proba(data.X).shape
    (300, 2)
    """

    def _counterpart(self) -> Any:
        return logistic_of(self, self.C_, self.l1_ratio)


@with_parameters
@dataclass(eq=False, repr=False)
class SquaredHingeClassifier(SparseClassifier):
    """A linear support vector machine with squared hinge loss max(0, 1 − y(x·w + b))² and an L1 penalty.

    With C it is scikit-learn's ``LinearSVC(penalty="l1", dual=False)``, except that the latter penalises the
    intercept. More than two classes are fitted one-vs-rest.

    Parameters
    ----------
    {penalty}
    {common}
    {classes}
    {penalty_attributes}
    """

    _loss: ClassVar[str] = "squared_hinge"

    def _counterpart(self) -> Any:
        return margins_of(self, self.alpha_, self.C_, self.l1_ratio)
