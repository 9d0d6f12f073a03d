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
