"""What docs/errata.md says about the paper, where it can be computed."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

import blockgreedy as bg
from blockgreedy.backends.reference import accept, update
from blockgreedy.partitions.theory import epsilon, rho_block
from blockgreedy.solvers.options import FamilyOptions

ADD = {"update": "add"}


def test_1_subtracted_steps_raise_the_objective():
    rng = np.random.default_rng(0)
    problem = bg.Problem(rng.normal(size=(20, 5)), rng.normal(size=20), alpha=0.01)
    w, options = np.zeros(5), FamilyOptions(1, 1, **ADD)
    added = update(problem, w, accept(problem, w, np.arange(5), options), options)
    assert problem.objective(added) < problem.objective(w) < problem.objective(-added)


def test_2_the_largest_step_is_not_the_largest_descent_where_a_weight_changes_its_sign():
    """Two orthogonal columns of norm 1, λ = 1: a step of 1.1 from 0, and one of −1 from 0.5 to −0.5."""
    n = 2  # the loss is a mean: targets and alpha are such that β is 1/2 and the gradients are −2.1/2 and 2/2
    problem = bg.Problem(np.eye(n), np.array([2.1, 0.5 - 2.0]), alpha=1 / n)
    w = np.array([0.0, 0.5])
    chosen = {}
    for rule in ("gain", "step"):
        options = FamilyOptions(1, 1, greedy_rule=rule, **ADD)
        (chosen[rule],) = accept(problem, w, np.arange(n), options)
        after = update(problem, w, [chosen[rule]], options)
        descent = problem.objective(w) - problem.objective(after)
        eta = after[chosen[rule]] - w[chosen[rule]]
        bracket = 2 * 1.0 * 0.5 if rule == "gain" else 0.0  # 2λ|w| for the step that crosses 0
        assert eta == pytest.approx(-1.0 if rule == "gain" else 1.1)
        assert descent == pytest.approx((eta**2 / 2 + bracket) / n)
    assert chosen == {"gain": 1, "step": 0}


def blocks_of_algorithm_2(p, B):
    """(blocks whose seed is looked for in the empty set, size of the last block), as Algorithm 2 is printed."""
    left, size, without_seed = p, -(-p // B), 0
    for _ in range(B - 1):
        without_seed += left == 0
        left -= min(size, left)
    return without_seed, left


def test_4_algorithm_2_as_printed_runs_out_of_features():
    assert blocks_of_algorithm_2(40, 32) == (11, 0)  # of blocks 1 to 31, those from 21 on
    for p, B in itertools.product(range(1, 60), range(2, 40)):
        if p >= B:
            without_seed, last = blocks_of_algorithm_2(p, B)
            assert (without_seed > 0) == ((B - 2) * -(-p // B) >= p)
            assert (last == 0) == ((B - 1) * -(-p // B) >= p)
    assert bg.make_partition(np.eye(40), n_blocks=32, kind="clustered").sizes.min() == 1


def test_5_a_seed_can_miss_its_own_block_unless_columns_have_norm_1():
    X = np.array([[0.1, 5.0, 0.0, 0.0], [0.1, 0.0, 5.0, 0.0], [0.1, 0.0, 0.0, 1.0]])
    raw = bg.make_partition(X, n_blocks=2, kind="clustered").block_of
    assert (raw[0], raw[1], raw[2]) == (1, 0, 0)
    scaled = bg.make_partition(X / np.linalg.norm(X, axis=0), n_blocks=2, kind="clustered").block_of
    assert scaled[0] == 0


def test_7_there_are_20_ways_to_put_6_features_into_2_numbered_blocks_of_3():
    ways = {labels for labels in itertools.product((0, 1), repeat=6) if sum(labels) == 3}
    assert len(ways) == math.factorial(6) / math.factorial(3) ** 2 == 20
    assert math.factorial(6) / (6 / 2) ** 2 == 80


def test_9_columns_of_unit_variance_have_products_of_n_times_the_correlations():
    X = np.random.default_rng(1).normal(size=(30, 4))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(X.T @ X / 30, np.corrcoef(X.T), atol=1e-12)


def test_14_the_recurrence_of_the_proof_solves_with_a_factor_of_1():
    for c, start in itertools.product((1.0, 3.0, 100.0), (0.01, 0.5, 0.999)):
        error = start * c
        for k in range(1, 200):
            error -= error**2 / c
            assert error <= c / (k + 1 / start)


def test_15_single_iterations_can_raise_the_objective_although_epsilon_is_below_1():
    B, P, product = 10, 3, 0.75
    gram = np.eye(B)
    gram[:3, :3] = (1 - product) * np.eye(3) + product
    X = np.linalg.cholesky(gram).T
    problem = bg.Problem(X, np.linalg.solve(X.T, np.ones(B)), alpha=0.0)  # all gradients equal
    partition = bg.Partition(np.arange(B), B)
    assert epsilon(P, B, rho_block(X, partition).exact.value) == pytest.approx(1 / 3)
    w, options = np.zeros(B), FamilyOptions(B, P, **ADD)
    objective = {
        chosen: problem.objective(update(problem, w, list(chosen), options))
        for chosen in itertools.combinations(range(B), P)
    }
    assert objective[0, 1, 2] > problem.objective(w) > np.mean(list(objective.values()))


def test_23_epsilon_is_at_most_p_minus_1_times_the_largest_product_across_blocks():
    rng = np.random.default_rng(2)
    for _ in range(20):
        X = rng.normal(size=(15, 8))
        X /= np.linalg.norm(X, axis=0)
        partition = bg.make_partition(X, n_blocks=4, seed=int(rng.integers(100)))
        across = partition.block_of[:, None] != partition.block_of[None, :]
        largest = np.max(np.abs(X.T @ X)[across])
        rho = rho_block(X, partition).exact.value
        for P in range(1, 5):
            assert epsilon(P, 4, rho) <= (P - 1) * largest + 1e-12


def test_points_are_numbered_and_those_that_are_tested_say_the_same():
    page = (Path(__file__).parent.parent / "docs" / "errata.md").read_text(encoding="utf-8")
    numbers = [int(line[2:].split(".")[0]) for line in page.splitlines() if line.startswith("**")]
    assert numbers == list(range(1, len(numbers) + 1))
    tested = [int(name.split("_")[1]) for name in globals() if name.startswith("test_") and name[5].isdigit()]
    assert set(tested) <= set(numbers)
    for words in ("p = 40 and B = 32", "20 blocks take all", "20 or 10; printed is 80", "products 0.75", "ε is 1/3"):
        assert words in page
