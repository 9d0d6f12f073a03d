"""The scale of added steps: what its names stand for, and the columns that the theory is about.

P of B blocks add steps η that were made with curvature c/s, s the scale. With g the derivative and r the penalty
along the feature of a block, the proof of Theorem 1 bounds the expected change of the objective by P/B times the sum,
over all blocks, of

    g·η + (c/2)(1+epsilon)·η² + r(w+η) − r(w)  ≤  −c·(1/s − (1+epsilon)/2)·η²,

because g·η + r(w+η) − r(w) ≤ −(c/s)·η² at the minimum of the 1-D model. So s < 2/(1+epsilon) is enough for expected
descent, and s = 1/(1+epsilon) minimises the bound on the left, also where epsilon is 1 or more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockgreedy.base.names import NamedScale
from blockgreedy.partitions.spectrum import UnitColumns, spectral_radius
from blockgreedy.partitions.theory import BUDGET, epsilon, rho_block
from blockgreedy.solvers.options import checked_scale

if TYPE_CHECKING:
    from blockgreedy.partitions.partition import Partition
    from blockgreedy.problem.problem import Problem
    from blockgreedy.solvers.options import FamilyOptions


def with_step_scale(
    asked: float | NamedScale, problem: Problem, partition: Partition, options: FamilyOptions, n_threads: int
) -> FamilyOptions:
    """The options with the scale that was asked for, by number or by name."""
    scale = checked_scale(asked, options.update)
    if scale == "paper":  # the curvature β of the text, for columns of norm 1, is n times that of a mean loss
        scale = 1 / problem.n_samples
    elif scale == "theory":
        rho = _rho_upper(problem, partition, options, n_threads)
        scale = 1 / (1 + epsilon(options.blocks_per_iter, options.n_blocks, rho))
    return replace(options, step_scale=scale)


def weighted_columns(problem: Problem, features: NDArray[np.intp] | None = None) -> Any:
    """All columns, or some: x_ij, or √ω_i·x_ij where rows have weights.

    Their products are what couples steps: the curvature bound along a feature is β Σ_i ω_i x_ij², between two it is
    β Σ_i ω_i x_ij x_ik. Without weights every ω_i is 1/n, which scaling to norm 1 takes out.
    """
    columns: Any = problem.X if features is None else problem.X[:, features]
    if problem.row_weights is None:
        return columns
    roots = np.sqrt(problem.row_weights)
    if not sp.issparse(columns):
        return np.asfortranarray(columns * roots[:, None])
    weighted: Any = columns.astype(np.float64)  # type: ignore[attr-defined]
    weighted.data *= roots[weighted.indices]
    weighted.eliminate_zeros()  # rows without weight couple nothing
    return weighted


def radius_of(problem: Problem, features: Sequence[int]) -> float:
    """The spectral radius of the products of these columns, scaled to norm 1; see ``weighted_columns``."""
    if problem.row_weights is None:
        return spectral_radius(problem.X, features)
    chosen = np.asarray(features, dtype=np.intp)
    return spectral_radius(weighted_columns(problem, chosen), range(len(chosen)))


def moving_columns(problem: Problem, n_threads: int) -> UnitColumns:
    """The columns that steps can move, scaled to norm 1; the others are zero.

    Steps are made with the curvature of each column, so columns of norm 1 are what the theory is about, whatever the
    norms of X are. Rows count by their weights (``weighted_columns``).
    """
    unit = UnitColumns(weighted_columns(problem), n_threads=n_threads)
    unit.scale[_immovable(problem)] = 0.0
    return unit


def _rho_upper(problem: Problem, partition: Partition, options: FamilyOptions, n_threads: int) -> float:
    """The least upper bound on rho_block at hand; it does not matter where one block moves at a time."""
    if options.blocks_per_iter == 1:
        return 1.0
    unit = moving_columns(problem, n_threads)
    budget = BUDGET if _all_products(unit) <= BUDGET else 0.0  # of a sample of the columns nothing would follow
    return rho_block(unit, partition, budget=budget, n_threads=n_threads).upper.value


def _all_products(unit: UnitColumns) -> float:
    """Multiplications for the products of all columns with all others."""
    if not unit.is_sparse:
        return float(unit.n_samples) * unit.n_features**2
    columns: Any = unit.columns
    return float(np.sum(np.bincount(columns.indices, minlength=unit.n_samples).astype(np.float64) ** 2))


def _immovable(problem: Problem) -> NDArray[np.bool_]:
    """Features that no step can move: excluded, or held at 0 from both sides."""
    fixed = np.zeros(problem.n_features, dtype=np.bool_)
    if problem.penalty_weights is not None:
        fixed |= np.isinf(problem.penalty_weights)
    return np.asarray(fixed | (np.asarray(problem.lower) == np.asarray(problem.upper)))
