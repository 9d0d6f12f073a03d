"""Sample weights, intercept and offset: what they mean, and that the certificate holds with all of them."""

import time

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import ElasticNet

import blockgreedy as bg
from blockgreedy.problem.certificate import NumpyPasses, dual_value, scaled_dual_point
from conftest import LOSSES, random_design, random_targets

N, P = 30, 8
PENALTIES = {
    "l1": {},
    "elastic net": {"l2": 0.05},
    "weights": {"penalty_weights": np.tile([0.5, 1.0, 2.0, np.inf], 2)},
    "positive": {"positive": True},
    "box": {"lower": -0.1, "upper": np.tile([0.1, np.inf], 4)},
    "unpenalised": {"penalty_weights": np.r_[0.0, 0.0, np.ones(6)]},
    "unpenalised positive": {"penalty_weights": np.r_[0.0, 0.0, np.ones(6)], "positive": True},
    "unpenalised, l2": {"penalty_weights": np.r_[0.0, 0.0, np.ones(6)], "l2": 0.1},
}
ROWS = {
    "plain": (),
    "weights": ("sample_weight",),
    "intercept": ("fit_intercept",),
    "offset": ("offset",),
    "weights, intercept": ("sample_weight", "fit_intercept"),
    "all": ("sample_weight", "fit_intercept", "offset"),
}


def make_problem(rng, loss, rows=(), ratio=0.2, dense=True, **penalty):
    """A problem with the named row arguments; a fifth of the weights are 0."""
    X, y = random_design(rng, N, P, density=0.5, dense=dense), random_targets(rng, N, loss)
    weights = rng.gamma(1.0, size=N) * (rng.random(N) < 0.8)
    weights[:4] = 1.0
    given = {"sample_weight": weights, "fit_intercept": True, "offset": rng.normal(size=N) + 0.5}
    given = {name: given[name] for name in rows}
    problem = bg.Problem(X, y, loss=loss, alpha=1.0, **given, **penalty)
    return problem.with_alpha(ratio * problem.alpha_max)


def random_point(rng, problem, scale=0.5):
    w = scale * rng.normal(size=P) * (rng.random(P) < 0.6)
    w = np.clip(w, problem.penalty.lower, problem.penalty.upper)
    return w, float(rng.normal()) if problem.fit_intercept else 0.0


def oracle(problem):
    """(w, b) of the optimum by L-BFGS-B on w = a - c with a and c at least 0, knowing nothing of our gradients."""
    X = np.asarray(problem.X.toarray() if sp.issparse(problem.X) else problem.X)
    omega = np.full(N, 1 / N) if problem.row_weights is None else problem.row_weights
    offset = 0.0 if problem.offset is None else problem.offset
    l1, l2, p = problem.penalty.l1, problem.l2, X.shape[1]

    def value_and_gradient(z):
        w, b = z[:p] - z[p : 2 * p], z[-1]
        t = X @ w + b + offset
        theta = omega * problem.loss.deriv(problem.y, t)
        value = omega @ problem.loss.value(problem.y, t) + l1 @ (z[:p] + z[p : 2 * p]) + 0.5 * l2 * w @ w
        grad = X.T @ theta + l2 * w
        return value, np.r_[grad + l1, -grad + l1, np.sum(theta)]

    bounds = [(0, u) for u in problem.penalty.upper] + [(0, -low) for low in problem.penalty.lower]
    bounds += [(None, None) if problem.fit_intercept else (0, 0)]
    z = np.zeros(2 * p + 1)
    for _ in range(3):  # a restart forgets a bad memory of curvatures
        z = scipy.optimize.minimize(
            value_and_gradient,
            z,
            jac=True,
            bounds=bounds,
            method="L-BFGS-B",
            options={"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-17, "gtol": 1e-12},
        ).x
    return z[:p] - z[p : 2 * p], float(z[-1])


def is_the_same(a, b, rng, rows_of_a=slice(None)):
    """Whether two problems agree on every question, rows_of_a picking the rows that b has."""
    w, intercept = random_point(rng, a)
    assert b.objective(w, intercept) == pytest.approx(a.objective(w, intercept), rel=1e-12)
    np.testing.assert_allclose(b.gradient(w, intercept), a.gradient(w, intercept), rtol=1e-10, atol=1e-13)
    assert b.kkt_residual(w, intercept) == pytest.approx(a.kkt_residual(w, intercept), rel=1e-9, abs=1e-13)
    assert b.duality_gap(w, intercept) == pytest.approx(a.duality_gap(w, intercept), rel=1e-7, abs=1e-11)
    assert b.null_model.objective == pytest.approx(a.null_model.objective, rel=1e-12, abs=1e-15)
    assert b.null_model.intercept == pytest.approx(a.null_model.intercept, rel=1e-7, abs=1e-9)
    assert b.alpha_max == pytest.approx(a.alpha_max, rel=1e-8, abs=1e-12)
    np.testing.assert_allclose(b.decision(w, intercept), a.decision(w, intercept)[rows_of_a], atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from(LOSSES),
    fit_intercept=st.booleans(),
    counts=st.lists(st.integers(0, 3), min_size=12, max_size=12),
    scale=st.sampled_from([1.0, 1e-200, 1e200, 0.3]),
)
def test_a_weight_of_k_is_a_row_k_times(seed, loss, fit_intercept, counts, scale):
    rng = np.random.default_rng(seed)
    counts = np.r_[1, 1, counts]  # both classes stay
    X, y, offset = rng.normal(size=(14, P)), random_targets(rng, 14, loss), rng.normal(size=14)
    X[counts == 0], offset[counts == 0] = 1e3, -50.0
    if loss in ("squared", "huber"):
        y[counts == 0] = 1e200  # whose square overflows
    kept = np.repeat(np.arange(14), counts)
    common = {"loss": loss, "alpha": 0.05, "fit_intercept": fit_intercept}
    weighted = bg.Problem(X, y, sample_weight=scale * counts, offset=offset, **common)
    repeated = bg.Problem(X[kept], y[kept], offset=offset[kept], **common)
    is_the_same(weighted, repeated, rng, kept)


@pytest.mark.parametrize("loss", LOSSES)
def test_equal_weights_are_no_weights(rng, loss):
    X, y = random_design(rng, N, P), random_targets(rng, N, loss)
    assert bg.Problem(X, y, loss=loss, alpha=0.1, sample_weight=np.full(N, 7)).row_weights is None
    weights = bg.Problem(X, y, loss=loss, alpha=0.1, sample_weight=np.arange(N)).row_weights
    assert np.sum(weights) == pytest.approx(1.0, abs=1e-15)
    np.testing.assert_allclose(weights, np.arange(N) / np.sum(np.arange(N)), rtol=1e-14)


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_an_offset_is_a_shift_of_regression_targets(rng, loss, fit_intercept):
    X, y, offset = random_design(rng, N, P), rng.normal(size=N), rng.normal(size=N)
    common = {"loss": loss, "alpha": 0.05, "fit_intercept": fit_intercept, "sample_weight": rng.random(N)}
    a, b = bg.Problem(X, y, offset=offset, **common), bg.Problem(X, y - offset, **common)
    w, intercept = random_point(rng, a)
    assert a.objective(w, intercept) == pytest.approx(b.objective(w, intercept), rel=1e-12)
    assert a.duality_gap(w, intercept) == pytest.approx(b.duality_gap(w, intercept), rel=1e-9)
    assert a.null_model.intercept == pytest.approx(b.null_model.intercept, abs=1e-12)
    assert a.alpha_max == pytest.approx(b.alpha_max, rel=1e-11)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_constant_offset_moves_the_intercept_only(rng, loss):
    X, y = random_design(rng, N, P), random_targets(rng, N, loss)
    a = bg.Problem(X, y, loss=loss, alpha=0.05, fit_intercept=True)
    b = bg.Problem(X, y, loss=loss, alpha=0.05, fit_intercept=True, offset=3)
    assert b.offset.shape == (N,)
    assert b.null_model.intercept == pytest.approx(a.null_model.intercept - 3, abs=1e-9)
    assert b.alpha_max == pytest.approx(a.alpha_max, rel=1e-8)
    w, intercept = random_point(rng, a)
    assert a.duality_gap(w, intercept) == pytest.approx(b.duality_gap(w, intercept - 3), rel=1e-9)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from(LOSSES),
    rows=st.sampled_from(list(ROWS)),
    kind=st.sampled_from(list(PENALTIES)),
    size=st.sampled_from([0.01, 0.5, 3.0, 100.0]),
)
def test_no_dual_point_exceeds_a_primal_one(seed, loss, rows, kind, size):
    rng = np.random.default_rng(seed)
    problem = make_problem(rng, loss, ROWS[rows], **PENALTIES[kind])
    points = [random_point(rng, problem, size) for _ in range(3)]
    points += [(problem.null_model.full_coef(P), problem.null_model.intercept), (np.zeros(P), 0.0)]
    lowest = min(problem.objective(*point) for point in points)
    for point in points:
        theta, value = scaled_dual_point(problem, problem.decision(*point), NumpyPasses(problem))
        assert 0 <= value <= lowest + 1e-12 * max(1.0, lowest)
        assert dual_value(problem, theta, NumpyPasses(problem)) == pytest.approx(value, rel=1e-9, abs=1e-12)
        assert problem.duality_gap(*point) >= -1e-12 * max(1.0, lowest)
        if problem.row_weights is not None:
            assert not np.any(theta[problem.row_weights == 0])
        if problem.fit_intercept:
            assert abs(np.sum(theta)) <= 1e-12 * np.sqrt(N) * np.linalg.norm(theta)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("kind", PENALTIES)
def test_gap_closes_at_the_optimum_of_an_independent_solver(rng, loss, rows, kind):
    problem = make_problem(rng, loss, ROWS[rows], **PENALTIES[kind])
    w, b = oracle(problem)
    f_null = problem.null_model.objective
    assert problem.kkt_residual(w, b) < 3e-6
    assert -1e-12 * f_null <= problem.duality_gap(w, b) < 2e-5 * f_null
    theta, _ = scaled_dual_point(problem, problem.decision(w, b), NumpyPasses(problem))
    assert problem.duality_gap(w, b, theta) == pytest.approx(problem.duality_gap(w, b), abs=1e-12)
    for other in (random_point(rng, problem), (np.zeros(P), 0.0)):
        error = problem.objective(*other) - problem.objective(w, b)
        assert problem.duality_gap(*other) >= error - 1e-12
        assert problem.duality_gap(*other, dual=theta) >= error - 1e-12


def test_weighted_elastic_net_with_intercept_is_scikit_learns(rng):
    X, y, weights = random_design(rng, N, P, dense=True), 5 + rng.normal(size=N), rng.random(N)
    model = ElasticNet(alpha=0.1, l1_ratio=0.5, tol=1e-14, max_iter=100_000).fit(X, y, sample_weight=weights)
    problem = bg.Problem(X, y, alpha=0.05, l2=0.05, sample_weight=weights, fit_intercept=True)
    assert problem.kkt_residual(model.coef_, model.intercept_) < 1e-7
    assert 0 <= problem.duality_gap(model.coef_, model.intercept_) + 1e-14 < 1e-7


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("kind", PENALTIES)
def test_alpha_max_is_where_the_null_model_stops_being_optimal(rng, loss, rows, kind):
    problem = make_problem(rng, loss, ROWS[rows], **PENALTIES[kind])
    null, largest = problem.null_model, problem.alpha_max
    point = null.full_coef(P), null.intercept
    assert problem.with_alpha(largest * (1 + 1e-8)).kkt_residual(*point) < 1e-9
    assert problem.with_alpha(largest * (1 + 1e-8)).duality_gap(*point) < 1e-9 * null.objective
    assert problem.with_alpha(largest * 0.99).kkt_residual(*point) > 1e-3 * largest


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from(LOSSES),
    share=st.sampled_from([0.5, 0.05, 0.0]),
    spread=st.sampled_from([0.0, 1.0, 100.0]),
    has_weights=st.booleans(),
)
def test_intercept_of_the_null_model_is_scipys(seed, loss, share, spread, has_weights):
    rng = np.random.default_rng(seed)
    y = 10 * rng.standard_cauchy(40)
    if loss in ("logistic", "squared_hinge"):
        y = np.where(rng.random(40) < share, 1.0, -1.0)
        y[0] = 1.0
    weights = rng.gamma(0.3, size=40) * (rng.random(40) < 0.7) + 1e-9 if has_weights else np.ones(40)
    offset = spread * rng.normal(size=40)
    problem = bg.Problem(
        np.ones((40, 1)), y, loss=loss, alpha=1, fit_intercept=True, sample_weight=weights, offset=offset
    )
    omega = weights / np.sum(weights)
    found = scipy.optimize.minimize_scalar(
        lambda b: omega @ problem.loss.value(problem.y, b + offset), bracket=(-1.0, 1.0), options={"xtol": 1e-12}
    )
    null = problem.null_model
    assert null.objective <= found.fun + 1e-12 * max(1.0, found.fun)
    assert null.objective == pytest.approx(problem.objective(np.zeros(1), null.intercept), rel=1e-12, abs=1e-15)
    size = np.sum(np.abs(problem.dual_at(problem.decision([0.0], null.intercept))))
    # a derivative is a difference of numbers of the offset's size, which round
    assert abs(np.sum(null.dual)) <= 1e-11 * (size + 1e-3) + 2 * np.finfo(float).eps * spread


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("offset", [None, 1000.0 * np.sin(np.arange(20.0))], ids=["no offset", "wide offset"])
def test_one_class_is_explained_by_the_intercept(loss, sign, offset):
    y = np.full(20, sign)
    y[:3] = -sign
    weights = np.where(y == sign, 1.0, 0.0)
    X = np.random.default_rng(0).normal(size=(20, 3))
    problem = bg.Problem(X, y, loss=loss, alpha=0.1, fit_intercept=True, sample_weight=weights, offset=offset)
    assert 0 <= problem.null_model.objective < 1e-15
    assert np.isfinite(problem.null_model.intercept)
    assert problem.alpha_max < 1e-15
    assert problem.duality_gap(np.zeros(3), problem.null_model.intercept) < 1e-15


def test_separable_unpenalised_features_end_the_null_model_without_noise(rng):
    X = np.c_[np.linspace(-1, 1, 20), rng.normal(size=(20, 3))]
    u = np.r_[0.0, np.ones(3)]
    problem = bg.Problem(X, X[:, 0] > 0.1, loss="logistic", alpha=0.1, fit_intercept=True, penalty_weights=u)
    assert 0 <= problem.null_model.objective < 1e-8 * np.log(2)  # there is no minimum to go on to


def test_constant_targets_are_explained_by_the_intercept(rng):
    for loss in ("squared", "huber"):
        problem = bg.Problem(random_design(rng, N, P), np.full(N, 1e6 / 3), loss=loss, alpha=0.1, fit_intercept=True)
        assert problem.null_model.objective == pytest.approx(0.0, abs=1e-18)
        assert problem.null_model.intercept == pytest.approx(1e6 / 3, rel=1e-15)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_gap_keeps_its_digits_far_from_zero(rng, loss):
    X, y = rng.normal(size=(N, P)), 1e7 + rng.normal(size=N)
    problem = bg.Problem(X, y, loss=loss, alpha=0.1, fit_intercept=True)
    near = bg.Problem(X, y - 1e7, loss=loss, alpha=0.1, fit_intercept=True)
    w = 0.1 * rng.normal(size=P)
    assert problem.duality_gap(w, 1e7) == pytest.approx(near.duality_gap(w, 0.0), abs=1e-8)


@pytest.mark.parametrize("l2", [0.0, 0.5])
def test_a_dual_point_that_ignores_the_intercept_proves_nothing(rng, l2):
    X, y = random_design(rng, N, P), rng.normal(size=N)
    without = bg.Problem(X, y, alpha=0.1, l2=l2)
    theta, value = scaled_dual_point(without, without.decision(np.zeros(P)), NumpyPasses(without))
    assert value > 0
    problem = bg.Problem(X, y, alpha=0.1, l2=l2, fit_intercept=True)
    assert problem.duality_gap(np.zeros(P), 0.0, theta) == np.inf
    weights = np.r_[np.zeros(3), np.ones(N - 3)]
    weighted = bg.Problem(X, y, alpha=0.1, l2=l2, sample_weight=weights)
    assert weighted.duality_gap(np.zeros(P), dual=theta) == np.inf  # not 0 where the weight is
    assert weighted.duality_gap(np.zeros(P), dual=np.full(N, np.nan)) == np.inf


def test_null_model_with_intercept_alone_takes_few_passes():
    n = 20_000
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.01, 1.0, -1.0)
    problem = bg.Problem(
        np.ones((n, 1)), y, loss="logistic", alpha=1, fit_intercept=True, sample_weight=rng.random(n)
    )
    seconds = []
    for _ in range(10):
        problem.__dict__.pop("null_model", None)
        started = time.perf_counter()
        assert problem.null_model.intercept < -4
        seconds.append(time.perf_counter() - started)
    assert min(seconds) < 0.01  # it takes 0.2 ms where nothing else runs


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sample_weight": np.ones(3)}, r"sample_weight has shape \(3,\), expected \(30,\)"),
        ({"sample_weight": 2.0}, r"sample_weight has shape \(\), expected \(30,\)"),
        ({"sample_weight": np.r_[np.ones(29), np.nan]}, r"sample_weight\[29\] is nan; every value must be finite"),
        ({"sample_weight": np.r_[-1.0, np.ones(29)]}, r"sample_weight\[0\] is -1.0; weights must be at least 0"),
        ({"sample_weight": np.zeros(30)}, "sample_weight is 0 everywhere"),
        ({"sample_weight": ["a"] * 30}, r"sample_weight has dtype <U1 .*; it must hold real numbers"),
        ({"offset": np.ones((30, 1))}, r"offset has shape \(30, 1\), expected \(30,\)"),
        ({"offset": np.inf}, r"offset\[0\] is inf; every value must be finite"),
        ({"fit_intercept": "yes"}, "fit_intercept='yes' must be True or False"),
    ],
)
def test_bad_row_arguments_are_named(rng, arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        bg.Problem(random_design(rng, N, P), np.ones(N), alpha=1, **arguments)


def test_an_intercept_needs_a_problem_that_has_one(rng):
    problem = make_problem(rng, "squared")
    with pytest.raises(ValueError, match=r"intercept=1.0 needs a problem with fit_intercept=True"):
        problem.objective(np.zeros(P), 1.0)
    with pytest.raises(ValueError, match=r"must be a finite number; pass a dual point as dual="):
        problem.duality_gap(np.zeros(P), np.zeros(N))
    assert "fit_intercept=True" in repr(make_problem(rng, "squared", ("fit_intercept",)))
