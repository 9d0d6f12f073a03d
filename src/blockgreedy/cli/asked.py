"""Options that several commands have: which data, which problem, where the results go."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import typer

from blockgreedy.base.names import LossName
from blockgreedy.base.validate import non_negative
from blockgreedy.cli.advice import codes_advice, large_columns, loss_for, scale_advice
from blockgreedy.cli.facts import pick
from blockgreedy.cli.outputs import Input, Output, Outputs, model_output, report_output
from blockgreedy.cli.shell import failures, note, option, warnings_as_lines
from blockgreedy.cli.texts import WRONG_USE
from blockgreedy.data import Dataset, load
from blockgreedy.data.cache import cache_of
from blockgreedy.data.formats import TABLES, data_file
from blockgreedy.data.loading import check_columns, check_options
from blockgreedy.data.treatment import TREATMENTS
from blockgreedy.problem.losses import make_loss
from blockgreedy.problem.problem import Problem

_of_data, _of_problem, _of_output = partial(option, "Data"), partial(option, "Problem"), partial(option, "Output")
FORMATS = "Data file: svmlight text (also compressed), .npz, .parquet, .arrow, .csv, .mtx, .npy, or a .store folder."
Loss = Literal["auto", LossName]
Dtype = Literal["float32", "float64"]
IndexBase = Literal["auto", "0", "1"]
_BASES: dict[str, Literal["auto", 0, 1]] = {"auto": "auto", "0": 0, "1": 1}


_CATEGORICAL = typer.Option(
    "--categorical",
    metavar="COLUMNS",
    help="Tables: treat these columns as categories although they hold numbers: names (a,b), a pattern (site_*), or "
    "all for every column of text, booleans or whole numbers. May be repeated.",
    rich_help_panel="Data",
)
_DROP = typer.Option(
    "--drop",
    metavar="COLUMNS",
    help="Tables: columns to leave out: names (a,b) or a pattern (id_*). May be repeated.",
    rich_help_panel="Data",
)
_CROSS = typer.Option(
    "--cross",
    metavar="COLUMNS",
    help="Tables: cross categorical columns A,B: one feature for each combination of their values. all:2 (all:3) "
    "crosses all pairs (triples) of categorical columns. May be repeated.",
    rich_help_panel="Data",
)


@dataclass(frozen=True)
class Reading:
    """How files are read."""

    needs_labels: ClassVar[bool] = False

    target: str | None = _of_data(
        None, "--target", "Tables: name of the column with the labels. .mtx, .npy: path of the file with the labels."
    )
    categorical: Annotated[list[str] | None, _CATEGORICAL] = None
    drop: Annotated[list[str] | None, _DROP] = None
    fill: str | None = _of_data(
        None,
        "--fill",
        "Tables: value for missing numbers: a number, mean or median; for single columns: price=0,age=median.",
    )
    cross: Annotated[list[str] | None, _CROSS] = None
    min_count: int = _of_data(
        1, "--min-count", "Tables: categories and combinations that occur in fewer rows than this get no feature."
    )
    dtype: Dtype | None = _of_data(
        None,
        "--dtype",
        "Type of the feature values; float32 halves the memory (default: float64, or the type of the arrays in "
        "the file).",
        choices=Dtype,
    )
    index_base: IndexBase = _of_data(
        "auto",
        "--index-base",
        "Svmlight: index of the first feature; auto: 0 if the file contains an index 0, else 1.",
        choices=IndexBase,
    )
    allow_unterminated: bool = _of_data(
        False,
        "--allow-unterminated",
        "Svmlight: accept a last line that does not end in a newline. By default this is an error, because the file "
        "may have been cut off.",
    )
    cache: bool = _of_data(
        False, "--cache", "Save a binary copy next to the data file; the next run reads it instead, which is faster."
    )

    def inputs(self, *data: Path, **more: Any) -> list[Input]:
        """The files that are read. Options that are not known, or that these files do not have, end the command."""
        found: list[Input] = []
        for path in data:
            found.append(("the data", path))
            with contextlib.suppress(ValueError):  # another ending, which reading will complain about
                format = data_file(path).format
                if self.target is not None and format.target_is_file:
                    found.append(("the labels", Path(self.target)))
                with failures(code=WRONG_USE):
                    check_options(path, **self.of_files(), **more)
                    if format is TABLES:
                        labelled = self.needs_labels or self.target is not None
                        check_columns(path, target=self.target, labelled=labelled, **self.of_tables())
        return found

    def caches(self, *data: Path) -> list[Output]:
        """The files that --cache makes."""
        kept = [cache_of(path) for path in dict.fromkeys(data) if self.cache and path.is_file()]
        return [Output("--cache", path, "the cache") for path in kept]

    def read_file(self, path: Path, **more: Any) -> Dataset:
        asked = {**self.of_files(), "dtype": self.dtype, "cache": self.cache}
        with warnings_as_lines(UserWarning):
            return load(path, **(asked | more))

    def of_tables(self) -> dict[str, Any]:
        """What becomes of the columns of a table."""
        return pick(self, " ".join(TREATMENTS))

    def of_files(self) -> dict[str, Any]:
        """The options that not every kind of file has."""
        return {
            "target": self.target,
            **self.of_tables(),
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
        dataset = self.read_file(self.data, **more)
        if dataset.code_columns and not getattr(self, "quiet", False):
            note(codes_advice(dataset.code_columns))
        return dataset


@dataclass(frozen=True)
class ProblemOptions(DataOptions):
    needs_labels: ClassVar[bool] = True

    loss: Loss = _of_problem(
        "auto", "--loss", "Default: logistic if the labels have two values, else squared.", choices=Loss
    )
    l2: float = _of_problem(0.0, "--l2", "Add a ridge penalty, l2/2 · ‖w‖².")
    positive: bool = _of_problem(False, "--positive", "Allow no negative weights.")
    fit_intercept: bool | None = _of_problem(
        None, "--intercept/--no-intercept", "Fit an intercept, which is not penalised (default: yes)."
    )
    standardize: bool = _of_problem(
        False,
        "--standardize",
        "Penalise as if every column had variance 1; recommended where columns have different scales. Weights are "
        "reported for the data as given.",
    )
    huber_delta: float = _of_problem(
        1.35, "--huber-delta", "Huber loss: residuals larger than this count linearly instead of squared."
    )

    def check(self) -> None:
        """Refuses values that no data could make right, before any file is read."""
        make_loss("huber" if self.loss == "auto" else self.loss, self.huber_delta)
        non_negative("l2", self.l2)

    def checked(
        self, model: Path | None, report: Path | None, *more: Output, also_read: Sequence[Input] = ()
    ) -> Outputs:
        """The files that the command will write, none of which it reads; what is wrong ends the command here."""
        with failures(code=WRONG_USE):
            self.check()
        written = (model_output(model), report_output(report), *more, *self.caches(self.data))
        return Outputs([*self.inputs(self.data), *also_read], *written)

    @property
    def with_intercept(self) -> bool:
        return self.fit_intercept is not False

    def make_problem(
        self, dataset: Dataset, alpha: float = 0.0, n_threads: int | None = None, **of_rows: Any
    ) -> Problem:
        """The problem that the options and the labels define; says which choices were made for the user."""
        loss, remark = (self.loss, "") if self.loss != "auto" else loss_for(dataset.y)
        settings = pick(self, "l2 positive standardize huber_delta")
        settings |= {"loss": loss, "fit_intercept": self.with_intercept}
        with warnings_as_lines(UserWarning):
            threads = getattr(self, "n_threads", None) if n_threads is None else n_threads
            problem = Problem(dataset.X, dataset.y, alpha=alpha, n_threads=threads, **settings, **of_rows)
        quiet = getattr(self, "quiet", False)
        if remark and not quiet:
            note(remark)
        large = {} if self.standardize or quiet else large_columns(dataset, problem)
        if large:
            note(scale_advice(large))
        return problem


_MODEL = typer.Option(
    "--model", help="Save the model to this .npz or .json file, for predict and report.", rich_help_panel="Output"
)
_REPORT = typer.Option(
    "--report", help="Write a report, one .html file that needs no network.", rich_help_panel="Output"
)


ModelOption = Annotated[Path | None, _MODEL]
ReportOption = Annotated[Path | None, _REPORT]
