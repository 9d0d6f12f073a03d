"""Options that several commands have: which data, which problem, where the results go."""

import contextlib
import math
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray

from blockgreedy.cli.outputs import Input, Output
from blockgreedy.cli.shell import WRONG_USE, fail, failures, option, warnings_as_lines
from blockgreedy.data import Dataset, load
from blockgreedy.data.load import cache_of, check_options, kind_of
from blockgreedy.losses import LOSSES
from blockgreedy.problem import Problem
from blockgreedy.surroundings import surroundings

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

    def inputs(self, *data: Path, **more: Any) -> list[Input]:
        """The files that are read. Options that are not known, or that these files do not have, end the command."""
        if self.index_base not in _BASES:
            fail(f"--index-base {self.index_base} is not known; use auto, 0 or 1", WRONG_USE)
        if self.dtype not in (None, "float32", "float64"):
            fail(f"--dtype {self.dtype} is not known; use float32 or float64", WRONG_USE)
        found: list[Input] = []
        for path in data:
            found.append(("the data", path))
            with contextlib.suppress(ValueError):  # another ending, which reading will complain about
                kind, _ = kind_of(path)
                if self.target is not None and kind in (".mtx", ".npy"):
                    found.append(("the labels", Path(self.target)))
                with failures(code=WRONG_USE):
                    check_options(path, **self._of_files(), **more)
        return found

    def caches(self, *data: Path) -> list[Output]:
        """The files that --cache makes."""
        kept = [cache_of(path) for path in dict.fromkeys(data) if self.cache and path.is_file()]
        return [Output("--cache", path, "the cache") for path in kept]

    def read_file(self, path: Path, **more: Any) -> Dataset:
        asked = {**self._of_files(), "dtype": self.dtype, "cache": self.cache}
        with warnings_as_lines(UserWarning):
            return load(path, **(asked | more))

    def _of_files(self) -> dict[str, Any]:
        """The options that not every kind of file has."""
        return {
            "target": self.target,
            "categorical": None if self.categorical is None else self.categorical.split(","),
            "index_base": _BASES[self.index_base],
            "allow_unterminated": self.allow_unterminated,
        }


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


def show_files(console: Any, written: Mapping[str, Path]) -> None:
    for name, path in written.items():
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
    return {"command": _readable(command), **finite(facts), **surroundings()}


def _readable(value: Any) -> Any:
    """File names may hold bytes that are no text."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


ModelOption = Annotated[Path | None, _MODEL]
ReportOption = Annotated[Path | None, _REPORT]
