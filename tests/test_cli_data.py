"""``blockgreedy data``: make, info, convert (fetch is in test_fetch.py)."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import blockgreedy as bg
from blockgreedy.cli import app
from blockgreedy.data import kdda_like, shaped, summarize, text_like


def run(*arguments, columns=80):
    return CliRunner(env={"COLUMNS": str(columns), "NO_COLOR": "1"}).invoke(app, ["data", *map(str, arguments)])


def good(*arguments, **more):
    result = run(*arguments, **more)
    assert result.exit_code == 0, result.output
    return result


def same(a, b):
    assert a.X.shape == b.X.shape
    assert (a.X != b.X).nnz == 0
    np.testing.assert_array_equal(a.y, b.y)


@pytest.fixture
def npz(tmp_path):
    path = tmp_path / "text.npz"
    bg.save(text_like(300, 400, 20.0, seed=1), path)
    return path


# make


@pytest.mark.parametrize("name", ["a.npz", "a.svm", "a.svm.gz", "a.libsvm.zst"])
def test_make_writes_what_the_generator_makes(tmp_path, name):
    sizes = ("--samples", 300, "--features", 2000, "--nonzeros-per-row", 20, "--seed", 3)
    good("make", "text", *sizes, "--out", tmp_path / name)
    options = {} if name.endswith("npz") else {"n_features": 2000}
    same(bg.load(tmp_path / name, **options), text_like(300, 2000, 20.0, 50, seed=3))


def test_make_has_the_shapes_of_the_paper(tmp_path):
    for name in ("reuters", "news20", "realsim", "kdda"):
        good("make", name, "--scale", 0.001, "--seed", 2, "--out", tmp_path / "a.npz")
        same(bg.load(tmp_path / "a.npz"), shaped(name, 2, 0.001))
    good("make", "kdda", "--samples", 500, "--features", 300, "--nonzeros-per-row", 5, "--out", tmp_path / "b.npz")
    same(bg.load(tmp_path / "b.npz"), kdda_like(500, 300, 2500))


def test_make_works_for_few_features(tmp_path):
    good("make", "text", "--samples", 50, "--features", 100, "--nonzeros-per-row", 5, "--out", tmp_path / "a.npz")
    assert bg.load(tmp_path / "a.npz").X.shape == (50, 100)


def test_make_says_what_it_wrote(tmp_path):
    small = ("make", "reuters", "--scale", 0.01, "--out", tmp_path / "a.npz")
    data = shaped("reuters", 0, 0.01)
    size = f"{data.X.shape[0]:,} × {data.X.shape[1]:,}, {data.X.nnz:,} nonzeros"
    assert good(*small).stdout.startswith(f"{tmp_path / 'a.npz'}: {size}")
    assert good(*small, "--quiet").stdout == ""
    facts = json.loads(good(*small, "--json").stdout)
    assert (facts["n_samples"], facts["n_features"], facts["nonzeros_X"]) == (*data.X.shape, data.X.nnz)
    assert facts["bytes"] == (tmp_path / "a.npz").stat().st_size


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("words", "--out", "a.npz"), 2, "'words' is not one of"),
        (("text", "--out", "a.csv"), 2, "path must end in .npz, or .svm"),
        (("text", "--out", "nowhere/a.npz"), 1, "existing folder"),
        (("text", "--scale", 0.1, "--out", "a.npz"), 2, "--scale is not for text"),
        (("reuters", "--samples", 9, "--out", "a.npz"), 2, "--samples is only for text and kdda"),
        (("kdda", "--samples", 9, "--scale", 1, "--out", "a.npz"), 2, "--samples and --scale cannot be combined"),
        (
            ("kdda", "--samples", 500, "--out", "a.npz"),
            2,
            "kdda needs either --scale, or all of --samples, --features",
        ),
        (("text", "--samples", 3, "--out", "a.npz"), 2, "n_samples must be an integer between"),
        (("text", "--out", "a.svm", "--index-base", 2), 2, "--index-base 2 must be 0 or 1"),
    ],
)
def test_make_tells_wrong_use(tmp_path, monkeypatch, arguments, code, sentence):
    monkeypatch.chdir(tmp_path)
    result = run("make", *arguments)
    assert result.exit_code == code
    assert sentence in result.output
    assert list(tmp_path.iterdir()) == []


# info


def test_info_shows_the_summary_in_80_columns(npz):
    lines = good("info", npz).stdout.splitlines()
    found = summarize(bg.load(npz))
    assert max(map(len, lines[1:])) <= 80
    assert lines[0] == f"{npz}: 300 × 400, {found.nonzeros:,} nonzeros"
    facts = {line[:15].strip(): line[15:].strip() for line in lines[1:8]}
    assert facts["labels"] == ", ".join(f"{label}: {count}" for label, count in found.labels.items())
    assert facts["nonzeros/column"].startswith(f"{found.columns.least} … {found.columns.most}, median")
    assert facts["repeated"] == f"{found.repeated_rows} rows, {found.repeated_columns} columns"


def test_the_histogram_has_a_bar_for_every_bin(npz):
    lines = good("info", npz).stdout.splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("nonzeros in a column"))
    rows = [line for line in lines[start + 1 :] if line.strip()]
    bins = [part for part in summarize(bg.load(npz)).bins if part.low or part.columns]
    assert len(rows) == len(bins)
    most = max(part.columns for part in bins)
    for row, part in zip(rows, bins, strict=True):
        assert f" {part.columns:,} " in row
        length = sum(1 if c == "█" else 0 for c in row)
        assert length == round(20 * 8 * part.columns / most) // 8
        assert any(c in "▏▎▍▌▋▊▉█" for c in row) == (part.columns > 0)


def test_the_smallest_share_is_seen():
    from blockgreedy.cli.data_info import bar

    assert bar(0) == ""
    assert bar(1e-9) == "▏"
    assert bar(1) == "█" * 20


def test_info_takes_several_files_and_prints_json(npz, tmp_path):
    other = tmp_path / "b.svm"
    other.write_text("3.5 1:2 4:-1\n2.5\n")
    first, second = (json.loads(line) for line in good("info", npz, other, "--json").stdout.splitlines())
    assert first["data"] == str(npz)
    assert {key: value for key, value in first.items() if key != "data"} == summarize(bg.load(npz)).to_dict()
    assert (second["n_samples"], second["n_features"], second["rows"]["empty"]) == (2, 4, 1)
    assert second["labels"] == {"2.5": 1, "3.5": 1}
    assert json.loads(good("info", npz, "--json", "--no-duplicates").stdout)["repeated_rows"] is None


def test_info_needs_no_labels(tmp_path):
    pa.parquet.write_table(pa.table({"a": [1, 2], "b": ["x", "z"]}), tmp_path / "a.parquet")
    assert "none in the file" in good("info", tmp_path / "a.parquet").stdout
    facts = json.loads(good("info", tmp_path / "a.parquet", "--target", "a", "--json").stdout)
    assert (facts["labelled"], facts["n_features"]) == (True, 2)


def test_the_picture_is_a_png(npz, tmp_path):
    good("info", npz, "--picture", tmp_path / "density.png")
    assert (tmp_path / "density.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("missing.svm",), 1, "there is no file 'missing.svm'"),
        (("bad.svm",), 1, "bad.svm, line 2, column"),
        (("good.svm", "--picture", "a.jpg"), 2, "--picture must end in .png"),
        (("good.svm", "good.svm", "--picture", "a.png"), 2, "--picture takes one data file, got 2"),
    ],
)
def test_info_tells_what_is_wrong(tmp_path, monkeypatch, arguments, code, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.svm").write_text("1 1:1\n")
    (tmp_path / "bad.svm").write_text("1 1:1\n1 x:1\n")
    result = run("info", *arguments)
    assert result.exit_code == code
    assert sentence in result.output


# convert


@pytest.mark.parametrize("name", ["b.svm", "b.svm.gz", "b.npz"])
def test_convert_there_and_back_changes_no_bit(npz, tmp_path, name):
    good("convert", npz, tmp_path / name)
    sizes = () if name.endswith("npz") else ("--features", 400)
    good("convert", tmp_path / name, tmp_path / "c.npz", "--dtype", "float32", *sizes)
    before, after = bg.load(npz), bg.load(tmp_path / "c.npz")
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(before.X, part), getattr(after.X, part), strict=True)
    np.testing.assert_array_equal(before.y, after.y)


def test_convert_encodes_tables(tmp_path):
    table = pa.table({"hour": [3, 4, 3], "color": ["r", None, "b"], "clicked": [1, 0, 1]})
    pa.parquet.write_table(table, tmp_path / "a.parquet")
    arguments = ("convert", tmp_path / "a.parquet", tmp_path / "b.npz", "--target", "clicked")
    good(*arguments, "--categorical", "hour")
    data = bg.load(tmp_path / "b.npz")
    assert data.feature_names.tolist() == ["hour=3", "hour=4", "color=b", "color=r"]
    np.testing.assert_array_equal(data.X.toarray(), [[1, 0, 0, 1], [0, 1, 0, 0], [1, 0, 1, 0]])
    good(*arguments)
    assert bg.load(tmp_path / "b.npz").feature_names.tolist() == ["hour", "color=b", "color=r"]


def test_convert_knows_both_bases(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:5 2:7\n")
    good("convert", tmp_path / "a.svm", tmp_path / "b.svm", "--index-base", 0, "--out-index-base", 1)
    assert (tmp_path / "b.svm").read_text() == "1 2:5 3:7\n"
    result = good("convert", tmp_path / "a.svm", tmp_path / "b.svm", "--index-base", 0, "--out-index-base", 0)
    assert (tmp_path / "b.svm").read_text() == "1 1:5 2:7\n"
    assert "Note: feature 0 occurs in no row" in result.stderr


def test_convert_takes_matrices_without_labels(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[1.5, 0], [0, 2]]))
    good("convert", tmp_path / "a.npy", tmp_path / "b.svm", "--unlabelled")
    assert (tmp_path / "b.svm").read_text() == "0 1:1.5\n0 2:2\n"


def test_convert_says_what_it_wrote(npz, tmp_path):
    facts = json.loads(good("convert", npz, tmp_path / "b.svm", "--json").stdout)
    assert facts["bytes"] == (tmp_path / "b.svm").stat().st_size
    assert facts["nonzeros_X"] == bg.load(npz).X.nnz
    assert good("convert", npz, tmp_path / "b.svm", "-q").output == ""


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("missing.svm", "a.npz"), 1, "there is no file 'missing.svm'"),
        (("bad.svm", "a.npz"), 1, "bad.svm, line 2, column"),
        (("good.svm", "a.parquet"), 2, "path must end in .npz, or .svm"),
        (("good.svm", "a.svm", "--out-index-base", 3), 2, "--out-index-base 3 must be 0 or 1"),
        (("words.csv", "a.svm"), 1, "y holds text ('no')"),
    ],
)
def test_convert_tells_what_is_wrong_and_writes_nothing(tmp_path, monkeypatch, arguments, code, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.svm").write_text("1 1:1\n")
    (tmp_path / "bad.svm").write_text("1 1:1\n1 x:1\n")
    (tmp_path / "words.csv").write_text("a,y\n1,no\n2,yes\n")
    before = set(tmp_path.iterdir())
    result = run("convert", *arguments)
    assert result.exit_code == code
    assert sentence in result.output
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("command", ["make", "info", "convert", "fetch"])
def test_help_has_examples(command):
    text = good(command, "--help").output
    assert "Examples" in text
    assert f"blockgreedy data {command}" in text
