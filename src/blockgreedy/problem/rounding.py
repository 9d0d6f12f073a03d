"""Weights in a narrower type, such as that of X, and what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.problem.null_model import CLOSE, best_intercept

if TYPE_CHECKING:
    from blockgreedy.problem.problem import Problem

Array = NDArray[np.float64]


def round_weights(problem: Problem, w: Array, intercept: float, dtype: np.dtype[Any]) -> tuple[Array, float, float]:
    """Weights that ``dtype`` can hold, within their bounds; the best intercept for them, and the objective there.

    ``intercept`` belongs to w and is close to the best one. Every fit of an estimator on float32 comes by here, so
    that predictions are added up once.
    """
    features = np.flatnonzero(w)
    penalty, values = problem.penalty_at(features), w[features].astype(dtype)
    outside = (values < penalty.lower) | (values > penalty.upper)
    values[outside] = np.nextafter(values[outside], dtype.type(0))
    coef = np.zeros(problem.n_features)
    coef[features] = values
    scaling, inner = problem.scaling, problem.scaling.inner
    predictions = inner.decision(scaling.coef_in(coef))
    if problem.fit_intercept:
        free = inner.copied("null_model", "alpha_max", "scaling")
        free.offset = predictions
        b = best_intercept(free, scaling.intercept_in(intercept, slice(None), coef), CLOSE)
        intercept = scaling.intercept_out(b, slice(None), coef)
        predictions = predictions + scaling.intercept_in(intercept, slice(None), coef)
    cost = scaling.penalty_in(features, coef[features])
    return coef, intercept, scaling.value_out(inner.mean(inner.loss.value(inner.y, predictions)) + cost)
