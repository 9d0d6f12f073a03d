"""Problems that several test files share."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import settings

import blockgreedy as bg
from blockgreedy.problem.losses import LOSSES as LOSS_TYPES

LOSSES = tuple(LOSS_TYPES)  # all names: a new loss is tested wherever these are
UPDATES = ("add", "line-search", "sweep", "joint")
SANITIZED = os.environ.get("BLOCKGREEDY_SANITIZED", "")  # "address" or "thread" under make sanitize and make tsan

# The gate tries the same examples each time, so that it fails for what a change did; `make test` tries new ones.
settings.register_profile("gate", derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "threads: uses several threads; run by make tsan")
    config.addinivalue_line("markers", "races: a small test of a loop that threads share; run by make races")
    config.addinivalue_line("markers", "browser: needs Chromium; run by make test-browser")


def random_design(rng, n=60, p=40, density=0.3, dense=False, dtype=np.float64):
    """Continuous values, so proposals never tie."""
    X = rng.normal(size=(n, p))
    if dense:
        return np.asfortranarray(X, dtype=dtype)
    X[rng.random((n, p)) > density] = 0.0
    return sp.csc_array(X.astype(dtype))


def random_targets(rng, n, loss):
    if LOSS_TYPES[loss].is_classifier:
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


def press_ctrl_c_after(seconds):
    """In a thread; the list that is returned gets the time at which it was pressed."""
    sent = []

    def press():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(seconds, press).start()
    return sent


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def text_data():
    return bg.data.text_like(n_samples=300, n_features=400, mean_nonzeros=15, n_topics=5, seed=1)


@pytest.fixture(scope="session")
def text_npz(text_data, tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "small.npz"
    bg.save(text_data, path)
    return path


# ------------------------------------------------------------------------------- models with names of features


@pytest.fixture(scope="session")
def named_data():
    made = bg.data.text_like(400, 600, 20.0, seed=2)
    return bg.Dataset(made.X, made.y, np.array([f"wörd {k}" for k in range(600)]))


@pytest.fixture(scope="session")
def named_problem(named_data):
    problem = bg.Problem(named_data.X, named_data.y, loss="logistic", alpha=0.0, fit_intercept=True)
    return problem.with_alpha(0.05 * problem.alpha_max)


@pytest.fixture(scope="session")
def named_solution(named_problem):
    return bg.solve(named_problem, tol=1e-6)


@pytest.fixture(scope="session")
def fitted_model(named_problem, named_solution, named_data):
    settings = {"command": "blockgreedy fit", "tol": 1e-6}
    return bg.Model.of_solution(named_problem, named_solution, named_data, settings)


@pytest.fixture(scope="session")
def path_model(named_problem, named_data):
    return bg.Model.of_path(bg.solve_path(named_problem, n_alphas=7, eps=0.05), named_data)


# ------------------------------------------------------------------------------------------ models on pages


@pytest.fixture(scope="session")
def page_data():
    from made_models import make_dataset

    return make_dataset()


@pytest.fixture(scope="session")
def page_fit(page_data):
    from made_models import make_fit

    return make_fit(page_data)


@pytest.fixture(scope="session")
def page_path(page_data):
    from made_models import make_path

    return make_path(page_data)


@pytest.fixture(scope="session")
def page_models(page_data, page_fit, page_path):
    from made_models import make_regression, with_cross_validation

    cv = with_cross_validation(page_fit, page_path.alphas)
    return {"fit": page_fit, "path": page_path, "cv": cv, "regression": make_regression(page_data)}


@pytest.fixture(scope="session")
def page_files(tmp_path_factory, page_data, page_models):
    """The pages of the models, of a partition and of a reproduction of the paper."""
    from blockgreedy.reports.model_page import model_page, partition_page
    from command_line import run
    from test_reproduce import write_small_sets

    place = tmp_path_factory.mktemp("browser")
    folder = write_small_sets(place / "data")
    arguments = ["reproduce", "--data-dir", folder, "--seconds", 0.05, "--out", place / "out", "--quiet"]
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    made = {"reproduce": place / "out" / "index.html"}
    for name, model in page_models.items():
        made[name] = place / f"{name}.html"
        model_page(model).save(made[name])
    made["blocks"] = place / "blocks.html"
    X, y = page_data.X, page_data.y
    partition_page(bg.make_partition(X, y, n_blocks=16, kind="random"), X, y).save(made["blocks"])
    return made


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    from chromium import start

    opened = start(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.quit()
