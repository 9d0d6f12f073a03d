"""Runs of the default solver: repeatable to the bit, stopped in every way, with errors that name their cause."""

import signal
import time

import numpy as np
import pytest

import blockgreedy as bg
from conftest import LOSSES, press_ctrl_c_after, random_problem
from oracle import assert_never_rises


@pytest.fixture(scope="module")
def text():
    """Large enough for every parallel part to have several slices."""
    return bg.data.text_like(4000, 6000, 60.0, seed=3)


@pytest.fixture
def problem(rng):
    return random_problem(rng, "logistic", 0.01, n=200, p=300)


def long_problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2000))
    y = np.where(X[:, :50] @ rng.normal(size=50) + 3 * rng.normal(size=3000) > 0, 1.0, -1.0)
    return bg.Problem(np.asfortranarray(X), y, loss="logistic", alpha=1e-9)


def assert_same_bits(a, b):
    np.testing.assert_array_equal(a.coef, b.coef)
    np.testing.assert_array_equal(a.dual, b.dual)
    assert (a.intercept, a.gap, a.n_iter, a.status) == (b.intercept, b.gap, b.n_iter, b.status)
    np.testing.assert_array_equal(a.trace["objective"], b.trace["objective"])


@pytest.mark.threads
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("options", [{}, {"n_blocks": 5}, {"n_blocks": 1}], ids=str)
def test_results_do_not_depend_on_threads(text, loss, options):
    problem = bg.Problem(text.X, text.y, loss=loss, alpha=1e-4)
    found = [bg.solve(problem, n_threads=n, tol=1e-6, max_iter=40, **options) for n in (1, 2, 3, 2)]
    assert found[0].n_iter > 3
    assert found[0].nonzeros > 100
    for other in found[1:]:
        assert_same_bits(other, found[0])


@pytest.mark.threads
@pytest.mark.parametrize("dense", [False, True])
def test_results_with_everything_do_not_depend_on_threads(text, dense):
    X = np.asfortranarray(text.X[:, :500].toarray()) if dense else text.X
    rng = np.random.default_rng(1)
    n, p = X.shape
    extras = {
        "sample_weight": rng.integers(0, 3, size=n),
        "offset": 0.1 * rng.normal(size=n),
        "penalty_weights": np.r_[0.0, 0.0, rng.uniform(0.5, 2, size=p - 2)],
        "upper": 1.0,
        "l2": 1e-5,
        "fit_intercept": True,
    }
    problem = bg.Problem(X, text.y, loss="logistic", alpha=2e-4, **extras)
    found = [bg.solve(problem, n_threads=n, tol=1e-6) for n in (1, 2, 3)]
    assert found[0].status == "converged"
    for other in found[1:]:
        assert_same_bits(other, found[0])


def test_repeated_runs_are_equal(text):
    problem = bg.Problem(text.X, text.y, loss="logistic", alpha=1e-4)
    assert_same_bits(*(bg.solve(problem, tol=1e-6) for _ in range(2)))


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_any_number_of_blocks_reaches_the_same_optimum(text, loss):
    problem = bg.Problem(text.X, text.y, loss=loss, alpha=1e-3)
    partition = bg.make_partition(text.X, n_blocks=7, kind="clustered")
    ways = [{}, {"n_blocks": 1}, {"n_blocks": 2}, {"n_blocks": 5}, {"partition": partition}]
    found = [bg.solve(problem, tol=1e-7, **way) for way in ways]
    f_null = problem.null_model.objective
    for solution in found:
        assert solution.status == "converged"
        assert problem.duality_gap(solution.coef, dual=solution.dual) <= 1e-7 * f_null * (1 + 1e-6)
        assert abs(solution.objective - found[0].objective) <= 1e-7 * f_null
        assert_never_rises(solution)
    assert found[-1].partition is partition
    assert found[0].partition is None
    # blocks are really used: other sweeps, other last bits
    assert any(np.any(solution.coef != found[1].coef) for solution in found[3:])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("ratio", [0.3, 0.1, 0.03])
def test_the_proof_comes_soon_after_the_fact(text, loss, ratio):
    problem = bg.Problem(text.X, text.y, loss=loss, alpha=1.0)
    problem = problem.with_alpha(ratio * problem.alpha_max)
    best = bg.solve(problem, tol=1e-11)
    solution = bg.solve(problem, tol=1e-6)
    assert solution.status == "converged"
    error = (solution.trace["objective"] - (best.objective - best.gap)) / problem.null_model.objective
    assert solution.n_iter <= np.flatnonzero(error <= 1e-6)[0] + 6


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_loose_proof_beside_an_intercept_does_not_wait_for_the_end(seed):
    """Where the subproblem's dual point leaves the domain of the loss; given up, it takes 10 to 12 iterations."""
    data = bg.data.text_like(2000, 3000, 20.0, seed=seed)
    y = np.where((data.y > 0) & (np.random.default_rng(seed).random(2000) < 0.1), 1.0, -1.0)
    problem = bg.Problem(data.X, y, loss="logistic", alpha=1.0, fit_intercept=True)
    problem = problem.with_alpha(problem.alpha_max / 1000)
    solution = bg.solve(problem, tol=1e-2)
    assert solution.status == "converged"
    assert solution.n_iter <= 8
    gap = problem.duality_gap(solution.coef, solution.intercept, dual=solution.dual)
    assert gap <= 1e-2 * problem.null_model.objective * (1 + 1e-9)


@pytest.mark.parametrize("n_blocks", [1, 3, 40])
def test_blocks_on_a_small_problem(rng, n_blocks):
    problem = random_problem(rng, "squared", 0.01)
    solution = bg.solve(problem, tol=1e-9, n_blocks=n_blocks)
    assert solution.status == "converged"
    assert solution.objective == pytest.approx(bg.solve(problem, tol=1e-9).objective, rel=1e-8)


def test_max_iter_stops_exactly_there(problem):
    solution = bg.solve(problem, tol=1e-9, max_iter=2)
    assert (solution.status, solution.n_iter) == ("max_iter", 2)
    assert "max_iter=2" in solution.message
    assert "raise max_iter or tol" in solution.message
    assert problem.objective(solution.coef) == pytest.approx(solution.objective, rel=1e-13)
    checked = problem.duality_gap(solution.coef, dual=solution.dual)
    assert checked == pytest.approx(solution.gap, rel=1e-9)
    assert 0 < solution.gap < problem.null_model.objective


def test_max_seconds_stops_soon_after():
    problem = long_problem()
    began = time.perf_counter()
    solution = bg.solve(problem, tol=0, max_seconds=0.5)
    assert solution.status == "max_seconds"
    assert "raise max_seconds or tol" in solution.message
    assert time.perf_counter() - began < 2.5
    assert solution.objective < problem.null_model.objective


@pytest.mark.parametrize("n_threads", [1, 2])
def test_ctrl_c_returns_the_last_point_within_a_second(n_threads):
    problem = long_problem()
    sent = press_ctrl_c_after(0.7)
    solution = bg.solve(problem, tol=0, max_seconds=30, n_threads=n_threads)
    finished = time.perf_counter()
    assert solution.status == "interrupted"
    assert "interrupted" in solution.message
    assert finished - sent[0] < 1.0
    assert problem.objective(solution.coef) == pytest.approx(solution.objective, rel=1e-12)
    assert problem.duality_gap(solution.coef, dual=solution.dual) == pytest.approx(solution.gap, rel=1e-9)


def test_another_signal_handlers_exception_comes_through():
    class AlarmError(Exception):
        pass

    def raise_alarm(*_):
        raise AlarmError

    problem = long_problem()
    previous = signal.signal(signal.SIGALRM, raise_alarm)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(AlarmError):
            bg.solve(problem, tol=0, max_seconds=20)
    finally:
        signal.signal(signal.SIGALRM, previous)


def test_callback_sees_every_record_and_can_stop(problem):
    seen = []

    def stop_at_third(record):
        seen.append(record)
        return len(seen) == 3

    solution = bg.solve(problem, tol=1e-12, callback=stop_at_third)
    assert solution.status == "interrupted"
    assert solution.n_iter == 2
    assert [r.iteration for r in seen] == [r.iteration for r in solution.trace] == [0, 1, 2]
    assert seen[-1].objective == pytest.approx(solution.objective, rel=1e-14)


@pytest.mark.parametrize("answer", [None, False, 0, np.False_])
def test_a_callback_that_returns_nothing_does_not_stop(problem, answer):
    seen = []
    solution = bg.solve(problem, tol=1e-6, callback=lambda record: seen.append(record) or answer)
    assert solution.status == "converged"
    assert len(seen) == solution.n_iter + 1


@pytest.mark.parametrize("answer", [True, 1, np.True_])
def test_a_callback_stops_by_any_true_value(problem, answer):
    assert bg.solve(problem, tol=1e-6, callback=lambda record: answer).status == "interrupted"
    assert bg.solve(problem, "greedy", callback=lambda record: answer).status == "interrupted"
    assert bg.solve_path(problem, n_alphas=5, callback=lambda point: answer).status == "stopped"


@pytest.mark.parametrize("options", [{}, {"trace_iters": 1000}])
def test_ctrl_c_in_a_callback_returns_the_point(problem, options):
    def press(record):
        if record.iteration >= 1:
            raise KeyboardInterrupt

    solution = bg.solve(problem, tol=1e-10, callback=press, **options)
    assert solution.status == "interrupted" or options  # a record every 1000 iterations: the solve ends first
    assert problem.objective(solution.coef) == pytest.approx(solution.objective, rel=1e-13)


def test_a_callbacks_exception_comes_through(problem):
    with pytest.raises(ZeroDivisionError):
        bg.solve(problem, callback=lambda record: 1 / record.iteration)


def test_the_trace_tells_the_run(problem):
    trace = bg.solve(problem, tol=1e-8).trace
    solution = bg.solve(problem, tol=1e-8)
    assert trace["objective"][0] == pytest.approx(problem.objective(np.zeros(300)), rel=1e-14)
    assert trace["objective"][-1] == pytest.approx(solution.objective, rel=1e-14)  # recomputed at the end
    assert trace["nonzeros"][-1] == solution.nonzeros
    assert np.all(np.diff(trace["seconds"]) >= 0)
    assert np.all(np.diff(trace["nonzeros_touched"]) > 0)
    assert trace["gap"][-1] <= 1e-8 * problem.null_model.objective < trace["gap"][0]
    assert set(solution.phase_seconds) >= {"gradients", "sweeps", "certificate"}
    assert sum(solution.phase_seconds.values()) <= solution.seconds + solution.check_seconds


def test_records_follow_the_asked_iterations(problem):
    solution = bg.solve(problem, tol=1e-10, trace_iters=3, max_iter=7)
    assert solution.n_iter == 7
    assert list(solution.trace["iteration"]) == [0, 3, 6, 7]


def test_records_follow_the_asked_seconds():
    trace = bg.solve(long_problem(), tol=0, max_seconds=0.8, trace_seconds=0.2).trace
    assert len(trace) >= 3
    assert np.all(np.diff(trace["seconds"])[:-1] >= 0.2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"update": "add"}, "update='add' is not for method='auto', the default"),
        ({"per_block": 1}, "per_block=1 is not for method='auto', the default"),
        ({"blocks_per_iter": None}, "blocks_per_iter=None is not for method='auto'"),
        ({"on_divergence": "stop"}, "it needs one of the paper's methods, such as method='thread-greedy'"),
        ({"n_blocks": 0}, "n_blocks=0 must be a whole number from 1"),
        ({"n_blocks": 2.5}, "n_blocks=2.5 must be"),
        ({"n_blocks": 10**6}, "n_blocks=1000000 must be a whole number from 1 to"),
        ({"partition": "random"}, "partition='random' with method='auto' must be a Partition"),
        ({"partition": np.zeros(300)}, "with method='auto' must be a Partition"),
        ({"tol": -1}, "tol=-1 must be"),
        ({"tol": float("nan")}, "tol=nan must be"),
        ({"max_iter": 0}, "max_iter=0 must be"),
        ({"max_seconds": 0}, "max_seconds=0 must be above 0"),
        ({"trace_iters": 0}, "trace_iters=0 must be"),
        ({"trace_seconds": -1}, "trace_seconds=-1 must be above 0"),
        ({"n_threads": 0}, "n_threads=0 must be"),
        ({"coef_init": np.zeros(3)}, r"coef_init has shape \(3,\), expected \(300,\)"),
        ({"coef_init": np.full(300, np.inf)}, "coef_init must be finite"),
        ({"coef_init": np.zeros(300), "intercept_init": "a"}, "intercept_init='a' must be a number"),
        ({"coef_init": np.zeros(300), "intercept_init": np.nan}, "intercept_init"),
        ({"coef_init": np.zeros(300), "intercept_init": 1.0}, "intercept"),
        ({"intercept_init": 1.0}, "intercept_init"),
        ({"seed": -1}, "seed=-1 must be"),
        ({"method": "newton"}, "method='newton' is not known; use one of 'auto'"),
    ],
)
def test_bad_options_are_named(problem, options, message):
    with pytest.raises(ValueError, match=message):
        bg.solve(problem, **options)


def test_unknown_options_are_named(problem):
    for method in ("auto", "thread-greedy"):
        with pytest.raises(TypeError, match=r"solve\(\) has no argument step_size"):
            bg.solve(problem, method, step_size=1)


def test_a_start_outside_the_box_is_refused(rng):
    problem = random_problem(rng, "squared", 0.1, positive=True)
    with pytest.raises(ValueError, match="inside lower ≤ w ≤ upper"):
        bg.solve(problem, coef_init=np.full(40, -1.0))


@pytest.mark.parametrize(("loss", "ratio"), [("squared_hinge", 0.01), ("huber", 1e-3), ("squared", 0.01)])
def test_loose_tolerances_take_no_more_iterations_than_tight_ones(loss, ratio):
    data = bg.data.text_like(400, 800, 20.0, seed=2)
    problem = bg.Problem(data.X, data.y.astype(float), loss=loss, alpha=0.0, fit_intercept=True)
    problem = problem.with_alpha(ratio * problem.alpha_max)
    counts = [bg.solve(problem, tol=tol).n_iter for tol in (0.05, 1e-2, 1e-3, 1e-4, 1e-5)]
    assert max(counts[:-1]) <= 1.3 * counts[-1] + 3, counts
