"""Tall dense problems, whose models are replaced by Cholesky factors; ``n_blocks=1`` asks for the columns."""

from __future__ import annotations

import numpy as np
import pytest

import blockgreedy as bg
from blockgreedy.problem.losses import LOSSES as LOSS_TYPES
from conftest import LOSSES


def tall(loss, n=6000, p=24, seed=0, intercept=False, weights=False, copies=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[:, 1:] = 0.6 * X[:, :-1] + 0.8 * X[:, 1:]
    if copies:
        X[:, 3], X[:, 4], X[:, 5], X[:, 6] = X[:, 2], -X[:, 2], 0.0, X[:, 0] + X[:, 1]
    if intercept:
        X += 0.5
    t = X[:, ::4].sum(axis=1) + rng.standard_normal(n)
    y = np.where(t > np.median(t), 1.0, -1.0) if LOSS_TYPES[loss].is_classifier else t
    options = {"sample_weight": rng.gamma(1.0, size=n)} if weights else {}
    problem = bg.Problem(np.asfortranarray(X), y, loss=loss, alpha=1.0, fit_intercept=intercept, **options)
    return problem.with_alpha(0.02 * problem.alpha_max)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("options", [{}, {"intercept": True, "weights": True}, {"copies": True}], ids=str)
def test_the_factor_gives_the_same_solution_with_less_work(loss, options):
    problem = tall(loss, **options)
    short = bg.solve(problem, tol=1e-9)
    plain = bg.solve(problem, tol=1e-9, n_blocks=1)
    assert short.status == plain.status == "converged"
    f_null = problem.null_model.objective
    assert problem.duality_gap(short.coef, short.intercept, dual=short.dual) <= 1.001e-9 * f_null
    assert short.objective == pytest.approx(plain.objective, abs=2e-9 * f_null)
    assert short.trace.records[-1].nonzeros_touched < 0.7 * plain.trace.records[-1].nonzeros_touched


@pytest.mark.threads
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_threads_do_not_change_a_bit(loss):
    problem = tall(loss, n=20_000, p=70, seed=1)
    first = bg.solve(problem, tol=1e-8, n_threads=1)
    for n_threads in (2, 3, 7):
        assert np.array_equal(bg.solve(problem, tol=1e-8, n_threads=n_threads).coef, first.coef)


def test_more_features_than_products_are_kept_for():
    """Squared loss keeps products from one working set to the next; here the sets change a lot."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((4000, 500)) + rng.standard_normal((4000, 1))
    y = X[:, :100] @ rng.standard_normal(100) + rng.standard_normal(4000)
    problem = bg.Problem(np.asfortranarray(X), y, loss="squared", alpha=1.0)
    for ratio in (0.3, 0.01, 1e-4):
        own = problem.with_alpha(ratio * problem.alpha_max)
        solution = bg.solve(own, tol=1e-8)
        assert solution.status == "converged"
        gap = own.duality_gap(solution.coef, solution.intercept, dual=solution.dual)
        assert gap <= 1.001e-8 * own.null_model.objective
