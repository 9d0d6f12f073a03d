"""Options that several commands have: which data, which problem, where the results go."""

import math
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray

import blockgreedy
from blockgreedy.cli.shell import FAILED, WRONG_USE, complain, fail, option, warnings_as_lines
from blockgreedy.data import Dataset, load
from blockgreedy.losses import LOSSES
from blockgreedy.model import Model
from blockgreedy.problem import Problem

_of_data, _of_problem, _of_output = partial(option, "Data"), partial(option, "Problem"), partial(option, "Output")
FORMATS = "Svmlight text (also compressed), .npz, .parquet, .arrow, .csv, .mtx or .npy."
_BASES: dict[str, Literal["auto", 0, 1]] = {"auto": "auto", "0": 0, "1": 1}


@dataclass(frozen=True)
class Reading:
    """How files are read."""

    target: str | None = _of_data(None, "--target", "Tables: the column of labels. .mtx, .npy: the file of labels.")
    categorical: str | None = _of_data(None, "--categorical", "Tables: columns of numbers that are categories: a,b.")
    dtype: str | None = _of_data(None, "--dtype", "float32 or float64 (usual for text), of the values.")
    index_base: str = _of_data("auto", "--index-base", "Svmlight: features count from 0 or 1; auto looks.")
    allow_unterminated: bool = _of_data(
        False,
        "--allow-unterminated",
        "Svmlight: the last line may lack its newline (as in a file cut off).",
    )
    cache: bool = _of_data(False, "--cache", "Keep what was read beside the file, for next time.")

    def read_file(self, path: Path, **more: Any) -> Dataset:
        if self.index_base not in _BASES:
            fail(f"--index-base {self.index_base} is not known; use auto, 0 or 1", WRONG_USE)
        if self.dtype not in (None, "float32", "float64"):
            fail(f"--dtype {self.dtype} is not known; use float32 or float64", WRONG_USE)
        asked: dict[str, Any] = {
            "target": self.target,
            "categorical": None if self.categorical is None else self.categorical.split(","),
            "dtype": self.dtype,
            "index_base": _BASES[self.index_base],
            "allow_unterminated": self.allow_unterminated,
            "cache": self.cache,
        }
        with warnings_as_lines(UserWarning):
            return load(path, **(asked | more))


@dataclass(frozen=True)
class OfFiles:
    """A base for ``Reading`` options of commands that take several files."""

    data: Annotated[list[Path], typer.Argument(metavar="DATA...", help=FORMATS)]


@dataclass(frozen=True)
class _OfData:
    data: Annotated[Path, typer.Argument(metavar="DATA", help=FORMATS)]


@dataclass(frozen=True)
class DataOptions(Reading, _OfData):
    """One file, and how it is read."""

    def read(self, **more: Any) -> Dataset:
        return self.read_file(self.data, **more)


@dataclass(frozen=True)
class ProblemOptions(DataOptions):
    loss: str = _of_problem("squared", "--loss", f"Averaged over samples: {', '.join(LOSSES)}.")
    l2: float = _of_problem(0.0, "--l2", "Adds l2/2·‖w‖².")
    positive: bool = _of_problem(False, "--positive", "Only weights of at least 0.")
    fit_intercept: bool = _of_problem(False, "--intercept", "Fit an intercept, free of penalty.")
    standardize: bool = _of_problem(False, "--standardize", "Penalise as if columns had variance 1.")
    huber_delta: float = _of_problem(1.35, "--huber-delta", "Where the Huber loss turns linear.")

    def make_problem(self, dataset: Dataset, alpha: float = 0.0) -> Problem:
        settings = pick(self, "loss l2 positive fit_intercept standardize huber_delta")
        return Problem(dataset.X, dataset.y, alpha=alpha, **settings)


def data_facts(data: Path, dataset: Dataset, problem: Problem) -> dict[str, Any]:
    X = dataset.X
    return {
        "data": str(data),
        **pick(problem, "n_samples n_features"),
        "nonzeros_X": int(X.nnz if hasattr(X, "nnz") else X.size),
    }


_MODEL = typer.Option("--model", help="Save the model to this .npz or .json file.", rich_help_panel="Output")
_REPORT = typer.Option("--report", help="Write a page about it: this .html file.", rich_help_panel="Output")


@dataclass(frozen=True)
class Outputs:
    """Where a command's results go; checked before any work is done for them."""

    data: Path
    model: Path | None = None
    report: Path | None = None
    others: tuple[tuple[str, Path | None, tuple[str, ...]], ...] = ()

    def check(self) -> None:
        for name, path, suffixes in (("--model", self.model, (".npz", ".json")), *self.others):
            check_output(name, path, suffixes, self.data)
        check_report(self.report)

    def write(self, make: Callable[[], Model]) -> int:
        """0, or the exit code of what went wrong; the rest is still written."""
        if self.model is None and self.report is None:
            return 0
        model, code = make(), 0
        if self.model is not None:
            try:
                model.save(self.model)
            except (OSError, ValueError) as error:
                code = complain(f"the model cannot be written: {error}", FAILED)
        if self.report is not None:
            code = write_report(model, self.report) or code
        return code


def write_report(model: Model, path: Path) -> int:
    from blockgreedy.pages import model_page

    try:
        model_page(model).save(path)
    except (OSError, ValueError) as error:
        return complain(f"the report cannot be written: {error}", FAILED)
    return 0


def check_output(name: str, path: Path | None, suffixes: tuple[str, ...] = (), data: Path | None = None) -> None:
    if path is None:
        return
    if data is not None and path.exists() and data.exists() and path.samefile(data):
        fail(f"{name} {path} would replace the data; give it another name", WRONG_USE)
    if path.is_dir() or not path.parent.is_dir():
        fail(f"{name} must name a file in an existing folder, got {str(path)!r}", WRONG_USE)
    if suffixes and path.suffix.lower() not in suffixes:
        fail(f"{name} must end in {' or '.join(suffixes)}, got {str(path)!r}", WRONG_USE)


def check_report(path: Path | None, name: str = "--report") -> None:
    check_output(name, path, (".html",))
    if path is not None:
        check_matplotlib(name)


def check_matplotlib(name: str) -> None:
    if find_spec("matplotlib") is None:
        fail(f"{name} needs matplotlib, which is missing: pip install 'blockgreedy[report]'", FAILED)


def show_files(console: Any, files: Mapping[str, Path | None]) -> None:
    for name, path in files.items():
        if path is not None:
            console.print(f"{name}: {path}", highlight=False)


def pick(record: Any, names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names.split()}


def finite(facts: Mapping[str, Any]) -> dict[str, Any]:
    """For JSON, which has no nan and no inf."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in facts.items()}


def numbers(values: NDArray[np.float64]) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]


def settings_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What a saved model says of how it was made."""
    command = shlex.join(["blockgreedy", *sys.argv[1:]])
    facts = {name: _readable(value) for name, value in facts.items()}
    return {"command": _readable(command), "blockgreedy": blockgreedy.__version__, **finite(facts)}


def _readable(value: Any) -> Any:
    """File names may hold bytes that are no text."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


ModelOption = Annotated[Path | None, _MODEL]
ReportOption = Annotated[Path | None, _REPORT]
