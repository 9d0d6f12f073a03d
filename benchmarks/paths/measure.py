"""Tolerances from loose to tight until a path is good enough, then repeats; rows.

A round gives each solver one path, in an order drawn anew, so that a slow minute of the machine hits all of them. A
solver whose path misses the target goes on to its next tolerance; one whose path reaches it repeats that tolerance,
if it is short, and is done. It is cut off when a path takes longer than the limit, or than ``patience`` times what
the fastest peer of the cell took so far.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..race.problems import Data, Loss
from ..race.worker import FitFailed, PassedLimit, Worker
from .cell import Array, objectives, worst_error

TARGET = 1e-5
OURS = "blockgreedy"
COMPILING = 120.0  # seconds granted to conversions and to the small path that compiles


@dataclass(frozen=True)
class Row:
    """One cell, solver and tolerance."""

    problem: str
    loss: str
    n_alphas: int
    eps: float
    solver: str
    version: str
    threads: int
    tolerance: float
    status: str  # "ok", "limit" or "failed"
    seconds: float = math.nan  # median of the repeats
    repeats: int = 0
    cpu_seconds: float = math.nan  # of all threads, in the last repeat: what a busy machine disturbs less
    error: float = math.nan  # worst over the alphas of (f(w) − f*)/f(0)
    worst_at: int = -1  # the alpha that has it
    nonzeros: int = 0  # at the last alpha
    solver_status: str = ""
    limit: float = math.nan  # seconds it was given
    others: float = math.nan  # cores that others used in the second before the path began
    message: str = ""

    @property
    def cell(self) -> tuple[str, str]:
        return self.problem, self.loss

    @property
    def reached(self) -> bool:
        return self.status == "ok" and self.error <= TARGET


def repeats_wanted(seconds: float, most: int) -> int:
    """How often a path of this length is timed."""
    if seconds < 10.0:
        return most
    return min(2, most) if seconds < 60.0 else 1


def times(rows: Iterable[Row]) -> dict[str, float]:
    """Seconds of each solver's fastest path that reached the target; the rows are of one cell."""
    found: dict[str, float] = {}
    for row in rows:
        if row.reached:
            found[row.solver] = min(row.seconds, found.get(row.solver, math.inf))
    return found


@dataclass
class Runner:
    """One solver in one cell: which tolerance it is at, and what it has shown."""

    worker: Worker
    judge: Callable[[Any], tuple[float, int]]
    blank: Row
    most_repeats: int
    others: Callable[[], float]
    position: int = 0
    seconds: list[float] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    last: Row = field(init=False)
    done: bool = False

    @property
    def tolerance(self) -> float:
        return self.worker.solver.peer.tolerances[self.position]

    def open(self, folder: Path, alphas: Array) -> None:
        try:
            version = self.worker.ask(COMPILING, "prepare", str(folder), self.blank.loss, alphas)
            self.blank = replace(self.blank, version=version)
            if self.blank.loss not in {loss for loss, _ in self.worker.warmed}:
                self.worker.ask(COMPILING, "warm")
                self.worker.warmed.add((self.blank.loss, "path"))
        except FitFailed as error:
            self.fail(error)

    def step(self, allowed: float) -> None:
        """One path of at most ``allowed`` seconds."""
        self.blank = replace(self.blank, limit=allowed, others=self.others())
        try:
            seconds, coefs, details = self.worker.ask(allowed, "fit", self.tolerance)
        except FitFailed as error:
            self.fail(error)
            return
        self.seconds.append(seconds)
        error, where = self.judge(coefs)
        self.last = replace(
            self.blank,
            tolerance=self.tolerance,
            status="ok",
            seconds=statistics.median(self.seconds),
            repeats=len(self.seconds),
            error=error,
            worst_at=where,
            nonzeros=int(coefs[:, [-1]].count_nonzero()),
            **details,
        )
        if not self.last.reached or self.last.repeats >= repeats_wanted(self.last.seconds, self.most_repeats):
            self.close()

    def close(self) -> None:
        """Enough of this tolerance."""
        self.rows.append(self.last)
        self.seconds = []
        self.done = self.last.reached or self.position + 1 == len(self.worker.solver.peer.tolerances)
        self.position += not self.done

    def fail(self, error: FitFailed) -> None:
        if self.seconds:  # a repeat that failed takes nothing from what was shown before
            self.close()
        else:
            status = "limit" if isinstance(error, PassedLimit) else "failed"
            message = " ".join(str(error).split())
            self.rows.append(replace(self.blank, tolerance=self.tolerance, status=status, message=message))
        self.done = True


@dataclass(frozen=True)
class Settings:
    limit: float = 900.0
    most_repeats: int = 3
    patience: float = math.inf


def race_cell(
    data: Data,
    folder: Path,
    loss: Loss,
    alphas: Array,
    best: Array,
    workers: dict[str, Worker],
    settings: Settings,
    others: Callable[[], float],
    keep: Callable[[list[Row]], None],
    say: Callable[[str], None] = print,
) -> None:
    """All solvers of one cell; ``best`` is f* at each alpha. ``keep`` gets a solver's rows as soon as it is done."""
    f_null = data.f_null(loss)

    def judge(coefs: Any) -> tuple[float, int]:
        return worst_error(objectives(data, loss, alphas, coefs), best, f_null)

    runners = []
    for label, worker in workers.items():
        eps = float(f"{alphas[-1] / alphas[0]:.6g}")
        blank = Row(
            data.name, loss, len(alphas), eps, label, "", worker.solver.n_threads, math.nan, "failed",
            limit=settings.limit,
        )  # fmt: skip
        runners.append(Runner(worker, judge, blank, settings.most_repeats, others))

    def finish(runner: Runner) -> None:
        say(f"  {runner.blank.solver}: {describe(runner.rows[-1])}")
        keep(runner.rows)

    for each in runners:
        each.open(folder, alphas)
        if each.done:
            finish(each)
    order = random.Random(0)
    while active := [each for each in runners if not each.done]:
        order.shuffle(active)
        for each in active:
            seen = times(row for other in runners for row in other.rows if not row.solver.startswith(OURS))
            each.step(min(settings.limit, max(10.0, settings.patience * min(seen.values(), default=math.inf))))
            if each.done:
                finish(each)


def describe(row: Row) -> str:
    if row.status == "limit":
        return f"cut off after {row.limit:.0f} s at its tolerance {row.tolerance:g}"
    if row.status == "failed":
        return f"failed: {row.message}"
    word = "reached" if row.reached else "missed"
    return f"{word} {TARGET:g} ({row.error:.1e}) at its tolerance {row.tolerance:g} in {row.seconds:.3g} s"
