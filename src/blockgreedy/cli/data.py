"""``blockgreedy data``: look at files, convert them, fetch public ones, make some."""

import json
import sys
import time
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer
from rich.table import Table

from blockgreedy.base.names import GeneratedSet
from blockgreedy.cli.outputs import Output, Outputs
from blockgreedy.cli.shell import App, Results, app, fail, failures, option, takes
from blockgreedy.cli.texts import THREADS, WRONG_USE
from blockgreedy.data.collection import SETS
from blockgreedy.data.dataset import Dataset
from blockgreedy.data.fetching import cache_folder, fetch, fetched
from blockgreedy.data.generate import kdda_like, shaped, text_like
from blockgreedy.data.writing import WRITTEN, check_writable, write

Kind = Literal["text", GeneratedSet]
_KINDS = get_args(Kind)
_of_shape, _of_output = partial(option, "Shape"), partial(option, "Output")
_OUT = typer.Option("--out", help=f"File to write: {WRITTEN}.", rich_help_panel="Output")

data_app = App(
    help="Inspect and convert data files, download public data sets, generate data.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
app.add_typer(data_app, name="data")


@dataclass(frozen=True)
class MakeOptions:
    """What ``blockgreedy data make`` accepts."""

    kind: Annotated[Kind, typer.Argument(metavar="KIND", help=f"One of {', '.join(_KINDS)}.")]
    out: Annotated[Path, _OUT]
    n_samples: int | None = _of_shape(None, "--samples", "Number of rows (text, kdda).")
    n_features: int | None = _of_shape(None, "--features", "Number of columns (text, kdda).")
    nonzeros_per_row: float | None = _of_shape(
        None, "--nonzeros-per-row", "Mean number of nonzero values in a row (text, kdda)."
    )
    scale: float | None = _of_shape(None, "--scale", "Size as a fraction of the real data set's (all but text).")
    seed: int = _of_shape(0, "--seed", "Random seed; another seed gives different data of the same shape.")
    n_threads: int | None = _of_shape(None, "--threads", THREADS)
    index_base: int = _of_output(1, "--index-base", "Index of the first feature in svmlight text: 0 or 1.")
    as_json: bool = _of_output(False, "--json", "Print one JSON object instead of a line.")
    quiet: bool = _of_output(False, "--quiet -q", "Print nothing.")


@data_app.command()
@takes(MakeOptions)
def make(options: MakeOptions) -> None:
    """Generate data: documents (text), or data in the shape of one of the NIPS 2012 paper's data sets.

    text makes tf-idf rows of documents on several topics, with word frequencies that follow Zipf's law. The other
    kinds have the size and the sparsity of the real data sets, not their content. Labels are -1 and +1. The same
    options give the same data, on any number of threads.

    Exit codes: 0 done, 2 wrong use, 1 any other error, 3 interrupted.

    \b
    [bold]Examples[/]
    [cyan]blockgreedy data make text --samples 5000 --features 10000 --nonzeros-per-row 50 --out text.npz[/]
    [cyan]blockgreedy data make reuters --seed 1 --out reuters.svm.gz[/]
    [cyan]blockgreedy data make kdda --scale 0.01 --out kdda.npz[/]
    """
    began = time.perf_counter()
    with failures(code=WRONG_USE):
        check_writable(options.out, options.index_base)
        outputs = Outputs([], Output("--out", options.out, "the data"))
        dataset = _generated(options)
    remarks = write_data(outputs, "out", dataset, options.index_base)
    about = {"kind": options.kind, "seed": options.seed, **written_facts(dataset, options.out, remarks, began)}
    say_written(options, about)


def _generated(options: MakeOptions) -> Dataset:
    sizes = {
        "--samples": options.n_samples,
        "--features": options.n_features,
        "--nonzeros-per-row": options.nonzeros_per_row,
    }
    given = [name for name, value in sizes.items() if value is not None]
    if options.kind == "text" and options.scale is not None:
        raise ValueError("--scale is not for text, which takes --samples, --features and --nonzeros-per-row")
    if given and options.kind not in ("text", "kdda"):
        raise ValueError(f"{given[0]} is only for text and kdda; the size of {options.kind} is set with --scale")
    if given and options.scale is not None:
        raise ValueError(f"{given[0]} and --scale cannot be combined")
    n_samples, n_features, per_row = options.n_samples, options.n_features, options.nonzeros_per_row
    if options.kind == "text":
        wanted: dict[str, Any] = {"n_samples": n_samples, "n_features": n_features, "mean_nonzeros": per_row}
        if n_features is not None:
            wanted["n_topics"] = max(1, min(50, n_features // 40))
        wanted = {name: value for name, value in wanted.items() if value is not None}
        return text_like(**wanted, seed=options.seed, n_threads=options.n_threads)
    if not given:
        scale = 1.0 if options.scale is None else options.scale
        return shaped(options.kind, options.seed, scale, options.n_threads)
    if n_samples is None or n_features is None or per_row is None:
        raise ValueError(f"kdda needs either --scale, or all of {', '.join(sizes)}")
    return kdda_like(n_samples, n_features, round(n_samples * per_row), options.seed, options.n_threads)


@dataclass(frozen=True)
class FetchOptions:
    """What ``blockgreedy data fetch`` accepts."""

    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Data sets, named as --list shows.")] = (
        None
    )
    list_sets: bool = _of_output(False, "--list", "Show the data sets that can be fetched, and fetch nothing.")
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder", help="Folder to keep the files in (default: BLOCKGREEDY_CACHE, or the system's cache folder)."
        ),
    ] = None
    as_json: bool = _of_output(False, "--json", "Print one JSON object per set instead of its path.")
    quiet: bool = _of_output(False, "--quiet -q", "Print no progress.")


@data_app.command(name="fetch")
@takes(FetchOptions)
def fetch_sets(options: FetchOptions) -> None:
    """Download public data sets of the LIBSVM collection to a cache folder, and print their paths.

    An interrupted download is resumed, and a file that is already there is not downloaded again. A download is
    checked against its published MD5 checksum where --list shows one. Its SHA-256 is recorded, and every later fetch
    checks the file against it. The numbers of rows, features and nonzeros are compared to the published ones.

    Exit codes: 0 done, 2 wrong use, 1 any other error, 3 interrupted (the next fetch resumes the download).

    \b
    [bold]Examples[/]
    [cyan]blockgreedy data fetch --list[/]
    [cyan]blockgreedy data fetch a9a real-sim[/]
    [cyan]blockgreedy fit "$(blockgreedy data fetch news20.binary -q)" --alpha-ratio 0.01[/]
    """
    names = options.names or []
    if options.list_sets:
        with failures():
            _list(options)
        return
    if not names:
        fail("name a data set to fetch; --list shows the names", WRONG_USE)
    with failures(code=WRONG_USE):
        for name in names:
            fetched(name, options.folder)  # an unknown name before the first download
    for name in names:
        with failures(), warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            path = fetch(name, folder=options.folder, progress=not options.quiet and sys.stderr.isatty())
        typer.echo(json.dumps({"name": name, "path": str(path)}) if options.as_json else str(path))
        for warning in told:
            typer.secho(f"Note: {warning.message}", err=True, fg="yellow")


def _list(options: FetchOptions) -> None:
    if options.as_json:
        for entry in SETS.values():
            path = fetched(entry.name, options.folder)
            typer.echo(json.dumps({**vars(entry), "path": None if path is None else str(path)}))
        return
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("set", no_wrap=True)
    for name in ("rows", "features", "nonzeros"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("checked by")
    table.add_column("cached", no_wrap=True)
    for entry in SETS.values():
        nonzeros = "" if entry.nonzeros is None else f"{entry.nonzeros:,}"
        known = entry.checksum.split(":")[0] if entry.checksum else ""
        here = "" if fetched(entry.name, options.folder) is None else "yes"
        table.add_row(entry.name, f"{entry.n_samples:,}", f"{entry.n_features:,}", nonzeros, known, here)
    console = Results()
    console.print(table, "")
    console.print(
        f"Files of the LIBSVM collection, kept in {cache_folder(options.folder)}. Those without a published checksum "
        "are checked against the SHA-256 of their first download.",
        soft_wrap=True,
    )


def write_data(outputs: Outputs, name: str, dataset: Dataset, index_base: int) -> list[str]:
    """What a reader of the file must know; without the file there is nothing more to do."""
    remarks: list[str] = []
    outputs.write(name, lambda path: remarks.extend(write(dataset, path, index_base=index_base)))  # type: ignore[arg-type]
    if outputs.code:
        raise typer.Exit(outputs.code)
    return remarks


def written_facts(dataset: Dataset, out: Path, remarks: list[str], began: float) -> dict[str, Any]:
    X = dataset.X
    return {
        "out": str(out),
        "n_samples": X.shape[0],
        "n_features": X.shape[1],
        "nonzeros_X": int(X.nnz) if hasattr(X, "nnz") else int((X != 0).sum()),
        "bytes": out.stat().st_size,
        "seconds": round(time.perf_counter() - began, 3),
        "remarks": remarks,
    }


def say_written(options: Any, about: dict[str, Any]) -> None:
    if options.as_json:
        typer.echo(json.dumps(about))
        return
    if options.quiet:
        return
    size = f"{about['n_samples']:,} × {about['n_features']:,}, {about['nonzeros_X']:,} nonzeros"
    typer.echo(f"{about['out']}: {size}, {_bytes(about['bytes'])}, {about['seconds']:.1f} s")
    for remark in about["remarks"]:
        typer.secho(f"Note: {remark}", err=True, fg="yellow")


def _bytes(count: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.4g} {unit}"
        count /= 1000
    return f"{count:.4g} GB"
