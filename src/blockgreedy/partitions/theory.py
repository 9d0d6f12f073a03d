"""The paper's theory as numbers: bounds on rho_block, epsilon, the safe P, the safe step, the rate of Theorem 1.

Every number is marked as ``certified`` (proven, rounding errors included) or ``estimate`` (from a sample of the
columns), and as an upper or a lower bound. docs/theory.md explains how to use them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy import _core
from blockgreedy.base.names import GREEDY_RULES, GreedyRule
from blockgreedy.base.validate import above_zero, at_least, number, one_of, seed_of, shown, whole
from blockgreedy.partitions.any_partition import least_rho_block
from blockgreedy.partitions.bounds import Bound, RhoBlock
from blockgreedy.partitions.partition import Partition, as_target
from blockgreedy.partitions.spectrum import (
    UnitColumns,
    enumerate_selections,
    n_selections,
    search,
    spectral_radius,
    starting_points,
)
from blockgreedy.problem.columns import as_columns, column_norms
from blockgreedy.problem.passes import core_matrix, weighted_squares

__all__ = [
    "Bound",
    "RhoBlock",
    "UnitColumns",
    "epsilon",
    "least_rho_block",
    "max_safe_blocks_per_iter",
    "norm_ratio",
    "rate_bound",
    "rho_block",
    "safe_step_scale",
    "spectral_radius",
    "step_scale_limit",
]

Array = NDArray[np.float64]

_SLACK = 1e-9  # what eigenvalues and sums of thousands of terms may be off by, relatively
_ROUNDING = 1e-12  # what an epsilon of exactly 1 may fall short of it by, computed from an eigenvalue
_MAX_ENUMERATION = 1e9  # selections × B³
_MAX_GRAM = 2000  # features whose products enumeration holds
BUDGET = 1.5e9  # multiplications for cross products: some 5 s on two cores


def rho_block(
    X: Any,
    partition: Partition,
    *,
    y: Any = None,
    center: bool = False,
    budget: float = BUDGET,
    max_selections: int = 20_000,
    seed: int = 0,
    n_threads: int | None = None,
) -> RhoBlock:
    """Bounds on rho_block: the largest eigenvalue of A_SᵀA_S over all selections S of one column per block.

    The columns are scaled to norm 1. An empty column counts as orthogonal to all others, so that rho_block is at
    least 1. With one feature per block it is the spectral radius of XᵀX, the quantity of Shotgun.

    Parameters
    ----------
    X, partition : sparse matrix, array or UnitColumns; Partition
        A matrix, whose UnitColumns serve several partitions of it, and a partition of its features.
    y : array of shape (n_samples,), optional
        For one more starting point of the search for a lower bound.
    center : bool, default False
        Subtract the means of the columns first (never explicitly for sparse X).
    budget : float, default 1.5e9
        Multiplications that may be spent on inner products. Where all of them would cost more, columns are sampled
        (the densest and random ones) and the bounds made of them are labelled ``estimate``.
    max_selections : int, default 20,000
        rho_block is computed exactly up to this many selections, in small problems.
    seed, n_threads : int, optional
        For sampled columns and random starting points; default: all cores that the process may use.
    """
    unit = X if isinstance(X, UnitColumns) else UnitColumns(X, center=center, n_threads=n_threads)
    if unit.n_features != partition.n_features:
        raise ValueError(f"X has {unit.n_features} features, the partition has {partition.n_features}")
    budget = at_least("budget", budget, 0)
    max_selections = whole("max_selections", max_selections, 0, 10**100)
    seed = seed_of("seed", seed)
    target = None if y is None else as_target(y, unit.n_samples)
    B = partition.n_blocks
    if B == 1:
        alone = Bound("exact", 1.0, "exact", "certified", "one block, so one column at a time")
        return RhoBlock(1, (alone,))
    rng = np.random.default_rng(seed)
    bounds = [Bound("blocks", float(B), "upper", "certified", "B, the number of blocks")]
    touched = touched_blocks(unit, partition)
    bounds += bounds_by_rows(unit, touched, B)
    selections, size = n_selections(partition), unit.n_features
    if selections <= max_selections and size <= _MAX_GRAM and selections * B**3 <= _MAX_ENUMERATION:
        how = f"all {selections:,} selections" if selections > 1 else "the only selection: every feature is a block"
        bounds.append(Bound("exact", enumerate_selections(unit, partition), "exact", "certified", how))
    starts = starting_points(unit, partition, target, int(np.argmax(touched)), rng)
    reached, n_starts = search(unit, partition, starts), len(starts)
    is_known = reached >= B * (1 - 1e-6)
    cross = None if is_known else _cross_products(unit, partition, budget, rng)
    if cross is not None:  # the columns with most like them in other blocks are good places to start from as well
        first = np.argsort(-cross.sums, kind="stable")[:3]
        leading = [unit.combine(np.array([cross.seeds[k]], dtype=np.intp), np.ones(1)) for k in first]
        reached, n_starts = max(reached, search(unit, partition, leading)), n_starts + len(leading)
    reached = max(1.0, reached * (1 - _SLACK))
    what = "power iterations" if selections == 1 else "the best selection found by climbs"
    bounds.append(Bound("search", reached, "lower", "certified", f"{what} from {n_starts} starts"))
    if is_known:
        how = "known without a look: rho_block is B, and none of these exceeds B"
        names = ("proposition 3", "row sum", "eigenvalue")
        bounds += [Bound(name, float(B), "upper", "certified", how) for name in names]
    elif cross is not None:
        bounds += _bounds_by_products(unit, B, cross, reached)
    return RhoBlock(B, tuple(bounds))


def touched_blocks(unit: UnitColumns, partition: Partition) -> NDArray[np.int32]:
    """Different blocks among the nonzeros of each row."""
    return _core.blocks_touched(unit.matrix, partition.block_of, partition.n_blocks, unit.n_threads)


def bounds_by_rows(unit: UnitColumns, touched: NDArray[np.int32], n_blocks: int) -> list[Bound]:
    """Few blocks meet in a row, so few terms meet in a component of A_S v.

    Let T_i be the blocks that row i touches. By Cauchy-Schwarz, row by row, for any selection S and ‖v‖ = 1

        ‖A_S v‖² = Σ_i (Σ_b a_{i,j_b} v_b)² ≤ Σ_i T_i Σ_b a_{i,j_b}² v_b² ≤ max over j of Σ_i T_i a_ij² ≤ max_i T_i,

    the last step for columns of norm 1. Centring is a projection, which makes no ‖A_S v‖ larger, but its columns
    are then scaled by more than 1/‖x_j‖: the middle bound stays true with that scale, the last one does not.
    """
    weights = weighted_squares(unit.matrix, touched.astype(np.float64), unit.n_threads) * unit.scale**2
    bounds = []
    if not unit.center:
        most = max(1.0, float(touched.max(initial=0)))
        bounds.append(Bound("rows", most, "upper", "certified", "most blocks that a row touches"))
    elif not unit.is_sparse:
        return bounds  # explicitly centred: the nonzeros are no longer those of X
    average = min(float(n_blocks), max(1.0, float(weights.max()) * (1 + _SLACK)))
    how = "blocks that a row touches, averaged over a column's rows by its squares: the worst column"
    return [*bounds, Bound("weighted rows", average, "upper", "certified", how)]


@dataclass(frozen=True)
class _CrossProducts:
    """|a_i·a_j| across blocks: for each seed the largest, and the largest in each other block added up."""

    seeds: NDArray[np.int32]
    is_sample: bool
    largest: Array
    sums: Array
    between: Array  # largest of each two blocks; empty for many blocks


def _cross_products(
    unit: UnitColumns, partition: Partition, budget: float, rng: np.random.Generator
) -> _CrossProducts | None:
    seeds, is_sample = _affordable(unit, partition, budget, rng)
    if len(seeds) == 0:
        return None
    columns, rows = unit.explicit
    tilt = unit.tilt if unit.center and unit.is_sparse else None
    matrix = core_matrix(columns)
    by_rows = _core.csc(rows.shape[1], rows.indptr, rows.indices, rows.data) if unit.is_sparse else matrix
    found = _core.cross_products(matrix, by_rows, tilt, partition.block_of, partition.n_blocks, seeds, unit.n_threads)
    return _CrossProducts(seeds, is_sample, *found)


def _bounds_by_products(unit: UnitColumns, B: int, cross: _CrossProducts, known: float) -> list[Bound]:
    """Estimates where only some columns' products could be afforded; these are not below what is known to be reached.

    With S any selection and M = A_SᵀA_S, every |M_bb'| is at most the largest |product| between b and b', so that
    rho(M) is bounded by the largest row sum and by the largest eigenvalue of a matrix of such maxima.
    """
    mu = min(1.0, float(cross.largest.max()) + unit.rounding)
    found = {
        "proposition 3": (1 + (B - 1) * mu, f"1 + (B−1)·{mu:.4g}, the largest |product| across blocks"),
        "row sum": (
            1 + min(B - 1.0, float(cross.sums.max()) + B * unit.rounding),
            "1 + a column's largest |product| with every other block, added up: the worst column",
        ),
    }
    if len(cross.between):
        maxima = cross.between.reshape(B, B)
        maxima = np.minimum(1.0, np.maximum(maxima, maxima.T) + unit.rounding)
        np.fill_diagonal(maxima, 1.0)
        how = "largest eigenvalue of the blocks' largest |products|"
        found["eigenvalue"] = (float(np.linalg.eigvalsh(maxima)[-1]), how)
    if not cross.is_sample:
        return [Bound(name, value * (1 + _SLACK), "upper", "certified", how) for name, (value, how) in found.items()]
    share = f" ({len(cross.seeds):,} of {unit.n_features:,} columns looked at)"
    return [
        Bound(f"sampled {name}", max(known, value), "upper", "estimate", how + share)
        for name, (value, how) in found.items()
    ]


def _affordable(
    unit: UnitColumns, partition: Partition, budget: float, rng: np.random.Generator
) -> tuple[NDArray[np.int32], bool]:
    """(columns whose products with all others fit the budget, whether others had to be left out)."""
    every = np.flatnonzero(unit.scale)
    if unit.is_sparse:
        csc: Any = unit.columns
        per_row = np.bincount(csc.indices, minlength=unit.n_samples)
        before = np.concatenate(([0], np.cumsum(per_row[csc.indices])))
        cost = (before[csc.indptr[1:]] - before[csc.indptr[:-1]])[every].astype(np.float64)
        cost += partition.n_blocks if unit.center else 0
    else:
        cost = np.full(len(every), float(unit.n_samples) * unit.n_features)
    if cost.sum() <= budget:
        return every[np.argsort(-cost, kind="stable")].astype(np.int32), False
    order = np.argsort(-cost, kind="stable")
    first = order[: int(np.searchsorted(np.cumsum(cost[order]), budget / 4, side="right"))]
    others = rng.permutation(np.setdiff1d(order, first))
    taken = int(np.searchsorted(np.cumsum(cost[others]), budget - cost[first].sum(), side="right"))
    chosen = np.concatenate([first, others[:taken]])
    return every[chosen[np.argsort(-cost[chosen], kind="stable")]].astype(np.int32), True


def epsilon(blocks_per_iter: int, n_blocks: int, rho: float) -> float:
    """(P−1)(rho_block−1)/(B−1), the effect of correlation between blocks. Theorem 1 holds below 1. 0 for B = 1."""
    B = whole("n_blocks", n_blocks, 1)
    P = whole("blocks_per_iter", blocks_per_iter, 1, B)
    excess = _checked_rho(rho) - 1
    return 0.0 if B == 1 else (P - 1) * excess / (B - 1)


def max_safe_blocks_per_iter(n_blocks: int, rho: float) -> int:
    """The largest P with epsilon < 1. From an upper bound on rho_block it is safe, but larger P may be safe too."""
    B, excess = whole("n_blocks", n_blocks, 1), _checked_rho(rho) - 1
    P = B if excess < 1 else min(B, math.ceil(1 + (B - 1) / excess))
    while P > 1 and epsilon(P, B, rho) >= 1 - _ROUNDING:
        P -= 1
    return P


def safe_step_scale(blocks_per_iter: int, n_blocks: int, rho: float) -> float:
    """1/(1+epsilon), the scale of added steps with the best guarantee, for any P and any rho_block.

    ``update="add"`` with ``step_scale=s`` divides the curvature β of every feature by s: the step η_b of the feature
    that block b accepts minimises g·η + β/(2s)·η² + r(w+η), where g is its gradient and r its penalty. From an upper
    bound on rho_block the scale is safe, but larger ones may be safe too.

    Parameters
    ----------
    blocks_per_iter, n_blocks : int
        P and B.
    rho : float
        rho_block, or an upper bound on it.

    Notes
    -----
    Before it asks what η is, the proof of Theorem 1 says of columns of norm 1, for any steps and any epsilon,

        E f(w′) − f(w) ≤ (P/B)·Σ_b [g_b·η_b + (β/2)(1+epsilon)·η_b² + r(w_b+η_b) − r(w_b)].

    With s = 1/(1+epsilon) the steps minimise this very bound, block by block, and it is at most 0 because η = 0 makes
    it 0. For other s, the minimiser has g_b + β·η_b/s + ν_b = 0 with a subgradient ν_b of r at w_b+η_b, so that
    r(w_b+η_b) − r(w_b) ≤ ν_b·η_b = −g_b·η_b − β·η_b²/s, and

        E f(w′) − f(w) ≤ −(P·β/B)·(1/s − (1+epsilon)/2)·Σ_b η_b²,

    which is below 0 for 0 < s < 2/(1+epsilon) as long as a block moves (``step_scale_limit``). s = 1 is the paper's
    inequality, with its condition epsilon < 1.
    """
    return 1 / (1 + epsilon(blocks_per_iter, n_blocks, rho))


def step_scale_limit(blocks_per_iter: int, n_blocks: int, rho: float) -> float:
    """2/(1+epsilon): added steps of any smaller scale lower the objective in expectation; see ``safe_step_scale``."""
    return 2 * safe_step_scale(blocks_per_iter, n_blocks, rho)


def rate_bound(
    n_iter: int,
    blocks_per_iter: int,
    n_blocks: int,
    rho: float,
    *,
    radius: float,
    smoothness: float = 1.0,
    step_scale: float = 1.0,
    greedy_rule: GreedyRule = "gain",
    norm_ratio: float | None = None,
) -> float:
    """Theorem 1: E f(w_k) − f(w*) ≤ 2·β·B·R₁²/((1−epsilon)·P·k) after k = n_iter iterations; inf at epsilon ≥ 1.

    The theorem covers ``update="add"`` with one feature per block and alpha = 0; for alpha > 0 the paper refers to a
    supplement, which gives no constant. For P = B it is the corollary, 2·β·R₁²/((2−rho)·k), and holds for the
    iterates themselves. With a step scale s, s·(2−(1+epsilon)·s) takes the place of 1−epsilon. It is largest for
    s = 1/(1+epsilon), ``safe_step_scale``: the bound is then 2·β·(1+epsilon)·B·R₁²/(P·k), for any epsilon.

    Parameters
    ----------
    n_iter, blocks_per_iter, n_blocks : int
        k, P and B.
    rho : float
        rho_block, or an upper bound on it.
    radius : float
        R₁, at least ‖v_k − v*‖₁ for the start and every iterate, of the weights v_j = ‖x_j‖·w_j that columns of norm
        1 have. The proof needs less: the L1 norm within each block and the L2 norm of these, up to √B times smaller.
    smoothness : float, default 1.0
        β, the largest second derivative of the objective's smooth part along a unit column. For ``Problem``, whose
        loss is a mean, pass ``problem.loss.curvature_bound / problem.n_samples``. The paper's objective is a mean
        too, but its β is sup ℓ″ (1 squared, 1/4 logistic, 2 squared hinge, 1 Huber), n times what is needed.
    step_scale : float, default 1.0
        s, see ``safe_step_scale``. The bound is inf unless s is below ``step_scale_limit``.
    greedy_rule : {"gain", "step"}, default "gain"
        How the run chose the feature of a block. The paper has columns of norm 1, where both rules choose the same.
        "gain" does not change when columns are scaled, so it is covered for any norms. "step" takes the largest step,
        which favours columns of small norm: the bound is then norm_ratio² times as large.
    norm_ratio : float, optional
        For "step": the largest ratio of two column norms within a block, see ``norm_ratio``; 1 for columns of norm 1.

    Notes
    -----
    The recurrence: at alpha = 0 the steps are η = −s·g/β, so an iteration is worth s·(2−(1+epsilon)·s)·P/(2·β·B) by
    the sum of the blocks' largest squared gradients (``safe_step_scale``), which by convexity is at least
    (f(w)−f(w*))²/R₁². So 1/E(error) grows by at least 1/(bound at k = 1) in each iteration, from more than 0.

    Why norm_ratio²: let m ≤ ‖x_j‖ ≤ M in a block and s its largest |step| = |g_j|/(β‖x_j‖²). No gradient |g_j|/‖x_j‖
    of the block exceeds β·M·s, and the step taken is worth at least β·m²·s²/2. That is (m/M)² times what the proof of
    the theorem has for the largest gradient, (β·M·s)²/(2β); the rest of the proof stays as it is.
    """
    k, excess = whole("n_iter", n_iter, 1), epsilon(blocks_per_iter, n_blocks, rho)
    B, P = whole("n_blocks", n_blocks, 1), whole("blocks_per_iter", blocks_per_iter, 1)
    R, beta = at_least("radius", radius, 0), at_least("smoothness", smoothness, 0)
    factor = 1.0
    if one_of("greedy_rule", greedy_rule, GREEDY_RULES) == "step":
        if norm_ratio is None:
            raise ValueError(
                "greedy_rule='step' needs norm_ratio, the largest ratio of two column norms within a block: "
                "1 for columns of norm 1, otherwise theory.norm_ratio(X, partition)"
            )
        ratio = at_least("norm_ratio", norm_ratio, 1)
        factor = ratio * ratio  # unlike a power, this overflows to inf
    s = above_zero("step_scale", step_scale)
    progress = s * (2 - (1 + excess) * s)  # 1 − epsilon for s = 1
    return math.inf if progress <= 0 else factor * 2 * beta * B * R * R / (progress * P * k)


def norm_ratio(X: Any, partition: Partition) -> float:
    """The largest ratio of two column norms within a block, at least 1. Empty columns never move and do not count."""
    norms = column_norms(as_columns(X))
    if len(norms) != partition.n_features:
        raise ValueError(f"X has {len(norms)} features, the partition has {partition.n_features}")
    filled = np.flatnonzero(norms)
    longest, shortest = np.ones(partition.n_blocks), np.ones(partition.n_blocks)
    blocks = partition.block_of[filled]
    nonempty = np.unique(blocks)
    longest[nonempty], shortest[nonempty] = 0.0, np.inf
    np.maximum.at(longest, blocks, norms[filled])
    np.minimum.at(shortest, blocks, norms[filled])
    return float(np.max(longest / shortest))


def _checked_rho(rho: float) -> float:
    value = number("rho", rho)
    if not value >= 1 - 1e-6:  # a computed eigenvalue may miss 1 by rounding
        raise ValueError(f"rho={shown(rho)} must be a number of at least 1")
    return max(1.0, value)
