"""Iterations of the block-greedy family beside the floor: one plain gradient pass over the same matrix.

Prints, for each data set and number of threads, the floor in ns per nonzero and each setting's time per
iteration as a multiple of it, and how often a coordinate-at-a-time method looks at a coordinate. Floor and
settings are measured alternately in one run; figures are medians.

    python benchmarks/family.py --data-dir DIR --threads 1,2      (or BLOCKGREEDY_DATA=DIR)

DIR holds reuters.npz and news20.npz; without it generated data of the paper's shapes is used, and named so.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from pathlib import Path

import numpy as np

import blockgreedy as bg
from blockgreedy import _core
from blockgreedy.backends.cpu import block_greedy
from blockgreedy.problem.core_problem import CoreProblem
from blockgreedy.solvers.options import FamilyOptions

UPDATES = ("joint", "add", "sweep", "line-search")


def data_sets(folder: str | None) -> list[bg.Dataset]:
    found = []
    for name in ("reuters", "news20"):
        path = Path(folder or "") / f"{name}.npz"
        if folder and not path.exists():
            print(f"{path} is missing: generated data of that shape is used instead")
        found.append(bg.load(path) if folder and path.exists() else bg.data.shaped(name))
    return found


def seconds(work) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def family_rows(problem: bg.Problem, threads: list[int], rounds: int) -> list[dict[str, object]]:
    """One row per setting and number of threads, all measured in turns with the floor."""
    r, out = np.random.default_rng(0).normal(size=problem.n_samples), np.empty(problem.n_features)
    random = bg.make_partition(problem.X, n_blocks=32, kind="random")
    one = bg.make_partition(problem.X, n_blocks=1, kind="contiguous")
    cases = {}
    for n_threads in threads:
        model = CoreProblem(problem, n_threads)
        cases["floor", n_threads] = lambda n, model=model: [model.core.column_products(r, out) for _ in range(n)]
        engines = {f"thread-greedy {u}": block_greedy(model, random, FamilyOptions(32, 32, 1, u)) for u in UPDATES}
        engines["greedy"] = block_greedy(model, one, FamilyOptions(1, 1))
        for name, engine in engines.items():
            cases[name, n_threads] = lambda n, engine=engine: engine.run(n, np.inf)
    stretch = {case: max(1, int(0.04 / seconds(lambda run=run: run(1)))) for case, run in cases.items()}
    times: dict[tuple[str, int], list[float]] = {case: [] for case in cases}
    for _ in range(rounds):
        for case, run in cases.items():
            times[case].append(seconds(lambda run=run, n=stretch[case]: run(n)) / stretch[case])
    medians = {case: float(np.median(values)) for case, values in times.items()}
    return [
        {
            "setting": name,
            "n_threads": n_threads,
            "seconds": value,
            "over_floor": value / medians["floor", n_threads],
            "speed_up": medians[name, threads[0]] / value,
            "ns_per_nonzero": value / problem.X.nnz * 1e9,
        }
        for (name, n_threads), value in medians.items()
    ]


def coordinate_rows(problem: bg.Problem) -> list[dict[str, object]]:
    """SCD and Shotgun with one thread: coordinates looked at per second."""
    p = problem.n_features
    singles = bg.make_partition(problem.X, n_blocks=p, kind="contiguous")
    rows = []
    for name, per_iter in (("scd", 1), ("shotgun P=64", 64)):
        engine = block_greedy(CoreProblem(problem, 1), singles, FamilyOptions(p, per_iter))
        n_iter = 300_000 // per_iter
        rates = [n_iter * per_iter / seconds(lambda: engine.run(n_iter, np.inf)) for _ in range(9)]  # noqa: B023
        rows.append({"setting": name, "n_threads": 1, "coordinates_per_second": float(np.median(rates))})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", default=os.environ.get("BLOCKGREEDY_DATA"))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--ratios", default="0.1,0.01", help="alpha as parts of alpha_max")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--csv", type=Path, help="also write the rows here")
    arguments = parser.parse_args()
    print(f"instruction set {_core.isa()}, {os.cpu_count()} CPUs, logistic loss, 32 random blocks, float32")
    threads = [int(t) for t in arguments.threads.split(",")]
    rows = []
    for data in data_sets(arguments.data_dir):
        whole = bg.Problem(data.X, data.y, loss="logistic", alpha=1.0)
        print(f"\n{data}")
        for ratio in map(float, arguments.ratios.split(",")):
            problem = whole.with_alpha(ratio * whole.alpha_max)
            print(f"  alpha = {ratio:g} alpha_max")
            for row in family_rows(problem, threads, arguments.rounds) + coordinate_rows(problem):
                rows.append({"data": data.name, "alpha_ratio": ratio, **row})
                print("    " + describe(row))
    if arguments.csv:
        names = list(dict.fromkeys(key for row in rows for key in row))
        with arguments.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(rows)


def describe(row: dict[str, object]) -> str:
    if "coordinates_per_second" in row:
        return f"{row['setting']:28s} {row['coordinates_per_second'] / 1e6:8.2f} M coordinates/s"
    return (
        f"{row['setting']:26s} {row['n_threads']:2d} thread(s) {row['seconds'] * 1e3:8.3f} ms = "
        f"{row['over_floor']:5.2f} x floor, "
        f"{row['ns_per_nonzero']:5.2f} ns per nonzero, {row['speed_up']:5.2f} x the first number of threads"
    )


if __name__ == "__main__":
    main()
