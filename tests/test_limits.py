"""Bounds on weights in a proof: those that bind, and those that stand for "none"."""

import numpy as np
import pytest

import blockgreedy as bg
from blockgreedy.backends.tiles.threads import run_in_threads
from conftest import LOSSES, random_problem

LARGEST = float(np.finfo(np.float64).max)


def bounded(rng, loss, most, unpenalised=(), **options):
    """One bound that binds, all others as large as ``most``."""
    X = rng.normal(size=(80, 20))
    y = X[:, :5] @ [2.0, -1.0, 1.0, 0.5, -2.0] + rng.normal(size=80)
    limits, weights = np.full(20, most), np.ones(20)
    limits[0], weights[list(unpenalised)] = 0.1, 0.0
    y = y if loss in ("squared", "huber") else np.sign(y)
    return bg.Problem(
        X, y, loss=loss, alpha=0.02, lower=-limits, upper=limits, penalty_weights=weights, **options
    )  # fmt: skip


def is_proven(problem, solution, tol):
    assert solution.status == "converged"
    gap = problem.duality_gap(solution.coef, solution.intercept, dual=solution.dual)
    assert gap == pytest.approx(solution.gap, abs=1e-10 * problem.null_model.objective)
    assert gap <= 1.001 * tol * problem.null_model.objective
    return True


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("most", [30.0, 1e9, 1e20, LARGEST])
@pytest.mark.parametrize("unpenalised", [(), (1, 7)], ids=["all-penalised", "some-unpenalised"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_limits_that_stand_for_none_cost_no_proof(rng, loss, most, unpenalised, fit_intercept):
    problem = bounded(rng, loss, most, unpenalised, fit_intercept=fit_intercept)
    without = bounded(np.random.default_rng(0), loss, np.inf, unpenalised, fit_intercept=fit_intercept)
    solution, expected = bg.solve(problem, tol=1e-7), bg.solve(without, tol=1e-9)
    assert abs(solution.coef[0]) == 0.1
    assert is_proven(problem, solution, 1e-7)
    assert solution.n_iter <= expected.n_iter
    assert solution.objective - expected.objective <= 1e-7 * problem.null_model.objective


@pytest.mark.parametrize("most", [1e9, LARGEST])
@pytest.mark.parametrize("unpenalised", [(), (1, 7)], ids=["all-penalised", "some-unpenalised"])
def test_ranks_and_the_family_prove_as_much(rng, most, unpenalised):
    problem = bounded(rng, "logistic", most, unpenalised, fit_intercept=True)
    fits = run_in_threads(2, lambda ranks: bg.solve(problem, cluster=ranks, tol=1e-6, n_threads=1))
    assert all(is_proven(problem, solution, 1e-6) for solution in fits)
    assert is_proven(problem, bg.solve(problem, "thread-greedy", n_blocks=4, update="joint", tol=1e-4), 1e-4)


def test_a_far_limit_that_binds_is_kept(rng):
    """No weight is beyond its limit, however large the limit is."""
    X = 1e-10 * rng.normal(size=(50, 3))
    y = 1e10 * X @ [1.0, 2.0, 3.0]
    problem = bg.Problem(X, y, alpha=1e-15, upper=[1e9, np.inf, 1e20], lower=-1e20)
    solution = bg.solve(problem, tol=1e-8)
    assert solution.coef[0] == 1e9
    assert is_proven(problem, solution, 1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_no_bound_on_a_gap_is_below_the_error(rng, loss):
    """Gaps of random points at random limits, against the optimum."""
    problem = random_problem(rng, loss, 0.1, lower=-0.05, upper=1e12, fit_intercept=True)
    best = bg.solve(problem, tol=1e-10).objective
    for scale in (0.0, 1e-3, 0.1, 1.0):
        w = np.clip(scale * rng.normal(size=problem.n_features), -0.05, None)
        assert problem.duality_gap(w, 0.1) >= problem.objective(w, 0.1) - best - 1e-12


@pytest.mark.parametrize("most", [1e8, 1e12, np.inf])
@pytest.mark.parametrize("apart", [5e-13, 2e-14])
@pytest.mark.parametrize("method", ["auto", "shotgun"])
def test_no_proof_contradicts_itself_where_unpenalised_columns_are_nearly_equal(rng, most, apart, method):
    """Each keeps its equality within rounding; along their difference the objective falls all the same."""
    x, other, z = rng.normal(size=(3, 200))
    X = np.column_stack([x, x + apart * other, z])
    other = (X[:, 1] - x) / apart
    problem = bg.Problem(
        X, other + z, alpha=0.05, penalty_weights=[0, 0, 1], lower=[-most, -most, -np.inf], upper=[most, most, np.inf]
    )
    solution = bg.solve(problem, method)
    rounding = 1e-9 + 1e-15 * np.max(np.abs(solution.coef))  # of predictions, where such weights cancel
    assert problem.duality_gap(solution.coef, dual=solution.dual) >= -rounding * problem.null_model.objective


@pytest.mark.parametrize("method", ["auto", "shotgun"])
def test_nothing_converges_against_a_null_model_that_was_not_finished(rng, method):
    X = rng.normal(size=(1000, 203))
    y = X @ rng.normal(size=203) * 100 + 0.1 * rng.normal(size=1000)
    weights = np.where(np.arange(203) < 200, 0.0, 1.0)
    whole = bg.Problem(X, y, alpha=0.5, penalty_weights=weights)
    near = bg.solve(whole, tol=1e-8).coef + 1e-2
    problem = bg.Problem(X, y, alpha=0.5, penalty_weights=weights)
    solution = bg.solve(problem, method, tol=1e-4, coef_init=near, max_seconds=1e-9)
    assert solution.status == "max_seconds" or solution.gap <= 1e-4 * whole.null_model.objective
