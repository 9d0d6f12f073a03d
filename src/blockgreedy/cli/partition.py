"""``blockgreedy partition``: divide the features into blocks, and see how even they are."""

import json
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from blockgreedy.base.files import replacing
from blockgreedy.base.names import PartitionKind
from blockgreedy.cli.asked import DataOptions, ReportOption
from blockgreedy.cli.facts import settings_of
from blockgreedy.cli.outputs import Output, Outputs, report_output
from blockgreedy.cli.shell import Results, app, failures, option, takes
from blockgreedy.cli.texts import MAX_LOAD, THREADS, WRONG_USE
from blockgreedy.data import Dataset
from blockgreedy.partitions.partition import Partition, make_partition
from blockgreedy.problem.columns import as_columns

_MOST_ROWS = 64  # of the table of blocks
_BAR = 16  # characters for twice the mean
_of_blocks, _of_output = partial(option, "Blocks"), partial(option, "Output")
_OUT = typer.Option("--out", help="Write the partition to this .npz file.", rich_help_panel="Output")
_PICTURE = typer.Option("--picture", help="Draw the blocks into this .png file.", rich_help_panel="Output")


@dataclass(frozen=True)
class PartitionOptions(DataOptions):
    """What ``blockgreedy partition`` accepts."""

    n_blocks: int = _of_blocks(32, "--blocks", "Number of blocks.")
    kind: PartitionKind = _of_blocks(
        "balanced",
        "--kind",
        "How features are grouped; clustered is the paper's Algorithm 2, capped the same with a limit on nonzeros.",
        choices=PartitionKind,
    )
    max_load: float | None = _of_blocks(None, "--max-load", MAX_LOAD)
    seed: int = _of_blocks(0, "--seed", "Seed of random and balanced blocks.")
    n_threads: int | None = _of_blocks(None, "--threads", THREADS)
    out: Annotated[Path | None, _OUT] = None
    picture: Annotated[Path | None, _PICTURE] = None
    report: ReportOption = None
    as_json: bool = _of_output(False, "--json", "Print one JSON object instead of the table.")


@app.command()
@takes(PartitionOptions)
def partition(options: PartitionOptions) -> None:
    """Divide the features into blocks, and show how even the blocks are.

    This is for the methods of fit other than auto. If each thread works on one block, all threads wait for the block
    with most nonzeros, so that even blocks are faster. Gradient mass says how strongly the features of a block are
    related to the labels; a block with little of it contributes little to the fit. Balanced blocks are even in both.
    The file of --out can be given to [cyan]blockgreedy fit --partition[/], for any alpha and loss.

    \b
    [bold]Examples[/]
    [cyan]blockgreedy partition data.npz --blocks 32 --kind balanced --out blocks.npz[/]
    [cyan]blockgreedy partition data.npz --kind clustered --picture blocks.png --report blocks.html[/]
    [cyan]blockgreedy partition data.npz --kind capped --max-load 1.5[/]
    """
    outputs = Outputs(
        options.inputs(options.data),
        Output("--out", options.out, "the partition", (".npz",)),
        Output("--picture", options.picture, "the picture", (".png",), is_drawn=True),
        report_output(options.report),
        *options.caches(options.data),
    )
    with failures() as stage:
        dataset = options.read(n_threads=options.n_threads)
        stage.code = WRONG_USE
        dataset = replace(dataset, X=as_columns(dataset.X, options.n_threads))  # turned once, used four times
        settings = {
            "n_blocks": options.n_blocks,
            "kind": options.kind,
            "seed": options.seed,
            **({} if options.max_load is None else {"max_load": options.max_load}),
        }
        began = time.perf_counter()
        made = make_partition(dataset.X, dataset.y, n_threads=options.n_threads, **settings)  # type: ignore[arg-type]
        seconds = time.perf_counter() - began
        described = describe(made, dataset)
        outputs.write("out", made.save)
        outputs.write("picture", lambda path: _draw(path, described, dataset.name))
        about = settings_of({"data": str(options.data), **settings, "seconds": seconds})
        outputs.write("report", lambda path: _write_page(path, made, dataset, about))
    written = {name: str(path) for name, path in outputs.written.items()}
    if options.as_json:
        typer.echo(json.dumps({"data": str(options.data), **described, "seconds": seconds, **written}))
        raise typer.Exit(outputs.code)
    console = Results()
    console.print(_table(described) if made.n_blocks <= _MOST_ROWS else "", _summary(described, dataset, seconds))
    for name, file in written.items():
        console.print(f"{name}: {file}")
    raise typer.Exit(outputs.code)


def describe(made: Partition, dataset: Dataset) -> dict[str, Any]:
    """Features, nonzeros and share of the gradient mass of each block, and how uneven they are."""
    nonzeros, mass = made.nonzeros(dataset.X), made.mass(dataset.X, dataset.y)
    return {
        "kind": made.kind,
        "seed": made.seed,
        "n_blocks": made.n_blocks,
        "features": made.sizes.tolist(),
        "nonzeros": nonzeros.tolist(),
        "mass": mass.tolist(),
        "nonzeros_max_over_mean": float(nonzeros.max() / max(nonzeros.mean(), 1)),
        "mass_max_over_mean": float(mass.max() / mass.mean()),
    }


def _table(described: dict[str, Any]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("block", "features", "nonzeros"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("mass %", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    nonzeros, mass = np.array(described["nonzeros"]), np.array(described["mass"])
    for b, size in enumerate(described["features"]):
        bars = (_bar(nonzeros[b] / max(nonzeros.mean(), 1)), _bar(mass[b] / mass.mean()))
        table.add_row(str(b), f"{size:,}", f"{nonzeros[b]:,}", bars[0], f"{100 * mass[b]:.2f}", bars[1])
    return table


def _bar(of_mean: float) -> str:
    """Full at twice the mean; what is beyond that ends in a plus."""
    length = round(_BAR / 2 * of_mean)
    return "█" * length if length <= _BAR else "█" * (_BAR - 1) + "+"


def _summary(described: dict[str, Any], dataset: Dataset, seconds: float) -> str:
    sizes = described["features"]
    uneven = [f"{described[f'{load}_max_over_mean']:.2f}" for load in ("nonzeros", "mass")]
    return (
        f"\n{dataset.name}: {described['n_blocks']:,} {described['kind']} blocks of {min(sizes):,} to {max(sizes):,} "
        f"features, made in {seconds:.3f} s\n"
        f"largest block / mean: {uneven[0]} in nonzeros, {uneven[1]} in gradient mass"
    )


def _write_page(path: Path, made: Partition, dataset: Dataset, about: dict[str, Any]) -> None:
    from blockgreedy.reports.model_page import partition_page

    partition_page(made, dataset.X, dataset.y, settings=about).save(path)


def _draw(path: Path, described: dict[str, Any], name: str) -> None:
    """Loads beside their mean, heaviest block first: the paper's Figure 3a, with the mass added."""
    from blockgreedy.reports.figures import Axis, bars

    nonzeros, mass = np.array(described["nonzeros"]), np.array(described["mass"])
    order = np.argsort(-nonzeros, kind="stable")
    loads = {"nonzeros": nonzeros / max(nonzeros.mean(), 1), "mass": mass / mass.mean()}
    picture = bars(
        "blocks",
        {load: values[order] for load, values in loads.items()},
        Axis("block, most nonzeros first"),
        Axis("load / mean of the blocks"),
        title=f"{name}: {described['n_blocks']} {described['kind']} blocks",
        alt="Nonzeros and share of the gradient mass of each block, beside their means",
    )
    with replacing(path, ".png") as file:
        file.write(picture.png)
