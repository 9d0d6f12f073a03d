"""Iterations per second of a selection rule in Python that looks at the gradients of all blocks.

    python -m benchmarks.selection_rule --data-dir DIR --threads 1,2      (or BLOCKGREEDY_DATA=DIR)

The rule below is what a user of docs/gencd.md writes: Gauss-Southwell over blocks, with ties broken at random. It
needs the gradient of every feature in every iteration. DIR holds reuters.npz; without it generated data of that shape
is used, and named so. 32 blocks, logistic loss, alpha 1e-4, `update="joint"`; each of the selected blocks accepts its
best feature. For comparison: the same rule by name, the paper's uniform rule, and the product Xᵀr of all columns,
which such a rule cannot do without.

Settings take turns, in stretches of iterations that go on where the last one ended; figures are medians over rounds.
"seconds" are those of the iterations by the clock. "processor" is the time of the process, checks of the gap and the
start of each stretch included: with one thread, what is left of it when other processes take their share.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.quiet import wait_for_quiet

import blockgreedy as bg
from blockgreedy.problem.core_problem import CoreProblem

N_BLOCKS = 32
ALPHA = 1e-4
LEAST = 200  # iterations per second that docs/gencd.md promises


def southwell(state):
    """The P blocks whose steepest feature is steepest: Gauss-Southwell over blocks, with ties broken at random."""
    slope = np.abs(state.gradient())  # of the loss, along every feature
    at_zero = np.maximum(slope - state.problem.alpha, 0.0)  # what is left of it beside the penalty
    moving = np.abs(state.gradient() + state.problem.alpha * np.sign(state.w))
    steepest = state.block_max(np.where(state.w == 0, at_zero, moving))
    shuffled = state.random.permutation(state.n_blocks)  # a stable sort keeps this order among equals
    order = shuffled[np.argsort(-steepest[shuffled], kind="stable")]
    return order[: state.blocks_per_iter]


Stretch = Callable[[int], float]  # makes so many iterations and says how many seconds they took


class Run:
    """A run in stretches: each starts from the weights where the last one ended."""

    def __init__(self, problem: bg.Problem, **settings: Any) -> None:
        self.problem, self.settings, self.coef, self.number = problem, settings, np.zeros(problem.n_features), 0

    def __call__(self, count: int) -> float:
        self.number += 1
        limits = {"max_iter": count, "tol": 0.0, "trace_iters": count}
        found = bg.family.run(self.problem, coef_init=self.coef, seed=self.number, **limits, **self.settings)
        self.coef = found.coef
        assert found.n_iter == count, found
        return found.seconds


def cases(problem: bg.Problem, threads: int, blocks: bg.Partition, per_iter: int) -> dict[str, Stretch]:
    model = CoreProblem(problem, threads)
    r, out = np.random.default_rng(0).normal(size=problem.n_samples), np.empty(problem.n_features)

    def products(count: int) -> float:
        began = time.perf_counter()
        for _ in range(count):
            model.core.column_products(r, out)
        return time.perf_counter() - began

    def run(select: object, telemetry: bool = True) -> Run:
        return Run(
            problem, select=select, partition=blocks, blocks_per_iter=per_iter, n_threads=threads, telemetry=telemetry
        )

    return {
        "the rule, telemetry on": run(southwell),
        "the rule, telemetry off": run(southwell, telemetry=False),
        '"gauss-southwell-s", by name': run("gauss-southwell-s"),
        '"uniform", telemetry on': run("uniform"),
        "the product Xᵀr alone": products,
    }


def rates(found: dict[str, Stretch], seconds: float, rounds: int) -> dict[str, Any]:
    """Iterations per second, and per second of the processor, of each case, one for each round; cases take turns."""
    counts = {}
    for name, stretch in found.items():
        stretch(20)
        counts[name] = max(20, int(20 * seconds / stretch(20)))
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in found}
    for _ in range(rounds):
        for name, stretch in found.items():
            began = time.process_time()
            taken = stretch(counts[name])
            measured[name].append((counts[name] / taken, counts[name] / (time.process_time() - began)))
    return {name: np.array(values).T for name, values in measured.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", default=os.environ.get("BLOCKGREEDY_DATA"))
    parser.add_argument("--threads", default="1,2", help="numbers of threads, separated by commas")
    parser.add_argument("--blocks-per-iter", type=int, default=8, help="how many of the 32 blocks the rule selects")
    parser.add_argument("--seconds", type=float, default=0.5, help="of one stretch")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--patience", type=float, default=0.0, help="seconds to wait for other processes to end")
    asked = parser.parse_args()
    path = Path(asked.data_dir or "") / "reuters.npz"
    data = bg.load(path) if asked.data_dir and path.exists() else bg.data.shaped("reuters")
    problem = bg.Problem(data.X, data.y, loss="logistic", alpha=ALPHA)
    blocks = bg.make_partition(problem, n_blocks=N_BLOCKS, kind="random")
    name = "reuters.npz" if asked.data_dir and path.exists() else f"generated data ({data.name})"
    per_iter = asked.blocks_per_iter
    print(f"{name}: {problem.n_samples:,} × {problem.n_features:,}, {data.X.nnz:,} nonzeros; alpha {ALPHA:g}")
    print(f"{N_BLOCKS} blocks, {per_iter} of them per iteration; {platform.machine()}, {os.cpu_count()} cores")
    print(f"other processes use {wait_for_quiet(0.3, asked.patience):.1f} cores\n")
    print(f"iterations per …{'':20}second (least … most)    second of processor")
    for threads in map(int, asked.threads.split(",")):
        print(f"{threads} thread{'s' * (threads > 1)}")
        measured = rates(cases(problem, threads, blocks, per_iter), asked.seconds, asked.rounds)
        for case, (wall, processor) in measured.items():
            span = f"({wall.min():,.0f} … {wall.max():,.0f})"
            print(f"  {case:30} {np.median(wall):8,.0f} {span:18} {np.median(processor):12,.0f}")
        slowest = min(np.median(wall) for case, (wall, _) in measured.items() if case.startswith("the rule"))
        print(f"  the rule makes {'at least' if slowest >= LEAST else 'FEWER THAN'} {LEAST} iterations per second")


if __name__ == "__main__":
    main()
