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


# ------------------------------------------------------------------------------------------ pages in a browser


@pytest.fixture(scope="session")
def page_models():
    from made_models import make_dataset, make_fit, make_path, make_regression, with_cross_validation

    data = make_dataset()
    fit, path = make_fit(data), make_path(data)
    cv = with_cross_validation(fit, path.alphas)
    return {"fit": fit, "path": path, "cv": cv, "regression": make_regression(data)}


@pytest.fixture(scope="session")
def page_files(tmp_path_factory, page_models):
    """The pages of the models, of a partition and of a reproduction of the paper."""
    from typer.testing import CliRunner

    from blockgreedy.cli import app
    from blockgreedy.reports.model_page import model_page, partition_page
    from made_models import make_dataset
    from test_reproduce import write_small_sets

    place = tmp_path_factory.mktemp("browser")
    folder = write_small_sets(place / "data")
    arguments = ["reproduce", "--data-dir", folder, "--seconds", 0.05, "--out", place / "out", "--quiet"]
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    made = {"reproduce": place / "out" / "index.html"}
    for name, model in page_models.items():
        made[name] = place / f"{name}.html"
        model_page(model).save(made[name])
    data = make_dataset()
    made["blocks"] = place / "blocks.html"
    partition_page(bg.make_partition(data.X, data.y, n_blocks=16, kind="random"), data.X, data.y).save(made["blocks"])
    return made


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    from chromium import start

    opened = start(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.quit()
