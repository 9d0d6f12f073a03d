"""The last digits of a small model: feature-sign search in float64.

The solver proves a gap; two runs that end within it agree to a few digits only. Its models are in float32, too coarse
for nearly parallel columns. On small data a dense system is cheap and settles the rest: fits that should be
the same (weights against repeated rows, another order of rows) then are, and a solve that float32 stops goes on.

Newton's method on the features that are in the model, with their signs held (Lee, Battle, Raina and Ng 2007): a
weight that would change its sign leaves, and at the minimum the column that breaks its constraint most comes in.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from blockgreedy.base.deadline import NEVER, Deadline
from blockgreedy.problem.columns import dense_columns
from blockgreedy.problem.core_problem import CoreProblem

if TYPE_CHECKING:
    from blockgreedy.problem.problem import Problem
    from blockgreedy.solvers.solution import Solution

Array = NDArray[np.float64]

_SMALL = 20_000  # entries of X
_MOST_WEIGHTS, _MOST_NUMBERS = 300, 1_000_000  # of the dense system: sparse data may be small with many rows
_MOST_WORK, _MOST_STEPS = 1e9, 300  # rows times squared weights, added up: some seconds
_MOST_FLAT = 5
_SHORT = 1e-5  # of the weights
_EPS = float(np.finfo(np.float64).eps)


def is_small(problem: Problem) -> bool:
    """Whether X is so small that a dense system in float64 costs next to nothing."""
    return problem.design.size <= _SMALL and not problem.design.is_tiled


def polish(problem: Problem, w: Array, intercept: float, until: Deadline = NEVER) -> tuple[Array, float] | None:
    """A point from here that is no higher, at the minimum if that is found; None if the problem is too large."""
    search = _Search(problem, w, intercept)
    start, work = search.value, 0.0
    for _ in range(_MOST_STEPS):
        step = problem.n_samples * (len(search.features) + 1.0) ** 2
        work += step
        if not search.fits or work > _MOST_WORK or not until.has_time_for(step):
            break
        if not search.step() and not search.enter():
            break
    if not search.fits or not search.value <= start * (1 + 8 * _EPS):
        return None
    return search.w, search.b


def polished(problem: Problem, solution: Solution, until: Deadline = NEVER) -> Solution:
    """The same solution with its last digits, where they are to be had and its dual point proves them no worse."""
    settled = _settled(problem, solution)
    if settled is None:
        better = polish(problem, solution.coef, solution.intercept, until)
        if better is None:
            return solution
        settled = *better, problem.objective(*better)
    coef, intercept, objective = settled
    gap = max(objective - (solution.objective - solution.gap), 0.0)  # the dual point is the same, and so is its value
    if not gap <= solution.gap + 4e-16 * solution.objective:
        return solution
    return replace(solution, coef=coef, intercept=intercept, gap=gap, objective=objective)


def _settled(problem: Problem, solution: Solution) -> tuple[Array, float, float] | None:
    """Weights, intercept and objective by the core, where signs stay and columns are independent: mostly."""
    scaling = problem.scaling
    found = CoreProblem(scaling.inner, 1).settled(
        scaling.coef_in(solution.coef), scaling.intercept_in(solution.intercept, slice(None), solution.coef)
    )
    if found is None:
        return None
    if scaling.is_identity:
        return found
    coef = scaling.weights_out(slice(None), found[0])
    intercept = scaling.intercept_out(found[1], slice(None), coef)
    return coef, intercept, problem.objective(coef, intercept)


class _Search:
    """A point, and the features whose weights move."""

    def __init__(self, problem: Problem, w: Array, b: float) -> None:
        self.problem, self.w, self.b = problem, w.copy(), b
        penalty = problem.penalty
        moves = (w != 0) & (w > penalty.lower) & (w < penalty.upper)
        moves |= (penalty.l1 == 0) & (penalty.lower < 0) & (penalty.upper > 0)
        self.features = np.flatnonzero(moves)
        self.signs = np.where(penalty.l1 > 0, np.sign(w), 0.0)
        self.refused: set[int] = set()  # came in once and left at once
        self.n_flat = 0  # steps in a row that did not lower the objective
        if self.fits:
            self.predictions = problem.decision(self.w, self.b)
            self.value = self._value(self.w, self.predictions)
            self._read()
        else:
            self.value = np.inf

    @property
    def fits(self) -> bool:
        k = len(self.features)
        return k <= _MOST_WEIGHTS and k * self.problem.n_samples <= _MOST_NUMBERS

    def _read(self) -> None:
        columns = dense_columns(self.problem.X, self.features)
        if self.problem.fit_intercept:
            columns = np.column_stack([columns, np.ones(self.problem.n_samples)])
        self.columns = columns

    def _value(self, w: Array, predictions: Array) -> float:
        problem = self.problem
        return problem.mean(problem.loss.value(problem.y, predictions)) + problem.penalty.value(w)

    def step(self) -> bool:
        """A Newton step, as far as no weight changes its sign; False if nothing is left to gain."""
        problem, features, k = self.problem, self.features, len(self.features)
        if self.columns.shape[1] == 0:
            return False
        penalty, w = problem.penalty.at(features), self.w[features]
        slope = np.zeros(self.columns.shape[1])
        slope[:k] = penalty.l1 * self.signs[features] + penalty.l2 * w
        ridge = np.zeros(len(slope))
        ridge[:k] = penalty.l2
        grad = self.columns.T @ problem.dual_at(self.predictions) + slope
        direction, is_flat = self._newton(grad, ridge)
        if direction is None:
            return False
        size, leaving = np.inf if is_flat else 1.0, np.zeros(k, dtype=np.bool_)
        step = direction[:k]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            to_zero = np.where(self.signs[features] * step < 0, -w / step, np.inf)
            to_bound = np.where(step > 0, (penalty.upper - w) / step, (penalty.lower - w) / step)
        ends = np.minimum(to_zero, np.where(step == 0, np.inf, to_bound))
        if k and np.min(ends) < size:
            size = max(float(np.min(ends)), 0.0)
            leaving = ends <= size
        if not np.isfinite(size):
            return False
        if size == 0:  # a weight of 0 whose column would go the other way
            self.refused.update(features[leaving].tolist())
            self._leave(leaving)
            return True
        return self._move(direction, size, leaving)

    def _move(self, direction: Array, size: float, leaving: NDArray[np.bool_]) -> bool:
        features, k = self.features, len(self.features)
        penalty = self.problem.penalty.at(features)
        for _ in range(30):
            w = self.w.copy()
            to = np.clip(w[features] + size * direction[:k], penalty.lower, penalty.upper)
            to[leaving & (self.signs[features] * direction[:k] < 0)] = 0.0
            w[features] = to
            b = self.b + (size * float(direction[-1]) if self.problem.fit_intercept else 0.0)
            predictions = self.problem.decision(w, b)
            value = self._value(w, predictions)
            if value <= self.value * (1 + _EPS):
                break
            size, leaving = 0.5 * size, np.zeros(k, dtype=np.bool_)
        else:
            return False
        self.n_flat = 0 if value < self.value * (1 - 4 * _EPS) else self.n_flat + 1
        self.w, self.b, self.predictions, self.value = w, b, predictions, min(value, self.value)
        if np.any(leaving):
            self._leave(leaving)
            return True
        # The objective is flat where steps still improve the gradient. A short full step on a quadratic is the last:
        # another could only mend what rounding took from it, digits beyond those of the weights.
        moved = size * float(np.max(np.abs(direction)))
        least = _SHORT if self.problem.loss.is_quadratic and size == 1 else 4 * _EPS
        return self.n_flat <= _MOST_FLAT and moved > least * float(np.max(np.abs(np.append(w[features], b))))

    def _newton(self, grad: Array, ridge: Array) -> tuple[Array | None, bool]:
        """The step to the minimum of the quadratic model; dependent columns share.

        True where the model is flat instead: weights of dependent columns can be exchanged without a change of the
        predictions, and the penalty falls along that direction until one of them is 0.
        """
        problem = self.problem
        roots = np.sqrt(problem.weigh(problem.loss.curvature(problem.y, self.predictions)))
        system = roots[:, None] * self.columns
        if np.any(ridge):
            system = np.vstack([system, np.diag(np.sqrt(ridge))])
        sizes = np.sqrt(np.sum(system**2, axis=0))
        if not np.all(np.isfinite(sizes)) or not np.any(sizes):
            return None, False
        inverse = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0)
        _, spread, right = np.linalg.svd(system * inverse, full_matrices=False)
        kept = right[spread > 1e-13 * spread[0]]
        slopes = kept @ (inverse * grad)
        flat = inverse * grad - kept.T @ slopes
        noise = 64 * _EPS * float(np.linalg.norm(problem.dual_at(self.predictions))) * len(flat)
        if len(kept) < len(flat) and np.linalg.norm(flat) > noise * float(np.max(inverse * self._norms())):
            return -inverse * flat, True
        return -inverse * (kept.T @ (slopes / spread[: len(kept)] ** 2)), False

    def _norms(self) -> Array:
        return np.asarray(np.sqrt(np.sum(self.columns**2, axis=0)))

    def _leave(self, leaving: NDArray[np.bool_]) -> None:
        self.features = self.features[~leaving]
        self._read()

    def enter(self) -> bool:
        """The column that breaks its constraint most comes in; False if none does."""
        problem, penalty = self.problem, self.problem.penalty
        grad = problem.products(problem.dual_at(self.predictions))
        bound = np.where(grad > 0, -penalty.lower, penalty.upper)
        excess = np.where((bound > 0) & (self.w == 0), np.abs(grad) - penalty.l1 * (1 + 1e-9), -np.inf)
        excess[self.features] = -np.inf
        excess[list(self.refused)] = -np.inf
        norms = np.sqrt(np.sum(self.predictions**2) + 1.0)
        j = int(np.argmax(excess))
        if not excess[j] > 64 * _EPS * norms * float(np.max(np.abs(problem.X[:, [j]]))) / problem.n_samples:
            return False
        self.signs[j] = -np.sign(grad[j]) if penalty.l1[j] > 0 else 0.0
        self.features = np.sort(np.append(self.features, j))
        self._read()
        return self.fits
