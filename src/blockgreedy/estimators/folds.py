"""Cross-validation on one matrix: a fold is a set of row weights, so no fold has a copy of X.

Folds run side by side in Python threads; the core works without the interpreter's lock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.estimators.scoring import Score
from blockgreedy.problem.passes import combine_some_columns, core_matrix
from blockgreedy.problem.problem import Problem
from blockgreedy.solvers.path import solve_path
from blockgreedy.solvers.polish import is_small
from blockgreedy.solvers.solution_path import PathPoint
from blockgreedy.solvers.solve import solve

Array = NDArray[np.float64]
Advance = Callable[[], bool]  # counts a solved model; True: stop here

_FINE = 1e-8  # on small data: so that equal fits choose equal alphas


@dataclass(frozen=True)
class Fold:
    """Rows to learn from, by their weights, and rows to predict."""

    weights: Array  # 0 for rows that are held out
    held_out: NDArray[np.intp]
    score_weights: Array  # of the rows held out

    @property
    def total(self) -> float:
        return float(np.sum(self.score_weights))


def make_folds(splits: Iterator[tuple[Any, Any]], n_samples: int, weights: Array | None) -> list[Fold]:
    folds = []
    ones = np.ones(n_samples) if weights is None else weights
    for train, test in splits:
        held_out = np.arange(n_samples)[test]
        counts = np.bincount(np.arange(n_samples)[train], minlength=n_samples)
        fold = Fold(counts * ones, held_out[ones[held_out] > 0], ones[held_out][ones[held_out] > 0])
        if not np.any(fold.weights) or not len(fold.held_out):
            raise ValueError("cv leaves a fold without rows of positive weight to learn from or to predict")
        folds.append(fold)
    if not folds:
        raise ValueError("cv gives no folds")
    return folds


def run_folds(tasks: Sequence[Callable[[Advance], None]], n_jobs: int, count: Callable[[], None]) -> bool:
    """Runs every task(advance) in one of n_jobs threads; advance() counts a model and says whether to stop.

    True: Ctrl-C was pressed. It reaches the main thread only, which waits here; the tasks hear of it at their next
    model, and what they have found until then stays.
    """
    stop, lock, interrupted = threading.Event(), threading.Lock(), False

    def advance() -> bool:
        with lock:
            count()
        return stop.is_set()

    with ThreadPoolExecutor(n_jobs) as pool:
        futures = [pool.submit(task, advance) for task in tasks]
        try:
            wait(futures, return_when="FIRST_EXCEPTION")
        except KeyboardInterrupt:
            interrupted = True
        finally:
            stop.set()
            for future in futures:
                future.cancel()
    for future in futures:
        if not future.cancelled():
            future.result()  # raises what the task raised
    return interrupted


@dataclass(frozen=True)
class Judge:
    """What held-out predictions are compared with, and how."""

    y: NDArray[Any]
    offsets: Sequence[Array | None]  # of each model
    score: Score

    def score_of(self, matrix: Any, fold: Fold, models: Sequence[PathPoint]) -> float:
        return self.score(self.decision_of(matrix, fold, models), self.y[fold.held_out], fold.score_weights)

    def decision_of(self, matrix: Any, fold: Fold, models: Sequence[PathPoint]) -> Array:
        """Of the rows held out, a column for each model."""
        decision = np.empty((len(fold.held_out), len(models)))
        for k, (model, offset) in enumerate(zip(models, self.offsets, strict=True)):
            decision[:, k] = combine_some_columns(matrix, model.features, model.values)[fold.held_out]
            decision[:, k] += model.intercept
            if offset is not None:
                decision[:, k] += offset[fold.held_out]
        return decision


class FoldPath:
    """One fold's models (one, or one for each class) along the alphas, and their scores; nan where not reached."""

    def __init__(
        self,
        make_problems: Callable[[Fold], Sequence[Problem]],
        fold: Fold,
        alphas: Array,
        l1_ratio: float,
        judge: Judge,
        *,
        max_seconds: float | None,
        **limits: Any,
    ) -> None:
        self.make_problems, self.fold, self.alphas, self.l1_ratio = make_problems, fold, alphas, l1_ratio
        self.judge, self.max_seconds, self.limits = judge, max_seconds, limits
        self.scores, self.nonzeros, self.gaps = (np.full(len(alphas), np.nan) for _ in range(3))
        self.statuses: list[str] = []
        self.models: list[list[PathPoint]] = []  # at each alpha that was reached
        self.seconds = 0.0

    def solve(self, tol: float, advance: Advance) -> None:
        """All alphas, the largest first."""
        problems = self.make_problems(self.fold)
        fine = min(tol, _FINE) if is_small(problems[0]) else tol

        def see(point: PathPoint) -> bool:
            if (
                len(problems) == 1
            ):  # a score can be told at once, for whoever waits; several models are scored together
                self.models.append([point])
                self._measure(len(self.models) - 1, problems)
            return advance()

        paths = [
            solve_path(
                problem, self.alphas, l1_ratio=self.l1_ratio, tol=fine, callback=see, max_seconds=self.max_seconds,
                **self.limits,
            )
            for problem in problems
        ]  # fmt: skip
        self.seconds = max(path.seconds for path in paths)
        if len(problems) > 1:
            self.models = [list(models) for models in zip(*(path.points for path in paths), strict=False)]
            for i in range(len(self.models)):
                self._measure(i, problems)
        for problem, path in zip(problems, paths, strict=True):  # small data are held to more than was asked for
            enough = tol * problem.null_model.objective
            self.statuses += ["converged" if point.gap <= enough else point.status for point in path.points]

    def solve_again(self, at: Sequence[tuple[int, float]], finest: float, advance: Advance) -> None:
        """Some alphas, each to a tol of its own from where it stands, while there is time.

        Gaps shrink to a tenth at least, unless that is below ``finest``: else nothing would be learnt.
        """
        problems = self.make_problems(self.fold)
        for i, tol in at:
            self.models[i] = [
                self._better(problem, model, tol, finest)
                for problem, model in zip(problems, self.models[i], strict=True)
            ]
            self._measure(i, problems)
            if advance():
                break

    def predict_held_out(self, i: int, X: Any) -> Array:
        """Decision values of the rows held out, by the models at ``alphas[i]``."""
        return self.judge.decision_of(core_matrix(X), self.fold, self.models[i])

    def _better(self, problem: Problem, model: PathPoint, tol: float, finest: float) -> PathPoint:
        scale = problem.null_model.objective
        tol = max(finest, min(tol, 0.1 * model.gap / scale)) if scale > 0 else tol
        left = None if self.max_seconds is None else self.max_seconds - self.seconds
        if left is not None and left <= 0:
            return model
        began = time.perf_counter()
        coef = np.zeros(problem.n_features)
        coef[model.features] = model.values
        start: dict[str, Any] = {"coef_init": coef}
        if problem.fit_intercept:
            start["intercept_init"] = model.intercept
        here = problem.with_alpha(model.alpha * self.l1_ratio, model.alpha * (1 - self.l1_ratio))
        solution = solve(here, tol=tol, max_seconds=left, **start, **self.limits)
        self.seconds += time.perf_counter() - began
        features = np.flatnonzero(solution.coef).astype(np.int32)
        return replace(
            model, features=features, values=solution.coef[features], intercept=solution.intercept,
            objective=solution.objective, gap=solution.gap,
        )  # fmt: skip

    def _measure(self, i: int, problems: Sequence[Problem]) -> None:
        models = self.models[i]
        self.scores[i] = self.judge.score_of(core_matrix(problems[0].X), self.fold, models)
        self.nonzeros[i] = sum(len(model.values) for model in models)
        scales = [problem.null_model.objective for problem in problems]
        self.gaps[i] = sum(model.gap / scale for model, scale in zip(models, scales, strict=True) if scale > 0)
