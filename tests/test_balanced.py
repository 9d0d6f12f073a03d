"""Balanced partitions: against a readable version, loads, groups, threads, edge cases."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import blockgreedy as bg
from blockgreedy.base.random import Random
from blockgreedy.partitions.partition import gradient_mass, make_partition
from test_partition import skewed_sparse

f32 = np.float32


def row_rank(rows, salt):
    """Where rows stand in a random order."""
    x = (np.asarray(rows, dtype=np.uint64) + np.uint64(salt)) * np.uint64(0x9E3779B1) % np.uint64(2**32)
    return (x ^ (x >> np.uint64(16))) * np.uint64(0x85EBCA6B) % np.uint64(2**32)


def clusters_of(X, work, mass, n_blocks, seed):
    """Columns that share their first row, divided by a second order; the large ones alone, after all others."""
    random = Random(seed)
    salts = [random.next() % 2**32 for _ in range(2)]
    most = f32(1) / (f32(16) * f32(n_blocks))
    mean_mass = f32(1) / f32(np.count_nonzero(np.diff(X.indptr)))
    groups, alone, clusters = {}, [], []
    for j in range(X.shape[1]):
        rows = X.indices[X.indptr[j] : X.indptr[j + 1]]
        if len(rows) == 0:
            continue
        if max(work[j], mass[j]) > most or mass[j] > f32(2) * mean_mass:
            alone.append([j])
        else:
            first, second = (row_rank(rows, salt) for salt in salts)
            groups.setdefault(int(rows[np.argmin(first)]), []).append((j, int(second.min())))
    for row in sorted(groups):
        members = [j for j, _ in groups[row]]
        n_clusters = int(np.ceil(max(total(work, members), total(mass, members)) / most))
        pieces = [[] for _ in range(n_clusters)]
        for j, second in groups[row]:
            pieces[second * 0x9E3779B1 % 2**32 * n_clusters >> 32].append(j)
        clusters += pieces
    return clusters + alone


def total(load, members):
    sum = f32(0)
    for j in members:
        sum += load[j]
    return sum


def sixth(loads):
    x = f32(loads.shape[1]) * loads
    return x * x * (x * x) * (x * x)


def balanced_by_hand(X, y, n_blocks, seed):
    """Longest first, each where it adds least to the sixth powers of the two loads; small clusters last."""
    mass = np.abs(X.T @ y) / np.sqrt(np.maximum((X**2).sum(axis=0), 1e-300))
    mass = mass.astype(f32) * f32(1 / np.add.accumulate(mass.astype(f32).astype(float))[-1])
    work = (f32(1) / f32(X.nnz)) * np.diff(X.indptr).astype(f32)
    clusters = clusters_of(X, work, mass, n_blocks, seed)
    loads = [(total(work, c), total(mass, c)) for c in clusters]
    large = [k for k, load in enumerate(loads) if max(load) > f32(1) / (f32(128) * f32(n_blocks))]
    large.sort(key=lambda k: (-max(loads[k]), k))
    small = sorted(set(range(len(clusters))) - set(large))
    blocks = np.zeros((2, n_blocks), dtype=f32)
    block_of = np.full(X.shape[1], -1)
    for k in [*large, *small]:
        mine = np.array(loads[k], dtype=f32)[:, None]
        (work_before, mass_before), (work_after, mass_after) = sixth(blocks), sixth(blocks + mine)
        b = int(np.argmin(work_after + mass_after - (work_before + mass_before)))
        blocks[:, [b]] += mine
        block_of[clusters[k]] = b
    empty = np.flatnonzero(block_of < 0)
    block_of[empty] = np.arange(len(empty)) % n_blocks
    return block_of


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(8))
def test_balanced_is_what_the_readable_version_makes(seed, dtype):
    rng = np.random.default_rng(seed)
    X = sp.csc_array(skewed_sparse(rng, 200, 3000, dtype).multiply(rng.random((200, 3000)) < 0.1)).astype(dtype)
    X.eliminate_zeros()
    assert np.diff(X.indptr).max() < 200 / 3  # none is dense
    y = np.where(rng.random(200) < 0.4, 1.0, -1.0)
    made = make_partition(X, y, n_blocks=5, kind="balanced", seed=seed, n_threads=2)
    np.testing.assert_array_equal(made.block_of, balanced_by_hand(X.astype(float), y, 5, seed))


@pytest.mark.parametrize("n_blocks", [4, 32])
def test_loads_of_text_are_even_in_nonzeros_and_in_mass(n_blocks):
    data = bg.data.text_like(3000, 8000, 60.0, seed=2)
    blocks = make_partition(data.X, data.y, n_blocks=n_blocks, kind="balanced")
    nonzeros, mass = blocks.nonzeros(data.X), blocks.mass(data.X, data.y)
    assert nonzeros.max() <= 1.02 * nonzeros.mean()
    assert mass.max() <= 1.02 * mass.mean()
    clustered = make_partition(data.X, n_blocks=n_blocks, kind="clustered")
    assert clustered.nonzeros(data.X).max() > 1.5 * nonzeros.mean()


@pytest.mark.parametrize("n_blocks", [150, 5000])  # 5000: too many to look at all of them for a cluster
def test_many_blocks_are_as_even_as_the_heaviest_features_allow(n_blocks):
    data = bg.data.text_like(3000, 30_000, 60.0, seed=2)
    blocks = make_partition(data.X, data.y, n_blocks=n_blocks, kind="balanced")
    nonzeros, mass = blocks.nonzeros(data.X), blocks.mass(data.X, data.y)
    assert nonzeros.max() <= max(np.diff(data.X.tocsc().indptr).max(), 1.6 * nonzeros.mean())
    assert mass.max() <= max(gradient_mass(data.X, data.y).max(), 1.6 * mass.mean())


def grouped(rng, n, n_groups, per_group, correlation=0.9):
    base = np.repeat(rng.standard_normal((n, n_groups)), per_group, axis=1)
    X = np.sqrt(correlation) * base + np.sqrt(1 - correlation) * rng.standard_normal(base.shape)
    order = rng.permutation(X.shape[1])
    return X[:, order], order // per_group


@pytest.mark.parametrize("n", [100, 700])  # below and above the width of a sketch
@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_dense_groups_of_equal_size_are_found_and_make_the_blocks(n, shift):
    rng = np.random.default_rng(n)
    X, groups = grouped(rng, n, 16, 12)
    y = np.sign(X @ rng.standard_normal(X.shape[1]))
    blocks = make_partition(X + shift, y, n_blocks=16, kind="balanced")
    assert len({(b, g) for b, g in zip(blocks.block_of, groups, strict=True)}) == 16


def test_groups_of_dense_columns_in_a_sparse_matrix_are_found():
    rng = np.random.default_rng(3)
    X, groups = grouped(rng, 300, 4, 5)
    rare = sp.random_array((300, 500), density=0.02, rng=rng, format="csc")
    y = rng.standard_normal(300)
    blocks = make_partition(sp.hstack([rare, X], format="csc"), y, n_blocks=4, kind="balanced").block_of[500:]
    assert all(len(set(blocks[groups == g])) == 1 for g in range(4))


def test_duplicated_rare_columns_share_a_block():
    rng = np.random.default_rng(4)
    X = sp.random_array((500, 2000), density=0.01, rng=rng, format="csc")
    y = rng.standard_normal(500)
    block_of = make_partition(sp.hstack([X, X], format="csc"), y, n_blocks=4, kind="balanced").block_of
    same = np.mean(block_of[:2000] == block_of[2000:])
    assert same > 0.7  # by chance: 0.25; clusters are cut when full


@pytest.mark.threads
@pytest.mark.parametrize("kind", ["text", "dense"])
def test_balanced_does_not_depend_on_threads(kind):
    if kind == "text":
        X, y = (data := bg.data.text_like(4000, 6000, 60.0, seed=1)).X, data.y
    else:
        X, _ = grouped(np.random.default_rng(5), 900, 8, 40)
        y = X[:, 0]
    one = make_partition(X, y, n_blocks=32, kind="balanced", seed=7, n_threads=1)
    for n_threads in (2, 3, 7):
        again = make_partition(X, y, n_blocks=32, kind="balanced", seed=7, n_threads=n_threads)
        np.testing.assert_array_equal(again.block_of, one.block_of)
    assert one.kind == "balanced"
    assert one.seed == 7


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(1, 40), st.sampled_from([0.0, 0.05, 0.5, 1.0]), st.booleans(), st.data())
def test_every_matrix_gets_blocks_none_of_them_empty(n, p, density, dense, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    X = np.where(rng.random((n, p)) < density, rng.integers(-3, 4, (n, p)), 0).astype(float)
    y = rng.integers(-1, 2, n).astype(float) if data.draw(st.booleans()) else None
    n_blocks = data.draw(st.integers(1, p))
    blocks = make_partition(X if dense else sp.csc_array(X), y, n_blocks=n_blocks, kind="balanced", seed=3)
    assert blocks.sizes.min() >= 1
    assert blocks.sizes.sum() == p


def test_without_targets_features_count_alike():
    X = bg.data.text_like(2000, 3000, 40.0, seed=3).X
    blocks = make_partition(X, n_blocks=8, kind="balanced")
    assert blocks.sizes.max() <= 1.05 * blocks.sizes.mean()
    assert blocks.nonzeros(X).max() <= 1.05 * blocks.nonzeros(X).mean()


def test_labels_may_be_any_two_numbers():
    data = bg.data.text_like(1000, 1500, 30.0, seed=4)
    plus_minus = make_partition(data.X, data.y, n_blocks=6, kind="balanced")
    zero_one = make_partition(data.X, (data.y > 0).astype(int), n_blocks=6, kind="balanced")
    np.testing.assert_array_equal(plus_minus.block_of, zero_one.block_of)


def test_mass_of_a_feature_is_its_first_gradient_for_a_unit_column():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((40, 7))
    X[:, 2] = 0
    y = rng.standard_normal(40)
    expected = np.abs(X.T @ y) / np.where(np.arange(7) == 2, 1, np.linalg.norm(X, axis=0))
    np.testing.assert_allclose(gradient_mass(X, y), expected / expected.sum(), rtol=1e-12)
    np.testing.assert_allclose(gradient_mass(sp.csr_array(X), y), expected / expected.sum(), rtol=1e-12)


@pytest.mark.parametrize(
    ("y", "sentence"), [(np.ones(3), "y has shape"), (np.array([1.0, np.nan] * 20), "y holds NaN")]
)
def test_wrong_targets_are_refused(y, sentence):
    with pytest.raises(ValueError, match=sentence):
        make_partition(np.ones((40, 5)), y, n_blocks=2, kind="balanced")
