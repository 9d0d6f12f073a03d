"""Algorithm 2 with a limit on the nonzeros of a block: against a NumPy version of it, and what it promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.partitions.partition import MAX_LOAD, make_partition
from test_partition import algorithm_2, skewed_sparse, with_stored_zeros

LOADS = (1.0, 1.05, 1.3, 2.0, 5.0)


def capped(X, n_blocks, max_load, n_threads=1):
    return make_partition(X, n_blocks=n_blocks, kind="capped", max_load=max_load, n_threads=n_threads).block_of


def algorithm_2_with_a_cap(X, n_blocks, max_load):
    """Block after block, column by column in the order of correlation; every tie goes to the lowest index."""
    p = X.shape[1]
    columns = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    nonzeros = np.count_nonzero(columns, axis=0)
    load = nonzeros if sp.issparse(X) else np.full(p, X.shape[0])
    mean = load.sum() / n_blocks
    limit = math.floor(min(max_load * mean, load.sum()) * (1 + 1e-12))
    share = max(mean, limit - load.max())
    block_of, free = np.full(p, n_blocks - 1), np.ones(p, dtype=bool)
    for b in range(n_blocks - 1):
        unassigned, after = np.flatnonzero(free), n_blocks - b - 1
        size, most = -(-len(unassigned) // (after + 1)), len(unassigned) - after
        need = load[free].sum() - after * share
        seed = unassigned[np.argmax(nonzeros[unassigned])]
        correlation = np.abs(columns[:, seed] @ columns[:, unassigned])
        ordered = unassigned[np.argsort(-correlation, kind="stable")]
        taken = [ordered[0]] if load[ordered[0]] > limit and not (load[ordered] == 0).all() else []
        for j in ordered:
            is_open = len(taken) < most and (len(taken) < size or load[taken].sum() < need)
            if is_open and j not in taken and load[taken].sum() + load[j] <= limit:
                taken.append(j)
        if load[taken].sum() < need and len(taken) < most:
            left = np.setdiff1d(unassigned, taken)
            taken.append(left[np.argmin(load[left])])
        block_of[taken], free[taken] = b, False
    return block_of


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(20))
def test_capped_is_algorithm_2_with_a_cap(seed, dtype):
    rng = np.random.default_rng(seed)
    n, p = rng.integers(1, 90), rng.integers(1, 120)
    X = skewed_sparse(rng, n, p, dtype)
    for n_blocks in {1, int(rng.integers(1, p + 1)), min(7, p), p}:
        for max_load in LOADS:
            expected = algorithm_2_with_a_cap(X, n_blocks, max_load)
            np.testing.assert_array_equal(capped(X, n_blocks, max_load), expected)


@pytest.mark.parametrize("seed", range(5))
def test_capped_dense_is_algorithm_2_with_a_cap_on_entries(seed):
    rng = np.random.default_rng(100 + seed)
    n, p = rng.integers(2, 60), rng.integers(8, 90)
    X = np.asfortranarray(rng.integers(-2, 3, size=(n, p)) / 8)
    for n_blocks in (3, 8):
        np.testing.assert_array_equal(capped(X, n_blocks, 1.1), algorithm_2_with_a_cap(X, n_blocks, 1.1))


@pytest.mark.parametrize("n_threads", [1, 2, 3, 7])
@pytest.mark.parametrize("max_load", [1.0, 1.2, 3.0])
def test_capped_does_not_depend_on_threads(max_load, n_threads):
    X = skewed_sparse(np.random.default_rng(1), 400, 2503, np.float32)
    assert X.nnz > 150_000  # enough for several parts
    np.testing.assert_array_equal(capped(X, 16, max_load, n_threads), algorithm_2_with_a_cap(X, 16, max_load))


@pytest.mark.parametrize("seed", range(10))
def test_capped_without_a_limit_is_clustered(seed):
    rng = np.random.default_rng(200 + seed)
    n, p = rng.integers(1, 90), rng.integers(1, 120)
    X = skewed_sparse(rng, n, p)
    for n_blocks in {1, int(rng.integers(1, p + 1)), p}:
        expected = make_partition(X, n_blocks=n_blocks, kind="clustered").block_of
        np.testing.assert_array_equal(expected, algorithm_2(X, n_blocks))
        for no_limit in (math.inf, float(n_blocks)):  # no block has more than all nonzeros
            np.testing.assert_array_equal(capped(X, n_blocks, no_limit), expected)


@pytest.mark.parametrize("seed", range(60))
def test_capped_keeps_its_limit(seed):
    """Where no column is heavier than max_load − 1 means; always within one column of the mean, or the limit."""
    rng = np.random.default_rng(300 + seed)
    n, p = rng.integers(5, 120), rng.integers(20, 300)
    X = skewed_sparse(rng, n, p)
    n_blocks = int(rng.integers(2, 12))
    counts = np.diff(X.indptr)
    mean = counts.sum() / n_blocks
    for max_load in (*LOADS, 1 + counts.max() / mean):
        partition = make_partition(X, n_blocks=n_blocks, kind="capped", max_load=max_load)
        heaviest = partition.nonzeros(X).max()
        slack = mean * 1e-9
        assert heaviest <= max(max_load * mean, mean + counts.max()) + slack
        if counts.max() <= (max_load - 1) * mean + slack:
            assert heaviest <= max_load * mean + slack
        assert partition.sizes.min() >= 1


def test_capped_blocks_of_text_are_even_to_the_limit():
    X = bg.data.text_like(1_000, 3_000, 20.0).X
    for max_load in (1.0, 1.1, 1.5, 2.5):
        loads = make_partition(X, n_blocks=8, kind="capped", max_load=max_load).nonzeros(X)
        assert loads.max() / loads.mean() <= max_load + 1e-3
    loads = make_partition(X, n_blocks=8, kind="clustered").nonzeros(X)
    assert loads.max() / loads.mean() > 2.5  # what the paper makes of it


def test_a_column_beyond_the_limit_has_a_block_to_itself():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((50, 40)) < 0.04, 1.0, 0)
    X[:, 7] = 1
    X[0] = 1
    block_of = capped(sp.csc_array(X), 8, 1.0)
    assert np.flatnonzero(block_of == block_of[7]).tolist() == [7]


def test_stored_zeros_are_no_load():
    X = skewed_sparse(np.random.default_rng(9), 100, 300)
    for max_load in LOADS:
        np.testing.assert_array_equal(capped(with_stored_zeros(X), 7, max_load), capped(X, 7, max_load))


def test_capped_by_name_has_the_default_limit():
    data = bg.data.text_like(200, 400, 10.0)
    expected = make_partition(data.X, n_blocks=8, kind="capped", max_load=MAX_LOAD)
    made = make_partition(data.X, n_blocks=8, kind="capped")
    np.testing.assert_array_equal(made.block_of, expected.block_of)
    assert (made.kind, made.seed) == ("capped", None)
    problem = bg.Problem(data, loss="logistic", alpha=1e-2)
    settings = {"tol": 1e-3, "max_iter": 2000}
    by_name = bg.solve(problem, "thread-greedy", partition="capped", n_blocks=8, **settings)
    by_blocks = bg.solve(problem, "thread-greedy", partition=expected, **settings)
    np.testing.assert_array_equal(by_name.coef, by_blocks.coef)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "capped", "max_load": 0.9}, r"max_load=0\.9 must be a number of at least 1"),
        ({"kind": "capped", "max_load": math.nan}, r"max_load=nan"),
        ({"kind": "capped", "max_load": "2"}, r"max_load='2'"),
        ({"kind": "random", "max_load": 2}, r"max_load=2 goes with kind='capped', not with kind='random'"),
    ],
)
def test_bad_limits_are_refused(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make_partition(np.ones((3, 4)), n_blocks=2, **arguments)
