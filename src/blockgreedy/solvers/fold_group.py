"""Folds of a cross-validation on one sparse matrix, down the alphas side by side.

One pass over the columns serves all folds: the core keeps what differs between them side by side, so that eight cost
little more than one (cpp/folds). What comes out is good enough for scores and proves nothing; as with ``FoldEngine``
the gaps say which scores must be known better.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.cpu import fold_paths
from blockgreedy.base.deadline import Deadline
from blockgreedy.problem.core_problem import CoreProblem
from blockgreedy.solvers.score_error import HeldOut, ScoreError
from blockgreedy.solvers.solution_path import PathPoint

if TYPE_CHECKING:
    from blockgreedy.base.names import Status
    from blockgreedy.problem.problem import Problem

Array = NDArray[np.float64]

MOST = 8  # problems of a group: n_lanes of cpp/folds/lanes.hpp
# Decreases of this part of the objective are negligible in the first step at an alpha; then of a smaller one.
_NEGLIGIBLE, _FINER = 1e-6, 0.1
_FINEST = 1e-10  # beyond that decreases are rounding
# Steps at an alpha, and at one that is solved again: usually one to six, and three to six.
_MOST_STEPS = _MOST_AGAIN = 30
# Entries of X for each row: the vectors over rows then take about as much memory as X, not many times that.
_LEAST_PER_ROW = 32
# With fewer rows single folds are as fast: on Dorothea (1,150 rows), where the squared loss keeps products of
# columns, a group took 1.5 times as long.
_LEAST_ROWS = 5000
_DRIFT = 1e-7  # of the objectives: float32 steps add up to less, and scores need no more


def may_group(problems: Sequence[Problem]) -> bool:
    """Whether these problems, a fold each, can be solved side by side, with profit."""
    design = problems[0].design
    return (
        len(problems) > 1
        and design.is_sparse
        and not has_few_rows(problems[0])
        and design.size >= _LEAST_PER_ROW * design.shape[0]
        and all(_is_usual(problem) for problem in problems)
    )


def has_few_rows(problem: Problem) -> bool:
    """Whether folds are better solved by themselves."""
    return problem.design.shape[0] < _LEAST_ROWS


def _is_usual(problem: Problem) -> bool:
    """In its own units, without an offset, something to explain, and no bounds.

    With bounds as many weights as rows may be free at small alphas, where float32 converges slowly.
    """
    is_free = np.all(np.isneginf(problem.lower)) and np.all(np.isposinf(problem.upper))
    return (
        bool(is_free) and problem.scaling.is_identity and problem.offset is None and problem.null_model.objective > 0
    )


class FoldGroup:
    """At most ``MOST`` problems that differ in their row weights, at descending alphas.

    Rows without weight are those held out; a problem that has none just comes along.
    """

    def __init__(
        self, problems: Sequence[Problem], alphas: Array, ratio: float, *, n_threads: int, deadline: Deadline
    ) -> None:
        """``ratio``: as l1_ratio of ``solve_path``."""
        self._alphas, self._ratio, self._deadline = alphas, ratio, deadline
        self._problems = [p.with_alpha(ratio * alphas[0], self._l2(p, alphas[0])) for p in problems]
        nulls = [p.fit_null_model(deadline, n_threads) for p in self._problems]
        self._coefs = [null.full_coef(problem.n_features) for null, problem in zip(nulls, problems, strict=True)]
        features = [np.flatnonzero(coef).astype(np.int32) for coef in self._coefs]
        self._models = [CoreProblem(problem, n_threads) for problem in self._problems]
        self.core = fold_paths(self._models, [null.objective for null in nulls])
        for k, null in enumerate(nulls):
            self.core.start(k, self._coefs[k], features[k], null.intercept)
        self._nulls = [null.objective for null in nulls]
        self._held_out = [HeldOut(problem) for problem in self._problems]
        scored = [k for k, fold in enumerate(self._held_out) if len(fold.rows)]
        self._scored = scored or list(range(len(problems)))
        self._error = ScoreError()

    @property
    def out_of_range(self) -> bool:
        """Whether X has columns too large or too small for float32, and nothing can be done here."""
        return self.core.out_of_range

    def to(self, i: int) -> list[PathPoint]:
        """The points at ``alphas[i]``, after those at ``alphas[i − 1]``; "max_iter": scores may be far off."""
        began, before = time.perf_counter(), self.core.n_steps
        alpha, coming = float(self._alphas[i]), float(self._alphas[min(i + 1, len(self._alphas) - 1)])
        l2 = self._l2(self._problems[0], alpha)
        interrupted = self.core.move_to(self._ratio * alpha, l2, self._ratio * coming) or self._step_for_scores(alpha)
        is_late = self._deadline.has_passed()
        status: Status = "converged" if self._error.is_small else "max_iter"
        status = "interrupted" if interrupted else "max_seconds" if is_late else status
        n_steps, seconds = self.core.n_steps - before, (time.perf_counter() - began) / len(self._coefs)
        return [self._point(k, alpha, status, n_steps, seconds) for k in range(len(self._coefs))]

    def again(self, i: int, points: Sequence[PathPoint], tol: float, finest_step: float) -> list[PathPoint]:
        """The points at ``alphas[i]``, from these, known better; there is no way down from there.

        Steps are taken until one gains no more than ``finest_step`` of the null model's objective. A point whose
        status is not "converged" did not get so far.
        """
        began, before, alpha = time.perf_counter(), self.core.n_steps, float(self._alphas[i])
        for k, (coef, point) in enumerate(zip(self._coefs, points, strict=True)):
            coef[self.core.support(k)] = 0.0
            coef[point.features] = point.values
            self.core.start(k, coef, point.features, point.intercept)
        interrupted = self.core.return_to(self._ratio * alpha, self._l2(self._problems[0], alpha))
        gained, is_late = np.inf, False
        while gained > finest_step and self.core.n_steps < before + _MOST_AGAIN and not (interrupted or is_late):
            gained, interrupted = self.core.step(0.1 * finest_step, self._deadline.seconds_left())
            is_late = self._deadline.has_passed()
        seconds = (time.perf_counter() - began) / len(points)
        found = []
        for k, null in enumerate(self._nulls):
            is_enough = gained <= finest_step and self.core.gap(k) <= tol * null
            status: Status = (
                "interrupted"
                if interrupted
                else "converged"
                if is_enough
                else "max_seconds"
                if is_late
                else "max_iter"
            )
            found.append(self._point(k, alpha, status, self.core.n_steps - before, seconds))
        return found

    def _step_for_scores(self, alpha: float) -> bool:
        """Until scores are near those of exact models, or that takes too long; true on Ctrl-C."""
        self._error.begin(alpha)
        share = _NEGLIGIBLE
        for _ in range(_MOST_STEPS):
            _, interrupted = self.core.step(share, self._deadline.seconds_left())
            if interrupted:
                return True
            self._look_at_scores()
            if self._error.is_small or self._deadline.has_passed():
                break
            share = max(_FINER * share, _FINEST)
        return False

    def _look_at_scores(self) -> None:
        nulls = np.array([self._nulls[k] for k in self._scored])
        losses = np.array([self._held_out[k].mean_loss(self.predictions(k)) for k in self._scored])
        self._error.see(losses / nulls, np.array([self.core.gap(k) for k in self._scored]) / nulls)

    def _point(self, k: int, alpha: float, status: Status, n_iter: int, seconds: float) -> PathPoint:
        features, objective = self.core.support(k), self.core.objective(k)
        return PathPoint(
            alpha, features, self._coefs[k][features], self.core.intercept(k), objective, self.core.gap(k),
            objective - self.core.penalty(k), n_iter, seconds, status, None,
        )  # fmt: skip

    def _l2(self, problem: Problem, alpha: float) -> float:
        return problem.l2 if self._ratio == 1 else alpha * (1 - self._ratio)

    def predictions(self, k: int) -> Array:
        """Of all rows by the k-th fold."""
        return np.asarray(self.core.predictions(k))

    def has_drifted(self) -> bool:
        """Whether predictions have lost touch with the weights, in any fold."""
        return any(self.core.drift(k) > _DRIFT for k in range(len(self._coefs)))
