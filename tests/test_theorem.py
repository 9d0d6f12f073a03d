"""Theorem 1 and the inequality behind it, with every random choice enumerated: no averages, no luck.

Where a bound can be reached, it is: tools/mutate_theorem.py shows that these tests fail for a bound that is 20 times
smaller, for half of epsilon and for an arbitrary choice within blocks.
"""

from __future__ import annotations

import itertools
import math
import sys

import numpy as np
import pytest

import blockgreedy as bg
from blockgreedy.backends.reference import accept, block_greedy, update
from blockgreedy.partitions.theory import (
    epsilon,
    max_safe_blocks_per_iter,
    rate_bound,
    rho_block,
    safe_step_scale,
    step_scale_limit,
)
from blockgreedy.solvers.options import FamilyOptions
from conftest import LOSSES, random_targets


def unit_design(rng, n, p, common=0.5):
    """Correlated columns of norm 1."""
    X = rng.normal(size=(n, p)) + common * rng.normal(size=(n, 1))
    return X / np.linalg.norm(X, axis=0)


def next_points(problem, w, partition, options):
    """The weights after one iteration of the reference, for each subset of P blocks."""
    accepted = [accept(problem, w, partition.members(b), options) for b in range(options.n_blocks)]
    subsets = itertools.combinations(accepted, options.blocks_per_iter)
    return [update(problem, w, list(itertools.chain(*chosen)), options) for chosen in subsets]


def change_by_reference(problem, w, partition, options):
    """Mean change of the objective by one iteration, over all subsets of P blocks."""
    after = [problem.objective(point) for point in next_points(problem, w, partition, options)]
    return float(np.mean(after)) - problem.objective(w)


def change_by_core(problem, w, partition, options):
    """The same by the core, which draws the subsets itself: seeds are tried until each was drawn."""
    changes = {}
    for seed in range(100):
        solution = bg.solve(
            problem,
            "block-greedy",
            partition=partition,
            blocks_per_iter=options.blocks_per_iter,
            update=options.update,
            greedy_rule=options.greedy_rule,
            step_scale=options.step_scale,
            coef_init=w,
            max_iter=1,
            tol=0,
            on_divergence="continue",
            seed=seed,
        )
        moved = frozenset(partition.block_of[np.flatnonzero(solution.coef != w)].tolist())
        assert len(moved) == options.blocks_per_iter
        changes[moved] = problem.objective(solution.coef) - problem.objective(w)
        if len(changes) == math.comb(options.n_blocks, options.blocks_per_iter):
            return float(np.mean(list(changes.values())))
    raise AssertionError("100 seeds did not draw every subset")


BACKENDS = {"reference": change_by_reference, "core": change_by_core}


def largest_steps(problem, w, partition, scale=1.0):
    """The largest proposed |step| of each block for columns of norm 1, from their definition: a soft threshold."""
    curvature = problem.loss.curvature_bound / problem.n_samples / scale
    moved = w - problem.gradient(w) / curvature
    steps = np.sign(moved) * np.maximum(np.abs(moved) - problem.alpha / curvature, 0) - w
    return np.array([np.max(np.abs(steps[partition.members(b)])) for b in range(partition.n_blocks)])


def promised_change(problem, w, partition, P, rho, scale=1.0):
    """−P·β/B·(1/s − (1+ε)/2)·‖η‖²_{∞,2}, the paper's −(1−ε)·P·β/(2B)·‖η‖² at s = 1; of a mean loss β = sup ℓ″/n."""
    B, beta = partition.n_blocks, problem.loss.curvature_bound / problem.n_samples
    progress = 1 / scale - (1 + epsilon(P, B, rho)) / 2
    return -P * beta / B * progress * np.sum(largest_steps(problem, w, partition, scale) ** 2)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(8))
def test_expected_descent_of_one_step_is_at_least_what_the_proof_says(loss, seed):
    rng = np.random.default_rng(seed)
    n, p, B = 20, 12, 4
    X, y = unit_design(rng, n, p, common=rng.choice([0.0, 0.5, 2.0])), random_targets(rng, n, loss)
    problem = bg.Problem(X, y, loss=loss, alpha=1.0)
    problem = problem.with_alpha(rng.choice([0.0, 0.01, 0.3]) * problem.alpha_max)
    partition = bg.make_partition(X, n_blocks=B, seed=seed)
    rho = rho_block(X, partition).exact.value
    w = rng.normal(size=p) * (rng.random(p) < 0.5) * rng.choice([0.1, 3.0])
    rounding = 1e-12 * problem.objective(w)
    for P in range(1, B + 1):
        for scale in (1.0, 0.5, safe_step_scale(P, B, rho)):
            options = FamilyOptions(B, P, update="add", greedy_rule="step", step_scale=scale)
            change = change_by_reference(problem, w, partition, options)
            assert change <= promised_change(problem, w, partition, P, rho, scale) + rounding
        # At the safe scale the bound is the sum of the gains; the largest is at least that of the largest step.
        change = change_by_reference(problem, w, partition, FamilyOptions(B, P, update="add", step_scale=scale))
        assert change <= promised_change(problem, w, partition, P, rho, scale) + rounding


def equally_correlated(B, product, alpha, n_others=3):
    """(problem, partition): columns of norm 1 with the same product and the same gradient, one in each block.

    Each block has other columns besides, orthogonal to everything, which have nothing to gain. The steps at w = 0 are
    then all equal, an eigenvector of the largest eigenvalue 1 + (B−1)·product of the columns' matrix of products; so
    every step of the proof is an equality under squared loss, and epsilon is (P−1)·product.
    """
    gram = (1 - product) * np.eye(B) + product
    size = 1 + n_others
    X = np.zeros((B * size, B * size))
    X[:B, ::size] = np.linalg.cholesky(gram).T
    X[np.arange(B, B * size), np.delete(np.arange(B * size), np.s_[::size])] = 1
    problem = bg.Problem(X, X[:, ::size] @ np.linalg.solve(gram, np.ones(B)), alpha=alpha / len(X))
    return problem, bg.make_partition(X, n_blocks=B, kind="contiguous")


@pytest.mark.filterwarnings("ignore::blockgreedy.ConvergenceRiskWarning")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("scale", [1.0, 0.3, 1.5])
@pytest.mark.parametrize("alpha", [0.0, 0.25])
@pytest.mark.parametrize(("B", "product"), [(2, 0.9), (4, 0.15), (4, 0.6)])
def test_the_expected_descent_of_equally_correlated_columns_is_what_the_proof_says(backend, scale, alpha, B, product):
    problem, partition = equally_correlated(B, product, alpha)
    rho = rho_block(problem.X, partition).exact.value
    w = np.zeros(problem.n_features)
    for P in range(1, B + 1):
        change = BACKENDS[backend](problem, w, partition, FamilyOptions(B, P, update="add", step_scale=scale))
        progress = scale - (1 + (P - 1) * product) * scale**2 / 2
        assert change == pytest.approx(-progress * P / len(problem.X) * (1 - alpha) ** 2, rel=1e-12, abs=1e-15)
        promised = promised_change(problem, w, partition, P, rho, scale)
        assert change == pytest.approx(promised, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("product", [0.3, 0.7, 0.95])
def test_the_safe_scale_is_the_best_for_equally_correlated_columns_and_the_limit_is_sharp(product):
    B = 4
    problem, partition = equally_correlated(B, product, alpha=0.0)
    rho, w = rho_block(problem.X, partition).exact.value, np.zeros(problem.n_features)

    def change(P, scale):
        return change_by_reference(problem, w, partition, FamilyOptions(B, P, update="add", step_scale=scale))

    for P in range(1, B + 1):
        best, limit = safe_step_scale(P, B, rho), step_scale_limit(P, B, rho)
        assert change(P, best) < min(change(P, 0.99 * best), change(P, 1.01 * best))
        assert change(P, 0.999 * limit) < 0 < change(P, 1.001 * limit)


@pytest.mark.parametrize("product", [0.3, 0.45, 0.7, 0.95])
def test_the_safe_p_is_the_last_that_lowers_the_objective_of_equally_correlated_columns(product):
    B = 5
    problem, partition = equally_correlated(B, product, alpha=0.0)
    safe = max_safe_blocks_per_iter(B, rho_block(problem.X, partition).exact.value)
    w = np.zeros(problem.n_features)
    falls = [
        change_by_reference(problem, w, partition, FamilyOptions(B, P, update="add")) < 0 for P in range(1, B + 1)
    ]
    assert falls == [safe >= P for P in range(1, B + 1)]


def test_two_copies_of_a_column_undo_each_others_progress():
    x = np.array([0.6, 0.8])
    problem = bg.Problem(np.stack([x, x], axis=1), np.array([1.0, 2.0]), alpha=0.0)
    partition = bg.Partition(np.arange(2), 2)
    rho, w = rho_block(problem.X, partition).exact.value, np.array([0.3, -0.1])
    assert np.sum(largest_steps(problem, w, partition) ** 2) > 0.1
    assert promised_change(problem, w, partition, 2, rho) == pytest.approx(0.0, abs=1e-15)
    assert change_by_reference(problem, w, partition, FamilyOptions(2, 2, update="add")) == pytest.approx(
        0.0, abs=1e-15
    )


def every_course(problem, partition, options, n_iter, minimiser):
    """(mean error after each iteration over all courses, the largest distance from the minimiser on any of them)."""
    points, means, radius = [np.zeros(problem.n_features)], [], 0.0
    for _ in range(n_iter):
        following = [after for w in points for after in next_points(problem, w, partition, options)]
        radius = max([radius, *(distance(problem, w - minimiser, partition) for w in points + following)])
        points = following
        means.append(float(np.mean([problem.objective(w) for w in points])))
    return np.array(means) - problem.objective(minimiser), radius


def distance(problem, difference, partition):
    """The norm of the proof, of the weights that columns of norm 1 have: L1 within blocks, L2 across them."""
    scaled = np.abs(difference) * np.linalg.norm(np.asarray(problem.X), axis=0)
    return float(np.sqrt(np.sum(np.bincount(partition.block_of, scaled) ** 2)))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("P", [1, 2])
def test_theorem_1_bounds_the_expected_error_over_all_courses_of_least_squares(seed, P):
    rng = np.random.default_rng(100 + seed)
    X, B = unit_design(rng, 15, 9, common=0.3), 3
    problem = bg.Problem(X, rng.normal(size=15), alpha=0.0)
    partition = bg.make_partition(X, n_blocks=B, seed=seed)
    rho = rho_block(X, partition).exact.value
    assert epsilon(P, B, rho) < 1
    minimiser = np.linalg.lstsq(X, problem.y, rcond=None)[0]
    options = FamilyOptions(B, P, update="add", greedy_rule="step")
    error, radius = every_course(problem, partition, options, 5, minimiser)
    rule = {"greedy_rule": "step", "norm_ratio": 1.0}
    bounds = [rate_bound(k, P, B, rho, radius=radius, smoothness=1 / 15, **rule) for k in range(1, 6)]
    assert np.all(error <= bounds)
    assert np.all(np.diff(error) < 0)


def slowest(B, per_block, n_rounds, n_others=0):
    """(problem, partition) that reaches Theorem 1: Huber's loss, an orthogonal design, gradients all equal.

    Each of per_block features of each of B blocks has to go from 0 to 1 in steps of delta, so that after n_rounds
    steps for each feature half of the way is still to go, on the straight part of the loss: convexity gives nothing
    away. No function is slower for gradient descent with steps of 1/β (Drori and Teboulle 2014). The n_others further
    features of each block have nothing to gain.
    """
    block = np.r_[np.ones(per_block), np.zeros(n_others)]
    y = np.tile(block, B)
    problem = bg.Problem(np.eye(len(y)), y, loss="huber", huber_delta=1 / (2 * n_rounds + 1), alpha=0.0)
    return problem, bg.make_partition(problem.X, n_blocks=B, kind="contiguous")


@pytest.mark.parametrize(
    ("B", "P", "per_block", "n_rounds"), [(1, 1, 6, 10), (1, 1, 1, 50), (5, 5, 2, 10), (3, 1, 1, 2), (4, 2, 1, 2)]
)
def test_theorem_1_is_within_a_factor_of_12_of_runs_of_any_b_and_p(B, P, per_block, n_rounds):
    """After N rounds over m features of B blocks: error at least B·m·β/(4N+2), bound 2·β·B·m/N, 8 + 4/N of it."""
    problem, partition = slowest(B, per_block, n_rounds)
    n = problem.n_samples
    n_iter = n_rounds * per_block * B // P
    error, radius = every_course(problem, partition, FamilyOptions(B, P, update="add"), n_iter, problem.y)
    assert radius == pytest.approx(per_block * np.sqrt(B))
    bounds = [rate_bound(k, P, B, 1.0, radius=radius, smoothness=1 / n) for k in range(1, n_iter + 1)]
    assert np.all(error <= bounds)
    expected = B * per_block / n / (4 * n_rounds + 2)
    assert error[-1] >= expected * (1 - 1e-12)
    assert bounds[-1] == pytest.approx((8 + 4 / n_rounds) * expected)


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
    iterates = [np.zeros(3 * B), *(w for w, _, _ in itertools.islice(course, n_iter))]
    radius = max(float(np.abs(w - minimiser).sum()) for w in iterates)
    error = solution.trace["objective"] - problem.objective(minimiser)
    k = solution.trace["iteration"].astype(int)
    rule = {"greedy_rule": "step", "norm_ratio": 1.0}
    bounds = [rate_bound(i, B, B, rho, radius=radius, smoothness=1 / 200, **rule) for i in k[1:]]
    assert len(k) > 10
    assert np.all(error[1:] <= np.array(bounds) + 1e-14)
    assert bounds[-1] < error[0]  # it says something


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


def core_errors(problem, partition, n_iter, minimiser):
    """Errors of the core's thread-greedy after each iteration, the start included; it stops where nothing is left."""
    settings = {"partition": partition, "update": "add", "on_divergence": "continue"}
    solution = bg.solve(problem, "thread-greedy", tol=0, max_iter=n_iter, trace_iters=1, **settings)
    error = solution.trace["objective"] - problem.objective(minimiser)
    np.testing.assert_array_equal(solution.trace["iteration"], np.arange(len(error)))
    assert len(error) == n_iter + 1 or error[-1] == 0
    return np.pad(error, (0, n_iter + 1 - len(error)))


def reference_errors(problem, partition, n_iter, minimiser):
    options = FamilyOptions(partition.n_blocks, partition.n_blocks, update="add")
    error, _ = every_course(problem, partition, options, n_iter, minimiser)
    return np.r_[problem.objective(np.zeros(problem.n_features)) - problem.objective(minimiser), error]


ERRORS = {"reference": reference_errors, "core": core_errors}


@pytest.mark.parametrize("backend", ERRORS)
def test_theorem_1_with_an_epsilon_near_1_is_within_a_factor_of_12_of_a_run(backend):
    """The steps of all blocks overshoot alike: each iteration multiplies the error by ε², and the bound is 4e times
    as large as the error after 1/(2(1−ε)) iterations, in the limit of ε → 1."""
    B, product = 2, 0.98
    problem, partition = equally_correlated(B, product, alpha=0.0)
    minimiser = np.linalg.solve(np.asarray(problem.X), problem.y)
    rho = rho_block(problem.X, partition).exact.value
    error = ERRORS[backend](problem, partition, 25, minimiser)
    np.testing.assert_allclose(error, error[0] * (product**2) ** np.arange(26), rtol=1e-9)
    asked = {"radius": distance(problem, minimiser, partition), "smoothness": 1 / problem.n_samples}
    bounds = np.array([rate_bound(k, B, B, rho, **asked) for k in range(1, 26)])
    assert np.all(error[1:] <= bounds)
    assert bounds[-1] < 12 * error[-1]


def one_of_twenty(backend, n_iter=80):
    """(errors, bounds) where one feature of each block has something to gain, and 19 have not."""
    problem, partition = slowest(2, 1, 4, n_others=19)
    asked = {"radius": np.sqrt(2), "smoothness": 1 / problem.n_samples}
    bounds = np.array([rate_bound(k, 2, 2, 1.0, **asked) for k in range(1, n_iter + 1)])
    return ERRORS[backend](problem, partition, n_iter, problem.y)[1:], bounds


@pytest.mark.parametrize("backend", ERRORS)
def test_theorem_1_holds_for_the_greedy_choice_among_many_features(backend):
    error, bounds = one_of_twenty(backend)
    assert np.all(error <= bounds)


def test_theorem_1_does_not_hold_for_the_last_feature_of_each_block(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "accept", lambda problem, w, block, options: [int(block[-1])])
    error, bounds = one_of_twenty("reference")
    assert error[-1] > bounds[-1]
