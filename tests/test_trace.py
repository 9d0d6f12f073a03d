import numpy as np
import pytest

import blockgreedy as bg
from blockgreedy.solvers.trace import COLUMNS, Trace
from conftest import random_problem


def test_csv_round_trip_is_exact(rng, tmp_path):
    trace = bg.solve(random_problem(rng), "thread-greedy", tol=1e-8, trace_iters=7).trace
    trace.to_csv(tmp_path / "t.csv")
    again = Trace.from_csv(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().splitlines()[0] == ",".join(COLUMNS)
    for name in COLUMNS:
        np.testing.assert_array_equal(trace[name], again[name])


def test_a_file_that_is_no_trace_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="is not a trace: its first line must be iteration,seconds"):
        Trace.from_csv(tmp_path / "x.csv")


def test_unknown_column_is_refused():
    with pytest.raises(KeyError, match="'loss' is not a column"):
        Trace()["loss"]


def test_records_follow_the_asked_iterations(rng):
    problem = random_problem(rng, "logistic", 0.01)
    trace = bg.solve(problem, "thread-greedy", tol=0, max_iter=40, n_blocks=8, trace_iters=7).trace
    assert list(trace["iteration"]) == [0, 7, 14, 21, 28, 35, 40]
    objective = [problem.objective(w) for w in [np.zeros(40)]]
    assert trace["objective"][0] == pytest.approx(objective[0], rel=1e-14)
    assert np.all(np.diff(trace["objective"]) <= 0)


def test_counters_follow_the_blocks(rng):
    problem = random_problem(rng, "logistic", 0.01, p=40)
    partition = bg.make_partition(problem.X, n_blocks=8, kind="random", seed=3)
    loads = partition.nonzeros(problem.X)
    trace = bg.solve(problem, "thread-greedy", partition=partition, tol=0, max_iter=20, trace_iters=10).trace
    assert list(trace["nonzeros_touched"]) == [0, 10 * problem.X.nnz, 20 * problem.X.nnz]
    assert list(trace["critical_nonzeros"]) == [0, 10 * loads.max(), 20 * loads.max()]
    coef = bg.solve(problem, "thread-greedy", partition=partition, tol=0, max_iter=20).coef
    assert trace["active_blocks"][-1] == len(set(partition.block_of[np.flatnonzero(coef)]))
    assert trace["nonzeros"][-1] == np.count_nonzero(coef)


def test_counters_of_random_selections_are_those_of_the_selected_blocks(rng):
    from blockgreedy.base.random import Random

    problem = random_problem(rng, "logistic", 0.01, p=40)
    partition = bg.make_partition(problem.X, n_blocks=8, kind="random", seed=3)
    loads = partition.nonzeros(problem.X)
    trace = bg.solve(
        problem, "block-greedy", partition=partition, blocks_per_iter=3, seed=9, tol=0, max_iter=25
    ).trace
    random = Random(9)
    drawn = [loads[random.draw_subset(8, 3)] for _ in range(25)]
    assert trace["nonzeros_touched"][-1] == sum(d.sum() for d in drawn)
    assert trace["critical_nonzeros"][-1] == sum(d.max() for d in drawn)


def test_records_follow_the_asked_seconds():
    data = bg.data.text_like(2000, 3000, 40.0, seed=1)
    problem = bg.Problem(data.X, data.y, loss="logistic", alpha=1e-6)
    trace = bg.solve(problem, "thread-greedy", tol=0, max_seconds=1.0, trace_seconds=0.2).trace
    steps = np.diff(trace["seconds"])
    assert len(trace) >= 3
    assert np.all(steps[:-1] >= 0.19)
