"""Arguments of the estimators that Problem does not know."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight

from blockgreedy.base.validate import l1_ratio_of, non_negative, number
from blockgreedy.estimators.fit_tasks import FRAMES
from blockgreedy.estimators.scoring import RowScorer, is_deviance

if TYPE_CHECKING:
    from blockgreedy.estimators.folds import Fold
    from blockgreedy.estimators.scoring import Score

Array = NDArray[np.float64]


def weights_of_rows(sample_weight: Any, X: Any) -> Array | None:
    """None, a number for all rows, or one for each."""
    if sample_weight is None:
        return None
    weights: Array = _check_sample_weight(sample_weight, X, dtype=np.float64)
    return weights


def offsets_like(y: NDArray[Any], offset: Any) -> Array:
    """A row for each target of y; one number, or one for each sample, goes for all targets."""
    values = np.asarray(offset, dtype=np.float64)
    try:
        return np.broadcast_to(values.T, (1 if y.ndim == 1 else y.shape[1], len(y)))
    except ValueError:
        raise ValueError(f"offset has shape {values.shape}, expected that of y: {y.shape}") from None


def share(alpha: float, l1_ratio: float) -> dict[str, float]:
    """scikit-learn's two parameters of the elastic net → alpha and l2 of a Problem."""
    ratio, weight = l1_ratio_of(l1_ratio), non_negative("alpha", alpha)
    return {"alpha": weight * ratio, "l2": weight * (1 - ratio)}


def given_alphas(alphas: Any) -> Array:
    """Descending."""
    try:
        values = [] if isinstance(alphas, str) else list(alphas)
    except TypeError:
        values = []
    if not values:
        raise ValueError(f"alphas={alphas!r} must be a list of numbers above 0, one or more, or the number of alphas")
    for k, value in enumerate(values):
        is_number = isinstance(value, (Real, np.integer, np.floating)) and not isinstance(value, (bool, np.bool_))
        if not is_number or not (np.isfinite(value) and value > 0):
            raise ValueError(
                f"alphas must be a list of numbers above 0, one or more, or the number of alphas; [{k}] is {value!r}"
            )
    return np.sort(np.array(values, dtype=np.float64))[::-1]


def check_classes(
    folds: Sequence[Fold],
    y: NDArray[Any],
    classes: NDArray[Any],
    scoring: Any,
    score: Score | RowScorer,
    n_models: int,
) -> None:
    """Before the work: folds that lack a class are refused if that leaves no score, warned of if a poor one."""
    advice = (
        "let every fold have rows of all classes (StratifiedKFold, with fewer folds than rows of the rarest class)"
    )
    codes = np.searchsorted(classes, y)
    unknown = []
    for k, fold in enumerate(folds):
        trained = np.unique(codes[fold.weights > 0])
        held_out = y[fold.held_out]
        if not np.all(np.isin(codes[fold.held_out], trained)):
            unknown.append(k)
        may_fail = not is_deviance(scoring) and not isinstance(score, RowScorer)  # which only a model can be given to
        if len(np.unique(held_out)) < len(classes) and may_fail:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    value, why = score(np.zeros((len(held_out), n_models)), held_out, fold.score_weights), "it is nan"
                except ValueError as error:
                    value, why = np.nan, str(error)
            if np.isnan(value):
                raise ValueError(
                    f"scoring={scoring!r} is not defined for the held-out rows of fold {k}, which lack a class "
                    f"({why}); {advice}, or scoring='deviance'"
                )
    if unknown:
        warnings.warn(
            f"the training rows of fold(s) {', '.join(map(str, unknown))} lack a class that the held-out rows hold: "
            f"their models cannot predict it, and their scores say little of alpha; {advice}",
            UserWarning,
            stacklevel=5 + FRAMES,
        )


def class_weights(class_weight: Any, classes: NDArray[Any], codes: NDArray[np.intp], weights: Array | None) -> Array:
    """A factor for each row: what its class counts.

    "balanced" gives every class the same total, as scikit-learn does: Σs/(number of classes · Σs of the class).
    """
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(f"class_weight={class_weight!r} must be 'balanced', a dictionary by class, or None")
        totals = np.bincount(codes, weights=weights, minlength=len(classes))
        mean = float(np.sum(totals)) / len(classes)
        factors = np.divide(mean, totals, out=np.zeros(len(classes)), where=totals > 0)
    elif isinstance(class_weight, dict):
        unknown = set(class_weight) - set(classes.tolist())
        if unknown and set(classes.tolist()) - set(class_weight):  # a slip; else y is a part that lacks a class
            raise ValueError(
                f"class_weight names {unknown!r}, which y does not hold; its classes are {classes.tolist()}"
            )
        factors = np.array([number("class_weight", class_weight.get(label, 1.0)) for label in classes.tolist()])
    else:
        raise ValueError(f"class_weight={class_weight!r} must be 'balanced', a dictionary by class, or None")
    return np.asarray(factors[codes])
