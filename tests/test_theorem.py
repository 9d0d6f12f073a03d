"""Theorem 1 and the inequality behind it, with every random choice enumerated: no averages, no luck."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import blockgreedy as bg
from blockgreedy.backends.reference import accept, block_greedy
from blockgreedy.partitions.theory import epsilon, max_safe_blocks_per_iter, norm_ratio, rate_bound, rho_block
from blockgreedy.solvers.options import FamilyOptions
from conftest import LOSSES, random_targets


def unit_design(rng, n, p, common=0.5):
    """Correlated columns of norm 1."""
    X = rng.normal(size=(n, p)) + common * rng.normal(size=(n, 1))
    return X / np.linalg.norm(X, axis=0)


def proposed_steps(problem, w, members, options):
    """The step of each block's best proposal, as a vector over all features."""
    steps = []
    for block in members:
        step = np.zeros(problem.n_features)
        for j in accept(problem, w, block, options):
            curvature = problem.loss.curvature_bound / problem.n_samples * np.sum(problem.X[:, j] ** 2)
            one = problem.penalty.at([j])
            step[j] = one.prox(w[[j]], problem.gradient(w)[[j]], np.array([curvature]))[0] - w[j]
        steps.append(step)
    return np.array(steps)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(8))
def test_expected_descent_of_one_step_is_at_least_what_the_proof_says(loss, seed):
    """E f(w') − f(w) ≤ −(1−ε)·P·β/(2B)·‖η‖²_{∞,2}, over all subsets of P blocks; the mean loss has β = sup ℓ″/n."""
    rng = np.random.default_rng(seed)
    n, p, B = 20, 12, 4
    X, y = unit_design(rng, n, p, common=rng.choice([0.0, 0.5, 2.0])), random_targets(rng, n, loss)
    problem = bg.Problem(X, y, loss=loss, alpha=1.0)
    problem = problem.with_alpha(rng.choice([0.0, 0.01, 0.3]) * problem.alpha_max)
    partition = bg.make_partition(X, n_blocks=B, seed=seed)
    members = [partition.members(b) for b in range(B)]
    rho = rho_block(X, partition).exact.value
    w = rng.normal(size=p) * (rng.random(p) < 0.5) * rng.choice([0.1, 3.0])
    beta = problem.loss.curvature_bound / n
    for P in range(1, B + 1):
        steps = proposed_steps(problem, w, members, FamilyOptions(B, P, update="add", greedy_rule="step"))
        changes = [
            problem.objective(w + steps[list(chosen)].sum(axis=0)) - problem.objective(w)
            for chosen in itertools.combinations(range(B), P)
        ]
        promised = -(1 - epsilon(P, B, rho)) * P * beta / (2 * B) * np.sum(steps**2)
        assert np.mean(changes) <= promised + 1e-12 * problem.objective(w)


def test_the_inequality_is_an_equality_for_two_copies_of_a_column_under_squared_loss():
    x = np.array([0.6, 0.8])
    problem = bg.Problem(np.stack([x, x], axis=1), np.array([1.0, 2.0]), alpha=0.0)
    partition = bg.Partition(np.arange(2), 2)
    rho = rho_block(problem.X, partition).exact.value
    w = np.array([0.3, -0.1])
    options = FamilyOptions(2, 2, update="add", greedy_rule="step")
    steps = proposed_steps(problem, w, [np.array([0]), np.array([1])], options)
    change = problem.objective(w + steps.sum(axis=0)) - problem.objective(w)
    assert np.sum(steps**2) > 0.1
    assert epsilon(2, 2, rho) == pytest.approx(1.0)
    assert change == pytest.approx(0.0, abs=1e-15)


def every_course(problem, members, options, n_iter):
    """(mean objective after each iteration over all courses, largest ‖w − w*‖₁ on any of them)."""
    minimiser = np.linalg.lstsq(np.asarray(problem.X), problem.y, rcond=None)[0]
    points, means, radius = [np.zeros(problem.n_features)], [], 0.0
    for _ in range(n_iter):
        following = []
        for w in points:
            radius = max(radius, float(np.abs(w - minimiser).sum()))
            steps = proposed_steps(problem, w, members, options)
            choices = itertools.combinations(range(options.n_blocks), options.blocks_per_iter)
            following += [w + steps[list(chosen)].sum(axis=0) for chosen in choices]
        points = following
        means.append(float(np.mean([problem.objective(w) for w in points])))
    radius = max([radius, *(float(np.abs(w - minimiser).sum()) for w in points)])
    return np.array(means), radius, problem.objective(minimiser)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("P", [1, 2])
def test_theorem_1_bounds_the_expected_error_over_all_courses_of_least_squares(seed, P):
    rng = np.random.default_rng(100 + seed)
    X, B = unit_design(rng, 15, 9, common=0.3), 3
    problem = bg.Problem(X, rng.normal(size=15), alpha=0.0)
    partition = bg.make_partition(X, n_blocks=B, seed=seed)
    rho = rho_block(X, partition).exact.value
    assert epsilon(P, B, rho) < 1
    options = FamilyOptions(B, P, update="add", greedy_rule="step")
    means, radius, least = every_course(problem, [partition.members(b) for b in range(B)], options, n_iter=5)
    rule = {"greedy_rule": "step", "norm_ratio": 1.0}
    bounds = [rate_bound(k, P, B, rho, radius=radius, smoothness=1 / 15, **rule) for k in range(1, 6)]
    assert np.all(means - least <= bounds)
    assert np.all(np.diff(means) < 0)


@pytest.mark.parametrize("seed", range(3))
def test_corollary_bounds_the_error_of_thread_greedy_where_rho_block_is_below_2(seed):
    rng = np.random.default_rng(200 + seed)
    B, n_iter = 4, 300
    X = np.repeat(rng.normal(size=(200, B)), 3, axis=1) + 0.3 * rng.normal(size=(200, 3 * B))
    X /= np.linalg.norm(X, axis=0)
    problem = bg.Problem(X, X @ rng.normal(size=3 * B), alpha=0.0)
    partition = bg.make_partition(X, n_blocks=B, kind="contiguous")  # the groups of like columns
    rho = rho_block(X, partition).exact.value
    assert rho < 2
    assert max_safe_blocks_per_iter(B, rho) == B
    settings = {"update": "add", "greedy_rule": "step"}
    solution = bg.solve(
        problem, "thread-greedy", partition=partition, tol=0, max_iter=n_iter, trace_iters=1, **settings
    )
    minimiser = np.linalg.lstsq(X, problem.y, rcond=None)[0]
    course = block_greedy(problem, partition.block_of, FamilyOptions(B, B, **settings))
    iterates = [np.zeros(3 * B), *(w for w, _ in itertools.islice(course, n_iter))]
    radius = max(float(np.abs(w - minimiser).sum()) for w in iterates)
    error = solution.trace["objective"] - problem.objective(minimiser)
    k = solution.trace["iteration"].astype(int)
    rule = {"greedy_rule": "step", "norm_ratio": 1.0}
    bounds = [rate_bound(i, B, B, rho, radius=radius, smoothness=1 / 200, **rule) for i in k[1:]]
    assert len(k) > 10
    assert np.all(error[1:] <= np.array(bounds) + 1e-14)
    assert bounds[-1] < error[0]  # it says something


def orthogonal_columns(rng, norms):
    return np.linalg.qr(rng.normal(size=(len(norms), len(norms))))[0] * norms


def course_of(problem, partition, rule, n_iter):
    """(error after each iteration of all blocks, R₁ in the weights of columns at norm 1), without regularisation."""
    X = np.asarray(problem.X)
    norms, minimiser = np.linalg.norm(X, axis=0), np.linalg.lstsq(X, problem.y, rcond=None)[0]
    B = partition.n_blocks
    course = block_greedy(problem, partition.block_of, FamilyOptions(B, B, update="add", greedy_rule=rule))
    iterates = [np.zeros(len(norms)), *(w for w, _ in itertools.islice(course, n_iter))]
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


def test_a_run_beyond_the_safe_p_diverges_and_one_within_it_does_not():
    """Eight copies of a column in eight blocks: rho_block is 8, and only P = 1 is safe."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(30, 1)), 8, axis=1)
    problem = bg.Problem(X, X[:, 0] + 0.1 * rng.normal(size=30), alpha=1e-3)
    partition = bg.Partition(np.arange(8), 8)
    safe = max_safe_blocks_per_iter(8, rho_block(X, partition).upper.value)
    assert safe == 1
    assert bg.solve(problem, "block-greedy", partition=partition, blocks_per_iter=safe, update="add").status == (
        "converged"
    )
    with pytest.warns(bg.ConvergenceRiskWarning, match="Surely safe: blocks_per_iter=1;"):
        beyond = bg.solve(problem, "block-greedy", partition=partition, blocks_per_iter=4, update="add")
    assert beyond.status == "diverged"


def equal_weights(m):
    """(problem, one block): m orthogonal columns of norm 1 of equal weights, the hardest for greedy steps."""
    X = np.eye(m)
    return bg.Problem(X, np.ones(m), alpha=0.0), bg.Partition(np.zeros(m, dtype=int), 1)


def test_the_bound_is_within_a_factor_of_17_of_a_run_that_reaches_it():
    """Half of the weights are found after m/2 iterations: error (m/2)/(2n), bound 2·m²/(n·m/2), 16 times as much."""
    m = 20
    problem, partition = equal_weights(m)
    error, radius = course_of(problem, partition, "gain", m // 2)
    bound = rate_bound(m // 2, 1, 1, 1.0, radius=radius, smoothness=1 / m)
    assert error[-1] == pytest.approx(0.25)
    assert bound / 17 < error[-1] <= bound


def test_the_bound_needs_the_greedy_choice(monkeypatch):
    """A rule that always takes the first feature of a block is not covered, and the bound shows it."""
    m = 20
    problem, partition = equal_weights(m)
    asked = {"radius": float(m), "smoothness": 1 / m}
    greedy, _ = course_of(problem, partition, "gain", 8 * m)
    assert greedy[-1] <= rate_bound(8 * m, 1, 1, 1.0, **asked)
    monkeypatch.setattr("blockgreedy.backends.reference.accept", lambda problem, w, block, options: [int(block[0])])
    first, _ = course_of(problem, partition, "gain", 8 * m)
    assert first[-1] > rate_bound(8 * m, 1, 1, 1.0, **asked)
