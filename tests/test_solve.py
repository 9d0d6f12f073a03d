"""solve: presets, statuses, limits, callbacks, errors."""

import signal
import time

import numpy as np
import pytest

import blockgreedy as bg
from blockgreedy.backends.cpu import block_greedy
from blockgreedy.problem.core_problem import CoreProblem
from blockgreedy.solvers.options import FamilyOptions
from conftest import press_ctrl_c_after, random_design, random_problem


@pytest.fixture
def problem(rng):
    return random_problem(rng, "logistic", 0.05)


def test_presets_are_settings_of_one_algorithm(problem):
    p = problem.n_features
    pairs = {
        "scd": {"n_blocks": p, "blocks_per_iter": 1, "partition": "contiguous"},
        "shotgun": {"n_blocks": p, "blocks_per_iter": 8, "partition": "contiguous"},
        "greedy": {"n_blocks": 1, "blocks_per_iter": 1},
        "thread-greedy": {"n_blocks": 32, "blocks_per_iter": 32},
    }
    for name, settings in pairs.items():
        one = bg.solve(problem, name, max_iter=100)
        two = bg.solve(problem, "block-greedy", max_iter=100, **settings)
        np.testing.assert_array_equal(one.coef, two.coef)


def test_seed_decides_the_run(problem):
    first, again, other = (bg.solve(problem, "scd", seed=s, max_iter=200, tol=0).coef for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)


def test_max_iter_stops_exactly_there(problem):
    solution = bg.solve(problem, "scd", tol=0, max_iter=137)
    assert (solution.status, solution.n_iter) == ("max_iter", 137)
    assert "max_iter=137" in solution.message
    assert "raise max_iter or tol" in solution.message


def test_max_seconds_stops_soon_after():
    data = bg.data.text_like(4000, 6000, 60.0, seed=2)
    problem = bg.Problem(data.X, data.y, loss="logistic", alpha=1e-7)
    began = time.perf_counter()
    solution = bg.solve(problem, "thread-greedy", tol=0, max_seconds=0.5)
    assert solution.status == "max_seconds"
    assert time.perf_counter() - began < 2.5


@pytest.mark.parametrize("method", ["auto", "thread-greedy"])
def test_looser_tolerance_stops_earlier(problem, method):
    loose, tight = (bg.solve(problem, method, tol=tol) for tol in (1e-2, 1e-8))
    assert loose.n_iter < tight.n_iter
    for tol, solution in ((1e-2, loose), (1e-8, tight)):
        assert solution.status == "converged"
        assert solution.gap <= tol * problem.null_model.objective


@pytest.mark.parametrize("method", ["auto", "thread-greedy"])
def test_warm_start_at_the_solution_needs_no_iteration(problem, method):
    solution = bg.solve(problem, method, tol=1e-8)
    again = bg.solve(problem, method, tol=1e-7, coef_init=solution.coef)
    assert again.n_iter == 0
    np.testing.assert_array_equal(again.coef, solution.coef)


def test_callback_sees_every_record_and_can_stop(problem):
    seen = []

    def stop_at_third(record):
        seen.append(record)
        return len(seen) == 3

    solution = bg.solve(problem, "thread-greedy", tol=0, callback=stop_at_third)
    assert solution.status == "interrupted"
    assert [r.iteration for r in seen] == [r.iteration for r in solution.trace] == [0, 10, 20]


def test_returned_objective_is_that_of_the_returned_weights(problem):
    for method in ("auto", "scd", "greedy", "thread-greedy"):
        solution = bg.solve(problem, method, max_iter=500, tol=1e-6)
        assert solution.objective == pytest.approx(problem.objective(solution.coef), rel=1e-13)
        assert solution.objective == min(solution.objective, *solution.trace["objective"] * (1 + 1e-13))


@pytest.mark.parametrize("method", ["auto", "thread-greedy"])
def test_zeros_are_exact_and_the_box_is_kept(rng, method):
    problem = random_problem(rng, "squared", 0.3, lower=-0.05, upper=0.1)
    coef = bg.solve(problem, method, tol=1e-9).coef
    assert np.sum(coef == 0) > 10
    assert np.all((coef >= -0.05) & (coef <= 0.1))
    assert np.any(coef == 0.1) or np.any(coef == -0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "cd"}, "method='cd' is not known; use one of 'auto', 'block-greedy', 'scd'"),
        ({"n_blocks": 0}, "n_blocks=0 must be a whole number from 1 to 40"),
        ({"n_blocks": 41}, "n_blocks=41 must be a whole number from 1 to 40"),
        ({"n_blocks": 2.5}, "n_blocks=2.5 must be"),
        (
            {"method": "block-greedy", "n_blocks": 4, "blocks_per_iter": 5},
            "blocks_per_iter=5 must be a whole number from 1 to 4",
        ),
        ({"method": "scd", "n_blocks": 4}, "method='scd' needs n_blocks=40, got n_blocks=4"),
        (
            {"method": "thread-greedy", "blocks_per_iter": 2},
            "method='thread-greedy' needs blocks_per_iter=32, got blocks_per_iter=2",
        ),
        ({"per_block": 0}, "per_block=0 must be"),
        ({"update": "jacobi"}, "update='jacobi' is not known; use one of 'add', 'line-search', 'sweep', 'joint'"),
        ({"greedy_rule": "best"}, "greedy_rule='best' is not known"),
        ({"scan": "rows"}, "scan='rows' is not known"),
        ({"atomic": True}, "atomic=True needs update='add' or 'line-search', not 'joint'"),
        ({"tol": -1}, "tol=-1 must be"),
        ({"tol": float("nan")}, "tol=nan must be"),
        ({"max_iter": 0}, "max_iter=0 must be"),
        ({"max_seconds": 0}, "max_seconds=0 must be above 0"),
        ({"n_threads": 0}, "n_threads=0 must be"),
        ({"seed": -1}, "seed=-1 must be"),
        ({"on_divergence": "raise"}, "on_divergence='raise' is not known"),
        ({"partition": "metis"}, "partition='metis' is not known; use a Partition or one of 'random', 'contiguous'"),
        ({"coef_init": np.zeros(3)}, r"coef_init has shape \(3,\), expected \(40,\)"),
        ({"coef_init": np.full(40, np.nan)}, "coef_init must be finite"),
        ({"inner_tol": 0.0}, r"inner_tol=0.0 must be above 0"),
        ({"inner_tol": "x"}, "inner_tol='x' must be a number"),
        ({"partition": np.zeros(40, dtype=int)}, "is not known; use a Partition or one of"),
        ({"partition": 3}, "partition=3 is not known; use a Partition"),
        ({"seed": 2**64}, "seed=18446744073709551616 must be a whole number from 0 to"),
        ({"tol": "a"}, "tol='a' must be a number"),
        ({"max_seconds": "soon"}, "max_seconds='soon' must be a number"),
        ({"max_sweeps": 0}, "max_sweeps=0 must be"),
        ({"max_sweeps": 3, "update": "add"}, "max_sweeps=3 needs update='joint' or 'sweep', not 'add'"),
        ({"max_sweeps": 3, "update": "line-search"}, "max_sweeps=3 needs update='joint' or 'sweep', not 'line-"),
        ({"update": "add", "atomic": 1}, "atomic=1 must be True or False"),
    ],
)
def test_bad_options_are_named(problem, options, message):
    with pytest.raises(ValueError, match=message):
        bg.solve(problem, **{"method": "thread-greedy", **options})


def test_only_a_problem_can_be_solved(rng):
    with pytest.raises(TypeError, match=r"problem must be a blockgreedy.Problem, got csc_array"):
        bg.solve(random_design(rng))


def test_accepting_more_than_a_block_holds_accepts_all_of_it(problem):
    all_of_it = bg.solve(problem, "thread-greedy", n_blocks=4, per_block=10**12, tol=1e-8)
    assert all_of_it.status == "converged"


def test_a_solver_whose_weights_were_released_says_so(problem):
    partition = bg.make_partition(problem.X, n_blocks=4)
    engine = block_greedy(CoreProblem(problem, 1), partition, FamilyOptions(4, 4))
    engine.release_weights()
    for use in (lambda: engine.run(1, 1.0), lambda: engine.coef, engine.objective, lambda: engine.update_with([0])):
        with pytest.raises(RuntimeError, match="weights of this solver were released"):
            use()


@pytest.mark.parametrize("method", ["auto", "thread-greedy"])
def test_partition_of_another_matrix_is_refused(problem, rng, method):
    other = bg.make_partition(random_design(rng, 10, 12), n_blocks=3)
    with pytest.raises(ValueError, match="partition is of 12 features, X has 40"):
        bg.solve(problem, method, partition=other)
    mine = bg.make_partition(problem.X, n_blocks=3)
    with pytest.raises(ValueError, match="n_blocks=4 does not match the partition, which has 3 blocks"):
        bg.solve(problem, method, partition=mine, n_blocks=4)


def test_check_interval_gives_every_block_ten_chances():
    assert FamilyOptions(32, 32).check_every == 10
    assert FamilyOptions(100, 30).check_every == 40


def long_problem():
    data = bg.data.text_like(4000, 6000, 60.0, seed=2)
    return bg.Problem(data.X, data.y, loss="logistic", alpha=1e-8)


@pytest.mark.parametrize("method", ["thread-greedy", "scd"])
def test_ctrl_c_returns_the_best_iterate_within_a_second(method):
    problem = long_problem()
    sent = press_ctrl_c_after(0.4)
    solution = bg.solve(problem, method, tol=0, max_seconds=20)
    finished = time.perf_counter()
    assert solution.status == "interrupted"
    assert finished - sent[0] < 1.0
    assert solution.n_iter > 0
    assert solution.objective < problem.null_model.objective
    assert problem.objective(solution.coef) == pytest.approx(solution.objective, rel=1e-12)
    assert solution.objective == pytest.approx(solution.trace["objective"][-1], rel=1e-9)


def test_another_signal_handlers_exception_comes_through():
    class AlarmError(Exception):
        pass

    def raise_alarm(*_):
        raise AlarmError

    previous = signal.signal(signal.SIGALRM, raise_alarm)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(AlarmError):
            bg.solve(long_problem(), "thread-greedy", tol=0, max_seconds=20)
    finally:
        signal.signal(signal.SIGALRM, previous)


def test_a_gap_of_rounding_is_said_to_be_enough(rng):
    """tol has a floor, and a message that names a gap above tol says so."""
    said = []
    for _ in range(12):
        X = rng.normal(size=(300, 40))
        problem = bg.Problem(X, X[:, :5].sum(axis=1) + rng.normal(size=300), alpha=0.05)
        solution = bg.solve(problem, tol=1e-14)
        assert solution.status == "converged"
        is_above = solution.gap > 1e-14 * problem.null_model.objective
        rounding = "1e-13 of what the intercept leaves to explain is rounding, and enough for any tol"
        assert is_above == (rounding in solution.message)
        said.append(is_above)
    assert any(said)
