"""Tables as people have them: timestamps, years, prices. Nothing is scaled by hand; every proof holds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification
from sklearn.linear_model import Lasso

import blockgreedy as bg

LONG = np.longdouble


def primal(X, y, w, b, alpha, loss="squared", delta=None):
    """The objective in extended precision."""
    t = np.asarray(X, dtype=LONG) @ np.asarray(w, dtype=LONG) + LONG(b)
    if loss == "logistic":
        margin = -np.where(y > 0, 1, -1) * t
        value = np.log1p(np.exp(-np.abs(margin))) + np.maximum(margin, 0)
    else:
        r = np.abs(t - y)
        value = r * r / 2 if delta is None else np.where(r <= delta, r * r / 2, delta * (r - delta / 2))
    return np.mean(value) + LONG(alpha) * np.sum(np.abs(np.asarray(w, dtype=LONG)))


def assert_proven(problem, solution, tol):
    scale = tol * problem.null_model.objective
    assert solution.status == "converged", solution.message
    assert 0 <= solution.gap <= scale * (1 + 1e-9)
    assert problem.duality_gap(solution.coef, solution.intercept, dual=solution.dual) <= scale * (1 + 1e-6)
    assert problem.objective(solution.coef, solution.intercept) == pytest.approx(solution.objective, rel=1e-12)


def table(rng, n=300):
    """A timestamp, a year, a price in cents, log-normals, a count, plain numbers."""
    return np.column_stack(
        [
            1.6e9 + 1e7 * rng.random(n),
            rng.integers(1990, 2024, n),
            np.round(np.exp(11 + rng.normal(size=n))),
            *[np.exp(scale * rng.normal(size=n)) for scale in (1, 2)],
            rng.poisson(3, n),
            rng.normal(size=(n, 2)),
        ]
    )


def test_targets_far_from_0_are_explained(rng):
    X = rng.normal(size=(200, 3))
    y = 1.7e9 + 600 * X[:, 0] + rng.normal(size=200)
    problem = bg.Problem(X, y, alpha=1.0, fit_intercept=True)
    solution = bg.solve(problem, tol=1e-8)
    assert_proven(problem, solution, 1e-8)
    peer = Lasso(alpha=1.0, tol=1e-12, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(solution.coef, peer.coef_, rtol=1e-6)
    assert abs(float(primal(X, y, solution.coef, solution.intercept, 1.0)) - solution.objective) <= 1e-6
    assert bg.LassoCV(n_alphas=20).fit(X, y).score(X, y) > 0.9999


def test_an_offset_close_to_the_target_leaves_something_to_explain(rng):
    X = rng.normal(size=(200, 3))
    base = 1e7 * np.abs(rng.normal(size=200))
    problem = bg.Problem(X, base + 3 * X[:, 0], alpha=0.01, offset=base)
    solution = bg.solve(problem, tol=1e-6)
    assert_proven(problem, solution, 1e-6)
    assert solution.coef[0] == pytest.approx(3, abs=0.05)


@pytest.mark.parametrize("method", ["auto", "greedy"])
def test_a_start_on_a_constant_target_is_left(rng, method):
    X = rng.normal(size=(50, 5))
    intercept = {"fit_intercept": True} if method == "auto" else {}
    problem = bg.Problem(X, np.full(50, 3.0 if intercept else 0.0), alpha=0.1, **intercept)
    solution = bg.solve(problem, method, coef_init=np.full(5, 7.0))
    assert not np.any(solution.coef)
    assert solution.status == "converged"
    assert solution.gap == problem.duality_gap(solution.coef, solution.intercept, dual=solution.dual) == 0
    model = bg.Lasso(alpha=0.1, warm_start=True).fit(X, 3 * X[:, 0])
    assert not np.any(model.fit(X, np.full(50, 3.0)).coef_)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", ["squared", "logistic", "huber", "squared_hinge"])
@pytest.mark.parametrize("exponent", [-200, -60, -20, 20, 60, 150])
def test_any_scale_of_X_gives_the_same_model(loss, exponent, fit_intercept):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 80))
    y = X[:, :5] @ np.ones(5) + 0.5 * rng.normal(size=60)
    y = np.sign(y) if loss in ("logistic", "squared_hinge") else y
    plain = bg.Problem(X, y, loss=loss, alpha=1.0, fit_intercept=fit_intercept)
    plain = plain.with_alpha(0.1 * plain.alpha_max)
    expected = bg.solve(plain, tol=1e-8)
    scaled = bg.Problem(X * 10.0**exponent, y, loss=loss, alpha=1.0, fit_intercept=fit_intercept)
    scaled = scaled.with_alpha(0.1 * scaled.alpha_max)
    solution = bg.solve(scaled, tol=1e-8)
    assert_proven(scaled, solution, 1e-8)
    assert solution.objective == pytest.approx(expected.objective, rel=3e-8)
    np.testing.assert_array_equal(solution.coef != 0, expected.coef != 0)


@pytest.mark.parametrize("form", [np.asfortranarray, sp.csc_array, sp.csr_array])
def test_single_columns_in_other_units(rng, form):
    X = rng.normal(size=(80, 12))
    y = X[:, :4].sum(axis=1) + 0.1 * rng.normal(size=80)
    units = 10.0 ** np.array([0, 30, -30, 8, 0, 200, -200, 0, 0, 12, -9, 0])
    X = X * units
    X[:, 8] = 0
    problem = bg.Problem(form(X), y, alpha=0.05, penalty_weights=units, fit_intercept=True)
    solution = bg.solve(problem, tol=1e-8)
    assert_proven(problem, solution, 1e-8)
    assert np.count_nonzero(solution.coef[:4]) == 4


@pytest.mark.parametrize("scale", [1e-150, 1e-20, 1e20, 1e100])
def test_any_scale_of_y_gives_the_same_model(rng, scale):
    X = rng.normal(size=(60, 30))
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    solution = bg.solve(bg.Problem(X, scale * y, alpha=0.1 * scale, fit_intercept=True), tol=1e-8)
    expected = bg.solve(bg.Problem(X, y, alpha=0.1, fit_intercept=True), tol=1e-8)
    assert solution.status == "converged"
    np.testing.assert_allclose(solution.coef / scale, expected.coef, rtol=1e-6)


@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("form", [np.asfortranarray, sp.csc_array])
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_a_raw_table_is_certified(rng, loss, form, alpha):
    X = table(rng)
    y = 3e-7 * (X[:, 0] - 1.6e9) + 0.1 * (X[:, 1] - 2000) + X[:, 6] + rng.normal(size=len(X))
    problem = bg.Problem(form(X), y, loss=loss, alpha=alpha, fit_intercept=True)
    assert_proven(problem, bg.solve(problem, tol=1e-8), 1e-8)


@pytest.mark.parametrize("C", [0.1, 100.0, 1e4])
def test_a_raw_table_is_classified_with_a_proof(rng, C):
    X = table(rng)
    y = X[:, 6] + 0.5 * rng.normal(size=len(X)) > 0
    problem = bg.Problem(X, y, loss="logistic", alpha=1 / (C * len(X)), fit_intercept=True)
    assert_proven(problem, bg.solve(problem, tol=1e-6), 1e-6)
    assert bg.LogisticRegression(C=C).fit(X, y).status_ == "converged"


def test_a_column_with_zeros_far_from_its_values_is_moved_too(rng):
    X = table(rng)
    X[3, 0] = 0.0  # a missing timestamp: not stored
    y = X[:, 6] + 0.1 * rng.normal(size=len(X))
    problem = bg.Problem(sp.csc_array(X), y, alpha=1e-3, fit_intercept=True)
    assert_proven(problem, bg.solve(problem, tol=1e-8), 1e-8)


def test_gaps_do_not_become_negative_where_targets_are_large():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(100, 3))
        y = 4e6 + 15 * X[:, 0] + 8 * rng.normal(size=100)
        problem = bg.Problem(X, y, loss="huber", huber_delta=12.0, alpha=1.0, fit_intercept=True)
        problem = problem.with_alpha(0.1 * problem.alpha_max)
        assert_proven(problem, bg.solve(problem, tol=1e-10), 1e-10)


@pytest.mark.parametrize("C", [1e8, 1e10, 1e12])
def test_next_to_no_penalty_and_collinear_columns_are_certified(C):
    X, y = make_classification(300, 20, random_state=0)
    problem = bg.Problem(X, y, loss="logistic", alpha=1 / (C * 300), fit_intercept=True)
    assert_proven(problem, bg.solve(problem, tol=1e-8), 1e-8)


def test_the_null_model_with_many_bounded_features_is_quick_and_keeps_the_time(rng):
    n, k = 60, 100
    X = rng.normal(size=(n, k + 5))
    y = np.where(X[:, 0] + X[:, -1] + rng.normal(size=n) > 0, 1.0, -1.0)
    u = np.r_[np.zeros(k), np.ones(5)]
    problem = bg.Problem(X, y, loss="logistic", alpha=0.05, penalty_weights=u, positive=True, fit_intercept=True)
    solution = bg.solve(problem, max_seconds=5.0)
    assert solution.status == "converged"
    assert solution.seconds < 5


def test_a_null_model_that_runs_out_of_time_is_no_error(rng):
    X = rng.normal(size=(4000, 300))
    problem = bg.Problem(
        X, X[:, 0] + rng.normal(size=4000) > 0, loss="logistic", alpha=0.05, penalty_weights=np.zeros(300),
        upper=0.01, fit_intercept=True,
    )  # fmt: skip
    solution = bg.solve(problem, max_seconds=1e-9)
    assert solution.status == "max_seconds"
    assert problem.objective(solution.coef, solution.intercept) == pytest.approx(solution.objective, rel=1e-12)


def test_columns_that_nearly_cancel_are_evaluated_with_all_digits(rng):
    """No intercept, columns nearly parallel: float32 models stop, and float64 goes on."""
    n = 30
    X = np.column_stack([4e5 + np.arange(n), 3.6e5 + np.arange(n), 1.6e9 + 100 * rng.random(n)])
    y = 1e5 * rng.normal(size=n) + 3e5
    problem = bg.Problem(X, y, alpha=1e-6)
    solution = bg.solve(problem, tol=1e-3)
    best, *_ = np.linalg.lstsq(X, y, rcond=1e-15)
    error = primal(X, y, solution.coef, 0.0, 1e-6) - primal(X, y, best, 0.0, 1e-6)
    assert error <= 1e-3 * problem.null_model.objective
    assert abs(float(primal(X, y, solution.coef, 0.0, 1e-6)) / solution.objective - 1) <= 1e-10


@pytest.mark.parametrize("l1_ratio", [None, 0.5])
@pytest.mark.parametrize("max_iter", [1, None])
@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
def test_every_point_of_a_rescaled_path_is_judged_in_its_own_units(rng, loss, max_iter, l1_ratio):
    X = 1e30 * rng.normal(size=(60, 40)) @ (np.eye(40) + 0.5 * rng.normal(size=(40, 40)))
    y = X[:, :5] @ rng.normal(size=5) / 1e30 + rng.normal(size=60)
    problem = bg.Problem(X, y > 0 if loss == "logistic" else y, loss=loss, alpha=1.0, fit_intercept=True)
    path = bg.solve_path(problem, n_alphas=12, max_iter=max_iter, keep_duals=True, l1_ratio=l1_ratio)
    ratio = 1.0 if l1_ratio is None else l1_ratio
    for k, point in enumerate(path.points):
        here = problem.with_alpha(ratio * point.alpha, None if l1_ratio is None else (1 - ratio) * point.alpha)
        judged = here.duality_gap(path.coef(k), point.intercept, dual=point.dual)
        assert judged <= point.gap * (1 + 1e-6) + 1e-12 * path.null_loss


def test_a_ridge_holds_columns_beside_others_of_any_size(rng):
    x = rng.normal(size=(50, 1))
    y = 3 * x[:, 0] + rng.normal(size=50)
    X = np.column_stack([x, 1e25 * rng.normal(size=50)])
    problem = bg.Problem(X, y, alpha=1.0, l2=1.0, penalty_weights=[0.0, 1.0])
    problem = problem.with_alpha(0.9 * problem.alpha_max)
    solution = bg.solve(problem, tol=1e-8)
    expected = float(primal(X, y, solution.coef, 0.0, 0.0)) + 0.5 * float(solution.coef[0]) ** 2
    expected += problem.alpha * abs(float(solution.coef[1]))
    assert solution.objective == pytest.approx(expected, rel=1e-9)
    assert_proven(problem, solution, 1e-8)


@pytest.mark.parametrize("outlier", [1e9, 1e15, 1e30])
@pytest.mark.parametrize("form", [np.asfortranarray, sp.csc_array])
def test_values_in_rows_of_weight_0_do_not_matter(rng, form, outlier):
    X = rng.normal(size=(60, 5))
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    X[7, 0] = outlier
    weights = np.ones(60)
    weights[7] = 0
    solution = bg.solve(bg.Problem(form(X), y, alpha=0.1, sample_weight=weights, fit_intercept=True), tol=1e-8)
    kept = weights > 0
    expected = bg.solve(bg.Problem(X[kept], y[kept], alpha=0.1, fit_intercept=True), tol=1e-8)
    assert solution.status == "converged"
    assert solution.objective == pytest.approx(expected.objective, rel=1e-7)


@pytest.mark.threads
def test_folds_may_rescale_a_shared_matrix_at_the_same_time(rng):
    X = 1e9 * rng.normal(size=(80, 30))
    y = X[:, 0] / 1e9 + 0.1 * rng.normal(size=80)
    problem = bg.Problem(X, y, alpha=1e7)
    weights = rng.random((16, 80))
    expected = [bg.solve(bg.Problem(X, y, alpha=1e7, sample_weight=w), n_threads=1).objective for w in weights]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda w: bg.solve(problem.with_sample_weight(w), n_threads=1).objective, weights))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("form", [np.asfortranarray, sp.csc_array, sp.csr_array])
@pytest.mark.parametrize("value", [5e-324, 1e-310, 1e-308, 1e308])
@pytest.mark.parametrize("standardize", [False, True])
def test_a_column_at_the_ends_of_the_numbers_is_a_column(rng, form, value, standardize):
    X = rng.normal(size=(50, 3))
    X[:, 1] = value
    y = X[:, 0] + rng.normal(size=50)
    rest = bg.Problem(X[:, [0, 2]], y, alpha=0.1, fit_intercept=True, standardize=standardize)
    solution = bg.solve(bg.Problem(form(X), y, alpha=0.1, fit_intercept=True, standardize=standardize), tol=1e-8)
    assert solution.status == "converged"
    np.testing.assert_allclose(solution.coef[[0, 2]], bg.solve(rest, tol=1e-8).coef, atol=1e-6)


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("size", [1e-310, 1e-300, 1e150])
def test_targets_at_the_ends_of_the_numbers_are_fitted_or_refused_in_words(rng, loss, size):
    X = rng.normal(size=(30, 3))
    y = size * (X[:, 0] + 0.1 * rng.normal(size=30))
    problem = bg.Problem(X, y, loss=loss, alpha=0.1 * size, huber_delta=1.35 * size)
    solution = bg.solve(problem)
    assert solution.status == "converged"
    assert solution.coef[0] == pytest.approx(0.9 * size, rel=0.1)


@pytest.mark.parametrize("form", [np.asfortranarray, sp.csc_array, sp.csr_array])
def test_rows_of_weight_0_may_have_values_of_any_other_size(rng, form):
    """Columns are scaled by the rows that count; those of the others could leave the range of float32 by that."""
    X = rng.normal(size=(40, 3))
    X[:30, 1] *= 1e-143
    y = X[:, 0] + 1e143 * X[:, 1] + 0.1 * rng.normal(size=40)
    y[30:] = 7.0
    weights = np.where(np.arange(40) < 30, 1.0, 0.0)
    problem = bg.Problem(form(X), y, alpha=0.05, l2=0.1, standardize=True, sample_weight=weights)
    solution = bg.solve(problem, tol=1e-8)
    expected = bg.solve(bg.Problem(form(X[:30]), y[:30], alpha=0.05, l2=0.1, standardize=True), tol=1e-8)
    assert solution.status == expected.status == "converged"
    np.testing.assert_allclose(solution.coef * [1, 1e-143, 1], expected.coef * [1, 1e-143, 1], atol=1e-4)
    # and where these rows count again, they do so with their own values
    everywhere = problem.with_sample_weight(None)
    anew = bg.solve(bg.Problem(form(X), y, alpha=0.05, l2=0.1, standardize=True), tol=1e-8)
    assert bg.solve(everywhere, tol=1e-8).objective == pytest.approx(anew.objective, rel=1e-7)
