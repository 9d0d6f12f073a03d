"""Loading: the cache beside a file, matrices with labels in another file, types."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse as sp
from scipy.io import mmwrite

import blockgreedy as bg
from blockgreedy.data import cache, formats
from blockgreedy.data import load as load_function


def same(a, b):
    assert (a.name, a.index_base, a.encoding, a.labelled) == (b.name, b.index_base, b.encoding, b.labelled)
    np.testing.assert_array_equal(a.y, b.y, strict=True)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(a.X, part), getattr(b.X, part), strict=True)
    assert (a.X.shape, a.X.format) == (b.X.shape, b.X.format)
    if a.feature_names is not None or b.feature_names is not None:
        np.testing.assert_array_equal(a.feature_names, b.feature_names, strict=True)


@pytest.fixture
def svm(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:0.1 3:2\n-1 2:4\n")
    return path


@pytest.fixture
def parquet(tmp_path):
    path = tmp_path / "a.parquet"
    pa.parquet.write_table(pa.table({"color": ["red", "blue"], "size": [1.5, 0.0], "label": ["p", "q"]}), path)
    return path


@pytest.fixture
def reads(monkeypatch):
    """How often files are really read: a cache that is used does not count."""
    counted = []
    for name in ("read_svmlight", "open_table", "read_mtx"):
        original = getattr(formats, name)
        monkeypatch.setattr(
            formats, name, lambda *a, original=original, **k: (counted.append(a[0].name), original(*a, **k))[1]
        )
    return counted


@pytest.mark.parametrize("kind", ["svm", "parquet"])
def test_a_cache_is_made_and_used_and_says_the_same(request, kind, reads):
    path = request.getfixturevalue(kind)
    plain = bg.load(path)
    assert sorted(p.name for p in path.parent.iterdir()) == [path.name]  # not made without being asked for
    first = bg.load(path, cache=True)
    assert path.with_name(path.name + ".cache.npz").is_file()
    reads.clear()
    second = bg.load(path, cache=True)
    assert reads == []
    same(plain, first)
    same(plain, second)


def test_a_cache_follows_the_file(svm, reads):
    bg.load(svm, cache=True)
    svm.write_text("1 1:0.1 3:2\n-1 2:5\n")
    assert bg.load(svm, cache=True).X[1, 1] == 5
    before = svm.stat().st_mtime_ns
    svm.write_text("1 1:0.1 3:2\n-1 2:6\n")  # same size, and in a moment the same time
    os.utime(svm, ns=(before + 1, before + 1))
    assert bg.load(svm, cache=True).X[1, 1] == 6
    assert len(reads) == 3


@pytest.mark.parametrize(
    "options", [{"dtype": np.float32}, {"index_base": 0}, {"n_features": 7}, {"allow_unterminated": True}]
)
def test_a_cache_follows_the_options_of_text(svm, reads, options):
    bg.load(svm, cache=True)
    same(bg.load(svm, cache=True, **options), bg.load(svm, **options))
    assert len(reads) == 3


def test_a_cache_follows_the_options_of_tables(parquet, reads):
    bg.load(parquet, cache=True)
    for options in ({"categorical": ["size"]}, {"target": "size"}, {"dtype": "float32"}):
        same(bg.load(parquet, cache=True, **options), bg.load(parquet, **options))
    assert len(reads) == 7


def test_a_cache_serves_the_type_it_was_made_for(svm):
    bg.load(svm, cache=True, dtype="float32")
    assert bg.load(svm, cache=True, dtype=np.float32).X.dtype == np.float32
    wide = bg.load(svm, cache=True)
    assert wide.X.dtype == np.float64
    assert wide.X[0, 0] == 0.1  # not float32's


@pytest.mark.parametrize("damage", ["empty", "cut", "other", "array", "zip"])
def test_a_broken_cache_is_made_anew(svm, reads, damage):
    expected = bg.load(svm, cache=True)
    kept = svm.with_name("a.svm.cache.npz")
    whole = kept.read_bytes()
    if damage == "array":
        with kept.open("wb") as file:
            np.save(file, np.zeros(3))
    elif damage == "zip":
        np.savez(kept, about=np.array("[1, 2]"))
    else:
        kept.write_bytes({"empty": b"", "cut": whole[: len(whole) // 2], "other": b"something else"}[damage])
    same(bg.load(svm, cache=True), expected)
    reads.clear()
    same(bg.load(svm, cache=True), expected)
    assert reads == []


@pytest.mark.parametrize("kind", ["svm", "parquet"])
def test_no_changed_byte_of_a_cache_is_an_error_or_other_data(request, kind):
    path = request.getfixturevalue(kind)
    expected = bg.load(path, cache=True)
    kept = path.with_name(path.name + ".cache.npz")
    whole = kept.read_bytes()
    rng = np.random.default_rng(0)
    directory = whole.find(b"PK\x01\x02")
    for at in [*rng.choice(directory, size=300, replace=False), *range(directory, len(whole))]:
        damaged = bytearray(whole)
        damaged[at] ^= 1 << rng.integers(8)
        kept.write_bytes(damaged)
        same(bg.load(path, cache=True), expected)


@pytest.mark.parametrize(
    ("was", "became"),
    [
        (b"'descr': '<f8'", b"'descr': '<f4'"),  # y and data read as half of their bytes
        (b"\x93NUMPY\x01\x00v", b"\x93NUMPY\x01\x00u"),  # header ends a byte earlier, so data begin a byte earlier
        (b"'shape': (3,)", b"'shape': (2,)"),
    ],
)
def test_a_cache_whose_arrays_have_another_header_is_made_anew(svm, was, became):
    expected = bg.load(svm, cache=True)
    kept = svm.with_name("a.svm.cache.npz")
    whole = kept.read_bytes()
    places = [at for at in range(len(whole)) if whole.startswith(was, at)]
    assert places
    for at in places:
        kept.write_bytes(whole[:at] + became + whole[at + len(was) :])
        same(bg.load(svm, cache=True), expected)


@pytest.mark.parametrize("at", [6, 10])  # what the archive says of the version and of the compression of a file
def test_a_cache_of_an_unknown_version_or_compression_is_made_anew(svm, reads, at):
    expected = bg.load(svm, cache=True)
    kept = svm.with_name("a.svm.cache.npz")
    damaged = bytearray(kept.read_bytes())
    damaged[damaged.find(b"PK\x01\x02") + at] = 109
    kept.write_bytes(damaged)
    same(bg.load(svm, cache=True), expected)
    assert len(reads) == 2


def test_a_cache_that_cannot_be_written_is_a_warning(svm, monkeypatch):

    def refuse(*_):
        raise PermissionError("read-only")

    monkeypatch.setattr(cache, "write_npz", refuse)
    with pytest.warns(UserWarning, match=r"a\.svm\.cache\.npz cannot be written: read-only"):
        data = bg.load(svm, cache=True)
    assert data.X.shape == (2, 3)


def test_an_encoding_is_not_cached(parquet):
    encoding = bg.load(parquet).encoding
    bg.load(parquet, encoding=encoding, cache=True)
    assert sorted(path.name for path in parquet.parent.iterdir()) == ["a.parquet"]


# Matrices with their labels in another file.


@pytest.fixture
def mtx(tmp_path, rng):
    X = sp.random_array((8, 5), density=0.4, rng=rng)
    mmwrite(tmp_path / "a.mtx", X)
    return tmp_path / "a.mtx", X.toarray()


@pytest.mark.parametrize("suffix", [".npy", ".txt"])
def test_mtx_with_its_labels(mtx, suffix):
    path, X = mtx
    y = np.arange(8) / 4
    labels = path.with_name(f"labels{suffix}")
    np.save(labels, y) if suffix == ".npy" else labels.write_text("".join(f"{v}\n" for v in y))
    data = bg.load(path, target=labels)
    np.testing.assert_array_equal(data.X.toarray(), X)
    np.testing.assert_array_equal(data.y, y)
    assert data.X.format == "csr"
    assert data.name == "a"


def test_the_cache_of_a_matrix_follows_its_labels(mtx, reads):
    path, _ = mtx
    labels = path.with_name("labels.txt")
    labels.write_text("1\n" * 8)
    bg.load(path, target=labels, cache=True)
    bg.load(path, target=labels, cache=True)
    assert len(reads) == 1
    labels.write_text("2\n" * 7 + "33\n")
    assert bg.load(path, target=labels, cache=True).y.tolist() == [2] * 7 + [33]


@pytest.mark.parametrize("field", ["pattern", "integer"])
def test_mtx_of_integers_and_of_patterns(tmp_path, field):
    values = " 3" if field == "integer" else ""
    text = f"%%MatrixMarket matrix coordinate {field} symmetric\n3 3 2\n2 1{values}\n3 3{values}\n"
    (tmp_path / "a.mtx").write_text(text)
    data = bg.load(tmp_path / "a.mtx", labelled=False)
    value = 3.0 if field == "integer" else 1.0
    np.testing.assert_array_equal(data.X.toarray(), [[0, value, 0], [value, 0, 0], [0, 0, value]])
    assert (data.X.dtype, data.labelled) == (np.float64, False)


def test_dense_mtx_stays_dense_with_and_without_a_cache(tmp_path, rng):
    X = rng.normal(size=(4, 3))
    mmwrite(tmp_path / "a.mtx", X, precision=17)
    for _ in range(2):
        data = bg.load(tmp_path / "a.mtx", labelled=False, cache=True)
        assert isinstance(data.X, np.ndarray)
        np.testing.assert_allclose(data.X, X, rtol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, bool])
def test_npy_keeps_floats_and_turns_the_rest_into_float64(tmp_path, rng, dtype):
    X = (4 * rng.normal(size=(6, 3))).astype(dtype)
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "y.npy", np.array(list("aabbab")))
    data = bg.load(tmp_path / "a.npy", target=tmp_path / "y.npy")
    assert data.X.dtype == (dtype if dtype in (np.float32, np.float64) else np.float64)
    np.testing.assert_array_equal(data.X, X)
    assert data.y.tolist() == list("aabbab")
    assert bg.load(tmp_path / "a.npy", target=tmp_path / "y.npy", dtype="float32").X.dtype == np.float32


def test_dtype_changes_arrays_of_every_format(tmp_path, svm):
    bg.save(bg.load(svm), tmp_path / "b.npz")
    for path in (svm, tmp_path / "b.npz"):
        assert bg.load(path).X.dtype == np.float64
        assert bg.load(path, dtype=np.float32).X.dtype == np.float32


def test_faults_of_matrices_are_told(mtx, tmp_path):
    path, _ = mtx
    shape = r"a\.mtx: y must be an array of shape \(8,\)"
    cases = {
        "none.txt": "target must name an existing file of labels",
        "short.txt": shape,
        "empty.txt": shape,
        "matrix.npy": shape,
        "words.txt": r"words\.txt, a file of labels, must hold one number per line: .*'yes'",
        "pickle.npy": r"pickle\.npy cannot be read as \.npy: .*allow_pickle",
    }
    (tmp_path / "short.txt").write_text("1\n2\n")
    (tmp_path / "words.txt").write_text("yes\nno\n")
    (tmp_path / "empty.txt").write_text("")
    np.save(tmp_path / "matrix.npy", np.zeros((8, 1)))
    np.save(tmp_path / "pickle.npy", np.array([{}] * 8), allow_pickle=True)
    for name, sentence in cases.items():
        with pytest.raises((ValueError, FileNotFoundError), match=sentence):
            bg.load(path, target=tmp_path / name)
    with pytest.raises(
        ValueError, match=r"a\.mtx holds a matrix without labels; name the file of the labels .* with target="
    ):
        bg.load(path)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.mtx", b"something else", "cannot be read as MatrixMarket"),
        ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 5\n", "cannot be read as MatrixMarket"),
        ("a.mtx", b"%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 5 2\n", "holds complex numbers"),
        ("a.npy", b"something else", r"cannot be read as \.npy"),
        ("a.npy", np.zeros(3), r"must hold a matrix of numbers, got float64 of shape \(3,\)"),
        ("a.npy", np.array([["a"]]), r"must hold a matrix of numbers, got <U1 of shape \(1, 1\)"),
    ],
)
def test_files_that_hold_no_matrix_are_told(tmp_path, name, content, sentence):
    if isinstance(content, bytes):
        (tmp_path / name).write_bytes(content)
    else:
        np.save(tmp_path / name, content)
    with pytest.raises(ValueError, match=sentence):
        bg.load(tmp_path / name, labelled=False)


@pytest.mark.parametrize("dtype", [int, "float16", "complex128"])
def test_other_types_are_refused_for_every_format(svm, parquet, dtype):
    for path in (svm, parquet):
        with pytest.raises(ValueError, match="must be None, float32 or float64"):
            load_function(path, dtype=dtype)


def test_a_format_is_one_entry(tmp_path, monkeypatch):
    def read(file, labelled, dtype):
        assert (file.suffix, file.compression, labelled, dtype) == (".rows", ".gz", True, np.float32)
        return bg.Dataset.of_file(file.path, sp.csr_array(np.eye(3)), np.arange(3.0), None)

    rows = formats.Format("rows", (".rows",), read, ("labelled", "dtype"), compressible=(".rows",))
    monkeypatch.setattr(formats, "READERS", (*formats.READERS, rows))
    path = tmp_path / "a.rows.gz"
    path.write_bytes(b"")
    for _ in range(2):
        assert bg.load(path, dtype=np.float32, cache=True).X.dtype == np.float32
    assert cache.cache_of(path).is_file()
    with pytest.raises(ValueError, match=r"target='y' is for tables, .mtx, .npy only; it does not apply to"):
        bg.load(path, target="y")
    with pytest.raises(ValueError, match=r"\.rows \(rows\); svmlight text and .csv and rows also with .gz"):
        bg.load(tmp_path / "a.words")
