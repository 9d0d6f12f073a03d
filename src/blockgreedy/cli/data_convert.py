"""``blockgreedy data convert``: a file of another format, or a store of any size."""

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from blockgreedy.base.memory import bytes_text
from blockgreedy.cli.advice import codes_advice
from blockgreedy.cli.asked import OfFiles, Reading
from blockgreedy.cli.data import data_app, say_written, write_data, written_facts
from blockgreedy.cli.outputs import Output, Outputs
from blockgreedy.cli.shell import fail, failures, note, option, takes, warnings_as_lines
from blockgreedy.cli.texts import THREADS, WRONG_USE
from blockgreedy.data.conversion import Layout, convert
from blockgreedy.data.store import STORE_SUFFIX, Store
from blockgreedy.data.writing import WRITTEN, check_writable
from blockgreedy.partitions.partition import Partition

_of_output, _of_store = partial(option, "Output"), partial(option, "Stores")
_OUT = typer.Argument(metavar="OUT", help=f"What to write: {WRITTEN}; or a folder, NAME{STORE_SUFFIX}.")
_PARTITION = typer.Option(
    "--partition",
    help="Make a column group of each block of this partition, a file that blockgreedy partition wrote.",
    rich_help_panel="Stores",
)


@dataclass(frozen=True, kw_only=True)
class ConvertOptions(Reading, OfFiles):
    """What ``blockgreedy data convert`` accepts."""

    out: Annotated[Path, _OUT]
    n_features: int | None = option(
        "Data",
        None,
        "--features",
        "Svmlight: number of features (default: as many as the largest index in the file).",
    )
    unlabelled: bool = option(
        "Data", False, "--unlabelled", "Tables, .mtx, .npy: the file has no labels; 0 is written for each row."
    )
    memory: str | None = _of_store(
        None, "--memory", "The most memory to take, such as 500M or 8G (default: 2G).", metavar="<bytes>"
    )
    row_groups: int | None = _of_store(
        None, "--row-groups", "Number of row groups, of equally many rows (default: as many rows in each as fit)."
    )
    column_groups: int | None = _of_store(
        None, "--column-groups", "Number of column groups, of about equal size (default: 1)."
    )
    partition: Annotated[Path | None, _PARTITION] = None
    out_index_base: int = _of_output(
        1, "--out-index-base", "Index of the first feature in the svmlight text that is written: 0 or 1."
    )
    n_threads: int | None = option("Data", None, "--threads", THREADS)
    as_json: bool = _of_output(False, "--json", "Print one JSON object instead of a line.")
    quiet: bool = _of_output(False, "--quiet -q", "Print nothing.")

    @property
    def makes_store(self) -> bool:
        return self.out.suffix.lower() == STORE_SUFFIX

    def check(self) -> None:
        if self.out_index_base not in (0, 1):
            raise ValueError(f"out_index_base={self.out_index_base} must be 0 or 1")
        if self.makes_store:
            if self.cache:
                raise ValueError("--cache is not for stores, which need no copy")
            Layout.of(self.row_groups, self.column_groups, None)
            return
        for name in ("memory", "row_groups", "column_groups", "partition"):
            if getattr(self, name) is not None:
                raise ValueError(f"{name}={str(getattr(self, name))!r} is for stores: OUT must end in {STORE_SUFFIX}")
        if len(self.data) > 1:
            raise ValueError(f"several files can become one store: OUT must end in {STORE_SUFFIX}")
        check_writable(self.out, self.out_index_base)


@data_app.command(name="convert")
@takes(ConvertOptions)
def convert_data(options: ConvertOptions) -> None:
    """Convert data to .npz, which loads fastest, to svmlight text, or to a store, which may be larger than memory.

    A store is a folder of tiles that map into memory. It is made in bounded memory, of one file or of several with
    the same columns: svmlight text, tables and .npz (CSR) of any size, other formats if they fit. A conversion that
    was interrupted or killed goes on where it stopped when the same command is run again.

    Numbers keep their exact values. Svmlight text has no feature names, and empty columns at the end are
    lost in it.

    Exit codes: 0 done, 2 wrong use, 1 any other error, 3 interrupted.

    \b
    [bold]Examples[/]
    [cyan]blockgreedy data convert news20.svm.bz2 news20.npz --dtype float32[/]
    [cyan]blockgreedy data convert clicks.parquet clicks.npz --target clicked --categorical hour,site[/]
    [cyan]blockgreedy data convert big.svm.zst big.store --memory 2G[/]
    [cyan]blockgreedy data convert day-*.parquet days.store --target clicked --cross site,hour --row-groups 8[/]
    """
    with failures(code=WRONG_USE):
        options.check()
    if options.makes_store:
        _make_store(options)
        return
    began, data = time.perf_counter(), options.data[0]
    outputs = Outputs(
        options.inputs(data, n_features=options.n_features),
        Output("OUT", options.out, "the data"),
        *options.caches(data),
    )
    with failures():
        dataset = options.read_file(
            data, n_features=options.n_features, labelled=not options.unlabelled, n_threads=options.n_threads
        )
    if dataset.code_columns and not options.quiet:
        note(codes_advice(dataset.code_columns))
    remarks = write_data(outputs, "OUT", dataset, options.out_index_base)
    say_written(options, {"data": str(data), **written_facts(dataset, options.out, remarks, began)})


def _make_store(options: ConvertOptions) -> None:
    began = time.perf_counter()
    existing = [path for path in options.data if path.exists()]  # others may be patterns
    options.inputs(*existing, n_features=options.n_features)
    if any(path.resolve() == options.out.resolve() for path in existing):
        fail(f"OUT {options.out} would replace the data; give it another name", WRONG_USE)
    if options.partition is not None and not options.partition.is_file():
        fail(f"--partition must name an existing file, got {str(options.partition)!r}", WRONG_USE)
    stopped = f"interrupted; the same command goes on where it stopped, in {options.out}"
    with failures(stopped), warnings_as_lines(UserWarning), _progress(options.quiet or options.as_json) as see:
        partition = None if options.partition is None else Partition.load(options.partition)
        asked: dict[str, Any] = {name: value for name, value in options.of_files().items() if value not in (None, [])}
        if options.n_features is not None:
            asked["n_features"] = options.n_features
        if options.unlabelled:
            asked["labelled"] = False
        store = convert(
            [str(path) for path in options.data], options.out, memory=options.memory or "2G",
            row_groups=options.row_groups, column_groups=options.column_groups, partition=partition,
            dtype=options.dtype, n_threads=options.n_threads, progress=see, **asked,
        )  # fmt: skip
    _say_store(options, store, time.perf_counter() - began)


@contextlib.contextmanager
def _progress(quiet: bool) -> Iterator[Any]:
    """A bar for each stage, on a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("[cyan]{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        tasks: dict[str, Any] = {}

        def see(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what)
            bar.update(tasks[what], completed=done, total=total)

        yield see


def _say_store(options: ConvertOptions, store: Store, seconds: float) -> None:
    facts = {
        "data": [str(path) for path in options.data],
        "out": str(options.out),
        "n_samples": store.shape[0],
        "n_features": store.shape[1],
        "nonzeros_X": store.n_entries,
        "row_groups": store.grid[0],
        "column_groups": store.grid[1],
        "bytes": store.nbytes,
        "seconds": round(seconds, 3),
    }
    if options.as_json:
        typer.echo(json.dumps(facts))
    elif not options.quiet:
        (n, p), (rows, columns) = store.shape, store.grid
        typer.echo(
            f"{options.out}: {n:,} × {p:,}, {store.n_entries:,} nonzeros, {rows} × {columns} tiles, "
            f"{bytes_text(store.nbytes)}, {seconds:.1f} s"
        )
