"""Where a run starts, if its caller says so."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blockgreedy.base.validate import number, shown
from blockgreedy.problem.arguments import point
from blockgreedy.problem.problem import Problem


def given_start(
    problem: Problem, coef_init: ArrayLike | None, intercept_init: float | None
) -> tuple[NDArray[np.float64], float] | None:
    """Weights and intercept; None where none are given."""
    if coef_init is None:
        if intercept_init is not None:
            raise ValueError(f"intercept_init={shown(intercept_init)} needs coef_init=…, which is not given")
        return None
    return _weights(coef_init, problem), _intercept(intercept_init, problem)


def _intercept(intercept_init: float | None, problem: Problem) -> float:
    if intercept_init is None:
        return 0.0
    value = number("intercept_init", intercept_init)
    if not np.isfinite(value) or (value != 0 and not problem.fit_intercept):
        raise ValueError(f"intercept_init={shown(intercept_init)} must be finite, and 0 without fit_intercept=True")
    return value


def _weights(coef_init: ArrayLike, problem: Problem) -> NDArray[np.float64]:
    w = point("coef_init", coef_init, problem.n_features).copy()
    if not np.all(np.isfinite(w)) or not np.isfinite(problem.penalty.value(w)):
        raise ValueError("coef_init must be finite and inside lower ≤ w ≤ upper (0 for excluded features)")
    return w
