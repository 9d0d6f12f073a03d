"""The paper's family: one sparse logistic problem, solved by all of the paper's algorithms in a few seconds each.

``make demo-family`` runs this. Thread-greedy coordinate descent updates the best feature of each of 32 blocks in
every iteration. The steps are either all added, as in the paper, which can diverge, or solved jointly, which never
raises the objective. Blocks are either random or clustered. Stochastic, parallel (Shotgun) and greedy coordinate
descent are settings of the same algorithm. To fit a model, use the default solver instead (demo.py).
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

import blockgreedy as bg
from blockgreedy.data import shaped

N_BLOCKS = 32
ALPHA_RATIO = 0.1
MAX_SECONDS = 2.0
STYLES = {"converged": "green", "diverged": "bold red"}


@dataclass(frozen=True)
class Run:
    method: str
    blocks: str  # a kind of partition; or, set by the method, "single" (a feature per block) or "one" (one block)
    update: str

    def solve(self, problem: bg.Problem, partitions: dict[str, bg.Partition]) -> bg.Solution:
        options: dict[str, Any] = {"method": self.method, "update": self.update}
        return bg.solve(problem, partition=partitions.get(self.blocks), max_seconds=MAX_SECONDS, **options)


RUNS = [
    *(Run("thread-greedy", kind, update) for update in ("add", "joint") for kind in ("random", "clustered")),
    Run("scd", "single", "add"),
    Run("shotgun", "single", "add"),
    Run("greedy", "one", "add"),
]


def main() -> None:
    warnings.simplefilter("ignore", bg.ConvergenceRiskWarning)  # the demo shows unsafe steps
    console = Console(highlight=False)
    data = shaped("reuters")
    problem = bg.Problem(data.X, data.y, loss="logistic", alpha=0.0)
    problem = problem.with_alpha(ALPHA_RATIO * problem.alpha_max)
    kinds = ("random", "clustered")
    partitions = {kind: bg.make_partition(problem.X, n_blocks=N_BLOCKS, kind=kind) for kind in kinds}
    size = f"{problem.n_samples:,} × {problem.n_features:,}, {data.X.nnz:,} nonzeros"
    console.print(Text.assemble((data.name, "bold"), f": {size}"))
    setting = f"alpha {problem.alpha:.3g} ({ALPHA_RATIO:g} of alpha_max)"
    console.print(f"logistic loss, {setting}; each run has {MAX_SECONDS:g} s\n")
    table = empty_table(wide=console.width >= 100)
    results: dict[Run, bg.Solution] = {}
    with Live(console=console, refresh_per_second=8, transient=True) as live:
        for run in RUNS:
            live.update(Group(table, Spinner("dots", f"{run.method}, {run.blocks} blocks, {run.update}")))
            results[run] = run.solve(problem, partitions)
            if results[run].status == "interrupted":
                sys.exit("interrupted")
            add_row(table, run, results[run], problem.null_model.objective)
    console.print(table, "")
    remarks = Table.grid(padding=(0, 1))
    for sentence in what_one_sees(results):
        remarks.add_row("•", Text(sentence))
    console.print(remarks)


def empty_table(wide: bool) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 2 if wide else 1, 0, 0), pad_edge=False)
    for name in ("method", "blocks", "update", "status"):
        table.add_column(f"\n{name}", no_wrap=True)
    for name in ("\nobjective", "rel.\ngap", "non-\nzeros", "\niter.", "it.\n/s", "\ntime"):
        table.add_column(name, justify="right", no_wrap=True)
    return table


def add_row(table: Table, run: Run, solution: bg.Solution, f_null: float) -> None:
    table.add_row(
        run.method,
        run.blocks,
        run.update,
        Text(solution.status, style=STYLES.get(solution.status, "yellow")),
        f"{solution.objective:.7f}",
        f"{solution.gap / f_null:.0e}",
        f"{solution.nonzeros:,}",
        short(solution.n_iter),
        short(solution.n_iter / solution.seconds),
        f"{wall_seconds(solution):.2f}",
    )


def short(number: float) -> str:
    """At most four characters: 999, 1.2k, 177k, 1.4M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.{1 if number < 9.95 * size else 0}f}{letter}"
    return f"{number:.0f}"


def wall_seconds(solution: bg.Solution) -> float:
    return solution.seconds + solution.check_seconds


def what_one_sees(results: dict[Run, bg.Solution]) -> list[str]:
    """Sentences computed from the results of this run."""
    literal, safe = (
        {kind: results[Run("thread-greedy", kind, update)] for kind in ("random", "clustered")}
        for update in ("add", "joint")
    )
    rose = [kind for kind, solution in safe.items() if np.any(np.diff(solution.trace["objective"]) > 1e-12)]
    course = f"rose with {' and '.join(rose)} blocks" if rose else "never rose from one check to the next"
    shares = [f"{largest_share(solution):.0%} of them with {kind} blocks" for kind, solution in safe.items()]
    run, best = min(results.items(), key=lambda item: item[1].gap)
    return [
        f"All {N_BLOCKS} steps added, as in the paper: {fates(literal)}.",
        f"The steps solved jointly: the objective {course}; {fates(safe)}.",
        "An iteration updates one feature per block. In the joint runs the block with the most nonzero weights has "
        f"{', '.join(shares)}.",
        f"The tightest certificate is that of {run.method} ({run.blocks} blocks, {run.update}): "
        f"its objective {best.objective:.7f} is at most {best.gap:.1e} above the minimum.",
    ]


def fates(solutions: dict[str, bg.Solution]) -> str:
    return "; ".join(f"{kind} blocks {fate(solution)}" for kind, solution in solutions.items())


def fate(solution: bg.Solution) -> str:
    course = f"in {solution.n_iter:,} iterations ({wall_seconds(solution):.2g} s)"
    if solution.status in ("converged", "diverged"):
        return f"{solution.status} {course}"
    return f"came down to {solution.objective:.5f} {course}"


def largest_share(solution: bg.Solution) -> float:
    """Share of the nonzero weights in the block that has most of them."""
    assert solution.partition is not None
    counts = np.bincount(solution.partition.block_of[np.flatnonzero(solution.coef)], minlength=1)
    return float(counts.max() / max(1, counts.sum()))


if __name__ == "__main__":
    main()
