"""Rounds over solvers and tolerances; rows; time to target.

In a cell every solver walks its own tolerances from loose to tight. A round gives each solver one fit, in an order
drawn anew, so that a slow minute of the machine hits all of them; short fits are repeated and their median counts.
A solver is done when a fit passes the limit, with its tightest tolerance, or when its suboptimality is proven to be
1e-7: against the lower bound that our duality gap gives (a reference at tol = 1e-12 runs first). The lowest objective
so far would not do: whoever is ahead would seem to have arrived.
"""

from __future__ import annotations

import csv
import math
import random
import statistics
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

import numpy as np

from .peers import Solver
from .problems import Data, Loss
from .worker import FitFailed, PassedLimit, Worker

TARGETS = (1e-3, 1e-5, 1e-7)
ENOUGH = 1e-7
REFERENCE = "reference"  # ours at tol = 1e-12; never counted as a time
COMPILING = 30.0  # seconds granted to the first fit of a process beyond the limit


@dataclass(frozen=True)
class Row:
    """One cell, solver and tolerance."""

    problem: str
    loss: str
    ratio: float
    alpha: float
    solver: str
    package: str
    version: str
    threads: int
    tolerance: float
    status: str  # "ok", "limit" or "failed"
    seconds: float = math.nan  # median of the warm fits
    first_seconds: float = math.nan  # the first fit of a fresh process, compiling included
    repeats: int = 0
    objective: float = math.nan
    suboptimality: float = math.nan  # (objective − best of the cell) / objective at w = 0
    f_null: float = math.nan
    nonzeros: int = 0
    gap: float = math.nan  # as ours reports it
    solver_status: str = ""
    limit: float = math.nan
    message: str = ""

    @property
    def cell(self) -> tuple[str, str, float]:
        return self.problem, self.loss, self.ratio


COLUMNS = tuple(f.name for f in fields(Row))


# --------------------------------------------------------------------------------------- rows, no clock


def with_suboptimality(rows: Iterable[Row]) -> list[Row]:
    """Rows of any cells, judged against the lowest objective that any run of the cell reached."""
    rows = list(rows)
    best: dict[tuple[str, str, float], float] = {}
    for row in rows:
        if math.isfinite(row.objective):
            best[row.cell] = min(row.objective, best.get(row.cell, math.inf))
    return [
        replace(row, suboptimality=(row.objective - best[row.cell]) / row.f_null)
        if math.isfinite(row.objective)
        else row
        for row in rows
    ]


def time_to_target(rows: Iterable[Row], target: float) -> dict[tuple[str, str, float], dict[str, float]]:
    """For each cell, the seconds of each solver's fastest run that reached ``target``; others are absent."""
    times: dict[tuple[str, str, float], dict[str, float]] = {}
    for row in rows:
        solvers = times.setdefault(row.cell, {})
        if row.solver != REFERENCE and row.status == "ok" and row.suboptimality <= target:
            solvers[row.solver] = min(row.seconds, solvers.get(row.solver, math.inf))
    return times


def repeats_wanted(seconds: float, most: int) -> int:
    """How often a fit of this length is timed."""
    if seconds < 0.5:
        return most
    return min(2, most) if seconds < 5.0 else 1


def read_rows(path: Path) -> list[Row]:
    if not path.exists():
        return []
    parse = {f.name: {"int": int, "float": float}.get(str(f.type), str) for f in fields(Row)}
    with path.open(newline="") as file:
        return [Row(**{name: parse[name](value) for name, value in line.items()}) for line in csv.DictReader(file)]


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    unfinished = path.with_suffix(".tmp")
    with unfinished.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            line = {name: repr(value) if isinstance(value, float) else value for name, value in asdict(row).items()}
            for name in ("seconds", "first_seconds", "suboptimality", "gap"):
                line[name] = f"{getattr(row, name):.4g}"
            writer.writerow(line)
    unfinished.replace(path)


def still_wanted(rows: Iterable[Row], solver: str, limit: float) -> bool:
    """Whether a solver has yet to run in a cell: no rows, or a limit below today's was what stopped it."""
    own = [row for row in rows if row.solver == solver]
    return not own or any(row.status == "limit" and row.limit < limit for row in own)


def hopeless(rows: Iterable[Row], problem: str, loss: str, ratio: float, limit: float) -> dict[str, float]:
    """Solvers that passed the limit with their loosest tolerance at a larger ratio, where the problem is easier."""
    found: dict[str, float] = {}
    by_solver: dict[tuple[str, float], list[Row]] = {}
    for row in rows:
        if (row.problem, row.loss) == (problem, loss) and row.ratio > ratio:
            by_solver.setdefault((row.solver, row.ratio), []).append(row)
    for (solver, larger), own in by_solver.items():
        if all(row.status == "limit" and row.limit >= limit for row in own):
            found[solver] = max(larger, found.get(solver, 0.0))
    return found


# ---------------------------------------------------------------------------------------------- the race


@dataclass
class Runner:
    """One solver in one cell: which tolerance it is at, and what it has shown."""

    worker: Worker
    data: Data
    loss: Loss
    ratio: float
    limit: float
    most_repeats: int
    tolerances: tuple[float, ...]
    blank: Row
    position: int = 0
    times: list[float] = field(default_factory=list)
    first: float = math.nan
    rows: list[Row] = field(default_factory=list)
    done: bool = False

    def open(self, folder: Path) -> None:
        """Conversions, then the first fit of a fresh process and a small fit that compiles what is left."""
        kind = (self.loss, self.data.storage)
        try:
            version = self.worker.ask(
                10 * self.limit + COMPILING, "prepare", str(folder), self.loss, self.blank.alpha
            )
            self.blank = replace(self.blank, version=version)
            if kind not in self.worker.warmed:
                self.first, *_ = self.worker.ask(self.limit + COMPILING, "fit", self.tolerances[0])
                self.worker.ask(self.limit + COMPILING, "warm")
                self.worker.warmed.add(kind)
        except FitFailed as error:
            self.fail(error)

    def step(self, floor: float, allowed: float) -> None:
        """One fit of at most ``allowed`` seconds; ``floor`` is a lower bound on the optimum."""
        tolerance = self.tolerances[self.position]
        try:
            seconds, coef, details = self.worker.ask(allowed, "fit", tolerance)
        except FitFailed as error:
            self.fail(error)
            return
        self.times.append(seconds)
        objective = self.data.objective(coef, self.loss, self.blank.alpha)
        if len(self.times) >= repeats_wanted(statistics.median(self.times), self.most_repeats):
            row = replace(
                self.blank,
                tolerance=tolerance,
                status="ok",
                seconds=statistics.median(self.times),
                first_seconds=self.first,
                repeats=len(self.times),
                objective=objective,
                nonzeros=int(np.count_nonzero(coef)),
                **details,
            )
            self.rows.append(row)
            self.times, self.first = [], math.nan
            self.position += 1
            self.done = self.position == len(self.tolerances) or objective - floor <= ENOUGH * self.blank.f_null

    def fail(self, error: FitFailed) -> None:
        status = "limit" if isinstance(error, PassedLimit) else "failed"
        tolerance = self.tolerances[min(self.position, len(self.tolerances) - 1)]
        self.rows.append(
            replace(self.blank, tolerance=tolerance, status=status, message=" ".join(str(error).split()))
        )
        self.done = True


@dataclass(frozen=True)
class Settings:
    limit: float = 60.0
    most_repeats: int = 5
    reference_tol: float = 1e-12
    # A solver whose fit took this many times what the fastest of the cell took to 1e-7 goes no further (not below
    # 0.25 s). A fit that takes four times that, and 2 s, is cut off.
    patience: float = math.inf


def race_cell(
    data: Data,
    folder: Path,
    loss: Loss,
    ratio: float,
    workers: dict[str, Worker],
    settings: Settings,
    say: Callable[[str], None] = print,
) -> list[Row]:
    """All rows of one cell. ``workers`` by solver label; ours among them first gives a reference at tol = 1e-12."""
    alpha, f_null = ratio * data.alpha_max(loss), data.f_null(loss)

    def runner(worker: Worker, label: str, tolerances: tuple[float, ...], limit: float, repeats: int) -> Runner:
        solver: Solver = worker.solver
        blank = Row(
            data.name, loss, ratio, alpha, label, solver.peer.package, "", solver.n_threads, math.nan, "failed",
            f_null=f_null, limit=limit,
        )  # fmt: skip
        return Runner(worker, data, loss, ratio, limit, repeats, tolerances, blank)

    ours = [worker for worker in workers.values() if worker.solver.peer.name == "blockgreedy"]
    rows: list[Row] = []
    if ours:
        reference = runner(ours[-1], REFERENCE, (settings.reference_tol,), 2 * settings.limit, 1)
        reference.open(folder)
        while not reference.done:
            reference.step(-math.inf, reference.limit)
        rows += reference.rows
        say(f"  {REFERENCE}: {reference.rows[-1].status} {reference.rows[-1].message}")
    runners = [
        runner(worker, label, worker.solver.peer.tolerances, settings.limit, settings.most_repeats)
        for label, worker in workers.items()
    ]
    for each in runners:
        each.open(folder)
    order = random.Random(0)
    while active := [each for each in runners if not each.done]:
        order.shuffle(active)
        for each in active:
            seen = rows + [row for other in runners for row in other.rows]
            enough = settings.patience * fastest_to_the_end(seen)
            each.step(lower_bound(seen), min(settings.limit, max(2.0, 4 * enough)))
            if each.rows and each.rows[-1].seconds > max(0.25, enough):
                each.done = True  # a tighter tolerance would take longer still
    for each in runners:
        rows += each.rows
    rows = with_suboptimality(rows)
    for each in runners:
        say(f"  {each.blank.solver}: {describe([row for row in rows if row.solver == each.blank.solver])}")
    return rows


def lower_bound(rows: Iterable[Row]) -> float:
    """The best dual value that ours has shown in the cell."""
    return max((row.objective - row.gap for row in rows if math.isfinite(row.gap)), default=-math.inf)


def fastest_to_the_end(rows: Iterable[Row]) -> float:
    """Seconds of the cell's fastest run to 1e-7 so far, the reference among them."""
    judged = [row for row in with_suboptimality(rows) if row.status == "ok"]
    return min((row.seconds for row in judged if row.suboptimality <= TARGETS[-1]), default=math.inf)


def describe(rows: list[Row]) -> str:
    if not any(row.status == "ok" for row in rows):
        return f"[red]{rows[-1].status}[/red] {rows[-1].message}"
    times = [time_to_target(rows, target) for target in TARGETS]
    parts = [next((f"{t:.3g} s" for t in time[rows[0].cell].values()), "missed") for time in times]
    return ", ".join(f"{target:g} in {part}" for target, part in zip(TARGETS, parts, strict=True))
