"""standardize=True: the same model as on explicitly standardised data, with nothing rescaled or densified."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import blockgreedy as bg
from conftest import LOSSES, SANITIZED, random_design, random_targets
from oracle import FORMATS, Case, plain

OPTIONS = {
    "plain": {},
    "l2": {"l2": 0.05},
    "weights": {"weights": np.r_[np.zeros(5), np.linspace(0.2, 3, 55)]},
    "box and penalty weights": {
        "l2": 0.01,
        "u": np.r_[0.0, 0.0, np.inf, np.linspace(0.5, 2, 37)],
        "lower": np.full(40, -0.1),
        "upper": np.full(40, 0.3),
    },
}


def standardised(case: Case) -> tuple[Case, np.ndarray, np.ndarray]:
    """The case on columns of variance 1, with the means and deviations that were taken off."""
    omega = case.omega
    mean = omega @ case.X if case.intercept else np.zeros(case.X.shape[1])
    sd = np.sqrt(omega @ (case.X - mean) ** 2)
    return replace(case, X=(case.X - mean) / sd, lower=case.lower * sd, upper=case.upper * sd), mean, sd


def made(rng, loss, intercept, dtype=np.float64, **options):
    X = random_design(rng).toarray() * np.exp(rng.normal(size=40)) + 2 * (rng.random(40) < 0.2)
    y = random_targets(rng, 60, loss)
    return plain(X.astype(dtype), y, loss, intercept=intercept, **{"alpha": 0.02, **options})


@pytest.mark.parametrize("form", ["csc", "dense F"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("option", OPTIONS)
def test_solution_is_that_of_standardised_columns(rng, loss, intercept, form, option):
    case = made(rng, loss, intercept, **OPTIONS[option])
    explicit, mean, sd = standardised(case)
    problem = case.problem(form, standardize=True)
    np.testing.assert_allclose(problem.scales, sd, rtol=1e-13)
    solution = bg.solve(problem, tol=1e-7)
    assert solution.status == "converged"
    w, b = solution.coef * sd, solution.intercept + mean @ solution.coef
    value = explicit.objective(w, b)
    rounding = 1e-12 * problem.null_model.objective
    assert solution.objective == pytest.approx(value, rel=1e-12)
    assert value - explicit.dual(solution.dual) <= 1e-7 * problem.null_model.objective + rounding
    checked = problem.duality_gap(solution.coef, solution.intercept, dual=solution.dual)
    assert checked == pytest.approx(solution.gap, abs=rounding)
    assert np.count_nonzero(solution.coef) > 3


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_alpha_max_and_null_model_are_those_of_standardised_columns(rng, loss, form):
    case = made(rng, loss, True, **OPTIONS["weights"])
    explicit, _, _ = standardised(case)
    problem, other = case.problem(form, standardize=True), explicit.problem()
    assert problem.alpha_max == pytest.approx(other.alpha_max, rel=1e-12)
    assert not np.any(bg.solve(problem.with_alpha(problem.alpha_max), tol=1e-9).coef)
    assert np.any(bg.solve(problem.with_alpha(0.999 * problem.alpha_max), tol=1e-9).coef)


def test_float32_is_standardised_in_float64(rng):
    case = made(rng, "logistic", True, np.float32)
    explicit, mean, sd = standardised(case)
    problem = case.problem("csc", np.float32, standardize=True)
    assert problem.X.dtype == np.float32
    np.testing.assert_allclose(problem.scales, sd, rtol=1e-12)
    solution = bg.solve(problem, tol=1e-7)
    value = explicit.objective(solution.coef * sd, solution.intercept + mean @ solution.coef)
    assert value - explicit.dual(solution.dual) <= 1.001e-7 * problem.null_model.objective


def test_the_family_standardises_too(rng):
    case = made(rng, "squared", False, l2=0.05)
    problem = case.problem("csc", standardize=True)
    family = bg.solve(problem, "thread-greedy", n_blocks=4, tol=1e-8)
    assert family.status == "converged"
    assert abs(family.objective - bg.solve(problem, tol=1e-8).objective) <= 2e-8 * problem.null_model.objective


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_far_from_zero_keep_their_digits(form, dtype):
    """Σx² − mean² would leave nothing of these."""
    n = 1000
    far = np.where(np.arange(n) % 2 == 0, 2.0**20 + 4, 2.0**20)  # exact in float32
    huge = np.where(np.arange(n) % 2 == 0, 2.0**120, 0.0)  # the square overflows float32
    X = np.column_stack([far, huge]).astype(dtype)
    problem = bg.Problem(FORMATS[form](X), np.arange(n), alpha=1, fit_intercept=True, standardize=True)
    np.testing.assert_allclose(problem.scales, [2.0, 2.0**119], rtol=1e-14)


@pytest.mark.parametrize("centre", [1e6, 1e7, 1.5e7])
def test_neighbouring_numbers_of_float32_are_no_constant(rng, centre):
    """The same numbers are the same model, whatever type holds them."""
    X = (centre + rng.integers(-2, 3, size=(300, 1))).astype(np.float32)
    y = X[:, 0].astype(float) - centre + 0.1 * rng.normal(size=300)
    narrow, wide = (bg.Problem(Z, y, alpha=0.01, fit_intercept=True, standardize=True) for Z in (X, X.astype(float)))
    np.testing.assert_allclose(narrow.scales, wide.scales, rtol=1e-12)
    assert bg.solve(narrow).coef[0] == pytest.approx(1.0, abs=0.02)
    model = bg.Lasso(alpha=0.01, standardize=True).fit(X, y)
    assert model.score(X, y) > 0.85  # predictions are in float32


@pytest.mark.parametrize("exponent", [-200, -162, -158, 155, 200])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_l2_counts_standardised_columns_of_any_scale(rng, exponent, fit_intercept):
    """The square of a scale may leave the range of float64, the scale times its weight does not."""
    X = rng.normal(size=(40, 2))
    y = X[:, 0] * 2 + X[:, 1] + 0.1 * rng.normal(size=40)
    Z = X.copy()
    Z[:, 0] *= 10.0**exponent
    options = {"alpha": 0.01, "l2": 1.0, "standardize": True, "fit_intercept": fit_intercept}
    problem, plain = bg.Problem(Z, y, **options), bg.Problem(X, y, **options)
    solution, expected = bg.solve(problem, tol=1e-9), bg.solve(plain, tol=1e-9)
    assert solution.status == "converged"
    assert solution.objective == pytest.approx(expected.objective, rel=1e-9)
    same = solution.coef * [10.0**exponent, 1]
    np.testing.assert_allclose(same, expected.coef, rtol=1e-4)
    assert plain.objective(same, solution.intercept) == pytest.approx(solution.objective, rel=1e-9)
    assert problem.objective(solution.coef, solution.intercept) == pytest.approx(solution.objective, rel=1e-12)


@pytest.mark.parametrize("form", FORMATS)
def test_constant_columns_leave_the_model(rng, form):
    X = rng.normal(size=(60, 6))
    X[:, 1], X[:, 3] = 0.1, 0.0
    X[:, 4] = np.where(np.arange(60) < 50, 1e8 / 3, rng.normal(size=60))  # constant where rows count
    X[:, 5] = np.where(np.arange(60) < 50, 0.3, 0.0)
    weights = np.r_[rng.random(50) + 0.1, np.zeros(10)]
    y = X[:, 0] + rng.normal(size=60)
    problem = bg.Problem(
        FORMATS[form](X), y, alpha=1e-3, sample_weight=weights, fit_intercept=True, standardize=True,
        penalty_weights=[1, 0, 1, 0, 0, 1],
    )  # fmt: skip
    np.testing.assert_array_equal(problem.scales > 0, [True, False, True, False, False, False])
    np.testing.assert_array_equal(np.isinf(problem.penalty_weights), problem.scales == 0)
    solution = bg.solve(problem, tol=1e-9)
    assert solution.status == "converged"
    assert not np.any(solution.coef[[1, 3, 4, 5]])
    assert np.all(solution.coef[[0, 2]])


def test_without_an_intercept_a_constant_column_is_a_column_like_any_other(rng):
    X = np.column_stack([np.full(40, 3.0), rng.normal(size=40)])
    problem = bg.Problem(X, np.full(40, 6.0), alpha=0.1, standardize=True)
    assert problem.scales[0] == pytest.approx(3.0)
    assert bg.solve(problem, tol=1e-9).coef[0] == pytest.approx((6 - 0.1) / 3, rel=1e-6)


@pytest.mark.skipif(bool(SANITIZED), reason="a sanitizer's own memory counts too")
def test_nothing_is_densified():
    """Peak memory of a process of its own: dense the matrix would be 480 MB, it is 0.7."""
    code = (
        "import resource, numpy as np, scipy.sparse as sp, blockgreedy as bg\n"
        "X = sp.random_array((20_000, 3_000), density=1e-3, format='csc', rng=np.random.default_rng(0))\n"
        "y = X @ np.ones(3_000) + np.random.default_rng(1).normal(size=20_000)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "problem = bg.Problem(X, y, alpha=1.0, fit_intercept=True, standardize=True)\n"
        "assert np.shares_memory(problem.X.data, X.data)\n"
        "assert bg.solve(problem.with_alpha(0.5 * problem.alpha_max)).status == 'converged'\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    grown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert int(grown) < 40_000  # kB


@pytest.mark.parametrize("standardize", [False, True])
def test_other_sample_weights_on_the_same_matrix(rng, standardize):
    case = made(rng, "logistic", True, l2=0.01, offset=rng.normal(size=60))
    weights = rng.integers(0, 3, size=60).astype(float)
    problem = case.problem("csc", standardize=standardize)
    _ = problem.null_model, problem.alpha_max, problem.penalty
    other, direct = (
        problem.with_sample_weight(weights),
        replace(case, weights=weights).problem("csc", standardize=standardize),
    )
    assert other.X is problem.X
    assert other.alpha_max == direct.alpha_max != problem.alpha_max
    mine, theirs = bg.solve(other), bg.solve(direct)
    np.testing.assert_array_equal(mine.coef, theirs.coef)
    back = other.with_sample_weight(None)
    np.testing.assert_array_equal(bg.solve(back).coef, bg.solve(problem).coef)
