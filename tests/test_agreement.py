"""The C++ core against the executable specification, iteration by iteration."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.backends import reference
from blockgreedy.backends.cpu import block_greedy
from blockgreedy.problem.core_problem import CoreProblem
from blockgreedy.solvers.options import FamilyOptions
from conftest import LOSSES, UPDATES, random_design, random_problem

P_FEATURES = 40
PENALTIES = {
    "l1": {},
    "elastic net": {"l2": 0.05},
    "weights": {"penalty_weights": np.tile([0.0, 0.5, 1.0, 2.0, np.inf], 8)},
    "positive": {"positive": True},
    "box": {"lower": -0.05, "upper": np.tile([0.1, np.inf], 20)},
    "everything": {"penalty_weights": np.tile([0.5, 1.0, 2.0, np.inf], 10), "l2": 0.02, "lower": -0.1, "upper": 0.2},
}
N_ROWS = 60


def rows_of(rng):
    """Problems whose rows are weighted, shifted and given an intercept: a sixth of the rows has no weight."""
    weights = rng.uniform(0.2, 3.0, N_ROWS) * (np.arange(N_ROWS) % 6 > 0)
    offset = rng.normal(0.3, 0.7, N_ROWS)
    return {
        "weights": {"sample_weight": weights},
        "intercept": {"fit_intercept": True},
        "offset": {"offset": offset},
        "all three": {"sample_weight": weights, "fit_intercept": True, "offset": offset},
    }


ROWS = ["weights", "intercept", "offset", "all three"]
SIZES = [(1, 1, 1), (1, 1, 3), (8, 3, 1), (8, 8, 1), (8, 8, 3), (40, 1, 1), (40, 7, 1), (13, 5, 2)]


def relative_difference(a, b):
    return np.max(np.abs(a - b)) / max(np.max(np.abs(a)), 1e-300)


def assert_same_iterates(problem, options, n_iter=50, n_threads=1, tolerance=1e-12, kind="random", settles=False):
    partition = bg.make_partition(problem.X, n_blocks=options.n_blocks, kind=kind, seed=1)
    engine = block_greedy(CoreProblem(problem, n_threads), partition, options)
    specified = reference.block_greedy(problem, partition.block_of, options)
    before = np.zeros(problem.n_features)
    for iteration in range(n_iter):
        w, intercept, accepted = next(specified)
        largest_step, before = np.max(np.abs(w - before)), w
        if not np.all(np.isfinite(w)) or np.max(np.abs(w)) > 1e6:
            break  # diverging: replayed step by step in a test of its own
        engine.run(1, np.inf)
        if settles and engine.accepted != accepted and largest_step < 1e-9 * np.max(np.abs(w)):
            break  # at the minimum: which of the last steps is the better one is decided by rounding
        assert engine.accepted == accepted, f"iteration {iteration}"
        assert relative_difference(w, engine.coef) < tolerance, f"iteration {iteration}"
        scale = max(1.0, np.max(np.abs(w)))
        assert abs(intercept - engine.intercept) < tolerance * scale, f"iteration {iteration}"
    assert iteration >= 5


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("size", SIZES, ids=lambda s: "B{}-P{}-k{}".format(*s))
def test_fifty_iterations_agree_over_blocks_updates_and_losses(rng, update, loss, size):
    problem = random_problem(rng, loss, 0.1)
    n_blocks, blocks_per_iter, per_block = size
    if update in ("add", "line-search") and blocks_per_iter * per_block > 3:
        problem = random_problem(rng, loss, 0.1, density=0.05)  # nearly orthogonal: concurrent steps converge
    assert_same_iterates(problem, FamilyOptions(n_blocks, blocks_per_iter, per_block, update, seed=5))


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_fifty_iterations_agree_over_penalties(rng, update, penalty, loss):
    problem = random_problem(rng, loss, 0.1, density=0.1, **PENALTIES[penalty])
    assert_same_iterates(problem, FamilyOptions(8, 3, 1, update, seed=2))


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("greedy_rule", ["gain", "step"])
@pytest.mark.parametrize("scan", ["slices", "blocks"])
def test_fifty_iterations_agree_over_storage_rules_and_scans(rng, update, dense, dtype, greedy_rule, scan):
    problem = random_problem(rng, "logistic", 0.1, dense=dense, dtype=dtype)
    per_iter = 2 if update in ("add", "line-search") else 6
    options = FamilyOptions(8, per_iter, 1, update, greedy_rule, scan, seed=3)
    assert_same_iterates(problem, options)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scan", ["slices", "blocks"])
@pytest.mark.parametrize("greedy_rule", ["gain", "step"])
@pytest.mark.parametrize("step_scale", [1 / 80, 0.3, 1.5])
def test_fifty_iterations_agree_over_step_scales(rng, loss, scan, greedy_rule, step_scale):
    for size, penalty in (((8, 3, 1), "l1"), ((8, 8, 2), "everything"), ((40, 7, 1), "weights")):
        problem = random_problem(rng, loss, 0.1, density=0.1, **PENALTIES[penalty])
        options = FamilyOptions(*size, "add", greedy_rule, scan, seed=7, step_scale=step_scale)
        assert_same_iterates(problem, options)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("size", [(1, 1, 1), (8, 3, 1), (8, 8, 1), (8, 8, 3), (40, 7, 1)], ids=str)
def test_fifty_iterations_agree_with_weights_intercept_and_offset(rng, update, loss, rows, size):
    density = 0.05 if update in ("add", "line-search") and size[1] * size[2] > 3 else 0.3
    problem = random_problem(rng, loss, 0.1, density=density, **rows_of(rng)[rows])
    assert_same_iterates(problem, FamilyOptions(*size, update, seed=5), settles=update == "sweep" and size[2] > 1)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_twenty_iterations_agree_over_penalties_with_weights_intercept_and_offset(rng, update, penalty, rows, loss):
    problem = random_problem(rng, loss, 0.1, density=0.1, **PENALTIES[penalty], **rows_of(rng)[rows])
    assert_same_iterates(problem, FamilyOptions(8, 3, 1, update, seed=2), n_iter=20)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("greedy_rule", ["gain", "step"])
@pytest.mark.parametrize("scan", ["slices", "blocks"])
@pytest.mark.parametrize("rows", ROWS)
def test_twenty_iterations_agree_over_storage_with_weights_intercept_and_offset(
    rng, update, dense, dtype, greedy_rule, scan, rows
):
    problem = random_problem(rng, "logistic", 0.1, dense=dense, dtype=dtype, **rows_of(rng)[rows])
    for per_iter, per_block in ((2, 1), (2, 3)) if update in ("add", "line-search") else ((6, 1), (8, 3)):
        options = FamilyOptions(8, per_iter, per_block, update, greedy_rule, scan, seed=3)
        assert_same_iterates(problem, options, n_iter=20)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("step_scale", [1 / 80, 0.3, 1.5])
def test_twenty_iterations_agree_over_step_scales_with_weights_intercept_and_offset(rng, loss, rows, step_scale):
    for size, penalty in (((8, 3, 1), "l1"), ((8, 8, 2), "everything"), ((40, 7, 1), "weights")):
        problem = random_problem(rng, loss, 0.1, density=0.1, **PENALTIES[penalty], **rows_of(rng)[rows])
        assert_same_iterates(problem, FamilyOptions(*size, "add", seed=7, step_scale=step_scale), n_iter=20)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_weighted_agreement_holds_on_problems_large_enough_for_threads(rng, loss, dense, n_threads):
    """Rare features meet the bound on their gain, which weights change; some weights are far larger than others."""
    n = 2500
    settings = {"sample_weight": rng.lognormal(0, 2, n), "offset": rng.normal(size=n), "fit_intercept": True}
    problem = random_problem(rng, loss, 0.02, n=n, p=400, density=0.08, dense=dense, **settings)
    assert_same_iterates(problem, FamilyOptions(32, 32, 1, "joint", seed=4), n_iter=12, n_threads=n_threads)


@pytest.mark.parametrize("size", [(32, 32, 1), (32, 32, 4), (5, 5, 1), (400, 90, 1)], ids=str)
@pytest.mark.parametrize("dense", [False, True])
def test_agreement_holds_on_problems_large_enough_for_threads(rng, size, dense):
    """Row slices, cut blocks and both ways of absorbing a joint step come into play."""
    problem = random_problem(rng, "logistic", 0.05, n=2500, p=400, density=0.08, dense=dense)
    assert_same_iterates(problem, FamilyOptions(*size, "joint", seed=4), n_iter=6, n_threads=2)


@pytest.mark.parametrize("kind", ["contiguous", "clustered"])
def test_agreement_holds_for_other_partitions(rng, kind):
    problem = random_problem(rng, "logistic", 0.1)
    assert_same_iterates(problem, FamilyOptions(7, 4, 1, "joint", seed=3), kind=kind)


def test_agreement_holds_for_blocks_of_very_different_sizes(rng):
    problem = random_problem(rng, "squared", 0.05)
    block_of = np.r_[np.zeros(30), [1], np.full(8, 2), [3]].astype(np.int32)[rng.permutation(40)]
    partition = bg.Partition(block_of=block_of, n_blocks=4, kind="custom", seed=None)
    options = FamilyOptions(4, 3, 2, "joint", seed=8)
    engine = block_greedy(CoreProblem(problem, 1), partition, options)
    for (w, _, _), _ in zip(reference.block_greedy(problem, block_of, options), range(50), strict=False):
        engine.run(1, np.inf)
        assert relative_difference(w, engine.coef) < 1e-12


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("loss", LOSSES)
def test_tied_and_duplicated_columns_agree_when_the_accepted_set_is_replayed(rng, update, loss):
    """On ties the order of sums decides: the reference is given the accepted set, and one step is compared."""
    base = random_design(rng, 30, 5).toarray()
    X = sp.csc_array(np.repeat(base, 4, axis=1))
    y = np.where(rng.random(30) < 0.5, -1.0, 1.0)
    problem = bg.Problem(X, y, loss=loss, alpha=0.02)
    partition = bg.make_partition(X, n_blocks=4, kind="random", seed=0)
    options = FamilyOptions(4, 4, 1, update)
    engine = block_greedy(CoreProblem(problem, 1), partition, options)
    w = np.zeros(20)
    for _ in range(30):
        engine.set_weights(w)  # the same start on both sides: diverging runs are compared step by step
        engine.run(1, np.inf)
        expected = reference.update(problem, w, engine.update_order, options, in_given_order=True)
        if np.max(np.abs(expected)) > 1e100:
            break
        assert relative_difference(expected, engine.coef) < 1e-9
        w = engine.coef.copy()


def test_replayed_step_is_the_step_that_was_taken(rng):
    problem = random_problem(rng, "logistic", 0.1)
    partition = bg.make_partition(problem.X, n_blocks=8, kind="random", seed=0)
    model = CoreProblem(problem, 1)
    options = FamilyOptions(8, 8, 1, "joint")
    one, two = block_greedy(model, partition, options), block_greedy(model, partition, options)
    for _ in range(10):
        one.run(1, np.inf)
        two.update_with(one.accepted)
        np.testing.assert_array_equal(one.coef, two.coef)


def test_ties_go_to_the_lowest_index():
    X = sp.csc_array(np.repeat(np.array([[1.0], [-2.0], [0.5]]), 6, axis=1))
    problem = bg.Problem(X, np.array([1.0, -1.0, 2.0]), alpha=0.01)
    for n_blocks, expected in [(1, [0]), (2, [0, 3]), (3, [0, 2, 4])]:
        partition = bg.make_partition(X, n_blocks=n_blocks, kind="contiguous")
        for scan, n_threads in itertools.product(("slices", "blocks"), (1, 2)):
            engine = block_greedy(
                CoreProblem(problem, n_threads), partition, FamilyOptions(n_blocks, n_blocks, scan=scan)
            )
            engine.run(1, np.inf)
            assert engine.accepted == expected


def test_per_block_accepts_the_best_of_each_block_best_first(rng):
    problem = random_problem(rng, "squared", 0.01)
    partition = bg.make_partition(problem.X, n_blocks=4, kind="random", seed=0)
    engine = block_greedy(CoreProblem(problem, 1), partition, FamilyOptions(4, 4, 3))
    engine.run(1, np.inf)
    w, grad = np.zeros(40), problem.gradient(np.zeros(40))
    bound = reference.curvature(problem, np.arange(40))
    gain = problem.penalty.gain(w, problem.penalty.prox(w, grad, bound), grad, bound)
    expected = [j for b in range(4) for j in sorted(partition.members(b), key=lambda j: -gain[j])[:3]]
    assert engine.accepted == expected
