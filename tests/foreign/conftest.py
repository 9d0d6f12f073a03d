"""What scikit-learn's own conftest gives its tests, and the list of those that our estimators do not pass."""

import pytest


def pytest_configure(config):
    config.addinivalue_line("markers", "thread_unsafe: scikit-learn's; we run a test in one thread")


@pytest.fixture
def global_random_seed():
    return 42


@pytest.fixture
def global_dtype():
    return "float64"
