"""What `blockgreedy cluster plan` predicts, against what a fit takes, for every grid of the ranks at hand.

    python -m benchmarks.tiles.plan_check [--set text] [--entries 10e6] [--ratio 0.01] [--repeats 5]
    mpirun -n 2 python -m benchmarks.tiles.plan_check …

The terms of the model are measured on the ranks themselves. Two predictions: with the iterations, products and sizes
of the fit itself, which judges the model; and with those that are usual at this alpha: all that a plan knows.
Seconds are the least of some fits, from the lengths of columns to the check of the result; making tiles is left out.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.backends.tiles.calibration import calibrate, canonical
from blockgreedy.backends.tiles.communicator import Alone, Communicator
from blockgreedy.backends.tiles.grid import Grid
from blockgreedy.backends.tiles.plan import Machines, Size, plan_grid
from blockgreedy.backends.tiles.share import shard_of
from blockgreedy.backends.tiles.work import Work, expected_work
from blockgreedy.backends.tiles.worker import TileWorker
from blockgreedy.base.threads import blas_limited


def ranks_at_hand() -> Communicator:
    try:
        from mpi4py import MPI
    except ImportError:
        return Alone()
    from blockgreedy.backends.tiles.mpi import MpiRank

    return MpiRank(MPI.COMM_WORLD)


@dataclass
class Measured:
    """What a fit did."""

    seconds: float = 0.0
    iterations: int = 0
    rounds: int = 0
    n_bytes: int = 0
    relevant: int = 0
    products_before: list[int] = field(default_factory=list)  # each iteration
    working_set: list[int] = field(default_factory=list)
    working_entries: list[int] = field(default_factory=list)
    read: int = 0  # entries, by gradients
    gradients: int = 0
    products: int = 0

    def work(self, n_entries: int, n_features: int) -> Work:
        share = np.diff(np.append(self.products_before, self.products)) / self.products
        return Work(
            self.iterations, self.gradients, self.products, float(share @ self.working_set),
            float(share @ self.working_entries) / n_entries, self.read / n_entries / self.gradients,
            self.relevant / n_features,
        )  # fmt: skip


def fit(ranks: Communicator, problem: bg.Problem, grid: tuple[int, int], tol: float) -> Measured:
    null, found = problem.null_model, Measured()
    shard = shard_of(problem, null, Grid(ranks, *grid), 1)
    products = shard.tile.products

    def counted(*args: Any) -> Any:
        before = shard.tile.nonzeros_touched
        result = products(*args)
        found.read += shard.tile.nonzeros_touched - before
        return result

    shard.tile.products = counted  # type: ignore[method-assign]
    ranks.reduce(np.zeros(1))
    began = time.perf_counter()
    worker = TileWorker(shard, tol)
    solver = worker.solver
    chosen = solver._recut.chosen

    def noted(places: Any) -> Any:
        columns, facts = chosen(places)
        found.products_before.append(solver.n_products)
        found.working_set.append(len(places))
        found.working_entries.append(int(np.sum(facts.entries)))
        return columns, facts

    solver._recut.chosen = noted  # type: ignore[method-assign]
    worker.start(null.features.astype(np.int64), null.coef, null.intercept)
    while solver.gap > solver.enough and solver.n_iter < 200 and solver.step():
        pass
    found.gradients, read = solver.n_gradients, found.read
    worker.verify(*worker.support(), solver.intercept)
    worker.dual()
    found.seconds = float(ranks.reduce(np.array([time.perf_counter() - began]), "max")[0])
    found.read = int(ranks.reduce(np.array([float(read)]))[0])
    found.iterations, found.products = solver.n_iter, solver.n_products
    found.relevant = int(shard.over_columns(shard.tile.n_features)[0])
    found.rounds, found.n_bytes = shard.grid.traffic.n_rounds, shard.grid.traffic.n_bytes
    return found


def made(name: str, n_entries: float) -> bg.Dataset:
    if name == "text":
        return bg.data.text_like(int(n_entries / 100), int(n_entries / 200), 100.0, n_threads=1)
    return bg.data.shaped("kdda", 0, n_entries / 305e6, n_threads=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", default="text", choices=("text", "kdda"))
    parser.add_argument("--entries", type=float, default=10e6)
    parser.add_argument("--ratio", type=float, default=0.01)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cores", type=int, default=None, help="of this machine (default: one for each rank)")
    parser.add_argument("--parts", action="store_true", help="what the predicted seconds are spent on")
    options = parser.parse_args()
    with blas_limited(1):  # as in fits by ranks
        compare(ranks_at_hand(), options)


def compare(ranks: Communicator, options: argparse.Namespace) -> None:
    data = made(options.set, options.entries)
    X = sp.csc_array(data.X)
    problem = bg.Problem(X, np.asarray(data.y, dtype=np.float64), loss="logistic", alpha=1.0, fit_intercept=True)
    problem = problem.with_alpha(options.ratio * problem.alpha_max)
    size = Size(*X.shape, X.nnz, X.dtype.itemsize, np.diff(X.indptr).astype(np.int64))
    machines = Machines(1, options.cores or ranks.size, 10.0, ranks.size)
    usual = expected_work(X.shape[0], X.shape[1], options.ratio)
    known = fit(ranks, problem, (1, ranks.size), 1e-4).work(X.nnz, X.shape[1])
    terms, usual_terms = (calibrate(size, work, 1, ranks.size, ranks, sample=canonical(X)) for work in (known, usual))
    if ranks.rank == 0:
        print(f"{options.set}, {X.shape[0]:,} × {X.shape[1]:,}, {X.nnz:,} entries, alpha_max·{options.ratio:g}")
        print(", ".join(f"{name} {value:.3g}" for name, value in asdict(terms).items()))
        print("\n| grid | iterations | products | rounds predicted/measured | bytes | seconds measured | predicted "
              "| predicted/measured | by usual counts |\n|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    for n_rows in (r for r in range(1, ranks.size + 1) if ranks.size % r == 0):
        grid = n_rows, ranks.size // n_rows
        fits = [fit(ranks, problem, grid, 1e-4) for _ in range(options.repeats)]
        best = min(fits, key=lambda found: found.seconds)
        plan = plan_grid(grid, size, machines, terms, best.work(X.nnz, X.shape[1]))
        blind = plan_grid(grid, size, machines, usual_terms, usual)
        if ranks.rank == 0:
            print(
                f"| {grid[0]} × {grid[1]} | {best.iterations} | {best.products} "
                f"| {plan.rounds:.0f}/{best.rounds} | {plan.n_bytes / 1e6:.1f}/{best.n_bytes / 1e6:.1f} MB "
                f"| {best.seconds:.3f} | {plan.total:.3f} | {plan.total / best.seconds:.2f} "
                f"| {blind.total / best.seconds:.2f} |",
                flush=True,
            )
            if options.parts:
                print({name: round(value, 4) for name, value in plan.seconds.items()})


if __name__ == "__main__":
    main()
