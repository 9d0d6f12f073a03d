"""Ranks against threads: the tile solver on all splits of a machine's cores, beside the threaded default solver.

    python -m benchmarks.tiles.ranks [--cores 16] [--scale 1.0] [--ratio 0.01] [--rounds 3] [--patience 60]
        [--folder DIR] [--splits 1,8,16]

KDDA-shaped data (``--scale 1``: 8.4M × 20M, 305M entries), logistic loss with intercept, to a proven 1e-4. The data
are made once and kept in DIR (a temporary one by default): as arrays, which the default solver loads, and as a store
of CORES row groups, whose tiles ranks map into memory. Every split is processes of their own (``mpirun -n R``, with
cores/R threads each) that fit once to warm up and then on the clock, from Problem to Solution; reading is over by
then. The splits take turns, and the median counts. Iterations and entries read do not depend on the machine. CPU
seconds are those of all ranks, which are busy while they wait.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from benchmarks.quiet import wait_for_quiet

import blockgreedy as bg

TOL = 1e-4
STORE, FACTS = "made.store", "facts.json"
ARRAYS = ("data", "indices", "indptr", "y")


def prepare(options: argparse.Namespace) -> None:
    """Makes the data once, as arrays and as a store, and alpha."""
    folder = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / FACTS).exists():
        return
    data = bg.data.shaped("kdda", 0, options.scale)
    bg.data.convert(data, folder / STORE, memory="64G", row_groups=options.cores)
    parts = (data.X.data, data.X.indices, data.X.indptr, data.y)
    for name, values in zip(ARRAYS, parts, strict=True):
        np.save(folder / f"{name}.npy", values)
    problem = bg.Problem(data.X, data.y, loss="logistic", alpha=1.0, fit_intercept=True)
    facts = {"alpha_max": problem.alpha_max, "shape": data.X.shape, "entries": int(data.X.nnz)}
    (folder / FACTS).write_text(json.dumps(facts))


def given(folder: Path, is_tiled: bool) -> tuple[Any, Any]:
    if is_tiled:
        store = bg.data.Store(folder / STORE)
        return store, None
    values, indices, indptr, y = (np.load(folder / f"{name}.npy") for name in ARRAYS)
    X = sp.csc_array((values, indices, indptr), shape=json.loads((folder / FACTS).read_text())["shape"])
    X.has_canonical_format = True
    return X, y


def measure(options: argparse.Namespace) -> None:
    """One process, or one rank of them."""
    threads, cluster, rank = options.worker[0], None, 0
    if options.worker[1]:
        from mpi4py import MPI

        cluster, rank = MPI.COMM_WORLD, MPI.COMM_WORLD.Get_rank()
    facts, (X, y) = json.loads((options.folder / FACTS).read_text()), given(options.folder, cluster is not None)
    alpha = options.ratio * facts["alpha_max"]
    where: dict[str, Any] = {} if cluster is None else {"cluster": cluster}
    for _ in range(2):
        if cluster is not None:
            cluster.Barrier()
        began, used = time.perf_counter(), time.process_time()
        problem = bg.Problem(X, y, loss="logistic", alpha=alpha, fit_intercept=True, n_threads=threads)
        found = bg.solve(problem, tol=TOL, n_threads=threads, **where)
        seconds, cpu = time.perf_counter() - began, time.process_time() - used
    if cluster is not None:
        seconds, cpu = cluster.allreduce(seconds, op=MPI.MAX), cluster.allreduce(cpu)
    if rank == 0:
        row = {"seconds": seconds, "cpu": cpu, "iterations": found.n_iter, "status": found.status,
               "gap": found.gap / problem.null_model.objective, "nonzeros": int(np.count_nonzero(found.coef)),
               "passes": found.trace.records[-1].nonzeros_touched / facts["entries"]}  # fmt: skip
        Path(options.out).write_text(json.dumps(row))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--ratio", type=float, default=0.01)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--splits", help="numbers of ranks (default: all that divide the cores)")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--patience", type=float, default=60.0, help="seconds to wait for an idle machine, each time")
    parser.add_argument("--mpirun", default=str(Path(sys.executable).parent / "mpirun"))
    parser.add_argument("--worker", nargs=2, type=int, metavar=("THREADS", "MPI"), help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        measure(options)
        return
    with tempfile.TemporaryDirectory() as folder:
        options.folder = options.folder or Path(folder)
        prepare(options)
        race(options)


def race(options: argparse.Namespace) -> None:
    splits = [r for r in range(1, options.cores + 1) if options.cores % r == 0]
    splits = splits if options.splits is None else [int(part) for part in options.splits.split(",")]
    names = ["default solver", *(f"tiles, {r} × {options.cores // r}" for r in splits)]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    out = str(options.folder / "row.json")
    same = ["--folder", str(options.folder), "--ratio", str(options.ratio), "--out", out]
    for _ in range(options.rounds):
        for name, ranks in zip(names, [0, *splits], strict=True):
            threads = options.cores // max(ranks, 1)
            run = [sys.executable, "-m", "benchmarks.tiles.ranks", "--worker", str(threads), str(int(ranks > 0))]
            if ranks:
                run = [options.mpirun, "--allow-run-as-root", "--bind-to", "none", "-n", str(ranks), *run]
            busy = wait_for_quiet(0.2, options.patience)
            subprocess.run([*run, *same], check=True)
            found[name].append(json.loads(Path(out).read_text()) | {"busy": busy})
    print("| solver, ranks × threads | seconds, median (all) | over the default solver | CPU seconds | iterations "
          "| passes over the data | gap | cores busy before |\n|---|---|---|---|---|---|---|---|")  # fmt: skip
    base = statistics.median(row["seconds"] for row in found[names[0]])
    for name, rows in found.items():
        middle, last = statistics.median(row["seconds"] for row in rows), rows[-1]
        every = ", ".join(f"{row['seconds']:.2f}" for row in rows)
        print(f"| {name} | {middle:.2f} ({every}) | {middle / base:.2f} | {min(row['cpu'] for row in rows):.2f} "
              f"| {last['iterations']} | {last['passes']:.1f} | {last['gap']:.1e} "
              f"| {max(row['busy'] for row in rows):.1f} |")  # fmt: skip


if __name__ == "__main__":
    main()
