"""The bound on rho_block for every partition, against all partitions of small matrices."""

from __future__ import annotations

import itertools
import math
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.partitions.any_partition import bound_of_direction
from blockgreedy.partitions.spectrum import UnitColumns, enumerate_selections


def all_partitions(p, n_blocks):
    """Every way to put p features into exactly n_blocks blocks, as block_of with blocks numbered by first feature."""

    def grow(prefix, used):
        if len(prefix) == p:
            if used == n_blocks:
                yield np.array(prefix)
            return
        for b in range(min(used + 1, n_blocks)):
            yield from grow([*prefix, b], max(used, b + 1))

    yield from grow([], 0)


def best_rho_block(X, n_blocks, max_load):
    """The least rho_block of all partitions within the limit; inf if there is none."""
    unit = UnitColumns(X)
    best = math.inf
    for block_of in all_partitions(X.shape[1], n_blocks):
        partition = bg.Partition(block_of, n_blocks)
        loads = partition.nonzeros(X)
        if loads.max() <= max_load * loads.mean() * (1 + 1e-12):
            best = min(best, enumerate_selections(unit, partition))
    return best


@pytest.mark.parametrize("seed", range(12))
def test_no_partition_of_small_data_is_below_the_bound(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(4, 8))
    density = rng.uniform(0.2, 1.0, size=p)
    X = np.where(rng.random((12, p)) < density, rng.random((12, p)) + (seed % 3 - 1) * 0.5, 0.0)
    X[0] = 1.0  # no column is empty
    for matrix in (sp.csc_array(X), X):
        for n_blocks in (2, 3):
            for max_load in (1.0, 1.2, 1.5, 2.0, math.inf):
                bound = bg.theory.least_rho_block(matrix, n_blocks, max_load)
                assert (bound.side, bound.kind) == ("lower", "certified")
                assert bound.value <= best_rho_block(matrix, n_blocks, max_load) + 1e-9


def enumerated(matrix, block_of, center):
    """rho_block of a partition, and the bound for all partitions whose heaviest block has its load."""
    partition = bg.Partition(np.asarray(block_of, dtype=np.int32), int(max(block_of)) + 1)
    loads = partition.nonzeros(matrix)
    rho = enumerate_selections(UnitColumns(matrix, center=center), partition)
    return rho, bg.theory.least_rho_block(matrix, partition.n_blocks, loads.max() / loads.mean(), center=center).value


@pytest.mark.parametrize("copies", [1, 3, 7, 9, 11, 13, 21])
def test_centred_columns_that_add_up_to_a_constant_give_no_false_bound(copies):
    """The two levels of a variable: the sum of all columns is constant, and without its mean nothing but rounding."""
    cube = np.repeat(np.array(list(itertools.product((0.0, 1.0), repeat=3))), copies, axis=0)
    onehot = np.hstack([np.c_[level, 1 - level] for level in cube.T])
    for matrix in (sp.csc_array(onehot), onehot):
        rho, bound = enumerated(matrix, [0, 0, 1, 1, 2, 2], center=True)
        assert rho == pytest.approx(1.0)
        assert bound <= rho + 1e-9


@pytest.mark.parametrize("seed", range(60))
def test_no_partition_drawn_at_random_is_below_the_bound(seed):
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(3, 12)), int(rng.integers(3, 9))
    X = rng.integers(0, 3, size=(n, p)) * rng.choice([1.0, 0.1, 1 / 3])
    X = np.hstack([X, X.max() - X])  # columns that add up to a constant, as levels do
    n_blocks = int(rng.integers(2, 5))
    for center in (False, True):
        for matrix in (sp.csc_array(X), X):
            block_of = np.r_[np.arange(n_blocks), rng.integers(0, n_blocks, 2 * p - n_blocks)]
            rho, bound = enumerated(matrix, rng.permutation(block_of), center)
            assert bound <= rho * (1 + 1e-9)


def test_the_bound_is_reached_where_all_columns_are_copies():
    X = np.ones((5, 8)) * np.arange(1, 9)
    for n_blocks in (2, 4):
        bound = bg.theory.least_rho_block(X, n_blocks).value
        assert bound == pytest.approx(n_blocks, abs=1e-6)
        assert best_rho_block(X, n_blocks, 1.0) == pytest.approx(n_blocks, abs=1e-6)


def test_the_bound_is_reached_by_groups_that_fill_blocks():
    """Two groups of four copies in four even blocks: each group fills two blocks, and rho_block is 2."""
    X = np.repeat(np.eye(2), 4, axis=1)
    assert best_rho_block(X, 4, 1.0) == pytest.approx(2.0)
    assert bg.theory.least_rho_block(X, 4).value == pytest.approx(2.0, abs=1e-6)


def test_a_larger_load_never_raises_the_bound_of_a_direction():
    rng = np.random.default_rng(1)
    values, loads = rng.random(50), rng.integers(0, 9, size=50).astype(float)
    found = [bound_of_direction(values, loads, 8, limit) for limit in (1.0, 1.5, 2.0, 4.0, 8.0, math.inf)]
    assert all(a >= b for a, b in pairwise(found))
    assert found[-1] == found[-2] == values.max()
    assert found[0] > 3 * values.max()


def test_each_direction_gives_what_a_search_over_packings_finds():
    """Σ_k t_k is no more than the least sum of the blocks' largest values over all packings, and not far below it."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        values, loads = rng.random(7), rng.integers(1, 4, size=7).astype(float)
        least = math.inf
        for block_of in all_partitions(7, 3):
            packed = np.bincount(block_of, weights=loads)
            if packed.max() <= 1.4 * packed.mean():
                least = min(least, sum(values[block_of == b].max() for b in range(3)))
        bound = bound_of_direction(values, loads, 3, 1.4)
        assert 0.5 * least <= bound <= least + 1e-12


def test_real_partitions_of_text_are_above_the_bound():
    data = bg.data.text_like(500, 1_500, 20.0)
    unit = UnitColumns(data.X)
    assert bg.theory.least_rho_block(unit, 16).value > 1.1
    for kind in ("random", "balanced", "capped", "clustered"):
        blocks = bg.make_partition(data.X, data.y, n_blocks=16, kind=kind)
        loads = blocks.nonzeros(data.X)
        bound = bg.theory.least_rho_block(unit, 16, loads.max() / loads.mean())
        assert bound.value <= bg.theory.rho_block(unit, blocks).upper.value
        assert bound.value == bg.theory.least_rho_block(data.X, 16, loads.max() / loads.mean()).value


def test_stored_zeros_are_no_load():
    """Two copies with five stored zeros each in one block: the other block has as many nonzeros."""
    rows, data = [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 6, 7], [1.0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1]
    stored = sp.csc_array((np.array(data), np.array(rows), np.array([0, 6, 12, 13, 14])), shape=(8, 4))
    plain = stored.copy()
    plain.eliminate_zeros()
    for X in (stored, stored.tocsr(), plain):
        rho, bound = enumerated(X, [0, 0, 1, 1], center=False)
        assert bound <= rho * (1 + 1e-9)
        assert bg.theory.least_rho_block(X, 2, 1.0).value == bg.theory.least_rho_block(plain, 2, 1.0).value
        capped = bg.make_partition(X, n_blocks=2, kind="capped", max_load=1.0)
        assert capped.nonzeros(X).tolist() == [2, 2]
        assert bg.diagnose(X, capped)["capped"].load_balance.value == 1.0
    rng = np.random.default_rng(0)
    X = sp.random_array((200, 60), density=0.3, rng=rng, format="csc")
    X.data[rng.random(X.nnz) < 0.5] = 0
    without = X.copy()
    without.eliminate_zeros()
    for max_load in (1.0, 1.5):
        found = [bg.theory.least_rho_block(one, 6, max_load) for one in (X, without)]
        assert found[0].value == pytest.approx(found[1].value, rel=1e-12)
        blocks = bg.make_partition(X, n_blocks=6, kind="capped", max_load=1.5)
        assert blocks.nonzeros(X).max() <= 1.5 * blocks.nonzeros(X).mean()


def test_centring_leaves_loads_as_they_are():
    """A column without a zero is centred explicitly, and may have zeros then."""
    X = sp.csc_array(np.array([[1.0, 1, 0], [2, 1, 0], [3, 1, 4]]))
    assert UnitColumns(X, center=True).loads.tolist() == [3, 3, 1]


def test_empty_columns_leave_the_bound_at_1():
    assert bg.theory.least_rho_block(sp.csc_array((5, 4)), 2).value == 1.0


@pytest.mark.parametrize("arguments", [{"n_blocks": 0}, {"n_blocks": 5}, {"n_blocks": 2, "max_load": 0.5}])
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(ValueError, match=next(reversed(arguments))):
        bg.theory.least_rho_block(np.ones((3, 4)), **arguments)
