"""The frontier between correlation and balance: rho_block, load and iterations of blocks from clustered to balanced.

    python benchmarks/frontier.py --data-dir DIR [--sets reuters,enron] [--jobs 2]
    python benchmarks/frontier.py --draw     # tables and pictures again, from results/frontier.csv

32 blocks on the sets and the preparation of benchmarks/open_problem.py: random, balanced, clustered (Algorithm 2) and
capped ones (Algorithm 2 with at most max_load times the mean nonzeros in a block). Of each: bounds on rho_block, the
least rho_block that any partition of the same load can have (theory.least_rho_block), the heaviest block and the
largest gradient mass over their means, the blocks that hold a weight of the solution, and the iterations of
thread-greedy descent until (f − f*)/(f(0) − f*) ≤ 0.1 and 0.01, for every way to combine steps. Counts do not depend
on the machine. Sets that are not asked for keep their rows in the file.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import blockgreedy as bg
from blockgreedy.experiments.sets import alpha_text, alphas_of, choose, data_folder, prepare
from blockgreedy.partitions.spectrum import UnitColumns

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.frontier_report import draw, markdown, short_table, unique, with_table  # noqa: E402
from benchmarks.open_problem import B, grouped_problem  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
TEXTS = ("set", "blocks", "alpha", "update", "status")
MAX_LOADS = (1.0, 1.1, 1.5, 2.0, 4.0)
ALPHAS = (0, 2)  # lambda_0, and a hundredth of it
UPDATES = ("add", "add, step scale of the theory", "line-search", "joint", "sweep")
ERRORS = (0.1, 0.01)
Row = dict[str, Any]

_problem: bg.Problem
_partitions: dict[str, bg.Partition] = {}
_optima: dict[int, float] = {}
_scales: dict[str, float] = {}


def load(names: list[str], folder: Path | None) -> dict[str, bg.Problem]:
    real = [name for name in names if name != "grouped"]
    problems = {}
    if real or not names:
        for source in choose(data_folder(folder), real, full=False):
            problems[source.name] = prepare(source, raw=False, seed=0, n_threads=None)[0]
    if "grouped" in names or not names:
        problems["grouped"] = grouped_problem()[0]
    return problems


def partitions_of(problem: bg.Problem) -> dict[str, bg.Partition]:
    made = {kind: bg.make_partition(problem, n_blocks=B, kind=kind) for kind in ("random", "balanced")}
    for limit in MAX_LOADS:
        made[f"capped {limit:g}"] = bg.make_partition(problem, n_blocks=B, kind="capped", max_load=limit)
    made["clustered"] = bg.make_partition(problem, n_blocks=B, kind="clustered")
    return made


def facts_of(problem: bg.Problem, partitions: dict[str, bg.Partition]) -> dict[str, Row]:
    """What is known of each partition before any run."""
    unit, solved = UnitColumns(problem.X), {}
    for k in ALPHAS:
        solved[k] = bg.solve(problem.with_alpha(alphas_of(problem.alpha_max)[k]), tol=1e-6, max_seconds=300)
        _optima[k] = solved[k].objective
    found = {}
    for name, blocks in partitions.items():
        rho = bg.theory.rho_block(unit, blocks, y=problem.y)
        loads, mass = blocks.nonzeros(problem.X), blocks.mass(problem.X, problem.y)
        load = float(loads.max() / loads.mean())
        _scales[name] = bg.theory.safe_step_scale(B, B, rho.upper.value)
        found[name] = {
            "load": load,
            "mass": float(mass.max() / mass.mean()),
            "rho lower": rho.lower.value,
            "rho upper": rho.upper.value,
            "rho estimate": math.nan if rho.estimate is None else rho.estimate.value,
            "any partition": bg.theory.least_rho_block(unit, B, max(1.0, load)).value,
            "active": {k: len(np.unique(blocks.block_of[np.flatnonzero(solved[k].coef)])) for k in ALPHAS},
        }
    return found


def run(task: tuple[str, int, str, int]) -> tuple[list[float], str]:
    """Iterations until each error (inf: not reached), and how the run ended."""
    name, k, update, max_iter = task
    problem = _problem.with_alpha(alphas_of(_problem.alpha_max)[k])
    f_zero, optimum = problem.objective(np.zeros(problem.n_features)), _optima[k]
    needed = dict.fromkeys(ERRORS, math.inf)

    def watch(record: bg.trace.Record) -> bool:
        error = (record.objective - optimum) / (f_zero - optimum)
        for aim in ERRORS:
            if error <= aim:
                needed[aim] = min(needed[aim], record.iteration)
        return error <= min(ERRORS)

    how, is_scaled = update.split(",")[0], "scale" in update
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bg.ConvergenceRiskWarning)
        solution = bg.solve(
            problem, "thread-greedy", partition=_partitions[name], update=how, tol=0.0, n_threads=1,
            max_iter=max_iter, trace_iters=1, callback=watch, **({"step_scale": _scales[name]} if is_scaled else {}),
        )  # fmt: skip
    return list(needed.values()), "diverged" if solution.status == "diverged" else "ended"


def measure(name: str, problem: bg.Problem, jobs: int) -> list[Row]:
    global _problem, _partitions
    began = time.perf_counter()
    _problem, _partitions = problem, partitions_of(problem)
    facts = facts_of(problem, _partitions)
    print(f"{name}: bounds after {time.perf_counter() - began:.0f} s", flush=True)
    size = problem.X.size if isinstance(problem.X, np.ndarray) else problem.X.nnz
    max_iter = 1000 if size < 5e6 else 300
    tasks = [(blocks, k, update, max_iter) for k in ALPHAS for update in UPDATES for blocks in _partitions]
    with ProcessPoolExecutor(jobs) as pool:  # workers are forked and inherit the problem
        ended = list(pool.map(run, tasks))
    rows = []
    for (blocks, k, update, _), (needed, status) in zip(tasks, ended, strict=True):
        mine = {key: value for key, value in facts[blocks].items() if key != "active"}
        row: Row = {"set": name, "blocks": blocks, **{key: float(f"{value:.5g}") for key, value in mine.items()}}
        row |= {"alpha": alpha_text(alphas_of(problem.alpha_max)[k]), "active": facts[blocks]["active"][k]}
        row |= {"update": update, **{str(e): count for e, count in zip(ERRORS, needed, strict=True)}}
        rows.append(row | {"status": status, "max_iter": max_iter})
    print(f"{name}: {len(rows)} runs after {time.perf_counter() - began:.0f} s", flush=True)
    return rows


def read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            {key: value if key in TEXTS else float(value) for key, value in row.items()}
            for row in csv.DictReader(file)
        ]


def write(path: Path, rows: list[Row]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        for row in rows:  # 5 is written as 5, whether it was measured or read
            writer.writerow({key: f"{value:.10g}" if key not in TEXTS else value for key, value in row.items()})


def with_set(rows: list[Row], name: str, made: list[Row]) -> list[Row]:
    """The rows with those of one set replaced where they stand, so that a run of one set moves no other."""
    names = dict.fromkeys([*unique(rows, "set"), name])
    return [row for own in names for row in (made if own == name else rows) if row["set"] == own]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=None, help="folder of the data (default: BLOCKGREEDY_DATA)")
    parser.add_argument("--sets", default="", help="comma-separated; 'grouped' is generated (default: all)")
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side")
    parser.add_argument("--out", type=Path, default=RESULTS / "frontier.csv")
    parser.add_argument("--images", type=Path, default=ROOT / "docs" / "img")
    parser.add_argument("--draw", action="store_true", help="measure nothing: table and pictures of what is there")
    given = parser.parse_args()
    if not given.draw:
        names = [name for name in given.sets.split(",") if name]
        for name, problem in load(names, given.data_dir).items():
            made = measure(name, problem, given.jobs)
            write(given.out, with_set(read(given.out), name, made))
    rows = read(given.out)
    text = markdown(rows)
    given.out.with_suffix(".md").write_text(text, encoding="utf-8")
    draw(rows, given.images)
    page = ROOT / "docs" / "clustering.md"
    page.write_text(with_table(page.read_text(encoding="utf-8"), short_table(rows)), encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
