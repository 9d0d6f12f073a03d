"""Stores on the command line: converted, described, fitted, predicted."""

import json

import numpy as np
import pytest

import blockgreedy as bg
from blockgreedy.data import Store
from command_line import fit, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli_store")
    made = bg.data.text_like(400, 400, 12.0, seed=3)
    bg.data.write(made, path / "a.svm.gz")
    for k, rows in enumerate((slice(0, 150), slice(150, 400))):
        bg.data.write(bg.Dataset(made.X[rows], made.y[rows]), path / f"part-{k}.svm")
    done = run("data", "convert", path / "a.svm.gz", path / "a.store", "--row-groups", 3, "--column-groups", 2)
    assert done.exit_code == 0, done.output
    assert "400 × 400" in done.output
    assert "3 × 2 tiles" in done.output
    return path


def test_several_files_become_one_store(folder, tmp_path):
    parts = [folder / "part-0.svm", folder / "part-1.svm"]
    done = run("data", "convert", *parts, tmp_path / "b.store", "--memory", "200M", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["n_samples"] == 400
    assert (Store(tmp_path / "b.store").dataset().X != Store(folder / "a.store").dataset().X).nnz == 0
    pattern = run("data", "convert", folder / "part-*.svm", tmp_path / "c.store", "-q")
    assert (pattern.exit_code, pattern.output) == (0, "")
    assert Store(tmp_path / "c.store").shape == (400, 400)


def test_the_blocks_of_a_partition_file_are_column_groups(folder, tmp_path):
    blocks = tmp_path / "blocks.npz"
    bg.make_partition(bg.load(folder / "a.svm.gz").X, n_blocks=4, kind="random", seed=1).save(blocks)
    assert run("data", "convert", folder / "a.svm.gz", tmp_path / "p.store", "--partition", blocks).exit_code == 0
    store = Store(tmp_path / "p.store")
    assert store.grid[1] == 4
    assert np.array_equal(np.sort(store.features), np.arange(400))


def test_info_describes_a_store_and_finds_damage(folder, tmp_path):
    said = run("data", "info", folder / "a.store", "--check")
    assert said.exit_code == 0
    for text in ("a store, 400 × 400", "3 row groups × 2 column groups", "all files are as they were written"):
        assert text in said.output
    plain = json.loads(run("data", "info", folder / "a.store", "--json").output)
    loaded = bg.load(folder / "a.svm.gz")
    assert plain["nonzeros"] == loaded.X.nnz
    assert sum(plain["labels"].values()) == 400
    run("data", "convert", folder / "a.svm.gz", tmp_path / "d.store")
    tile = tmp_path / "d.store" / "tile-0000-0000.indices.npy"
    tile.write_bytes(tile.read_bytes()[:-1] + b"\xff")
    done = run("data", "info", tmp_path / "d.store", "--check")
    assert done.exit_code == 1
    assert "tile-0000-0000.indices.npy is damaged: its checksum" in done.output


def test_a_store_is_fitted_and_predicted_as_the_file_is(folder, tmp_path):
    for name in ("a.svm.gz", "a.store"):
        done = fit(folder / name, "--alpha-ratio", 0.1, "--tol", 1e-9, "--model", tmp_path / f"{name}.npz", "-q")
        assert done.exit_code == 0, done.output
    one, other = (bg.Model.load(tmp_path / f"{name}.npz") for name in ("a.svm.gz", "a.store"))
    assert np.allclose(one.coef, other.coef, atol=1e-7)
    assert one.index_base == other.index_base == 1
    for name in ("a.svm.gz", "a.store"):
        out = tmp_path / f"{name}.csv"
        assert run("predict", tmp_path / "a.store.npz", folder / name, "--what", "decision", "-o", out).exit_code == 0
    found = [np.loadtxt(tmp_path / f"{name}.csv", skiprows=1) for name in ("a.svm.gz", "a.store")]
    assert np.allclose(found[0], found[1], atol=1e-12)
    assert np.allclose(other.decision(Store(folder / "a.store")), found[0], atol=1e-12)
    assert "AUC" in run("predict", tmp_path / "a.store.npz", folder / "a.store", "--score").output


def test_predicting_a_store_does_not_load_it(folder, tmp_path, monkeypatch):
    fit(folder / "a.svm.gz", "--alpha-ratio", 0.1, "--model", tmp_path / "m.npz", "-q")
    monkeypatch.setattr("blockgreedy.data.store.free", lambda: 1000)
    assert run("predict", tmp_path / "m.npz", folder / "a.store").exit_code == 0
    done = fit(folder / "a.store", "--alpha-ratio", 0.1)
    assert done.exit_code == 1
    assert "are free; blockgreedy fit, solve and solve_path read it a tile at a time" in done.output


def test_a_store_with_more_or_fewer_features_than_the_model(folder, tmp_path):
    fit(folder / "a.svm.gz", "--alpha-ratio", 0.05, "--model", tmp_path / "m.npz", "-q")
    model = bg.Model.load(tmp_path / "m.npz")
    X = bg.load(folder / "a.svm.gz").X
    for width in (350, 420):
        rows = X[:20].toarray()
        rows = rows[:, :width] if width < 400 else np.hstack([rows, np.ones((20, width - 400))])
        rows[0, width - 1] = 1
        bg.data.write(bg.Dataset(rows, np.ones(20)), tmp_path / f"{width}.svm")
        run("data", "convert", tmp_path / f"{width}.svm", tmp_path / f"{width}.store")
        outs = [tmp_path / f"{width}-{kind}.csv" for kind in ("svm", "store")]
        for out, kind in zip(outs, ("svm", "store"), strict=True):
            done = run("predict", tmp_path / "m.npz", tmp_path / f"{width}.{kind}", "--what", "decision", "-o", out)
            assert done.exit_code == 0, done.output
            assert ("beyond the model's 400" in done.output) == (width > 400)
        found = [np.loadtxt(out, skiprows=1) for out in outs]
        assert np.allclose(found[0], found[1], atol=1e-12)
    assert model.n_features == 400


def test_a_table_goes_from_store_to_model_to_rows_in_a_file(tmp_path):
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(1)
    sites, hours = rng.integers(0, 5, 300), rng.integers(0, 4, 300)
    clicked = (sites + hours > 4).astype(int)
    rows = [f"s{site},{hour},{y}\n" for site, hour, y in zip(sites, hours, clicked, strict=True)]
    (tmp_path / "t.csv").write_text("".join(["site,hour,clicked\n", *rows]))
    done = run("data", "convert", tmp_path / "t.csv", tmp_path / "t.store", "--target", "clicked",
               "--categorical", "hour", "--cross", "site,hour")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert fit(tmp_path / "t.store", "--alpha-ratio", 0.01, "--model", tmp_path / "m.npz", "-q").exit_code == 0
    model = bg.Model.load(tmp_path / "m.npz")
    assert any("×" in name for name, _ in model.top())
    done = run("predict", tmp_path / "m.npz", tmp_path / "t.csv", "--target", "clicked", "--score", "--json")
    assert json.loads(done.output)["scores"]["accuracy"] > 0.95


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a.svm.gz", "b.npz", "--memory", "1G"), "--memory 1G is for stores: OUT must end in .store"),
        (("part-0.svm", "part-1.svm", "b.npz"), "several files can become one store"),
        (("a.svm.gz", "b.store", "--row-groups", "0"), "--row-groups 0 must be a whole number of at least 1"),
        (("a.svm.gz", "b.store", "--cache"), "--cache is not for stores"),
        (("a.svm.gz", "b.store", "--target", "y"), "--target y is for"),
    ],
)
def test_wrong_use_is_told(folder, arguments, said, monkeypatch):
    monkeypatch.chdir(folder)
    done = run("data", "convert", *arguments)
    assert done.exit_code == 2
    assert said in done.output


def test_other_failures_are_told(folder, tmp_path):
    assert "memory='10M' is too little" in run(
        "data", "convert", folder / "a.svm.gz", tmp_path / "b.store", "--memory", "10M"
    ).output.replace("--memory 10M is", "memory='10M' is")
    done = run("data", "convert", folder / "part-0.svm", folder / "a.store")
    assert done.exit_code == 1
    assert "is a store of other data" in done.output
