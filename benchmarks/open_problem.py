"""The paper's open problem as a table: random, clustered and balanced blocks with safe updates.

    BLOCKGREEDY_DATA=folder python benchmarks/open_problem.py [--sets reuters,enron] [--seeds 5] [--jobs 2]

Thread-greedy descent with 32 blocks on unit columns, logistic loss, lambda_0 and the next three powers of ten. Two
things are measured apart. First, how many iterations each run needs until (f − f*)/(f(0) − f*) ≤ 1e-2 and 1e-3.
Counts do not depend on the machine, so runs may go side by side (--jobs), and are kept in a file for the next time.
Second, alone and interleaved, what an iteration and the making of the blocks take. The table has three clocks, each
with the making of the blocks included:

- wall: seconds on this machine, threads scan slices of equal nonzeros;
- blocks: 32 threads, each scans its block: an iteration waits for the heaviest;
- slices: 32 threads scan slices of equal nonzeros.

The last two are models: scanned nonzeros × the time per nonzero on one thread, the same for all kinds of blocks, and
the making of the blocks counted as if it ran on 32 threads as well as the scan does. Cells where both need fewer than
20 iterations are left out, and so are cells that balanced or random blocks do not reach. Where clustered ones do not,
they count with the iterations they were given.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np

import blockgreedy as bg
from blockgreedy.experiments.sets import alpha_text, alphas_of, choose, data_folder, prepare

B = 32
KINDS = ("random", "clustered", "balanced")
UPDATES = ("joint", "sweep")
ERRORS = (1e-2, 1e-3)
CLOCKS = ("wall", "blocks", "slices")
RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Task:
    set_name: str
    alpha_index: int
    update: str
    kind: str
    seed: int


@dataclass(frozen=True)
class Making:
    """What a kind of blocks costs: seconds to make them on one thread and on all, nonzeros of the heaviest block."""

    alone: float
    together: float
    heaviest: float


_problems: dict[str, bg.Problem] = {}
_optima: dict[tuple[str, int], float] = {}
_true_groups: dict[str, bg.Partition] = {}
_limits = (0, 0.0)


def grouped_problem() -> tuple[bg.Problem, bg.Partition]:
    """2,000 samples of 640 dense features in 32 groups, correlation 0.9 within a group; and those groups."""
    rng = np.random.default_rng(0)
    base = np.repeat(rng.standard_normal((2000, B)), 20, axis=1)
    X = np.sqrt(0.9) * base + np.sqrt(0.1) * rng.standard_normal(base.shape)
    w = np.where(rng.random(X.shape[1]) < 0.1, rng.standard_normal(X.shape[1]), 0)
    y = np.sign(X @ w + 0.5 * np.std(X @ w) * rng.standard_normal(2000))
    order = rng.permutation(X.shape[1])
    X = np.asfortranarray(X[:, order] / np.linalg.norm(X[:, order], axis=0))
    return bg.Problem(X, y, loss="logistic", alpha=1.0), bg.Partition(order // 20, B, "true groups")


def load_problems(names: list[str]) -> None:
    for source in choose(data_folder(None), [name for name in names if name != "grouped"], full=False):
        _problems[source.name] = prepare(source, raw=False, seed=0, n_threads=None)[0]
    if "grouped" in names or not names:
        _problems["grouped"], _true_groups["grouped"] = grouped_problem()


def problem_of(task: Task) -> bg.Problem:
    problem = _problems[task.set_name]
    return problem.with_alpha(alphas_of(problem.alpha_max)[task.alpha_index])


def partition_of(task: Task, n_threads: int | None = None) -> bg.Partition:
    if task.kind == "true groups":
        return _true_groups[task.set_name]
    problem = _problems[task.set_name]
    return bg.make_partition(problem, n_blocks=B, kind=task.kind, seed=task.seed, n_threads=n_threads)


def count(task: Task) -> tuple[Task, list[float]]:
    """Iterations until each error, inf where it was not reached."""
    problem, optimum = problem_of(task), _optima[task.set_name, task.alpha_index]
    f_zero = problem.objective(np.zeros(problem.n_features))
    needed = dict.fromkeys(ERRORS, math.inf)

    def watch(record: bg.trace.Record) -> bool:
        error = (record.objective - optimum) / (f_zero - optimum)
        for aim in ERRORS:
            if error <= aim:
                needed[aim] = min(needed[aim], record.iteration)
        return error <= min(ERRORS)

    max_iter, max_seconds = _limits
    bg.solve(
        problem, "thread-greedy", partition=partition_of(task, 1), update=task.update, tol=0.0, n_threads=1,
        max_iter=max_iter, max_seconds=max_seconds, trace_iters=1, callback=watch,
    )  # fmt: skip
    return task, list(needed.values())


def costs_of(name: str, kinds: tuple[str, ...], n_threads: int) -> tuple[dict[str, Making], float]:
    """What each kind of blocks costs, and the seconds of a scanned nonzero: medians of interleaved rounds."""
    seen: dict[str, list[tuple[float, ...]]] = {kind: [] for kind in kinds}
    per_nonzero = []
    for seed in [*range(5)] * 3:
        per_nonzero.append(seconds_per_iteration(Task(name, 0, "joint", "random", seed), 1, 20)[1])
        for kind in kinds:
            task = Task(name, 0, "joint", kind, seed)
            began = time.perf_counter()
            partition_of(task, 1)
            middle = time.perf_counter()
            made = partition_of(task, n_threads)
            took = (middle - began, time.perf_counter() - middle)
            seen[kind].append((*took, float(made.nonzeros(_problems[name].X).max())))
    making = {kind: Making(*np.median(values, axis=0).tolist()) for kind, values in seen.items()}
    return making, float(np.median(per_nonzero))


def seconds_per_iteration(task: Task, n_threads: int, n_iter: int) -> tuple[float, float]:
    """Seconds of an iteration, and of one scanned nonzero."""
    solution = bg.solve(
        problem_of(task), "thread-greedy", partition=partition_of(task), update=task.update, tol=0.0,
        n_threads=n_threads, max_iter=n_iter, trace_iters=n_iter,
    )  # fmt: skip
    return solution.seconds / solution.n_iter, solution.seconds / solution.trace.records[-1].nonzeros_touched


def rows_of(name: str, counts: dict[Task, list[float]], seeds: int, n_threads: int) -> list[dict[str, object]]:
    problem = _problems[name]
    kinds = (*KINDS, "true groups") if name in _true_groups else KINDS
    alphas = alphas_of(problem.alpha_max)
    nonzeros = int(problem.X.size if isinstance(problem.X, np.ndarray) else problem.X.nnz)
    making, per_nonzero = costs_of(name, kinds, n_threads)
    rows = []
    for k in range(len(alphas)):
        for update in UPDATES:
            medians = {
                kind: np.median([counts[task] for task in tasks(name, k, update, kind, seeds)], axis=0)
                for kind in kinds
            }
            per_iteration = measured_iterations(name, k, update, medians, n_threads)
            for at, error in enumerate(ERRORS):
                row: dict[str, object] = {
                    "set": name,
                    "alpha": alpha_text(alphas[k]),
                    "update": update,
                    "error": error,
                }
                for kind in kinds:
                    needed = float(medians[kind][at])
                    spent = needed if math.isfinite(needed) else limit_of(name)[0]
                    blocks = making[kind]
                    times = {
                        "wall": blocks.together + spent * per_iteration[kind],
                        "blocks": blocks.alone / B + spent * blocks.heaviest * per_nonzero,
                        "slices": blocks.alone / B + spent * nonzeros / B * per_nonzero,
                    }
                    row[f"{kind} iterations"] = needed
                    row |= {f"{kind} {clock} s": float(f"{times[clock]:.4g}") for clock in CLOCKS}
                rows.append(row)
    return rows


def measured_iterations(
    name: str, k: int, update: str, medians: dict[str, np.ndarray], n_threads: int
) -> dict[str, float]:
    """Seconds of an iteration for each kind: medians of three interleaved runs of the needed length, 200 at most."""
    seen: dict[str, list[float]] = {kind: [] for kind in medians}
    for seed in range(3):
        for kind, needed in medians.items():
            n_iter = int(min(200, max(5.0, float(needed[-1]))))
            seen[kind].append(seconds_per_iteration(Task(name, k, update, kind, seed), n_threads, n_iter)[0])
    return {kind: float(np.median(values)) for kind, values in seen.items()}


def limit_of(name: str) -> tuple[int, float]:
    """Iterations and seconds that a run may take: those of large sets are slow. Seconds are only a safeguard."""
    size = _problems[name].X.size if isinstance(_problems[name].X, np.ndarray) else _problems[name].X.nnz
    return (3000, 1e4) if size < 5e6 else (1000, 1e4)


def tasks(name: str, alpha_index: int, update: str, kind: str, seeds: int) -> list[Task]:
    by_chance = kind in ("random", "balanced")
    return [Task(name, alpha_index, update, kind, seed) for seed in range(seeds if by_chance else 1)]


def count_all(names: list[str], seeds: int, jobs: int, path: Path) -> dict[Task, list[float]]:
    todo = [
        task
        for name in names
        for k in range(4)
        for update in UPDATES
        for kind in ((*KINDS, "true groups") if name in _true_groups else KINDS)
        for task in tasks(name, k, update, kind, seeds)
    ]
    global _limits
    counts = read_counts(path)
    for name in names:  # workers are forked and inherit the problems
        _limits = limit_of(name)
        mine = [task for task in todo if task.set_name == name and task not in counts]
        began = time.perf_counter()
        with ProcessPoolExecutor(jobs) as pool:
            counts |= dict(pool.map(count, mine))
        write_counts(path, counts)
        print(f"{name}: {len(mine)} runs counted in {time.perf_counter() - began:.0f} s", flush=True)
    return counts


def read_counts(path: Path) -> dict[Task, list[float]]:
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {
            Task(row["set_name"], int(row["alpha_index"]), row["update"], row["kind"], int(row["seed"])): [
                float(row[str(error)]) for error in ERRORS
            ]
            for row in csv.DictReader(file)
        }


def write_counts(path: Path, counts: dict[Task, list[float]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f.name for f in fields(Task)), *ERRORS])
        writer.writerows([*astuple(task), *needed] for task, needed in counts.items())


def ratios(rows: list[dict[str, object]], rival: str, clock: str) -> list[tuple[dict[str, object], float]]:
    """(cell, time with the rival's blocks / time with balanced blocks) for the cells that count."""
    return [
        (row, number(row, f"{rival} {clock} s") / number(row, f"balanced {clock} s"))
        for row in rows
        if number(row, f"{rival} {clock} s") > 0 and counts_for(row, rival)
    ]


def number(row: dict[str, object], column: str) -> float:
    """0 where the row has nothing there."""
    return float(str(row.get(column) or 0))


def summary(rows: list[dict[str, object]]) -> list[str]:
    lines = []
    for group, chosen in (("grouped", True), ("all other sets", False)):
        mine = [row for row in rows if (row["set"] == "grouped") == chosen]
        for rival in ("random", "clustered", "true groups"):
            for clock in CLOCKS:
                cells = ratios(mine, rival, clock)
                if not cells:
                    continue
                row, worst = min(cells, key=lambda cell: cell[1])
                where = " ".join(str(row[name]) for name in ("set", "alpha", "update", "error"))
                lines.append(
                    f"balanced against {rival}, {clock} clock, {group}: geometric mean {mean_of(cells):.2f}, "
                    f"worst {worst:.2f} ({where}), {len(cells)} cells"
                )
    return lines


def mean_of(cells: list[tuple[dict[str, object], float]]) -> float:
    return math.exp(sum(math.log(ratio) for _, ratio in cells) / len(cells))


def table(rows: list[dict[str, object]]) -> list[str]:
    """Geometric means (least … most) by set, in Markdown."""
    columns = [(rival, clock) for rival in ("random", "clustered") for clock in CLOCKS]
    lines = [
        f"| set | {' | '.join(f'{rival}, {clock}' for rival, clock in columns)} |",
        f"|---|{'---|' * len(columns)}",
    ]
    for name in dict.fromkeys(str(row["set"]) for row in rows):
        texts = []
        for rival, clock in columns:
            cells = ratios([row for row in rows if row["set"] == name], rival, clock)
            found = [ratio for _, ratio in cells]
            texts.append(f"{mean_of(cells):.2f} ({min(found):.2f} … {max(found):.2f})" if cells else "–")
        lines.append(f"| {name} | {' | '.join(texts)} |")
    return lines


def counts_for(row: dict[str, object], rival: str) -> bool:
    """Whether the cell counts: reached by balanced (and by random), and not over at once."""
    ours, theirs = number(row, "balanced iterations"), number(row, f"{rival} iterations")
    if max(ours, theirs) < 20 or not math.isfinite(ours):
        return False
    return math.isfinite(theirs) or rival == "clustered"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="", help="comma-separated; 'grouped' is generated (default: all)")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1, help="counting runs side by side")
    parser.add_argument("--threads", type=int, default=None, help="of the wall clock")
    parser.add_argument("--counts", type=Path, default=RESULTS / "open-problem-counts.csv")
    parser.add_argument("--out", type=Path, default=RESULTS / "open-problem.csv")
    given = parser.parse_args()
    load_problems([name for name in given.sets.split(",") if name])
    names = list(_problems)
    for name in names:
        for k, alpha in enumerate(alphas_of(_problems[name].alpha_max)):
            solution = bg.solve(_problems[name].with_alpha(alpha), tol=1e-7, max_seconds=120)
            _optima[name, k] = solution.objective
    counts = count_all(names, given.seeds, given.jobs, given.counts)
    n_threads = given.threads or len(os.sched_getaffinity(0))
    rows = [row for name in names for row in rows_of(name, counts, given.seeds, n_threads)]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with given.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    lines = [f"Wall clock: {n_threads} threads.", "", *table(rows), "", *(f"- {line}" for line in summary(rows))]
    given.out.with_suffix(".md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
