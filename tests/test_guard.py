"""What a result says of itself is what its weights and its dual point say."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.backends.cpu import working_set
from blockgreedy.estimators.fitting import Outcome
from blockgreedy.problem.certificate import NumpyPasses, scaled_dual_point
from blockgreedy.problem.core_problem import CoreProblem
from blockgreedy.problem.rounding import round_weights
from blockgreedy.solvers.guard import guard
from conftest import LOSSES, random_problem


def test_a_weight_on_an_empty_column_does_not_stay(rng):
    X = rng.normal(size=(50, 3))
    X[:, 2] = 0.0
    y = X[:, 0] + 0.1 * rng.normal(size=50)
    for form in (np.asfortranarray, sp.csc_array):
        problem = bg.Problem(form(X), y, alpha=0.1)
        solution = bg.solve(problem, coef_init=np.array([0.0, 0.0, 5.0]), tol=1e-8)
        np.testing.assert_allclose(solution.coef, bg.solve(problem, tol=1e-8).coef, rtol=1e-6)
        assert problem.objective(solution.coef) == pytest.approx(solution.objective, rel=1e-13)
    before = X.copy()
    before[:, 2] = y + 0.01 * rng.normal(size=50)
    model = bg.Lasso(alpha=0.1, warm_start=True, fit_intercept=False).fit(before, y)
    assert model.fit(X, y).coef_[2] == 0


@pytest.mark.parametrize("unit", [1e3, 1e6, 1e8])
def test_objectives_do_not_drift_on_the_way_from_a_far_start(rng, unit):
    X = rng.normal(size=(60, 3))
    X[:, 2] *= unit
    problem = bg.Problem(X, X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=60), alpha=0.01)
    solution = bg.solve(problem, coef_init=np.full(3, 100.0), tol=1e-6)
    assert solution.status == "converged"
    assert problem.objective(solution.coef) == pytest.approx(solution.objective, rel=1e-13)
    assert solution.objective == pytest.approx(bg.solve(problem, tol=1e-10).objective, rel=1e-5)


def test_weights_rounded_to_float32_have_the_gap_that_they_have(rng):
    X = np.column_stack([rng.integers(1950, 2024, 300), rng.normal(size=300)]).astype(np.float32)
    y = 1e5 + 300.0 * (X[:, 0] - 2000) + 5 * X[:, 1] + rng.normal(size=300)
    model = bg.Lasso(alpha=1e-3).fit(X, y)
    assert model.coef_.dtype == np.float32
    problem = bg.Problem(X, y, alpha=1e-3, fit_intercept=True)
    least = bg.solve(problem, tol=1e-12).objective
    error = problem.objective(model.coef_.astype(float), float(model.intercept_)) - least
    assert error <= model.dual_gap_ <= error + 1e-6 * problem.null_model.objective
    assert error <= 1e-9 * problem.null_model.objective  # the intercept makes up for most of it


def test_weights_that_rounding_would_spoil_stay_in_float64(rng):
    """A total beside its parts, in float32: weights of thousands that cancel."""
    a, b = rng.normal(20, 8, size=195), rng.lognormal(11, 1.5, size=195)
    X = np.column_stack([a, b, a + 3 * b]).astype(np.float32)
    y = 1e4 * (X[:, 0].astype(float) + 3.0 * X[:, 1] - X[:, 2])
    model = bg.Lasso(alpha=1e-3).fit(X, y)
    assert (model.status_, model.coef_.dtype) == ("converged", np.float64)
    problem = bg.Problem(X, y, alpha=1e-3, fit_intercept=True)
    assert problem.objective(model.coef_, model.intercept_) - model.dual_gap_ <= bg.solve(problem, tol=1e-9).objective
    assert model.dual_gap_ <= 1e-4 * problem.null_model.objective
    rounded = model.coef_.astype(np.float32).astype(float)
    error = problem.objective(rounded, problem.best_intercept(rounded)) - problem.objective(
        model.coef_, model.intercept_
    )
    assert error > 1e-4 * problem.null_model.objective  # or the case shows nothing


def test_rounding_never_takes_a_converged_fit_beyond_its_tol(rng):
    """A gap just below tol that rounding to float32 would lift above it."""
    a, b = rng.normal(20, 8, size=195), rng.lognormal(11, 1.5, size=195)
    X = np.column_stack([a, b, a + 3 * b]).astype(np.float32)
    y = 1e4 * (X[:, 0].astype(float) + 3.0 * X[:, 1] - X[:, 2])
    problem = bg.Problem(X, y, alpha=1e-3, fit_intercept=True)
    solution = bg.solve(problem, tol=1e-8)
    outcome = Outcome([problem], [""], [solution], False)
    outcome.round_to(np.dtype(np.float32), 1e9)
    lost = outcome.solutions[0].gap - solution.gap
    assert lost > 0
    exact = Outcome([problem], [""], [replace(solution, gap=10 * lost, status="converged")], False)
    tol = 10.5 * lost / problem.null_model.objective  # rounded, the gap would be 11 times what is lost
    assert exact.round_to(np.dtype(np.float32), tol) == np.float64
    assert exact.solutions[0].gap <= tol * problem.null_model.objective


@pytest.mark.parametrize("loss", ["logistic", "squared", "huber", "squared_hinge"])
@pytest.mark.parametrize("is_sparse", [True, False])
def test_rounded_weights_have_their_best_intercept_and_cost_what_is_said(rng, loss, is_sparse):
    data = bg.data.text_like(400, 300, 20.0)
    X = data.X.astype(np.float32) if is_sparse else data.X.toarray().astype(np.float32) + np.float32(500)
    options = {"loss": loss, "alpha": 5e-4, "fit_intercept": True, "offset": rng.normal(size=400)}
    free = bg.solve(bg.Problem(X, data.y, **options), tol=1e-6).coef
    upper = np.where(free > 0, free / 3, np.inf)
    problem = bg.Problem(X, data.y, upper=upper, **options)
    solution = bg.solve(problem, tol=1e-6)
    assert np.any(solution.coef.astype(np.float32) > upper)  # or the case shows nothing
    coef, intercept, objective = round_weights(problem, solution.coef, solution.intercept, np.dtype(np.float32))
    assert np.array_equal(coef, coef.astype(np.float32))
    np.testing.assert_allclose(coef, solution.coef, rtol=1e-6)
    assert np.all(coef <= upper)
    assert objective == pytest.approx(problem.objective(coef, intercept), rel=1e-12)
    assert objective <= problem.objective(coef, problem.best_intercept(coef)) * (1 + 1e-12)


def test_a_start_deep_inside_a_plateau_is_left(rng):
    """Weights that satisfy every margin a million times over: the squared hinge has no derivative there."""
    X = rng.normal(size=(4, 3)) * [1, 1, 1e6]
    y = np.where(X[:, 2] > 0, 1.0, -1.0)
    problem = bg.Problem(X, y, loss="squared_hinge", alpha=2e-4)
    start = bg.solve(problem, coef_init=[77.0, -115.0, 9.8], tol=1e-5)
    assert start.status == "converged"
    assert start.n_iter < 50


def test_float32_weights_keep_their_bounds(rng):
    X = rng.normal(size=(80, 4)).astype(np.float32)
    model = bg.Lasso(alpha=1e-4, upper=0.1).fit(X, X.sum(axis=1))
    assert np.max(model.coef_.astype(float)) <= 0.1
    assert np.isfinite(model.dual_gap_)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_false_dual_point_or_objective_is_seen(rng, loss):
    """What the core says of any weights is what NumPy says, and a dual point that is spoilt proves nothing."""
    problem = random_problem(rng, loss, 0.1, fit_intercept=True)
    model = CoreProblem(problem, 1)
    null = problem.null_model
    engine = working_set(model, tol=1e-6, f_null=null.objective, floor=null.floor)
    w = null.full_coef(problem.n_features)
    engine.start(w, null.intercept)
    while engine.objective - engine.dual_value > engine.enough:
        assert engine.step()[0]
    objective, penalty, dual_value = verify(engine, w, engine.intercept)
    assert penalty == pytest.approx(problem.penalty.value(w), rel=1e-13)
    assert objective == pytest.approx(problem.objective(w, engine.intercept), rel=1e-13)
    gap = problem.duality_gap(w, engine.intercept, dual=np.array(engine.dual))
    assert objective - dual_value == pytest.approx(gap, abs=1e-14)
    worse = w + 0.01 * rng.normal(size=len(w))
    assert verify(engine, worse, 0.3)[0] == pytest.approx(problem.objective(worse, 0.3), rel=1e-13)
    w[:] = worse  # as if the iterations had lost track of their weights
    point = guard(problem.scaling, engine, w, np.arange(len(w), dtype=np.int32), None).point
    assert not point.is_proven
    assert point.gap >= problem.objective(worse, engine.intercept) - problem.objective(*best_of(problem))
    spoilt = np.array(engine.dual)
    spoilt[0] += 1e-3
    assert problem.duality_gap(w, engine.intercept, dual=spoilt) == np.inf


def verify(engine, w, intercept):
    features = np.flatnonzero(w).astype(np.int32)
    return engine.verify(features, w[features], intercept)


def best_of(problem):
    solution = bg.solve(problem, tol=1e-10)
    return solution.coef, solution.intercept


def test_weights_beyond_their_bounds_have_no_objective(rng):
    problem = random_problem(rng, "squared", 0.1, positive=True)
    engine = working_set(CoreProblem(problem, 1), tol=1e-6, f_null=-1.0)
    w = np.zeros(problem.n_features)
    engine.start(w, 0.0)
    w[3] = -1e-9
    assert verify(engine, w, 0.0)[0] == np.inf


def test_the_guard_costs_little(rng):
    """Its share of the nonzeros touched, which is exact where seconds are not."""
    data = bg.data.text_like(3_000, 6_000, 40.0)
    problem = bg.Problem(data.X, data.y, loss="logistic", alpha=1.0, fit_intercept=True)
    problem = problem.with_alpha(0.05 * problem.alpha_max)
    solution = bg.solve(problem)
    support = int(np.sum(np.diff(problem.X.indptr)[solution.coef != 0]))
    assert "guard" in solution.phase_seconds
    assert 2 * support <= 0.05 * solution.trace["nonzeros_touched"][-1]


def test_a_refit_is_without_any_penalty(rng):
    X = rng.normal(size=(80, 6))
    y = X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=80)
    problem = bg.Problem(X, y, alpha=1.0, l2=0.5, fit_intercept=True)
    path = bg.solve_path(problem, [0.1])
    refit = path.refit(0, tol=1e-12)
    chosen = path.points[0].features
    design = np.column_stack([X[:, chosen], np.ones(80)])
    np.testing.assert_allclose(refit.coef[chosen], np.linalg.lstsq(design, y, rcond=None)[0][:-1], rtol=1e-6)


@pytest.mark.parametrize("loss", ["huber", "squared_hinge"])
def test_dual_points_beside_an_intercept_sum_to_nothing_but_rounding(loss):
    """Rows that were brought back into the loss's domain had left Σθ at up to 1e-13, which gaps did not count."""
    worst = 0.0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 8))
        y = X[:, 0] - X[:, 1] + rng.normal(size=60)
        problem = bg.Problem(
            X, y + 3 if loss == "huber" else np.sign(y), loss=loss, alpha=1.0, huber_delta=0.5, fit_intercept=True
        )
        for point in bg.solve_path(problem, n_alphas=10, eps=0.05, tol=1e-6, keep_duals=True, n_threads=1).points:
            size = np.sqrt(len(y)) * np.linalg.norm(point.dual)
            worst = max(worst, abs(math.fsum(point.dual)) / max(size, 1e-300))
    assert worst <= 1e-14


def test_a_projected_dual_point_aims_at_rounding_itself(rng):
    """A residual whose sum is within what rounding allows is projected all the same."""
    X = rng.normal(size=(40, 3))
    problem = bg.Problem(X, rng.normal(size=40), alpha=0.5, fit_intercept=True)
    theta, _ = scaled_dual_point(problem, np.full(40, problem.null_model.intercept + 3e-13), NumpyPasses(problem))
    assert np.any(theta)
    assert abs(math.fsum(theta)) <= 1e-14 * np.sqrt(40) * np.linalg.norm(theta)


def test_the_guard_charges_what_is_left_of_the_sum():
    """By the intercept, which would gain so much by it."""
    charged = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(50, 4))
        problem = bg.Problem(X, X[:, 0] + 3 + rng.normal(size=50), alpha=0.1, fit_intercept=True)
        core = working_set(CoreProblem(problem, 1), tol=1e-6, f_null=-1.0, floor=0.0)
        w = np.zeros(4)
        core.start(w, problem.null_model.intercept)
        core.step()
        core.certify()
        values = [verify(core, w, b)[2] for b in (0.0, 1e12, -2e12)]
        assert values[0] - values[2] == pytest.approx(2 * (values[0] - values[1]))
        assert 0 <= values[0] - values[1] <= 1e12 * 1e-14 * np.sqrt(50) * np.linalg.norm(core.dual)
        charged.append(values[0] - values[1])
    assert max(charged) > 0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", [False, True])
def test_on_dense_data_a_guard_says_what_numpy_finds_though_it_reads_little_again(rng, loss, intercept):
    X = np.asfortranarray(rng.normal(size=(3000, 20)))  # tall: one full step from 0, every column in the support
    y = X @ rng.normal(size=20) + rng.normal(size=3000)
    y = np.where(y > 0, 1.0, -1.0) if loss in ("logistic", "squared_hinge") else y
    problem = bg.Problem(X, y, loss=loss, alpha=1.0, fit_intercept=intercept)
    for ratio in (0.3, 1e-3):
        here = problem.with_alpha(ratio * problem.alpha_max)
        solution = bg.solve(here, tol=1e-6)
        objective, gap = here.objective_and_gap(solution.coef, solution.intercept, solution.dual)
        assert solution.status == "converged"
        assert solution.objective == pytest.approx(objective, rel=1e-13)
        assert solution.gap == pytest.approx(gap, abs=1e-13 * here.null_model.objective)


def test_a_guard_judges_the_weights_it_is_given(rng):
    X = np.asfortranarray(rng.normal(size=(3000, 20)))
    problem = bg.Problem(X, X @ rng.normal(size=20) + rng.normal(size=3000), alpha=0.01)
    core = working_set(CoreProblem(problem, 1), tol=1e-2, f_null=-1.0)
    coef = np.zeros(20)
    core.start(coef, 0.0)
    core.step()
    features = core.support()
    assert core.n_iter == 1
    for other in (coef[features], 0.9 * coef[features], coef[features] * (features != 3)):
        w = np.zeros(20)
        w[features] = other
        assert core.verify(features, other, 0.0)[0] == pytest.approx(problem.objective(w), rel=1e-13)
    few = np.ascontiguousarray(features[:-1])
    w = np.zeros(20)
    w[few] = coef[few]
    assert core.verify(few, coef[few], 0.0)[0] == pytest.approx(problem.objective(w), rel=1e-13)
