"""The warning before a run that the theory does not cover: concurrent steps that may overshoot."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from blockgreedy.partitions.spectrum import climb
from blockgreedy.partitions.theory import bounds_by_rows, epsilon, max_safe_blocks_per_iter, touched_blocks
from blockgreedy.solvers.step_scale import moving_columns

if TYPE_CHECKING:
    from blockgreedy.partitions.partition import Partition
    from blockgreedy.problem.problem import Problem
    from blockgreedy.solvers.options import FamilyOptions


_PASSES = 3  # over the nonzeros, from each of two starts: as much as a few iterations


class ConvergenceRiskWarning(UserWarning):
    """The settings are outside of what the paper's theory covers: the run may diverge."""


def warn_of_risk(
    problem: Problem, partition: Partition, options: FamilyOptions, n_threads: int, stacklevel: int
) -> None:
    """Warns where steps are added and epsilon is surely too large for their scale.

    step_scale.py says what is too large. It costs about ten passes over the nonzeros.
    """
    if options.update != "add":
        return
    safe_updates = "update='joint' or 'sweep', which never raise the objective"
    if options.per_block > 1:
        warnings.warn(
            f"per_block={options.per_block} with update='add' is not covered by the theory: features of a block may "
            f"be correlated, and their added steps may overshoot. Use per_block=1, or {safe_updates}",
            ConvergenceRiskWarning,
            stacklevel=stacklevel + 1,
        )
    B, P, scale = options.n_blocks, options.blocks_per_iter, options.step_scale
    if scale >= 2:
        warnings.warn(
            f"step_scale={scale:.3g} is not below 2: even a single step may raise the objective, and the run may "
            f"diverge. Use step_scale=1 or less, or {safe_updates}",
            ConvergenceRiskWarning,
            stacklevel=stacklevel + 1,
        )
        return
    if P == 1:
        return
    most = 2 / scale - 1  # epsilon must be below it
    unit = moving_columns(problem, n_threads)
    # rho_block at which epsilon is that; two copies in two blocks have exactly that, but for rounding.
    enough = (1 + most * (B - 1) / (P - 1)) * (1 - 1e-9)
    upper = min(bound.value for bound in bounds_by_rows(unit, touched_blocks(unit, partition), B))
    if upper < enough:
        return
    # The derivatives select what the first iteration accepts; the sum of all columns is what many have in common.
    start = np.zeros(problem.n_samples) if problem.offset is None else problem.offset
    start = start + problem.null_model.intercept if problem.fit_intercept else start
    derivs = np.asarray(problem.loss.deriv(problem.y, start), dtype=np.float64)
    derivs = derivs if problem.row_weights is None else np.sqrt(problem.row_weights) * derivs
    rho, _ = climb(unit, partition, derivs, _PASSES, enough)
    if rho < enough:
        total = unit.combine(np.arange(unit.n_features), np.ones(unit.n_features))
        rho = max(rho, climb(unit, partition, total, _PASSES, enough)[0])
    if rho < enough:
        return
    least, safe = epsilon(P, B, rho), max_safe_blocks_per_iter(B, 1 + (upper - 1) / most)
    scaled = "" if scale == 1 else f" and step_scale={scale:.3g}"
    warnings.warn(
        f"epsilon is at least {least:.3g} (it must be below {most:.3g}): some features of different blocks are so "
        f"correlated (rho_block is at least {rho:.3g}) that the theory promises nothing for blocks_per_iter={P} of "
        f"n_blocks={B} with update='add'{scaled}, and the run may diverge. Surely safe: blocks_per_iter={safe}"
        f"{' or less' * (safe > 1)}; or step_scale='theory'; or {safe_updates}. bg.diagnose says more",
        ConvergenceRiskWarning,
        stacklevel=stacklevel + 1,
    )
