"""What a fit on a grid of ranks sends: iterations, products, rounds and bytes, which no machine changes.

    python -m benchmarks.tiles.counts --data-dir DIR [--sets reuters,enron] [--grids 1x4,4x1,2x2] [--out counts.md]

Ranks are threads of one process. Logistic loss without and with intercept, certified to 1e-4, at three alphas.
Products are those of the quadratic model, each one all-reduce of a vector as long as the working set; rounds are all
operations that wait for other ranks, the set-up included; bytes are those of one rank, sent or received.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.backends.tiles.communicator import Communicator
from blockgreedy.backends.tiles.grid import Grid
from blockgreedy.backends.tiles.share import shard_of
from blockgreedy.backends.tiles.solver import TileSolver
from blockgreedy.backends.tiles.threads import run_in_threads

SETS = ("reuters", "enron", "dorothea", "news20")
RATIOS = (0.1, 0.01, 0.001)


def solved(ranks: Communicator, problem: bg.Problem, grid: tuple[int, int], best: float) -> dict[str, Any]:
    """The counts of one fit, and when the error fell to 1e-5."""
    shard = shard_of(problem, problem.null_model, Grid(ranks, *grid), 1)
    solver, null = TileSolver(shard, 1e-4), problem.null_model
    solver.start(null.full_coef(problem.n_features)[shard.features], null.intercept)
    true: tuple[int, int] | None = None
    while solver.gap > solver.enough and solver.n_iter < 200:
        if not solver.step():
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
        "purposes": {name: n_bytes for name, (_, n_bytes) in traffic.by_purpose.items()},
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
        "| rounds − products − 12·iterations | MB of a rank |",
        "|---|---|---|---|---|---|---|---|---|---|",
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
                    counts = run_in_threads(
                        grid[0] * grid[1],
                        lambda ranks, p=problem, g=grid, b=best: solved(ranks, p, (g[0], g[1]), b),  # type: ignore[misc]
                    )[0]
                    over = counts["rounds"] - counts["products"] - 12 * counts["iterations"]
                    lines.append(
                        f"| {name} | {'yes' if intercept else 'no'} | {ratio:g} | {grid[0]} × {grid[1]} "
                        f"| {counts['true'][0]} / {counts['iterations']}{'' if counts['converged'] else ' (not)'} "
                        f"| {counts['true'][1]} / {counts['products']} | {counts['gradients']} | {counts['rounds']} "
                        f"| {over} | {counts['bytes'] / 1e6:.1f} |"
                    )
                    print(lines[-1], flush=True)
    if options.out is not None:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
