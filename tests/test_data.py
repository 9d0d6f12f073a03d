"""Datasets: generators (shape, determinism, learnable labels) and files (round trips, readable errors)."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from blockgreedy.data import Dataset, crosses_like, kdda_like, load, save, shaped, text_like

TEXT = {"n_samples": 1500, "n_features": 4000, "mean_nonzeros": 40.0, "n_topics": 12}
KDDA = {"n_samples": 6000, "n_features": 12_000, "n_nonzeros": 200_000}


@pytest.fixture(scope="module")
def text() -> Dataset:
    return text_like(**TEXT, seed=3, n_threads=2)


@pytest.fixture(scope="module")
def kdda() -> Dataset:
    return kdda_like(**KDDA, seed=3, n_threads=2)


@pytest.fixture
def tiny() -> Dataset:
    X = sparse.csc_array(np.array([[0.0, 1.5, 0.0], [2.0, 0.0, 0.25]]))
    return Dataset(X, np.array([1.0, -1.0]), np.array(["a", "b", "ç"]), name="tiny")


def assert_compressed_indices_ascend(X):
    steps = np.diff(X.indices.astype(np.int64))
    inside = np.ones(X.nnz - 1, dtype=bool)
    starts = X.indptr[1:-1]
    inside[starts[(starts > 0) & (starts < X.nnz)] - 1] = False
    assert (steps[inside] > 0).all()
    assert X.indices.min() >= 0
    assert X.indices.max() < X.shape[0 if X.format == "csc" else 1]


def row_norms(X):
    entries = X.tocoo()
    return np.sqrt(np.bincount(entries.row, entries.data.astype(np.float64) ** 2, minlength=X.shape[0]))


def same(a, b):
    return all(
        np.array_equal(getattr(a.X, part), getattr(b.X, part)) for part in ("indptr", "indices", "data")
    ) and np.array_equal(a.y, b.y)


# ------------------------------------------------------------------------------------------- generators


def test_text_has_the_shape_and_nonzeros_asked_for(text):
    assert text.X.shape == (1500, 4000)
    assert text.X.format == "csr"
    assert text.X.dtype == np.float32
    assert text.y.dtype == np.int8
    assert text.X.nnz == pytest.approx(1500 * 40, rel=0.01)


def test_kdda_has_the_shape_and_nonzeros_asked_for(kdda):
    assert kdda.X.shape == (6000, 12_000)
    assert kdda.X.format == "csc"
    assert kdda.X.dtype == np.float32
    assert kdda.y.dtype == np.int8
    assert kdda.X.nnz == pytest.approx(200_000, rel=0.01)


@pytest.mark.parametrize(
    ("n_samples", "n_features", "n_nonzeros"),
    [(100, 100, 100), (100, 100, 2500), (300, 200, 2000), (200, 5000, 9000), (20_000, 300, 100_000)],
)
def test_kdda_works_at_any_size(n_samples, n_features, n_nonzeros):
    made = kdda_like(n_samples, n_features, n_nonzeros, n_threads=2)
    assert made.X.nnz == pytest.approx(n_nonzeros, rel=0.01)
    assert_compressed_indices_ascend(made.X)
    assert set(np.unique(made.y)) == {-1, 1}


@pytest.mark.parametrize(("n_features", "mean_nonzeros", "n_topics"), [(100, 1, 1), (100, 12.5, 25), (5000, 2, 7)])
def test_text_works_at_any_size(n_features, mean_nonzeros, n_topics):
    made = text_like(200, n_features, mean_nonzeros, n_topics, n_threads=2)
    assert made.X.nnz == pytest.approx(200 * mean_nonzeros, rel=0.01)
    assert_compressed_indices_ascend(made.X)


def test_indices_ascend_strictly_within_rows_or_columns(text, kdda):
    assert_compressed_indices_ascend(text.X)
    assert_compressed_indices_ascend(kdda.X)


def test_index_arrays_are_int32_so_that_the_core_need_not_copy(text, kdda):
    for X in (text.X, kdda.X):
        assert X.indices.dtype == np.int32
        assert X.indptr.dtype == np.int32


@pytest.mark.parametrize("n_threads", [1, 3, 7])
def test_result_does_not_depend_on_the_number_of_threads(text, kdda, n_threads):
    assert same(text, text_like(**TEXT, seed=3, n_threads=n_threads))
    assert same(kdda, kdda_like(**KDDA, seed=3, n_threads=n_threads))


def test_seeds_give_different_data(text, kdda):
    assert not same(text, text_like(**TEXT, seed=4, n_threads=2))
    assert not same(kdda, kdda_like(**KDDA, seed=4, n_threads=2))


def test_rows_have_unit_norm_and_positive_values(text, kdda):
    for X in (text.X, kdda.X):
        norms = row_norms(X)
        np.testing.assert_allclose(norms[norms > 0], 1, rtol=0, atol=1e-6)
        assert (X.data > 0).all()
    assert (row_norms(text.X) > 0).all()


def test_kdda_columns_follow_zipf_and_are_shuffled(kdda):
    counts = np.diff(kdda.X.indptr)
    assert counts.min() >= 1
    assert counts.max() > 0.6 * kdda.X.shape[0]
    assert np.median(counts) <= 5
    assert (counts <= 3).mean() > 0.4
    densest = np.argsort(counts)[-100:]
    assert np.bincount(densest // 1200, minlength=10).min() >= 2  # every tenth of the columns has some


def test_text_terms_follow_zipf_and_none_is_empty(text):
    counts = np.bincount(text.X.indices, minlength=text.X.shape[1])
    assert counts.min() >= 1
    assert counts.max() > 30 * np.median(counts)


def test_text_lengths_spread_like_a_log_normal(text):
    logs = np.log(np.diff(text.X.indptr))
    assert logs.std() == pytest.approx(0.7, rel=0.1)


@pytest.mark.parametrize("kind", ["text", "kdda"])
def test_columns_are_more_correlated_than_at_random(kind, request):
    """Neighbours that clustering can find: the best partner of a column is far above chance."""
    X = request.getfixturevalue(kind).X.tocsc()
    counts = np.diff(X.indptr)
    some = np.flatnonzero((counts >= 12) & (counts <= 60))[:400]
    X = sparse.csc_array((np.ones_like(X.data), X.indices, X.indptr), shape=X.shape)[:, some]

    def median_best_overlap(columns):
        gram = (columns.T @ columns).toarray() / np.sqrt(np.outer(counts[some], counts[some]))
        np.fill_diagonal(gram, 0)
        return np.median(gram.max(axis=0))

    rng = np.random.default_rng(0)
    random_rows = np.concatenate([rng.choice(X.shape[0], count, replace=False) for count in counts[some]])
    at_random = sparse.csc_array((np.ones(random_rows.size), random_rows, X.indptr), shape=X.shape)
    assert median_best_overlap(X) > 1.4 * median_best_overlap(at_random)


def test_both_classes_are_frequent(text, kdda):
    for y in (text.y, kdda.y):
        assert set(np.unique(y)) == {-1, 1}
        assert 0.25 < (y == 1).mean() < 0.75


@pytest.mark.parametrize("kind", ["text", "kdda"])
def test_class_centroids_predict_unseen_labels(kind, request):
    made = request.getfixturevalue(kind)
    X, y = made.X.tocsr(), made.y.astype(float)
    half = np.arange(y.size) < y.size // 2
    direction = X[half].T @ np.where(y[half] > 0, 1 / (y[half] > 0).sum(), -1 / (y[half] < 0).sum())
    scores = X[~half] @ direction
    above, below = scores[y[~half] > 0], scores[y[~half] < 0]
    probability_of_right_order = np.searchsorted(np.sort(below), above).mean() / below.size
    assert probability_of_right_order > 0.65


@pytest.mark.parametrize("name", ["reuters", "news20", "realsim", "kdda"])
def test_shaped_scales_the_papers_shapes_and_says_that_it_is_generated(name):
    made = shaped(name, scale=0.002, n_threads=2)
    assert made.name.startswith(f"{name}-shaped (generated")
    assert made.X.shape[0] < 20_000


def test_reuters_shaped_has_the_papers_numbers():
    made = shaped("reuters", n_threads=2)
    assert made.name == "reuters-shaped (generated)"
    assert made.X.shape == (23_865, 47_237)
    assert made.X.nnz == pytest.approx(1_757_800, rel=0.01)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: shaped("rcv1"), "name must be one of kdda, news20, realsim, reuters, got 'rcv1'"),
        (lambda: shaped("kdda", scale=0), "scale must be positive and at most 10, got 0"),
        (lambda: kdda_like(n_samples=10), "n_samples must be an integer between 100 and .*, got 10"),
        (lambda: kdda_like(500, 400, 50_001), "n_nonzeros must be .* between 400 and 50,000, got 50001"),
        (lambda: kdda_like(seed=-1), "seed must be an integer between 0 and .*, got -1"),
        (lambda: text_like(n_features=1.5), "n_features must be an integer between 100 and .*, got 1.5"),
        (lambda: text_like(n_features=400, mean_nonzeros=51), "mean_nonzeros must lie .* = 50, got 51"),
        (lambda: text_like(n_features=400, n_topics=101), "n_topics must be .* between 1 and 100, got 101"),
    ],
)
def test_generators_name_the_argument_that_is_out_of_range(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


# ------------------------------------------------------------------------------------------------ files


def test_npz_round_trip_keeps_everything(tiny, tmp_path):
    save(tiny, tmp_path / "tiny.npz")
    back = load(tmp_path / "tiny.npz")
    assert same(tiny, back)
    assert back.X.format == "csc"
    assert back.name == "tiny"
    assert back.feature_names.tolist() == ["a", "b", "ç"]
    assert [file.name for file in tmp_path.iterdir()] == ["tiny.npz"]


@pytest.mark.parametrize("compressed", [False, True])
def test_saved_file_is_plain_scipy_and_numpy(kdda, tmp_path, compressed):
    path = tmp_path / "kdda.npz"
    save(kdda, str(path), compressed=compressed)
    assert (sparse.load_npz(path) != kdda.X).nnz == 0
    with np.load(path) as archive:
        assert np.array_equal(archive["y"], kdda.y)
        assert "feature_names" not in archive
    assert load(path).X.dtype == np.float32


def test_save_replaces_a_file_only_when_the_new_one_is_complete(tiny, tmp_path, monkeypatch):
    path = tmp_path / "tiny.npz"
    save(tiny, path)
    before = path.read_bytes()

    def fail(file, X, compressed):
        file.write(b"half a file")
        raise OSError("disk full")

    monkeypatch.setattr(sparse, "save_npz", fail)
    with pytest.raises(OSError, match="disk full"):
        save(tiny, path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["tiny.npz"]


@pytest.mark.parametrize("suffix", [".svm", ".svmlight", ".libsvm", ".txt", ".svm.gz", ".txt.bz2"])
def test_svmlight_text_is_read_by_its_extension(tiny, tmp_path, suffix):
    import bz2
    import gzip

    from sklearn.datasets import dump_svmlight_file

    path = tmp_path / f"tiny{suffix}"
    opener = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix, open)
    with opener(path, "wb") as file:
        dump_svmlight_file(tiny.X.tocsr(), tiny.y, file, zero_based=False)
    back = load(path)
    assert np.array_equal(back.X.toarray(), tiny.X.toarray())
    assert np.array_equal(back.y, tiny.y)
    assert back.name == "tiny"


def test_matrix_in_another_sparse_format_is_read_as_csr(tiny, tmp_path):
    save(Dataset(tiny.X.tocoo(), tiny.y), tmp_path / "tiny.npz")
    back = load(tmp_path / "tiny.npz").X
    assert back.format == "csr"
    assert np.array_equal(back.toarray(), tiny.X.toarray())


@pytest.mark.parametrize("name", ["data.xls", "data", "data.gz", "data.npz.gz", "data.parquet.gz"])
def test_unknown_extension_is_refused_with_the_accepted_ones(tmp_path, name):
    (tmp_path / name).write_bytes(b"1 1:2\n")
    accepted = r"\.svm, \.svmlight, \.libsvm, \.txt \(svmlight text\), \.parquet"
    with pytest.raises(ValueError, match=rf"path must end in \.npz, {accepted}"):
        load(tmp_path / name)


@pytest.mark.parametrize("name", ["none.npz", "none.svm", "none.txt.gz"])
def test_missing_file_is_named(tmp_path, name):
    with pytest.raises(FileNotFoundError, match=f"there is no file '.*{name}'"):
        load(tmp_path / name)


def test_npz_faults_are_told_apart(tiny, tmp_path):
    path = tmp_path / "fault.npz"
    np.savez(path, weights=np.ones(3))
    with pytest.raises(ValueError, match=r"holds no sparse matrix as scipy\.sparse\.save_npz .* it holds weights"):
        load(path)
    sparse.save_npz(path, tiny.X)
    with pytest.raises(ValueError, match="holds a matrix but no labels: add an array named y"):
        load(path)
    path.write_bytes(b"not a zip file at all")
    with pytest.raises(ValueError, match=r"is not an \.npz file"):
        load(path)
    with path.open("wb") as file:
        np.save(file, np.ones(3))
    with pytest.raises(ValueError, match=r"holds a single array"):
        load(path)


def write_with(path, X, **arrays):
    parts = {"indices": X.indices, "indptr": X.indptr, "data": X.data, "shape": X.shape, "format": b"csc"}
    np.savez(path, **(parts | arrays))


def test_npz_labels_and_names_must_fit_the_matrix(tiny, tmp_path):
    path = tmp_path / "fault.npz"
    write_with(path, tiny.X, y=np.ones(3))
    with pytest.raises(ValueError, match=r"fault\.npz: y must be an array of shape \(2,\), .* shape \(3,\)"):
        load(path)
    write_with(path, tiny.X, y=np.array([b"spam", b"ham"]))
    with pytest.raises(ValueError, match=r"fault\.npz: y must hold numbers or text, got dtype \|S4"):
        load(path)
    write_with(path, tiny.X, y=tiny.y, feature_names=np.array(["a"]))
    with pytest.raises(ValueError, match=r"feature_names must be None or an array of shape \(3,\)"):
        load(path)


def test_indices_out_of_range_are_refused(tiny, tmp_path):
    # scipy's products would read past the end of their arrays
    broken = sparse.csr_array(tiny.X)
    broken.indices[0] = 10**8
    write_with(tmp_path / "broken.npz", broken, y=tiny.y)
    with pytest.raises(ValueError, match=r"broken\.npz cannot be read as a sparse matrix with labels"):
        load(tmp_path / "broken.npz")


def test_damaged_files_are_refused(tiny, tmp_path):
    save(tiny, tmp_path / "whole.npz", compressed=True)
    whole = (tmp_path / "whole.npz").read_bytes()
    refused = 0
    for at in range(0, len(whole), 7):
        (tmp_path / "damaged.npz").write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            assert same(load(tmp_path / "damaged.npz"), tiny)
        except ValueError:
            refused += 1
    assert refused > 10


def test_pickled_arrays_are_never_loaded(tiny, tmp_path):
    write_with(tmp_path / "pickle.npz", tiny.X, y=np.array([1, None], dtype=object))
    with pytest.raises(ValueError, match=r"cannot be read as a sparse matrix with labels: .*allow_pickle"):
        load(tmp_path / "pickle.npz")


def test_malformed_svmlight_text_is_named(tmp_path):
    (tmp_path / "bad.svm").write_text("1 one:two\n")
    expected = "expected a feature, written index:value, found 'one:two'"
    with pytest.raises(ValueError, match=rf"bad\.svm, line 1, column 3: {expected}"):
        load(tmp_path / "bad.svm")


def test_save_refuses_other_extensions_and_missing_folders(tiny, tmp_path):
    with pytest.raises(ValueError, match=r"path must end in \.npz, got '.*tiny\.svm'"):
        save(tiny, tmp_path / "tiny.svm")
    with pytest.raises(FileNotFoundError, match="path must lie in an existing folder"):
        save(tiny, tmp_path / "nowhere" / "tiny.npz")


def test_dataset_refuses_arrays_that_do_not_fit(tiny):
    with pytest.raises(ValueError, match="X must be a matrix with two dimensions, got ndarray of shape"):
        Dataset(np.ones(2), np.ones(2))
    with pytest.raises(ValueError, match=r"y must be an array of shape \(2,\), .* got list"):
        Dataset(tiny.X, [1, 2])


def test_repr_is_short_and_counts_labels(tiny):
    assert repr(tiny) == "Dataset('tiny', 2 x 3, 3 nonzeros, float64, y {-1: 1, 1: 1})"
    many = Dataset(np.eye(20), np.arange(20.0))
    assert repr(many) == "Dataset(20 x 20, 20 nonzeros, float64, y {20 values in [0, 19]})"


def test_importing_data_does_not_import_sklearn():
    code = "import sys, blockgreedy.data; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_crosses_are_one_hot_and_mostly_copies():
    made = crosses_like(2_000, seed=3)
    assert same(made, crosses_like(2_000, seed=3))
    assert not same(made, crosses_like(2_000, seed=4))
    X = made.X.tocsc()
    assert made.X.nnz == 2_000 * (8 + 28 + 56)
    assert np.all(made.X.data == 1)
    assert np.all(np.asarray(X.sum(axis=0)) > 0)
    patterns = {X.indices[begin:end].tobytes() for begin, end in zip(X.indptr[:-1], X.indptr[1:], strict=True)}
    assert len(patterns) < X.shape[1] / 4
    assert 0.2 < np.mean(made.y == 1) < 0.8
    with pytest.raises(ValueError, match="n_samples=10 must be"):
        crosses_like(10)
