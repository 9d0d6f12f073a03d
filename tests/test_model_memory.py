"""What a model takes in memory after the fit, and what is left of it where there is too little."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import blockgreedy as bg
from blockgreedy.cli import app
from blockgreedy.cli import scores as scores_module
from blockgreedy.models import extras


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = sp.random_array((400, 30), density=0.3, rng=rng, format="csc").tolil()
    X[:, [3]] = 2 * X[:, [4]]
    data = bg.Dataset(sp.csc_array(X), np.where(np.asarray(X[:, [4]].toarray())[:, 0] > 0.2, 1.0, -1.0))
    return bg.data.convert(data, tmp_path_factory.mktemp("memory") / "x.store")


def no_memory(*_, **__):
    raise MemoryError("Unable to allocate 9 GiB")


def fit(store, tmp_path, *more):
    words = ["fit", str(store.path), "--alpha", "0.01", "--memory", "10K", "--model", str(tmp_path / "m.npz"), *more]
    return CliRunner().invoke(app, words)


def test_copies_of_columns_are_looked_for_as_far_as_memory_goes(store):
    problem = bg.Problem(store, store.y, loss="logistic", alpha=0.01)
    solution = bg.solve(problem)
    assert bg.Model.of_solution(problem, solution).aliases
    assert bg.Model.of_solution(problem, solution, memory="1M").aliases
    assert bg.Model.of_solution(problem, solution, memory=2000).aliases is None


def test_a_command_keeps_to_its_memory_when_it_makes_the_model(store, tmp_path):
    done = fit(store, tmp_path)
    assert done.exit_code == 0, done.output
    assert "too many columns of the store would have to be compared" in done.output
    assert bg.Model.load(tmp_path / "m.npz").aliases is None


@pytest.mark.parametrize(
    ("module", "name", "lost", "said"),
    [
        (extras, "copies_of", "aliases", "copies of features"),
        (extras, "without_stored_zeros", "support", "the numbers of rows"),
        (scores_module, "measure", "quality", "the scores"),
    ],
)
def test_a_lack_of_memory_after_the_fit_costs_an_extra_and_not_the_model(
    store, tmp_path, monkeypatch, module, name, lost, said
):
    monkeypatch.setattr(module, name, no_memory)
    done = fit(store, tmp_path, "--memory", "10M", "--json")
    assert done.exit_code == 0, done.output
    assert f"Warning: not enough memory for {said}, which are left out: Unable to allocate 9 GiB" in done.stderr
    assert (json.loads(done.stdout)["quality"] is None) == (lost == "quality")
    model = bg.Model.load(tmp_path / "m.npz")
    assert getattr(model, lost) is None
    assert model.nonzeros[0] > 0


def test_a_lack_of_memory_for_the_page_is_said_and_the_model_is_kept(store, tmp_path, monkeypatch):
    monkeypatch.setattr("blockgreedy.cli.outputs._write_page", no_memory)
    done = fit(store, tmp_path, "--report", str(tmp_path / "m.html"))
    assert done.exit_code == 1
    assert "the report cannot be written" in done.stderr
    assert bg.Model.load(tmp_path / "m.npz").nonzeros[0] > 0
