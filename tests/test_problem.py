"""Problem: objective, alpha_max, duality gap and optimality residual against independent computation."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Lasso

import blockgreedy as bg
from blockgreedy.problem.certificate import NumpyPasses
from blockgreedy.problem.core_problem import CoreProblem
from conftest import LOSSES, random_design, random_problem, random_targets

PENALTIES = {
    "l1": {},
    "elastic net": {"l2": 0.05},
    "weights": {"penalty_weights": np.tile([0.5, 1.0, 2.0, np.inf], 10)},
    "positive": {"positive": True},
    "box": {"lower": -0.05, "upper": np.tile([0.1, np.inf], 20)},
    "everything": {"penalty_weights": np.tile([0.5, 1.0, 2.0, np.inf], 10), "l2": 0.02, "lower": -0.1, "upper": 0.2},
    "unpenalised": {"penalty_weights": np.r_[np.zeros(3), np.ones(37)]},
    "unpenalised and positive": {"penalty_weights": np.r_[np.zeros(5), np.ones(35)], "positive": True},
    "unpenalised with bounds": {"penalty_weights": np.r_[np.zeros(5), np.ones(35)], "lower": -0.02, "upper": np.inf},
}


def test_objective_is_the_formula(rng):
    X, y = random_design(rng, dense=True), rng.normal(size=60)
    w, u = rng.normal(size=40), rng.random(40)
    problem = bg.Problem(X, y, alpha=0.3, l2=0.7, penalty_weights=u)
    expected = 0.5 * np.mean((y - X @ w) ** 2) + 0.3 * np.sum(u * np.abs(w)) + 0.35 * np.sum(w**2)
    assert problem.objective(w) == pytest.approx(expected, rel=1e-14)


def test_points_outside_of_the_box_have_infinite_objective(rng):
    problem = bg.Problem(random_design(rng), rng.normal(size=60), alpha=0.1, positive=True)
    assert problem.objective(np.full(40, -1.0)) == np.inf


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("given", ["sample_weight", "offset", "both"])
def test_the_core_s_objective_has_row_weights_and_offset(rng, loss, given):
    options = {"sample_weight": rng.integers(0, 3, 60).astype(float), "offset": rng.normal(size=60)}
    options = options if given == "both" else {given: options[given]}
    problem = random_problem(rng, loss, 0.3, **options)
    w = 0.1 * rng.normal(size=40)
    assert CoreProblem(problem, 2).objective(w, problem.X @ w) == pytest.approx(problem.objective(w), rel=1e-13)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", PENALTIES)
def test_core_and_numpy_passes_agree(rng, loss, kind):
    problem = random_problem(rng, loss, 0.3, **PENALTIES[kind])
    model, passes = CoreProblem(problem, 2), NumpyPasses(problem)
    w = np.clip(rng.normal(size=40) * 0.1 * (rng.random(40) < 0.5), problem.penalty.lower, problem.penalty.upper)
    Xw = problem.decision(w)
    theta = problem.loss.deriv(problem.y, Xw) / 60
    np.testing.assert_allclose(model.predict(w), Xw, atol=1e-13)
    assert model.objective(w, Xw) == pytest.approx(problem.objective(w), rel=1e-13)
    for at_null in (False, True):
        assert model.alpha_needed(theta, at_null) == pytest.approx(passes.alpha_needed(theta, at_null), rel=1e-12)
    scale = min(1.0, 0.999 * problem.alpha / passes.alpha_needed(theta)) if passes.alpha_needed(theta) else 1.0
    assert model.penalty_conjugate(theta, scale) == pytest.approx(
        passes.penalty_conjugate(theta, scale), rel=1e-9, abs=1e-12
    )
    assert model.core.kkt_residual(w, theta) == pytest.approx(problem.kkt_residual(w), rel=1e-10)
    products = np.empty(40)
    model.core.column_products(theta, products)
    np.testing.assert_allclose(products, problem.X.T @ theta, atol=1e-14)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", PENALTIES)
def test_gap_bounds_the_error_of_any_point(rng, loss, kind):
    problem = random_problem(rng, loss, 0.2, **PENALTIES[kind])
    best = bg.solve(problem, "greedy", tol=1e-10, max_iter=20_000).objective
    for scale in (0.0, 0.01, 0.3):
        w = np.clip(scale * rng.normal(size=40), problem.penalty.lower, problem.penalty.upper)
        assert problem.duality_gap(w) >= problem.objective(w) - best - 1e-12


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", PENALTIES)
def test_returned_dual_point_proves_the_gap(rng, loss, kind):
    problem = random_problem(rng, loss, 0.2, **PENALTIES[kind])
    solution = bg.solve(problem, "greedy", tol=1e-7, max_iter=50_000)
    assert solution.status == "converged"
    recomputed = problem.duality_gap(solution.coef, dual=solution.dual)
    assert recomputed == pytest.approx(solution.gap, abs=1e-12)
    assert recomputed <= 1e-7 * problem.null_model.objective * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("seed", range(30))
def test_sign_constraints_of_unpenalised_features_are_part_of_the_proof(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30, 8)), rng.normal(size=30)
    problem = bg.Problem(X, y, alpha=0.1, penalty_weights=np.r_[np.zeros(3), np.ones(5)], positive=True)
    solution = bg.solve(problem, n_blocks=3, tol=1e-6)
    assert solution.status == "converged"
    best = bg.solve(problem, "greedy", tol=0, max_iter=5000).objective
    assert 0 <= solution.objective - best + 1e-14 <= 1e-6 * problem.null_model.objective
    assert problem.duality_gap(solution.coef, dual=solution.dual) >= solution.objective - best - 1e-13
    for scale in (0.0, 0.1, 1.0):
        w = np.maximum(scale * rng.normal(size=8), 0)
        assert problem.duality_gap(w) >= problem.objective(w) - best - 1e-13


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("loss", ["squared", "huber", "logistic"])
def test_null_model_is_a_minimum_over_the_unpenalised_features(seed, loss):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(40, 6)), rng.standard_cauchy(40) * 3
    y = np.sign(y) if loss == "logistic" else y
    u = np.r_[np.zeros(3), np.full(3, np.inf)]
    problem = bg.Problem(X, y, loss=loss, alpha=1.0, penalty_weights=u, lower=-1.0 if seed % 2 else None)
    assert problem.kkt_residual(problem.null_model.full_coef(6)) < 1e-6


@pytest.mark.parametrize("make", [np.array, sp.csc_array])
def test_an_empty_unpenalised_feature_leaves_the_null_model_nothing_to_fit(make):
    rng, y = np.random.default_rng(0), np.where(np.arange(19) % 2, 1.0, -1.0)
    X = make(np.c_[np.zeros(19), rng.normal(size=19)])
    for _ in range(20):
        options = {"loss": "logistic", "penalty_weights": [0.0, 1.0], "offset": rng.normal(size=19)}
        problem = bg.Problem(X, y, alpha=1.0, **options)
        assert problem.null_model.objective == problem.objective(np.zeros(2))
        problem = problem.with_alpha(0.1 * problem.alpha_max)
        assert bg.solve(problem, n_threads=1).status == "converged"


def test_null_model_finds_a_far_offset_under_huber_loss():
    rng = np.random.default_rng(0)
    X = np.c_[np.ones(50), rng.normal(size=(50, 3))]
    y = 1e6 + 30 * rng.normal(size=50)
    problem = bg.Problem(X, y, loss="huber", alpha=0.1, penalty_weights=np.r_[0.0, np.ones(3)])
    assert problem.null_model.coef[0] == pytest.approx(np.median(y), abs=30)
    assert bg.solve(problem, tol=1e-4).status == "converged"


def test_very_many_unpenalised_features_are_still_solved_without_a_tight_proof(rng):
    X, y = rng.normal(size=(700, 600)), rng.normal(size=700)
    problem = bg.Problem(X, y, alpha=0.1, penalty_weights=np.zeros(600))
    solution = bg.solve(problem, "scd", max_iter=60_000)
    assert solution.status == "max_iter"
    assert solution.objective < 0.5 * problem.null_model.objective
    assert solution.gap == pytest.approx(problem.objective(solution.coef), rel=1e-9)  # θ = 0 proves no more


@pytest.mark.parametrize("n", [137, 169])
def test_huber_with_l2_is_certified_where_the_domain_rounds(n):
    rng = np.random.default_rng(0)
    problem = bg.Problem(rng.normal(size=(n, 5)), 10 * rng.normal(size=n), loss="huber", alpha=0.1, l2=0.1)
    assert bg.solve(problem, tol=1e-8).status == "converged"


def test_targets_for_which_the_loss_overflows_are_refused(rng):
    problem = bg.Problem(random_design(rng), rng.normal(size=60) * 1e200, alpha=0.1)
    with pytest.raises(ValueError, match=r"y has values up to .*e\+200, for which the loss overflows"):
        bg.solve(problem)


def test_infeasible_dual_point_proves_nothing(rng):
    problem = random_problem(rng, "logistic", 0.2)
    solution = bg.solve(problem, tol=1e-8)
    assert problem.duality_gap(solution.coef, dual=1.01 * solution.dual) == np.inf
    assert problem.duality_gap(solution.coef, dual=-solution.dual) == np.inf


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", PENALTIES)
def test_null_model_is_the_solution_exactly_from_alpha_max_on(rng, loss, kind):
    problem = random_problem(rng, loss, 1.0, **PENALTIES[kind])
    penalised = np.ones(40, dtype=bool) if problem.penalty_weights is None else problem.penalty_weights > 0
    at = bg.solve(problem.with_alpha(problem.alpha_max * (1 + 1e-9)))
    assert at.status == "converged"
    assert at.n_iter == 0
    assert np.all(at.coef[penalised] == 0)
    assert at.gap <= 1e-9 * problem.null_model.objective
    below = bg.solve(problem.with_alpha(problem.alpha_max * 0.99), tol=1e-9, max_iter=50_000)
    assert np.any(below.coef[penalised] != 0)


def test_alpha_max_agrees_with_scikit_learn(rng):
    X, y = random_design(rng, dense=True), rng.normal(size=60)
    problem = bg.Problem(X, y, alpha=1.0)
    assert problem.alpha_max == pytest.approx(np.max(np.abs(X.T @ y)) / 60, rel=1e-13)
    positive = bg.Problem(X, y, alpha=1.0, positive=True)
    assert positive.alpha_max == pytest.approx(np.max(X.T @ y) / 60, rel=1e-13)


def test_kkt_residual_vanishes_at_scikit_learns_solution(rng):
    X, y = random_design(rng, dense=True), rng.normal(size=60)
    w = Lasso(alpha=0.05, fit_intercept=False, tol=1e-14, max_iter=100_000).fit(X, y).coef_
    problem = bg.Problem(X, y, alpha=0.05)
    assert problem.kkt_residual(w) < 1e-8
    assert problem.kkt_residual(w + 0.01) > 1e-3
    assert problem.duality_gap(w) < 1e-8


@pytest.mark.parametrize("labels", [(0, 1), (-1, 1), (3, 7), ("no", "yes"), (False, True), (0.5, 2.5)])
def test_any_two_labels_are_accepted(rng, labels):
    X = random_design(rng)
    sign = random_targets(rng, 60, "logistic")
    problem = bg.Problem(X, np.where(sign > 0, labels[1], labels[0]), loss="logistic", alpha=0.1)
    np.testing.assert_array_equal(problem.y, sign)
    assert list(problem.classes) == list(labels)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": -1}, "alpha=-1 must be a finite number of at least 0"),
        ({"alpha": np.nan}, "alpha=nan must be"),
        ({"alpha": "much"}, "alpha='much' must be"),
        ({"alpha": 1, "l2": np.inf}, "l2=inf must be"),
        ({"alpha": 1, "loss": "hinge"}, "loss='hinge' is not known"),
        ({"alpha": 1, "penalty_weights": np.ones(3)}, r"penalty_weights has shape \(3,\), expected \(40,\)"),
        ({"alpha": 1, "penalty_weights": -np.ones(40)}, "penalty_weights must be at least 0"),
        ({"alpha": 1, "lower": 0.5}, "lower must satisfy lower ≤ 0 ≤ upper"),
        ({"alpha": 1, "upper": -np.ones(40)}, "upper must satisfy"),
        ({"alpha": 1, "positive": True, "lower": -1}, "positive=True and lower=… both set the lower bound"),
        ({"alpha": 1, "loss": "logistic"}, r"y holds 60 distinct value\(s\)"),
    ],
)
def test_bad_arguments_are_named(rng, arguments, message):
    with pytest.raises(ValueError, match=message):
        bg.Problem(random_design(rng), rng.normal(size=60), **arguments)


def test_bad_targets_are_named(rng):
    X = random_design(rng)
    with pytest.raises(ValueError, match=r"y has shape \(59,\), expected \(60,\)"):
        bg.Problem(X, np.ones(59), alpha=1)
    with pytest.raises(ValueError, match="y holds NaN"):
        bg.Problem(X, np.full(60, np.nan), alpha=1)
    with pytest.raises(TypeError, match="a regression loss needs numbers"):
        bg.Problem(X, np.array(["a"] * 60), alpha=1)


def test_problem_shares_its_matrix_across_alphas(rng):
    problem = random_problem(rng)
    other = problem.with_alpha(0.5)
    assert other.X is problem.X
    assert other.alpha == 0.5
    assert other.penalty.l1[0] == 0.5
    assert sp.issparse(other.X)
