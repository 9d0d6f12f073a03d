"""The guard at the end of every solve: what is returned is evaluated again, and no status says more than that.

Iterations carry predictions, objective and dual value from step to step, in the units of the inner problem. Here the
weights are taken as the user gets them, and objective, dual value and every column's constraint are computed from
them and the dual point alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.engine import Point
from blockgreedy.base.deadline import NEVER, Deadline
from blockgreedy.problem import certificate

if TYPE_CHECKING:
    from blockgreedy import _core
    from blockgreedy.problem.core_problem import CoreProblem
    from blockgreedy.problem.scaling import Scaling

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Guarded:
    """A point as the user gets it, without its dual point, and what the engine needs to go on from it."""

    point: Point
    other_dual: Array | None  # where the engine's own is not the best one
    inner_intercept: float


def guard(
    scaling: Scaling,
    engine: _core.WorkingSet,
    coef: Array,
    features: NDArray[np.int32],
    whole_model: Callable[[], CoreProblem] | None,
    is_dual_proven: Callable[[], bool] = lambda: True,
    repairs: bool = True,
    until: Deadline = NEVER,
) -> Guarded:
    """Where the engine stands. ``coef`` holds its weights, which become what the user's are in inner units.

    ``features`` are those of the weights that are returned, all others being 0. With ``whole_model`` it also
    looks for a better dual point, where the engine's is not good enough: with ``repairs`` for as long as it takes
    ``until`` time is up, else only as a quick look finds it. ``is_dual_proven``: whether the engine's keeps the
    constraints of columns that the core does not have.
    """
    inner, before = scaling.inner, engine.dual_value
    if whole_model is not None and repairs and not until.has_passed():
        engine.certify(True, until.seconds_left())
        repairs = not until.has_passed()
    else:
        repairs = False
    if whole_model is not None and not repairs and engine.dual_value == before:
        engine.certify(False, until.for_the_end().seconds_left())
    values = scaling.weights_out(features, coef[features])
    returned = scaling.weights_in(features, values)
    coef[features] = returned
    intercept = scaling.intercept_out(engine.intercept, features, values)
    inner_intercept = scaling.intercept_in(intercept, features, values)
    objective, penalty, dual_value = engine.verify(features, returned, inner_intercept)
    if not scaling.is_identity:
        own = scaling.penalty_in(features, values)
        objective, penalty = objective - penalty + own, own
    if dual_value > inner.lowest and not is_dual_proven():
        dual_value = -np.inf
    other = None
    for weights in (None, (features, returned)) if repairs else (None,):
        if whole_model is None or objective - dual_value <= engine.enough:
            break
        end = until.for_the_end() if weights is None else until
        model, predictions = whole_model(), np.array(engine.predictions)
        point, value = certificate.scaled_dual_point(inner, predictions, model, objective, weights, end)
        if value > dual_value:
            value = certificate.dual_value(inner, point, model, objective, (coef, inner_intercept))
        if value > dual_value:
            other, dual_value = point, value
    if not certificate.is_believed(dual_value, objective, inner.lowest, engine.f_null):
        other, dual_value = np.zeros(inner.n_samples), inner.lowest
    gap = max(objective - dual_value, 0.0) if np.isfinite(objective) else np.inf
    value = scaling.value_out(objective)
    loss, is_proven = value - scaling.value_out(penalty), gap <= engine.enough
    found = Point(features, values, intercept, value, loss, scaling.value_out(gap), is_proven, None)
    return Guarded(found, other, inner_intercept)
