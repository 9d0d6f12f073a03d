"""Svmlight text that is written reads back to the last bit, here and elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

import blockgreedy as bg
from blockgreedy.data import write

VALUES = st.floats(allow_nan=False, allow_infinity=False)


def dataset(X, y=None):
    X = sp.csr_array(X)
    return bg.Dataset(X, np.arange(X.shape[0]) % 2 if y is None else np.asarray(y))


def bits(values):
    return np.asarray(values, dtype=np.float64).view(np.uint64).tolist()


@settings(max_examples=200, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=30), st.lists(VALUES, min_size=1, max_size=5))
def test_every_float_comes_back_to_the_last_bit(tmp_path_factory, values, labels):
    path = tmp_path_factory.mktemp("text") / "a.svm"
    n = len(labels)
    X = sp.csr_array((np.array(values * n), np.tile(np.arange(len(values)), n), np.arange(n + 1) * len(values)))
    write(bg.Dataset(X, np.array(labels)), path)
    again = bg.load(path, n_features=len(values))
    assert bits(again.X.data) == bits(X.data)
    assert bits(again.y) == bits(labels)
    there, theirs = load_svmlight_file(str(path), zero_based=False)
    assert bits(there.data) == bits(X.data)
    assert bits(theirs) == bits(labels)


@pytest.mark.parametrize("suffix", ["svm", "libsvm", "txt", "svm.gz", "svm.bz2", "svm.xz", "svm.zst", "npz"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_files_of_every_ending_hold_the_same(tmp_path, rng, suffix, dtype):
    X = sp.random_array((50, 30), density=0.2, rng=rng).tocsc().astype(dtype)
    data = bg.Dataset(X, rng.normal(size=50))
    path = tmp_path / f"a.{suffix}"
    write(data, path)
    again = bg.load(path, dtype=None if suffix == "npz" else dtype, n_features=None if suffix == "npz" else 30)
    assert (again.X != X).nnz == 0
    assert again.X.dtype == dtype
    np.testing.assert_array_equal(again.y, data.y)
    assert sorted(p.name for p in tmp_path.iterdir()) == [path.name]


def test_a_float32_keeps_its_value_in_float64(tmp_path):
    write(dataset(np.array([[0.1]], dtype=np.float32)), tmp_path / "a.svm")
    assert bg.load(tmp_path / "a.svm").X[0, 0] == np.float64(np.float32(0.1))


def test_numbers_are_as_short_as_they_can_be(tmp_path):
    X = np.array([[1.0, 0.5, 1e16, -0.0], [10.0, 0.0, 1e-300, 100.0]])
    stored = sp.csr_array((X.ravel(), np.tile(np.arange(4), 2), [0, 4, 8]))
    write(bg.Dataset(stored, np.array([True, False])), tmp_path / "a.svm")
    assert (tmp_path / "a.svm").read_text() == "1 1:1 2:0.5 3:1e+16 4:-0\n0 1:10 2:0 3:1e-300 4:100\n"


def test_rows_without_entries_are_kept(tmp_path):
    write(dataset(np.zeros((3, 2))), tmp_path / "a.svm")
    assert (tmp_path / "a.svm").read_text() == "0\n1\n0\n"
    assert bg.load(tmp_path / "a.svm", n_features=2).X.shape == (3, 2)


def test_unsorted_and_repeated_entries_are_put_in_order(tmp_path):
    X = sp.csr_array(([1.0, 2.0, 4.0], [2, 0, 2], [0, 3]), shape=(1, 3))
    write(bg.Dataset(X, np.array([1])), tmp_path / "a.svm")
    assert (tmp_path / "a.svm").read_text() == "1 1:2 3:5\n"
    assert X.indices.tolist() == [2, 0, 2]  # the caller's matrix is left as it is


def test_chunks_do_not_show(tmp_path, rng, monkeypatch):
    import sys

    X = sp.random_array((40, 20), density=0.3, rng=rng)
    X = sp.csr_array(X) * (np.arange(40) != 17)[:, None]  # and an empty row
    write(dataset(X), tmp_path / "a.svm")
    for chunk in (1, 2, 7):
        monkeypatch.setattr(sys.modules["blockgreedy.data.writing"], "_CHUNK", chunk)
        write(dataset(X), tmp_path / "b.svm")
        assert (tmp_path / "b.svm").read_text() == (tmp_path / "a.svm").read_text()


def test_what_text_does_not_hold_is_told(tmp_path):
    X = sp.csr_array(([1.0], [1], [0, 1]), shape=(1, 4))
    names = np.array(["a", "b", "c", "d"])
    remarks = write(bg.Dataset(X, np.array([1]), names), tmp_path / "a.svm", index_base=0)
    assert len(remarks) == 3
    assert (
        "the last 2 columns are empty, and svmlight text does not show that: read it with n_features=4" in remarks[0]
    )
    assert "index_base=0" in remarks[1]
    assert "names of the features" in remarks[2]
    assert write(bg.Dataset(X, np.array([1]), names), tmp_path / "a.npz") == []
    again = bg.load(tmp_path / "a.svm", index_base=0, n_features=4)
    np.testing.assert_array_equal(again.X.toarray(), X.toarray())
    assert write(dataset(np.eye(2)), tmp_path / "a.svm", index_base=0) == []
    np.testing.assert_array_equal(bg.load(tmp_path / "a.svm").X.toarray(), np.eye(2))


@pytest.mark.parametrize(
    ("X", "y", "name", "more", "sentence"),
    [
        ([[1.0]], ["spam"], "a.svm", {}, r"y holds text \('spam'\); svmlight files take numbers only"),
        ([[np.nan]], [1], "a.svm", {}, "X holds NaN or infinite values"),
        ([[1.0]], [np.inf], "a.svm", {}, "y holds NaN or infinite values"),
        ([[1.0]], [1], "a.csv", {}, r"path must end in \.npz, or \.svm, .*; got .*a\.csv"),
        ([[1.0]], [1], "a.npz.gz", {}, r"path must end in \.npz, or \.svm"),
        ([[1.0]], [1], "a.svm", {"index_base": 2}, "index_base=2 must be 0 or 1"),
    ],
)
def test_what_cannot_be_written_is_refused_and_leaves_no_file(tmp_path, X, y, name, more, sentence):
    with pytest.raises(ValueError, match=sentence):
        write(dataset(np.array(X), y), tmp_path / name, **more)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"existing folder, got .*nowhere"):
        write(dataset(np.eye(2)), tmp_path / "nowhere" / "a.svm")
