"""Theorem 1 for columns of any norms: what each greedy rule promises."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import blockgreedy as bg
from blockgreedy.backends.reference import block_greedy
from blockgreedy.partitions.theory import epsilon, norm_ratio, rate_bound, rho_block
from blockgreedy.solvers.options import FamilyOptions


def orthogonal_columns(rng, norms):
    return np.linalg.qr(rng.normal(size=(len(norms), len(norms))))[0] * norms


def course_of(problem, partition, rule, n_iter):
    """(error after each iteration of all blocks, R₁ in the weights of columns at norm 1), without regularisation."""
    X = np.asarray(problem.X)
    norms, minimiser = np.linalg.norm(X, axis=0), np.linalg.lstsq(X, problem.y, rcond=None)[0]
    B = partition.n_blocks
    course = block_greedy(problem, partition.block_of, FamilyOptions(B, B, update="add", greedy_rule=rule))
    iterates = [np.zeros(len(norms)), *(w for w, _, _ in itertools.islice(course, n_iter))]
    radius = max(float(np.sum(norms * np.abs(w - minimiser))) for w in iterates)
    return np.array([problem.objective(w) for w in iterates[1:]]) - problem.objective(minimiser), radius


def test_short_columns_first_is_beyond_theorem_1_and_within_the_bound_for_steps():
    """Twelve columns of norm 1e-3 and one of norm 1, orthogonal: the largest steps are on those that matter least."""
    rng = np.random.default_rng(0)
    norms = np.r_[np.full(12, 1e-3), 1.0]
    X = orthogonal_columns(rng, norms)
    problem = bg.Problem(X, X @ np.r_[np.full(12, 2.0), 1.0], alpha=0.0)
    partition = bg.Partition(np.zeros(13, dtype=int), 1)
    error, radius = course_of(problem, partition, "step", 12)
    asked = {"radius": radius, "smoothness": 1 / 13}
    assert error[-1] > rate_bound(12, 1, 1, 1.0, **asked)  # of "gain": this run is not covered
    ratio = norm_ratio(X, partition)
    assert ratio == pytest.approx(1000)
    assert error[-1] <= rate_bound(12, 1, 1, 1.0, greedy_rule="step", norm_ratio=ratio, **asked)
    error, radius = course_of(problem, partition, "gain", 12)
    assert error[-1] <= rate_bound(12, 1, 1, 1.0, radius=radius, smoothness=1 / 13)


@pytest.mark.filterwarnings("ignore:y has mean")
@pytest.mark.parametrize("rule", ["gain", "step"])
@pytest.mark.parametrize("seed", range(40))
def test_no_random_columns_of_any_norms_break_the_rate(rule, seed):
    rng = np.random.default_rng(300 + seed)
    B, n_short = int(rng.integers(1, 4)), int(rng.integers(1, 7))
    p = B * (n_short + 1)
    norms = np.tile(np.r_[np.full(n_short, 10.0 ** -rng.uniform(0, 4)), 1.0], B)
    norms *= 10 ** (rng.uniform(-1, 1, size=p) * rng.choice([0, 1]))
    X = orthogonal_columns(rng, norms)
    X += rng.choice([0, 0.02]) * norms * rng.normal(size=(p, p))
    w = rng.uniform(0.5, 2, size=p) / norms ** rng.choice([0, 0.5, 1])
    problem = bg.Problem(X, X @ w, alpha=0.0)
    partition = bg.make_partition(X, n_blocks=B, kind="contiguous")
    rho = rho_block(X, partition).upper.value
    if epsilon(B, B, rho) >= 1:
        pytest.skip("rho_block is 2 or more: the theorem says nothing")
    error, radius = course_of(problem, partition, rule, 3 * p)
    asked = {"radius": radius, "smoothness": 1 / p, "greedy_rule": rule, "norm_ratio": norm_ratio(X, partition)}
    bounds = [rate_bound(k, B, B, rho, **asked) for k in range(1, 3 * p + 1)]
    assert np.all(error <= np.array(bounds) * (1 + 1e-9) + 1e-14 * problem.objective(np.zeros(p)))


def test_the_ratio_of_norms_is_taken_within_blocks():
    X = np.array([[1.0, 0.0, 5.0, 0.0, 3.0], [0.0, 4.0, 0.0, 0.0, 0.0]])
    assert norm_ratio(X, bg.Partition([0, 0, 1, 1, 1], 2)) == 4
    assert norm_ratio(X, bg.Partition([0, 1, 2, 3, 2], 4)) == pytest.approx(5 / 3)  # block 3 holds the empty column
    with pytest.raises(ValueError, match="X has 5 features, the partition has 2"):
        norm_ratio(X, bg.Partition([0, 1], 2))


def test_the_rule_of_steps_needs_the_ratio_of_norms():
    with pytest.raises(ValueError, match="greedy_rule='step' needs norm_ratio"):
        rate_bound(1, 1, 1, 1.0, radius=1.0, greedy_rule="step")
    with pytest.raises(ValueError, match=r"norm_ratio=0\.5 must be a number of at least 1"):
        rate_bound(1, 1, 1, 1.0, radius=1.0, greedy_rule="step", norm_ratio=0.5)
    with pytest.raises(ValueError, match="greedy_rule='best' is not known; use one of 'gain', 'step'"):
        rate_bound(1, 1, 1, 1.0, radius=1.0, greedy_rule="best")
