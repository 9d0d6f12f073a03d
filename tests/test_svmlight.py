"""Svmlight text: every value to the last bit, every fault with its place; never a silent misread."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import struct
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import blockgreedy as bg

NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
LINE = re.compile(
    rf"[ \t]*(?P<label>{NUMBER})(?P<qid>[ \t]+qid:[0-9]+)?(?P<features>(?:[ \t]+[0-9]+:{NUMBER})*)[ \t]*"
)


def oracle(text: str) -> tuple[list[float], list[list[tuple[int, float]]]]:
    """The same language as a regular expression and Python's float; raises ValueError where a line does not fit."""
    labels, rows = [], []
    for line in re.split(r"\r?\n", text):  # splitlines() would end lines at other characters too
        body = line.split("#")[0]
        if not body.strip(" \t"):
            continue
        found = LINE.fullmatch(body)
        if found is None:
            raise ValueError(line)
        row = [(int(k), float(v)) for k, v in (part.split(":") for part in found["features"].split())]
        indices = [k for k, _ in row]
        numbers = [float(found["label"]), *(v for _, v in row)]
        if indices != sorted(set(indices)) or any(k > 2**31 - 2 for k in indices) or not np.all(np.isfinite(numbers)):
            raise ValueError(line)
        labels.append(numbers[0])
        rows.append(row)
    if not rows:
        raise ValueError("no rows")
    return labels, rows


def same(data: bg.Dataset, labels: list[float], rows: list[list[tuple[int, float]]]) -> bool:
    base = 0 if any(row and row[0][0] == 0 for row in rows) else 1
    indices = np.array([k - base for row in rows for k, _ in row], dtype=np.int64)
    values = np.array([v for row in rows for _, v in row])
    counts = np.cumsum([0] + [len(row) for row in rows])
    return (
        data.index_base == base
        and np.array_equal(data.X.indptr, counts)
        and np.array_equal(data.X.indices, indices)
        and data.X.data.tobytes() == values.tobytes()
        and data.y.tobytes() == np.array(labels).tobytes()
    )


def load_text(folder: Path, text: str | bytes, name: str = "data.svm", **options) -> bg.Dataset:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return bg.load(path, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("svmlight")


# ------------------------------------------------------------------------------------------------ values

decimals = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda v: f"{v:.16g}"),
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(lambda v: f"{v:+.8e}"),
    st.from_regex(rf"\A{NUMBER}\Z"),
).filter(lambda text: np.isfinite(float(text)))


@given(texts=st.lists(decimals, min_size=1, max_size=20))
@example(
    texts=["9007199254740993", "9007199254740992.5", "2.2250738585072011e-308", "4.9e-324", "2.4e-324", "1e-400"]
)
@example(texts=["1" + "0" * 400 + "e-400", "0." + "0" * 400 + "1e400", "1.7976931348623157e308", "-0.0", "+.5", "5."])
@example(texts=["0.1000000000000000055511151231257827", "123456789012345678901234567890", "1e22", "1e23", "8.5e-5"])
@settings(max_examples=300, deadline=None)
def test_numbers_are_those_of_python_to_the_last_bit(folder, texts):
    line = "1 " + " ".join(f"{k}:{text}" for k, text in enumerate(texts, 1)) + "\n"
    data = load_text(folder, line)
    for text, value in zip(texts, data.X.data, strict=True):
        assert struct.pack("d", value) == struct.pack("d", float(text)), text


@pytest.mark.parametrize("zero_based", [False, True])
def test_what_scikit_learn_writes_and_reads(folder, zero_based):
    made = bg.data.text_like(700, 900, 30.0, seed=4)
    X = made.X.astype(np.float64) * np.pi
    path = folder / "dumped.svm"
    dump_svmlight_file(X, made.y, str(path), zero_based=zero_based, comment="made in a test")
    expected, labels = load_svmlight_file(path)
    for n_threads in (1, 3):
        data = bg.load(path, n_threads=n_threads)
        assert data.index_base == (0 if zero_based else 1)
        for part in ("indptr", "indices", "data"):
            assert np.array_equal(getattr(data.X, part), getattr(expected, part))
        assert np.array_equal(data.y, labels)
        assert data.X.dtype == np.float64


def test_float32_rounds_once_more_and_refuses_what_does_not_fit(folder):
    data = load_text(folder, "1 1:0.1 2:1e-50\n", dtype=np.float32)
    assert data.X.dtype == np.float32
    assert data.X.data.tolist() == [np.float32(0.1), 0.0]
    with pytest.raises(
        ValueError, match="line 1, column 5: expected a number within the range of float32, found '1e39'"
    ):
        load_text(folder, "1 1:1e39\n", dtype="float32")


# ---------------------------------------------------------------------------------------------- the text

PIECES = [
    *("1", "-1", "+1", "0.5", " ", "  ", "\t", "\n", "\r\n", "\r", "#", "# c:1\n", ":", "qid:3 ", ",", "nan", "x"),
    *("1:2", "2:3.5e-3", "3:-1", "3:", ":4", "10:1e400", "0:1", "2147483647:1"),
    *("1 1:1 2:2\n", "-1 qid:7 3:0.25 # ok\n", "2\n", "1  5:1\t6:2 \n"),
]


@given(text=st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@example(text="1#\r:\n")
@example(text="#\r1\n")
@example(text="1\r# c:1\n")
@example(text="1\r\r\n")
@settings(max_examples=1500, deadline=None)
def test_any_text_is_read_as_the_oracle_reads_it_or_refused(folder, text):
    try:
        labels, rows = oracle(text)
    except ValueError:
        labels, rows = [], None
    terminated = text.endswith("\n")
    if rows is None or not terminated:
        with pytest.raises(ValueError):
            load_text(folder, text)
    else:
        assert same(load_text(folder, text), labels, rows)


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_read_or_refused(folder, text):
    try:
        data = load_text(folder, text)
    except ValueError:
        return
    labels, rows = oracle(text.decode("latin-1"))
    assert same(data, labels, rows)


def many_lines(n: int, seed: int = 0) -> str:
    """Over several chunks, with everything that makes the first pass overestimate."""
    rng = np.random.default_rng(seed)
    lines = []
    for k in range(n):
        features = np.unique(rng.integers(1, 50_000, rng.integers(0, 12)))
        row = " ".join(
            f"{j}:{v!r}" for j, v in zip(features.tolist(), rng.standard_normal(len(features)).tolist(), strict=True)
        )
        lines.append(f"{rng.integers(-1, 2)} {'qid:9 ' if k % 3 == 0 else ''}{row}")
        if k % 5 == 0:
            lines[-1] += " # a:b c:d"
        if k % 11 == 0:
            lines += ["", "   ", "# 1:2 3:4"]
    return "\n".join(lines) + "\n"


@pytest.mark.threads
def test_chunks_join_without_a_seam_for_any_number_of_threads(folder):
    text = many_lines(40_000)
    assert len(text) > 5_000_000
    labels, rows = oracle(text)
    for n_threads in (1, 2, 5):
        assert same(load_text(folder, text, n_threads=n_threads), labels, rows)


def test_one_line_longer_than_many_chunks(folder):
    row = " ".join(f"{k}:{k}.5" for k in range(1, 400_000))
    text = f"1 {row}\n-1 7:1\n"
    assert len(text) > 5_000_000
    data = load_text(folder, text, n_threads=3)
    assert data.X.indptr.tolist() == [0, 399_999, 400_000]
    assert data.X.data[123_455] == 123456.5


def test_the_first_fault_is_reported_whoever_finds_one_first(folder):
    lines = many_lines(30_000).split("\n")
    for bad in (29_000, 20_123, 5_001):
        lines[bad] = "1 5:1 5:2"
        with pytest.raises(ValueError, match=rf"line {bad + 1}, column 7: expected each feature once in a row"):
            load_text(folder, "\n".join(lines), n_threads=4)


def test_width_and_base_can_be_given(folder):
    assert load_text(folder, "1 1:1\n", n_features=10).X.shape == (1, 10)
    assert load_text(folder, "1 1:1\n", index_base=0).X.shape == (1, 2)
    with pytest.raises(ValueError, match="line 2, column 3: expected a feature index of at least 1"):
        load_text(folder, "1 1:1\n1 0:1\n", index_base=1)
    with pytest.raises(ValueError, match="has a feature with index 11, which is more than n_features=10 allows"):
        load_text(folder, "1 11:1\n", n_features=10)
    with pytest.raises(ValueError, match="index_base=2 must be 'auto', 0 or 1"):
        load_text(folder, "1 1:1\n", index_base=2)
    with pytest.raises(ValueError, match=r"dtype=.*int64.* must be None, float32 or float64"):
        load_text(folder, "1 1:1\n", dtype=np.int64)


# Text, and where its fault is: line, column, what was expected there.
MALFORMED = [
    ("x 1:1\n", 1, 1, "a label, which is a number"),
    ("1:1 2:2\n", 1, 1, "a label before the first feature"),
    ("nan 1:1\n", 1, 1, "a label, which is a number"),
    ("inf 1:1\n", 1, 1, "a label, which is a number"),
    ("1e 1:1\n", 1, 1, "a label, which is a number"),
    ("--1 1:1\n", 1, 1, "a label, which is a number"),
    ("0x10 1:1\n", 1, 1, "a label, which is a number"),
    ("1_000 1:1\n", 1, 1, "a label, which is a number"),
    ("1,2 1:1\n", 1, 2, "one label per row"),
    ("1, 1:1\n", 1, 2, "one label per row"),
    ("1e999 1:1\n", 1, 1, "a number within the range of float64"),
    ("1;1:1\n", 1, 1, "a label, which is a number"),
    ('"1" 1:1\n', 1, 1, "a label, which is a number"),
    ("1 1\n", 1, 4, "':' between the index of a feature and its value"),
    ("1 1 :1\n", 1, 4, "':' between the index of a feature and its value"),
    ("1 1=1\n", 1, 4, "':' between the index of a feature and its value"),
    ("1 a:1\n", 1, 3, "a feature, written index:value"),
    ("1 :1\n", 1, 3, "a feature, written index:value"),
    ("1 -1:1\n", 1, 3, "a feature, written index:value"),
    ("1 +1:1\n", 1, 3, "a feature, written index:value"),
    ("1 1.5:1\n", 1, 4, "':' between the index of a feature and its value"),
    ("1 1e3:1\n", 1, 4, "':' between the index of a feature and its value"),
    ("1 2147483647:1\n", 1, 3, "a feature index of at most 2147483646"),
    ("1 99999999999999999999:1\n", 1, 3, "a feature index of at most 2147483646"),
    ("1 1:\n", 1, 5, "a value, which is a number"),
    ("1 1: 2\n", 1, 5, "a value, which is a number"),
    ("1 1:x\n", 1, 5, "a value, which is a number"),
    ("1 1:nan\n", 1, 5, "a value, which is a number"),
    ("1 1:inf\n", 1, 5, "a value, which is a number"),
    ("1 1:-inf\n", 1, 5, "a value, which is a number"),
    ("1 1:1x\n", 1, 5, "a value, which is a number"),
    ("1 1:1,5\n", 1, 5, "a value, which is a number"),
    ("1 1:1:2\n", 1, 5, "a value, which is a number"),
    ("1 1:.\n", 1, 5, "a value, which is a number"),
    ("1 1:1e\n", 1, 5, "a value, which is a number"),
    ("1 1:1e+\n", 1, 5, "a value, which is a number"),
    ("1 1:1.2.3\n", 1, 5, "a value, which is a number"),
    ("1 1:0x1p3\n", 1, 5, "a value, which is a number"),
    ("1 1:1e400\n", 1, 5, "a number within the range of float64"),
    ("1 1:-1e309\n", 1, 5, "a number within the range of float64"),
    ("1 1:1 1:2\n", 1, 7, "each feature once in a row"),
    ("1 2:1 1:2\n", 1, 7, "features in ascending order"),
    ("1 1:1\n-1 3:1 2:1\n", 2, 8, "features in ascending order"),
    ("1 qid:x 1:1\n", 1, 7, "a whole number after qid:"),
    ("1 qid: 1:1\n", 1, 7, "a whole number after qid:"),
    ("1 qid:1.5 1:1\n", 1, 7, "a whole number after qid:"),
    ("1 qid:-1 1:1\n", 1, 7, "a whole number after qid:"),
    ("1 1:1 qid:2\n", 1, 7, "a feature, written index:value"),
    ("1 sid:2 1:1\n", 1, 3, "a feature, written index:value"),
    ("1 1:1\n\n# fine\n1 2:2\nbad\n", 5, 1, "a label, which is a number"),
    ("1 1:1\r1 1:1\n", 1, 5, "a value, which is a number"),
    ("1 1:1\x00\n", 1, 5, "a value, which is a number"),
    ("\ufeff1 1:1\n", 1, 1, "a label, which is a number"),
    ("1\u00a01:1\n", 1, 1, "a label, which is a number"),
    ("1 1:1 ２:1\n", 1, 7, "a feature, written index:value"),
    ("PK\x03\x04\n", 1, 1, "a label, which is a number"),
    ("label,f1,f2\n", 1, 1, "a label, which is a number"),
    ('{"a": 1}\n', 1, 1, "a label, which is a number"),
]


@pytest.mark.parametrize(("text", "line", "column", "expected"), MALFORMED)
def test_malformed_text_is_refused_with_line_column_and_reason(folder, text, line, column, expected):
    with pytest.raises(ValueError) as caught:
        load_text(folder, text, name="bad.svm")
    message = str(caught.value)
    assert message.startswith(str(folder / "bad.svm"))
    assert f", line {line}, column {column}: expected {expected}" in message
    assert "found" in message


def test_there_are_enough_malformed_texts():
    assert len({text for text, *_ in MALFORMED}) >= 50


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n\n", "   \n\t\n"])
def test_text_without_rows_is_refused(folder, text):
    with pytest.raises(ValueError, match="holds no rows"):
        load_text(folder, text)


def test_rows_without_features_are_rows(folder):
    data = load_text(folder, "1\n-1 # nothing\n")
    assert data.X.shape == (2, 1)
    assert data.X.nnz == 0


# --------------------------------------------------------------------------------------------- truncated


def test_every_cut_inside_a_line_is_an_error(folder):
    text = "1 1:0.125 12:3.5\n-1 2:4 # end\n"
    for cut in range(1, len(text)):
        if text[cut - 1] == "\n":
            continue
        with pytest.raises(ValueError, match="newline, so it may be truncated"):
            load_text(folder, text[:cut])
    data = load_text(folder, text.rstrip("\n"), allow_unterminated=True)
    assert same(data, *oracle(text))
    assert load_text(folder, "1 1:2", allow_unterminated=True).X.data.tolist() == [2.0]
    with pytest.raises(ValueError, match="line 2, column 4"):
        load_text(folder, "1 1:2\n1 2", allow_unterminated=True)


PACKERS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("suffix", PACKERS)
def test_compressed_text_is_read_as_it_comes(folder, suffix, monkeypatch):
    monkeypatch.setattr("blockgreedy.data.compression.BLOCK", 1 << 16)  # blocks end inside lines
    text = many_lines(8_000)
    labels, rows = oracle(text)
    assert len(text) > 10 * (1 << 16)
    pack = PACKERS[suffix]
    assert same(load_text(folder, pack(text.encode()), f"data.svm{suffix}"), labels, rows)
    two = pack(text[:100_000].encode()) + pack(text[100_000:].encode())  # as parallel packers write them
    assert same(load_text(folder, two, f"data.svm{suffix}"), labels, rows)


@pytest.mark.parametrize("suffix", PACKERS)
def test_truncated_or_broken_compression_is_an_error(folder, suffix):
    packed = PACKERS[suffix](many_lines(2_000).encode())
    for share in (0.1, 0.5, 0.9, 0.999):
        with pytest.raises(ValueError, match=r"truncated|cannot be decompressed"):
            load_text(folder, packed[: int(share * len(packed))], f"cut.svm{suffix}")
    middle = len(packed) // 2
    broken = packed[:middle] + bytes(b ^ 0xFF for b in packed[middle : middle + 64]) + packed[middle + 64 :]
    with pytest.raises(ValueError):
        load_text(folder, broken, f"broken.svm{suffix}")
    with pytest.raises(ValueError, match=r"truncated|cannot be decompressed"):
        load_text(folder, b"1 1:1\n" * 100, f"plain.svm{suffix}")


def test_faults_in_compressed_text_have_lines_of_the_whole(folder, monkeypatch):
    monkeypatch.setattr("blockgreedy.data.compression.BLOCK", 1000)
    text = "1 1:1 2:2\n" * 500 + "1 2:1 1:1\n"
    with pytest.raises(ValueError, match=r"line 501, column 7: expected features in ascending order"):
        load_text(folder, gzip.compress(text.encode()), "late.svm.gz")
