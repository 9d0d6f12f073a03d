"""Time that is up is heard in every loop, and nothing that would only improve the result runs after it."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import blockgreedy as bg
from blockgreedy import _core
from blockgreedy.backends.tiles.communicator import Alone
from blockgreedy.backends.tiles.threads import run_in_threads
from blockgreedy.base import deadline as clock_of_runs
from blockgreedy.base.deadline import NEVER, Deadline
from blockgreedy.estimators import LogisticRegression, fitting
from blockgreedy.problem import dual_repair, null_model
from blockgreedy.problem.core_problem import CoreProblem
from blockgreedy.solvers import polish
from blockgreedy.solvers.unpenalised import fit_unpenalised

FIXTURES = Path(__file__).parent / "fixtures"
LOSSES = ["squared", "logistic", "squared_hinge", "huber"]


class Clock:
    """Stands still until it jumps far beyond every deadline."""

    def __init__(self, monkeypatch):
        self.time = 0.0
        monkeypatch.setattr(clock_of_runs, "now", lambda: self.time)

    def jump(self, *_):
        self.time += 1e6


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


@pytest.fixture
def counted(monkeypatch):
    """How often the systems of repairs and of polishing were solved."""
    calls = {"repairs": 0, "polish": 0}
    solve, newton = dual_repair._System.solve, polish._Search._newton

    def repair(*arguments):
        calls["repairs"] += 1
        return solve(*arguments)

    def step(*arguments):
        calls["polish"] += 1
        return newton(*arguments)

    monkeypatch.setattr(dual_repair._System, "solve", repair)
    monkeypatch.setattr(polish._Search, "_newton", step)
    return calls


def drifting(loss, n=3000, p=20, seed=1, **options):
    """Columns that are random walks: correlated, so that proofs come late."""
    rng = np.random.default_rng(seed)
    X = np.cumsum(rng.normal(size=(n, p)), axis=0)
    y = X @ (rng.normal(size=p) * (rng.random(p) < 0.3)) + rng.normal(size=n)
    y = np.sign(y) if loss in ("logistic", "squared_hinge") else 1e6 * np.sign(y) + rng.normal(size=n)
    return bg.Problem(X, y, loss=loss, **{"alpha": 1e-5} | options)


@pytest.mark.parametrize("number", [1, 2])
def test_polishing_ends_where_sweeps_report_decreases_of_rounding_for_ever(number):
    found = np.load(FIXTURES / f"decreases_of_rounding_{number}.npz")
    more = {"l2": float(found["l2"]), "standardize": True, "penalty_weights": found["pw"]} if number == 1 else {}
    weights = found["sw"] if number == 1 else found["w"]
    problem = bg.Problem(
        found["X"], found["y"], alpha=float(found["alpha"]), sample_weight=weights, fit_intercept=number == 2, **more
    )
    solution = bg.solve(problem, tol=0.01 if number == 1 else 1e-6)
    assert solution.n_iter < 100
    assert solution.objective <= problem.null_model.objective


def test_time_is_counted_from_where_the_work_began(clock):
    deadline = Deadline(2.0, began=-1.5)
    assert deadline.seconds_left() == 0.5
    assert deadline.has_time_for(1e6)
    assert not deadline.has_time_for(1e12)
    clock.time = 0.5
    assert deadline.has_passed()
    assert not NEVER.has_passed()
    assert NEVER.has_time_for(1e300)
    assert NEVER.for_the_end() is NEVER


@pytest.mark.parametrize("allowed", [1e-9, 0.05, 1.0, 3600.0])
def test_the_end_of_a_run_is_allowed_less_than_twice_its_time_and_half_a_second(clock, allowed):
    end = Deadline(allowed).for_the_end()
    assert allowed < end.seconds_left() < 2 * allowed + 0.5
    clock.time = 5000.0  # late already
    assert 0 < Deadline(allowed, 0.0).for_the_end().seconds_left() < allowed + 0.5


@pytest.mark.parametrize("loss", LOSSES)
def test_nothing_is_repaired_or_polished_after_time_is_up(clock, counted, loss):
    problem = drifting(loss, standardize=loss == "huber", fit_intercept=loss == "squared")
    seen = []

    def watch(record):
        seen.append(record.iteration)
        if len(seen) == 2:
            clock.jump()

    solution = bg.solve(problem, tol=1e-14, max_seconds=1.0, callback=watch)
    assert solution.status == "max_seconds"
    assert len(seen) == 2
    assert counted == {"repairs": 0, "polish": 0}
    best = bg.solve(problem, tol=1e-6)
    assert solution.objective - solution.gap <= best.objective
    assert problem.duality_gap(solution.coef, solution.intercept, solution.dual) == pytest.approx(
        solution.gap, rel=1e-6, abs=1e-9 * problem.null_model.objective
    )


def test_a_step_that_is_late_still_lowers_the_objective_and_ends_soon():
    problem = drifting("logistic")
    core = _core.WorkingSet(CoreProblem(problem, 1).core, 0, None, 1e-10, -1.0, 0.0, np.inf)
    w = np.zeros(problem.n_features)
    core.start(w, 0.0)
    before, touched = core.objective, core.nonzeros_touched
    assert core.step(0.0) == (True, False)
    assert core.objective < before
    # the first sweep reads and adds each column once, all else is a few passes at most
    assert core.nonzeros_touched - touched <= 6 * problem.X.size
    assert core.n_cg == 0


def test_time_that_is_up_is_no_stall(clock):
    problem = drifting("huber", fit_intercept=True)
    problem.fit_null_model()
    solution = bg.solve(
        problem, max_seconds=1.0, tol=1e-14, callback=lambda record: record.iteration >= 1 and clock.jump()
    )
    assert solution.status == "max_seconds"
    assert "max_seconds" in solution.message


def test_max_iter_returns_without_repairs(counted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 600))
    y = np.sign(X[:, :30] @ rng.normal(size=30) + rng.normal(size=300))
    problem = bg.Problem(X, y, loss="logistic", alpha=1 / (100 * 300), fit_intercept=True)
    solution = bg.solve(problem, max_iter=1)
    assert (solution.status, solution.n_iter) == ("max_iter", 1)
    assert counted == {"repairs": 0, "polish": 0}
    whole = bg.solve(problem)
    assert solution.trace.records[-1].nonzeros_touched <= whole.trace.records[-1].nonzeros_touched
    assert solution.objective - solution.gap <= whole.objective


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_projections_onto_thousands_of_equalities_end_with_the_time(loss, fit_intercept):
    """Without penalty every column is an equality of the dual: 50 rounds of projections are a hundred passes."""
    rng = np.random.default_rng(0)
    X = sp.random(4000, 1000, density=0.02, random_state=0, format="csc")
    y = X @ rng.normal(size=1000) + 0.1 * rng.normal(size=4000)
    y = np.sign(y) if loss in ("logistic", "squared_hinge") else y
    problem = bg.Problem(X, y, loss=loss, alpha=0.0, fit_intercept=fit_intercept)
    core = _core.WorkingSet(CoreProblem(problem, 1).core, 0, None, 1e-12, -1.0, 0.0, np.inf)
    core.start(np.zeros(1000), 0.0, 0.0)
    core.certify(False, 0.0)
    assert core.dual_value == 0.0  # that of θ = 0: projections were not begun
    solution = bg.solve(problem, max_seconds=0.2, tol=1e-12)
    assert solution.seconds + solution.check_seconds < 2.5


def test_the_null_model_hears_the_deadline(clock, monkeypatch):
    rng = np.random.default_rng(3)
    problem = bg.Problem(
        rng.normal(size=(200, 5)), rng.standard_cauchy(200), loss="huber", alpha=0.1, fit_intercept=True
    )
    steps = []
    deriv = type(problem.loss).deriv

    def late(loss, y, t):
        steps.append(1)
        clock.jump()
        return deriv(loss, y, t)

    monkeypatch.setattr(type(problem.loss), "deriv", late)
    null = problem.fit_null_model(Deadline(1.0))
    assert null.status == "max_seconds"
    assert len(steps) == 2  # one of the search, one for the dual point
    assert "null_model" not in problem.__dict__
    assert null_model.null_so_far(problem) is null
    monkeypatch.undo()
    assert problem.null_model.status == "converged"


def test_unpenalised_weights_are_not_polished_after_time_is_up(clock, counted):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(100, 5))
    problem = bg.Problem(X, X @ np.ones(5) + rng.normal(size=100), alpha=0.0, fit_intercept=True)
    clock.jump()
    _, _, status = fit_unpenalised(problem, 0.0, float(np.mean(problem.y**2)) / 2, Deadline(1.0, 0.0), 1)
    assert status == "max_seconds"
    assert counted["polish"] == 0


def test_a_path_without_time_for_its_null_model_has_one_point(clock, monkeypatch):
    problem = drifting("huber", fit_intercept=True)
    root = null_model._root
    monkeypatch.setattr(null_model, "_root", lambda *search: clock.jump() or root(*search))
    path = bg.solve_path(problem, n_alphas=5, max_seconds=1.0)
    assert path.status == "max_seconds"
    assert len(path.points) == 1
    assert path.points[0].status in ("max_seconds", "converged")  # a quick look may prove it


def test_max_seconds_of_an_estimator_is_of_all_its_classes_together(clock, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 6)), rng.integers(0, 4, 200)
    given, solve = [], fitting.solve

    def watch(*arguments, **options):
        given.append(options["max_seconds"])
        found = solve(*arguments, **options)
        clock.time += 0.75
        return found

    monkeypatch.setattr(fitting, "solve", watch)
    LogisticRegression(max_seconds=2.0).fit(X, y)
    assert given[:3] == [2.0, 1.25, 0.5]
    assert 0 < given[3] < 1e-6


@pytest.mark.parametrize("update", ["joint", "sweep", "line-search"])
@pytest.mark.parametrize("loss", LOSSES)
def test_an_iteration_of_the_family_ends_with_the_time(loss, update):
    """Many sweeps of many columns are one iteration."""
    problem = drifting(loss, n=2000, p=200, fit_intercept=True)
    began = clock_of_runs.now()
    solution = (
        bg.solve(
            problem,
            "greedy",
            update=update,
            per_block=200,
            max_sweeps=10**6,
            inner_tol=1e-300,
            tol=1e-12,
            max_seconds=0.1,
        )
        if update == "sweep"
        else bg.solve(problem, "thread-greedy", update=update, n_blocks=100, tol=1e-12, max_seconds=0.1)
    )
    assert clock_of_runs.now() - began < 2.5
    assert np.isfinite(solution.objective)


@pytest.mark.parametrize("place", ["here", "tiles", "ranks", "path", "family", "estimator"])
@pytest.mark.parametrize("loss", LOSSES)
def test_twentieths_of_a_second_are_kept(loss, place):
    problem = drifting(loss, n=20_000, p=30, fit_intercept=True)
    began = clock_of_runs.now()
    if place == "path":
        found = bg.solve_path(problem, n_alphas=50, eps=1e-6, tol=1e-10, max_seconds=0.05)
    elif place == "family":
        found = bg.solve(problem, "shotgun", tol=1e-10, max_seconds=0.05)
    elif place == "tiles":
        found = bg.solve(problem, tol=1e-12, max_seconds=0.05, cluster=Alone())
    elif place == "ranks":
        same = run_in_threads(
            4, lambda ranks: bg.solve(problem, tol=1e-12, max_seconds=0.05, cluster=ranks, grid=(2, 2))
        )
        assert len({(s.coef.tobytes(), s.objective, s.gap, s.status) for s in same}) == 1
        found = same[0]
    elif place == "estimator":
        if not problem.loss.is_classifier:
            pytest.skip("the estimators' classifier stands for all")
        model = LogisticRegression(C=1e6, tol=1e-12, max_seconds=0.05)
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            model.fit(problem.X, problem.y)
        assert model.status_ in ("max_seconds", "converged", "stalled")
        return
    else:
        found = bg.solve(problem, tol=1e-12, max_seconds=0.05)
    assert clock_of_runs.now() - began < 3.0  # 2 × 0.05 s + 0.5 s on a machine that is not busy
    assert found.status in ("max_seconds", "converged", "stalled")
