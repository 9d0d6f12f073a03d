"""The race's own logic: what counts as reached, what is kept, what is compared. No timing."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.race import certificate, from_rows, measure, problems, report, row_peers
from benchmarks.race.measure import REFERENCE, Row
from benchmarks.race.peers import Peer, Solver, all_peers, decades
from benchmarks.table import read_table, write_table

import blockgreedy as bg


def row(solver: str, tolerance: float, seconds: float, objective: float, **changes: object) -> Row:
    made = Row(
        "toy", "logistic", 0.1, 1e-3, solver, "p", "1", report.threads_of(solver) if solver != REFERENCE else 1,
        tolerance, "ok", seconds=seconds, objective=objective, f_null=0.5, limit=60.0,
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


CELL = ("toy", "logistic", 0.1)


def test_suboptimality_is_relative_to_the_null_model_and_to_the_best_of_the_cell():
    rows = measure.with_suboptimality([row("a-1", 1e-2, 1.0, 0.3), row(REFERENCE, 1e-12, 9.0, 0.25)])
    assert [r.suboptimality for r in rows] == pytest.approx([0.1, 0.0])


def test_time_to_target_is_the_fastest_run_that_reached_it_and_never_the_reference():
    rows = measure.with_suboptimality(
        [
            row("a-1", 1e-2, 1.0, 0.25 + 1e-3),
            row("a-1", 1e-4, 3.0, 0.25 + 1e-7),
            row("a-1", 1e-6, 2.0, 0.25 + 1e-8),
            row("b-1", 1e-2, 0.1, 0.3),
            row(REFERENCE, 1e-12, 0.01, 0.25),
        ]
    )
    assert measure.time_to_target(rows, 1e-2)[CELL] == {"a-1": 1.0}
    assert measure.time_to_target(rows, 1e-5)[CELL] == {"a-1": 2.0}
    assert measure.time_to_target(rows, 1e-9)[CELL] == {}


def test_a_run_that_passed_the_limit_reaches_nothing():
    stopped = row("a-1", 1e-2, math.nan, math.nan, status="limit")
    rows = measure.with_suboptimality([stopped, row("b-1", 1e-2, 1.0, 0.25)])
    assert measure.time_to_target(rows, 1.0)[CELL] == {"b-1": 1.0}


def test_ours_is_compared_with_the_fastest_peer_of_at_most_as_many_threads():
    times = {CELL: {"blockgreedy-1": 2.0, "blockgreedy-2": 1.0, "a-1": 3.0, "a-2": 0.5}}
    one, two = report.compare(times, 1)[0], report.compare(times, 2)[0]
    assert (one.peer, one.ratio) == ("a-1", 1.5)
    assert (two.peer, two.ratio) == ("a-2", 0.5)


def test_losses_and_misses_are_listed():
    lost = report.compare({CELL: {"blockgreedy-1": 2.0, "a-1": 1.0}}, 1)
    assert any("lost: toy logistic 0.1: a-1" in line for line in report.verdict(lost))
    missed = report.compare({CELL: {"a-1": 1.0}}, 1)
    assert any("ours missed it: toy logistic 0.1 (a-1 1.00 s)" in line for line in report.verdict(missed))


def test_rows_survive_their_file(tmp_path):
    rows = [row("a-1", 1e-2, 1.5, 0.1 + 0.2), row("b-2", 1e-3, math.nan, math.nan, status="failed", message="a, b")]
    measure.write_rows(tmp_path / "race.csv", rows)
    read = measure.read_rows(tmp_path / "race.csv")
    assert read[0] == dataclasses.replace(
        rows[0], **{n: getattr(read[0], n) for n in ("first_seconds", "suboptimality", "gap")}
    )
    assert (read[1].status, read[1].message, read[1].threads) == ("failed", "a, b", 2)
    assert math.isnan(read[1].seconds)
    assert measure.read_rows(tmp_path / "none.csv") == []


def test_a_solver_runs_again_only_if_a_smaller_limit_stopped_it():
    rows = [row("a-1", 1e-2, 1.0, 0.3), row("b-1", 1e-2, math.nan, math.nan, status="limit", limit=10.0)]
    assert not measure.still_wanted(rows, "a-1", 60.0)
    assert measure.still_wanted(rows, "b-1", 60.0)
    assert not measure.still_wanted(rows, "b-1", 10.0)
    assert measure.still_wanted(rows, "c-1", 60.0)


def test_hopeless_is_who_passed_the_limit_with_the_loosest_tolerance_at_a_larger_ratio():
    rows = [
        row("a-1", 1e-2, math.nan, math.nan, status="limit"),
        row("b-1", 1e-2, 1.0, 0.3),
        row("b-1", 1e-3, math.nan, math.nan, status="limit"),
    ]
    assert measure.hopeless(rows, "toy", "logistic", 0.01, 60.0) == {"a-1": 0.1}
    assert measure.hopeless(rows, "toy", "logistic", 0.3, 60.0) == {}
    assert measure.hopeless(rows, "toy", "squared", 0.01, 60.0) == {}
    assert measure.hopeless(rows, "toy", "logistic", 0.01, 120.0) == {}


def test_short_fits_are_repeated():
    assert [measure.repeats_wanted(s, 5) for s in (0.01, 1.0, 20.0)] == [5, 2, 1]


def test_tolerances_go_from_loose_to_tight_by_decades():
    np.testing.assert_allclose(decades(1e-1, 1e-4), [1e-1, 1e-2, 1e-3, 1e-4])
    for peer in all_peers():
        assert all(np.diff(peer.tolerances) < 0), peer.name


def test_solver_names_are_unique_and_nothing_is_imported_for_them():
    names = [peer.name for peer in all_peers()]
    assert len(names) == len(set(names))
    assert "blockgreedy" in names


@pytest.mark.parametrize("loss", problems.LOSSES)
def test_objective_and_gap_agree_with_the_library(loss):
    rng = np.random.default_rng(0)
    X = sp.random(60, 40, 0.2, "csr", random_state=1, dtype=np.float32)
    label = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    data = problems.Data("toy", X, label, label)
    alpha = 0.1 * data.alpha_max(loss)
    problem = bg.Problem(X, label, loss=loss, alpha=alpha)
    assert data.alpha_max(loss) == pytest.approx(problem.alpha_max, rel=1e-12)
    solution = bg.solve(problem, "thread-greedy", n_blocks=8, tol=1e-9)
    assert data.objective(solution.coef, loss, alpha) == pytest.approx(solution.objective, rel=1e-13)
    gap, excess = certificate.independent_gap(data, loss, alpha, solution.coef, solution.dual)
    assert excess <= 1e-12
    assert gap == pytest.approx(solution.gap, abs=1e-14)
    assert 0 <= gap <= 1e-9 * data.f_null(loss)


def test_time_to_error_is_the_first_record_within_it():
    trace = {"objective": np.array([3.0, 1.5, 1.01, 1.0]), "seconds": np.array([0.0, 1.0, 2.0, 3.0])}
    assert certificate.seconds_to_error(trace, 1.0, 0.1) == 2.0
    assert math.isnan(certificate.seconds_to_error(trace, 0.0, 0.1))


@pytest.mark.parametrize("dense", [False, True])
def test_data_survives_the_way_to_a_worker(tmp_path, dense):
    X = sp.random(30, 20, 0.3, "csr", random_state=0, dtype=np.float32)
    y = np.where(np.arange(30) % 2, 1.0, -1.0)
    data = problems.Data("toy", X.toarray() if dense else X, y, 2 * y)
    problems.hand_over(data, tmp_path)
    back = problems.receive(tmp_path)
    assert (back.name, back.storage) == ("toy", data.storage)
    assert abs(back.X - data.X).sum() == 0
    np.testing.assert_array_equal(back.target, data.target)
    small = back.cell("logistic", 0.1).small()
    assert small.X.shape == (30, 20)
    assert set(small.y) == {-1.0, 1.0}


def test_missing_sets_are_named(monkeypatch, tmp_path):
    monkeypatch.delenv("BLOCKGREEDY_DATA", raising=False)
    assert set(problems.missing()) == set(problems.REAL)
    monkeypatch.setenv("BLOCKGREEDY_DATA", str(tmp_path))
    assert "reuters.npz" in problems.missing(("reuters", "dense-tall"))["reuters"]


def test_the_leader_has_not_arrived_until_a_lower_bound_says_so():
    assert measure.lower_bound([row("a-1", 1e-2, 1.0, 0.3)]) == -math.inf
    assert measure.lower_bound([row("a-1", 1e-2, 1.0, 0.3), row("blockgreedy-1", 1e-2, 1.0, 0.31, gap=0.05)]) == 0.26


def test_patience_is_a_multiple_of_the_fastest_to_the_last_target():
    assert measure.fastest_to_the_end([]) == math.inf
    assert measure.fastest_to_the_end([row("a-1", 1e-2, 1.0, 0.25), row("b-1", 1e-2, 0.1, 0.3)]) == 1.0


def test_from_csr_ours_is_compared_with_the_fastest_peer_that_arrived(tmp_path):
    rows = [
        from_rows.Row("toy", 0.1, 2, "blockgreedy", 1e-4, 0.01, 2e-6),
        from_rows.Row("toy", 0.1, 2, "skglm", 0.1, 0.05, 1e-6),
        from_rows.Row("toy", 0.1, 2, "liblinear", 0.1, 0.03, 1e-6),
        from_rows.Row("toy", 0.1, 2, "snapml", 0.1, math.nan, 1e-2, "passed 20 s"),
    ]
    write_table(tmp_path / "rows.csv", from_rows.Row, rows)
    text = "\n".join(from_rows.table(read_table(tmp_path / "rows.csv", from_rows.Row)))
    assert "| toy 0.1 | 2 | 10.0 | 50.0 | 30.0 | – (passed 20 s, error 1e-02) | 3.0 (liblinear) |" in text
    assert "median 3.00, worst 3.00 of 1 cells" in text
    assert from_rows.ratio_of(rows[:1]) == ("", math.inf)


class Scripted:
    """A worker that answers each tolerance as it was told to."""

    def __init__(self, peer: Peer, answers: dict[float, object]) -> None:
        self.solver, self.warmed, self.answers = Solver(peer, 1), {("logistic", "sparse")}, answers

    def ask(self, limit: float, order: str, *arguments: object) -> object:
        return self.answers[arguments[0]] if order == "fit" else None  # type: ignore[index]


def test_from_csr_a_peer_counts_at_the_first_tolerance_that_reaches_the_error(tmp_path):
    made = bg.data.text_like(200, 300, 10.0)
    y = np.asarray(made.y, dtype=np.float64)
    judge = from_rows.Judge(problems.Data("toy", sp.csr_matrix(made.X), y, y), 0.1, 1)
    peer = row_peers.PEERS[0]
    problem = bg.Problem(made.X, y, loss="logistic", alpha=judge.alpha, fit_intercept=True)
    good, null = bg.solve(problem, tol=1e-8), problem.null_model
    loose, tight = (np.zeros(300), null.intercept), (good.coef, good.intercept)
    answers = {peer.tolerances[0]: (1.0, loose, {}), peer.tolerances[1]: (2.0, tight, {})}
    found = from_rows.first_success(Scripted(peer, answers), judge, tmp_path, 20.0, 9.0)  # type: ignore[arg-type]
    assert (found.tolerance, found.seconds) == (peer.tolerances[1], 2.0)
    assert found.error <= 1e-7
    slow = from_rows.first_success(Scripted(peer, answers), judge, tmp_path, 20.0, 0.5)  # type: ignore[arg-type]
    assert math.isnan(slow.seconds)
    assert "too slow" in slow.note


def test_from_csr_our_fit_is_an_estimators_and_has_an_intercept():
    made = bg.data.text_like(200, 300, 10.0)
    y = np.asarray(made.y, dtype=np.float64)
    peer = row_peers.find_peer("blockgreedy")
    cell = peer.cell(problems.Data("toy", sp.csr_matrix(made.X), y, y), "logistic", 0.01)
    w, b = peer.answer(peer.fit(peer.prepare(cell, 1), 1e-4))
    model = bg.LogisticRegression(alpha=0.01, n_threads=1).fit(cell.X, y)
    assert np.array_equal(w, np.asarray(model.coef_, dtype=np.float64).ravel())
    assert b == model.intercept_[0]
