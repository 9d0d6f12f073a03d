"""Arguments of the estimators that Problem does not know."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight

from blockgreedy.options import number

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


def ratio_of(l1_ratio: float) -> float:
    ratio = number("l1_ratio", l1_ratio)
    if not 0 <= ratio <= 1:
        raise ValueError(f"l1_ratio={l1_ratio!r} must be from 0 to 1")
    return ratio


def share(alpha: float, l1_ratio: float) -> dict[str, float]:
    """scikit-learn's two parameters of the elastic net → alpha and l2 of a Problem."""
    ratio = ratio_of(l1_ratio)
    weight = number("alpha", alpha)
    if not (np.isfinite(weight) and weight >= 0):
        raise ValueError(f"alpha={alpha!r} must be a finite number of at least 0")
    return {"alpha": weight * ratio, "l2": weight * (1 - ratio)}


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
        if unknown:
            raise ValueError(
                f"class_weight names {unknown!r}, which y does not hold; its classes are {classes.tolist()}"
            )
        factors = np.array([number("class_weight", class_weight.get(label, 1.0)) for label in classes.tolist()])
    else:
        raise ValueError(f"class_weight={class_weight!r} must be 'balanced', a dictionary by class, or None")
    return np.asarray(factors[codes])
