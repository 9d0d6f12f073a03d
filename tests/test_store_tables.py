"""Tables as stores: the same features as in memory, whatever the memory."""

import gzip
import math

import numpy as np
import pytest
from scipy import sparse

import blockgreedy as bg
import blockgreedy.data.conversion as conversion
import blockgreedy.data.table_batches as table_batches
from blockgreedy.data import convert
from blockgreedy.data.key_counts import KeyCounts
from blockgreedy.data.table_learning import median_of
from test_store_conversion import killed_everywhere

pa = pytest.importorskip("pyarrow")
csv, feather, parquet = (pytest.importorskip(f"pyarrow.{name}") for name in ("csv", "feather", "parquet"))

TREATMENTS = [
    {"fill": "median"},
    {"fill": "mean", "categorical": "hour,site", "cross": "site,hour"},
    {"fill": 0, "categorical": "all", "cross": "all:2", "min_count": 3},
    {"fill": "price=1", "drop": "word", "categorical": "hour,code,site", "cross": ["site,hour,code"], "min_count": 2},
]


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(conversion, "_PROGRAM", 0)
    monkeypatch.setattr(conversion, "_LEAST", 0)
    monkeypatch.setattr(table_batches, "_FEWEST", 7)
    monkeypatch.setattr(table_batches.TableRows, "extra_memory", 0)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """One table in every format."""
    folder = tmp_path_factory.mktemp("tables")
    rng, n = np.random.default_rng(0), 900
    gaps = rng.uniform(size=(2, n)) < 0.1
    made = pa.table(
        {
            "site": [f"{site:02}" for site in rng.integers(0, 30, n)],
            "hour": rng.integers(0, 24, n),
            "price": [None if gap else float(value) for gap, value in zip(gaps[0], rng.normal(size=n), strict=True)],
            "flag": rng.uniform(size=n) < 0.3,
            "code": rng.integers(0, 5, n).astype(float),
            "word": [None if gap else f"w{k}" for gap, k in zip(gaps[1], rng.integers(0, 90, n), strict=True)],
            "y": rng.integers(0, 2, n),
        }
    )
    parquet.write_table(made, folder / "t.parquet", row_group_size=130)
    csv.write_csv(made, folder / "t.csv")
    feather.write_feather(made, folder / "t.arrow")
    (folder / "t.csv.gz").write_bytes(gzip.compress((folder / "t.csv").read_bytes()))
    return folder


def assert_same(store, loaded):
    store.check()
    found = store.dataset()
    assert found.X.shape == loaded.X.shape
    assert abs(found.X - sparse.csc_array(loaded.X)).max() < 1e-14  # the mean, added up in another order
    assert np.array_equal(found.y, loaded.y)
    assert found.y.dtype == loaded.y.dtype
    assert np.array_equal(found.feature_names, loaded.feature_names)
    for one, other in zip(found.encoding.columns, loaded.encoding.columns, strict=True):
        assert (one.name, one.categories, one.from_numbers) == (other.name, other.categories, other.from_numbers)
        assert one.fill == other.fill or math.isclose(one.fill, other.fill, rel_tol=1e-12)
    assert found.encoding.crosses == loaded.encoding.crosses
    assert {file.name for file in store.path.iterdir()} == {*store._files, "meta.json"}


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.csv.gz", "t.arrow"])
@pytest.mark.parametrize("treatment", TREATMENTS, ids=["plain", "cross", "all", "triple"])
@pytest.mark.parametrize("memory", [300_000, 20_000_000])
def test_tables_become_what_load_reads(small, tables, name, treatment, memory, tmp_path):
    store = convert(tables / name, tmp_path / "a.store", memory=memory, **treatment)
    assert memory > 300_000 or treatment["fill"] != "mean" or store.grid[0] > 1
    assert_same(store, bg.load(tables / name, **treatment))


def test_several_tables_share_one_encoding(small, tables, tmp_path):
    whole = parquet.read_table(tables / "t.parquet")
    for k, part in enumerate((whole.slice(0, 300), whole.slice(300))):
        parquet.write_table(part, tmp_path / f"part-{k}.parquet")
    store = convert(str(tmp_path / "part-*.parquet"), tmp_path / "a.store", memory=400_000, **TREATMENTS[2])
    assert_same(store, bg.load(tables / "t.parquet", **TREATMENTS[2]))


def test_a_given_encoding_is_used_and_what_it_does_not_know_is_counted(tables, tmp_path):
    known = bg.load(tables / "t.parquet", **TREATMENTS[1])
    other = parquet.read_table(tables / "t.parquet").slice(0, 100)
    odd = pa.array(["elsewhere"] * 40 + other.column("site").to_pylist()[40:])
    parquet.write_table(other.set_column(0, "site", odd), tmp_path / "other.parquet")
    with pytest.warns(UserWarning, match=r"site in 40.*of 100 rows"):
        loaded = bg.load(tmp_path / "other.parquet", encoding=known.encoding)
    with pytest.warns(UserWarning, match=r"site in 40.*of 100 rows"):
        store = convert(tmp_path / "other.parquet", tmp_path / "a.store", encoding=known.encoding)
    assert_same(store, loaded)


def test_a_table_without_labels(tables, tmp_path):
    table = parquet.read_table(tables / "t.parquet").drop_columns(["y"])
    parquet.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"which column of .* holds the labels"):
        convert(tmp_path / "t.parquet", tmp_path / "a.store", fill=0)
    store = convert(tmp_path / "t.parquet", tmp_path / "a.store", fill=0, labelled=False)
    assert not store.labelled
    assert not np.any(store.y)


@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
def test_a_table_killed_at_any_write_and_resumed_gives_the_same_bytes(tables, name, tmp_path):
    options = {"memory": 1_000_000, "fill": "median", "categorical": "site,hour", "cross": "site,hour"}
    assert killed_everywhere(tables / name, tmp_path, options) > 10


def test_faults_name_file_and_row(small, tables, tmp_path):
    lines = (tables / "t.csv").read_text().splitlines(keepends=True)
    price = lines[0].split(",").index('"price"')

    def with_price(value):
        fields = lines[700].split(",")
        fields[price] = value
        (tmp_path / "b.csv").write_text("".join([*lines[:700], ",".join(fields), *lines[701:]]))
        return tmp_path / "b.csv"

    with pytest.raises(ValueError, match=r"column 'price', row \d+: a value is missing"):
        convert(tables / "t.csv", tmp_path / "a.store", memory=300_000)
    with pytest.raises(ValueError, match=r"b.csv, row 700: a value is infinite"):
        convert(with_price("inf"), tmp_path / "b.store", memory=300_000, fill=0)
    (tmp_path / "c.csv").write_text("".join([*lines[:800], "1,2\n", *lines[800:]]))
    with pytest.raises(ValueError, match=r"c.csv cannot be read as csv: .*Expected 7 columns, got 2: 1,2"):
        convert(tmp_path / "c.csv", tmp_path / "c.store", memory=300_000, fill=0)
    other = parquet.read_table(tables / "t.parquet").drop_columns(["word"])
    parquet.write_table(other, tmp_path / "d.parquet")
    with pytest.raises(ValueError, match=r"d.parquet has no column 'word', which .*t.parquet has"):
        convert([tables / "t.parquet", tmp_path / "d.parquet"], tmp_path / "d.store", fill=0)


def test_categories_that_do_not_fit_are_refused(small, tables, tmp_path):
    with pytest.raises(ValueError, match=r"the categories take more than .* column 'word' has \d+ of them so far"):
        convert(tables / "t.parquet", tmp_path / "a.store", memory=20_000, fill=0)


def test_keys_are_counted_on_disk_where_they_do_not_fit(tmp_path):
    rng = np.random.default_rng(0)
    keys = rng.zipf(1.3, 20_000) % 5_000
    counts = KeyCounts(tmp_path, "keys", 20_000)
    for part in np.array_split(keys, 40):
        counts.add(part)
    assert len(list(tmp_path.iterdir())) > 4
    found, often = np.unique(keys, return_counts=True)
    assert np.array_equal(counts.frequent(3), found[often >= 3])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_the_median_of_a_file_is_exact(n, tmp_path):
    values = np.random.default_rng(n).normal(size=n) * 10.0 ** np.random.default_rng(n).integers(-300, 300, n)
    values[: n // 3] = -0.25
    (tmp_path / "values").write_bytes(values.tobytes())
    assert median_of(tmp_path / "values", n) == np.median(values)
