"""How held-out predictions are judged: deviance, or any scorer of scikit-learn. Greater is better."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer, make_scorer, mean_squared_error

Array = NDArray[np.float64]
# (decision values, a column for each model; targets or classes; weights; what else the scorer asked for) → score
Score = Callable[..., float]
_Made = type(make_scorer(mean_squared_error))  # what make_scorer makes, and get_scorer returns


def log_probabilities(decision: Array) -> Array:
    """A column for each class. Decision values: one column for two classes, or one for each of several."""
    if decision.shape[1] == 1:
        return np.column_stack([log_expit(-decision[:, 0]), log_expit(decision[:, 0])])
    single = log_expit(decision)  # one against the rest, scaled to add up to 1
    return np.asarray(single - logsumexp(single, axis=1, keepdims=True))


def chosen_class(decision: Array) -> NDArray[np.intp]:
    return (decision[:, 0] > 0).astype(np.intp) if decision.shape[1] == 1 else np.argmax(decision, axis=1)


def is_deviance(scoring: Any) -> bool:
    return scoring is None or (isinstance(scoring, str) and scoring == "deviance")


def scorer_of(scoring: Any) -> Any:
    """What scikit-learn would call; None for deviance, which is ours."""
    if is_deviance(scoring):
        return None
    scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
    if not callable(scorer):
        raise ValueError(f"scoring={scoring!r} must be 'deviance', the name of a scorer or a scorer of scikit-learn")
    return scorer


@dataclass(frozen=True)
class RowScorer:
    """A callable that ``make_scorer`` did not make: it may look at rows of X and at the model, so it gets both."""

    scorer: Callable[..., Any]

    @property
    def takes_weights(self) -> bool:
        """Whether it has a parameter for the weights of rows; what else it takes must be routed to it."""
        takes = inspect.signature(self.scorer).parameters.values()
        return any(one.name == "sample_weight" or one.kind is one.VAR_KEYWORD for one in takes)

    def __call__(self, model: Any, X: Any, y: NDArray[Any], **params: Any) -> float:
        value = self.scorer(model, X, y, **params)
        try:
            return float(value)
        except (TypeError, ValueError):
            raise ValueError(f"scoring={self.scorer!r} returned {value!r}; it must return a number") from None


def make_score(scoring: Any, classes: NDArray[Any] | None) -> Score | RowScorer:
    """``scoring`` as the estimators take it; classes: None for regression."""
    scorer = scorer_of(scoring)
    if scorer is None:
        return _squared_deviance if classes is None else _class_deviance(classes)
    if not isinstance(scorer, _Made):
        return RowScorer(scorer)
    takes = inspect.signature(scorer._score_func).parameters
    if classes is not None and "labels" in takes:
        scorer = _with_labels(scorer, classes, "pos_label" in takes)

    def score(decision: Array, y: NDArray[Any], weights: Array, **params: Any) -> float:
        known = _Held(decision) if classes is None else _HeldClasses(decision, classes)
        rows = np.arange(len(y)).reshape(-1, 1)  # stands for X, which only the predictions know
        if "sample_weight" in takes and np.any(weights != weights[0]):
            params["sample_weight"] = weights
        return float(scorer(known, rows, y, **params))

    return score


def _with_labels(scorer: Any, classes: NDArray[Any], takes_positive: bool) -> Any:
    """The scorer, told of all classes: the rows of a fold may lack some."""
    known = {"labels": classes} | ({"pos_label": classes[1]} if takes_positive and len(classes) == 2 else {})
    average = scorer._kwargs.get("average", "binary" if takes_positive else None)
    if average == "binary" and len(classes) == 2:  # scores one class; labels would only repeat that
        del known["labels"]
    return make_scorer(
        scorer._score_func,
        greater_is_better=scorer._sign == 1,
        response_method=scorer._response_method,
        **(known | scorer._kwargs),
    )


def _squared_deviance(decision: Array, y: NDArray[Any], weights: Array) -> float:
    """−mean (y − prediction)²"""
    return -float(np.average((y - decision[:, 0]) ** 2, weights=weights))


def _class_deviance(classes: NDArray[Any]) -> Score:
    def score(decision: Array, y: NDArray[Any], weights: Array) -> float:
        """2·mean log probability of the true class"""
        codes = np.searchsorted(classes, y)
        return 2 * float(np.average(log_probabilities(decision)[np.arange(len(y)), codes], weights=weights))

    return score


class _Held(RegressorMixin, BaseEstimator):
    """A fitted model as a scorer sees it, whose predictions are known already."""

    def __init__(self, decision: Any = None) -> None:
        self.decision = decision

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> Array:
        return np.asarray(self.decision[X[:, 0], 0])


class _HeldClasses(ClassifierMixin, BaseEstimator):
    """The same of a classifier."""

    def __init__(self, decision: Any = None, classes: Any = None) -> None:
        self.decision = decision
        self.classes = classes
        self.classes_ = classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def decision_function(self, X: Any) -> Array:
        decision = self.decision[X[:, 0]]
        return np.asarray(decision[:, 0] if decision.shape[1] == 1 else decision)

    def predict(self, X: Any) -> NDArray[Any]:
        return np.asarray(self.classes[chosen_class(self.decision[X[:, 0]])])

    def predict_proba(self, X: Any) -> Array:
        return np.exp(log_probabilities(self.decision[X[:, 0]]))
