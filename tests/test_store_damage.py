"""Damaged stores: every file is found out before what it says is used, by fits and by all else."""

import json
import random
import shutil

import numpy as np
import pytest
from scipy import sparse

import blockgreedy as bg
from blockgreedy.data import Store, convert

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
