"""``blockgreedy reproduce``: the paper's experiments, rerun, as one page."""

import contextlib
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

from blockgreedy.base.threads import resolve_threads
from blockgreedy.cli.outputs import Output, Outputs
from blockgreedy.cli.shell import app, fail, in_options, option, takes
from blockgreedy.cli.texts import FAILED, NOT_CONVERGED, THREADS, WRONG_USE
from blockgreedy.experiments import plan
from blockgreedy.experiments.config import about_machine
from blockgreedy.experiments.files import SUFFIXES, write
from blockgreedy.experiments.plan import Job, make_plan
from blockgreedy.experiments.runs import Experiments
from blockgreedy.experiments.sets import Source, choose, data_folder

_of_data, _of_runs, _of_output = partial(option, "Data"), partial(option, "Runs"), partial(option, "Output")
_FOLDER = typer.Option(
    "--data-dir",
    help="Folder with .npz or svmlight files (default: the environment variable BLOCKGREEDY_DATA).",
    rich_help_panel="Data",
)
_OUT = typer.Option("--out", help="Folder for the page, pictures and tables.", rich_help_panel="Output")


@dataclass(frozen=True)
class ReproduceOptions:
    """What ``blockgreedy reproduce`` accepts."""

    data_dir: Annotated[Path | None, _FOLDER] = None
    sets: str = _of_data(
        "",
        "--sets",
        "Only these data sets, separated by commas. Data sets of the paper that are not in the folder are generated.",
    )
    raw: bool = _of_data(False, "--raw", "Do not scale the columns to norm 1.")
    seconds: float | None = _of_runs(
        None,
        "--seconds",
        f"The unit of all time limits (default: {plan.SECONDS:g}; with --full {plan.FULL_SECONDS:g}).",
    )
    full: bool = _of_runs(
        False, "--full", "Longer runs, and a generated replacement for every data set of the paper that is missing."
    )
    n_threads: int | None = _of_runs(None, "--threads", THREADS)
    seed: int = _of_runs(
        0, "--seed", "Random seed: for random blocks, the order in which they are used, and generated data."
    )
    out: Annotated[Path, _OUT] = Path("reproduce")
    quiet: bool = _of_output(False, "--quiet -q", "Print no progress.")


class Display:
    """What runs now, n of m, time left: a bar on a terminal, a line per part and set elsewhere."""

    def __init__(self, jobs: list[Job], wanted: bool) -> None:
        self.left = sum(job.seconds for job in jobs)
        self.wanted, self.live = wanted, wanted and sys.stderr.isatty()
        self.console = Console(stderr=True, highlight=False)
        self.progress = Progress(
            BarColumn(bar_width=12),
            MofNCompleteColumn(table_column=Column(min_width=7, no_wrap=True)),
            TimeElapsedColumn(table_column=Column(min_width=7, no_wrap=True)),
            TextColumn("[dim]{task.fields[left]}[/]", table_column=Column(min_width=18, no_wrap=True)),
            TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
            console=self.console,
            transient=True,
            expand=True,
        )
        self.task = self.progress.add_task("reading data", total=len(jobs), left=self._left())
        self.group = ""

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        with self.progress if self.live else contextlib.nullcontext():
            yield

    @contextlib.contextmanager
    def drawing(self) -> Iterator[None]:
        if not self.live:
            self.say("drawing the page")
        with self.console.status("drawing the page") if self.live else contextlib.nullcontext():
            yield

    def say(self, text: str) -> None:
        if self.live:
            self.progress.update(self.task, description=text)
        elif self.wanted:
            self.console.print(text, soft_wrap=True)

    def begin(self, job: Job) -> None:
        group = f"{job.part}: {job.set_name}"
        if self.live:
            self.say(job.title)
        elif group != self.group:
            self.say(f"{group} ({self._left()})")
        self.group = group

    def end(self, job: Job) -> None:
        self.left -= job.seconds
        self.progress.update(self.task, advance=1, left=self._left())

    def _left(self) -> str:
        return f"at most {math.ceil(max(self.left, 0) / 60)} min left"


@app.command()
@takes(ReproduceOptions)
def reproduce(options: ReproduceOptions) -> None:
    """Rerun the paper's experiments and write one HTML page with its numbers beside ours.

    Data: the files of a folder (news20, reuters, realsim and kdda are the paper's sets, others are used too);
    without a folder, generated look-alikes. The page, its pictures (SVG, PNG, one PDF), tables and traces (CSV) and
    all settings go to one folder. At its defaults a run over four sets takes at most 15 minutes on two cores. Ctrl-C
    writes the page from the finished runs.

    Exit codes: 0 done, 3 interrupted (the page is written), 2 wrong use, 1 any other error.

    \b
    [bold]Examples[/]
    [cyan]blockgreedy reproduce[/]
    [cyan]blockgreedy reproduce --data-dir data --out rerun[/]
    [cyan]blockgreedy reproduce --data-dir data --sets reuters --seconds 1[/]
    """
    seconds = options.seconds if options.seconds is not None else plan.FULL_SECONDS if options.full else plan.SECONDS
    wanted = [name.strip() for name in options.sets.split(",") if name.strip()]
    try:
        if not 0 < seconds < math.inf:
            raise ValueError(f"seconds={seconds!r} must be a number above 0")
        if options.sets and not wanted:
            raise ValueError(f"--sets {options.sets!r} names no set")
        if not 0 <= options.seed < 2**64:
            raise ValueError(f"seed={options.seed!r} must be a whole number in 0..2**64-1")
        threads = resolve_threads(options.n_threads)
        sources = choose(data_folder(options.data_dir), wanted, options.full)
    except (ValueError, TypeError, FileNotFoundError) as error:
        fail(in_options(str(error)), WRONG_USE)
    if find_spec("matplotlib") is None:
        fail("reproduce draws with matplotlib, which is not installed: pip install 'blockgreedy[report]'", FAILED)
    if options.out.exists() and not options.out.is_dir():
        fail(f"--out must name a folder, got the file {str(options.out)!r}", WRONG_USE)
    Outputs([("the data", source.path) for source in sources if source.path is not None], *_there(options.out))
    experiments = Experiments(sources, options.raw, options.seed, threads)
    results = experiments.results
    results.config = _settings(options, sources, seconds, threads)
    began = time.perf_counter()
    jobs = make_plan([source.name for source in sources], seconds)
    display = Display(jobs, not options.quiet)
    try:
        with display.shown():
            experiments.load(lambda name: display.say(f"reading {name}"))
            results.part_seconds["reading data, making blocks"] = time.perf_counter() - began
            for job in jobs:
                display.begin(job)
                experiments.do(job)
                display.end(job)
    except KeyboardInterrupt:
        results.interrupted = True
    if not results.sets:
        fail("; ".join(results.remarks) or "interrupted before there was anything to report", FAILED)
    results.config["minutes"] = round((time.perf_counter() - began) / 60, 1)
    try:
        with display.drawing():
            page = write(results, options.out)
    except OSError as error:
        fail(f"the results cannot be written: {error}", FAILED)
    for remark in results.remarks:
        typer.secho(f"Note: {remark}", err=True, fg="yellow")
    typer.echo(f"{'interrupted; the page of the finished runs: ' if results.interrupted else ''}{page}")
    raise typer.Exit(NOT_CONVERGED if results.interrupted else 0)


def _there(folder: Path) -> list[Output]:
    """What may be written anew: files of an earlier run, which could be links to something else."""
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    return [Output(f"--out {path.parent}:", path, "a file") for path in files if path.suffix in SUFFIXES]


def _settings(options: ReproduceOptions, sources: list[Source], seconds: float, threads: int) -> dict[str, Any]:
    """What ran, for config.json and the page; files by name, never by place."""
    command = f"blockgreedy reproduce --sets {','.join(source.name for source in sources)} --seconds {seconds:g}"
    command += f" --threads {threads} --seed {options.seed}"
    command += "".join(f" --{name}" for name in ("raw", "full") if getattr(options, name))
    if any(source.path is not None for source in sources):
        command += " --data-dir FOLDER"
    return {
        "command": command,
        "sets": ", ".join(source.name for source in sources),
        "generated": ", ".join(source.name for source in sources if source.path is None) or "none",
        "seconds": seconds,
        "full": options.full,
        "raw": options.raw,
        "seed": options.seed,
        "n_threads": threads,
        **about_machine(),
    }
