"""What becomes of the columns of a table: which are categories, dropped, filled; encodings, kept and used again."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import blockgreedy as bg
from blockgreedy.data.arrow import ArrowColumn
from blockgreedy.data.codes import look_like_codes
from blockgreedy.data.column import ArrayColumn
from blockgreedy.data.encoding import Encoding


def names(table, **asked):
    return bg.TableEncoder(**asked).fit(table).get_feature_names_out().tolist()


def treated(table, **asked):
    """Column → "categories" or "number"."""
    columns = bg.TableEncoder(**asked).fit(table).encoding.columns
    return {column.name: "number" if column.categories is None else "categories" for column in columns}


@pytest.fixture
def table():
    return {
        "site_a": [1, 2, 1, 3],
        "site_b": [7.0, None, 8.0, 7.0],
        "word": ["x", None, "", "y"],
        "flag": [True, False, True, True],
        "size": [0.5, 1.0, 2.0, 0.0],
    }


# Which columns are categories, and which are left out.


@pytest.mark.parametrize(
    ("categorical", "expected"),
    [
        (None, {"word"}),
        ("site_a", {"word", "site_a"}),
        ("site_*", {"word", "site_a", "site_b"}),
        ("site_a,flag", {"word", "site_a", "flag"}),
        (["site_a, flag"], {"word", "site_a", "flag"}),
        (["site_?", "size"], {"word", "site_a", "site_b", "size"}),
        ("all", {"word", "site_a", "site_b", "flag"}),
        (["all", "size"], {"word", "site_a", "site_b", "flag", "size"}),
        ("*", {"word", "site_a", "site_b", "flag", "size"}),
    ],
)
def test_categories_are_named_by_lists_patterns_and_all(table, categorical, expected):
    found = treated(table, categorical=categorical, fill=0)
    assert {name for name, use in found.items() if use == "categories"} == expected
    assert list(found) == list(table)


def test_a_name_is_taken_before_a_pattern_and_before_commas():
    table = {"a[1]": [1, 2], "a1": [1, 2], "b,c": [1, 2], "all": [1, 2]}
    assert treated(table, categorical=["a[1]", "b,c"]) == {
        "a[1]": "categories", "a1": "number", "b,c": "categories", "all": "number",
    }  # fmt: skip
    assert treated(table, categorical="all")["a1"] == "number"


def test_dropped_columns_are_no_features(table):
    assert list(treated(table, drop="site_*,word")) == ["flag", "size"]
    encoder = bg.TableEncoder(drop=["site_*", "word"]).fit(table)
    assert encoder.encoding.dropped == ("site_a", "site_b", "word")
    assert encoder.transform({"flag": [True], "size": [3.0]}).toarray().tolist() == [[1, 3]]  # nor needed


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"categorical": "nope"}, "categorical: the table has no column 'nope'; its columns are site_a"),
        ({"categorical": "no_*"}, r"categorical: no column of the table matches 'no_\*'"),
        ({"drop": "site_*", "categorical": "site_a"}, "column 'site_a' of the table is dropped"),
        ({"categorical": [3]}, r"categorical=\[3\] must be names of columns"),
        ({"drop": ""}, "drop='' must be names"),
        ({"drop": "nope"}, "drop: the table has no column 'nope'"),
        ({"drop": "*"}, "has no columns except the labels"),
        ({"fill": "nope=1"}, "fill: the table has no column 'nope'"),
        ({"fill": "word=1"}, "fill: column 'word' of the table holds categories"),
        ({"fill": "mode"}, "fill='mode': 'mode' is not a value to fill in; accepted are a number, mean or median"),
        ({"fill": "=1"}, "fill='=1': '=1' names no column"),
        ({"fill": float("nan")}, "nan is not a value to fill in"),
        ({"fill": {"site_b": True}}, "True is not a value to fill in"),
        ({"fill": "inf"}, "'inf' is not a value to fill in"),
        ({}, "column 'site_b', row 2: a value is missing .*site_b=median"),
        ({"dtype": "int32"}, "dtype='int32' must be float32 or float64"),
        ({"names": ["a"]}, "names=.* is for arrays with two dimensions"),
    ],
)
def test_what_is_wrong_with_the_options_is_said(table, arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        bg.TableEncoder(**arguments).fit_transform(table)


# Missing numbers.


@pytest.mark.parametrize(
    ("fill", "a", "b"),
    [
        (7, 7, 7),
        ("-1.5", -1.5, -1.5),
        ("mean", 4, 20),
        ("median", 3, 20),
        ("a=0,b=mean", 0, 20),
        ("mean,a=9", 9, 20),
        ("a=9,mean", 9, 20),
        ({"*": "median", "a": 1}, 1, 20),
    ],
)
def test_missing_numbers_are_filled_as_asked_and_again_in_new_data(fill, a, b):
    table = {"a": [1.0, np.nan, 3.0, 8.0], "b": [10, 20, None, 30]}
    encoder = bg.TableEncoder(fill=fill)
    np.testing.assert_array_equal(encoder.fit_transform(table).toarray(), [[1, 10], [a, 20], [3, b], [8, 30]])
    new = {"a": [np.nan, 100.0], "b": [np.nan, 100.0]}
    np.testing.assert_array_equal(encoder.transform(new).toarray(), [[a, b], [100, 100]])


def test_fills_are_kept_for_columns_that_miss_nothing_yet():
    encoder = bg.TableEncoder(fill="median").fit({"a": [1.0, 2.0, 9.0]})
    assert encoder.transform({"a": [None]}).toarray().tolist() == [[2]]


def test_a_column_without_any_number_cannot_be_averaged():
    with pytest.raises(ValueError, match="column 'a' has no values, so that fill=mean is undefined"):
        bg.TableEncoder(fill="mean").fit({"a": [np.nan, np.nan]})
    assert bg.TableEncoder(fill=3).fit_transform({"a": [np.nan, np.nan]}).toarray().tolist() == [[3], [3]]


def test_new_rows_may_miss_all_numbers_and_categories(tmp_path):
    encoder = bg.TableEncoder(categorical="a", fill="mean").fit(
        {"a": [1, 2, 2], "b": ["u", "v", "u"], "x": [1.0, 2.0, 6.0]}
    )
    (tmp_path / "new.csv").write_text("a,b,x\n,,\n")
    table = pa.table({name: pa.nulls(1) for name in "abx"})
    pa.parquet.write_table(table, tmp_path / "new.parquet")
    for name in ("new.csv", "new.parquet"):
        data = bg.load(tmp_path / name, encoding=encoder.encoding, labelled=False)
        assert data.X.toarray().tolist() == [[0, 0, 0, 0, 3]]
    assert encoder.transform(table).toarray().tolist() == [[0, 0, 0, 0, 3]]
    assert encoder.transform({name: [None] for name in "abx"}).toarray().tolist() == [[0, 0, 0, 0, 3]]


def test_a_filled_zero_is_not_stored():
    X = bg.TableEncoder(fill=0, dtype=np.float32).fit_transform({"a": [np.nan, 1e-300, 2.0]})
    assert (X.dtype, X.data.tolist()) == (np.float32, [2.0])


# What tables may be.


@pytest.mark.parametrize(
    "column",
    [
        [3, 1, None, 3],
        np.array([3.0, 1.0, np.nan, 3.0]),
        np.array(["3", "1", "", "3"]),
        np.array([b"3", b"1", b"", b"3"]),
        ["3", 1, float("nan"), 3.0],
        pd.Series([3, 1, None, 3], dtype="Int64"),
        pd.Series([3, 1, None, 3], dtype="category"),
        pd.Series(["3", "1", None, "3"], dtype="category"),
        pd.Series(["3", "1", None, "3"], dtype="string"),
        pd.Series(["3", "1", None, "3"]),
        pd.Series([3, 1, None, 3]),
    ],
)
def test_every_way_to_hold_a_column_gives_the_same_categories(column):
    holders = [{"a": column}] + ([column.to_frame("a")] if isinstance(column, pd.Series) else [])
    for held in holders:
        encoder = bg.TableEncoder(categorical="a")
        np.testing.assert_array_equal(encoder.fit_transform(held).toarray(), [[0, 1], [1, 0], [0, 0], [0, 1]])
        assert encoder.get_feature_names_out().tolist() == ["a=1", "a=3"]


@pytest.mark.parametrize("values", [[0.1, 1e-7, 1e22, -0.0, 2.5e10], [True, False], [2**62, -5], [3.0, 4.5]])
def test_arrow_and_numpy_write_the_same_categories(values):
    held = np.array(values)
    ours, theirs = ArrayColumn("a", held).words(), ArrowColumn("a", pa.chunked_array([pa.array(held)])).words()
    assert [ours.values[k] for k in ours.codes] == [theirs.values[k] for k in theirs.codes]


def test_arrays_have_names_of_their_own_or_given_ones():
    structured = np.array([(1, "u"), (2, "v")], dtype=[("k", int), ("w", "U1")])
    assert names(structured, categorical="k") == ["k=1", "k=2", "w=u", "w=v"]
    assert names(np.array([[1, 2], [3, 4]]), categorical="x1") == ["x0", "x1=2", "x1=4"]
    assert names(np.array([[1, 2], [3, 4]]), names=["p", "q"]) == ["p", "q"]
    assert names(np.array([[1, "u"], [3, "v"]], dtype=object)) == ["x0", "x1=u", "x1=v"]


def test_dates_are_categories_when_asked_to():
    when = np.array(["2020-01-02", "NaT", "2020-01-02"], dtype="datetime64[D]")
    assert names({"when": when}, categorical="when") == ["when=2020-01-02"]
    with pytest.raises(ValueError, match=r"'when' has type datetime64\[D\], which cannot be used as it is"):
        bg.TableEncoder().fit_transform({"when": when})


@pytest.mark.parametrize(
    ("held", "sentence"),
    [
        (3, "the table is a int; accepted are a data frame"),
        (np.zeros(3), r"the table is a ndarray of shape \(3,\)"),
        ({}, "the table has no columns"),
        ({"a": [1, 2], "b": [1]}, "column 'b' has 1 rows, and column 'a' has 2"),
        ({"a": np.zeros((2, 2))}, r"column 'a' must have one dimension, got shape \(2, 2\)"),
        ({"a": [[1], [2]]}, r"column 'a' holds \[1\], of type list"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "several columns named 'a'"),
    ],
)
def test_what_is_no_table_is_refused(held, sentence):
    with pytest.raises(ValueError, match=sentence):
        bg.TableEncoder().fit(held)


@pytest.mark.parametrize(
    ("table", "arguments"),
    [
        ({"a": [1.0, 2.0], "when": np.array(["2020-01-02", "NaT"], dtype="datetime64[D]")}, {}),
        ({"a": [1.0, np.nan]}, {}),
        ({"a": [1.0, np.nan], "b": [1, 2]}, {"fill": {"b": 0.0}}),
        ({"a": [1.0, None], "c": ["x", "y"]}, {}),
    ],
)
def test_fit_refuses_what_transform_refuses(table, arguments):
    with pytest.raises(ValueError) as at_once:
        bg.TableEncoder(**arguments).fit_transform(table)
    with pytest.raises(ValueError) as alone:
        bg.TableEncoder(**arguments).fit(table)
    assert str(alone.value) == str(at_once.value)


@pytest.mark.parametrize(
    "table", [{"a": [], "c": []}, np.zeros((0, 2)), pd.DataFrame({"c": pd.Series([], dtype=str)})]
)
def test_an_encoding_is_not_learned_from_no_rows(table):
    with pytest.raises(ValueError, match="the table has no rows to learn an encoding from"):
        bg.TableEncoder().fit(table)
    assert bg.TableEncoder().fit({"a": [1], "c": ["x"]}).transform({"a": [], "c": []}).shape == (0, 2)


@pytest.mark.parametrize("n_columns", [1, 3])
def test_an_array_must_have_as_many_columns_as_in_fit(n_columns):
    array = np.arange(6.0).reshape(3, 2)
    encoder = bg.TableEncoder().fit(array)
    with pytest.raises(ValueError, match=f"X has {n_columns} features, but TableEncoder is expecting 2 features"):
        encoder.transform(np.ones((3, n_columns)))
    named = bg.TableEncoder().fit({"a": [1, 2], "b": [3, 4]})
    assert named.transform({"b": [5], "label": [1], "a": [6]}).toarray().tolist() == [[6, 5]]


def test_lazy_frames_of_polars_are_collected(rng):
    polars = pytest.importorskip("polars")
    held = {"a": rng.normal(size=30), "b": rng.normal(size=30)}
    frame = polars.DataFrame(held)
    encoder = bg.TableEncoder().fit(frame.lazy())
    assert (encoder.transform(frame.lazy()) != bg.TableEncoder().fit_transform(held)).nnz == 0
    y = held["a"] - held["b"]
    model = bg.Lasso(alpha=0.01).fit(frame.lazy(), y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(model.predict(frame.lazy()), model.predict(frame))
    with pytest.raises(TypeError, match=r"X is a LazyFrame of polars, which holds no values yet: pass X.collect\(\)"):
        bg.Problem(frame.lazy(), y, alpha=0.1)


# As a part of scikit-learn.


def test_it_is_cloned_and_works_in_a_pipeline():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 4, 400), rng.integers(0, 4, 400)
    y = (a + b) % 2
    frame = pd.DataFrame({"a": a, "b": b})
    encoder = bg.TableEncoder("all", cross="all:2", min_count=2)
    assert clone(encoder).get_params() == encoder.get_params()
    plain = make_pipeline(bg.TableEncoder("all"), bg.LogisticRegression(alpha=1e-3)).fit(frame, y)
    crossed = make_pipeline(clone(encoder), bg.LogisticRegression(alpha=1e-3)).fit(frame, y)
    assert crossed.score(frame, y) == 1 > plain.score(frame, y)
    assert crossed[:-1].get_feature_names_out()[-1] == "a=3 × b=3"
    with pytest.raises(Exception, match="not fitted yet"):
        encoder.transform(frame)


# Encodings.


def test_encodings_of_before_there_were_crosses_are_read():
    encoding = Encoding.of_json([["size", None], ["word", ["x", "y"]]])
    assert encoding.feature_names.tolist() == ["size", "word=x", "word=y"]
    assert [encoding.source_of(j) for j in range(3)] == [("size",), ("word",), ("word",)]
    assert Encoding.of_json(json.loads(json.dumps(encoding.to_json()))) == encoding
    with pytest.raises(ValueError, match="feature=3 must be a whole number from 0 to 2"):
        encoding.source_of(3)


GOOD = {
    "columns": [
        {"name": "a", "categories": ["1", "2"]},
        {"name": "b", "categories": ["u"]},
        {"name": "x", "fill": 1},
    ],
    "crosses": [{"columns": ["a", "b"], "codes": [[0, 1], [0, 0]]}],
    "min_count": 1,
}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"columns": 3}, "must be an object with a list of columns"),
        ({"columns": [["a", None]]}, "must be a column with a name"),
        ({"columns": [{"name": "a", "categories": [1]}]}, "categories of 'a' must be a list of text"),
        ({"columns": [{"name": "a", "fill": "much"}]}, "fill of 'a' must be a number"),
        ({"columns": [{"name": "a"}, {"name": "a"}]}, "names of columns must differ"),
        ({"crosses": [{"columns": ["a"], "codes": [[0]]}]}, "two or more columns of categories"),
        ({"crosses": [{"columns": ["a", "x"], "codes": [[0], [0]]}]}, "two or more columns of categories"),
        ({"crosses": [{"columns": ["a", "b"], "codes": [[0, 1]]}]}, "list of whole numbers for each column"),
        ({"crosses": [{"columns": ["a", "b"], "codes": [[0.5], [0]]}]}, "list of whole numbers for each column"),
        ({"crosses": [{"columns": ["a", "b"], "codes": [[2], [0]]}]}, "beyond the categories of 'a'"),
        ({"crosses": [{"columns": ["a", "b"], "codes": [[1, 0], [0, 0]]}]}, "must ascend and differ"),
        ({"crosses": [{"columns": ["a", "b"], "codes": [[1, 1], [0, 0]]}]}, "must ascend and differ"),
        ({"min_count": "x"}, "min_count must be a whole number"),
        ({"dropped": [1]}, "dropped a list of names"),
    ],
)
def test_an_encoding_that_makes_no_sense_is_refused(changes, sentence):
    assert Encoding.of_json(GOOD).n_features == 6
    with pytest.raises(ValueError, match=sentence):
        Encoding.of_json({**GOOD, **changes})


def test_numbers_that_became_categories_are_recognised_in_any_file(tmp_path):
    """1.0, 1 and 01 are one category if it was a number; text is taken as it stands."""
    encoder = bg.TableEncoder(categorical="a").fit({"a": [1.0, 2.0, np.nan]})
    for text in ("a\n1.0\n2\n\n", "a\n01\n2.0\n\n"):
        (tmp_path / "new.csv").write_text(text.replace("\n\n", '\n""\n'))
        data = bg.load(tmp_path / "new.csv", encoding=encoder.encoding, labelled=False)
        np.testing.assert_array_equal(data.X.toarray(), [[1, 0], [0, 1], [0, 0]])


def test_all_reads_codes_of_a_csv_as_they_stand(tmp_path):
    (tmp_path / "a.csv").write_text("zip,part,size,y\n01,1.0,0.5,1\n1,2.0,1.5,0\n01,,2,1\n")
    data = bg.load(tmp_path / "a.csv", categorical="all")
    assert data.feature_names.tolist() == ["zip=01", "zip=1", "part=1", "part=2", "size"]
    again = bg.load(tmp_path / "a.csv", encoding=data.encoding)
    assert (again.X != data.X).nnz == 0


# Whole numbers that look like codes.


def looks(name, values):
    return look_like_codes(ArrayColumn(name, np.asarray(values)))


@pytest.mark.parametrize("seed", range(10))
def test_codes_look_like_codes(seed):
    rng = np.random.default_rng(seed)
    assert looks("v", rng.integers(0, 24, 2000))
    assert looks("v", rng.integers(1, 6, 2000).astype(float))
    assert looks("v", rng.choice([3, 17, 112, 5003, 90210], 2000))
    assert looks("v", rng.choice(50, 5000, p=rng.dirichlet(np.ones(50))))
    assert looks("deviceType", 1 + rng.poisson(0.7, 2000))  # by its name
    assert looks("store_id", np.where(rng.random(2000) < 0.05, np.nan, rng.integers(0, 9, 2000)))


@pytest.mark.parametrize("seed", range(10))
def test_quantities_do_not_look_like_codes(seed):
    rng = np.random.default_rng(100 + seed)
    n = 3000
    assert not looks("v", rng.poisson(1.5, n))
    assert not looks("v", rng.geometric(0.3, n))
    assert not looks("v", np.clip(rng.normal(40, 12, n), 18, None).round())
    assert not looks("v", rng.integers(1950, 2020, n))
    assert not looks("age", rng.integers(0, 60, n))  # by its name
    assert not looks("v", rng.integers(0, 2, n))
    assert not looks("v", rng.integers(0, 10**6, n))
    assert not looks("v", rng.normal(size=n).round(1))
    assert not looks("v", rng.integers(-50, 50, n))
    assert not looks("user", np.arange(n))
    assert not looks("v", np.full(n, np.nan))
