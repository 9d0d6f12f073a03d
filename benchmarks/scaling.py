"""How the default solver grows with threads, and what clustered blocks do for it.

    python benchmarks/scaling.py --shape kdda --ratio 0.01 --threads 1,2,4,8,16 --csv benchmarks/results/scaling.csv

Generated data of the shapes of the paper's sets; logistic loss, certified to `tol`. Speed-ups are over one thread of
the same number of blocks, so that all runs do the same arithmetic.
"""

from __future__ import annotations

import argparse
import csv
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np

from blockgreedy import Problem, make_partition, solve
from blockgreedy.data import shaped


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="kdda", choices=["kdda", "news20", "realsim", "reuters"])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--ratio", type=float, default=0.01, help="alpha / alpha_max")
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--threads", default="1,2", help="numbers of threads, separated by commas")
    parser.add_argument("--blocks", default="", help="numbers of blocks to compare random and clustered at")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--csv", type=Path, help="append the results here")
    return parser.parse_args()


def peak_gib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def measure(
    problem: Problem, y: np.ndarray, kind: str, n_blocks: int | None, n_threads: int, args: argparse.Namespace
) -> dict[str, Any]:
    """Solves the problem, says how it went, and returns a row of the table."""
    partition = None
    if kind in ("random", "clustered"):
        partition = make_partition(problem.X, y, n_blocks=n_blocks, kind=kind)
    seconds = []
    for _ in range(args.repeats):
        began = time.perf_counter()
        solution = solve(problem, tol=args.tol, n_threads=n_threads, partition=partition)
        seconds.append(time.perf_counter() - began)
    took, peak = float(np.median(seconds)), peak_gib()
    n_blocks = solution.trace.records[-1].active_blocks
    phases = ", ".join(f"{name} {s:.2f}" for name, s in solution.phase_seconds.items() if s > 0.02 * took)
    print(
        f"{kind:9} blocks {n_blocks:3d} threads {n_threads:2d}: {took:7.3f} s, "
        f"{solution.status}, {solution.n_iter} iterations, {solution.nonzeros:,} nonzeros, "
        f"gap {solution.gap / problem.null_model.objective:.1e}; peak {peak:.2f} GiB ({phases})",
        flush=True,
    )
    found = {"blocks": kind, "n_blocks": n_blocks, "threads": n_threads, "seconds": round(took, 4)}
    found |= {"iterations": solution.n_iter, "nonzeros": solution.nonzeros, "objective": solution.objective}
    return found | {"peak_gib": round(peak, 2)}


def main() -> None:
    args = arguments()
    data = shaped(args.shape, scale=args.scale)
    X = data.X.tocsc()
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    print(f"{args.shape}: {X.shape[0]:,} × {X.shape[1]:,}, {X.nnz:,} nonzeros, {size / 2**30:.2f} GiB as CSC")
    problem = Problem(X, data.y, loss="logistic", alpha=1.0)
    problem = problem.with_alpha(problem.alpha_max * args.ratio)
    print(f"peak before the first solve {peak_gib():.2f} GiB")
    rows = []
    threads = [int(t) for t in args.threads.split(",")]
    for n_threads in threads:
        rows.append(measure(problem, data.y, "default", None, n_threads, args))
        print(f"   speed-up {rows[0]['seconds'] / rows[-1]['seconds']:.2f}")
    for n_blocks in [int(b) for b in args.blocks.split(",") if b]:
        for kind in ("random", "clustered"):
            rows.append(measure(problem, data.y, kind, n_blocks, max(threads), args))
    if args.csv:
        about = {name: getattr(args, name) for name in ("shape", "scale", "ratio", "tol")}
        append(args.csv, [about | row | {"csc_gib": round(size / 2**30, 2)} for row in rows])


def append(path: Path, rows: list[dict[str, Any]]) -> None:
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        if new:
            writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
