"""The oracle of the hunt is right: closed forms, other optimisers, numbers at the ends of float64."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
from hunt.draws import LOSSES
from hunt.optimum import minimise
from hunt.oracle import Exact

ROOT = Path(__file__).parent.parent


def orthogonal(n=32, p=5, seed=0):
    """Columns with x_j·x_k = n if j = k, else 0, and sums of 0; a target about 1e6."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(np.column_stack([np.ones(n), rng.normal(size=(n, p))]))
    X = np.sqrt(n) * Q[:, 1:]
    return X, 1e6 + X @ rng.normal(size=p) + rng.normal(size=n)


def test_oracle_agrees_with_the_closed_form_of_orthogonal_columns():
    X, y = orthogonal()
    alpha = 0.3
    exact = Exact(X, y, alpha=alpha, fit_intercept=True)
    product = X.T @ (y - y.mean()) / len(y)
    w = np.sign(product) * np.maximum(np.abs(product) - alpha, 0)
    residual = y - y.mean() - X @ w
    value = 0.5 * np.mean(residual**2) + alpha * np.sum(np.abs(w))
    assert float(exact.primal(w, y.mean())) == pytest.approx(value, rel=1e-11)
    verdict = exact.dual(-(residual - residual.mean()) / len(y), w)
    assert not verdict.complaints
    assert abs(exact.primal(w, y.mean()) - verdict.value) <= 1e-9 * value  # residuals of 1 of targets of 1e6
    assert float(exact.alpha_max()) == pytest.approx(np.max(np.abs(product)), rel=1e-9)
    found, _, best = minimise(exact, np.zeros(5), 0.0)
    assert found == pytest.approx(w, abs=1e-8)
    assert abs(best - value) <= 1e-9 * value


def test_null_models_agree_with_their_closed_forms():
    y = np.array([1.0, 1.0, 1.0, -1.0, 0.0])
    X, weights = np.ones((5, 1)), np.array([1.0, 2.0, 1.0, 1.0, 0.0])
    options = {"alpha": 1.0, "fit_intercept": True, "sample_weight": weights}
    entropy = -0.8 * np.log(0.8) - 0.2 * np.log(0.2)
    labels = np.where(y > 0, 1.0, -1.0)
    assert float(Exact(X, labels, loss="logistic", **options).null_objective()) == pytest.approx(entropy, rel=1e-14)
    assert float(Exact(X, labels, loss="squared_hinge", **options).null_objective()) == pytest.approx(0.64, rel=1e-14)
    assert float(Exact(X, y, **options).null_objective()) == pytest.approx(0.32, rel=1e-14)
    # 4 rows about 1, one far away: slopes (b − 1)·0.8 + 0.5·0.2 = 0
    huber = Exact(X, y, loss="huber", huber_delta=0.5, **options)
    assert float(huber.best_intercept()) == pytest.approx(0.875, rel=1e-12)
    assert Exact(X, np.ones(5), loss="logistic", alpha=1.0, fit_intercept=True).null_objective() is None


@pytest.mark.parametrize("loss", LOSSES)
def test_any_feasible_dual_point_is_below_any_primal_point(loss):
    rng = np.random.default_rng(1)
    X, offset = rng.normal(size=(20, 3)), rng.normal(size=20)
    y = np.sign(X[:, 0] + rng.normal(size=20))
    options = {"l2": 0.1, "upper": np.array([0.2, np.inf, 0.0]), "penalty_weights": np.array([1.0, 0.5, 2.0])}
    exact = Exact(X, y, loss=loss, alpha=0.05, offset=offset, sample_weight=rng.integers(0, 3, 20), **options)
    w, _, best = minimise(exact, np.zeros(3), 0.0)
    theta = np.zeros(20)
    _, slope, _ = exact.losses(exact.predictions(w))
    theta[exact.used] = exact.omega * slope
    at_best = exact.dual(theta, w)
    assert not at_best.complaints
    assert best - at_best.value == pytest.approx(0, abs=1e-9)
    for scale in (0.0, 0.5, 0.9):
        assert exact.dual(scale * theta, w).value < best


def test_dual_values_of_rows_that_are_right_by_far_keep_their_digits():
    """The loss of such a row is exp(−margin), far below the last digit of 1."""
    y, offset = np.array([-1.0, 1.0]), np.array([-60.7, 55.6])
    exact = Exact(np.zeros((2, 1)), y, loss="logistic", alpha=1.0, offset=offset, sample_weight=np.array([0.2, 0.7]))
    _, slope, _ = exact.losses(exact.predictions(np.zeros(1)))
    theta, primal = exact.omega * slope, exact.primal(np.zeros(1))
    assert 0 < primal < 1e-24
    assert abs(primal - exact.dual(theta, np.zeros(1)).value) <= 1e-15 * primal
    half = exact.dual(theta / 2, np.zeros(1)).value
    assert primal - half == pytest.approx(0.5 * (1 - np.log(2)) * primal, rel=1e-9)


def test_infeasible_dual_points_are_complained_of():
    X, y = orthogonal()
    exact = Exact(X, y, alpha=0.3, fit_intercept=True)
    residual = y - y.mean()
    theta = -(residual - residual.mean()) / len(y)
    assert "allowed" in exact.dual(theta, np.zeros(5)).complaints[0]
    assert "Σθ" in exact.dual(1e-3 * theta + 1e-6, np.zeros(5)).complaints[0]
    free = Exact(X, y, alpha=0.3, penalty_weights=np.r_[0.0, np.ones(4)])
    assert "unpenalised" in free.dual(1e-3 * X[:, 0], np.zeros(5)).complaints[0]
    huber = Exact(X, y, alpha=1e9, loss="huber", huber_delta=0.1)
    assert "domain" in huber.dual(theta, np.zeros(5)).complaints[0]


@pytest.mark.parametrize("loss", LOSSES)
def test_optimum_of_the_oracle_is_that_of_another_optimiser(loss):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 4)) * [1, 10, 0.1, 1] + [0, 1e3, 0, 5]
    y = np.sign(X[:, 0] + 0.5 * rng.normal(size=40))
    exact = Exact(X, y, loss=loss, alpha=0.02, fit_intercept=True, lower=-0.5)
    _, _, best = minimise(exact, np.zeros(4), 0.0)
    Z = np.asarray(exact.centred, dtype=np.float64)

    def value(z):  # w = a − c, both at least 0; centred columns
        return float(np.sum(exact.omega * exact.losses(Z @ (z[:4] - z[4:8]) + z[8])[0]) + 0.02 * np.sum(z[:8]))

    limits = [(0, None)] * 4 + [(0, 0.5)] * 4 + [(None, None)]
    found = scipy.optimize.minimize(value, np.zeros(9), bounds=limits, method="L-BFGS-B", options={"ftol": 1e-14})
    assert best <= found.fun + 1e-12
    assert best == pytest.approx(found.fun, rel=1e-3)


@pytest.mark.parametrize("scale", [1e-310, 1e-160, 1e160, 1e300])
def test_oracle_is_right_at_the_ends_of_float64(scale):
    """Columns times a power of two, weights divided by it and penalties times it: the same problem."""
    scale = 2.0 ** np.round(np.log2(scale))
    rng = np.random.default_rng(0)
    X, y = rng.integers(-8, 9, size=(20, 3)).astype(float), rng.normal(size=20)  # denormals hold few digits
    w, theta = rng.normal(size=3) * 1e-8, rng.normal(size=20) * 1e-3
    plain = Exact(X, y, alpha=10.0, l2=0.0, fit_intercept=True)
    far = Exact(X * scale, y, alpha=10.0, penalty_weights=np.full(3, scale), fit_intercept=True)
    # in extended precision, since the weights of denormal columns are beyond float64
    far_w = w.astype(np.longdouble) / scale
    assert abs(far.primal(far_w) - plain.primal(w)) <= 1e-15 * plain.primal(w)
    theta -= theta.mean()
    ours, theirs = plain.dual(theta, w), far.dual(theta, far_w)
    assert ours.complaints == theirs.complaints == []
    assert abs(ours.value - theirs.value) <= 1e-15 * abs(ours.value)
    standard = Exact(X * scale, y, alpha=0.1, l2=2.0, standardize=True)
    assert np.allclose((standard.l2 / plain_rms(X * scale) ** 2).astype(float), 2.0, rtol=1e-12)


def plain_rms(X):
    return np.sqrt(np.mean(X.astype(np.longdouble) ** 2, axis=0))


def test_far_limits_are_priced_at_what_better_points_can_reach():
    X, y = orthogonal()
    y = y - y.mean()
    near = Exact(X, y, alpha=0.3, upper=np.full(5, 1e20), lower=np.full(5, -1e20))
    w, _, best = minimise(near, np.zeros(5), 0.0)
    theta = near.omega * near.losses(near.predictions(w))[1] * (1 + 1e-9)  # a little beyond its constraints
    value = near.dual(theta, w).value
    assert value <= best
    assert best - value <= 1e-6 * best


@pytest.mark.parametrize(
    "name", ["case", "problems", "grids", "oracle", "optimum", "extremes", "uses", "recipes", "tables", "draws"]
)
def test_judge_and_problems_share_no_code_with_the_package(name):
    tree = ast.parse((ROOT / "hunt" / f"{name}.py").read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not [module for module in names if module.startswith("blockgreedy")]
