"""``blockgreedy cluster``: what a fit on a cluster would take."""

import json
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from blockgreedy.backends.tiles.plan import ClusterPlan
from blockgreedy.base.memory import bytes_text
from blockgreedy.cli.shell import App, Results, app, failures, option, takes, waiting
from blockgreedy.cli.texts import WRONG_USE
from blockgreedy.data.store import Store
from blockgreedy.solvers.cluster_plan import Ranks, plan_cluster

_of_cluster, _of_shape = partial(option, "Cluster"), partial(option, "Data")
_of_fit, _of_output = partial(option, "Fit"), partial(option, "Output")
_STARTED_BY_MPI = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK")  # what launchers set

cluster_app = App(help="Plan fits on a cluster.", no_args_is_help=True, rich_markup_mode="rich")
app.add_typer(cluster_app, name="cluster")


@cluster_app.callback()
def _about() -> None:
    pass


@dataclass(frozen=True)
class PlanOptions:
    """What ``blockgreedy cluster plan`` accepts."""

    machines: Annotated[int, typer.Option("--machines", help="Number of machines.", rich_help_panel="Cluster")]
    cores: Annotated[int, typer.Option("--cores", help="Cores of each machine.", rich_help_panel="Cluster")]
    store: Annotated[Path | None, typer.Argument(metavar="STORE", help="The data: a folder, NAME.store.")] = None
    gbit: float = _of_cluster(10.0, "--gbit", "Gigabits per second of a machine's network.")
    ranks_per_machine: int = _of_cluster(
        1, "--ranks-per-machine", "Processes on each machine, which share its cores as threads."
    )
    memory: str | None = _of_cluster(
        None, "--memory", "Memory of a machine, such as 64G; grids that need more are not chosen.", metavar="<bytes>"
    )
    calibrate: bool = _of_cluster(
        False,
        "--calibrate",
        "Measure the speed of this machine (about 10 s), and under mpirun also messages between ranks.",
    )
    rows: float | None = _of_shape(None, "--rows", "Without a store: number of rows, such as 8.4e6.")
    columns: float | None = _of_shape(None, "--columns", "Without a store: number of columns.")
    entries: float | None = _of_shape(None, "--entries", "Without a store: number of entries that are not 0.")
    alpha_ratio: float = _of_fit(0.01, "--alpha-ratio", "alpha as a fraction of alpha_max.")
    iterations: float | None = _of_fit(
        None, "--iterations", "Outer iterations of the fit (default: the median of measured data sets at this alpha)."
    )
    products: float | None = _of_fit(
        None, "--products", "Matrix products of the whole fit (default: the median of measured data sets)."
    )
    working_set: int | None = _of_fit(
        None, "--working-set", "Columns of the working set (default: the median of measured data sets)."
    )
    relevant: float | None = _of_fit(
        None,
        "--relevant",
        "Share of the columns that can have a nonzero weight (default: the median of measured data sets; try 0.001 "
        "if most columns have only a few entries).",
    )
    as_json: bool = _of_output(False, "--json", "Print one JSON object instead of a table.")


@cluster_app.command(name="plan")
@takes(PlanOptions)
def plan(options: PlanOptions) -> None:
    """Predict memory, messages and seconds of a fit on every grid of the ranks, and name the best grid.

    The ranks (processes) of a fit form a grid: R × C cuts the rows into R groups and the columns into C, one tile for
    each rank. The table has a line for each grid, with the numbers of its busiest rank: memory; rounds (operations
    that wait for other ranks) and bytes sent or received; seconds of the whole fit to a relative gap of 1e-4, without
    reading the data; the share of that time spent on messages. "per it." is the number before it for one outer
    iteration. How many iterations a fit takes depends on the data: the assumptions are printed below the table, and
    options replace them.

    Exit codes: 0 done, 2 wrong use, 1 any other error, 3 interrupted.

    \b
    [bold]Examples[/]
    [cyan]blockgreedy cluster plan big.store --machines 16 --cores 16 --gbit 10[/]
    [cyan]blockgreedy cluster plan --rows 8.4e6 --columns 20e6 --entries 305e6 --machines 16 --cores 16[/]
    [cyan]mpirun -n 2 blockgreedy cluster plan big.store --machines 1 --cores 2 --ranks-per-machine 2 --calibrate[/]
    """
    with failures(code=WRONG_USE):
        data = _data(options)
        found = plan_cluster(data, **_asked(options))  # wrong numbers before the measurement
    ranks = None
    if options.calibrate:
        with failures(), waiting("Measuring this machine", options.as_json):
            ranks = _ranks()
            found = plan_cluster(data, **_asked(options), terms="calibrate" if ranks is None else ranks)
    if ranks is not None and ranks.communicator.rank > 0:
        return
    if options.as_json:
        typer.echo(json.dumps({**found.as_dict(), "calibrated": options.calibrate}))
        return
    _show(Results(), found, options)


def _data(options: PlanOptions) -> Any:
    numbers = {"--rows": options.rows, "--columns": options.columns, "--entries": options.entries}
    given = [name for name, value in numbers.items() if value is not None]
    if options.store is not None:
        if given:
            raise ValueError(f"{given[0]} is for plans without a store")
        return Store(options.store)
    if len(given) < len(numbers):
        raise ValueError(f"name a store, or give all of {', '.join(numbers)}")
    for name, value in numbers.items():
        if value is None or not 1 <= value < 1e18 or value != int(value):
            raise ValueError(f"{name} {value:g} must be a whole number of at least 1")
    return tuple(int(value or 0) for value in numbers.values())


def _asked(options: PlanOptions) -> dict[str, Any]:
    names = ("machines", "cores", "gbit", "ranks_per_machine", "memory", "alpha_ratio", "iterations", "products")
    return {name: getattr(options, name) for name in (*names, "working_set", "relevant")}


def _ranks() -> Ranks | None:
    """Of the processes that mpirun has started."""
    if not any(name in os.environ for name in _STARTED_BY_MPI):
        return None
    try:
        from mpi4py import MPI
    except ImportError:
        raise ImportError(
            "mpi4py is not installed, which measures messages among ranks: pip install mpi4py"
        ) from None
    from blockgreedy.backends.tiles.mpi import MpiRank

    world = MPI.COMM_WORLD
    near = world.Split_type(MPI.COMM_TYPE_SHARED).Get_size() == world.Get_size()
    return Ranks(MpiRank(world), bool(world.allreduce(near, op=MPI.LAND)))


def _show(console: Console, found: ClusterPlan, options: PlanOptions) -> None:
    size, machines, best = found.size, found.machines, found.best
    name = "" if options.store is None else f"{options.store}: "
    console.print(
        f"{name}{size.n_samples:,} × {size.n_features:,}, {size.n_entries:,} entries, "
        f"on {_count(machines.n, 'machine')} with {_count(machines.cores, 'core')} and {machines.gbit:g} Gbit/s: "
        f"{_count(machines.n_ranks, 'rank')} of {_count(machines.threads, 'thread')}",
        soft_wrap=True,
    )
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    names = ("grid", "memory", "rounds", "per it.", "bytes", "per it.", "seconds", "per it.", "sending")
    for column in names:
        table.add_column(column, justify="right", no_wrap=True)
    for row in found.grids:
        messages = sum(value for part, value in row.seconds.items() if part.startswith("messages"))
        cells = [
            f"{row.grid[0]} × {row.grid[1]}",
            _short(row.memory_in_all),
            f"{row.rounds:,.0f}",
            f"{row.rounds / row.iterations:,.0f}",
            _short(row.n_bytes),
            _short(row.n_bytes / row.iterations),
            f"{row.total:.3g}",
            f"{row.per_iteration:.2g}",
            f"{100 * messages / row.total:.0f} %",
        ]
        table.add_row(*cells, style="bold" if row is best else "" if row.fits else "dim")
    console.print(table)
    console.print(_verdict(found), soft_wrap=True)
    work = found.work
    console.print(
        f"Assumed at alpha_max × {options.alpha_ratio:g}: {work.iterations:.0f} iterations, {work.gradients:.0f} "
        f"gradients of {100 * work.due:.0f} % of the entries, {work.products:.0f} products, working sets of "
        f"{work.working_set:,.0f} columns with {100 * work.working_entries:.0f} % of the entries, "
        f"{100 * work.relevant:.2g} % of the columns relevant. Speeds: "
        f"{'measured here' if options.calibrate else 'of an ordinary server; --calibrate measures this one'}.",
        style="dim",
        soft_wrap=True,
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _short(size: float) -> str:
    number, unit = bytes_text(size).split()
    return f"{float(number):.3g} {unit}"


def _verdict(found: ClusterPlan) -> Text:
    best, memory = found.best, found.machines.memory
    if best is None:
        least = min(grid.memory_in_all for grid in found.grids) * found.machines.ranks_each
        return Text(
            f"No grid fits: a machine needs at least {bytes_text(least)}, it has {bytes_text(memory or 0)}.",
            style="yellow",
        )
    parts = sorted(best.memory.items(), key=lambda part: -part[1])
    shares = ", ".join(f"{name} {bytes_text(value)}" for name, value in parts)
    return Text.assemble(
        ("Best: ", "bold"),
        (f"{best.grid[0]} × {best.grid[1]}", "bold"),
        f", {best.total:.3g} s. Memory of a rank: {shares}.",
    )
