"""Synchronous against asynchronous thread-greedy descent: speed, objective after equal work, staleness.

    python benchmarks/asynchronous.py --data-dir DIR [--sets reuters,news20] [--threads 2] [--rounds 5]

32 random blocks, each contiguous in memory, on unit columns, logistic loss, a hundredth of lambda_0. A synchronous
iteration scans all 32 blocks against one state and then adds 32 steps; asynchronous threads take block after block
and add its step at once, 32 of them count as one iteration. Both scan every nonzero once. Times are those of the
iterations alone, the fastest of interleaved rounds. Staleness: block updates of other threads between the scan of a
block and its step. The results of asynchronous runs on several threads vary a little, so the range of their
objectives is shown.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import blockgreedy as bg
from blockgreedy.backends.cpu import block_greedy
from blockgreedy.experiments.sets import alpha_text, alphas_of, choose, data_folder, prepare
from blockgreedy.problem.core_problem import CoreProblem
from blockgreedy.solvers.family_arguments import FamilyArguments, family_settings

RESULTS = Path(__file__).parent / "results"
B = 32
UPDATES: dict[str, FamilyArguments] = {
    "add": {"update": "add"},
    "add, step scale of the theory": {"update": "add", "step_scale": "theory"},
    "line-search": {"update": "line-search"},
}
MODES: dict[str, FamilyArguments] = {
    "synchronous": {},
    "synchronous, threads own blocks": {"scan": "blocks"},
    "asynchronous": {"asynchronous": True},
}


@dataclass
class Runs:
    """What the rounds of one setting found."""

    seconds: list[float] = field(default_factory=list)
    objectives: list[float] = field(default_factory=list)
    staleness: list[float] = field(default_factory=list)
    most_stale: int = 0


def measure(problem: bg.Problem, n_iter: int, threads: list[int], rounds: int) -> dict[tuple[str, str, int], Runs]:
    """By update, mode and number of threads."""
    X, blocks = bg.make_partition(problem, n_blocks=B, kind="random").in_block_order(problem.X)
    problem = bg.Problem(X, problem.y, loss="logistic", alpha=problem.alpha)
    models = {n: CoreProblem(problem, n) for n in threads}
    settings = {}
    for update, chosen in UPDATES.items():
        scale = family_settings(problem, "thread-greedy", None, blocks, 0, chosen, max(threads))[1].step_scale
        for mode, how in MODES.items():
            given: FamilyArguments = {**chosen, **how}
            if "step_scale" in chosen:
                given["step_scale"] = scale  # found once
            settings[update, mode] = family_settings(problem, "thread-greedy", None, blocks, 0, given, 1)[1]
    found: dict[tuple[str, str, int], Runs] = {}
    for _ in range(rounds):
        for (update, mode), options in settings.items():
            for n in threads:
                core = block_greedy(models[n], blocks, options)
                began = time.perf_counter()
                core.run(n_iter, float("inf"))
                runs = found.setdefault((update, mode, n), Runs())
                runs.seconds.append(time.perf_counter() - began)
                runs.objectives.append(core.objective())
                runs.staleness.append(core.staleness / max(1, core.moves))
                runs.most_stale = max(runs.most_stale, core.most_stale)
    return found


def table(found: dict[tuple[str, str, int], Runs], n_iter: int, f_zero: float, optimum: float) -> list[str]:
    threads = sorted({n for _, _, n in found})
    head = [f"iterations/s, {n} thread{'s' if n > 1 else ''}" for n in threads]
    last = threads[-1]
    lines = [
        f"| update | mode | {' | '.join(head)} | error after {n_iter} iterations | staleness, mean (most) |",
        f"|---|---|{'---|' * (len(head) + 2)}",
    ]
    for update in UPDATES:
        for mode in MODES:
            speeds = [f"{n_iter / min(found[update, mode, n].seconds):.0f}" for n in threads]
            runs = found[update, mode, last]
            errors = [(value - optimum) / (f_zero - optimum) for value in sorted(runs.objectives)]
            error = " … ".join(dict.fromkeys(f"{value:.4g}" for value in (errors[0], errors[-1])))
            stale = f"{np.mean(runs.staleness):.2f} ({runs.most_stale})" if mode == "asynchronous" else "–"
            lines.append(f"| {update} | {mode} | {' | '.join(speeds)} | {error} | {stale} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=None, help="folder of the data (default: BLOCKGREEDY_DATA)")
    parser.add_argument("--sets", default="reuters,news20")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="compared with one")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--out", type=Path, default=RESULTS / "asynchronous.md")
    given = parser.parse_args()
    warnings.simplefilter("ignore", bg.ConvergenceRiskWarning)
    lines = []
    for source in choose(data_folder(given.data_dir), given.sets.split(","), full=False):
        problem, facts = prepare(source, raw=False, seed=0, n_threads=None)
        alpha = alphas_of(problem.alpha_max)[2]
        problem = problem.with_alpha(alpha)
        optimum = bg.solve(problem, tol=1e-6, max_seconds=300).objective
        found = measure(problem, given.iterations, sorted({1, given.threads}), given.rounds)
        f_zero = problem.objective(np.zeros(problem.n_features))
        origin = f"{facts.n_samples:,} × {facts.n_features:,}, alpha {alpha_text(alpha)}"
        lines += [f"## {source.name}, {origin}", "", *table(found, given.iterations, f_zero, optimum), ""]
        print("\n".join(lines), flush=True)
    given.out.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
