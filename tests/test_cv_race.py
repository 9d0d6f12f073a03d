"""The logic behind benchmarks/cv: folds, curves, what is reported. No timing."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.cv import report
from benchmarks.cv.cell import CvCell, curve_error, held_out_loss, make_folds
from benchmarks.cv.measure import Row, Runner, describe
from benchmarks.cv.memory import matrix_bytes, with_peak
from benchmarks.cv.peers import PEERS, find_peer
from benchmarks.cv.reference import reference
from benchmarks.paths.cell import grid
from benchmarks.race.problems import Data
from benchmarks.race.worker import PassedLimit
from benchmarks.table import read_table, write_table
from sklearn.metrics import log_loss

import blockgreedy as bg

BLANK = Row("toy", "squared", 3, 0.1, 5, "a-1", "1", 1, 1e-4, "failed", limit=60.0)


@pytest.fixture(scope="module")
def data() -> Data:
    made = bg.data.text_like(200, 300, 10.0)
    y = np.asarray(made.y, dtype=np.float64)
    return Data("toy", sp.csr_matrix(made.X), y, y)


def cell_of(data: Data, loss: Any) -> CvCell:
    return CvCell(data.X, data.y(loss), loss, grid(data, loss, 4, 0.1), make_folds(data.label))


def row(solver: str, seconds: float, **changes: Any) -> Row:
    return dataclasses.replace(BLANK, solver=solver, status="ok", seconds=seconds, **changes)


def test_folds_have_equal_shares_of_both_classes_and_do_not_follow_the_order_of_rows():
    label = np.where(np.arange(1003) < 300, 1.0, -1.0)
    folds = make_folds(label)
    for sign in (-1.0, 1.0):
        counts = np.bincount(folds[label == sign], minlength=5)
        assert counts.max() - counts.min() <= 1
    assert len(set(folds[:20])) == 5
    assert np.array_equal(folds, make_folds(label))


def test_splits_cover_every_row_once(data):
    splits = cell_of(data, "squared").splits
    assert sorted(np.concatenate([held_out for _, held_out in splits])) == list(range(200))
    for train, held_out in splits:
        assert sorted([*train, *held_out]) == list(range(200))


def test_the_held_out_loss_is_mean_square_or_log_loss():
    y, t = np.array([1.0, -1.0, 1.0]), np.array([[0.5, 0.0], [0.2, -2.0], [-1.0, 1.0]])
    assert held_out_loss("squared", y, t) == pytest.approx([(0.25 + 1.44 + 4) / 3, (1 + 1 + 0) / 3])
    expected = [log_loss(y, 1 / (1 + np.exp(-t[:, k]))) for k in range(2)]
    assert held_out_loss("logistic", y, t) == pytest.approx(expected)


def test_a_curve_is_off_by_its_largest_distance():
    expected = np.array([2.0, 1.0, 1.5])
    assert curve_error(expected + np.array([0.0, -0.1, 0.02]), expected) == pytest.approx(0.05)


def test_the_reference_curve_is_scikit_learns_at_a_tight_tolerance_and_is_read_again(data, tmp_path, monkeypatch):
    cell = cell_of(data, "squared")
    curve = reference(tmp_path / "reference.csv", "toy", cell)
    peer = find_peer("sklearn-lassocv")
    theirs, chosen = peer.answer(
        peer.fit(peer.prepare(peer.cell(data, "squared", (cell.alphas, cell.folds)), 1), 1e-9)
    )
    assert curve_error(theirs, curve) <= 1e-4  # held-out losses move like the square root of an error of 1e-8
    assert chosen == pytest.approx(cell.alphas[np.argmin(curve)])
    monkeypatch.setattr("benchmarks.cv.reference.solve", None)  # not needed a second time
    assert np.array_equal(reference(tmp_path / "reference.csv", "toy", cell), curve)


class Script:
    """A worker that gives what it was told to, one answer per order."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def ask(self, limit: float, order: str, *arguments: Any) -> Any:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def run(*answers: Any) -> Row:
    expected = np.array([2.0, 1.0])
    runner = Runner(Script(*answers), expected, 0.5, BLANK, 3, lambda: 0.0)  # type: ignore[arg-type]
    while not runner.done:
        runner.step(60.0)
    return runner.row


def test_short_fits_are_repeated_and_their_median_counts():
    curve = np.array([2.0, 1.1])
    made = run(*[(seconds, (curve, 0.25), {"peak": 1.5}) for seconds in (3.0, 1.0, 2.0)])
    assert (made.seconds, made.repeats, made.chosen, made.peak) == (2.0, 3, 0.5, 1.5)
    assert made.curve_error == pytest.approx(0.05)
    assert run((100.0, (curve, 0.25), {})).repeats == 1


def test_a_cut_off_is_a_cut_off_unless_a_time_was_shown_before():
    assert describe(run(PassedLimit("fit passed 60 s"))) == "cut off after 60 s"
    made = run((1.0, (np.array([2.0, 1.0]), 0.25), {}), PassedLimit("fit passed 60 s"))
    assert (made.status, made.seconds) == ("ok", 1.0)


def test_ours_is_compared_with_the_fastest_peer_that_finished(tmp_path):
    rows = [
        row("blockgreedy-2", 2.0, peak=0.7, curve_error=1e-4, chosen=0.1, others=0.0),
        row("a-1", 9.0, curve_error=1e-3, chosen=0.2, others=0.0),
        row("b-1", 12.0, curve_error=1e-3, chosen=0.2, others=0.0),
        dataclasses.replace(BLANK, solver="c-1", status="limit", others=0.0),
    ]
    write_table(tmp_path / "cv.csv", Row, rows)
    rows = read_table(tmp_path / "cv.csv", Row)
    assert report.factor(rows) == ("a-1", 4.5)
    text = report.summary(rows, {"cpu": "c", "cores": 2, "system": "s", "python": "3", "commit": "0", "limit": 60,
                                 "versions": {}, "not raced": {}})  # fmt: skip
    assert "| toy, squared | a-1 | 9 s | 2 s | 4.5 | 0.70 |" in text
    assert "| toy, squared | c-1 | cut off (60 s) |" in text
    assert math.isnan(report.factor(rows[1:])[1])


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_our_curve_is_the_reference(data, loss, tmp_path):
    peer, cell = find_peer("blockgreedy"), cell_of(data, loss)
    curve, _ = peer.answer(peer.fit(peer.prepare(peer.cell(data, loss, (cell.alphas, cell.folds)), 1), 1e-8))
    assert curve_error(curve, reference(tmp_path / "reference.csv", "toy", cell)) <= 1e-3


def test_the_peak_sees_what_is_allocated_for_a_moment():
    # more than 32 MiB: the C library may serve less from memory that earlier tests have freed
    _, peak = with_peak(lambda: np.ones(8_000_000).sum())
    assert math.isnan(peak) or peak > 60_000_000
    assert matrix_bytes(sp.csc_matrix(np.eye(3, dtype=np.float32))) == 3 * 4 + 3 * 4 + 4 * 4


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_peers_are_found_by_name_and_get_alphas_and_folds(data, peer):
    assert find_peer(peer.name) is peer
    cell = cell_of(data, "squared")
    asked = peer.cell(data, "squared", (cell.alphas, cell.folds))
    assert np.array_equal(asked.folds, cell.folds)
    assert set(asked.small().folds) == {0, 1, 2, 3, 4}
