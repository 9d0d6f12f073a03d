"""Damaged stores: every file is found out before what it says is used, by fits and by all else."""

import json
import os
import random
import shutil
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import blockgreedy as bg
from blockgreedy import _core
from blockgreedy.data import Store, convert
from blockgreedy.problem.columns import assemble
from blockgreedy.problem.passes import core_matrix

DAMAGED = "is damaged|is no store|has version"


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = sparse.random_array((60, 12), density=0.3, rng=rng, format="csc")
    data = bg.Dataset(X, np.where(rng.random(60) < 0.5, "ill", "well"), np.array([f"wört {j}" for j in range(12)]))
    order = bg.make_partition(X, np.zeros(60), n_blocks=3, kind="random")
    more = {"sample_weight": rng.random(60), "offset": rng.standard_normal(60)}
    return convert(
        data, tmp_path_factory.mktemp("damage") / "whole.store", row_groups=2, partition=order, **more
    ).path


def everything(path):
    """All that a store says, by way of a fit."""
    store = Store(path)
    problem = bg.Problem(
        store, loss="logistic", alpha=1e-2, fit_intercept=True, sample_weight=store.sample_weight, offset=store.offset
    )
    solution, data = bg.solve(problem, tol=1e-6, n_threads=1), store.dataset()
    assert store.feature_names is not None
    numbers = solution.coef.tobytes(), solution.intercept, problem.alpha_max, problem.kkt_residual(solution.coef)
    texts = solution.status, data.y.tolist(), store.feature_names.tolist(), repr(store).split(", ", 1)[1]
    return *numbers, *texts, data.X.toarray().tobytes(), store.combine(np.ones(12)).tobytes()


@pytest.fixture
def copied(stored, tmp_path):
    shutil.copytree(stored, tmp_path / "x.store")
    return tmp_path / "x.store"


def test_a_changed_byte_of_any_file_is_an_error_of_whoever_reads_it(stored, copied):
    whole, draw = everything(stored), random.Random(0)
    for file in sorted(stored.iterdir()):
        content = file.read_bytes()
        for _ in range(6):
            at, bit = draw.randrange(len(content)), 1 << draw.randrange(8)
            changed = content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :]
            (copied / file.name).write_bytes(changed)
            try:
                assert everything(copied) == whole  # spaces of meta.json
            except ValueError as error:
                assert any(words in str(error) for words in DAMAGED.split("|"))  # noqa: PT017
        (copied / file.name).write_bytes(content)


@pytest.mark.parametrize("part", ["indices", "indptr"])
@pytest.mark.parametrize("use", ["alpha_max", "objective", "combine", "dataset", "unpenalised"])
def test_the_core_does_not_follow_rows_and_pointers_that_lead_out_of_a_tile(copied, part, use):
    for file in copied.glob(f"tile-*.{part}.npy"):
        content = bytearray(file.read_bytes())
        content[131 if part == "indices" else 128 + 8 * 2 + 4] = 0x7F
        file.write_bytes(content)
    store = Store(copied)
    free = np.append(np.ones(11), 0.0)
    uses = {
        "alpha_max": lambda: bg.Problem(store, loss="logistic", alpha=1.0).alpha_max,
        "objective": lambda: bg.Problem(store, loss="logistic", alpha=1.0).objective(np.ones(12)),
        "combine": lambda: store.combine(np.ones(12)),
        "dataset": store.dataset,
        "unpenalised": lambda: bg.Problem(store, loss="logistic", alpha=1.0, penalty_weights=1 - free).null_model,
    }
    with pytest.raises(ValueError, match="is damaged"):
        uses[use]()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["files"], True),
        (["files", "y.npy"], 3),
        (["files", "y.npy", "bytes"], "x"),
        (["files", "y.npy", "crc32"], None),
        (["shape"], [60.0, 12]),
        (["shape", 0], 2**70),
        (["row_cuts", 1], 61),
        (["row_cuts", 1], 1.5),
        (["column_cuts"], [0]),
        (["tile_entries", 0, 0], -1),
        (["tile_entries"], []),
        (["n_entries"], 1),
        (["dtype"], "int64"),
        (["labels"], None),
        (["labels", "classes"], [1, 2]),
        (["labels", "dtype"], "no type"),
        (["index_base"], 7),
        (["name"], None),
    ],
)
def test_what_meta_cannot_say_is_refused_where_it_has_no_checksum(copied, path, value):
    meta = json.loads((copied / "meta.json").read_text())
    del meta["checksum"]  # as in stores of earlier versions
    (copied / "meta.json").write_text(json.dumps(meta))
    assert Store(copied).shape == (60, 12)
    place = meta
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    (copied / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(ValueError, match=r"meta\.json is damaged"):
        Store(copied)


def test_a_value_of_meta_that_could_be_true_is_told_by_its_checksum(copied):
    meta = json.loads((copied / "meta.json").read_text())
    del meta["files"]["sample_weight.npy"]
    (copied / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(ValueError, match="it was changed after it had been written"):
        Store(copied)


def patch(store, name, change):
    """In place, as another process would that has the file mapped."""
    for file in store.glob(name):
        values = np.lib.format.open_memmap(file, mode="r+")
        change(values)
        values.flush()


CHANGES = {
    "indices": lambda store: patch(store, "tile-*.indices.npy", lambda a: a.fill(2**30)),
    "indptr": lambda store: patch(store, "tile-*.indptr.npy", lambda a: a.fill(2**40)),
    "values": lambda store: patch(store, "tile-*.data.npy", lambda a: a.__imul__(1.001)),
    "nan": lambda store: patch(store, "tile-*.data.npy", lambda a: a.fill(np.nan)),
    "labels": lambda store: patch(store, "y.npy", lambda a: a.fill(0)),
    "statistics": lambda store: patch(store, "statistics-*.npy", lambda a: a.fill(0)),
    "cut off": lambda store: [os.truncate(file, 150) for file in store.glob("tile-*.data.npy")],
    "replaced": lambda store: [replace_file(file) for file in store.glob("tile-*.data.npy")],
    "deleted": lambda store: shutil.rmtree(store),
}


def replace_file(file):
    values = np.load(file)
    np.save(file.with_name("new.npy"), values[::-1].copy())
    os.replace(file.with_name("new.npy"), file)


@pytest.mark.parametrize("what", CHANGES)
def test_a_store_that_changes_while_it_is_fitted_is_refused(copied, what):
    store = Store(copied)
    problem = bg.Problem(store, loss="logistic", alpha=1e-3, fit_intercept=True)

    def callback(record):
        if record.iteration == 1:
            CHANGES[what](copied)

    with pytest.raises(ValueError, match=r"x\.store/.* has changed since the store was opened"):
        bg.solve(problem, tol=1e-9, n_threads=1, callback=callback)


def test_a_store_that_stays_as_it_is_is_not_refused(copied):
    store = Store(copied)
    store.dataset()
    os.utime(copied / "meta.json")  # of which nothing is read any more
    store.check_unchanged()


@pytest.mark.parametrize("change", ["indptr beyond", "indptr falls", "row beyond", "row below 0"])
def test_the_core_refuses_columns_that_lead_out_of_their_matrix(change):
    X = sparse.random_array((300, 40), density=0.3, format="csc", rng=np.random.default_rng(0))
    indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)
    matrix = core_matrix(assemble(sparse.csc_array, X.data, indices, indptr, X.shape))
    numbers, out, team = np.arange(40, dtype=np.int32), np.empty(40), _core.Team(2)
    of = [matrix], [0], [0], [300], [numbers]
    theta = np.ones(300)
    assert _core.products_of(team, matrix, theta, numbers, out) == X.nnz
    np.testing.assert_allclose(out, X.T @ theta)
    _core.gather_columns(team, *of)
    if change == "indptr beyond":
        indptr[20] = 2**40
    elif change == "indptr falls":
        indptr[20] = indptr[19] - 1
    else:
        indices[700] = 300 if change == "row beyond" else -1
    with pytest.raises(ValueError, match="X has changed while it was fitted"):
        _core.products_of(team, matrix, theta, numbers, out)
    with pytest.raises(ValueError, match="X has changed while it was fitted"):
        _core.gather_columns(team, *of)


def test_some_columns_of_a_tile_take_little_memory(tmp_path):
    X = sparse.random_array((20_000, 500), density=0.2, format="csc", rng=np.random.default_rng(0))
    store = convert(bg.Dataset(X, np.zeros(20_000)), tmp_path / "x.store")
    tracemalloc.start()
    found = store.some_columns(0, 0, np.array([3]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(found.toarray(), X[:, [3]].toarray())
    assert peak < 1e6  # all row numbers are 8 MB
