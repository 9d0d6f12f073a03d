"""The race from CSR: an estimator's whole fit of a logistic model with an intercept, every conversion on the clock.

    python -m benchmarks.race.from_rows                                          (make bench-users)
    python -m benchmarks.race.from_rows --problems reuters enron --ratios 0.1 --solvers sklearn-liblinear skglm

Ours: the default settings, certified to 1e-4. A peer: the first of its own tolerances, loose to tight, whose weights
have a true error of at most 1e-5 of the null model's objective, computed in NumPy. When these are known, all fits
that may matter are timed again in turn, and medians count. A peer is given up at ``--limit`` seconds, or when a fit
takes three times as long as the best peer so far took to its goal, for it is not the best peer then. Rows go to
results/race-from-rows.csv, of which ``make bench-report`` makes a table; cells that are run again are replaced.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.table import read_table, write_table

from . import problems
from .peers import Peer, Solver, available
from .row_peers import OURS, PEERS, Weights
from .worker import FitFailed, PassedLimit, Worker, workers_until_done

RESULTS = Path(__file__).parents[1] / "results"
FILE = "race-from-rows.csv"
NAMES = (*problems.REAL, "reuters-shaped", "crosses-like")
ERROR = 1e-5  # true error asked of peers, over the null model's objective
REFERENCE_TOL = 1e-8  # of the solve that errors are measured against
HOPELESS = 3.0  # times the best peer's seconds
COMPILING = 60.0  # seconds granted to the first fit of a process


@dataclass(frozen=True)
class Row:
    """One solver in one cell."""

    problem: str
    ratio: float
    threads: int
    solver: str
    tolerance: float
    seconds: float  # nan: not within the limit, or never to a true 1e-5
    error: float  # of the last fit that ended
    note: str = ""

    @property
    def cell(self) -> tuple[str, float, int]:
        return self.problem, self.ratio, self.threads


def true_error(
    data: problems.Data, alpha: float, found: tuple[np.ndarray, float], least: float, null: float
) -> float:
    """Of weights and intercept, over the null model's objective."""
    w, b = found
    losses = np.logaddexp(0.0, -data.label * (data.X64 @ w + b))
    return (float(np.mean(losses)) + alpha * float(np.sum(np.abs(w))) - least) / null


@dataclass
class Judge:
    """A cell: its alpha, and what the least objective is."""

    data: problems.Data
    ratio: float
    threads: int

    def __post_init__(self) -> None:
        import blockgreedy as bg

        problem = bg.Problem(self.data.X, self.data.label, loss="logistic", alpha=1.0, fit_intercept=True)
        self.alpha = self.ratio * problem.alpha_max
        problem = problem.with_alpha(self.alpha)
        self.least, self.null = bg.solve(problem, tol=REFERENCE_TOL).objective, problem.null_model.objective

    def error(self, found: Weights) -> float:
        """True error of weights and intercept, over the null model's objective."""
        w, b = found
        loss = float(np.mean(np.logaddexp(0.0, -self.data.label * (self.data.X64 @ w + b))))
        return (loss + self.alpha * float(np.sum(np.abs(w))) - self.least) / self.null

    def row(self, solver: str, tolerance: float, seconds: float, error: float, note: str = "") -> Row:
        return Row(self.data.name, self.ratio, self.threads, solver, tolerance, seconds, error, note)


def first_success(worker: Worker, judge: Judge, folder: Path, limit: float, enough: float) -> Row:
    """Walks a solver's tolerances until its error is small enough, or a fit takes more than ``enough`` seconds."""
    peer, name, error, tolerance = worker.solver.peer, worker.solver.peer.name, math.nan, math.nan
    try:
        worker.ask(10 * limit + COMPILING, "prepare", str(folder), "logistic", judge.alpha)
        if ("logistic", "sparse") not in worker.warmed:
            worker.ask(limit + COMPILING, "warm")
            worker.warmed.add(("logistic", "sparse"))
        for tolerance in peer.tolerances:
            seconds, found, _ = worker.ask(limit, "fit", tolerance)
            error = judge.error(found)
            if error <= ERROR or peer is OURS:
                return judge.row(name, tolerance, seconds, error)
            if seconds > enough:
                return judge.row(name, tolerance, math.nan, error, f"given up: {seconds:.3g} s are too slow")
    except PassedLimit:
        return judge.row(name, tolerance, math.nan, error, f"passed {limit:g} s")
    except FitFailed as failure:
        return judge.row(name, tolerance, math.nan, error, f"failed: {failure}"[:100])
    return judge.row(name, tolerance, math.nan, error, "never reached it")


def race_cell(workers: dict[str, Worker], judge: Judge, folder: Path, limit: float, repeats: int) -> list[Row]:
    rows: dict[str, Row] = {}
    best = math.inf
    for name, worker in workers.items():
        rows[name] = first_success(worker, judge, folder, limit, HOPELESS * best)
        if worker.solver.peer is not OURS and rows[name].seconds < best:
            best = rows[name].seconds
    times: dict[str, list[float]] = {name: [] for name, row in rows.items() if row.seconds <= 1.5 * best}
    for _ in range(repeats if best < 5.0 else 1):
        for name, own in times.items():
            own.append(workers[name].ask(limit + COMPILING, "fit", rows[name].tolerance)[0])
    return [
        judge.row(name, row.tolerance, statistics.median(times[name]), row.error) if times.get(name) else row
        for name, row in rows.items()
    ]


def ratio_of(rows: Iterable[Row]) -> tuple[str, float]:
    """Of one cell: the fastest peer, and how many times its seconds ours takes; inf where no peer arrived."""
    seconds = {row.solver: row.seconds for row in rows if not math.isnan(row.seconds)}
    ours = seconds.pop(OURS.name, math.nan)
    peer = min(seconds, key=lambda name: seconds[name], default="")
    return peer, seconds.get(peer, math.inf) / ours


def table(rows: list[Row]) -> list[str]:
    """A line for each cell; median and worst ratio of those in which a peer arrived."""
    solvers = list(dict.fromkeys(row.solver for row in rows if row.solver != OURS.name))
    head = ["cell", "threads", "ours, ms", *(f"{name}, ms" for name in solvers), "best peer / ours"]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    ratios = []
    for cell in dict.fromkeys(row.cell for row in rows):
        own = {row.solver: row for row in rows if row.cell == cell}
        peer, ratio = ratio_of(own.values())
        if math.isfinite(ratio):
            ratios.append(ratio)
        shown = [_shown(own.get(name)) for name in (OURS.name, *solvers)]
        verdict = f"{ratio:.1f} ({peer})" if peer and not math.isnan(ratio) else "–"
        lines.append(f"| {cell[0]} {cell[1]:g} | {cell[2]} | {' | '.join(shown)} | {verdict} |")
    if ratios:
        summary = f"median {statistics.median(ratios):.2f}, worst {min(ratios):.2f} of {len(ratios)} cells"
        lines += ["", f"Best peer / ours: {summary}."]
    return [*lines, ""]


def _shown(row: Row | None) -> str:
    if row is None:
        return "–"
    return f"{1e3 * row.seconds:.1f}" if not math.isnan(row.seconds) else f"– ({row.note}, error {row.error:.0e})"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", default=NAMES, choices=NAMES, metavar="NAME")
    parser.add_argument("--ratios", nargs="+", type=float, default=(0.1, 0.01, 0.001), help="alpha / alpha_max")
    parser.add_argument("--solvers", nargs="+", help=f"peers: {' '.join(peer.name for peer in PEERS)}")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit", type=float, default=20.0, help="seconds for one fit")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def main() -> None:
    options = arguments()
    peers: list[Peer]
    peers, absent = available(peer for peer in PEERS if options.solvers is None or peer.name in options.solvers)
    for name, reason in absent.items() | problems.missing(tuple(options.problems)).items():
        print(f"left out: {name}: {reason}")
    path, new = options.results / FILE, []
    with workers_until_done() as workers:
        for peer in (OURS, *peers):
            workers[peer.name] = Worker(Solver(peer, options.threads))
        for name in [name for name in options.problems if name not in problems.missing(tuple(options.problems))]:
            data = problems.load(name)
            with tempfile.TemporaryDirectory(prefix="race-") as folder:
                problems.hand_over(data, Path(folder))
                for ratio in options.ratios:
                    judge = Judge(data, ratio, options.threads)
                    found = race_cell(workers, judge, Path(folder), options.limit, options.repeats)
                    new += found
                    kept = [row for row in read_table(path, Row) if row.cell != found[0].cell]
                    write_table(path, Row, sorted([*kept, *found], key=lambda row: row.cell))
                    print("\n".join(table(found)[2:3]), flush=True)
    print("\n" + "\n".join(table(new)))


if __name__ == "__main__":
    main()
