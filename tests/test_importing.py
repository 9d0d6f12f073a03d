"""Importing the package: what it costs and which names it shows, to people and to type checkers."""

import os
import re
import subprocess
import sys
import tomllib

import pytest

import blockgreedy
import blockgreedy.base.names
from conftest import SANITIZED
from test_architecture import EXTRAS, ROOT, SOURCE


def test_estimators_are_loaded_when_one_is_asked_for():
    code = (
        "import sys, blockgreedy as bg; assert 'Lasso' in dir(bg) and 'sklearn' not in sys.modules; "
        "assert not hasattr(bg, 'Ridge') and 'sklearn' not in sys.modules; "
        "bg.Lasso; assert 'sklearn' in sys.modules and bg.LassoCV.__module__ == 'blockgreedy.estimators.cv_models'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_loads_no_extra_and_starts_no_thread():
    code = (
        "import sys, os, blockgreedy; "
        f"loaded = set(sys.modules) & {EXTRAS!r}; assert not loaded, loaded; "
        "assert not [k for k in os.environ if k.startswith('OMP_WAIT')]; "
        "from blockgreedy import _core; tasks = len(os.listdir('/proc/self/task')); import numpy, scipy.sparse; "
        "import importlib; importlib.reload(blockgreedy); assert len(os.listdir('/proc/self/task')) == tasks"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif(bool(SANITIZED), reason="a sanitized process starts slowly")
def test_importing_takes_under_300_ms_beyond_numpy_and_scipy():
    code = (
        "import numpy, scipy.sparse, scipy.special, time; t = time.process_time(); import blockgreedy; "
        "print(time.process_time() - t)"
    )
    times = [
        float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
        for _ in range(3)
    ]
    assert min(times) < 0.3


def test_stub_of_the_core_is_current(tmp_path):
    made = tmp_path / "_core.pyi"
    command = [sys.executable, "-m", "nanobind.stubgen", "-m", "blockgreedy._core", "-o", str(made)]
    subprocess.run(command, check=True, capture_output=True)
    assert made.read_text() == (SOURCE / "_core.pyi").read_text(), "run `make stubs`"


def test_every_public_name_exists():
    for name in blockgreedy.__all__:
        assert hasattr(blockgreedy, name)


def test_dir_lists_the_public_names_only():
    assert [name for name in dir(blockgreedy) if not name.startswith("__")] == sorted(blockgreedy.__all__)
    assert {"__version__", "__doc__", "__all__"} <= set(dir(blockgreedy))


def test_type_checkers_see_every_public_name(tmp_path):
    code = tmp_path / "uses.py"
    names = [name for name in blockgreedy.__all__ if name not in ("data", "theory")]
    code.write_text("import blockgreedy as bg\n" + "".join(f"reveal_type(bg.{name})\n" for name in names))
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--cache-dir",
        str(ROOT / "build" / "mypy"),
        "--config-file",
        os.devnull,
    ]
    command += ["--follow-imports=silent", "--ignore-missing-imports", str(code)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "MYPYPATH": str(ROOT / "src")})
    revealed = re.findall(r'Revealed type is "(.*)"', done.stdout)
    assert len(revealed) == len(names), done.stdout + done.stderr
    assert [name for name, kind in zip(names, revealed, strict=True) if kind == "Any"] == []


def test_there_is_one_version_number():
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.*)$", citation, flags=re.MULTILINE) == [blockgreedy.__version__]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["scikit-build"]["metadata"]["version"]["input"] == "src/blockgreedy/__init__.py"
