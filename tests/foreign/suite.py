"""scikit-learn's installed tests with our estimators in the place of its own. Nothing of them is copied."""

from __future__ import annotations

import importlib.util
import tomllib
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest
import sklearn.linear_model

from foreign.guests import GUESTS

CLASSES = ("another API by design", "a feature we do not have", "the peer's internals")
FILES = ("test_coordinate_descent", "test_sparse_coordinate_descent", "test_logistic")


def borrowed(file):
    """The tests of one of scikit-learn's files, which see our estimators wherever they name theirs."""
    path = Path(sklearn.linear_model.__file__).parent / "tests" / f"{file}.py"
    if not path.exists():
        pytest.skip(f"scikit-learn is installed without its {path.name}", allow_module_level=True)
    spec = importlib.util.spec_from_file_location(f"borrowed_{file}", path)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:  # while it is imported: parametrisations name estimators too
        for name, ours in GUESTS.items():
            patch.setattr(sklearn.linear_model, name, ours)
        spec.loader.exec_module(module)
    tests = {name: value for name, value in vars(module).items() if name == "pytestmark" or name.startswith("test_")}
    for test in tests.values():
        if hasattr(test, "pytestmark"):
            test.pytestmark = [_with_list(mark) for mark in test.pytestmark]
    return tests


def _with_list(mark):
    """pytest warns of parameters that a generator yields, and our suite has no warnings."""
    if mark.name != "parametrize" or hasattr(mark.args[1], "__len__"):
        return mark
    return pytest.mark.parametrize(mark.args[0], list(mark.args[1]), *mark.args[2:], **mark.kwargs).mark


@cache
def known():
    """Groups of tests that our estimators fail: class, why, tests."""
    return tomllib.loads((Path(__file__).parent / "known.toml").read_text())["known"]


def why_not(file, test):
    """Why a test fails, where that is known. Listed by name, or by name[pattern of parameters]."""
    name, _, parameters = test.partition("[")
    for group in known():
        for entry in group["tests"]:
            listed_file, _, listed = entry.partition("::")
            listed_name, _, pattern = listed.partition("[")
            if (listed_file, listed_name) == (file, name) and fnmatchcase(parameters, pattern or "*"):
                return f"{group['class']}: {group['why']}"
    return None
