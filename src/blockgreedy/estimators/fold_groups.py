"""Folds that are solved side by side: which of them, and how the points of a group become those of its folds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from blockgreedy.base.deadline import Deadline
from blockgreedy.estimators.folds import Advance, Effort, Fold, FoldPath
from blockgreedy.problem.problem import Problem
from blockgreedy.solvers.fold_group import MOST, FoldGroup, may_group
from blockgreedy.solvers.polish import is_small
from blockgreedy.solvers.solution_path import PathPoint

Array = NDArray[np.float64]
Starts = list[tuple[Array, float]]  # weights and intercept of each model

# Gaps of a group are of first order, thousands of times what is left to gain (measured); beyond this part of the null
# model's objective something has gone wrong.
_MOST_GAP = 1.0
# Where the choice depends on an alpha, a group steps on until a step gains no more than this part of the null model's
# objective: one to three steps of all folds. Single folds, which remember curvatures, are better at more.
FIRST_STEP = 5e-7
_LEAST_TOL = 1e-3  # the folds of a group work in float32, and prove nothing


def grouped(paths: Sequence[FoldPath], n_ratios: int, tol: float) -> list[list[FoldPath]]:
    """The paths in groups that can be solved together: the folds of one l1_ratio; or each by itself."""
    n_folds = len(paths) // n_ratios
    models = zip(*(path.problems for path in paths[:n_folds]), strict=True)
    is_usual = tol >= _LEAST_TOL and paths[0].limits["max_iter"] is None and not is_small(paths[0].problems[0])
    if not is_usual or not all(may_group(folds) for folds in models):
        return [[path] for path in paths]
    n_groups = math.ceil(n_folds / MOST)  # of one l1_ratio
    cuts = [n_folds * k // n_groups for k in range(n_groups + 1)]
    return [
        list(paths[first + begin : first + end])
        for first in range(0, len(paths), n_folds)
        for begin, end in pairwise(cuts)
    ]


class Whole:
    """The fits of all rows, which come along with the folds: where the last fit, at the alpha chosen, can start."""

    def __init__(self, problems: Sequence[Problem], first: Fold) -> None:
        """They come along with the first fold's group."""
        self.problems, self.first = problems, first
        self.models: dict[tuple[float, float, int], PathPoint] = {}  # by alpha, l1_ratio and number

    def along_with(self, paths: Sequence[FoldPath], k: int) -> list[Problem]:
        """The k-th problem, if it comes along with these folds."""
        return [self.problems[k]] if paths[0].fold is self.first and len(paths) < MOST else []

    def take(self, points: Sequence[PathPoint], l1_ratio: float, k: int) -> None:
        for point in points:
            self.models[point.alpha, l1_ratio, k] = point

    def starts(self, alpha: float, l1_ratio: float) -> Starts | None:
        """Weights and intercept of each model; None where they are not all known."""
        keys = [(alpha, l1_ratio, k) for k in range(len(self.problems))]
        if not all(key in self.models for key in keys):
            return None
        starts = []
        for problem, key in zip(self.problems, keys, strict=True):
            coef, point = np.zeros(problem.n_features), self.models[key]
            coef[point.features] = point.values
            starts.append((coef, point.intercept))
        return starts


class Group:
    """Paths that are solved together; or one by itself."""

    def __init__(self, paths: Sequence[FoldPath], whole: Whole) -> None:
        self.paths, self.whole = paths, whole
        self._walked: list[FoldGroup] = []  # of each model, while its folds can be solved again together

    @property
    def goes_on(self) -> bool:
        """Whether its folds can take more steps together."""
        return len(self._walked) > 0

    def solve(self, tol: float, n_threads: int, advance: Advance) -> None:
        """All alphas; of a group that turns out not to be one, a path after the other."""
        paths = self.paths
        if len(paths) > 1:
            found: list[list[list[PathPoint]]] = [[] for _ in paths]  # by path and model
            models = range(len(self.whole.problems))
            if all(_walk(paths, self.whole, k, found, self._walked, n_threads, advance) for k in models):
                for path, own in zip(paths, found, strict=True):
                    path.assemble(own)
                    far = [i for i, models in enumerate(path.models) if path.gaps[i] > _MOST_GAP or _is_far(models)]
                    if far:
                        path.solve_again([(i, Effort(tol)) for i in far], advance)
                    path.conclude(tol)
                    if len(path.models) < len(path.alphas):  # however good the last points are
                        path.statuses += [point.status for point in path.models[-1]]
                return
        self._walked.clear()
        for path in paths:
            path.forget()
            path.solve(tol, advance)

    def again(self, at: Sequence[tuple[int, Effort]]) -> list[Callable[[Advance], None]]:
        """Tasks that solve some alphas again: together if a few steps are asked for, else fold by fold."""
        together = [(i, effort) for i, effort in at if self._walked and effort.finest_step >= FIRST_STEP]
        alone = [pair for pair in at if pair not in together]
        tasks: list[Callable[[Advance], None]] = [partial(self._solve_together, together)] if together else []
        return tasks + [partial(path.solve_again, alone) for path in self.paths if alone]

    def _solve_together(self, at: Sequence[tuple[int, Effort]], advance: Advance) -> None:
        for i, effort in at:
            if not self._know_better(i, effort):
                for path in self.paths:
                    path.solve_again([(i, effort)], advance)
            elif sum(advance() for _ in self.paths) > 0:  # counts them all
                return

    def _know_better(self, i: int, effort: Effort) -> bool:
        """False if steps did not lead to what the effort asks for."""
        began, ratio, n_folds = time.perf_counter(), self.paths[0].l1_ratio, len(self.paths)
        found = []
        for k, group in enumerate(self._walked):
            own = [path.models[i][k] for path in self.paths]
            if self.whole.along_with(self.paths, k):
                own.append(self.whole.models[own[0].alpha, ratio, k])
            found.append(group.again(i, own, effort.tol, effort.finest_step))
        for path in self.paths:
            path.seconds += time.perf_counter() - began
        if any(point.status != "converged" for points in found for point in points):
            return False
        for f, path in enumerate(self.paths):
            path.replace(i, [points[f] for points in found])
        for k, points in enumerate(found):
            self.whole.take(points[n_folds:], ratio, k)
        return True


def _is_far(models: Sequence[PathPoint]) -> bool:
    """Whether steps of the group did not get the scores near those of exact models."""
    return any(model.status == "max_iter" for model in models)


def _walk(
    paths: Sequence[FoldPath],
    whole: Whole,
    k: int,
    found: list[list[list[PathPoint]]],
    walked: list[FoldGroup],
    n_threads: int,
    advance: Advance,
) -> bool:
    """Down the alphas with the k-th model of each fold; False if the points are not to be trusted."""
    began, first, n_folds = time.perf_counter(), paths[0], len(paths)
    left = math.inf if first.max_seconds is None else first.max_seconds - max(path.seconds for path in paths)
    group = FoldGroup(
        [*(path.problems[k] for path in paths), *whole.along_with(paths, k)], first.alphas, first.l1_ratio,
        n_threads=n_threads, deadline=Deadline(left, began),
    )  # fmt: skip
    if group.out_of_range:
        return False
    walked.append(group)
    for own in found:
        own.append([])
    stop = False
    for i in range(len(first.alphas)):
        points = group.to(i)
        for f, path in enumerate(paths):
            path.take(points[f], group.predictions(f), found[f][k])
            stop = advance() or stop
        whole.take(points[n_folds:], first.l1_ratio, k)
        if stop or points[0].status in ("interrupted", "max_seconds"):
            break
    for path in paths:
        path.seconds += time.perf_counter() - began
    return not group.has_drifted()
