"""The logic behind benchmarks/paths: how a path is judged, what is repeated, what is reported. No timing."""

from __future__ import annotations

import dataclasses
import math
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.paths import measure, report
from benchmarks.paths.cell import PathCell, grid, objectives, worst_error
from benchmarks.paths.measure import Row, Runner
from benchmarks.paths.peers import PEERS, find_peer, half_decades
from benchmarks.paths.reference import reference
from benchmarks.quiet import cores_in_use, wait_for_quiet
from benchmarks.race.problems import Data
from benchmarks.race.worker import PassedLimit
from benchmarks.table import read_table, write_table

import blockgreedy as bg

BLANK = Row("toy", "squared", 3, 0.1, "a-1", "1", 1, math.nan, "failed", limit=60.0)


@pytest.fixture(scope="module")
def data() -> Data:
    made = bg.data.text_like(200, 300, 10.0)
    y = np.asarray(made.y, dtype=np.float64)
    return Data("toy", sp.csr_matrix(made.X), y, y)


def row(solver: str, seconds: float, error: float, **changes: Any) -> Row:
    return dataclasses.replace(BLANK, solver=solver, status="ok", seconds=seconds, error=error, **changes)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_objectives_are_those_of_the_problem_at_each_alpha(data, loss):
    alphas = grid(data, loss, 4, 0.05)
    problem = bg.Problem(sp.csc_matrix(data.X), data.y(loss), loss=loss, alpha=1.0)
    assert alphas[0] == pytest.approx(problem.alpha_max)
    assert alphas[-1] == pytest.approx(0.05 * problem.alpha_max)
    coefs = sp.random(data.X.shape[1], 4, 0.1, format="csc", random_state=0)
    expected = [problem.with_alpha(a).objective(coefs[:, [k]].toarray().ravel()) for k, a in enumerate(alphas)]
    assert objectives(data, loss, alphas, coefs) == pytest.approx(expected, rel=1e-12)


def test_a_path_is_as_good_as_its_worst_point():
    best = np.array([0.5, 0.4, 0.3])
    assert worst_error(best + np.array([0.0, 1e-3, 1e-4]), best, 0.5) == (pytest.approx(2e-3), 1)
    assert math.isnan(worst_error(best + np.array([0.0, 1e-3, math.nan]), best, 0.5)[0])
    assert not row("a-1", 1.0, math.nan).reached


def test_the_reference_is_certified_and_read_again(data, tmp_path, monkeypatch):
    alphas = grid(data, "logistic", 3, 0.1)
    best, gaps = reference(tmp_path / "reference.csv", data, "logistic", alphas)
    problem = bg.Problem(sp.csc_matrix(data.X), data.label, loss="logistic", alpha=1.0)
    for alpha, f, gap in zip(alphas, best, gaps, strict=True):
        other = bg.solve(problem.with_alpha(alpha), tol=1e-6)
        assert f - gap <= other.objective + 1e-14
        assert gap <= 1e-7 * data.f_null("logistic")
    monkeypatch.setattr("benchmarks.paths.reference.solve", None)  # not needed a second time
    again, _ = reference(tmp_path / "reference.csv", data, "logistic", alphas)
    assert again == pytest.approx(best, rel=0, abs=0)


class Script:
    """A worker that gives what it was told to, one answer per order."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[float] = []
        self.solver = SimpleNamespace(peer=SimpleNamespace(tolerances=(1e-2, 1e-3, 1e-4)))

    def ask(self, limit: float, order: str, *arguments: Any) -> Any:
        self.asked += arguments
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def run(worker: Script, errors: list[float], repeats: int = 3) -> Runner:
    left = list(errors)
    runner = Runner(worker, lambda coefs: (left.pop(0), 0), BLANK, repeats, lambda: 0.0)  # type: ignore[arg-type]
    while not runner.done:
        runner.step(60.0)
    return runner


COEFS = sp.csc_matrix(np.eye(3))


def test_a_miss_goes_on_to_the_next_tolerance_and_a_hit_is_repeated():
    worker = Script((1.0, COEFS, {}), (2.0, COEFS, {}), (4.0, COEFS, {}), (2.5, COEFS, {}))
    runner = run(worker, [1e-2, 1e-6, 1e-6, 1e-6])
    assert worker.asked == [1e-2, 1e-3, 1e-3, 1e-3]
    assert [(r.tolerance, r.seconds, r.repeats, r.reached) for r in runner.rows] == [
        (1e-2, 1.0, 1, False),
        (1e-3, 2.5, 3, True),
    ]


def test_a_long_path_is_not_repeated():
    runner = run(Script((100.0, COEFS, {})), [1e-6])
    assert [r.repeats for r in runner.rows] == [1]


def test_a_cut_off_repeat_leaves_the_time_that_was_shown():
    runner = run(Script((2.0, COEFS, {}), PassedLimit("fit passed 60 s")), [1e-6])
    assert [(r.status, r.seconds, r.reached) for r in runner.rows] == [("ok", 2.0, True)]


def test_a_path_that_passes_the_limit_ends_the_solver():
    runner = run(Script((1.0, COEFS, {}), PassedLimit("fit passed 60 s")), [1e-2])
    assert [(r.status, r.tolerance) for r in runner.rows] == [("ok", 1e-2), ("limit", 1e-3)]
    assert measure.times(runner.rows) == {}


def test_tolerances_are_half_a_decade_apart():
    assert half_decades(1e-2, 1e-4) == (1e-2, 3.16e-3, 1e-3, 3.16e-4, 1e-4)


def test_tolerances_run_out():
    runner = run(Script(*[(1.0, COEFS, {})] * 3), [1e-2, 1e-3, 1e-4])
    assert [r.tolerance for r in runner.rows] == [1e-2, 1e-3, 1e-4]
    assert report.outcome(runner.rows) == "missed (1e-04)"


def test_rows_survive_their_file(tmp_path: Path):
    rows = [row("a-1", 1.5, 2e-6, tolerance=1e-3, message="a, b"), BLANK]
    write_table(tmp_path / "paths.csv", Row, rows)
    read = read_table(tmp_path / "paths.csv", Row)
    assert read[0] == dataclasses.replace(rows[0], others=read[0].others, cpu_seconds=read[0].cpu_seconds)
    assert math.isnan(read[1].error)


def test_ours_is_compared_with_the_best_peer_that_reached_the_target():
    rows = [
        row("blockgreedy-2", 2.0, 1e-6),
        row("blockgreedy-2", 1.0, 1e-3),  # too loose to count
        row("a-1", 9.0, 9e-6),
        row("a-1", 8.0, 1e-6),
        row("b-1", 3.0, 2e-5),
        dataclasses.replace(BLANK, solver="c-1", status="limit"),
    ]
    assert report.factor(rows) == ("a-1", 4.0)
    text = report.summary(rows, {"cpu": "c", "cores": 2, "system": "s", "python": "3", "commit": "0", "limit": 60,
                                 "versions": {}, "not raced": {}})  # fmt: skip
    assert "| toy, squared | a-1 | 8 s | 2 s | 4.0 |" in text
    assert "| c-1 | cut off (60 s) |" in text
    assert "| b-1 | missed (2e-05) |" in text


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_peers_are_found_by_name_and_take_the_whole_grid(data, peer):
    assert find_peer(peer.name) is peer
    assert list(peer.tolerances) == sorted(peer.tolerances, reverse=True)
    cell = peer.cell(data, "squared", np.array([0.2, 0.1]))
    assert isinstance(cell, PathCell)
    small = cell.small()
    assert small.X.shape[0] <= 300
    assert np.all(np.diff(small.alphas) < 0)


NEEDS_R = pytest.mark.skipif(shutil.which("Rscript") is None, reason="Rscript is not installed")


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("sklearn", "squared"),
        ("blockgreedy", "squared"),
        ("blockgreedy", "logistic"),
        pytest.param("glmnet", "squared", marks=NEEDS_R),
        pytest.param("glmnet", "logistic", marks=NEEDS_R),
    ],
)
def test_a_path_is_asked_for_the_same_problem(data, name, loss):
    peer = find_peer(name)
    if name == "glmnet":
        try:
            peer.version()
        except ModuleNotFoundError as error:
            pytest.skip(str(error))
    alphas = grid(data, loss, 5, 0.05)
    coefs = peer.answer(peer.fit(peer.prepare(peer.cell(data, loss, alphas), 1), 1e-9))
    problem = bg.Problem(data.X.tocsc(), data.y(loss), loss=loss, alpha=1.0)
    best = [bg.solve(problem.with_alpha(alpha), tol=1e-9).objective for alpha in alphas]
    assert worst_error(objectives(data, loss, alphas, coefs), np.array(best), data.f_null(loss))[0] <= 1e-6


def test_a_busy_machine_is_waited_for_but_not_for_ever():
    seen = iter([1.5, 0.9, 0.1, 2.0])
    assert wait_for_quiet(0.3, 0.01, lambda: 1.5) == 1.5
    assert wait_for_quiet(0.3, 0.0, lambda: next(seen)) == 1.5
    assert wait_for_quiet(1.0, 60.0, lambda: next(seen)) == 0.9
    used = cores_in_use(0.05)
    assert math.isnan(used) or 0 <= used <= 4096
