"""One-hot columns and crosses of tables, beside a plain Python oracle."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import blockgreedy as bg
from blockgreedy import _core
from blockgreedy.data.encoding import Encoding


def text_of(value):
    return None if value is None or value != value else str(value)


def oracle(table, categorical, crosses, min_count, new=None):
    """Names of features, and the dense matrix of ``new`` (default: of the table), value by value."""
    names, features = [], []
    for column in table:
        if column in categorical:
            counts = Counter(filter(None, map(text_of, table[column])))
            kept = sorted(value for value, count in counts.items() if count >= min_count)
            names += [f"{column}={value}" for value in kept]
            features += [((column,), (value,)) for value in kept]
        else:
            names.append(column)
            features.append(((column,), None))
    for columns in crosses:
        rows = zip(*(map(text_of, table[column]) for column in columns), strict=True)
        counts = Counter(row for row in rows if None not in row)
        for values in sorted(value for value, count in counts.items() if count >= min_count):
            names.append(" × ".join(f"{c}={v}" for c, v in zip(columns, values, strict=True)))
            features.append((columns, values))
    new = table if new is None else new
    n_rows = len(next(iter(new.values())))
    X = np.zeros((n_rows, len(features)))
    for j, (columns, values) in enumerate(features):
        for i in range(n_rows):
            if values is None:
                X[i, j] = new[columns[0]][i]
            else:
                X[i, j] = tuple(text_of(new[column][i]) for column in columns) == values
    return names, X


def random_table(rng, n_rows, new=False):
    """Columns of text and of whole numbers, some missing, and one of numbers."""
    table = {}
    for k in range(int(rng.integers(2, 6))):
        width = int(rng.integers(1, 9)) + 2 * new
        values = rng.integers(0, width, n_rows).astype(object)
        if k % 2:
            values = np.array([f"v{value}" for value in values], dtype=object)
        if rng.random() < 0.5:
            values[rng.random(n_rows) < 0.2] = None
        table[f"c{k}"] = values
    table["x"] = np.where(rng.random(n_rows) < 0.3, 0.0, rng.normal(size=n_rows))
    return table


@pytest.mark.parametrize("seed", range(60))
def test_encoded_tables_agree_with_the_oracle(seed):
    rng = np.random.default_rng(seed)
    table = random_table(rng, int(rng.integers(1, 80)))
    categorical = [name for name in table if name != "x"]
    order, min_count = int(rng.integers(2, 4)), int(rng.integers(1, 4))
    if len(categorical) < order:
        order = 2
    encoder = bg.TableEncoder(
        categorical=categorical, cross=f"all:{order}", min_count=min_count, n_threads=int(rng.integers(1, 4))
    )
    X = encoder.fit_transform(table)
    crosses = list(combinations(categorical, order))
    names, expected = oracle(table, categorical, crosses, min_count)
    assert encoder.get_feature_names_out().tolist() == names
    np.testing.assert_array_equal(X.toarray(), expected)
    again = type(X)((X.data, X.indices, X.indptr), shape=X.shape)  # flags forgotten
    assert again.has_canonical_format
    assert np.all(X.data)
    sources = [encoder.encoding.source_of(j) for j in range(X.shape[1])]
    assert sources == [tuple(part.split("=")[0] for part in name.split(" × ")) for name in names]


@pytest.mark.filterwarnings("ignore:.*unseen categories")
@pytest.mark.parametrize("seed", range(40))
def test_new_rows_agree_with_the_oracle_after_json(seed):
    rng = np.random.default_rng(1000 + seed)
    state = rng.bit_generator.state
    table = random_table(rng, 60)
    rng.bit_generator.state = state
    new = random_table(rng, 60, new=True)
    assert list(new) == list(table)
    categorical = [name for name in table if name != "x"]
    encoder = bg.TableEncoder(categorical=categorical, cross="all:2", min_count=2).fit(table)
    encoder.encoding_ = Encoding.of_json(json.loads(json.dumps(encoder.encoding.to_json())))
    expected = oracle(table, categorical, list(combinations(categorical, 2)), 2, new)[1]
    np.testing.assert_array_equal(encoder.transform(new).toarray(), expected)


def test_results_do_not_depend_on_threads():
    rng = np.random.default_rng(3)
    n = 20_000
    table = {f"c{k}": rng.zipf(1.3, n) % 5000 for k in range(5)}
    made = [bg.TableEncoder("all", cross=["all:2", "c0,c1,c2"], min_count=2, n_threads=k) for k in (1, 2, 5)]
    matrices = [encoder.fit_transform(table) for encoder in made]
    for encoder, X in zip(made[1:], matrices[1:], strict=True):
        assert encoder.encoding == made[0].encoding
        for name in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(X, name), getattr(matrices[0], name))


def test_many_combinations_are_found_by_hashing():
    """Far more are possible than a counter each could have."""
    rng = np.random.default_rng(5)
    n = 3000
    a, b = rng.integers(0, 2**40, n // 3).repeat(3), rng.integers(0, 2**40, n // 3).repeat(3)
    encoder = bg.TableEncoder("all", cross="a,b", min_count=3)
    X = encoder.fit_transform({"a": a, "b": b})
    assert X.shape[1] == len(set(a)) + len(set(b)) + len(set(zip(a.tolist(), b.tolist(), strict=True)))
    assert np.all(np.diff(X.indptr) == 3)
    np.testing.assert_array_equal(X.sum(axis=0), np.bincount(X.indices))


def test_a_cross_with_too_many_possible_combinations_is_refused():
    n = 3000
    table = {f"c{k}": np.arange(n) for k in range(6)}  # 3000⁶ > 2⁶³
    with pytest.raises(
        ValueError, match=r"cross=c0,c1,c2,c3,c4,c5: .* more than 2\^63 combinations.*raise min_count"
    ):
        bg.TableEncoder("all", cross="c0,c1,c2,c3,c4,c5").fit(table)
    assert bg.TableEncoder("all", cross="c0,c1,c2,c3,c4,c5", min_count=2).fit_transform(table).shape == (n, 0)


@pytest.mark.parametrize(
    ("columns", "crosses", "sentence"),
    [
        ([np.array([0, 3], np.int32)], [], "codes must lie in"),
        ([np.array([0, -2], np.int32)], [], "codes must lie in"),
        ([np.array([0], np.int32)], [], "length 1, expected 2"),
        ([np.array([0.0, 1.0])], [[0, 0]], "columns of codes"),
        ([np.array([0, 1], np.int32)], [[0, 1]], "columns of codes"),
    ],
)
def test_the_core_checks_what_it_is_given(columns, crosses, sentence):
    with pytest.raises(ValueError, match=sentence):
        _core.find_crosses(2, columns, [2] * len(columns), crosses, 1, 1)


def test_the_core_refuses_keys_that_are_no_combinations():
    codes = np.array([0, 1], np.int32)
    for keys in ([4], [-1], [1, 1], [2, 1]):
        with pytest.raises(ValueError, match="keys must ascend"):
            _core.TableRows(2, [codes, codes], [2, 2], [[0, 1]], [np.array(keys, np.int64)])


# Which columns are crossed.


@pytest.fixture
def three():
    rng = np.random.default_rng(0)
    return {name: rng.integers(0, 3, 50) for name in ("a", "b", "c")} | {"x": rng.normal(size=50)}


def crossed(encoder, table):
    return [cross.columns for cross in encoder.fit(table).encoding.crosses]


@pytest.mark.parametrize(
    ("cross", "expected"),
    [
        ("a,b", [("a", "b")]),
        ("b, a", [("b", "a")]),
        ([("a", "b"), "b,c"], [("a", "b"), ("b", "c")]),
        ("all:2", [("a", "b"), ("a", "c"), ("b", "c")]),
        ("all:3", [("a", "b", "c")]),
        (["c,a", "all:2"], [("c", "a"), ("a", "b"), ("b", "c")]),
        (["all:2", "all:3"], [("a", "b"), ("a", "c"), ("b", "c"), ("a", "b", "c")]),
        ([], []),
    ],
)
def test_crosses_are_of_the_columns_that_are_named(three, cross, expected):
    assert crossed(bg.TableEncoder(categorical="all", cross=cross), three) == expected


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"cross": "a"}, "cross='a' is not a cross"),
        ({"cross": "a,a"}, "cross='a,a' names a column twice"),
        ({"cross": "all:4"}, "cross='all:4': '4' must be 2 or 3"),
        ({"cross": "a,nope"}, "cross: the table has no column 'nope'; its columns are a, b, c, x"),
        ({"cross": "a,x"}, "cross: column 'x' holds numbers; add categorical="),
        (
            {"cross": "a,b", "categorical": "a"},
            "cross: column 'b' of the table holds numbers; add categorical=",
        ),
        ({"cross": "a,b", "drop": "b"}, "cross: column 'b' of the table is dropped"),
        (
            {"cross": "all:3", "categorical": "a,b"},
            "cross=all:3 needs at least 3 categorical columns, and there are 2",
        ),
        ({"min_count": 0}, "min_count=0 must be a whole number of at least 1"),
        ({"min_count": 2.5}, "min_count=2.5 must be a whole number"),
    ],
)
def test_what_is_wrong_with_crosses_is_said(three, arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        bg.TableEncoder(**{"categorical": "all", **arguments}).fit(three)


def test_unseen_combinations_are_zeros_and_counted_in_one_warning(three):
    encoder = bg.TableEncoder("all", cross="all:2").fit({name: values[:3] for name, values in three.items()})
    with pytest.warns(UserWarning, match="unseen categories are encoded as all zeros") as told:
        X = encoder.transform(three)
    assert len(told) == 1
    seen = set(zip(three["a"][:3].tolist(), three["b"][:3].tolist(), strict=True))
    pairs = list(zip(three["a"].tolist(), three["b"].tolist(), strict=True))
    place = encoder.encoding.groups[[group[0] for group in encoder.encoding.groups].index(("a", "b"))]
    np.testing.assert_array_equal(X[:, place[1] : place[2]].sum(axis=1), [pair in seen for pair in pairs])


def test_memory_is_near_that_of_the_result():
    import tracemalloc

    rng = np.random.default_rng(0)
    n = 50_000
    table = {f"c{k}": rng.integers(0, 50, n) for k in range(6)}
    encoder = bg.TableEncoder("all", cross="all:2", min_count=5)
    tracemalloc.start()
    X = encoder.fit_transform(table)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    assert peak < 1.5 * size


# Files.


def test_a_file_and_a_frame_and_a_dict_give_the_same(three, tmp_path):
    frame = pd.DataFrame(three)
    frame["y"] = 1.0
    asked = {"categorical": "a,b", "drop": "c", "cross": "a,b", "min_count": 2}
    X = bg.TableEncoder(**asked).fit_transform(three)
    for table in (frame.drop(columns="y"), pa.Table.from_pandas(frame.drop(columns="y"))):
        encoder = bg.TableEncoder(**asked)
        assert (encoder.fit_transform(table) != X).nnz == 0
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    for name in ("a.csv", "a.parquet"):
        data = bg.load(tmp_path / name, **asked)
        assert (data.X != X).nnz == 0
        assert data.feature_names.tolist() == encoder.get_feature_names_out().tolist()
        assert [source.name for source in data.encoding.columns] == ["a", "b", "x"]


@pytest.mark.filterwarnings("ignore:.*unseen categories")
@pytest.mark.parametrize("seed", range(12))
def test_files_agree_with_the_oracle_in_fit_and_in_new_rows(seed, tmp_path):
    rng = np.random.default_rng(2000 + seed)
    state = rng.bit_generator.state
    table = random_table(rng, 50)
    rng.bit_generator.state = state
    new = random_table(rng, 50, new=True)
    categorical = [name for name in table if name != "x"]
    crosses = list(combinations(categorical, 2))
    names, expected = oracle(table, categorical, crosses, 2)
    for part, name in ((table, "old"), (new, "new")):
        frame = pd.DataFrame({column: pd.Series(values) for column, values in part.items()})
        for column in categorical[::2]:  # of whole numbers: pandas would hold objects
            frame[column] = frame[column].astype("Int64")
        frame["y"] = 1
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        frame.to_parquet(tmp_path / f"{name}.parquet", index=False)
    for kind, other in (("csv", "parquet"), ("parquet", "csv")):
        data = bg.load(tmp_path / f"old.{kind}", categorical="all", cross="all:2", min_count=2)
        assert data.feature_names.tolist() == names
        np.testing.assert_array_equal(data.X.toarray(), expected)
        for one in (kind, other):
            found = bg.load(tmp_path / f"new.{one}", encoding=data.encoding)
            np.testing.assert_array_equal(found.X.toarray(), oracle(table, categorical, crosses, 2, new)[1])
