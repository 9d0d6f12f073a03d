"""Partitions: Algorithm 2 against a readable NumPy version of it, sizes, random cuts, refusals."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.base.random import Random
from blockgreedy.partitions.partition import KINDS, Partition, make_partition


def algorithm_2(X, n_blocks):
    """The paper's Algorithm 2; every tie goes to the lowest index."""
    p = X.shape[1]
    columns = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    nonzeros = np.count_nonzero(columns, axis=0)
    block_of = np.full(p, n_blocks - 1)
    unassigned = np.arange(p)
    for b in range(n_blocks - 1):
        seed = unassigned[np.argmax(nonzeros[unassigned])]
        correlation = np.abs(columns[:, seed] @ columns[:, unassigned])
        size = p // n_blocks + (b < p % n_blocks)
        taken = unassigned[np.argsort(-correlation, kind="stable")[:size]]
        block_of[taken] = b
        unassigned = np.setdiff1d(unassigned, taken)
    return block_of


def skewed_sparse(rng, n, p, dtype=np.float64):
    """Column densities from empty to full; multiples of 1/8, so that all sums are exact and ties are ties."""
    density = rng.random(p) ** 4
    density[rng.random(p) < 0.1] = 0
    values = rng.integers(-8, 9, size=(n, p)) / 8
    return sp.csc_array(np.where(rng.random((n, p)) < density, values, 0).astype(dtype))


def clustered(X, n_blocks, n_threads=1):
    return make_partition(X, n_blocks=n_blocks, kind="clustered", n_threads=n_threads).block_of


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(25))
def test_clustered_sparse_is_algorithm_2(seed, dtype):
    rng = np.random.default_rng(seed)
    n, p = rng.integers(1, 90), rng.integers(1, 120)
    X = skewed_sparse(rng, n, p, dtype)
    for n_blocks in {1, int(rng.integers(1, p + 1)), min(7, p), p}:
        np.testing.assert_array_equal(clustered(X, n_blocks), algorithm_2(X, n_blocks))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(10))
def test_clustered_dense_is_algorithm_2(seed, dtype):
    rng = np.random.default_rng(100 + seed)
    n, p = rng.integers(1, 90), rng.integers(1, 120)
    X = np.asfortranarray(rng.integers(-8, 9, size=(n, p)) / 8, dtype=dtype)
    for n_blocks in {1, int(rng.integers(1, p + 1)), p}:
        np.testing.assert_array_equal(clustered(X, n_blocks), algorithm_2(X, n_blocks))


def test_clustered_fills_32_blocks_from_40_features():
    X = skewed_sparse(np.random.default_rng(0), 60, 40)
    block_of = clustered(X, 32)
    assert np.bincount(block_of).tolist() == [2] * 8 + [1] * 24
    np.testing.assert_array_equal(block_of, algorithm_2(X, 32))


@pytest.mark.parametrize("n_threads", [1, 2, 3, 7])
@pytest.mark.parametrize("n_blocks", [2, 9, 32])
def test_clustered_is_algorithm_2_for_any_number_of_threads(n_blocks, n_threads):
    X = skewed_sparse(np.random.default_rng(1), 400, 5003, np.float32)
    assert X.nnz > 300_000  # enough for several parts
    np.testing.assert_array_equal(clustered(X, n_blocks, n_threads), algorithm_2(X, n_blocks))


@pytest.mark.parametrize("n_threads", [1, 3])
def test_clustered_dense_in_several_parts_is_algorithm_2(n_threads):
    X = np.random.default_rng(2).integers(-4, 5, size=(300, 1001)).astype(np.float32)
    np.testing.assert_array_equal(clustered(X, 13, n_threads), algorithm_2(X, 13))


@pytest.mark.parametrize("n_threads", [1, 2])
def test_clustered_with_rare_columns_is_algorithm_2(n_threads):
    """Nearly all correlations are zero, and after the first blocks whole blocks tie at zero."""
    rng = np.random.default_rng(3)
    X = sp.random_array((200, 40_000), density=0.01, format="csc", rng=rng, data_sampler=lambda size: np.ones(size))
    X = sp.hstack([X, sp.csc_array(np.ones((200, 1)))], format="csc")
    np.testing.assert_array_equal(clustered(X, 32, n_threads), algorithm_2(X, 32))


def test_clustered_does_not_depend_on_threads_when_sums_round():
    rng = np.random.default_rng(4)
    X = skewed_sparse(rng, 400, 3000)
    X.data = rng.standard_normal(X.nnz)
    one = clustered(X, 32, 1)
    for n_threads in (2, 3, 7):
        np.testing.assert_array_equal(clustered(X, 32, n_threads), one)


def test_clustered_tells_neighbouring_doubles_apart():
    """Correlations that differ in the last bits only: every digit of the selection matters."""
    rng = np.random.default_rng(5)
    p = 700
    singles = sp.diags_array(1 + rng.integers(0, 2**14, size=p) * 2.0**-52)
    X = sp.hstack([singles, np.ones((p, 1))], format="csc")
    for n_blocks in (2, 3, 7, 50):
        np.testing.assert_array_equal(clustered(X, n_blocks), algorithm_2(X, n_blocks))


def test_clustered_compares_correlations_of_all_magnitudes():
    rng = np.random.default_rng(6)
    singles = sp.diags_array(rng.choice([-1.0, 1.0], size=500) * 2.0 ** rng.integers(-1000, 1000, size=500))
    X = sp.hstack([singles, np.ones((500, 1))], format="csc")
    np.testing.assert_array_equal(clustered(X, 6), algorithm_2(X, 6))


def test_clustered_puts_empty_columns_last_and_by_index():
    X = sp.csc_array(np.array([[0.0, 1, 0, 1, 0, 0]]))
    assert clustered(X, 3).tolist() == [1, 0, 1, 0, 2, 2]


def test_clustered_keeps_duplicates_of_the_seed_together():
    column = np.random.default_rng(7).random((50, 1)) + 1
    X = sp.csc_array(np.hstack([np.eye(50)[:, :6], column, np.eye(50)[:, 6:9], column, column]))
    block_of = clustered(X, 4)
    assert block_of[[6, 10, 11]].tolist() == [0, 0, 0]


def test_clustered_seed_can_lose_its_place_to_heavier_columns():
    X = sp.csc_array(np.array([[1.0, 9, 0], [1, 0, 8], [1, 0, 0]]))
    assert clustered(X, 3).tolist() == algorithm_2(X, 3).tolist() == [2, 0, 1]


def test_clustered_takes_any_format_alike():
    X = skewed_sparse(np.random.default_rng(8), 40, 60)
    expected = clustered(X, 8)
    for same in (X.tocsr(), X.tocoo(), sp.csc_matrix(X), sp.csr_matrix(X), X.toarray(), with_stored_zeros(X)):
        np.testing.assert_array_equal(clustered(same, 8), expected)


def with_stored_zeros(X):
    """The same matrix with every entry stored."""
    n, p = X.shape
    parts = X.toarray().ravel(order="F"), np.tile(np.arange(n), p), np.arange(p + 1) * n
    return sp.csc_array(parts, shape=X.shape)


def test_zeros_are_no_nonzeros_when_clustered_looks_for_a_seed():
    X = np.array([[1.0, 1, 1, 0], [0, 1, 0, 1], [0, 1, 0, 1]])
    for same in (X, sp.csc_array(X), with_stored_zeros(sp.csc_array(X)), -0.0 + X, X.astype(np.float32)):
        assert clustered(same, 2).tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("n_threads", [1, 3])
def test_stored_zeros_change_no_partition(n_threads):
    X = skewed_sparse(np.random.default_rng(9), 300, 2000)
    for kind in KINDS:
        a, b = (
            make_partition(same, np.arange(300.0), n_blocks=7, kind=kind, n_threads=n_threads)
            for same in (X, with_stored_zeros(X))
        )
        np.testing.assert_array_equal(a.block_of, b.block_of)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("balanced", "capped")])
@pytest.mark.parametrize(("p", "n_blocks"), [(40, 32), (40, 1), (40, 40), (41, 4), (43, 4)])
def test_first_blocks_take_the_features_left_over(kind, p, n_blocks):
    X = skewed_sparse(np.random.default_rng(9), 30, p)
    partition = make_partition(X, n_blocks=n_blocks, kind=kind)
    size, extra = divmod(p, n_blocks)
    assert partition.sizes.tolist() == [size + 1] * extra + [size] * (n_blocks - extra)
    assert (partition.kind, partition.n_blocks, partition.n_features) == (kind, n_blocks, p)


def test_random_cuts_the_fisher_yates_permutation_of_the_project_generator():
    random, order = Random(11), list(range(103))
    for i in range(102, 0, -1):
        k = random.below(i + 1)
        order[i], order[k] = order[k], order[i]
    expected = np.empty(103, dtype=int)
    expected[order] = np.repeat(np.arange(10), [11] * 3 + [10] * 7)
    partition = make_partition(np.ones((2, 103)), n_blocks=10, kind="random", seed=11)
    np.testing.assert_array_equal(partition.block_of, expected)
    assert partition.seed == 11


def test_random_depends_on_the_seed():
    X = sp.csc_array((5, 1000))
    first, second = (make_partition(X, n_blocks=8, seed=seed).block_of for seed in (0, 1))
    assert (first != second).mean() > 0.7


def test_contiguous_keeps_the_order_of_the_features():
    partition = make_partition(np.ones((2, 7)), n_blocks=3, kind="contiguous")
    assert partition.block_of.tolist() == [0, 0, 0, 1, 1, 2, 2]


def test_members_are_ascending_and_cover_all_features():
    partition = make_partition(sp.csc_array((5, 100)), n_blocks=7)
    members = [partition.members(b) for b in range(7)]
    assert all((np.diff(m) > 0).all() for m in members)
    assert sorted(np.concatenate(members)) == list(range(100))
    with pytest.raises(ValueError, match=r"b=7 is no block; it must lie in 0..6"):
        partition.members(7)


def test_nonzeros_are_counted_per_block():
    X = skewed_sparse(np.random.default_rng(10), 30, 50)
    partition = make_partition(X, n_blocks=6)
    expected = [X[:, partition.members(b)].nnz for b in range(6)]
    for same in (X, X.tocsr(), X.tocoo(), with_stored_zeros(X)):
        assert partition.nonzeros(same).tolist() == expected
    assert partition.nonzeros(X).dtype == np.int64
    assert partition.nonzeros(X.toarray()).tolist() == (30 * partition.sizes).tolist()
    with pytest.raises(ValueError, match="X has 49 features, the partition has 50"):
        partition.nonzeros(X[:, :49])


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_problem_gives_the_partition_of_its_data(kind):
    rng = np.random.default_rng(13)
    X, y = skewed_sparse(rng, 30, 50), rng.integers(0, 2, 30)
    problem = bg.Problem(X, y, loss="logistic", alpha=0.1)
    expected = make_partition(X, y, n_blocks=6, kind=kind).block_of
    np.testing.assert_array_equal(make_partition(problem, n_blocks=6, kind=kind).block_of, expected)
    with pytest.raises(ValueError, match="y must not be given with a Problem"):
        make_partition(problem, y, n_blocks=6, kind=kind)


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_saved_partition_comes_back_as_it_was(kind, tmp_path):
    X = skewed_sparse(np.random.default_rng(11), 30, 50)
    made = make_partition(X, n_blocks=6, kind=kind, seed=2**63 + 1)
    made.save(tmp_path / "blocks.npz")
    back = Partition.load(tmp_path / "blocks.npz")
    np.testing.assert_array_equal(back.block_of, made.block_of)
    assert (back.n_blocks, back.kind, back.seed) == (made.n_blocks, made.kind, made.seed)
    assert [path.name for path in tmp_path.iterdir()] == ["blocks.npz"]


def test_files_that_hold_no_partition_are_refused(tmp_path):
    np.savez(tmp_path / "other.npz", block_of=np.zeros(3, dtype=int))
    (tmp_path / "text.npz").write_text("no")
    for name in ("other.npz", "text.npz"):
        with pytest.raises(ValueError, match=rf"{name} holds no partition as Partition.save writes it"):
            Partition.load(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="must name an existing file"):
        Partition.load(tmp_path / "none.npz")
    with pytest.raises(ValueError, match=r"path must end in \.npz"):
        Partition(np.zeros(3, dtype=int), 1).save(tmp_path / "blocks.txt")


@pytest.mark.parametrize("dense", [False, True])
def test_block_order_makes_blocks_contiguous_and_keeps_the_problem(dense):
    rng = np.random.default_rng(12)
    X = skewed_sparse(rng, 30, 50)
    X, y = X.toarray() if dense else X, rng.standard_normal(30)
    blocks = make_partition(X, y, n_blocks=6)
    ordered, again = blocks.in_block_order(X)
    assert (np.diff(again.block_of) >= 0).all()
    assert again.sizes.tolist() == blocks.sizes.tolist()
    assert again.nonzeros(ordered).tolist() == blocks.nonzeros(X).tolist()
    solutions = [
        bg.solve(bg.Problem(A, y, alpha=0.05), "thread-greedy", partition=part, tol=1e-10)
        for A, part in ((X, blocks), (ordered, again))
    ]
    coef = np.empty(50)
    coef[blocks.order] = solutions[1].coef
    np.testing.assert_allclose(coef, solutions[0].coef, atol=1e-8)


def test_partition_is_frozen_and_leaves_the_callers_array_alone():
    given = np.array([0, 1, 0], dtype=np.int32)
    partition = Partition(given, 2)
    given[1] = 0
    assert partition.block_of.tolist() == [0, 1, 0]
    assert partition.block_of.dtype == np.int32
    with pytest.raises(ValueError, match="read-only"):
        partition.block_of[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        partition.n_blocks = 3


@pytest.mark.parametrize(
    ("block_of", "n_blocks", "message"),
    [
        ([0, 1, 3], 3, r"block_of\[2\]=3 is no block; with n_blocks=3 it must lie in 0\.\.2"),
        ([0, -1, 1], 2, r"block_of\[1\]=-1 is no block"),
        ([0, 2, 2], 3, r"block_of leaves block 1 empty; each of the n_blocks=3 blocks must have a feature"),
        ([0.0, 1.0], 2, r"block_of has shape \(2,\) and dtype float64; it must hold one integer per feature"),
        ([[0, 1]], 2, r"block_of has shape \(1, 2\)"),
        ([0, 0], 3, r"n_blocks=3 must be a whole number from 1 to 2 \(the number of features\)"),
        ([0, 0], 1.0, r"n_blocks=1\.0 must be a whole number"),
    ],
)
def test_partition_refuses_what_is_none(block_of, n_blocks, message):
    with pytest.raises(ValueError, match=message):
        Partition(np.array(block_of), n_blocks)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_blocks": 0}, r"n_blocks=0 must be a whole number from 1 to 4 \(the number of features\)"),
        ({"n_blocks": 5}, r"n_blocks=5 must be a whole number from 1 to 4"),
        ({"n_blocks": True}, r"n_blocks=True must be a whole number"),
        (
            {"n_blocks": 2, "kind": "sorted"},
            r"kind='sorted' is not known; use one of 'random', 'contiguous', 'clustered'",
        ),
        ({"n_blocks": 2, "seed": -1}, "seed=-1 must be a whole number from 0 to 18446744073709551615"),
        (
            {"n_blocks": 2, "kind": "clustered", "n_threads": 0},
            r"n_threads=0 must be a whole number from 1 to 1024",
        ),
    ],
)
def test_make_partition_refuses_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_partition(np.ones((3, 4)), **arguments)


def test_make_partition_refuses_a_vector():
    with pytest.raises(ValueError, match=r"X has 1 dimension\(s\), expected 2"):
        make_partition(np.ones(4), n_blocks=2)
