"""Stores: what is written in tiles is what was given, and damage is found."""

import json
import pickle

import numpy as np
import pytest
from scipy import sparse

import blockgreedy as bg
from blockgreedy.data import Store, convert
from blockgreedy.data.store_files import tile_file

GRIDS = [(None, None), (1, 1), (3, 1), (1, 4), (3, 2), (7, 5)]


@pytest.fixture(scope="module")
def dataset():
    made = bg.data.text_like(300, 200, 12.0, seed=3)
    return bg.Dataset(made.X.astype(np.float64), made.y, name="text")


def put_together(store):
    rows, columns = store.grid
    X = sparse.vstack([sparse.hstack([store.tile(r, c) for c in range(columns)]) for r in range(rows)]).toarray()
    if store.features is None:
        return X
    out = np.empty_like(X)
    out[:, store.features] = X
    return out


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tiles_of_every_grid_put_together_are_the_matrix(dataset, grid, dtype, tmp_path):
    store = convert(dataset, tmp_path / "a.store", row_groups=grid[0], column_groups=grid[1], dtype=dtype)
    assert store.grid == (grid[0] or 1, grid[1] or 1)
    assert store.dtype == dtype
    assert np.array_equal(put_together(store), dataset.X.toarray().astype(dtype))
    assert np.array_equal(store.y, dataset.y)
    store.check()
    for r in range(store.grid[0]):
        for c in range(store.grid[1]):
            tile = store.tile(r, c)
            assert (tile.indptr.dtype, tile.indices.dtype, tile.data.dtype) == (np.int64, np.int32, store.dtype)
            assert not tile.data.flags.owndata
            assert np.all(tile.data)
            assert np.array_equal(tile.indices, sparse.csc_array(tile.toarray()).indices)
            assert store.tile_entries(r, c) == tile.nnz
            assert store.tile_bytes(r, c) == 3 * 128 + 8 * len(tile.indptr) + (4 + store.dtype.itemsize) * tile.nnz


def test_a_block_of_a_partition_is_a_column_group(dataset, tmp_path):
    blocks = bg.make_partition(dataset.X, dataset.y, n_blocks=6, kind="random", seed=2)
    store = convert(dataset, tmp_path / "a.store", partition=blocks, row_groups=2)
    for b in range(6):
        own = store.features[store.column_cuts[b] : store.column_cuts[b + 1]]
        assert np.array_equal(own, blocks.members(b))
    assert np.array_equal(put_together(store), dataset.X.toarray())
    assert (sparse.csc_array(dataset.X) != store.dataset().X).nnz == 0


@pytest.mark.parametrize("grid", GRIDS)
def test_statistics_are_those_of_the_whole_columns(grid, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(211, 40)) * (rng.uniform(size=(211, 40)) < rng.uniform(size=40))
    X[:, 3] = 0
    X[:, 4] = 1e8 + rng.uniform(size=211)  # the mean dwarfs the spread
    X[:, 5] = -0.1  # does not vary
    X[:, 6] = np.abs(X[:, 6]) + 1
    store = convert(bg.Dataset(X, np.zeros(211)), tmp_path / "a.store", row_groups=grid[0], column_groups=grid[1])
    found = store.statistics
    assert np.array_equal(found.entries, np.count_nonzero(X, axis=0))
    assert np.array_equal(found.least, X.min(axis=0))
    assert np.array_equal(found.most, X.max(axis=0))
    assert np.array_equal(found.largest, np.abs(X).max(axis=0))
    exact = X.astype(np.longdouble)
    mean = exact.mean(axis=0)
    squares = ((exact - mean) ** 2).sum(axis=0)
    assert np.allclose(found.mean, mean.astype(float), rtol=1e-14, atol=1e-15)
    assert np.allclose(found.squares, squares.astype(float), rtol=1e-8, atol=1e-25)  # 1e8 has no more digits


def test_long_columns_have_the_same_statistics(monkeypatch, dataset, tmp_path):
    import blockgreedy.data.column_statistics as module

    whole = convert(dataset, tmp_path / "a.store").statistics
    monkeypatch.setattr(module, "_BLOCK", 5)
    pieces = convert(dataset, tmp_path / "b.store", n_threads=2).statistics
    for one, other in zip(whole, pieces, strict=True):
        assert np.allclose(one, other, rtol=1e-12, atol=1e-15)


def test_combine_is_the_product_with_all_columns(dataset, tmp_path):
    blocks = bg.make_partition(dataset.X, dataset.y, n_blocks=3, kind="random", seed=2)
    store = convert(dataset, tmp_path / "a.store", partition=blocks, row_groups=4)
    w = np.where(np.arange(200) % 7 == 0, np.linspace(-1, 1, 200), 0)
    assert np.allclose(store.combine(w), dataset.X @ w, atol=1e-12)
    with pytest.raises(ValueError, match=r"weights has shape \(3,\)"):
        store.combine(np.zeros(3))


def test_text_labels_names_weights_and_offset_come_back(dataset, tmp_path):
    names = np.array([f"wört {j}\n" for j in range(200)])
    labelled = bg.Dataset(dataset.X, np.where(dataset.y > 0, "ill", "healthy"), names, name="text")
    weights, offset = np.arange(300.0), np.linspace(0, 1, 300)
    store = convert(labelled, tmp_path / "a.store", sample_weight=weights, offset=offset)
    assert store.classes.tolist() == ["healthy", "ill"]
    assert np.array_equal(store.labels, labelled.y)
    assert np.array_equal(store.classes[store.y.astype(int)], labelled.y)
    assert np.array_equal(store.feature_names, names)
    assert np.array_equal(store.sample_weight, weights)
    assert np.array_equal(store.offset, offset)
    again = store.dataset()
    assert np.array_equal(again.y, labelled.y)
    assert again.name == "text"


def test_labels_keep_their_type(dataset, tmp_path):
    store = convert(bg.Dataset(dataset.X, np.arange(300)), tmp_path / "a.store")
    assert store.dataset().y.dtype == np.int64
    assert store.y.dtype == np.float64


def test_opening_reads_nothing_but_meta(dataset, tmp_path):
    store = convert(dataset, tmp_path / "a.store", row_groups=3)
    for file in store.path.glob("*.npy"):
        file.unlink()
    assert Store(store.path).shape == (300, 200)
    with pytest.raises(ValueError, match="it is not there"):
        Store(store.path).tile(0, 0)


def test_a_changed_byte_and_a_cut_file_are_found_and_named(dataset, tmp_path):
    store = convert(dataset, tmp_path / "a.store", row_groups=2)
    file = store.path / tile_file(1, 0, "data")
    content = file.read_bytes()
    file.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    store.check(0, 0)
    with pytest.raises(ValueError, match=r"tile-0001-0000.data.npy is damaged: its checksum.*convert the data again"):
        store.check(1, 0)
    with pytest.raises(ValueError, match="its checksum"):
        store.check()
    file.write_bytes(content[:-8])
    with pytest.raises(ValueError, match=r"tile-0001-0000.data.npy is damaged: it has [\d,]+ bytes, not"):
        Store(store.path).tile(1, 0)


def test_what_is_no_store_is_refused(dataset, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no store"):
        Store(tmp_path / "none.store")
    folder = tmp_path / "a.store"
    folder.mkdir()
    with pytest.raises(ValueError, match=r"is no store: it has no meta.json"):
        Store(folder)
    (folder / "conversion.json").write_text("{}")
    with pytest.raises(ValueError, match=r"not complete.*Run the same conversion again"):
        Store(folder)
    (folder / "meta.json").write_text("{")
    with pytest.raises(ValueError, match="is damaged"):
        Store(folder)
    (folder / "meta.json").write_text('{"format": "blockgreedy store", "version": 99}')
    with pytest.raises(ValueError, match="has version 99"):
        Store(folder)
    (folder / "meta.json").write_text('{"format": "blockgreedy store", "version": 1}')
    with pytest.raises(ValueError, match="is damaged: KeyError"):
        Store(folder)
    store = convert(dataset, tmp_path / "b.store")
    with pytest.raises(ValueError, match="r=1 must be a whole number from 0 to 0"):
        store.tile(1, 0)


def test_a_store_is_loaded_by_its_suffix(dataset, tmp_path):
    convert(dataset, tmp_path / "a.store", row_groups=2, column_groups=2)
    found = bg.load(tmp_path / "a.store")
    assert (sparse.csc_array(dataset.X) != found.X).nnz == 0
    assert np.array_equal(found.y, dataset.y)


def test_a_store_larger_than_memory_is_not_loaded(dataset, tmp_path, monkeypatch):
    store = convert(dataset, tmp_path / "a.store")
    monkeypatch.setattr("blockgreedy.data.store.free", lambda: 1000)
    with pytest.raises(MemoryError, match=r"1000 bytes are free"):
        store.dataset()


def test_another_process_opens_the_folder_itself(dataset, tmp_path):
    store = convert(dataset, tmp_path / "a.store", row_groups=2)
    assert store.y.size
    sent = pickle.dumps(store)
    assert len(sent) < 1000
    assert np.array_equal(put_together(pickle.loads(sent)), dataset.X.toarray())


@pytest.mark.parametrize("grid", GRIDS)
def test_tiles_are_assembled_some_entries_at_a_time(dataset, grid, tmp_path, monkeypatch):
    monkeypatch.setattr("blockgreedy.data.assembly._BLOCK", 7)
    store = convert(dataset, tmp_path / "a.store", row_groups=grid[0], column_groups=grid[1])
    found, given = store.dataset().X, sparse.csc_array(dataset.X)
    for part in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(found, part), getattr(given, part))


def test_meta_says_what_the_store_is_made_of(dataset, tmp_path):
    bg.data.write(dataset, tmp_path / "a.svm")
    store = convert(tmp_path / "a.svm", tmp_path / "a.store")
    meta = json.loads((store.path / "meta.json").read_text())
    assert meta["made_of"]["files"][0][0].endswith("a.svm")
    assert {*meta["files"]} == {file.name for file in store.path.iterdir()} - {"meta.json"}
    assert store.index_base == 1


def test_a_tile_can_be_asked_for_in_advance(dataset, tmp_path):
    store = convert(dataset, tmp_path / "a.store", row_groups=2)
    store.will_need(1, 0)
    with pytest.raises(ValueError, match="r=2 must be a whole number from 0 to 1"):
        store.will_need(2, 0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_standard_deviations_of_columns_far_from_0_are_those_of_the_matrix(tmp_path, weighted, fit_intercept):
    random = np.random.default_rng(0)
    X = np.column_stack([random.normal(mean, 1, 300) for mean in (0, 1e3, 1e6, 1e8)])
    X = sparse.csc_array(np.column_stack([X, np.zeros(300), np.full(300, 1e7)]))
    y = np.where(random.random(300) > 0.5, 1.0, -1.0)
    options = {"loss": "logistic", "alpha": 0.01, "fit_intercept": fit_intercept, "standardize": True}
    if weighted:
        options["sample_weight"] = random.integers(0, 4, 300)
    store = convert(bg.Dataset(X, y), tmp_path / "made.store", row_groups=2)
    found, expected = bg.Problem(store, **options), bg.Problem(X, y, **options)
    assert found.penalty_weights == pytest.approx(expected.penalty_weights, rel=1e-8)
