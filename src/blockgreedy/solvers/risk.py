"""The warning before a run that the theory does not cover: concurrent steps that may overshoot."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from blockgreedy.partitions.spectrum import UnitColumns, climb
from blockgreedy.partitions.theory import bounds_by_rows, epsilon, max_safe_blocks_per_iter, touched_blocks

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
    """Warns where steps are added and epsilon is surely not below 1. Costs about ten passes over the nonzeros.

    Steps are scaled by the curvature of each column, so columns of norm 1 are what the theory is about, whatever
    the norms of X are.
    """
    if options.update != "add":
        return
    if options.per_block > 1:
        warnings.warn(
            f"per_block={options.per_block} with update='add' is not covered by the theory: features of a block may "
            "be correlated, and their added steps may overshoot. Use per_block=1, or update='joint' or 'sweep', "
            "which never raise the objective",
            ConvergenceRiskWarning,
            stacklevel=stacklevel + 1,
        )
    B, P = options.n_blocks, options.blocks_per_iter
    if P == 1:
        return
    unit = UnitColumns(problem.X, n_threads=n_threads)
    unit.scale[_immovable(problem)] = 0.0
    # rho_block at which epsilon is 1; two copies in two blocks have exactly that, but for rounding.
    enough = (1 + (B - 1) / (P - 1)) * (1 - 1e-9)
    upper = min(bound.value for bound in bounds_by_rows(unit, touched_blocks(unit, partition), B))
    if upper < enough:
        return
    # The derivatives select what the first iteration accepts; the sum of all columns is what many have in common.
    derivs = np.asarray(problem.loss.deriv(problem.y, np.zeros(problem.n_samples)), dtype=np.float64)
    rho, _ = climb(unit, partition, derivs, _PASSES, enough)
    if rho < enough:
        total = unit.combine(np.arange(unit.n_features), np.ones(unit.n_features))
        rho = max(rho, climb(unit, partition, total, _PASSES, enough)[0])
    if rho < enough:
        return
    least, safe = epsilon(P, B, rho), max_safe_blocks_per_iter(B, upper)
    warnings.warn(
        f"epsilon is at least {least:.3g} (it must be below 1): some features of different blocks are so correlated "
        f"(rho_block is at least {rho:.3g}) that the theory promises nothing for blocks_per_iter={P} of n_blocks={B} "
        f"with update='add', and the run may diverge. Surely safe: blocks_per_iter={safe}{' or less' * (safe > 1)}; "
        "or update='joint' or 'sweep', which never raise the objective. bg.diagnose says more",
        ConvergenceRiskWarning,
        stacklevel=stacklevel + 1,
    )


def _immovable(problem: Problem) -> NDArray[np.bool_]:
    """Features that no step can move: excluded, or held at 0 from both sides."""
    fixed = np.zeros(problem.n_features, dtype=np.bool_)
    if problem.penalty_weights is not None:
        fixed |= np.isinf(problem.penalty_weights)
    return np.asarray(fixed | (np.asarray(problem.lower) == np.asarray(problem.upper)))
