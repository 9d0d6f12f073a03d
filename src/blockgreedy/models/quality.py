"""How well a model predicts: its scores beside those of a constant prediction, and curves for pictures.

    quality = measure("logistic", model.classes, decision, y, rows="20 % of the rows, held out")
    quality.scores["roc_auc"], quality.baseline["base_rate"]

A score means little alone: 94 % accuracy is poor where 94 % of the rows are of one class. So every score stands
beside the same score of the best constant prediction (the share of the positive class, or the mean of the targets).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

from blockgreedy.base.reals import real_array
from blockgreedy.base.validate import one_of
from blockgreedy.problem.arguments import labels, row_weights, targets
from blockgreedy.problem.losses import LOSSES

Array = NDArray[np.float64]

ON_TRAINING_ROWS = "the rows the model was fitted on"

# Names for people, in the order of display.
LABELS = {
    "roc_auc": "AUC (ROC)",
    "average_precision": "average precision",
    "log_loss": "log loss",
    "brier": "Brier score",
    "accuracy": "accuracy",
    "r2": "R²",
    "mae": "mean absolute error",
    "rmse": "root mean squared error",
}
LOWER_IS_BETTER = frozenset({"log_loss", "brier", "mae", "rmse"})
# Each curve belongs to another one and is longer than that by so many numbers.
CURVES = {
    **dict.fromkeys(("roc_fpr", "roc_tpr"), ("roc_fpr", 0)),
    **dict.fromkeys(("pr_recall", "pr_precision"), ("pr_recall", 0)),
    **dict.fromkeys(
        ("calibration_predicted", "calibration_observed", "calibration_count"), ("calibration_predicted", 0)
    ),
    **dict.fromkeys(("scores_negative", "scores_positive"), ("scores_negative", 0)),
    "scores_edges": ("scores_negative", 1),
    **dict.fromkeys(("fit_predicted", "fit_observed"), ("fit_predicted", 0)),
    "residual_count": ("residual_count", 0),
    "residual_edges": ("residual_count", 1),
}

_MOST_POINTS = 200  # of a curve
_MOST_ROWS = 500  # of predicted against observed
_BARS, _CALIBRATION_BINS = 40, 10
_TAIL = 0.005  # of the residuals, on either side, are counted in the outermost bars


@dataclass(frozen=True, eq=False)
class Quality:
    """Scores of predictions, each beside that of a constant prediction.

    Undefined scores are left out: AUC and average precision if all rows are of one class, R² if all targets are
    equal.

    Attributes
    ----------
    rows : str
        Which rows were predicted, in words.
    n_samples : int
        Their number; rows of weight 0 do not count.
    scores : mapping of str to float
        In the order of display.
    baseline : mapping of str to float
        Scores of the constant prediction; for classes also "base_rate", the share of the positive class.
    curves : mapping of str to ndarray
        Small arrays for pictures.
    """

    rows: str
    n_samples: int
    scores: Mapping[str, float]
    baseline: Mapping[str, float]
    curves: Mapping[str, Array] = field(repr=False)


def measure(
    loss: str,
    classes: NDArray[Any] | None,
    decision: ArrayLike,
    y: ArrayLike,
    *,
    rows: str,
    sample_weight: ArrayLike | None = None,
) -> Quality:
    """How well ``decision`` (X @ coef + intercept) predicts ``y``.

    Parameters
    ----------
    loss : str
        The loss of the model; with "logistic" the decision gives probabilities, which are scored too.
    classes : ndarray of shape (2,) or None
        The negative and the positive class, or None for a regression.
    decision : array of shape (n_samples,)
        Predictions.
    y : array of shape (n_samples,)
        Targets, or labels, each of them one of ``classes``.
    rows : str
        Which rows these are, in words.
    sample_weight : array of shape (n_samples,), optional
        Weights of the rows.
    """
    one_of("loss", loss, LOSSES)
    predicted = np.asarray(real_array("decision", decision), dtype=np.float64)
    if predicted.ndim != 1 or not len(predicted):
        raise ValueError(f"decision has shape {predicted.shape}, expected one number per row, for at least one row")
    if not np.all(np.isfinite(predicted)):
        row = int(np.argmin(np.isfinite(predicted)))
        raise ValueError(f"decision[{row}] is {predicted[row]}; every value must be finite")
    weights = row_weights(sample_weight, len(predicted))
    if classes is None:
        observed, _ = targets(y, len(predicted), False)
    else:
        observed = _is_positive(labels(y, len(predicted)), classes)
    if weights is not None:
        counted = weights > 0
        predicted, observed, weights = predicted[counted], observed[counted], weights[counted]

    weights = np.ones(len(predicted)) if weights is None else weights * (len(weights) / np.sum(weights))
    if classes is None:
        scores, baseline, curves = _of_targets(predicted, observed, weights)
    else:
        scores, baseline, curves = _of_classes(loss, predicted, observed.astype(bool), weights)
    return Quality(rows, len(predicted), scores, baseline, curves)


def _is_positive(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
    known = np.isin(y, classes)
    if not np.all(known):
        row = int(np.argmin(known))
        negative, positive = classes.tolist()
        raise ValueError(f"y[{row}] is {y[row].item()!r}; the classes of the model are {negative!r} and {positive!r}")
    return np.asarray(y == classes[1])


# ------------------------------------------------------------------------------------------------------ regression


Parts = tuple[dict[str, float], dict[str, float], dict[str, Array]]


def _mean(values: ArrayLike, weights: Array) -> float:
    return float(weights @ np.asarray(values, dtype=np.float64)) / len(weights)


def _errors(predicted: Array | float, y: Array, weights: Array) -> dict[str, float]:
    size = np.abs(y - predicted)
    unit = float(np.max(size)) or 1.0
    return {"mae": _mean(size, weights), "rmse": unit * _mean((size / unit) ** 2, weights) ** 0.5}


def _of_targets(predicted: Array, y: Array, weights: Array) -> Parts:
    scores, baseline = _errors(predicted, y, weights), _errors(_mean(y, weights), y, weights)
    if np.any(y != y[0]) and baseline["rmse"] > 0:
        ratio = min(scores["rmse"] / baseline["rmse"], 1e150)
        scores = {"r2": 1 - ratio**2, **scores}
        baseline = {"r2": 0.0, **baseline}
    some = np.unique(np.linspace(0, len(y) - 1, min(_MOST_ROWS, len(y))).round().astype(np.intp))
    residuals = y - predicted
    low, high = np.quantile(residuals, [_TAIL, 1 - _TAIL])
    residuals = np.clip(residuals, low, high)
    edges = _edges(residuals)
    curves = {
        "fit_predicted": predicted[some],
        "fit_observed": y[some],
        "residual_edges": edges,
        "residual_count": _histogram(residuals, edges, weights),
    }
    return scores, baseline, curves


# -------------------------------------------------------------------------------------------------- classification


def _of_classes(loss: str, decision: Array, positive: NDArray[np.bool_], weights: Array) -> Parts:
    rate = _mean(positive, weights) if not positive.all() else 1.0
    scores: dict[str, float] = {}
    baseline: dict[str, float] = {}
    curves: dict[str, Array] = {}
    if 0 < rate < 1:
        scores, curves = _of_ranks(decision, positive, weights)
        baseline = {"roc_auc": 0.5, "average_precision": rate}
    shown = decision
    if LOSSES[loss].gives_probabilities:
        shown = LOSSES[loss]().probabilities(decision)
        scores["log_loss"] = _mean(np.logaddexp(0.0, np.where(positive, -decision, decision)), weights)
        baseline["log_loss"] = float(-xlogy(rate, rate) - xlogy(1 - rate, 1 - rate))
        scores["brier"] = _mean((shown - positive) ** 2, weights)
        baseline["brier"] = rate * (1 - rate)
        curves |= _calibration(shown, positive, weights)
    scores["accuracy"] = _mean((decision > 0) == positive, weights)
    baseline["accuracy"] = max(rate, 1 - rate)
    baseline["base_rate"] = rate
    edges = _edges(shown)
    curves["scores_edges"] = edges
    for name, mask in (("scores_negative", ~positive), ("scores_positive", positive)):
        curves[name] = _histogram(shown[mask], edges, weights[mask])
    return scores, baseline, curves


def _of_ranks(
    decision: Array, positive: NDArray[np.bool_], weights: Array
) -> tuple[dict[str, float], dict[str, Array]]:
    """What depends on the order of the rows alone. Rows of equal decision are taken together, as one threshold."""
    order = np.argsort(-decision, kind="stable")
    last = np.append(np.flatnonzero(np.diff(decision[order])), len(order) - 1)
    true = np.cumsum(np.where(positive, weights, 0.0)[order])[last]
    false = np.cumsum(np.where(positive, 0.0, weights)[order])[last]
    precision = true / (true + false)
    tpr, fpr = np.append(0.0, true / true[-1]), np.append(0.0, false / false[-1])
    scores = {
        "roc_auc": float(np.diff(fpr) @ (tpr[1:] + tpr[:-1]) / 2),
        "average_precision": float(np.diff(tpr) @ precision),
    }
    roc, pr = _thinned(tpr + fpr), _thinned(tpr)
    return scores, {
        "roc_fpr": fpr[roc],
        "roc_tpr": tpr[roc],
        "pr_recall": tpr[pr],
        "pr_precision": np.append(precision[0], precision)[pr],
    }


def _thinned(along: Array) -> NDArray[np.intp]:
    """At most 200 positions, evenly spaced in ``along``, which ascends; the first and the last are among them."""
    if len(along) <= _MOST_POINTS:
        return np.arange(len(along))
    at = np.searchsorted(along, np.linspace(along[0], along[-1], _MOST_POINTS))
    return np.unique(np.append(at[:-1], len(along) - 1))


def _calibration(probability: Array, positive: NDArray[np.bool_], weights: Array) -> dict[str, Array]:
    """Mean prediction and share of the positive class in ten bins of equal weight, by predicted probability.

    Equal bins and not tenths of 0..1: where the positive class is rare, nearly all rows would be in the first tenth.
    """
    order = np.argsort(probability, kind="stable")
    p, w = probability[order], weights[order]
    before = np.append(0.0, np.cumsum(w))[np.searchsorted(p, p)]

    bins = np.floor(_CALIBRATION_BINS * before / len(p) + 1e-9).astype(np.intp)
    weight = np.bincount(bins, w)
    used = weight > 0
    return {
        "calibration_predicted": np.asarray(np.bincount(bins, w * p)[used] / weight[used]),
        "calibration_observed": np.asarray(np.bincount(bins, w * positive[order])[used] / weight[used]),
        "calibration_count": np.asarray(weight[used], dtype=np.float64),
    }


def _edges(values: Array) -> Array:
    """Of bars from the lowest value to the highest; values that hardly differ get bars that can be told apart."""
    low, high = float(np.min(values)), float(np.max(values))
    least = 1e-6 * max(abs(low), abs(high)) or 1e-6
    wider = max(0.0, (least - (high - low)) / 2)
    return np.linspace(low - wider, high + wider, _BARS + 1)


def _histogram(values: Array, edges: Array, weights: Array) -> Array:
    """How many rows lie between the edges; a row counts by its weight."""
    return np.asarray(np.histogram(values, edges, weights=weights)[0], dtype=np.float64)
