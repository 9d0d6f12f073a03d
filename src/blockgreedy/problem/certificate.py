"""Dual points and duality gaps: how every solver proves its accuracy.

The dual of ``Σ ω_i loss(y_i, (Xw)_i + b + offset_i) + r(w)`` is

    D(θ) = θ·offset − Σ_i ω_i loss*(y_i, θ_i/ω_i) − Σ_j r_j*(−x_j·θ),   θ_i = 0 where ω_i = 0;

at the solution θ_i = ω_i loss′(y_i, ·). With l2 = 0 an unbounded feature asks |x_j·θ| ≤ alpha·u_j, an unpenalised one
x_j·θ = 0; an intercept is an unpenalised column of ones, whatever l2. Any feasible θ bounds the error of any point:
f(w, b) − f* ≤ f(w, b) − D(θ).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from blockgreedy.base.deadline import NEVER, Deadline
from blockgreedy.problem.columns import as_dense
from blockgreedy.problem.dual_repair import PRODUCT_ROUNDING, repaired_dual_points
from blockgreedy.problem.penalties import without_far_bounds

if TYPE_CHECKING:
    from blockgreedy.problem.problem import Problem

Array = NDArray[np.float64]

ROUNDING = 1e-13  # objective and dual value are sums over rows: what they differ by is known to this part of them
FEASIBLE = 1e-12  # how far rounding may carry a dual point out of its constraints, relative to their size
_CONTRADICTION = 1e-10  # by what part of the null model's objective a dual value may exceed an objective
_SETTLED = 2e-15  # what projections aim at: the goal of the core's
_MAX_UNPENALISED = 500  # unpenalised columns are handled as a dense array: up to so many of them
_MAX_ENTRIES = 50_000_000  # and up to this size
_AS_FAST = 10  # a product of matrices, beside the decompositions that Deadline counts in
_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)


class ColumnPasses(Protocol):
    """What a certificate needs of X: NumpyPasses has it in NumPy, CoreProblem on the core's threads."""

    def products(self, theta: Array) -> Array:
        """x_j·theta of every column."""
        ...

    def alpha_needed(self, theta: Array, at_null: bool = False, rounding: float = 0.0) -> float:
        """The smallest alpha for which ``theta`` satisfies every inequality of the dual.

        With ``at_null``, the smallest alpha at which all penalised weights are 0 at the optimum; constraints of
        features with a finite bound then count too. ``rounding``·‖x_j‖ is added to every |x_j·theta|.
        """
        ...

    def penalty_conjugate(self, theta: Array, scale: float, rounding: float = 0.0, most: float = np.inf) -> float:
        """Σ_j r_j*(−scale·x_j·theta), without the unpenalised features, which ``Unpenalised`` takes care of.

        ``most``: what the penalty of one feature may be at most (``Penalty.conjugate``).
        """
        ...


class NumpyPasses:
    """The passes in NumPy: the readable twin of CoreProblem's."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def products(self, theta: Array) -> Array:
        return self.problem.products(theta)

    def _enlarged(self, theta: Array, rounding: float) -> Array:
        products = self.products(theta)
        return products if rounding == 0 else products + np.copysign(rounding * self.problem.design.norms(), products)

    def alpha_needed(self, theta: Array, at_null: bool = False, rounding: float = 0.0) -> float:
        problem, correlation = self.problem, -self._enlarged(theta, rounding)
        bound = np.where(correlation > 0, problem.penalty.upper, -problem.penalty.lower)
        u = np.ones(problem.n_features) if problem.penalty_weights is None else problem.penalty_weights
        counted = (bound > 0 if at_null else np.isinf(bound)) & (u > 0) & np.isfinite(u)
        return float(np.max(np.abs(correlation[counted]) / u[counted], initial=0.0))

    def penalty_conjugate(self, theta: Array, scale: float, rounding: float = 0.0, most: float = np.inf) -> float:
        penalty = self.problem.penalty
        penalised = np.flatnonzero(~penalty.is_free)
        products = scale * self._enlarged(theta, rounding)[penalised]
        return float(np.sum(penalty.at(penalised).conjugate(-products, most)))


class Unpenalised:
    """The features without penalty that are unbounded on one side or both, and the intercept as the last of them.

    They constrain the dual by x_j·θ = 0 or by the sign of x_j·θ. There are few of them, if any, so their columns
    are kept as a dense array, scaled to norm 1: what they ask of θ does not depend on their scale.
    """

    def __init__(self, problem: Problem, features: NDArray[np.intp]) -> None:
        columns, self.lower, self.upper = np.zeros((problem.n_samples, 0)), np.zeros(0), np.zeros(0)
        self.features = features
        if len(features):
            columns = as_dense(problem.design.take(features))
            own = problem.penalty_at(features)
            self.lower, self.upper = without_far_bounds(own.lower, own.upper)
        if problem.fit_intercept:
            columns = np.column_stack([columns, np.ones(problem.n_samples)])
            self.lower, self.upper = np.append(self.lower, -np.inf), np.append(self.upper, np.inf)
        if problem.row_weights is not None:  # θ is 0 in rows of weight 0; they have no say in the norms either
            columns[problem.row_weights == 0] = 0.0
        largest = np.max(np.abs(columns), axis=0)
        columns = columns / np.where(largest > 0, largest, 1.0)  # so that no square overflows or vanishes
        norms = np.sqrt(np.sum(columns**2, axis=0))
        self.norms = largest * norms
        self.columns = columns / np.where(norms > 0, norms, 1.0)

    def violated(self, theta: Array, rounding: float = FEASIBLE) -> NDArray[np.bool_]:
        """Which constraints θ breaks by more than rounding."""
        v = -_products(self.columns, theta)
        slack = rounding * _norm(theta)
        too_high, too_low = np.isinf(self.upper) & (v > slack), np.isinf(self.lower) & (v < -slack)
        return np.asarray(too_high | too_low, dtype=np.bool_)

    def leak(self, theta: Array, w: Array, intercept: float) -> float:
        """What is left of the equalities, times the weights: an estimate of what it takes from the bound."""
        v = -self.norms * _products(self.columns, theta)
        pulls = np.where(v > 0, np.isinf(self.upper), np.isinf(self.lower))
        multipliers = np.append(w[self.features], intercept)[: len(v)]
        return float(np.sum(np.abs(v * multipliers), where=pulls))

    def conjugate(self, theta: Array, rounding: float = 0.0) -> float:
        """Their share of Σ r_j*(−x_j·θ) where no constraint is broken: that of the bounded sides.

        Products count as larger by ``rounding``·‖x_j‖, on either side.
        """
        v, by = -self.norms * _products(self.columns, theta), rounding * self.norms
        up = np.where(np.isinf(self.upper), 0.0, self.upper)
        down = np.where(np.isinf(self.lower), 0.0, -self.lower)
        return float(np.sum(np.maximum(v + by, 0.0) * up + np.maximum(by - v, 0.0) * down))


class TooManyUnpenalisedError(Exception):
    """No dual point but 0 is looked for."""


def unpenalised(problem: Problem) -> Unpenalised | None:
    """None where every feature is penalised and there is no intercept."""
    features = np.zeros(0, dtype=np.intp)
    all_weighted = problem.penalty_weights is None or bool(np.all(problem.penalty_weights))
    if problem.l2 == 0 and not (problem.alpha > 0 and all_weighted):
        features = np.flatnonzero(problem.penalty.is_free)
    if not are_few(problem, features):
        raise TooManyUnpenalisedError
    return Unpenalised(problem, features) if len(features) or problem.fit_intercept else None


def _products(columns: Array, theta: Array) -> Array:
    """columnsᵀθ. A single column, usually the intercept's, is kept from BLAS, whose threads wake up for longer."""
    return np.sum(columns * theta[:, None], axis=0) if columns.shape[1] == 1 else np.asarray(columns.T @ theta)


def _norm(theta: Array) -> float:
    return float(np.sqrt(np.sum(theta * theta)))  # np.linalg.norm goes to BLAS as well


def are_few(problem: Problem, features: NDArray[np.intp]) -> bool:
    return len(features) <= _MAX_UNPENALISED and problem.n_samples * len(features) <= _MAX_ENTRIES


def loss_conjugate(problem: Problem, theta: Array) -> float:
    """Σ ω_i loss*(y_i, θ_i/ω_i) − θ·offset for θ inside the domain up to rounding (n·(delta/n) may exceed delta)."""
    y, offset = _centred(problem)
    u = problem.loss.into_domain(y, problem.unweigh(theta))
    return problem.mean(problem.loss.conjugate(y, u)) - (0.0 if offset is None else float(np.sum(theta * offset)))


def _centred(problem: Problem) -> tuple[Array, Array | None]:
    """Targets and offset of an equal dual whose sums do not cancel.

    A loss of the residual sees y − offset only. Where Σθ = 0 a constant may be taken off either: with targets of
    1e6 ± 1 the products with θ would otherwise lose six digits of the gap.
    """
    y, offset = problem.y, problem.offset
    if problem.loss.depends_on_residual:
        y = y if offset is None else y - offset
        return (y - problem.mean(y) if problem.fit_intercept else y), None
    return y, offset if offset is None or not problem.fit_intercept else offset - problem.mean(offset)


def _into_domain(problem: Problem, theta: Array) -> Array:
    return problem.weigh(problem.loss.into_domain(problem.y, problem.unweigh(theta)))


def _has_conjugate_term(problem: Problem) -> bool:
    """Whether r* is anything but the indicator of the constraints."""
    finite = np.isfinite(problem.lower) & (np.asarray(problem.lower) != 0)
    finite = finite | (np.isfinite(problem.upper) & (np.asarray(problem.upper) != 0))
    return problem.l2 > 0 or bool(np.any(finite))


def dual_value(
    problem: Problem,
    theta: Array,
    passes: ColumnPasses,
    objective: float = np.inf,
    at: tuple[Array, float] | None = None,
) -> float:
    """D(θ), −inf where θ is infeasible by more than rounding.

    ``objective``: of the point that it is compared with, see ``most_penalty``; ``at``: its weights and intercept.
    """
    if not np.all(np.isfinite(theta)):
        return -np.inf
    inside = _into_domain(problem, theta)
    if np.any(
        np.abs(inside - theta) > problem.weigh(FEASIBLE * np.maximum(1.0, np.abs(problem.unweigh(theta)))) + _TINY
    ):
        return -np.inf
    scale, value = 1.0, -loss_conjugate(problem, inside)
    if problem.l2 == 0 and problem.alpha > 0:
        needed = passes.alpha_needed(theta)
        if needed > problem.alpha * (1 + FEASIBLE):
            return -np.inf
        scale = _just_inside(problem.alpha, needed)
    try:
        free_features = unpenalised(problem)
    except TooManyUnpenalisedError:
        return -np.inf
    if free_features is not None:
        if np.any(free_features.violated(theta)):
            return -np.inf
        value -= free_features.conjugate(theta) + (0.0 if at is None else free_features.leak(theta, *at))
    if not _has_conjugate_term(problem):
        return value
    return value - passes.penalty_conjugate(theta, scale, most=most_penalty(objective, problem.lowest))


def is_believed(value: float, objective: float, lowest: float, f_null: float) -> bool:
    """Whether a dual value is one: a number, worth more than a point of 0, and no contradiction.

    An objective below it by more than rounding disproves the dual point: of unpenalised columns that depend on each
    other but for rounding, each may keep its constraint within rounding where all of them together do not.
    """
    return bool(lowest <= value <= objective + _CONTRADICTION * f_null)


def most_penalty(objective: float, lowest: float) -> float:
    """What the penalty can be at most where the objective is this or lower: what is left above the least losses.

    A minimum is such a point. So a bound that no weight of it can reach, such as 1e20, is no reason to subtract 1e20
    times what rounding left of x_j·θ beyond its threshold.
    """
    rounding = ROUNDING * max(abs(objective), abs(lowest))
    return max(objective - lowest, 0.0) + rounding if np.isfinite(objective) else np.inf


def _just_inside(alpha: float, needed: float) -> float:
    """The factor ≤ 1 that brings θ inside the inequalities, rounding of the product included."""
    return 1.0 if needed <= alpha else alpha / needed * (1 - 4 * _EPS)


@np.errstate(over="ignore", invalid="ignore")  # a diverging point has no dual value, and that is all
def scaled_dual_point(
    problem: Problem,
    Xw: Array,
    passes: ColumnPasses,
    objective: float = np.inf,
    weights: tuple[NDArray[np.integer[Any]], Array] | None = None,
    until: Deadline = NEVER,
) -> tuple[Array, float]:
    """The residual of a primal point, projected and scaled until feasible, and its dual value.

    Xw stands for all of its predictions, intercept and offset included, ``objective`` is what it is there. Where that
    fails it is θ = 0, which is always feasible and proves that the objective is at least the sum of the least losses.
    With ``weights``, the features and values of the point, more is tried (dual_repair.py). What takes longer than a
    few passes is left out once time is up.
    """
    nothing = np.zeros(problem.n_samples), problem.lowest
    theta = problem.dual_at(Xw)
    if not np.all(np.isfinite(theta)):
        return nothing
    try:
        free_features = unpenalised(problem)
    except TooManyUnpenalisedError:
        return nothing
    if free_features is not None:
        projected = _project(problem, theta, Xw, free_features, until)
        if projected is None:
            return nothing
        theta = projected
    has_term = _has_conjugate_term(problem)
    best, best_value = nothing
    points: Iterable[Array] = [theta]
    if weights is not None and problem.alpha > 0 and problem.l2 == 0:
        features, values = weights
        points = chain(points, repaired_dual_points(problem, theta, Xw, features, np.sign(values), passes, until))
    for point in points:
        if free_features is not None and np.any(free_features.violated(point)):
            continue
        # whoever checks the point may add up its products in another order
        rounding = PRODUCT_ROUNDING * _norm(point)
        needed = passes.alpha_needed(point, rounding=rounding) if problem.alpha > 0 else 0.0
        for scale in _scales(problem, point, needed):
            value = -loss_conjugate(problem, scale * point)
            if has_term:
                value -= passes.penalty_conjugate(point, scale, rounding, most_penalty(objective, problem.lowest))
            if free_features is not None:
                value -= free_features.conjugate(scale * point, rounding)
            if value > best_value:
                best, best_value = scale * point, value
    return best, best_value


def _scales(problem: Problem, theta: Array, needed: float) -> list[float]:
    """Factors worth trying: the largest feasible one up to 1, and for the squared loss the best feasible one."""
    feasible = _just_inside(problem.alpha, needed)
    if problem.l2 > 0:
        return [1.0] if feasible == 1.0 else [1.0, feasible]
    if not problem.loss.is_quadratic or problem.alpha == 0 or _has_conjugate_term(problem):
        return [feasible]
    y, _ = _centred(problem)
    norm = float(np.sum(theta * problem.unweigh(theta)))
    limit = problem.alpha / needed * (1 - 4 * _EPS) if needed > 0 else np.inf
    return [min(limit, max(0.0, -float(np.sum(theta * y)) / norm))] if 0 < norm < np.inf else [feasible]


def _project(problem: Problem, theta: Array, Xw: Array, free_features: Unpenalised, until: Deadline) -> Array | None:
    """θ moved onto the constraints of the unpenalised features, inside the loss's domain; None if that fails in time.

    The move is weighted with the loss's curvature: it is a Newton step in those features, so it shrinks near the
    ends of the domain and seldom leaves it. Where the loss is flat that can leave too few rows to move; then these
    move too, a little and at last like all others.
    """
    curvature, most = problem.loss.curvature(problem.y, Xw), problem.loss.curvature_bound
    for floor, max_steps in ((1e-12, 8), (1e-3, 30), (1.0, 30)):
        weights, moved, repeats = problem.weigh(np.maximum(curvature, floor * most)), theta, 0
        equalities = np.zeros(len(free_features.norms), dtype=np.bool_)
        while (
            repeats < 2 and not until.has_passed()
        ):  # once more may be needed for rounding; after that it will not do
            broken = free_features.violated(moved)
            if not np.any(broken):
                # what rounding allows is missing from the proof all the same
                open_ = free_features.violated(moved, _SETTLED)
                if not np.any(open_):
                    return moved
                columns = free_features.columns[:, equalities | open_]
                settled = _nearest(problem, moved, weights, columns, max_steps, until)
                return moved if np.any(free_features.violated(settled)) else settled
            repeats = 0 if np.any(broken & ~equalities) else repeats + 1
            equalities |= broken  # found broken, a constraint is an equality from here on
            if np.sum(equalities) >= problem.n_samples:  # only θ = 0 is left
                return None
            moved = _nearest(problem, moved, weights, free_features.columns[:, equalities], max_steps, until)
    return None


def _nearest(
    problem: Problem, start: Array, weights: Array, columns: Array, max_steps: int, until: Deadline
) -> Array:
    """The θ of the domain with columnsᵀθ = 0 that minimises Σ(θ − start)²/(2·weights).

    θ(m) = start − weights·columns@m, clipped to the domain, for the multipliers m that maximise the concave dual,
    whose gradient is columnsᵀθ(m): Newton's method on a piecewise quadratic, which ends after a few steps.
    """

    def at(multipliers: Array) -> tuple[Array, Array, float, NDArray[np.bool_]]:
        slope = columns[:, 0] * multipliers[0] if len(multipliers) == 1 else columns @ multipliers
        u = problem.unweigh(start - weights * slope)
        inside = problem.loss.into_domain(problem.y, u)
        free = np.asarray(inside == u, dtype=np.bool_)
        theta = np.where(free, start - weights * slope, problem.weigh(inside))
        change = theta - start
        cost = np.divide(change * change, weights, out=np.zeros_like(change), where=weights > 0)
        return theta, _products(columns, theta), float(np.sum(0.5 * cost + slope * theta)), free

    multipliers = np.zeros(columns.shape[1])
    theta, grad, value, free = at(multipliers)
    for _ in range(max_steps):
        k = columns.shape[1]
        if not until.has_time_for(columns.size * k / _AS_FAST + k**3):
            break
        weighted = (weights * free)[:, None] * columns
        hessian = np.sum(weighted * columns, keepdims=True) if len(grad) == 1 else columns.T @ weighted
        step = np.linalg.pinv(hessian, hermitian=True) @ grad
        size, climb, norm = 1.0, float(step @ grad), float(np.linalg.norm(grad))
        if not (climb > 0 and norm > 1e-15 * _norm(theta)):
            break
        for attempt in range(10):
            if attempt > 0 and until.has_passed():
                return theta
            trial = at(multipliers + size * step)
            if trial[2] >= value + 1e-4 * size * climb or np.linalg.norm(trial[1]) <= 0.5 * norm:
                break
            size *= 0.25
        else:
            break
        multipliers = multipliers + size * step
        theta, grad, value, free = trial
    return theta
