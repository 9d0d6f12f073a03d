"""The whole contract of a loss, against formulas in mpmath: docs/add-a-loss.md, in NumPy and in the core.

A proof rests on every line of it; a loss that breaks one would get wrong bounds without a word.
"""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import blockgreedy as bg
from blockgreedy import _core
from blockgreedy.problem.losses import Squared, make_loss
from blockgreedy.problem.null_model import best_intercept
from conftest import LOSSES

DELTA = 1.35
mpf = mpmath.mpf
EXACT = {  # each loss as a mathematician would write it
    "squared": lambda y, t: (t - y) ** 2 / 2,
    "logistic": lambda y, t: mpmath.log1p(mpmath.exp(-y * t)),
    "squared_hinge": lambda y, t: max(mpf(0), 1 - y * t) ** 2,
    "huber": lambda y, t: (
        (t - y) ** 2 / 2 if abs(t - y) <= mpf(DELTA) else mpf(DELTA) * (abs(t - y) - mpf(DELTA) / 2)
    ),
}
KINKS = {"squared": (), "logistic": (), "squared_hinge": (1.0,), "huber": (-DELTA, DELTA)}
PREDICTIONS = np.array(
    [-750.0, -37.0, -3.0, -1.35, -1.0, -0.4, -1e-9, 0.0, 1e-17, 0.3, 1.0, 1.35, 2.5, 36.9, 80.0, 700.0]
)


class InCore:
    """The core's functions under the names of the NumPy ones."""

    def __init__(self, loss):
        self.loss = loss

    def __getattr__(self, name):
        return lambda y, t: np.array(
            _core.evaluate_loss(self.loss.code, name, y, t, getattr(self.loss, "delta", 1.0))
        )


@pytest.fixture(params=[(name, side) for name in LOSSES for side in ("numpy", "core")], ids="-".join)
def case(request):
    """The loss, one side of it, its formula, and targets and predictions to try."""
    name, side = request.param
    mpmath.mp.dps = 60
    loss = make_loss(name, DELTA)
    targets = np.array([-1.0, 1.0] if loss.is_classifier else [-40.0, -1.0, 0.0, 1e-8, 2.5])
    y, t = np.repeat(targets, len(PREDICTIONS)), np.tile(PREDICTIONS, len(targets))
    return loss, loss if side == "numpy" else InCore(loss), EXACT[name], y, t


def exactly(formula, y, t):
    return np.array([float(formula(mpf(float(a)), mpf(float(b)))) for a, b in zip(y, t, strict=True)])


def slope_of(formula, y, t):
    """Of smooth points: kinks are left out by whoever asks."""
    return mpmath.diff(lambda s: formula(mpf(float(y)), s), mpf(float(t)), h=mpf(10) ** -25)


def test_value_is_the_formula(case):
    _, own, formula, y, t = case
    np.testing.assert_allclose(own.value(y, t), exactly(formula, y, t), rtol=4e-15, atol=1e-300)


def test_value_is_convex(case):
    _, own, _, y, _ = case
    rng = np.random.default_rng(0)
    y = np.repeat(np.unique(y), 500)
    a, b, s = rng.normal(scale=5, size=len(y)), rng.normal(scale=5, size=len(y)), rng.random(len(y))
    chord = s * own.value(y, a) + (1 - s) * own.value(y, b)
    assert np.all(own.value(y, s * a + (1 - s) * b) <= chord + 1e-12 * (1 + chord))


def test_deriv_is_the_slope_of_the_formula(case):
    loss, own, formula, y, t = case
    smooth = np.ones(len(y), dtype=bool)
    for kink in KINKS[loss.name]:
        smooth &= np.abs((y * t if loss.is_classifier else t - y) - kink) > 1e-9
    slopes = [float(slope_of(formula, a, b)) for a, b in zip(y[smooth], t[smooth], strict=True)]
    np.testing.assert_allclose(own.deriv(y, t)[smooth], slopes, rtol=1e-13, atol=1e-18)


def test_no_slope_changes_faster_than_the_curvature_bound_and_some_do_as_fast(case):
    loss, own, _, y, _ = case
    t = np.linspace(-45, 45, 9001)
    for target in np.unique(y):
        slopes = own.deriv(np.full(len(t), target), t)
        changes = np.diff(slopes) / np.diff(t)
        assert np.all(changes >= -1e-12)
        assert np.max(changes) <= loss.curvature_bound * (1 + 1e-9)
        assert np.max(changes) >= loss.curvature_bound * (1 - 1e-4)
        assert np.max(np.abs(slopes)) <= loss.derivative_bound
        curvature = own.curvature(np.full(len(t), target), t)
        assert np.max(curvature) <= loss.curvature_bound


def test_conjugate_is_the_supremum(case):
    """Fenchel and Young: equal at the derivative, nowhere less; the largest u·t − value of a fine grid."""
    _, own, formula, y, _ = case
    for target in np.unique(y):
        a, b = mpf(float(target)), [mpf(float(s)) for s in PREDICTIONS[(np.abs(PREDICTIONS) < 30)]]
        slopes = np.array([float(slope_of(formula, target, float(s))) for s in b])
        values = own.conjugate(np.full(len(b), target), slopes)
        for u, s, got in zip(slopes, b, values, strict=True):
            if np.isfinite(got):  # a slope may have been rounded out of the domain
                assert got == pytest.approx(float(mpf(float(u)) * s - formula(a, s)), rel=1e-12, abs=1e-14)
    rng = np.random.default_rng(1)
    y, u, s = np.repeat(np.unique(y), 400), rng.normal(size=400 * len(np.unique(y))), 0.0
    found = own.conjugate(y, u)
    for s in (-20.0, -2.0, -0.5, 0.0, 0.7, 3.0, 50.0):
        assert np.all(found >= u * s - own.value(y, np.full(len(y), s)) - 1e-12 * (1 + np.abs(u * s)))


def test_domain_ends_where_no_supremum_is_and_into_domain_goes_to_its_nearest_point(case):
    loss, own, _, y, _ = case
    u = np.linspace(-4, 4, 801)
    for target in np.unique(y):
        targets = np.full(len(u), target)
        values = own.conjugate(targets, u)
        inside = loss.into_domain(targets, u)
        assert np.all(np.isfinite(own.conjugate(targets, inside)))
        np.testing.assert_array_equal(inside[np.isfinite(values)], u[np.isfinite(values)])
        np.testing.assert_array_equal(loss.into_domain(targets, inside), inside)
        domain = u[np.isfinite(values)]
        nearest = np.clip(u, domain.min(), domain.max())
        np.testing.assert_allclose(inside, nearest, atol=0.01)  # the step of the grid
        for outside in u[~np.isfinite(values)]:  # u·t − value goes on growing
            far = np.array([1e3, 1e6, 1e9]) * np.sign(outside - inside[u == outside])
            sums = outside * far - own.value(np.full(3, target), far)
            assert np.all(np.diff(sums) > 0)


def test_lowest_is_the_infimum_and_what_a_dual_point_of_0_proves(case):
    loss, own, formula, y, t = case
    lowest = loss.lowest(y)
    assert np.all(own.value(y, t) >= lowest)
    np.testing.assert_array_equal(lowest, -own.conjugate(y, np.zeros_like(y)))
    for target in np.unique(y):
        at = {"squared": target, "huber": target}.get(loss.name, 1e4 * target)
        reached = float(formula(mpf(float(target)), mpf(float(at))))
        assert loss.lowest(np.array([target]))[0] == pytest.approx(reached, abs=1e-300)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("share", [0.0, 1e-9, 0.3, 1 - 1e-9, 1.0])
def test_the_null_value_is_the_least_of_all_constants_up_to_the_edges(name, share):
    """All rows of one class have no minimum, but an infimum; one target has its loss at 0."""
    mpmath.mp.dps = 60
    loss = make_loss(name, DELTA)
    low, high = (-1.0, 1.0) if loss.is_classifier else (-2.0, 3.0)
    weights = np.array([1 - share, share])
    used = weights > 0
    y = np.array([low, high])
    X = np.ones((2, 1))
    problem = bg.Problem(X, y, loss=loss.name, alpha=1.0, fit_intercept=True, sample_weight=weights)
    b = best_intercept(problem)

    def mean_at(s):
        return sum(mpf(float(w)) * EXACT[name](mpf(float(a)), s) for w, a in zip(weights[used], y[used], strict=True))

    least = min(
        float(mean_at(mpf(float(s))))
        for s in np.concatenate([np.linspace(-45, 45, 4001), b + np.linspace(-1e-3, 1e-3, 21)])
    )
    assert float(mean_at(mpf(float(b)))) <= least + 5e-18
    assert problem.null_model.objective == pytest.approx(float(mean_at(mpf(float(b)))), rel=1e-12, abs=1e-300)
    assert problem.null_model.objective >= problem.lowest


class Lower(Squared):
    """Convex, with a bounded curvature and its conjugate; only its minimum is not 0."""

    def value(self, y, t):
        return super().value(y, t) - 5.0

    def conjugate(self, y, u):
        return super().conjugate(y, u) + 5.0


def test_a_loss_whose_minimum_is_not_0_has_true_bounds(rng):
    X = rng.normal(size=(60, 8))
    y = 3 * X[:, 0] + rng.normal(size=60)
    best = bg.solve(bg.Problem(X, y, alpha=0.05), tol=1e-10)
    problem = bg.Problem(X, y, alpha=0.05)
    problem.loss = Lower()
    assert problem.lowest == pytest.approx(-5.0)
    optimum = problem.objective(best.coef)
    assert optimum == pytest.approx(best.objective - 5)
    for w in (np.zeros(8), 50 * rng.normal(size=8), best.coef):
        assert problem.objective(w) - problem.duality_gap(w) <= optimum + 1e-12
    assert problem.duality_gap(best.coef, dual=best.dual) == pytest.approx(best.gap, abs=1e-12)
