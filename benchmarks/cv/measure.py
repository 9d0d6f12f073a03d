"""Every solver cross-validates in turn, the short ones several times; rows."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..paths.cell import Array
from ..paths.measure import COMPILING, repeats_wanted
from ..race.worker import FitFailed, PassedLimit, Worker
from .cell import CvCell, curve_error


@dataclass(frozen=True)
class Row:
    """One cell and solver, at its default tolerance."""

    problem: str
    loss: str
    n_alphas: int
    eps: float
    n_folds: int
    solver: str
    version: str
    threads: int
    tolerance: float
    status: str  # "ok", "limit" or "failed"
    seconds: float = math.nan  # median of the repeats
    repeats: int = 0
    curve_error: float = math.nan
    chosen: float = math.nan  # alpha / alpha_max
    peak: float = math.nan  # memory that the fit added, in matrices; ours only
    limit: float = math.nan
    others: float = math.nan  # cores that others used in the second before the fit
    message: str = ""

    @property
    def cell(self) -> tuple[str, str]:
        return self.problem, self.loss


@dataclass
class Runner:
    worker: Worker
    expected: Array
    alpha_max: float
    row: Row
    most_repeats: int
    others: Callable[[], float]
    seconds: list[float] = field(default_factory=list)
    done: bool = False

    def open(self, folder: Path, cell: CvCell) -> None:
        try:
            question = (cell.alphas, cell.folds)
            version = self.worker.ask(COMPILING, "prepare", str(folder), cell.loss, question)
            self.row = replace(self.row, version=version)
            self.worker.ask(COMPILING, "warm")
        except FitFailed as error:
            self.fail(error)

    def step(self, limit: float) -> None:
        others = self.others()
        try:
            seconds, (curve, chosen), details = self.worker.ask(limit, "fit", self.row.tolerance)
        except FitFailed as error:
            self.fail(error)
            return
        self.seconds.append(seconds)
        self.row = replace(
            self.row,
            status="ok",
            seconds=statistics.median(self.seconds),
            repeats=len(self.seconds),
            curve_error=curve_error(curve, self.expected),
            chosen=chosen / self.alpha_max,
            others=others,
            **details,
        )
        self.done = self.row.repeats >= repeats_wanted(self.row.seconds, self.most_repeats)

    def fail(self, error: FitFailed) -> None:
        if not self.seconds:  # a repeat that failed takes nothing from what was shown before
            status = "limit" if isinstance(error, PassedLimit) else "failed"
            self.row = replace(self.row, status=status, message=" ".join(str(error).split()))
        self.done = True


def race_cell(
    name: str,
    folder: Path,
    cell: CvCell,
    expected: Array,
    workers: dict[str, Worker],
    limit: float,
    most_repeats: int,
    others: Callable[[], float],
    say: Callable[[str], None] = print,
) -> list[Row]:
    eps = float(f"{cell.alphas[-1] / cell.alphas[0]:.6g}")
    runners = []
    for label, worker in workers.items():
        row = Row(
            name, cell.loss, len(cell.alphas), eps, int(cell.folds.max()) + 1, label, "", worker.solver.n_threads,
            worker.solver.peer.tolerances[-1], "failed", limit=limit,
        )  # fmt: skip
        runners.append(Runner(worker, expected, float(cell.alphas[0]), row, most_repeats, others))
    for each in runners:
        each.open(folder, cell)
    order = random.Random(0)
    while active := [each for each in runners if not each.done]:
        order.shuffle(active)
        for each in active:
            each.step(limit)
    for each in runners:
        say(f"  {each.row.solver}: {describe(each.row)}")
    return [each.row for each in runners]


def describe(row: Row) -> str:
    if row.status == "limit":
        return f"cut off after {row.limit:.0f} s"
    if row.status == "failed":
        return f"failed: {row.message}"
    more = "" if math.isnan(row.peak) else f", peak {row.peak:.2f} matrices"
    return f"{row.seconds:.3g} s, curve off by {row.curve_error:.1e}, chose {row.chosen:.3g} alpha_max{more}"
