"""Algorithm 1 in NumPy: the executable specification that every backend is tested against.

Nothing here is fast. Everything here is what the words mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from blockgreedy.base.random import Random
from blockgreedy.problem.columns import dense_columns
from blockgreedy.problem.null_model import best_intercept

if TYPE_CHECKING:
    from blockgreedy.problem.penalties import Penalty
    from blockgreedy.problem.problem import Problem
    from blockgreedy.solvers.options import FamilyOptions

Array = NDArray[np.float64]
MAX_LINE_STEPS = 100


def block_greedy(
    problem: Problem, block_of: NDArray[np.int32], options: FamilyOptions
) -> Iterator[tuple[Array, float, list[int]]]:
    """Yields (w, intercept, accepted features) after each iteration, without end. Starts at w = 0.

    The intercept is no member of a block: it is fitted at the start and after every ⌈B/P⌉ iterations, in which each
    block is selected once on average. To the steps in between it is a part of the offset.
    """
    random = Random(options.seed)
    members = [np.flatnonzero(block_of == b) for b in range(options.n_blocks)]
    w = np.zeros(problem.n_features)
    intercept = fitted_intercept(problem, w, 0.0)
    for iteration in count(1):
        here = with_offset(problem, intercept + (0.0 if problem.offset is None else problem.offset))
        selected = random.draw_subset(options.n_blocks, options.blocks_per_iter)
        accepted = [j for b in selected for j in accept(here, w, members[b], options)]
        w = update(here, w, accepted, options)
        if iteration % options.round == 0:
            intercept = fitted_intercept(problem, w, intercept)
        yield w, intercept, accepted


def with_offset(problem: Problem, offset: float | Array) -> Problem:
    """The same problem with another offset."""
    other = problem.copied("null_model", "alpha_max", "scaling")
    other.offset = np.broadcast_to(offset, problem.n_samples)
    return other


def fitted_intercept(problem: Problem, w: Array, intercept: float) -> float:
    """The best intercept for these weights, looked for from the present one."""
    if not problem.fit_intercept:
        return 0.0
    return intercept + best_intercept(with_offset(problem, problem.decision(w, intercept)), near=0.0)


def curvature(problem: Problem, features: Sequence[int] | NDArray[np.intp]) -> Array:
    """β Σ_i ω_i x_ij², the bound on the second derivative along each of the features."""
    columns = dense_columns(problem.X, features)
    return np.asarray(problem.loss.curvature_bound * np.sum(problem.weigh((columns**2).T), axis=1))


def accept(problem: Problem, w: Array, block: NDArray[np.intp], options: FamilyOptions) -> list[int]:
    """The ``per_block`` best proposals of a block that move at all; ties go to the lowest index."""
    grad = problem.gradient(w)[block]
    bound = curvature(problem, block) / options.step_scale
    penalty = problem.penalty.at(block)
    target = penalty.prox(w[block], grad, bound)
    gain = penalty.gain(w[block], target, grad, bound)
    score = gain if options.greedy_rule == "gain" else np.abs(target - w[block])
    score = np.where(penalty.moves(w[block], target, grad, bound), score, 0.0)
    best = np.argsort(-score, kind="stable")[: options.per_block]
    return [int(block[k]) for k in best if score[k] > 0]


def update(
    problem: Problem, w: Array, accepted: list[int], options: FamilyOptions, *, in_given_order: bool = False
) -> Array:
    """The weights after moving the accepted features by the chosen rule.

    ``in_given_order`` has "joint" take them as they come, for replaying a step in which gains tie.
    """
    w = w.copy()
    if not accepted:
        return w
    columns, bound = dense_columns(problem.X, accepted), curvature(problem, accepted) / options.step_scale
    penalty = problem.penalty.at(accepted)
    Xw = problem.decision(w)

    def loss_grad(moved: Array) -> Array:  # of the accepted features, when they have moved by `moved`
        return np.asarray(columns.T @ problem.dual_at(Xw + columns @ moved))

    start, grad = w[accepted], problem.gradient(w)[accepted]
    if options.update == "add" or (options.update == "joint" and len(accepted) == 1):
        w[accepted] = penalty.prox(start, grad, bound)
    elif options.update == "line-search":  # each alone on the true loss, the others frozen
        for s, j in enumerate(accepted):
            alone = penalty.at([s])
            z = first = float(alone.prox(start[[s]], grad[[s]], bound[[s]])[0])
            for _ in range(MAX_LINE_STEPS - 1):
                moved = (z - start[s]) * (np.arange(len(accepted)) == s)
                previous, z = z, float(alone.prox(np.array([z]), loss_grad(moved)[[s]], bound[[s]])[0])
                if abs(z - previous) <= options.inner_tol * abs(first - start[s]):
                    break
            w[j] = z
    elif options.update == "sweep":  # one after the other on the shared state
        order = np.arange(len(accepted))
        w[accepted] = _descend(start, order, lambda z: loss_grad(z - start), penalty, bound, options)
    else:  # joint: against the quadratic majoriser, best gain first
        gram = problem.loss.curvature_bound * problem.weigh(columns.T) @ columns
        gain = penalty.gain(start, penalty.prox(start, grad, bound), grad, bound)
        order = np.arange(len(accepted)) if in_given_order else np.argsort(-gain, kind="stable")
        w[accepted] = _descend(start, order, lambda z: grad + gram @ (z - start), penalty, bound, options)
    return w


def _descend(
    start: Array,
    order: NDArray[np.intp],
    grad_at: Callable[[Array], Array],
    penalty: Penalty,
    bound: Array,
    options: FamilyOptions,
) -> Array:
    """Cyclic 1-D steps until a sweep's largest change is a small part of the first sweep's."""
    z, first = start.copy(), 0.0
    for sweep in range(options.sweeps):
        largest = 0.0
        for s in order:
            one = penalty.at([s])
            grad = grad_at(z)[[s]]
            target = one.prox(z[[s]], grad, bound[[s]])
            if one.gain(z[[s]], target, grad, bound[[s]])[0] > 0:
                largest = max(largest, abs(float(target[0] - z[s])))
                z[s] = target[0]
        first = largest if sweep == 0 else first
        if largest <= options.inner_tol * first:
            break
    return z
