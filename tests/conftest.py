"""Problems that several test files share."""

from __future__ import annotations

import os

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import settings

import blockgreedy as bg

LOSSES = ("squared", "logistic", "squared_hinge", "huber")
UPDATES = ("add", "line-search", "sweep", "joint")
SANITIZED = os.environ.get("BLOCKGREEDY_SANITIZED", "")  # "address" or "thread" under make sanitize and make tsan

# The gate tries the same examples each time, so that it fails for what a change did; `make test` tries new ones.
settings.register_profile("gate", derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "threads: uses several threads; run by make tsan")
    config.addinivalue_line("markers", "browser: needs Chromium; run by make test-browser")


def random_design(rng, n=60, p=40, density=0.3, dense=False, dtype=np.float64):
    """Continuous values, so proposals never tie."""
    X = rng.normal(size=(n, p))
    if dense:
        return np.asfortranarray(X, dtype=dtype)
    X[rng.random((n, p)) > density] = 0.0
    return sp.csc_array(X.astype(dtype))


def random_targets(rng, n, loss):
    if loss in ("logistic", "squared_hinge"):
        y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
        y[:2] = (-1.0, 1.0)
        return y[:n]
    return rng.normal(size=n) * 2


def random_problem(
    rng, loss="squared", ratio=0.1, *, n=60, p=40, density=0.3, dense=False, dtype=np.float64, **penalty
):
    X = random_design(rng, n, p, density, dense, dtype)
    y = random_targets(rng, n, loss)
    problem = bg.Problem(X, y, loss=loss, alpha=1.0, **penalty)
    return problem.with_alpha(ratio * problem.alpha_max)


@pytest.fixture
def rng():
    return np.random.default_rng(0)
