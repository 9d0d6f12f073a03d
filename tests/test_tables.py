"""Tables → sparse matrices, beside what pandas and scikit-learn make of them."""

from __future__ import annotations

import gzip
import io
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from sklearn.preprocessing import OneHotEncoder

import blockgreedy as bg

WRITERS = ["parquet", "arrow", "arrow stream", "feather", "csv", "csv.gz"]


def write(table, folder, how, name="table"):
    """An Arrow table or a DataFrame as a file."""
    table = pa.Table.from_pandas(table, preserve_index=False) if isinstance(table, pd.DataFrame) else table
    path = folder / f"{name}.{how.split()[0]}"
    if how == "parquet":
        pa.parquet.write_table(table, path)
    elif how == "feather":
        pa.feather.write_feather(table, path)
    elif how.startswith("arrow"):
        make = pa.ipc.new_stream if how.endswith("stream") else pa.ipc.new_file
        with make(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=7)  # several chunks
    else:
        text = io.BytesIO()
        pa.csv.write_csv(table, text)
        path.write_bytes(gzip.compress(text.getvalue()) if how == "csv.gz" else text.getvalue())
    return path


@pytest.fixture
def frame(rng):
    n = 40
    return pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "color": rng.choice(["red", "green", "blue", "ümläut, with a comma"], n),
            "count": rng.integers(-2, 3, n),
            "kept": rng.random(n) < 0.5,
            "city": rng.choice(["a", "b", None], n),
            "y": rng.integers(0, 2, n),
        }
    )


def dummies(frame, categories=("color", "city")):
    """pandas' own encoding, with the columns in the place and under the names that ours have."""
    parts = []
    for name in frame.columns:
        if name in categories:
            parts.append(pd.get_dummies(frame[name], dtype=float).rename(columns=lambda v, n=name: f"{n}={v}"))
        else:
            parts.append(frame[[name]].astype(float))
    return pd.concat(parts, axis=1)


@pytest.mark.parametrize("how", WRITERS)
@pytest.mark.parametrize("dtype", [None, np.float32])
def test_every_format_gives_what_pandas_gives(frame, tmp_path, how, dtype):
    data = bg.load(write(frame, tmp_path, how), dtype=dtype)
    expected = dummies(frame.drop(columns="y"))
    assert data.feature_names.tolist() == list(expected.columns)
    np.testing.assert_array_equal(data.X.toarray(), expected.to_numpy(dtype or np.float64))
    assert data.X.dtype == (dtype or np.float64)
    np.testing.assert_array_equal(data.y, frame["y"])
    assert data.name == "table"


def test_the_matrix_is_canonical_and_has_no_zeros(frame, tmp_path):
    X = bg.load(write(frame, tmp_path, "parquet")).X
    again = type(X)((X.data, X.indices, X.indptr), shape=X.shape)  # flags forgotten
    assert again.has_canonical_format
    assert np.all(X.data)
    assert X.indices.dtype == X.indptr.dtype == np.int32


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "dictionary", "dictionary of numbers"])
def test_every_kind_of_text_is_a_category(tmp_path, kind):
    values = ["7", "12", None, "7", "9"]
    if kind == "dictionary of numbers":
        column = pa.array([None if v is None else int(v) for v in values]).dictionary_encode()
    else:
        column = pa.array(values)
        column = column.dictionary_encode() if kind == "dictionary" else column.cast(getattr(pa, kind)())
    data = bg.load(write(pa.table({"a": column, "y": [1, 2, 3, 4, 5]}), tmp_path, "arrow"))
    assert data.feature_names.tolist() == ["a=12", "a=7", "a=9"]
    np.testing.assert_array_equal(data.X.toarray(), [[0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 1, 0], [0, 0, 1]])


@pytest.mark.parametrize("how", WRITERS)
def test_numbers_become_categories_when_asked_to(tmp_path, rng, how):
    frame = pd.DataFrame({"hour": rng.integers(0, 24, 60), "flag": rng.random(60) < 0.3, "y": rng.normal(size=60)})
    data = bg.load(write(frame, tmp_path, how), categorical=["hour", "flag"])
    encoder = OneHotEncoder()
    expected = encoder.fit_transform(frame[["hour", "flag"]].astype(str)).toarray()
    np.testing.assert_array_equal(data.X.toarray(), expected)
    hours = [f"hour={hour}" for hour in encoder.categories_[0]]
    assert data.feature_names.tolist() == [*hours, "flag=false", "flag=true"]


def test_nan_is_no_category(tmp_path):
    table = pa.table({"a": [1.5, float("nan"), None, 2.0], "y": [1, 0, 1, 0]})
    data = bg.load(write(table, tmp_path, "parquet"), categorical=["a"])
    assert data.feature_names.tolist() == ["a=1.5", "a=2"]
    np.testing.assert_array_equal(data.X.toarray(), [[1, 0], [0, 0], [0, 0], [0, 1]])


def test_a_column_of_missing_text_has_no_features(tmp_path):
    table = pa.table({"a": pa.array([None, None], pa.string()), "b": [3, 0], "y": [1, 0]})
    data = bg.load(write(table, tmp_path, "parquet"))
    assert data.feature_names.tolist() == ["b"]
    np.testing.assert_array_equal(data.X.toarray(), [[3], [0]])


def test_an_empty_field_of_a_csv_is_a_missing_category(tmp_path):
    (tmp_path / "a.csv").write_text('color,y\nred,1\n,0\n"",1\nNA,0\nblue,1\n')
    data = bg.load(tmp_path / "a.csv")
    assert data.feature_names.tolist() == ["color=blue", "color=red"]
    assert data.X.sum(axis=1).tolist() == [1, 0, 0, 0, 1]


def test_a_word_among_numbers_is_told(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("age,y\n" + "".join(f"{k},1\n" for k in range(30)) + "?,0\n")
    with pytest.warns(UserWarning, match=r"column 'age': 1 of 31 values are not numbers, such as '\?'"):
        assert bg.load(path).X.shape == (31, 31)
    assert bg.load(path, categorical=["age"]).X.shape == (31, 31)  # meant, so nothing is said


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            ["1", "2", "3", "4", "5"] * 200 + ["?"],
            r"1 of 1,001 values are not numbers, such as '\?', so its 6 different",
        ),
        ([f'"{1000 + 137 * k:,}"' for k in range(500)], "500 of 500 values are not numbers, such as '1,000'"),
        ([f'"{137 * k:,}"' for k in range(50)] + ["unknown"], "of 51 values are not numbers"),
        ([f"${k}.50" for k in range(30)], r"30 of 30 values are not numbers, such as '\$0.50'"),
        ([f"{k} %" for k in range(30)], "30 of 30 values are not numbers, such as '0 %'"),
    ],
)
def test_numbers_that_became_categories_are_told_of(tmp_path, values, sentence):
    path = tmp_path / "a.csv"
    path.write_text("b,y\n" + "".join(f"{value},{k % 2}\n" for k, value in enumerate(values)))
    with pytest.warns(UserWarning, match=rf"column 'b': .*{sentence}.*categorical='b' silences this warning"):
        bg.load(path)
    bg.load(path, categorical=["b"])  # meant, so nothing is said


@pytest.mark.parametrize(
    "values", [["red", "blue", "7"] * 9, ["20-30", "30-40", "40_50"] * 9, ["2020-W01", "x1"] * 9, ["1", "2", "?"] * 9]
)
def test_categories_that_are_no_numbers_are_not_told_of(tmp_path, values, recwarn):
    path = tmp_path / "a.csv"
    path.write_text("b,y\n" + "".join(f"{value},{k % 2}\n" for k, value in enumerate(values)))
    bg.load(path)
    assert not recwarn.list


def test_categories_of_a_csv_are_read_as_they_stand(tmp_path):
    (tmp_path / "a.csv").write_text("zip,y\n01,1\n1,0\n10,1\n")
    data = bg.load(tmp_path / "a.csv", categorical=["zip"])
    assert data.feature_names.tolist() == ["zip=01", "zip=1", "zip=10"]
    (tmp_path / "b.csv").write_text("zip,y\n01,1\n01,0\n")
    again = bg.load(tmp_path / "b.csv", encoding=data.encoding)
    np.testing.assert_array_equal(again.X.toarray(), [[1, 0, 0], [1, 0, 0]])


@pytest.mark.parametrize("name", [None, "user"])
def test_an_index_that_pandas_wrote_is_no_feature(tmp_path, name):
    frame = pd.DataFrame({"a": [1.0, 2.0], "y": [0, 1]}, index=pd.Index(["p", "q"], name=name))
    frame.to_parquet(tmp_path / "a.parquet")
    assert len(pa.parquet.read_table(tmp_path / "a.parquet").column_names) == 3
    assert bg.load(tmp_path / "a.parquet").feature_names.tolist() == ["a"]


def test_decimals_and_small_types_are_numbers(tmp_path):
    table = pa.table(
        {
            "d": pa.array(["1.25", "0.00"]).cast(pa.decimal128(8, 2)),
            "u": pa.array([200, 0], pa.uint8()),
            "h": pa.array(np.array([0.5, -1.5], np.float16)),
            "y": pa.array(["1.5", "2.5"]).cast(pa.decimal128(8, 2)),
        }
    )
    data = bg.load(write(table, tmp_path, "arrow"))
    np.testing.assert_array_equal(data.X.toarray(), [[1.25, 200, 0.5], [0, 0, -1.5]])
    np.testing.assert_array_equal(data.y, [1.5, 2.5])


# Labels.


@pytest.mark.parametrize("name", ["y", "Y", "label", "target", "Class"])
def test_labels_are_found_by_their_usual_names(tmp_path, name):
    data = bg.load(write(pa.table({"a": [1, 2], name: [3, 4]}), tmp_path, "parquet"))
    assert data.y.tolist() == [3, 4]
    assert data.feature_names.tolist() == ["a"]
    assert data.labelled


def test_the_column_of_labels_can_be_named(tmp_path):
    path = write(pa.table({"y": [1, 2], "clicked": [True, False]}), tmp_path, "parquet")
    data = bg.load(path, target="clicked")
    assert data.y.tolist() == [True, False]
    assert data.feature_names.tolist() == ["y"]


@pytest.mark.parametrize("dictionary", [False, True])
def test_labels_may_be_text(tmp_path, dictionary):
    column = pa.array(["spam", "ham", "ham"])
    table = pa.table({"a": [1, 2, 3], "label": column.dictionary_encode() if dictionary else column})
    assert bg.load(write(table, tmp_path, "arrow")).y.tolist() == ["spam", "ham", "ham"]


def test_rows_without_labels_are_accepted_when_said_so(tmp_path):
    table = pa.table({"a": [1, 2]})
    with pytest.raises(ValueError, match=r"which column of .*table\.parquet holds the labels\? Name it with target="):
        bg.load(write(table, tmp_path, "parquet"))
    data = bg.load(write(table, tmp_path, "parquet"), labelled=False)
    assert (data.labelled, data.y.tolist()) == (False, [0, 0])
    empty = pa.table({"a": [1, 2], "y": pa.array([None, 1.0])})
    data = bg.load(write(empty, tmp_path, "parquet"), labelled=False)
    assert (data.labelled, data.feature_names.tolist()) == (False, ["a"])


# Errors.


@pytest.mark.parametrize("how", WRITERS)
@pytest.mark.parametrize("nan", [False, True])
def test_a_missing_number_is_named_by_column_and_row(tmp_path, how, nan):
    values = [1.0] * 30
    values[22] = float("nan") if nan else None
    path = write(pa.table({"a": [1.0] * 30, "price": values, "y": [1] * 30}), tmp_path, how)
    with pytest.raises(ValueError, match=r"table.*, column 'price', row 23: a value is missing"):
        bg.load(path)


@pytest.mark.parametrize(
    ("columns", "arguments", "sentence"),
    [
        (
            {"t": pa.array([0, 1], pa.timestamp("ms")), "y": [1, 2]},
            {},
            r"'t' has type timestamp\[ms\], which cannot be used as it is",
        ),
        (
            {"t": pa.array([[1], [2]]), "y": [1, 2]},
            {},
            r"column 't' has type list<.*>, which cannot be used as it is",
        ),
        ({"t": [[1], [2]], "y": [1, 2]}, {"categorical": ["t"]}, "'t' of type list<.*cannot be taken as categories"),
        ({"a": [1, 2], "y": [1, None]}, {}, "column 'y', row 2: a label is missing"),
        ({"a": [1, 2], "y": [[1], [2]]}, {}, "column 'y': labels must be numbers or text, got list"),
        (
            {"a": [1, 2], "y": [1, 2], "label": [1, 2]},
            {},
            r"Name it with target=….*here there are several.; its columns are a, y",
        ),
        ({"a": [1, 2], "y": [1, 2]}, {"target": "b"}, r"target='b' is not a column of .*; its columns are a, y"),
        ({"a": [1, 2], "y": [1, 2]}, {"categorical": ["b"]}, "categorical: .* has no column 'b'"),
        ({"a": [1, 2], "y": [1, 2]}, {"categorical": ["y"]}, "categorical: column 'y' of .* holds the labels"),
        ({"y": [1, 2]}, {}, "has no columns except the labels"),
        ({"a": pa.array([], pa.int64()), "y": pa.array([], pa.int64())}, {}, "holds no rows"),
        ({"a": [1, 2], "y": [1, 2]}, {"dtype": "int32"}, "dtype='int32' must be None, float32 or float64"),
    ],
)
def test_what_is_wrong_with_a_table_is_said(tmp_path, columns, arguments, sentence):
    path = write(pa.table(columns), tmp_path, "parquet")
    with pytest.raises(ValueError, match=sentence):
        bg.load(path, **arguments)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,a,y\n1,2,3\n", "several columns named 'a'"),
        ("0.5,1,0\n0.25,2,1\n", "must begin with a line of column names, got '0.5,1,0'"),
        ("a,y\n1,2\n1,2,3\n", "cannot be read as csv: .*Expected 2 columns, got 3"),
        ("", "cannot be read as csv"),
        ("when,y\n2020-01-01,1\n", "'when' has type date32.*categorical='when'"),
    ],
)
def test_what_is_wrong_with_a_csv_is_said(tmp_path, text, sentence):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=sentence):
        bg.load(tmp_path / "a.csv")


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.feather", "a.csv.gz"])
def test_a_file_of_something_else_is_an_error(tmp_path, name):
    (tmp_path / name).write_bytes(b"something else")
    with pytest.raises(ValueError, match=rf"{name} cannot be (read|decompressed) as"):
        bg.load(tmp_path / name)


# New data, encoded as earlier data was.


def test_an_encoding_serves_new_data_in_any_order_of_columns(frame, tmp_path):
    train, test = frame.iloc[:25], frame.iloc[25:].copy()
    test["color"] = test["color"].where(test["color"] != "red", "unseen")
    assert (test["color"] == "unseen").any()
    fitted = bg.load(write(train, tmp_path, "parquet"))
    shuffled = test[["y", "city", "kept", "color", "count", "size"]].assign(extra="ignored")
    for how in WRITERS:
        with pytest.warns(UserWarning, match=r"unseen categories are encoded as all zeros: color in \d+ of"):
            data = bg.load(write(shuffled, tmp_path, how, "new"), encoding=fitted.encoding)
        expected = dummies(test.drop(columns="y")).reindex(columns=fitted.feature_names, fill_value=0.0)
        np.testing.assert_array_equal(data.X.toarray(), expected.to_numpy())
        np.testing.assert_array_equal(data.y, test["y"])
        assert data.encoding == fitted.encoding
        assert data.feature_names.tolist() == fitted.feature_names.tolist()


def test_an_encoding_survives_json(frame, tmp_path):
    import json

    encoding = bg.load(write(frame, tmp_path, "parquet")).encoding
    again = type(encoding).of_json(json.loads(json.dumps(encoding.to_json())))
    assert again == encoding
    assert type(encoding).of_json(None) is None


def test_new_data_must_fit_the_encoding(frame, tmp_path):
    encoding = bg.load(write(frame, tmp_path, "parquet")).encoding
    for how in WRITERS:
        with pytest.raises(ValueError, match="has no column 'color', which the model was fitted on"):
            bg.load(write(frame.drop(columns="color"), tmp_path, how), encoding=encoding)
        with pytest.raises(
            ValueError, match="column 'size' holds text, but it held numbers when the model was fitted"
        ):
            bg.load(write(frame.assign(size="large"), tmp_path, how), encoding=encoding)


def test_categories_that_are_numbers_in_new_data_are_recognised(tmp_path):
    fitted = bg.load(write(pa.table({"a": ["1", "2", "x"], "y": [1, 2, 3]}), tmp_path, "parquet"))
    for values in ([2, 1], [2.0, 1.0]):
        data = bg.load(write(pa.table({"a": values, "y": [1, 2]}), tmp_path, "parquet"), encoding=fitted.encoding)
        np.testing.assert_array_equal(data.X.toarray(), [[0, 1, 0], [1, 0, 0]])


def test_many_categories_take_memory_for_their_entries_only(tmp_path):
    import tracemalloc

    n = 100_000
    order = np.random.default_rng(0).permutation(n)
    table = pa.table({"id": [f"{k:06d}" for k in order], "y": np.zeros(n)})
    path = write(table, tmp_path, "parquet")
    tracemalloc.start()
    data = bg.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert data.X.shape == (n, n)
    np.testing.assert_array_equal(data.X.indices, order)
    np.testing.assert_array_equal(data.X.indptr, np.arange(n + 1))
    assert peak < 1000 * n  # dense would be 8 n²: 800,000 n


@pytest.mark.parametrize("name", ["a.feather", "a.arrow"])
@pytest.mark.parametrize("do", ["bg.load(path, target='y')", "bg.data.convert(path, path + '.store', target='y')"])
def test_a_damaged_table_is_refused_before_its_buffers_are_followed(tmp_path, name, do):
    words = [f"word {k}" for k in range(50)]
    table = pa.table({"a": words, "y": np.arange(50.0)})
    if name.endswith(".feather"):
        pa.feather.write_feather(table, tmp_path / name, compression="uncompressed")
    else:
        with pa.OSFile(str(tmp_path / name), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(table)
    content = (tmp_path / name).read_bytes()
    ends = np.cumsum([0, *map(len, words)], dtype=np.int32).tobytes()
    assert ends in content
    at = content.index(ends) + 4 * 25
    (tmp_path / name).write_bytes(content[:at] + np.int32(2**30).tobytes() + content[at + 4 :])
    code = f"import sys, blockgreedy as bg; path = sys.argv[1]; {do}"
    done = subprocess.run([sys.executable, "-c", code, tmp_path / name], capture_output=True, text=True)
    assert done.returncode == 1  # and not killed by a signal
    assert re.search(rf"ValueError: .*{name} cannot be read as", done.stderr)
