"""Summaries of datasets, beside what dense NumPy says."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.data import summarize
from blockgreedy.data.summary import histogram


@pytest.fixture
def messy(rng):
    """Empty rows and columns, repeated ones, stored zeros."""
    X = rng.normal(size=(30, 20)) * (rng.random((30, 20)) < 0.3)
    X[[3, 9]] = 0
    X[:, [0, 19]] = 0
    X[12] = X[4]
    X[20] = X[4]
    X[21] = -X[4]  # a multiple, no copy
    X[:, 7] = -2 * X[:, 5]
    return X


@pytest.mark.parametrize("storage", ["csr", "csc", "dense"])
def test_numbers_are_those_of_the_dense_matrix(messy, storage):
    stored = messy if storage == "dense" else sp.csr_array(messy).asformat(storage)
    found = summarize(bg.Dataset(stored, np.arange(30) % 2))
    nonzero = messy != 0
    assert (found.n_samples, found.n_features, found.nonzeros) == (30, 20, nonzero.sum())
    assert found.density == nonzero.mean()
    assert found.storage == storage
    values = messy[nonzero]
    assert found.values["least"] == values.min()
    assert found.values["most"] == values.max()
    assert found.values["mean"] == pytest.approx(values.mean(), rel=1e-12)
    for spread, axis in ((found.rows, 1), (found.columns, 0)):
        counts = nonzero.sum(axis=axis)
        assert (spread.least, spread.most, spread.empty) == (counts.min(), counts.max(), (counts == 0).sum())
        assert (spread.median, spread.mean) == (np.median(counts), counts.mean())
    assert found.rows.empty == 2
    assert found.columns.empty == 2
    assert found.repeated_rows == 2
    assert found.repeated_columns == 1
    np.testing.assert_array_equal(found.per_column, nonzero.sum(axis=0))


def test_many_repeated_rows_are_counted_as_unique_does(rng):
    X = rng.integers(0, 2, size=(500, 6)).astype(float)
    found = summarize(bg.Dataset(sp.csr_array(X), np.zeros(500)))
    filled = X[X.any(axis=1)]
    assert found.repeated_rows == len(filled) - len(np.unique(filled, axis=0)) > 400


def test_stored_zeros_are_told_apart(messy):
    X = sp.csr_array(messy)
    X.data[:5] = 0
    found = summarize(bg.Dataset(X, np.zeros(30)))
    assert found.stored_zeros == 5
    assert found.nonzeros == X.nnz - 5
    assert X.nnz == found.nonzeros + 5  # the caller's matrix is left as it is


def test_values_that_are_not_finite_are_counted_and_copies_not_looked_for(messy):
    messy[0, 1], messy[1, 2] = np.nan, np.inf
    found = summarize(bg.Dataset(sp.csr_array(messy), np.zeros(30)))
    assert found.not_finite == 2
    assert np.isfinite(list(found.values.values())).all()
    assert found.repeated_rows is None
    assert found.repeated_columns is None


def test_an_empty_matrix_has_a_summary():
    found = summarize(bg.Dataset(sp.csr_array((3, 2)), np.zeros(3)))
    assert (found.nonzeros, found.density, found.values, found.repeated_rows) == (0, 0, None, 0)
    assert [(part.low, part.high, part.columns) for part in found.bins] == [(0, 0, 2)]


@pytest.mark.parametrize(
    ("y", "labels"),
    [
        (np.array([1, -1, 1]), {"-1": 1, "1": 2}),
        (np.array(["spam", "ham", "ham"]), {"ham": 2, "spam": 1}),
        (np.arange(12) / 4, {"distinct": 12, "least": 0.0, "mean": 1.375, "most": 2.75}),
        (np.array([f"t{k}" for k in range(11)]), {"distinct": 11}),
    ],
)
def test_few_labels_are_counted_and_many_summed_up(y, labels):
    assert summarize(bg.Dataset(sp.csr_array(np.ones((len(y), 1))), y)).labels == labels


def test_bins_are_three_a_decade_and_hold_every_column(rng):
    counts = np.concatenate([[0, 0], rng.zipf(1.5, 2000).clip(max=30_000)])
    bins = histogram(counts)
    assert [part.low for part in bins][:9] == [0, 1, 2, 5, 10, 20, 50, 100, 200]
    for part in bins:
        inside = (counts >= part.low) & (counts <= part.high)
        assert (part.columns, part.nonzeros) == (inside.sum(), counts[inside].sum())
    assert sum(part.columns for part in bins) == len(counts)
    assert bins[-1].low <= counts.max() <= bins[-1].high
