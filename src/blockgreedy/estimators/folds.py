"""Cross-validation on one matrix: a fold is a set of row weights, so no fold has a copy of X.

Folds run side by side in Python threads; the core works without the interpreter's lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.cpu import combine_some_columns, core_matrix
from blockgreedy.estimators.progress import Progress
from blockgreedy.estimators.scoring import Score
from blockgreedy.path import solve_path
from blockgreedy.polish import is_small
from blockgreedy.problem import Problem

Array = NDArray[np.float64]

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


@dataclass
class Scores:
    """Of one fold along the alphas; nan where the path did not get to."""

    values: Array
    nonzeros: Array
    statuses: list[str]


class Stopped(Exception):
    """Ctrl-C was pressed while folds were running."""


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


def run_folds(
    tasks: Sequence[Callable[[Callable[[], bool]], Scores]],
    n_jobs: int,
    progress: Progress | None,
    n_points: int,
) -> list[Scores]:
    """Runs every task(advance) in one of n_jobs threads; advance() counts a point and says whether to stop.

    Ctrl-C reaches the main thread only, which waits here: the tasks hear of it at their next point.
    """
    stop, lock, done = threading.Event(), threading.Lock(), 0

    def advance() -> bool:
        nonlocal done
        with lock:
            done += 1
            if progress is not None:
                progress.show(f"{done} of {n_points * len(tasks)} points in {len(tasks)} folds")
        return stop.is_set()

    with ThreadPoolExecutor(n_jobs) as pool:
        futures = [pool.submit(task, advance) for task in tasks]
        try:
            wait(futures, return_when="FIRST_EXCEPTION")
        except KeyboardInterrupt:
            stop.set()
            for future in futures:
                future.cancel()
            raise Stopped from None
        finally:
            stop.set()
            for future in futures:
                future.cancel()
    return [future.result() for future in futures]


def score_along(
    problems: Sequence[Problem],
    alphas: Array,
    l1_ratio: float,
    fold: Fold,
    y: NDArray[Any],
    offsets: Sequence[Array | None],
    score: Score,
    advance: Callable[[], bool],
    *,
    tol: float,
    **options: Any,
) -> Scores:
    """The scores of a fold's models (one, or one for each class) at every alpha."""
    fine = min(tol, _FINE) if is_small(problems[0]) else tol
    paths = [
        solve_path(problem, alphas, l1_ratio=l1_ratio, tol=fine, callback=lambda _: advance(), **options).points
        for problem in problems
    ]
    n_points = min(len(points) for points in paths)
    scores = Scores(np.full(len(alphas), np.nan), np.full(len(alphas), np.nan), [])
    matrix = core_matrix(problems[0].X)
    decision = np.empty((len(fold.held_out), len(problems)))
    for i in range(n_points):
        for k, points in enumerate(paths):
            point = points[i]
            decision[:, k] = combine_some_columns(matrix, point.features, point.values)[fold.held_out]
            decision[:, k] += point.intercept
            offset = offsets[k]
            if offset is not None:
                decision[:, k] += offset[fold.held_out]
        scores.values[i] = score(decision, y[fold.held_out], fold.score_weights)
        scores.nonzeros[i] = sum(len(points[i].values) for points in paths)
    for problem, points in zip(problems, paths, strict=True):  # small data are held to more than was asked for
        enough = tol * problem.null_model.objective
        scores.statuses += ["converged" if point.gap <= enough else point.status for point in points]
    return scores
