"""An engine of a few lines runs through solve, path, trace, Ctrl-C and report: the seam needs nothing else."""

import signal
import time
from dataclasses import replace

import numpy as np
import pytest

import blockgreedy as bg
from blockgreedy.backends.engine import Counters, EngineBase, Point
from blockgreedy.models.model import Model
from blockgreedy.reports.model_page import model_page
from blockgreedy.solvers.solve import ENGINES
from blockgreedy.solvers.working_set import WorkingSetEngine


class GradientEngine(EngineBase):
    """Proximal gradient steps in NumPy; the guard is Problem.duality_gap."""

    def __init__(self, problem, *, tol, n_threads, null, start=None, **unused):
        self.problem, self.n_iter, self.began = problem, 0, time.perf_counter()
        self.tol, self.w, self.dual_value = tol, np.zeros(problem.n_features), 0.0
        self.f_null = problem.null_model.objective
        self.enough = tol * self.f_null
        self.step_size = 1 / (problem.loss.curvature_bound * np.linalg.norm(problem.X, 2) ** 2 / problem.n_samples)

    seconds = property(lambda self: time.perf_counter() - self.began)
    objective = property(lambda self: self.problem.objective(self.w))
    gap = property(lambda self: self.problem.duality_gap(self.w))

    def start(self):
        return False

    def move_to(self, problem):
        self.problem = problem
        return False

    def step(self, n_iter, seconds):
        before, moved = self.w, self.w - self.step_size * self.problem.gradient(self.w)
        self.w = np.sign(moved) * np.maximum(np.abs(moved) - self.step_size * self.problem.alpha, 0)
        self.n_iter += 1
        return "" if np.any(self.w != before) else "stalled"

    def certify(self):
        pass

    def support(self):
        return np.flatnonzero(self.w).astype(np.int32)

    def counters(self):
        touched = self.n_iter * self.problem.X.size
        return Counters(len(self.support()), touched, touched, 1)

    def point(self, status, with_dual=True):
        features, objective, gap = self.support(), self.objective, self.gap
        loss = objective - self.problem.penalty.value(self.w)
        dual = np.zeros(self.problem.n_samples)
        return Point(features, self.w[features], 0.0, objective, loss, gap, gap <= self.enough, dual)


@pytest.fixture
def problem(rng, monkeypatch):
    X = rng.normal(size=(60, 20))
    whole = bg.Problem(X, X[:, :3] @ [1.0, -2.0, 3.0] + rng.normal(size=60), alpha=1.0)
    solved = bg.solve(whole.with_alpha(0.1 * whole.alpha_max), tol=1e-12)
    monkeypatch.setitem(ENGINES, "auto", GradientEngine)
    return whole.with_alpha(0.1 * whole.alpha_max), solved


def test_it_solves_records_and_reports(problem, tmp_path):
    problem, expected = problem
    seen = []
    solution = bg.solve(problem, tol=1e-6, trace_iters=5, callback=lambda record: seen.append(record))
    assert solution.status == "converged"
    assert solution.message.startswith("converged: relative gap")
    assert solution.objective == pytest.approx(expected.objective, rel=1e-6)
    assert [record.iteration % 5 for record in solution.trace][:-1] == [0] * (len(solution.trace) - 1)
    assert seen == list(solution.trace)
    model_page(Model.of_solution(problem, solution)).save(tmp_path / "page.html")
    assert "converged" in (tmp_path / "page.html").read_text()


def test_it_follows_a_path(problem):
    path = bg.solve_path(problem[0], n_alphas=5, eps=0.1, tol=1e-5)
    assert path.status == "converged"
    assert path.points[-1].objective == pytest.approx(problem[1].objective, rel=1e-4)
    assert np.sum(path.n_iters) == sum(point.n_iter for point in path.points) > 0


def test_limits_and_the_callback_end_it(problem):
    problem, _ = problem
    assert bg.solve(problem, tol=1e-12, max_iter=3).n_iter == 3
    assert bg.solve(problem, tol=1e-12, max_iter=3).status == "max_iter"
    assert bg.solve(problem, tol=1e-12, callback=lambda record: record.iteration >= 2).status == "interrupted"
    assert bg.solve(problem, tol=1e-12, max_seconds=1e-9).status == "max_seconds"


def test_ctrl_c_returns_the_best_so_far(problem):
    problem, _ = problem

    def press(record):
        if record.iteration == 2:
            signal.raise_signal(signal.SIGINT)

    solution = bg.solve(problem, tol=1e-12, callback=press)
    assert solution.status == "interrupted"
    assert solution.gap == pytest.approx(problem.duality_gap(solution.coef))
    path = bg.solve_path(problem, n_alphas=5, callback=lambda point: signal.raise_signal(signal.SIGINT))
    assert path.status == "interrupted"
    assert len(path) == 1


def test_a_claim_beyond_the_recomputed_gap_is_not_passed_on(problem, monkeypatch):
    """An engine that believes to have converged, while what it returns has not."""
    problem, _ = problem
    honest = GradientEngine.point
    monkeypatch.setattr(GradientEngine, "gap", property(lambda self: 0.0))
    monkeypatch.setattr(
        GradientEngine, "point", lambda self, status: replace(honest(self, status), gap=1.0, is_proven=False)
    )
    assert bg.solve(problem, tol=1e-6).status == "stalled"


def test_a_solution_is_not_changed(problem):
    solution = bg.solve(problem[0])
    with pytest.raises(AttributeError):
        solution.status = "converged"


def test_targets_of_any_size_are_solved(rng):
    """Gaps are compared where they do not underflow: those of such targets are 0 in the user's units."""
    X = rng.normal(size=(60, 20))
    y = 1e-170 * (X[:, 0] - X[:, 1])
    problem = bg.Problem(X, y, alpha=1e-173)
    assert bg.solve(problem).n_iter > 0
    assert bg.solve(problem).nonzeros >= 2
    assert bg.solve_path(problem, n_alphas=5).nonzeros[-1] >= 2


class DriftedCore:
    """The core, whose objective has drifted from its weights, and which Ctrl-C reaches when it starts again."""

    def __init__(self, core):
        self.core, self.n_starts = core, 0

    def __getattr__(self, name):
        return getattr(self.core, name)

    def start(self, *begin):
        self.n_starts += 1
        return self.core.start(*begin) or self.n_starts > 1

    def verify(self, *point):
        objective, penalty, dual_value = self.core.verify(*point)
        return 1.01 * objective, penalty, dual_value


def test_ctrl_c_while_a_run_is_renewed_is_heard(monkeypatch, rng):
    made = []

    class Drifted(WorkingSetEngine):
        def _make(self):
            super()._make()
            self.core = DriftedCore(self.core)
            made.append(self.core)

    monkeypatch.setitem(ENGINES, "auto", Drifted)
    X = rng.normal(size=(30, 5))
    problem = bg.Problem(X, X[:, 0] + rng.normal(size=30), alpha=0.1)
    assert bg.solve(problem).status == "interrupted"
    assert bg.solve_path(problem, n_alphas=3).status == "interrupted"
    assert [core.n_starts for core in made] == [2, 2]


def test_the_family_does_not_pay_for_its_partition(monkeypatch, rng):
    def slowly(*args, **options):
        time.sleep(1.0)
        return bg.make_partition(*args, **options)

    monkeypatch.setattr("blockgreedy.solvers.family_arguments.make_partition", slowly)
    X = rng.normal(size=(50, 30))
    problem = bg.Problem(X, X[:, 0] + rng.normal(size=50), alpha=1e-3)
    solution = bg.solve(problem, "thread-greedy", n_blocks=5, tol=0, max_iter=20, max_seconds=0.9)
    assert solution.n_iter == 20
    assert solution.seconds < 0.9
