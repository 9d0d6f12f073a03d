"""What a fit on a grid of ranks sends: iterations, products, rounds and bytes, which no machine changes.

    python -m benchmarks.tiles.counts --data-dir DIR [--sets reuters,enron] [--grids 1x4,4x1,2x2] [--out counts.md]

Ranks are threads of one process. Logistic loss without and with intercept, certified to 1e-4, at three alphas.
Products are those of the quadratic model, each one all-reduce of a vector as long as the working set; rounds are all
operations that wait for other ranks, the set-up included; bytes are what a rank sends or receives, counted by its
communicator, in the mean over the ranks. They are held against a formula: what the algorithm says for a rank of
R × C = N ranks, with n rows and q relevant columns, from this fit's numbers of gradients and products and the sizes W
of its working sets.

    the start       16·n/R·(C−1)/C     predictions
    a gradient      8·n/R·(C−1)/C      θ of the row group comes together
                    16·q/C·(R−1)/R     products of its columns, added up over the row groups
    a product       8·(W+1)·(N−1)/N    float32, added up over all ranks
    an iteration    40·W·(N−1)/N       numbers, weights and gradients of the working set; its diagonal
                    16·W·(N−1)/N       with an intercept, what it has to do with each of them
                    16·512·(N−1)/N     two histograms of scores
    a new column    (N−1)/N·56         what is known of it, also where it turns out to be a copy
                    (C−1)/C·8          for each entry in the rank's rows, and one more; not of copies
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.backends.tiles.communicator import Communicator
from blockgreedy.backends.tiles.grid import Grid
from blockgreedy.backends.tiles.relevant import relevant_columns
from blockgreedy.backends.tiles.share import shard_of
from blockgreedy.backends.tiles.solver import TileSolver
from blockgreedy.backends.tiles.threads import run_in_threads

SETS = ("reuters", "enron", "dorothea", "news20")
RATIOS = (0.1, 0.01, 0.001)


@dataclass
class Sizes:
    """Of the working sets of a fit: columns of each, and all columns that were in one, with their entries."""

    columns: list[int] = field(default_factory=list)
    products: list[int] = field(default_factory=list)
    ever: dict[int, float] = field(default_factory=dict)
    copies: int = 0

    def watch(self, solver: TileSolver) -> None:
        chosen, enter = solver._recut.chosen, solver._recut.enter

        def noted(places: Any) -> Any:
            columns, facts = chosen(places)
            self.columns.append(len(facts.ids))
            self.ever.update(zip(facts.ids.tolist(), facts.entries.tolist(), strict=True))
            return columns, facts

        def entered(*args: Any, **named: Any) -> Any:
            found = enter(*args, **named)
            self.copies += len(found[2])
            return found

        solver._recut.chosen, solver._recut.enter = noted, entered  # type: ignore[method-assign]


def formula(problem: bg.Problem, solver: TileSolver, n_relevant: float, sizes: Sizes) -> float:
    """Bytes of a rank by the formula at the top of this file."""
    rows, columns = solver.shard.grid.shape
    n, others, beside = problem.n_samples, 1 - 1 / (rows * columns), 1 - 1 / columns
    start = 16 * n / rows * beside
    gradient = 8 * n / rows * beside + 16 * n_relevant / columns * (1 - 1 / rows)
    products = sum(8 * (w + 1) * k * others for w, k in zip(sizes.columns, sizes.products, strict=True))
    each = 56 if problem.fit_intercept else 40
    iterations = sum((each * w + 16 * 512) * others for w in sizes.columns)
    new = 56 * (len(sizes.ever) + sizes.copies) * others
    travel = 8 * (sum(sizes.ever.values()) / (rows * columns) + len(sizes.ever)) * beside
    return start + solver.n_gradients * gradient + products + iterations + new + travel


def solved(ranks: Communicator, problem: bg.Problem, grid: tuple[int, int], best: float) -> dict[str, Any]:
    """The counts of one fit, and when the error fell to 1e-5."""
    shard = shard_of(problem, problem.null_model, Grid(ranks, *grid), 1)
    solver, null = TileSolver(shard, 1e-4), problem.null_model
    solver.start(null.full_coef(problem.n_features)[shard.features], null.intercept)
    true: tuple[int, int] | None = None
    sizes = Sizes()
    sizes.watch(solver)
    while solver.gap > solver.enough and solver.n_iter < 200:
        before = solver.n_products
        goes_on = solver.step()
        if len(sizes.columns) > len(sizes.products):  # else the scan was proof enough
            sizes.products.append(solver.n_products - before)
        if not goes_on:
            break
        if true is None and solver.objective - best <= 1e-5 * null.objective:
            true = solver.n_iter, solver.n_products
    traffic = shard.grid.traffic
    return {
        "true": true or (solver.n_iter, solver.n_products),
        "iterations": solver.n_iter,
        "products": solver.n_products,
        "gradients": solver.n_gradients,
        "rounds": traffic.n_rounds,
        "bytes": traffic.n_bytes,
        "formula": formula(problem, solver, len(relevant_columns(problem, 1)), sizes),
        "converged": solver.gap <= solver.enough,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", default=os.environ.get("BLOCKGREEDY_DATA"), required=False)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--grids", default="1x4,4x1,2x2")
    parser.add_argument("--ratios", default=",".join(map(str, RATIOS)))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = [
        "| set | intercept | alpha/alpha_max | grid | iterations to 1e-5 / certified | products | gradients | rounds "
        "| rounds − products − 12·iterations | MB of a rank | counted / formula |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    for name in options.sets.split(","):
        data = bg.load(str(Path(options.data_dir) / f"{name}.npz"))
        X, y = sp.csc_array(data.X), np.asarray(data.y, dtype=np.float64)
        for intercept in (False, True):
            shared = bg.Problem(X, y, loss="logistic", alpha=1.0, fit_intercept=intercept)
            for ratio in map(float, options.ratios.split(",")):
                problem = shared.with_alpha(ratio * shared.alpha_max)
                best = bg.solve(problem, tol=1e-8).objective
                for grid in (tuple(map(int, text.split("x"))) for text in options.grids.split(",")):
                    of_ranks = run_in_threads(
                        grid[0] * grid[1],
                        lambda ranks, p=problem, g=grid, b=best: solved(ranks, p, (g[0], g[1]), b),  # type: ignore[misc]
                    )
                    counts = of_ranks[0]
                    n_bytes = float(np.mean([own["bytes"] for own in of_ranks]))
                    over = counts["rounds"] - counts["products"] - 12 * counts["iterations"]
                    lines.append(
                        f"| {name} | {'yes' if intercept else 'no'} | {ratio:g} | {grid[0]} × {grid[1]} "
                        f"| {counts['true'][0]} / {counts['iterations']}{'' if counts['converged'] else ' (not)'} "
                        f"| {counts['true'][1]} / {counts['products']} | {counts['gradients']} | {counts['rounds']} "
                        f"| {over} | {n_bytes / 1e6:.1f} | {n_bytes / counts['formula']:.2f} |"
                    )
                    print(lines[-1], flush=True)
    if options.out is not None:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
