"""scikit-learn's installed tests with our estimators in the place of its own."""

from __future__ import annotations

import importlib.util
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import sklearn.linear_model

from foreign.guests import GUESTS

CLASSES = ("another API by design", "a feature we do not have", "the peer's internals")


def borrowed(name):
    """The test functions of a file of scikit-learn's, which see our estimators wherever they name theirs."""
    path = Path(sklearn.linear_model.__file__).parent / "tests" / f"{name}.py"
    if not path.exists():
        pytest.skip(f"scikit-learn is installed without {path.name}", allow_module_level=True)
    spec = importlib.util.spec_from_file_location(f"foreign_{name}", path)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        for kind, ours in GUESTS.items():
            patch.setattr(sklearn.linear_model, kind, ours)
        spec.loader.exec_module(module)
    return {key: value for key, value in vars(module).items() if key.startswith(("test_", "pytestmark"))}
