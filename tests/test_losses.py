"""Each loss: C++ and NumPy agree, derivatives and conjugates are what their names say."""

import mpmath
import numpy as np
import pytest

import blockgreedy as bg
from blockgreedy import _core
from blockgreedy.problem.losses import make_loss
from blockgreedy.problem.null_model import best_intercept
from conftest import LOSSES

DELTA = 1.35
GRID = np.array(
    [
        0.0,
        1e-300,
        1e-20,
        1e-9,
        1e-3,
        0.1,
        0.34,
        0.35,
        0.41,
        0.42,
        0.5,
        0.69,
        1.0,
        1.35,
        2.0,
        7.3,
        36.0,
        37.5,
        80.0,
        709.0,
        746.0,
        1e4,
        1e300,
    ]
)


def cases(loss):
    t = np.concatenate([-GRID[::-1], GRID, np.random.default_rng(0).normal(scale=10, size=1001)])
    targets = (-1.0, 1.0) if loss.is_classifier else (-2.5, 0.0, 1e-8, 40.0)
    return np.repeat(targets, len(t)), np.tile(t, len(targets))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("what", ["value", "deriv", "curvature", "conjugate"])
def test_cpp_and_numpy_agree(name, what):
    loss = make_loss(name, DELTA)
    y, t = cases(loss)
    with np.errstate(over="ignore"):
        expected = getattr(loss, what)(y, t)
    delta = getattr(loss, "delta", 1.0)  # the one parameter that the core takes
    got = np.array(_core.evaluate_loss(loss.code, what, y, t, delta))
    # exp below 1e-307 is cut off in C++
    np.testing.assert_allclose(got, expected, rtol=2e-15 if what != "conjugate" else 1e-14, atol=1e-306)


@pytest.mark.parametrize("margin", [-700.0, -40.0, -3.0, -1e-9, 0.0, 1e-17, 0.3, 1.0, 20.0, 36.9, 300.0])
def test_logistic_value_and_derivative_match_high_precision(margin):
    mpmath.mp.dps = 50
    exact = mpmath.log1p(mpmath.exp(-mpmath.mpf(margin)))
    slope = -1 / (1 + mpmath.exp(mpmath.mpf(margin)))
    one, t = np.ones(1), np.array([margin])
    assert _core.evaluate_loss(1, "value", one, t, 1.0)[0] == pytest.approx(float(exact), rel=4e-16)
    assert _core.evaluate_loss(1, "deriv", one, t, 1.0)[0] == pytest.approx(float(slope), rel=6e-16)


@pytest.mark.parametrize("name", LOSSES)
def test_deriv_is_the_slope_of_value(name):
    loss = make_loss(name, DELTA)
    y, t = cases(loss)
    near = np.abs(t) < 50
    y, t, h = y[near], t[near], 1e-5
    slope = (loss.value(y, t + h) - loss.value(y, t - h)) / (2 * h)
    np.testing.assert_allclose(loss.deriv(y, t), slope, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_traits_are_what_the_functions_do(name):
    loss = make_loss(name, DELTA)
    y, t = cases(loss)
    y, t = y[np.abs(t) < 30], t[np.abs(t) < 30]
    curvature, deriv = loss.curvature(y, t), loss.deriv(y, t)
    assert np.max(curvature) <= loss.curvature_bound
    assert np.max(np.abs(deriv)) <= loss.derivative_bound
    np.testing.assert_allclose(loss.curvature_of(y, t, deriv), curvature, rtol=1e-9, atol=1e-15)
    assert loss.is_quadratic == (np.ptp(curvature) == 0)
    assert loss.has_flat_parts == bool(np.any(curvature == 0))
    assert loss.has_plateau == bool(np.any((loss.value(y, t) == 0) & (deriv == 0) & (y * t > 2)))
    if not loss.is_classifier:
        assert loss.depends_on_residual == np.allclose(loss.value(y + 3, t + 3), loss.value(y, t))
    assert loss.parameter == ("huber_delta" if name == "huber" else None)


@pytest.mark.parametrize("name", [name for name in LOSSES if make_loss(name, DELTA).is_classifier])
@pytest.mark.parametrize("positive", [0.1, 0.5, 0.75])
def test_null_intercept_is_the_best_constant(name, positive):
    loss = make_loss(name, DELTA)
    b = loss.null_intercept(1 - positive, positive)
    slopes = loss.deriv(np.array([-1.0, 1.0]), np.full(2, b))
    assert (1 - positive) * slopes[0] + positive * slopes[1] == pytest.approx(0, abs=1e-14)


def test_a_classifier_without_a_formula_gets_its_intercept_by_search(rng):
    class Third(type(make_loss("squared_hinge", DELTA))):
        def null_intercept(self, negative, positive):
            return None

    X, y = rng.normal(size=(40, 3)), np.where(rng.random(40) < 0.3, 1.0, -1.0)
    for offset in (None, rng.normal(size=40)):
        problem = bg.Problem(X, y, loss="squared_hinge", alpha=1.0, fit_intercept=True, offset=offset)
        expected = best_intercept(problem)
        problem.loss = Third()
        assert best_intercept(problem) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("name", LOSSES)
def test_fenchel_young_holds_with_equality_at_the_derivative(name):
    loss = make_loss(name, DELTA)
    y, t = cases(loss)
    near = np.abs(t) < 30
    y, t = y[near], t[near]
    u = loss.deriv(y, t)
    np.testing.assert_allclose(loss.value(y, t) + loss.conjugate(y, u), u * t, atol=1e-9)
    other = loss.into_domain(y, np.random.default_rng(1).normal(size=len(t)))
    assert np.all(loss.value(y, t) + loss.conjugate(y, other) >= other * t - 1e-9)


@pytest.mark.parametrize(
    ("name", "outside"),
    [("logistic", 1.5), ("logistic", -1.5), ("squared_hinge", 0.1), ("huber", 2.0), ("huber", -2.0)],
)
def test_conjugate_is_infinite_outside_of_its_domain(name, outside):
    loss = make_loss(name, DELTA)
    y, u = np.ones(1), np.array([outside])
    assert loss.conjugate(y, u)[0] == np.inf
    assert _core.evaluate_loss(loss.code, "conjugate", y, u, DELTA)[0] == np.inf
    assert np.isfinite(loss.conjugate(y, loss.into_domain(y, u))[0])


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("what", ["value", "deriv"])
def test_nan_stays_nan(name, what):
    loss = make_loss(name, DELTA)
    assert np.isnan(_core.evaluate_loss(loss.code, what, np.ones(1), np.array([np.nan]), DELTA)[0])


def test_unknown_loss_is_refused_with_the_list_of_known_ones():
    with pytest.raises(ValueError, match=r"loss='hinge' is not known; use one of 'squared', 'logistic'"):
        make_loss("hinge", 1.0)
    with pytest.raises(ValueError, match="huber_delta=0 must be"):
        make_loss("huber", 0)
