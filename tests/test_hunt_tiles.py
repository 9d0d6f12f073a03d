"""The hunt of the tile solver: grids are drawn, planted defects found, and findings become scripts that run."""

from __future__ import annotations

import dataclasses
import itertools
import subprocess
import sys

import numpy as np
import pytest
from hunt import problems
from hunt.case import Case, Grid
from hunt.checks import run
from hunt.draws import LOSSES
from hunt.outcome import Finding
from hunt.script import script
from hunt.shrink import shrink

import blockgreedy as bg
from blockgreedy.backends.tiles import relevant
from conftest import SANITIZED

own_process = pytest.mark.skipif(bool(SANITIZED), reason="a sanitized process starts slowly")


def tile_cases(call, is_stored):
    """Those that the class of grids draws first."""
    cases = (problems.make("tiles", seed) for seed in itertools.count())
    return (case for case in cases if case.call == call and (case.grid.groups is not None) == is_stored)


def test_grids_are_drawn_for_fits_and_paths_of_matrices_and_stores():
    for call, is_stored in itertools.product(("solve", "path"), (False, True)):
        cases = list(itertools.islice(tile_cases(call, is_stored), 5))
        assert len({case.grid.shape for case in cases}) > 1
        assert {case.problem["loss"] for case in cases} <= set(LOSSES)
        assert not any(case.estimator or "warm_start" in case.options for case in cases)


def test_columns_that_are_left_out_wrongly_are_found(monkeypatch):
    """Planted: a bound that takes columns for irrelevant which can have weights."""
    monkeypatch.setattr(relevant, "_MARGIN", 1e-3)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6))
    y = np.where(X[:, 0] + 0.1 * rng.normal(size=40) > 0, 1.0, -1.0)
    problem = {"loss": "logistic", "alpha": 0.05}
    case = Case("tiles", 1, X, y, problem=problem, options={"tol": 1e-5}, grid=Grid((2, 2), small_sets=True))
    assert {"infeasible dual", "false gap", "false certificate"} & {finding.check for finding in run(case).findings}
    monkeypatch.undo()
    assert run(case).findings == []


def test_ranks_that_say_different_things_are_found(monkeypatch):
    honest = bg.solve

    def lie(problem, cluster, **options):
        solution = honest(problem, cluster=cluster, **options)
        return solution if cluster.rank == 0 else dataclasses.replace(solution, coef=np.nextafter(solution.coef, 9))

    monkeypatch.setattr(bg, "solve", lie)
    case = dataclasses.replace(next(tile_cases("solve", False)), grid=Grid((1, 2)), stop=None)
    assert [finding.check for finding in run(case).findings] == ["bits"]


def test_shrinking_takes_ranks_and_stores_away():
    rng = np.random.default_rng(0)
    grid = Grid((3, 2), (4, 3), shuffled=True, small_sets=True)
    case = Case("tiles", 0, rng.normal(size=(9, 5)), rng.normal(size=9), problem={"loss": "squared"}, grid=grid)
    assert shrink(case, lambda trial: True).grid is None
    needed = shrink(case, lambda trial: trial.grid is not None and trial.grid.groups is not None)
    assert needed.grid == Grid((1, 1), (1, 1))
    assert needed.X.size == 1


@own_process
@pytest.mark.parametrize("call", ["solve", "path"])
@pytest.mark.parametrize("is_stored", [False, True])
def test_scripts_of_ranks_run(call, is_stored, tmp_path):
    case = next(tile_cases(call, is_stored))
    path = tmp_path / "found.py"
    path.write_text(script(case, Finding("false gap", "planted")))
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    assert "the same on all ranks, and again: True" in done.stdout
