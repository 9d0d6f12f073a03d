"""``blockgreedy diagnose``: what the theory says about blocks on some data, before any run."""

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from blockgreedy.base.names import PARTITION_KINDS
from blockgreedy.base.validate import whole
from blockgreedy.cli.asked import OfFiles, Reading
from blockgreedy.cli.outputs import Outputs
from blockgreedy.cli.shell import Results, app, fail, failures, option, takes
from blockgreedy.cli.texts import MAX_LOAD, THREADS, WRONG_USE
from blockgreedy.data import Dataset
from blockgreedy.partitions.bounds import Bound
from blockgreedy.partitions.diagnose import BlockDiagnosis, Diagnosis
from blockgreedy.partitions.diagnose import diagnose as diagnose_blocks
from blockgreedy.partitions.partition import make_partition
from blockgreedy.partitions.theory import BUDGET

_KINDS = ",".join(kind for kind in PARTITION_KINDS if kind != "contiguous")
_SIGNS = {"upper": "≤", "lower": "≥", "exact": "="}
_of_blocks, _of_effort, _of_output = (partial(option, panel) for panel in ("Blocks", "Effort", "Output"))


@dataclass(frozen=True)
class DiagnoseOptions(Reading, OfFiles):
    """What ``blockgreedy diagnose`` accepts."""

    n_blocks: int = _of_blocks(32, "--blocks", "Number of blocks, B.")
    kinds: str = _of_blocks(_KINDS, "--kinds", f"Kinds of partition, from {', '.join(PARTITION_KINDS)}.")
    blocks_per_iter: int | None = _of_blocks(
        None,
        "--blocks-per-iter",
        "Number of blocks updated in each iteration, P; epsilon depends on it (default: all).",
    )
    max_load: float | None = _of_blocks(None, "--max-load", MAX_LOAD)
    seed: int = _of_blocks(0, "--seed", "Seed of random blocks and of sampling.")
    center: bool = _of_blocks(False, "--center", "Subtract the means of the columns first.")
    n_threads: int | None = _of_effort(None, "--threads", THREADS)
    budget: float = _of_effort(
        BUDGET,
        "--budget",
        "Largest number of multiplications to spend on inner products of columns; data that need more are sampled.",
    )
    as_json: bool = _of_output(False, "--json", "Print one JSON object per file instead of the table.")
    quiet: bool = _of_output(False, "--quiet -q", "Print no progress.")


@app.command()
@takes(DiagnoseOptions)
def diagnose(options: DiagnoseOptions) -> None:
    """Analyse blocks of features before a fit: how many can safely be updated at once, and how even they are.

    This is for the methods of fit other than auto. Several kinds of partition are compared: rho_block, a measure of
    how correlated features of different blocks are; epsilon, which must be below 1 for a guarantee that
    fit --update add converges; the safe number P of blocks per iteration; the scales of steps that are safe with the
    P asked for; the balance of the blocks; and duplicate columns in different blocks. Written advice follows. Columns
    are scaled to norm 1 first. Numbers are proven bounds; those marked ~ are estimates from a sample of the columns.

    Exit codes: 0 done, 2 wrong use, 1 any other error, 3 interrupted.

    \b
    [bold]Examples[/]
    [cyan]blockgreedy diagnose reuters.npz --blocks 32[/]
    [cyan]blockgreedy diagnose a.npz b.npz --kinds random,clustered --blocks-per-iter 4[/]
    [cyan]blockgreedy diagnose data.svm --center --json > diagnosis.json[/]
    """
    kinds = [kind.strip() for kind in options.kinds.split(",")]
    unknown = [kind for kind in kinds if kind not in PARTITION_KINDS]
    if unknown:
        fail(f"--kinds has {unknown[0]!r}; accepted are {', '.join(PARTITION_KINDS)}, with commas between", WRONG_USE)
    if options.max_load is not None and "capped" not in kinds:
        fail(f"--max-load goes with capped blocks, which --kinds {options.kinds} does not name", WRONG_USE)
    Outputs(options.inputs(*options.data), *options.caches(*options.data))
    for path in options.data:
        with failures() as stage, _saying(options, f"{path.name}: loading") as say:
            dataset = options.read_file(path, n_threads=options.n_threads)
            stage.code = WRONG_USE  # what is wrong from here on is what was asked for
            found, seconds = _diagnose(options, kinds, dataset, lambda text, p=path, s=say: s(f"{p.name}: {text}"))
        if options.as_json:
            typer.echo(json.dumps({"data": str(path), **found.to_dict(), "seconds": seconds}))
        else:
            _print(Results(), str(path), found, seconds)


@contextlib.contextmanager
def _saying(options: DiagnoseOptions, text: str) -> Iterator[Any]:
    if options.quiet or not sys.stderr.isatty():
        yield lambda text: None
        return
    with Console(stderr=True).status(text) as status:
        yield status.update


def _diagnose(
    options: DiagnoseOptions, kinds: list[str], dataset: Dataset, say: Any
) -> tuple[Diagnosis, dict[str, float]]:
    seconds, partitions = {}, {}
    if options.blocks_per_iter is not None:  # before the work, not after it
        whole("blocks_per_iter", options.blocks_per_iter, 1, options.n_blocks)
    for kind in kinds:
        say(f"{kind} blocks")
        began = time.perf_counter()
        partitions[kind] = make_partition(
            dataset.X,
            dataset.y,
            n_blocks=options.n_blocks,
            kind=kind,
            max_load=options.max_load if kind == "capped" else None,
            seed=options.seed,
            n_threads=options.n_threads,
        )
        seconds[f"partition {kind}"] = time.perf_counter() - began
    say("bounds")
    began = time.perf_counter()
    found = diagnose_blocks(
        dataset.X,
        partitions,
        dataset.y,
        blocks_per_iter=options.blocks_per_iter,
        center=options.center,
        budget=options.budget,
        seed=options.seed,
        n_threads=options.n_threads,
    )
    seconds["diagnosis"] = time.perf_counter() - began
    return found, seconds


def _print(console: Console, path: str, found: Diagnosis, seconds: dict[str, float]) -> None:
    size = f"{found.n_samples:,} × {found.n_features:,}, {found.n_nonzeros:,} nonzeros"
    columns = "columns centred, at norm 1" if found.center else "columns at norm 1"
    first = next(iter(found.partitions.values()))
    blocks = f"B = {first.partition.n_blocks:,}, P = {first.blocks_per_iter:,}"
    console.print(Text.assemble((path, "bold"), f": {size}"), soft_wrap=True)
    console.print(f"{blocks}; {columns}; {sum(seconds.values()):.1f} s\n")
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", style="dim", no_wrap=True)
    for name in found.partitions:
        table.add_column(name, justify="right", overflow="fold")  # a range takes two lines where it must
    for name, cells in _rows(list(found.partitions.values())).items():
        table.add_row(name, *cells)
    console.print(table)
    advice = Table.grid(padding=(0, 1))
    for sentence in found.advice:
        advice.add_row("•", Text(sentence))
    console.print("", advice, "")


def _rows(partitions: list[BlockDiagnosis]) -> dict[str, list[str]]:
    """Name of the row → a cell for each partition."""
    names = {b.name.removeprefix("sampled "): b for found in partitions for b in found.rho.bounds}
    order = sorted(names, key=lambda name: ["lower", "exact", "upper"].index(names[name].side))
    rows = {f"rho_block, {name}": [_named(found, name) for found in partitions] for name in order}
    rows["epsilon"] = [_range(found.epsilon_lower, found.epsilon_upper) for found in partitions]
    rows["safe P, proven"] = [f"{found.safe_blocks_per_iter.value:,.0f}" for found in partitions]
    likely = [found.likely_safe_blocks_per_iter for found in partitions]
    if any(likely):
        rows["safe P, by estimate"] = ["" if bound is None else f"~ {bound.value:,.0f}" for bound in likely]
    rows["P without guarantee"] = [f"> {found.most_blocks_per_iter.value:,.0f}" for found in partitions]
    scales = [found.safe_step_scale.value for found in partitions]
    rows["best step scale, proven"] = [f"{scale:.4g}" for scale in scales]
    guesses = [found.likely_safe_step_scale for found in partitions]
    if any(guesses):
        rows["best step scale, by estimate"] = ["" if bound is None else f"~ {bound.value:.4g}" for bound in guesses]
    rows["safe step scales, proven"] = [f"< {2 * scale:.4g}" for scale in scales]
    rows["nonzeros, max/mean"] = [f"{found.load_balance.value:.3f}" for found in partitions]
    masses = [found.mass_balance for found in partitions]
    rows["gradient mass, max/mean"] = ["" if mass is None else f"{mass.value:.3f}" for mass in masses]
    rows["duplicates in different blocks"] = [f"{found.split_duplicates:,}" for found in partitions]
    return rows


def _named(found: BlockDiagnosis, name: str) -> str:
    for bound in found.rho.bounds:
        if bound.name.removeprefix("sampled ") == name:
            mark = "~ " if bound.kind == "estimate" else ""
            return f"{mark}{_SIGNS[bound.side]} {bound.value:.4g}"
    return ""


def _range(lower: Bound, upper: Bound) -> str:
    same = f"{lower.value:.4g}" == f"{upper.value:.4g}"
    return f"{lower.value:.4g}" if same else f"{lower.value:.4g} … {upper.value:.4g}"
