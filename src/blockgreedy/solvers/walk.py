"""A walk down the alphas of a path: one engine, whose weights at an alpha start the next."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from blockgreedy.problem.null_model import UNFINISHED
from blockgreedy.problem.problem import Problem
from blockgreedy.solvers.run import Limits, final_status, run
from blockgreedy.solvers.solution_path import PathPoint
from blockgreedy.solvers.working_set import MAX_ITER

if TYPE_CHECKING:
    from blockgreedy.backends.engine import Engine
    from blockgreedy.base.deadline import Deadline
    from blockgreedy.problem.null_model import NullModel

Array = NDArray[np.float64]

# The last alpha's weights often keep tol at the next one. A step makes them far better, which the alphas to come
# start from; only what is this much better than asked for does without.
_SURE = 1e-3


class Walk:
    """Predictions, gradients, norms and what is known of the columns stay in the engine between alphas."""

    def __init__(
        self,
        problem: Problem,
        alphas: Array,
        ratio: float,
        make: Callable[..., Engine],
        *,
        tol: float,
        max_iter: int | None,
        deadline: Deadline,
        n_threads: int,
        start: tuple[Array, float] | None = None,
    ) -> None:
        """``alphas`` descend; those that ``to`` will be asked for are among them. ``start``: weights and intercept.

        ``ratio``: the share of the L1 norm, as l1_ratio of ``solve_path``.
        """
        self._problem, self._ratio = problem, ratio
        self._first = self._at(alphas[0])
        self.null = self._first.fit_null_model(deadline, n_threads)
        out_of_time = "" if self.null.status == "converged" else self.null.status
        if out_of_time:
            problem.__dict__[UNFINISHED] = self.null  # its scale, for whoever judges the points
        most = MAX_ITER if max_iter is None else int(max_iter)
        self._limits = Limits(most, deadline, sure=_SURE, ended=out_of_time)
        self.engine = make(
            self._first,
            tol=tol,
            n_threads=n_threads,
            null=self._scale(alphas[-1], deadline, n_threads),
            start=start,
            least_alpha=ratio * alphas[-1],
            deadline=deadline,
        )
        self._has_begun = False

    def _scale(self, least: float, deadline: Deadline, n_threads: int) -> NullModel:
        """The null model with the least objective of all alphas, which ``tol`` is a part of.

        Where l2 falls with alpha and unpenalised weights are held by it, that is the null model of the last one.
        """
        if self._ratio == 1 or not self._problem.has_unpenalised:
            return self.null
        last = self._at(least).fit_null_model(deadline, n_threads)
        if last.status != "converged" or last.objective >= self.null.objective:
            return self.null
        return self.null.restated(objective=last.objective, floor=min(self.null.floor, last.floor))

    @property
    def null_loss(self) -> float:
        """The mean loss of the null model."""
        return self.null.objective - self._first.penalty_at(self.null.features).value(self.null.coef)

    @property
    def is_late(self) -> bool:
        return self._limits.deadline.has_passed()

    def to(self, alpha: float, keep_dual: bool = False) -> PathPoint:
        """The solution at an alpha, from that at the alpha before, or from the start."""
        began, before, engine = time.perf_counter(), self.engine.n_iter, self.engine
        here = self._at(alpha) if self._has_begun else self._first
        status = run(engine, (lambda: engine.move_to(here)) if self._has_begun else engine.start, self._limits)
        self._has_begun = True
        found = engine.point(status, keep_dual)
        status = final_status(status, found, self._limits.deadline)
        return PathPoint(
            float(alpha), found.features, found.values, found.intercept, found.objective, found.gap, found.loss,
            engine.n_iter - before, time.perf_counter() - began, status, found.dual,
        )  # fmt: skip

    def _at(self, alpha: float) -> Problem:
        ratio = self._ratio
        return self._problem.with_alpha(alpha * ratio, None if ratio == 1 else alpha * (1 - ratio))
