"""The null model's weights: unpenalised features, fitted by the default solver to the last digit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.cpu import working_set
from blockgreedy.backends.engine import Ended, EngineBase
from blockgreedy.base.deadline import NEVER, Deadline
from blockgreedy.problem.core_problem import CoreProblem
from blockgreedy.problem.losses import FAR
from blockgreedy.problem.null_model import OutOfRangeError, loss_at_zero
from blockgreedy.solvers.polish import polish
from blockgreedy.solvers.run import Limits, run

if TYPE_CHECKING:
    from blockgreedy.base.names import Status
    from blockgreedy.problem.problem import Problem

Array = NDArray[np.float64]

_SEPARABLE = 1e-3  # a classifier's loss below this part of its value at 0 may have its minimum at infinity
_MOST_ITERATIONS = 300


def fit_unpenalised(
    problem: Problem, intercept: float, value: float, deadline: Deadline, n_threads: int
) -> tuple[Array, float, Status]:
    """(weights, intercept, status) of the minimum over all features of this problem, none of them penalised by alpha.

    ``value`` is the objective at the start, this intercept alone. To the last digit where that is to be had, since
    alpha_max is a gradient there.
    """
    engine = _Engine(problem, intercept, value, n_threads, deadline)
    status = run(engine, engine.start, Limits(_MOST_ITERATIONS, deadline))
    if engine.far is not None:
        return *engine.far, "converged"
    w, b = engine.w, engine.core.intercept
    if status in ("max_seconds", "interrupted"):
        return w, b, status
    w, b = polish(problem, w, b, deadline) or (w, b)
    return w, b, "max_seconds" if deadline.has_passed() else "converged"


class _Engine(EngineBase):
    """The default solver on the features alone, until a gap of 0 or until no step lowers the objective."""

    def __init__(
        self, problem: Problem, intercept: float, value: float, n_threads: int, deadline: Deadline = NEVER
    ) -> None:
        self._deadline = deadline
        self.problem, self._intercept, self.enough = problem, intercept, 0.0
        self.core = working_set(CoreProblem(problem, n_threads), tol=0.0, f_null=value)
        separable = problem.loss.is_classifier and problem.l2 == 0
        self._separable = _SEPARABLE * loss_at_zero(problem) if separable else 0.0
        self.w = np.zeros(problem.n_features)
        self.far: tuple[Array, float] | None = None  # where the loss is down to rounding: there is no minimum

    @property
    def n_iter(self) -> int:
        return self.core.n_iter

    @property
    def gap(self) -> float:
        return self.core.objective - self.core.dual_value

    def start(self) -> bool:
        interrupted = self.core.start(self.w, self._intercept, self._deadline.seconds_left())
        if self.core.out_of_range:
            raise OutOfRangeError
        return interrupted

    def step(self, n_iter: int, seconds: float) -> Ended:
        if self.core.objective <= self._separable:
            self.far = _towards_infinity(self.problem, self.w, self.core.intercept)
        if self.far is not None:
            return "stalled"
        improved, interrupted = self.core.step(self._deadline.seconds_left())
        return "interrupted" if interrupted else "" if improved else "stalled"


def _towards_infinity(problem: Problem, w: Array, b: float) -> tuple[Array, float] | None:
    """A multiple of this point at which the loss is down to rounding, if it separates the classes and has no bounds.

    There is no minimum then, and steps towards it would become ever smaller.
    """
    offset = np.zeros(problem.n_samples) if problem.offset is None else problem.y * problem.offset
    margins = problem.y * problem.decision(w, b) - offset
    if problem.row_weights is not None:
        used = problem.row_weights > 0
        margins, offset = margins[used], offset[used]
    if not np.min(margins) > 0:
        return None
    factor = max(1.0, float(np.max((FAR - offset) / margins)))
    if np.any(factor * w < problem.lower) or np.any(factor * w > problem.upper):
        return None
    return factor * w, factor * b
