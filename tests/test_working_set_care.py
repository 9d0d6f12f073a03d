"""The default solver where arithmetic is delicate: degenerate data, extreme scales, limits of alpha and tol."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from conftest import LOSSES, random_design, random_problem, random_targets
from oracle import assert_certified, assert_never_rises, plain

N, P = 40, 12
both = pytest.mark.parametrize("fit_intercept", [False, True], ids=["", "intercept"])
every_loss = pytest.mark.parametrize("loss", LOSSES)


def data(seed=0, loss="squared", n=N, p=P):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.6)
    return X, random_targets(rng, n, loss)


STRUCTURES = {
    "constant column": lambda X: np.c_[np.full(N, 3.0), X],
    "empty columns": lambda X: np.c_[np.zeros((N, 3)), X, np.zeros((N, 2))],
    "duplicated columns": lambda X: np.repeat(X, 3, axis=1),
    "negated columns": lambda X: np.c_[X, -X],
    "nearly equal columns": lambda X: np.c_[X, X * (1 + 1e-7)],
    "scaled by 1e-6": lambda X: X * 1e-6,
    "scaled by 1e6": lambda X: X * 1e6,
    "columns of 6 magnitudes": lambda X: X * np.logspace(-3, 3, P),
    "one feature": lambda X: X[:, :1],
    "far from 0": lambda X: X + 1000.0,
    "p much larger than n": lambda X: np.tile(X[:, :5], 60) + 0.1 * np.random.default_rng(1).normal(size=(N, 300)),
}


@both
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("name", STRUCTURES)
def test_structured_columns(name, loss, fit_intercept):
    X, y = data(1, loss)
    case = plain(STRUCTURES[name](X), y, loss, 0.02, intercept=fit_intercept)
    problem = case.problem("csc")
    # float32 columns of 1000 ± 1 beside an intercept: no better direction than this is found
    tol = 1e-6 if name == "far from 0" and fit_intercept else 1e-8
    solution = bg.solve(problem, tol=tol)
    assert_certified(case, problem, solution, tol)
    assert solution.nonzeros > 0
    if "empty" in name:
        assert not np.any(solution.coef[:3])


@every_loss
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_scale_of_a_matrix_is_that_of_its_weights(loss, scale):
    X, y = data(2, loss)
    found = [bg.solve(plain(s * X, y, loss, 0.05).problem(), tol=1e-10) for s in (1.0, scale)]
    assert [s.status for s in found] == ["converged"] * 2
    assert found[1].objective == pytest.approx(found[0].objective, rel=1e-9)
    np.testing.assert_allclose(scale * found[1].coef, found[0].coef, atol=1e-4 * np.max(np.abs(found[0].coef)))


@both
@every_loss
@pytest.mark.parametrize("ratio", [1e-4, 1e-3])
def test_a_small_alpha(loss, ratio, fit_intercept):
    X, y = data(3, loss, n=80, p=20)
    case = plain(X, y, loss, ratio, intercept=fit_intercept)
    problem = case.problem()
    solution = bg.solve(problem, tol=1e-8)
    assert_certified(case, problem, solution, 1e-8)
    assert solution.n_iter <= 100
    assert solution.objective == pytest.approx(case.minimum(), rel=1e-6)


@every_loss
def test_more_weights_than_rows_that_bend(loss):
    """22 rows of the squared hinge are short of their margin, 25 weights are not 0."""
    X, y = data(3, loss, n=40, p=30)
    case = plain(X, y, loss, 1e-4)
    problem = case.problem()
    solution = bg.solve(problem, tol=1e-8)
    assert_certified(case, problem, solution, 1e-8)


@pytest.mark.parametrize("loss", ["squared_hinge", "huber"])
def test_piecewise_quadratic_losses_end_in_a_moderate_number_of_steps(loss):
    counts = []
    for seed in range(10):
        X, y = data(seed, loss, n=40, p=30)
        for options in ({}, {"lower": np.zeros(30)}):
            solution = bg.solve(plain(X, y, loss, 1e-3, **options).problem(), tol=1e-6)
            assert_never_rises(solution)
            counts.append(solution.n_iter)
    assert max(counts) <= 100, sorted(counts)


@both
@pytest.mark.parametrize("flipped", [0, 2])
def test_nearly_separable_classes(fit_intercept, flipped):
    rng = np.random.default_rng(4)
    y = random_targets(rng, 100, "logistic")
    X = np.c_[y * (1 + rng.random(100)), rng.normal(size=(100, 10))]
    y[:flipped] *= -1
    case = plain(X, y, "logistic", 1e-4, intercept=fit_intercept)
    problem = case.problem()
    solution = bg.solve(problem, tol=1e-7)
    assert_certified(case, problem, solution, 1e-7)
    assert solution.objective <= case.minimum() + 1e-7 * problem.null_model.objective
    assert solution.n_iter <= 100


@both
@every_loss
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("ratio", [1 + 1e-9, 1.5])
def test_from_alpha_max_on_the_null_model_is_returned_at_once(loss, fit_intercept, weighted, ratio):
    X, y = data(5, loss)
    weights = {"weights": np.r_[1.0, 1.0, np.arange(N - 2) % 3]} if weighted else {}
    case = plain(X, y, loss, ratio, intercept=fit_intercept, **weights)
    problem = case.problem()
    solution = bg.solve(problem, tol=1e-8)
    assert_certified(case, problem, solution, 1e-8)
    assert solution.n_iter == 0
    assert not np.any(solution.coef)
    assert solution.intercept == problem.null_model.intercept
    below = bg.solve(problem.with_alpha(problem.alpha_max * 0.98), tol=1e-9)
    assert below.nonzeros > 0


@every_loss
def test_one_sample(loss):
    case = plain([[1.0, -2.0, 0.0]], [1.0], loss, 0.1)
    problem = case.problem()
    solution = bg.solve(problem, tol=1e-9)
    assert_certified(case, problem, solution, 1e-9)
    assert np.flatnonzero(solution.coef).tolist() == [1]


@both
@every_loss
@pytest.mark.parametrize("shape", [(2000, 3), (8, 120)], ids=str)
def test_tall_and_wide(loss, shape, fit_intercept):
    X, y = data(6, loss, *shape)
    case = plain(X, y, loss, 0.05, intercept=fit_intercept)
    problem = case.problem("csr", np.float64)
    solution = bg.solve(problem, tol=1e-9)
    assert_certified(case, problem, solution, 1e-9)
    assert solution.objective == pytest.approx(case.minimum(), rel=1e-6)


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("level", [0.0, 5.0, 1e6])
def test_equal_targets_are_explained_by_the_intercept(loss, level):
    X, _ = data(7)
    solution = bg.solve(bg.Problem(X, np.full(N, level), loss=loss, alpha=1e-3, fit_intercept=True))
    assert (solution.status, solution.gap, solution.n_iter) == ("converged", 0.0, 0)
    assert solution.intercept == pytest.approx(level, rel=1e-15)
    assert not np.any(solution.coef)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_one_class_is_explained_by_the_intercept(loss):
    X, _ = data(7)
    solution = bg.solve(bg.Problem(X, np.ones(N), loss=loss, alpha=1e-3, fit_intercept=True))
    assert solution.status == "converged"
    assert not np.any(solution.coef)
    assert solution.objective < 1e-12


@every_loss
def test_equal_targets_without_intercept(loss):
    X, _ = data(8)
    case = plain(X, np.ones(N), loss, 0.05)
    problem = case.problem()
    solution = bg.solve(problem, tol=1e-8)
    assert_certified(case, problem, solution, 1e-8)
    assert solution.objective == pytest.approx(case.minimum(), rel=1e-6)


@both
@every_loss
def test_a_tolerance_near_rounding_is_reached(loss, fit_intercept):
    X, y = data(9, loss)
    case = plain(X, y, loss, 0.05, intercept=fit_intercept)
    problem = case.problem()
    solution = bg.solve(problem, tol=1e-12)
    assert_certified(case, problem, solution, 1e-12)
    assert problem.kkt_residual(solution.coef, solution.intercept) < 1e-6 * problem.alpha


@both
@every_loss
@pytest.mark.parametrize("ratio", [0.5, 0.01])
def test_a_tolerance_of_zero_ends(loss, ratio, fit_intercept):
    X, y = data(10, loss)
    case = plain(X, y, loss, ratio, intercept=fit_intercept)
    problem = case.problem()
    solution = bg.solve(problem, tol=0, max_seconds=5)
    assert solution.status in ("converged", "stalled", "max_iter")
    assert_never_rises(solution)
    assert solution.gap <= 1e-7 * problem.null_model.objective
    assert solution.objective == pytest.approx(case.minimum(), rel=1e-7)
    if solution.status == "stalled":
        assert "no step lowers the objective" in solution.message


@both
@every_loss
def test_a_warm_start_needs_next_to_nothing(loss, fit_intercept):
    X, y = data(11, loss, n=100, p=50)
    problem = plain(X, y, loss, 0.05, intercept=fit_intercept).problem()
    first = bg.solve(problem, tol=1e-9)
    start = {"coef_init": first.coef, "intercept_init": first.intercept}
    again = bg.solve(problem, tol=1e-8, **start)
    assert again.status == "converged"
    assert again.n_iter <= 2
    assert again.objective <= first.objective * (1 + 1e-14)
    assert again.coef is not first.coef
    near = bg.solve(problem.with_alpha(problem.alpha * 0.9), tol=1e-8, **start)
    assert near.n_iter < bg.solve(problem.with_alpha(problem.alpha * 0.9), tol=1e-8).n_iter or near.n_iter <= 3


@every_loss
def test_a_start_worse_than_the_null_model_is_not_used(loss):
    X, y = data(12, loss)
    case = plain(X, y, loss, 0.05, intercept=True)
    problem = case.problem()
    start = 50 * np.random.default_rng(0).normal(size=P)
    solution = bg.solve(problem, tol=1e-8, coef_init=start, intercept_init=-30.0)
    assert_certified(case, problem, solution, 1e-8)
    assert solution.trace["objective"][0] == pytest.approx(problem.null_model.objective, rel=1e-12)  # not used
    assert np.any(start)  # not written to


@both
@every_loss
def test_l2_alone(loss, fit_intercept):
    X, y = data(13, loss)
    case = plain(X, y, loss, alpha=0.0, l2=0.1, intercept=fit_intercept)
    problem = case.problem()
    solution = bg.solve(problem, tol=1e-9)
    assert_certified(case, problem, solution, 1e-9)
    assert solution.objective == pytest.approx(case.minimum(), rel=1e-8)


@both
def test_least_squares(fit_intercept):
    X, y = data(14)
    case = plain(X, y, alpha=0.0, intercept=fit_intercept)
    problem = case.problem()
    solution = bg.solve(problem, tol=1e-9)
    assert solution.status == "converged"
    ones = np.ones((N, 1)) if fit_intercept else np.zeros((N, 0))
    expected = np.linalg.lstsq(np.c_[X, ones], y, rcond=None)[0]
    np.testing.assert_allclose(solution.coef, expected[:P], atol=1e-4)
    # all unpenalised, it is its own null model
    assert solution.objective <= case.minimum() * (1 + 1e-9)


@both
@every_loss
def test_a_weight_of_k_is_a_row_k_times(loss, fit_intercept):
    X, y = data(15, loss)
    counts = np.r_[1, 1, np.arange(N - 2) % 4]
    weighted = plain(X, y, loss, 0.05, weights=counts.astype(float), intercept=fit_intercept)
    kept = np.repeat(np.arange(N), counts)
    repeated = plain(X[kept], y[kept], loss, alpha=weighted.alpha, intercept=fit_intercept)
    a, b = (bg.solve(case.problem(), tol=1e-11) for case in (weighted, repeated))
    assert a.objective == pytest.approx(b.objective, rel=1e-10)
    np.testing.assert_allclose(a.coef, b.coef, atol=1e-4)
    assert a.intercept == pytest.approx(b.intercept, abs=1e-4)


@every_loss
def test_what_rows_of_weight_zero_hold_does_not_matter(loss):
    X, y = data(16, loss)
    weights = np.where(np.arange(N) % 4 == 3, 0.0, 1.0)
    wild, wild_y = X.copy(), y.copy()
    wild[3::4] = 1e8
    wild_y[3::4] = 1e9 if loss in ("squared", "huber") else -y[3::4]
    cases = [plain(X[weights > 0], y[weights > 0], loss, 0.05, intercept=True)]
    cases += [plain(wild, wild_y, loss, alpha=cases[0].alpha, weights=weights, intercept=True)]
    a, b = (bg.solve(case.problem(), tol=1e-11) for case in cases)
    assert a.objective == pytest.approx(b.objective, rel=1e-10)
    np.testing.assert_allclose(a.coef, b.coef, atol=1e-4)
    assert not np.any(b.dual[3::4])


@pytest.mark.parametrize("form", ["csc", "dense F"])
@every_loss
def test_an_intercept_is_an_unpenalised_column_of_ones(loss, form):
    X, y = data(17, loss)
    case = plain(X, y, loss, 0.05, intercept=True)
    column = plain(np.c_[np.ones(N), X], y, loss, alpha=case.alpha, u=np.r_[0.0, np.ones(P)])
    a, b = (bg.solve(c.problem(form), tol=1e-11) for c in (case, column))
    assert a.objective == pytest.approx(b.objective, rel=1e-10)
    assert a.intercept == pytest.approx(b.coef[0], abs=1e-4)
    np.testing.assert_allclose(a.coef, b.coef[1:], atol=1e-4)
    assert a.intercept != 0


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_an_intercept_far_from_zero_keeps_its_digits(loss):
    X, y = data(18, loss)
    near, far = (bg.solve(plain(X, y + c, loss, 0.05, intercept=True).problem(), tol=1e-6) for c in (0.0, 1e6))
    # at 1e6 a residual has ten digits left, which Huber's derivative shows as they are
    assert far.status == "converged" or (loss == "huber" and far.gap < 1e-4 * near.objective)
    assert far.intercept == pytest.approx(near.intercept + 1e6, abs=1e-2)
    assert far.objective == pytest.approx(near.objective, rel=1e-5)


@every_loss
def test_float32_columns_are_taken_as_they_are(rng, loss):
    X = random_design(rng, 60, 30, dtype=np.float32)
    y = random_targets(rng, 60, loss)
    single, double = (bg.Problem(A, y, loss=loss, alpha=0.01) for A in (X, sp.csc_array(X.astype(np.float64))))
    a, b = bg.solve(single, tol=1e-10), bg.solve(double, tol=1e-10)
    assert a.objective == pytest.approx(b.objective, rel=1e-9)
    assert double.duality_gap(a.coef, dual=a.dual) <= 1e-10 * double.null_model.objective + 1e-15


@every_loss
@pytest.mark.parametrize("n_unpenalised", [1, 5])
def test_unpenalised_features(loss, n_unpenalised):
    X, y = data(19, loss)
    case = plain(X, y, loss, 0.1, u=np.r_[np.zeros(n_unpenalised), np.ones(P - n_unpenalised)], intercept=True)
    problem = case.problem()
    solution = bg.solve(problem, tol=1e-9)
    assert_certified(case, problem, solution, 1e-9)
    assert np.all(solution.coef[:n_unpenalised] != 0)
    raised = replace(case, alpha=1.01 * problem.alpha_max)
    at_null = bg.solve(raised.problem(), tol=1e-7)
    assert (at_null.status, at_null.n_iter) == ("converged", 0)
    assert not np.any(at_null.coef[n_unpenalised:])


def test_everything_excluded_leaves_the_null_model(rng):
    problem = random_problem(rng, "logistic", 0.1, penalty_weights=np.full(40, np.inf))
    solution = bg.solve(problem.with_alpha(0.1))
    assert (solution.status, solution.n_iter) == ("converged", 0)
    assert not np.any(solution.coef)


@pytest.mark.parametrize("alpha", [1.0, 0.05])
def test_a_tol_of_zero_ends(alpha):
    """Above alpha_max the model is empty, and what rounding leaves of the gap has nothing to shrink it."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = rng.random((15, 30)), rng.integers(0, 3, size=15).astype(float)
        weights = rng.integers(0, 5, size=15).astype(float)
        problem = bg.Problem(X, y, alpha=alpha, fit_intercept=True, sample_weight=weights)
        solution = bg.solve(problem, tol=0)
        assert solution.status in ("converged", "stalled")
        assert solution.gap <= 1e-11 * problem.null_model.objective


@every_loss
@pytest.mark.parametrize("density", [1.0, 0.7])
def test_columns_far_from_zero_beside_an_intercept(loss, density, rng):
    """Taken about their means in the model, they are as easy as centred ones."""
    n = 2000
    far = np.c_[rng.integers(1990, 2020, n), 1e6 + 10 * rng.normal(size=n), -3e4 + rng.normal(size=n)]
    X = np.c_[np.where(rng.random(far.shape) < density, far, 0), rng.normal(size=(n, 5))]
    X[:, 2] = far[:, 2]
    y = random_targets(rng, n, loss)
    penalty_weights = np.std(X, axis=0)
    A = X if density == 1 else sp.csc_array(X)
    problem = bg.Problem(A, y, loss=loss, alpha=1.0, fit_intercept=True, penalty_weights=penalty_weights)
    problem = problem.with_alpha(0.1 * problem.alpha_max)
    solution = bg.solve(problem, tol=1e-7)
    assert solution.status == "converged"
    assert solution.n_iter < 30
    gap = problem.duality_gap(solution.coef, solution.intercept, solution.dual)
    assert gap <= 1.1e-7 * problem.null_model.objective
    options = {"loss": loss, "alpha": problem.alpha, "fit_intercept": True, "penalty_weights": penalty_weights}
    centred = bg.Problem(X - np.mean(X, axis=0), y, **options)
    assert bg.solve(centred, tol=1e-7).objective == pytest.approx(solution.objective, abs=2e-7)


def test_models_of_few_dense_columns_far_from_zero(rng):
    """Through the Gram matrix."""
    X = np.c_[2000 + rng.normal(size=(20_000, 5)), rng.normal(size=(20_000, 5))]
    y = X @ rng.normal(size=10) + rng.normal(size=20_000)
    problem = bg.Problem(X, y, alpha=0.01, fit_intercept=True)
    solution = bg.solve(problem, tol=1e-9)
    assert solution.status == "converged"
    assert solution.n_iter < 10
    gap = problem.duality_gap(solution.coef, solution.intercept, solution.dual)
    assert gap <= 1.1e-9 * problem.null_model.objective
