"""The theory's numbers: bounds against enumeration in NumPy, kernels against NumPy, epsilon, the safe P."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import blockgreedy as bg
from blockgreedy import _core
from blockgreedy.partitions.spectrum import UnitColumns, best_of_blocks
from blockgreedy.partitions.theory import (
    epsilon,
    max_safe_blocks_per_iter,
    rate_bound,
    rho_block,
    safe_step_scale,
    spectral_radius,
    step_scale_limit,
)
from blockgreedy.problem.columns import as_columns
from blockgreedy.problem.passes import core_matrix


def unit_columns(X, center):
    """Columns at norm 1 in NumPy; what has no direction is zero."""
    X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    norms = np.linalg.norm(X, axis=0)
    if center:
        X = X - X.mean(axis=0)
    centred = np.linalg.norm(X, axis=0)
    return np.where(centred > 1e-9 * norms, X / np.where(centred > 0, centred, 1), 0.0)


def rho_by_enumeration(X, block_of, n_blocks, center):
    A = unit_columns(X, center)
    members = [np.flatnonzero(block_of == b) for b in range(n_blocks)]
    radii = [np.linalg.norm(A[:, list(S)], 2) ** 2 for S in itertools.product(*members)]
    return max(1.0, *radii)


def partition_of(rng, n_features, n_blocks):
    block_of = np.concatenate([np.arange(n_blocks), rng.integers(n_blocks, size=n_features - n_blocks)])
    return bg.Partition(rng.permutation(block_of), n_blocks)


def awkward_matrix(rng, n, p):
    """Small whole numbers, so that columns are empty, constant, full and copies of each other now and then."""
    X = rng.integers(-3, 4, size=(n, p)) * (rng.random((n, p)) < rng.choice([0.2, 0.6, 1.0], size=p))
    if rng.random() < 0.5:
        X[:, rng.integers(p)] = rng.choice([-2, 1]) * X[:, rng.integers(p)]
    if rng.random() < 0.3:
        X[:, rng.integers(p)] = rng.integers(0, 3)
    return X.astype(np.float64)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 7), st.data())
def test_upper_bounds_are_above_and_lower_bounds_below_what_enumeration_finds(seed, n, p, data):
    n_blocks = data.draw(st.integers(1, p))
    center, sparse, single = (data.draw(st.booleans()) for _ in range(3))
    rng = np.random.default_rng(seed)
    X = awkward_matrix(rng, n, p).astype(np.float32 if single else np.float64)
    partition = partition_of(rng, p, n_blocks)
    exact = rho_by_enumeration(X, partition.block_of, n_blocks, center)
    found = rho_block(sp.csr_array(X) if sparse else X, partition, center=center, y=rng.normal(size=n))
    assert found.exact.value == pytest.approx(exact, rel=1e-9)
    for bound in found.bounds:
        assert bound.kind == "certified"
        assert bound.side != "upper" or bound.value >= exact * (1 - 1e-12), bound
        assert bound.side != "lower" or bound.value <= exact * (1 + 1e-12), bound
    assert found.lower.value <= found.upper.value * (1 + 1e-12)


@pytest.mark.parametrize("center", [False, True])
def test_search_finds_the_exact_value_more_often_than_not(center):
    ratios = []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        X = sp.random_array((30, 20), density=0.3, rng=rng, format="csc")
        found = rho_block(X, partition_of(rng, 20, 4), center=center)
        ratios.append(found["search"].value / found.exact.value)
    assert max(ratios) <= 1
    assert min(ratios) >= 0.85
    assert np.median(ratios) >= 1 - 1e-8


def test_bounds_are_sharp_on_copies_and_on_orthogonal_columns():
    copies = bg.Partition(np.arange(4) % 2, 2)
    found = rho_block(np.ones((5, 4)), copies)
    assert found.exact.value == pytest.approx(2.0)
    assert [bound.value for bound in found.bounds] == pytest.approx([2.0] * len(found.bounds))
    found = rho_block(sp.eye_array(6, format="csc"), bg.Partition(np.arange(6) % 3, 3))
    assert {bound.name: round(bound.value, 6) for bound in found.bounds} == {
        "blocks": 3.0, "rows": 1.0, "weighted rows": 1.0, "exact": 1.0, "search": 1.0,
        "proposition 3": 1.0, "row sum": 1.0, "eigenvalue": 1.0,
    }  # fmt: skip


def test_search_finds_copies_and_near_copies_in_all_blocks_among_many_other_columns():
    """A rare column in every block, beside common ones that point elsewhere."""
    data = bg.data.text_like(400, 600, 25.0, seed=4)
    X = data.X.tolil()
    partition = bg.make_partition(data.X, n_blocks=10, seed=3)
    for b in range(10):
        X[:, partition.members(b)[5]] = 0
        X[17:19, partition.members(b)[5]] = np.array([[1.0], [2.0]]) * (b + 1)
    exact_copies = rho_block(X.tocsc(), partition)
    assert exact_copies["search"].value == pytest.approx(10)
    assert "known without a look" in exact_copies["row sum"].how
    X[17, partition.members(0)[5]] = 1.2
    assert rho_block(X.tocsc(), partition)["search"].value > 9.9


def test_one_block_has_rho_block_1():
    found = rho_block(np.ones((3, 5)), bg.Partition(np.zeros(5, dtype=int), 1))
    assert [(bound.name, bound.value) for bound in found.bounds] == [("exact", 1.0)]


@pytest.mark.parametrize("sparse", [False, True])
def test_every_feature_a_block_gives_the_spectral_radius_of_the_normalised_matrix(sparse):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 25)) * (rng.random((40, 25)) < 0.5) * 7
    expected = np.linalg.norm(unit_columns(X, False), 2) ** 2
    given = sp.csc_array(X) if sparse else X
    found = rho_block(given, bg.make_partition(given, n_blocks=25))
    assert found.exact.value == pytest.approx(expected)
    assert found["search"].value == pytest.approx(expected, rel=1e-3)
    assert spectral_radius(given, range(25)) == pytest.approx(expected)


def test_large_shotgun_is_bounded_without_a_matrix_of_blocks():
    data = bg.data.text_like(800, 3000, 10.0, seed=1)
    found = rho_block(data.X, bg.make_partition(data.X, n_blocks=3000, kind="contiguous"))
    expected = np.linalg.norm(unit_columns(data.X, False), 2) ** 2
    assert found.exact is None
    assert "eigenvalue" not in [bound.name for bound in found.bounds]
    assert 0.99 * expected <= found["search"].value <= expected <= found.upper.value
    assert spectral_radius(data.X, range(3000)) == pytest.approx(expected, rel=1e-6)


def test_more_selections_than_a_number_can_hold_are_not_enumerated():
    X = sp.eye_array(5000, format="csc")
    found = rho_block(X, bg.make_partition(X, n_blocks=2000), max_selections=10**30)
    assert found.exact is None
    assert found.upper.value == 1


def test_a_sample_is_labelled_an_estimate_and_certified_bounds_remain():
    data = bg.data.text_like(300, 500, 12.0, seed=2)
    partition = bg.make_partition(data.X, n_blocks=8)
    whole, some = (rho_block(data.X, partition, budget=budget) for budget in (1e12, 3e4))
    assert whole.estimate is None
    assert some.estimate.name.startswith("sampled")
    assert "of 500 columns looked at" in some.estimate.how
    assert {b.kind for b in some.bounds if b.name.startswith("sampled")} == {"estimate"}
    assert some.upper.kind == "certified"
    for name in ("proposition 3", "row sum", "eigenvalue"):
        assert some.lower.value <= some[f"sampled {name}"].value <= whole[name].value
    assert rho_block(data.X, partition, budget=0).estimate is None


def test_full_sparse_columns_far_from_zero_keep_their_digits_when_centred():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(50, 6)) + 1e7
    partition = bg.Partition(np.arange(6) % 3, 3)
    expected = rho_by_enumeration(X, partition.block_of, 3, True)
    for same in (X, sp.csc_array(X)):
        found = rho_block(same, partition, center=True)
        assert found.exact.value == pytest.approx(expected, rel=1e-6)
        assert found["row sum"].value >= expected * (1 - 1e-6)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 0.7])
def test_a_constant_target_is_no_direction_for_centred_columns(value):
    """Without its mean nothing but rounding is left of it; more blocks than are held as a matrix."""
    rng = np.random.default_rng(3)
    half = rng.permuted(np.tile(np.arange(707.0) % 2, (300, 1)), axis=1).T
    X = np.hstack([half, 1 - half])
    for same in (sp.csc_array(X), X):
        found = rho_block(same, bg.Partition(np.arange(600), 600), y=np.full(707, value), center=True, budget=0)
        assert found.lower.value <= np.linalg.norm(unit_columns(X, center=True), 2) ** 2 * (1 + 1e-9)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("size", [1e200, 1e160, 1e-160, 1e-200, 1e-310])
def test_columns_whose_squares_overflow_or_vanish_have_the_directions_they_have(sparse, center, size):
    rng = np.random.default_rng(3)
    usual = rng.normal(size=(6, 4))
    usual[:, 1] = usual[:, 0]
    scaled = usual.copy()
    scaled[:, :2] *= size
    given = sp.csc_array(scaled) if sparse else scaled
    before = given.copy()
    partition = bg.Partition([0, 1, 2, 2], n_blocks=3)
    found, wanted = (bg.theory.rho_block(X, partition, center=center) for X in (given, usual))
    assert wanted.lower.value > 1.9
    for side in ("lower", "upper"):
        assert getattr(found, side).value == pytest.approx(getattr(wanted, side).value, rel=1e-8)
    least = bg.theory.least_rho_block(given, 3, center=center).value
    assert least == pytest.approx(bg.theory.least_rho_block(usual, 3, center=center).value, rel=1e-3)
    assert bg.theory.spectral_radius(given, [0, 1]) == pytest.approx(2.0)
    assert (given != before).sum() == 0


def test_centring_leaves_the_given_matrix_alone():
    X = sp.csc_array(np.random.default_rng(0).random((10, 4)) + 1)
    before = X.data.copy()
    rho_block(X, bg.Partition(np.arange(4) % 2, 2), center=True)
    np.testing.assert_array_equal(X.data, before)


def cross_products_in_numpy(A, block_of, n_blocks, seeds):
    products = np.abs(A.T @ A)
    products[block_of[:, None] == block_of[None, :]] = 0
    largest_in = np.stack([products[:, block_of == b].max(axis=1) for b in range(n_blocks)], axis=1)
    between = np.zeros((n_blocks, n_blocks))
    np.maximum.at(between, block_of[seeds], largest_in[seeds])
    return products[seeds].max(axis=1), largest_in[seeds].sum(axis=1), between


@pytest.mark.threads
@pytest.mark.parametrize(("sparse", "center"), [(True, False), (True, True), (False, False), (False, True)])
def test_cross_products_are_those_of_numpy_for_any_number_of_threads(sparse, center):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(80, 300)) * (rng.random((80, 300)) < rng.random(300) ** 3)
    X[:, :5] = 0
    X[:, 6] = rng.normal(size=80)
    given = sp.csc_array(X) if sparse else X
    unit = UnitColumns(given, center=center)
    columns, rows = unit.explicit
    by_rows = _core.csc(rows.shape[1], rows.indptr, rows.indices, rows.data) if sparse else core_matrix(columns)
    tilt = unit.tilt if sparse and center else None
    partition = bg.make_partition(given, n_blocks=7, seed=1)
    seeds = rng.permutation(300)[:200].astype(np.int32)
    results = [
        _core.cross_products(core_matrix(columns), by_rows, tilt, partition.block_of, 7, seeds, threads)
        for threads in (1, 2, 3)
    ]
    expected = cross_products_in_numpy(unit_columns(X, center), partition.block_of, 7, seeds)
    for got, wanted in zip(results[0], expected, strict=True):
        np.testing.assert_allclose(got, np.ravel(wanted), atol=1e-13)
    for other in results[1:]:
        for got, wanted in zip(other, results[0], strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.threads
@pytest.mark.parametrize("make", [np.asfortranarray, sp.csc_array])
def test_touched_blocks_are_those_of_numpy_for_any_number_of_threads(make):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(200, 900)) * (rng.random((200, 900)) < 0.2 * rng.random((200, 1)))
    partition = bg.make_partition(X, n_blocks=40, seed=2)
    expected = [len(set(partition.block_of[row != 0])) for row in X]
    for threads in (1, 2, 3):
        got = _core.blocks_touched(core_matrix(make(X)), partition.block_of, 40, threads)
        assert got.tolist() == expected
    weights = rng.random(200)
    squares = _core.weighted_squares(core_matrix(make(X)), weights, 2)
    np.testing.assert_allclose(squares, weights @ X**2, rtol=1e-13)


def test_stored_zeros_touch_nothing():
    X = as_columns(sp.csc_array((np.array([1.0, 0.0]), np.array([0, 0]), np.array([0, 1, 2])), shape=(1, 2)))
    assert X.nnz == 2
    assert _core.blocks_touched(core_matrix(X), np.arange(2, dtype=np.int32), 2, 1).tolist() == [1]


def test_the_core_refuses_blocks_and_seeds_that_are_none():
    X = core_matrix(np.ones((3, 2), order="F"))
    blocks, seeds = np.array([0, 1], dtype=np.int32), np.array([0], dtype=np.int32)
    with pytest.raises(ValueError, match="block_of must lie in"):
        _core.cross_products(X, X, None, blocks, 1, seeds, 1)
    with pytest.raises(ValueError, match="no such seed"):
        _core.cross_products(X, X, None, blocks, 2, seeds + 2, 1)
    with pytest.raises(ValueError, match="columns must be float64"):
        _core.cross_products(core_matrix(np.ones((3, 2), np.float32, order="F")), X, None, blocks, 2, seeds, 1)


def test_ties_within_a_block_go_to_the_lowest_feature():
    partition = bg.Partition(np.array([1, 0, 1, 0, 0]), 2)
    assert best_of_blocks(np.array([2.0, -1, -2, 0, 1]), partition).tolist() == [1, 0]


def test_spectral_radius_of_no_feature_is_nan():
    assert math.isnan(spectral_radius(np.eye(3), []))
    assert spectral_radius(np.ones((4, 3)), [0, 2]) == pytest.approx(2.0)


def test_epsilon_is_the_papers_and_0_for_one_block():
    assert epsilon(5, 9, 3.0) == pytest.approx(4 * 2 / 8)
    assert epsilon(1, 9, 9.0) == 0
    assert epsilon(1, 1, 1.0) == 0
    assert epsilon(2, 2, 1 - 1e-9) == 0  # an eigenvalue of 1 up to rounding


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 60), st.floats(1, 80))
def test_safe_blocks_per_iter_is_the_last_with_epsilon_below_1(n_blocks, rho):
    safe = max_safe_blocks_per_iter(n_blocks, rho)
    assert epsilon(safe, n_blocks, rho) < 1
    assert safe == n_blocks or epsilon(safe + 1, n_blocks, rho) >= 1 - 1e-12  # 1 up to rounding


def test_thread_greedy_is_safe_exactly_below_rho_block_2():
    for n_blocks in (2, 3, 32, 1000):
        assert max_safe_blocks_per_iter(n_blocks, 1.999) == n_blocks
        assert max_safe_blocks_per_iter(n_blocks, 2.0) == n_blocks - 1
        assert max_safe_blocks_per_iter(n_blocks, n_blocks) == 1


@settings(max_examples=200, deadline=None)
@given(st.integers(2, 5000), st.data())
def test_shotgun_is_safe_below_one_more_than_p_over_rho(p, data):
    """Bradley et al. ask for P < p/ρ + 1; ours, P < 1 + (p−1)/(ρ−1), allows at least that."""
    rho = data.draw(st.floats(1, p))
    shotgun = min(p, math.ceil(p / rho + 1) - 1)
    safe = max_safe_blocks_per_iter(p, rho)
    assert safe >= shotgun
    assert safe <= math.ceil(1 + (p - 1) / max(rho - 1, 1e-300))


def test_an_epsilon_of_1_that_rounding_makes_smaller_is_not_safe():
    assert max_safe_blocks_per_iter(8, np.nextafter(8, 0)) == max_safe_blocks_per_iter(8, 8.0) == 1


def test_rate_bound_is_theorem_1_and_its_corollary():
    assert rate_bound(10, 2, 5, 2.0, radius=3.0, smoothness=0.25) == pytest.approx(
        2 * 0.25 * 5 * 9 / ((1 - 1 / 4) * 2 * 10)
    )
    assert rate_bound(7, 5, 5, 1.5, radius=2.0) == pytest.approx(2 * 4 / ((2 - 1.5) * 7))
    assert rate_bound(7, 5, 5, 2.0, radius=2.0) == math.inf


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 60), st.floats(1, 80), st.data())
def test_the_safe_step_scale_has_the_best_rate_and_the_limit_ends_it(n_blocks, rho, data):
    P = data.draw(st.integers(1, n_blocks))
    best, limit = safe_step_scale(P, n_blocks, rho), step_scale_limit(P, n_blocks, rho)

    def rate(scale):
        return rate_bound(7, P, n_blocks, rho, radius=2.0, smoothness=0.25, step_scale=scale)

    assert rate(best) == pytest.approx(2 * 0.25 * (1 + epsilon(P, n_blocks, rho)) * n_blocks * 4 / (P * 7))
    for scale in np.linspace(0.01, 0.99, 21) * limit:
        assert rate(best) * (1 - 1e-12) <= rate(scale) < math.inf
    assert rate(limit * 1.001) == math.inf
    assert rate(1.0) == rate_bound(7, P, n_blocks, rho, radius=2.0, smoothness=0.25)


def test_one_block_needs_no_shorter_step_and_copies_in_all_blocks_need_one_of_1_over_p():
    assert safe_step_scale(1, 9, 9.0) == safe_step_scale(1, 1, 1.0) == 1
    for P in range(1, 9):
        assert safe_step_scale(P, 8, 8.0) == pytest.approx(1 / P)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: epsilon(3, 2, 1.5), r"blocks_per_iter=3 must be a whole number from 1 to 2"),
        (lambda: epsilon(1, 0, 1.5), r"n_blocks=0 must be a whole number of at least 1"),
        (lambda: epsilon(1, 2, 0.5), r"rho=0\.5 must be a number of at least 1"),
        (lambda: epsilon(1, 2, math.nan), r"rho=nan must be a number of at least 1"),
        (lambda: rate_bound(0, 1, 2, 1.0, radius=1), r"n_iter=0 must be a whole number of at least 1"),
        (lambda: rate_bound(1, 1, 2, 1.0, radius=-1), r"radius=-1 must be a number of at least 0"),
        (lambda: rate_bound(1, 1, 2, 1.0, radius=1, step_scale=0), r"step_scale=0 must be above 0"),
        (lambda: safe_step_scale(3, 2, 1.5), r"blocks_per_iter=3 must be a whole number from 1 to 2"),
        (lambda: rho_block(np.eye(3), bg.Partition(np.arange(2), 2)), "X has 3 features, the partition has 2"),
        (
            lambda: rho_block(np.eye(2), bg.Partition(np.arange(2), 2), budget=-1),
            r"budget=-1 must be a number of at least 0",
        ),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_bounds_say_what_they_are():
    found = rho_block(np.ones((3, 2)), bg.Partition(np.arange(2), 2))
    assert str(found["blocks"]) == "≤ 2 (certified: B, the number of blocks)"
    assert found["blocks"].to_dict()["side"] == "upper"
    with pytest.raises(KeyError, match="'trace' is not among the bounds; there are blocks, rows"):
        found["trace"]


@pytest.mark.parametrize("rho", [0.5, math.nan])
def test_a_rho_below_1_is_refused_for_one_block_too(rho):
    for n_blocks in (1, 4):
        with pytest.raises(ValueError, match=f"rho={rho} must be a number of at least 1"):
            bg.theory.epsilon(1, n_blocks, rho)
