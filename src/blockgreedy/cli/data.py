"""``blockgreedy data``: look at files, convert them, fetch public ones, make some."""

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from blockgreedy.cli.shell import FAILED, NOT_CONVERGED, WRONG_USE, app, fail, option, takes
from blockgreedy.data.dataset import Dataset
from blockgreedy.data.generate import kdda_like, shaped, text_like
from blockgreedy.data.write import WRITTEN, check_writable, write

_SHAPES = ("reuters", "news20", "realsim", "kdda")
_KINDS = ("text", *_SHAPES)
_of_shape, _of_output = partial(option, "Shape"), partial(option, "Output")
_OUT = typer.Option("--out", help=f"File to write: {WRITTEN}.", rich_help_panel="Output")

data_app = typer.Typer(
    help="Look at data files, convert them, fetch public sets, make generated ones.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
app.add_typer(data_app, name="data")


@contextlib.contextmanager
def failing(code: int = WRONG_USE) -> Iterator[None]:
    """Inside, what the library raises ends the command with a line and an exit code."""
    try:
        yield
    except (ValueError, TypeError) as error:
        fail(str(error), code)
    except (OSError, MemoryError, ImportError) as error:
        fail(str(error) or "out of memory", FAILED)
    except KeyboardInterrupt:
        fail("interrupted", NOT_CONVERGED)


@dataclass(frozen=True)
class MakeOptions:
    """What ``blockgreedy data make`` accepts."""

    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"One of {', '.join(_KINDS)}.")]
    out: Annotated[Path, _OUT]
    n_samples: int | None = _of_shape(None, "--samples", "Rows (text, kdda).")
    n_features: int | None = _of_shape(None, "--features", "Columns (text, kdda).")
    nonzeros_per_row: float | None = _of_shape(None, "--nonzeros-per-row", "Their mean (text, kdda).")
    scale: float | None = _of_shape(None, "--scale", f"Rows and columns as a part of the real set's ({_KINDS[1]} …).")
    seed: int = _of_shape(0, "--seed", "Other seeds give other data of the same shape.")
    n_threads: int | None = _of_shape(None, "--threads", "Threads; the data does not depend on them.")
    index_base: int = _of_output(1, "--index-base", "What svmlight text calls the first feature: 0 or 1.")
    as_json: bool = _of_output(False, "--json", "Print one JSON object instead of a line.")
    quiet: bool = _of_output(False, "--quiet -q", "Print nothing.")


@data_app.command()
@takes(MakeOptions)
def make(options: MakeOptions) -> None:
    """Generate data: text (tf-idf rows, Zipf's law, topics), or the shape of one of the paper's sets.

    Only the shape is that of the real set. Labels are -1 and +1. The same options give the same bits, whatever the
    number of threads.

    Exit codes: 0 done, 2 wrong use, 1 any other error, 3 interrupted.

    \b
    [bold]Examples[/]
    [cyan]blockgreedy data make text --samples 5000 --features 10000 --nonzeros-per-row 50 --out text.npz[/]
    [cyan]blockgreedy data make reuters --seed 1 --out reuters.svm.gz[/]
    [cyan]blockgreedy data make kdda --scale 0.01 --out kdda.npz[/]
    """
    began = time.perf_counter()
    with failing():
        check_writable(options.out)
        dataset = _generated(options)
        remarks = write(dataset, options.out, index_base=options.index_base)  # type: ignore[arg-type]
    about = {"kind": options.kind, "seed": options.seed, **_written(dataset, options.out, remarks, began)}
    _say(options, about)


def _generated(options: MakeOptions) -> Dataset:
    sizes = {
        "--samples": options.n_samples,
        "--features": options.n_features,
        "--nonzeros-per-row": options.nonzeros_per_row,
    }
    given = [name for name, value in sizes.items() if value is not None]
    if options.kind not in _KINDS:
        raise ValueError(f"KIND={options.kind!r} is not known; accepted are {', '.join(_KINDS)}")
    if options.kind == "text" and options.scale is not None:
        raise ValueError("--scale is for the paper's shapes; text takes --samples, --features and --nonzeros-per-row")
    if given and options.kind not in ("text", "kdda"):
        raise ValueError(f"{given[0]} is for text and kdda; {options.kind} has the real set's shape, times --scale")
    if given and options.scale is not None:
        raise ValueError(f"{given[0]} and --scale exclude each other")
    n_samples, n_features, per_row = options.n_samples, options.n_features, options.nonzeros_per_row
    if options.kind == "text":
        wanted: dict[str, Any] = {"n_samples": n_samples, "n_features": n_features, "mean_nonzeros": per_row}
        if n_features is not None:
            wanted["n_topics"] = max(1, min(50, n_features // 40))
        wanted = {name: value for name, value in wanted.items() if value is not None}
        return text_like(**wanted, seed=options.seed, n_threads=options.n_threads)
    if not given:
        scale = 1.0 if options.scale is None else options.scale
        return shaped(options.kind, options.seed, scale, options.n_threads)  # type: ignore[arg-type]
    if n_samples is None or n_features is None or per_row is None:
        raise ValueError(f"kdda takes --scale, or {', '.join(sizes)} together")
    return kdda_like(n_samples, n_features, round(n_samples * per_row), options.seed, options.n_threads)


def _written(dataset: Dataset, out: Path, remarks: list[str], began: float) -> dict[str, Any]:
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


def _say(options: Any, about: dict[str, Any]) -> None:
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
