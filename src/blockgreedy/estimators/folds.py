"""Cross-validation on one matrix: a fold is a set of row weights, so no fold has a copy of X.

Folds run side by side in Python threads; the core works without the interpreter's lock.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context, get_config
from sklearn.utils.validation import _check_method_params

from blockgreedy.base.cached import cached_property
from blockgreedy.base.deadline import Deadline
from blockgreedy.estimators.scoring import Score
from blockgreedy.problem.null_model import null_so_far
from blockgreedy.problem.passes import combine_some_columns, core_matrix
from blockgreedy.problem.problem import Problem
from blockgreedy.solvers.fold_engine import FoldEngine
from blockgreedy.solvers.polish import is_small
from blockgreedy.solvers.solution_path import PathPoint
from blockgreedy.solvers.walk import Walk
from blockgreedy.solvers.working_set import WorkingSetEngine

Array = NDArray[np.float64]
Advance = Callable[[], bool]  # counts a solved model; True: stop here

# Seconds between looks for Ctrl-C. The system may hand the signal to any thread, and a main thread that just waits
# would hear of it when all is done.
_LISTENING = 0.1
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


def make_folds(
    splits: Iterator[tuple[Any, Any]], n_samples: int, weights: Array | None, weights_in_scores: bool = True
) -> list[Fold]:
    folds = []
    ones = np.ones(n_samples) if weights is None else weights
    of_scores = ones if weights_in_scores else np.ones(n_samples)
    for train, test in splits:
        held_out = np.arange(n_samples)[test]
        held_out = held_out[of_scores[held_out] > 0]
        counts = np.bincount(np.arange(n_samples)[train], minlength=n_samples)
        fold = Fold(counts * ones, held_out, of_scores[held_out])
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

    config = get_config()  # scikit-learn's, which scorers look at: each thread has one of its own

    def run(task: Callable[[Advance], None]) -> None:
        with config_context(**config):
            task(advance)

    with ThreadPoolExecutor(n_jobs) as pool:
        futures = [pool.submit(run, task) for task in tasks]
        try:
            is_over = False
            while not is_over:
                done, others = wait(futures, _LISTENING, "FIRST_EXCEPTION")
                is_over = not others or any(future.exception() for future in done)
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


class Effort(NamedTuple):
    """How exactly an alpha is solved again."""

    tol: float
    finest_step: float = 0.0  # of FoldEngine


@dataclass(frozen=True)
class Judge:
    """What held-out predictions are compared with, and how."""

    y: NDArray[Any]
    offsets: Sequence[Array | None]  # of each model
    score: Score
    params: dict[str, Any] = field(default_factory=dict)  # what else the scorer asked for, by row

    def score_of(
        self, fold: Fold, problem: Problem, models: Sequence[PathPoint], l1_ratio: float, told: Array | None
    ) -> float:
        """Of the models of one fold at one alpha. ``told``: predictions of all rows, if they are known."""
        decision = (
            self.decision_of(core_matrix(problem.X), fold, models) if told is None else told[fold.held_out, None]
        )
        return self.score(decision, self.y[fold.held_out], fold.score_weights, **self.params_of(fold))

    def params_of(self, fold: Fold) -> dict[str, Any]:
        """A value for each row is cut to the rows held out, anything else goes as it is."""
        return dict(_check_method_params(self.y, self.params, indices=fold.held_out)) if self.params else {}

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

    @cached_property
    def problems(self) -> Sequence[Problem]:
        """One for each model, without the rows held out."""
        return self.make_problems(self.fold)

    def solve(self, tol: float, advance: Advance) -> None:
        """All alphas, the largest first."""
        problems = self.problems
        small = is_small(problems[0])
        make = WorkingSetEngine if small else FoldEngine
        paths = []
        for problem in problems:
            found: list[PathPoint] = []

            def see(point: PathPoint, predictions: Array | None, found: list[PathPoint] = found) -> bool:
                self.take(point, predictions, found)
                return advance()

            walked = self._walk(problem, self.alphas, min(tol, _FINE) if small else tol, see, make=make)
            if not walked:  # its predictions are not to be trusted
                found.clear()
                self.models.clear()
                self._walk(problem, self.alphas, tol, see, make=WorkingSetEngine)
            paths.append(found)
        self.assemble(paths)
        self.conclude(tol)

    def take(self, point: PathPoint, predictions: Array | None, found: list[PathPoint]) -> None:
        """The next point of a problem's path, and its predictions of all rows if they are known.

        Of a single model the score is told at once, for whoever waits; several models score together.
        """
        found.append(point)
        if len(self.problems) == 1:
            self.models.append([point])
            self._measure(len(self.models) - 1, self.problems, predictions)

    def forget(self) -> None:
        """Takes back all points."""
        self.models.clear()
        self.statuses.clear()
        for known in (self.scores, self.nonzeros, self.gaps):
            known.fill(np.nan)

    def assemble(self, paths: Sequence[Sequence[PathPoint]]) -> None:
        """The paths of all problems are walked: several models score together."""
        if len(self.problems) > 1:
            self.models = [list(models) for models in zip(*paths, strict=False)]
            for i in range(len(self.models)):
                self._measure(i, self.problems)

    def conclude(self, tol: float) -> None:
        """Takes note of what became of each model; small data are held to more than was asked for."""
        small = is_small(self.problems[0])
        for models in self.models:
            for problem, point in zip(self.problems, models, strict=True):
                null = null_so_far(problem)
                is_enough = point.gap <= null.tol(tol) * null.objective
                is_enough = is_enough and (small or point.status != "max_iter")  # its score may be far off
                self.statuses.append("converged" if is_enough else point.status)

    def solve_again(self, at: Sequence[tuple[int, Effort]], advance: Advance) -> None:
        """Some alphas, each with an effort of its own from where it stands, while there is time."""
        problems = self.problems
        for effort in sorted({effort for _, effort in at}, reverse=True):
            indices = sorted(i for i, own in at if own == effort)
            better = [self._better(k, problem, indices, effort, advance) for k, problem in enumerate(problems)]
            for i, *models in zip(indices, *better, strict=False):
                self.replace(i, models)

    def replace(self, i: int, models: list[PathPoint]) -> None:
        """Better models at an alpha."""
        self.models[i] = models
        self._measure(i, self.problems)

    def predict_held_out(self, i: int, X: Any) -> Array:
        """Decision values of the rows held out, by the models at ``alphas[i]``."""
        return self.judge.decision_of(core_matrix(X), self.fold, self.models[i])

    def _better(
        self, k: int, problem: Problem, indices: list[int], effort: Effort, advance: Advance
    ) -> list[PathPoint]:
        """The k-th models at these alphas; fewer where time was up."""
        old = [self.models[i][k] for i in indices]
        if self.max_seconds is not None and self.seconds >= self.max_seconds:
            return old
        found: list[PathPoint] = []
        coef = np.zeros(problem.n_features)
        coef[old[0].features] = old[0].values

        def see(point: PathPoint, predictions: Array | None) -> bool:
            worse = point.status in ("interrupted", "max_seconds")
            found.append(old[len(found)] if worse else point)
            return advance() or worse

        self._walk(
            problem, self.alphas[indices], effort.tol, see, make=partial(FoldEngine, finest_step=effort.finest_step),
            start=(coef, old[0].intercept),
        )  # fmt: skip
        return found

    def _walk(
        self,
        problem: Problem,
        alphas: Array,
        tol: float,
        see: Callable[[PathPoint, Array | None], bool],
        *,
        make: Callable[..., WorkingSetEngine],
        start: tuple[Array, float] | None = None,
    ) -> bool:
        """Calls see(model, its predictions of all rows if they are known) at each alpha, until it returns True.

        False if the predictions turn out to have lost touch with the weights.
        """
        began = time.perf_counter()
        left = math.inf if self.max_seconds is None else self.max_seconds - self.seconds
        walk = Walk(
            problem, alphas, self.l1_ratio, make, tol=tol,
            deadline=Deadline(left, began), start=start, **self.limits,
        )  # fmt: skip
        engine = walk.engine
        for alpha in alphas:
            point = walk.to(float(alpha))
            told = None
            if isinstance(engine, FoldEngine) and engine.scaling.is_identity and problem.offset is None:
                told = engine.predictions
            if see(point, told) or point.status in ("interrupted", "max_seconds") or walk.is_late:
                break
        self.seconds += time.perf_counter() - began
        return not (isinstance(engine, FoldEngine) and engine.has_drifted())

    def _measure(self, i: int, problems: Sequence[Problem], predictions: Array | None = None) -> None:
        models = self.models[i]
        self.scores[i] = self.judge.score_of(self.fold, problems[0], models, self.l1_ratio, predictions)
        self.nonzeros[i] = sum(len(model.values) for model in models)
        scales = [null_so_far(problem).objective for problem in problems]
        self.gaps[i] = sum(model.gap / scale for model, scale in zip(models, scales, strict=True) if scale > 0)
