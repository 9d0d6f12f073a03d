"""Random numbers that the classes of problems share: sizes, matrices, responses, labels, alphas."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from hunt.case import PATIENCE, Case
from hunt.oracle import CLASSIFIERS, Exact

Rng = np.random.Generator
LOSSES = ("squared", "huber", "logistic", "squared_hinge")


def draw_sizes(rng: Rng) -> tuple[int, int]:
    if rng.random() < 0.1:
        return int(rng.integers(2, 6)), int(rng.integers(1, 5))
    return int(np.exp(rng.uniform(np.log(8), np.log(200)))), int(np.exp(rng.uniform(0, np.log(60))))


def draw_matrix(rng: Rng, n: int, p: int) -> np.ndarray:
    X = rng.normal(size=(n, p))
    style = rng.random()
    if style < 0.35:
        X *= rng.random((n, p)) < rng.uniform(0.02, 0.6)
    elif style < 0.55:
        X = np.abs(X) * (rng.random((n, p)) < rng.uniform(0.1, 0.8))  # text-like
    elif style < 0.7:
        X += rng.normal(size=(n, 1)) * rng.uniform(0, 3)  # correlated
    return X


def draw_response(rng: Rng, X: np.ndarray) -> np.ndarray:
    """A noisy linear combination of a few standardised columns, variance about 1."""
    sd, n = X.std(axis=0), len(X)
    Z = (X - X.mean(axis=0)) / np.where(sd > 0, sd, 1)
    beta = rng.normal(size=X.shape[1]) * (rng.random(X.shape[1]) < 0.5)
    signal = Z @ beta
    signal /= max(float(signal.std()), 1e-12)
    return signal + rng.choice([1e-3, 0.1, 0.5, 2.0]) * rng.normal(size=n)


def draw_labels(rng: Rng, z: np.ndarray) -> np.ndarray:
    y = np.where(z > np.quantile(z, rng.uniform(0.2, 0.8)), 1.0, -1.0)
    if rng.random() < 0.5:
        y = np.where(rng.random(len(y)) < 0.1, -y, y)
    if len(np.unique(y)) < 2:
        y[0], y[-1] = 1.0, -1.0
    return y


def draw_loss(rng: Rng, problem: dict[str, Any], y: np.ndarray) -> np.ndarray:
    """Draws a loss, and y with it."""
    problem["loss"] = str(rng.choice(LOSSES))
    if problem["loss"] in CLASSIFIERS:
        return draw_labels(rng, y)
    if problem["loss"] == "huber":
        problem["huber_delta"] = float(rng.uniform(0.2, 3) * max(float(np.std(y)), 1e-3))
    return y


def with_alpha(rng: Rng, case: Case, least: float = 1e-6, most: float = 1.2) -> Case:
    """alpha as a part of alpha_max, evenly in the logarithm."""
    ratio = float(np.exp(rng.uniform(np.log(least), np.log(most))))
    largest = Exact(case.X, case.y, alpha=1.0, **{k: v for k, v in case.problem.items() if k != "alpha"}).alpha_max()
    alpha = ratio * largest
    case.problem["alpha"] = float(alpha) if 0 < alpha < 1e300 else 1.0
    return case


def draw_tol(rng: Rng, least: float = 1e-10) -> float:
    return float(10.0 ** rng.uniform(np.log10(least), -2))


def draw_deadline(rng: Rng, case: Case) -> None:
    """Every fit is told how long it may take: some as long as it needs, some less."""
    limit = float(np.exp(rng.uniform(np.log(0.02), np.log(0.5)))) if rng.random() < 0.15 else PATIENCE
    if "max_seconds" not in case.options and case.call not in ("curve", "damage", "deadline"):
        case.options["max_seconds"] = limit


def stored(rng: Rng, X: np.ndarray) -> Any:
    """X in a form of the package's own choosing: sparse where that makes sense."""
    if np.mean(X == 0) > 0.3 and rng.random() < 0.8:
        return sp.csc_array(X) if rng.random() < 0.5 else sp.csr_array(X)
    return np.asfortranarray(X) if rng.random() < 0.5 else X


def plain_case(rng: Rng, least_tol: float = 1e-10) -> Case:
    n, p = draw_sizes(rng)
    X = draw_matrix(rng, n, p)
    problem: dict[str, Any] = {"fit_intercept": bool(rng.random() < 0.6)}
    y = draw_loss(rng, problem, draw_response(rng, X) + rng.choice([0.0, 0.0, 3.0]))
    return Case("", 0, stored(rng, X), y, problem=problem, options={"tol": draw_tol(rng, least_tol)})
