"""Two threads against one on small problems, alone and beside a process that holds a core.

    python benchmarks/threads.py --repeats 40

Threads must not be a risk: with little to share two of them should cost next to nothing, and when a core is taken the
one that is left should not wait for the other. Runs take turns; medians are compared.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time

import numpy as np

from blockgreedy import Problem, load, solve
from blockgreedy.data import shaped, text_like


def spin() -> None:
    while True:
        pass


def compare(problem: Problem, repeats: int) -> tuple[float, float]:
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(repeats):
        for n_threads, own in seconds.items():
            began = time.perf_counter()
            solve(problem, tol=1e-5, n_threads=n_threads)
            own.append(time.perf_counter() - began)
    return float(np.median(seconds[1])), float(np.median(seconds[2]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=40)
    args = parser.parse_args()
    sets = {
        "text 300 × 500": text_like(300, 500, 20, seed=0),
        "text 3,000 × 5,000": text_like(3_000, 5_000, 40, seed=0),
        "reuters-shaped": shaped("reuters"),
    }
    folder = os.environ.get("BLOCKGREEDY_DATA")
    if folder and os.path.exists(os.path.join(folder, "reuters.npz")):
        sets["reuters"] = load(os.path.join(folder, "reuters.npz"))
    for busy in (False, True):
        neighbour = multiprocessing.Process(target=spin, daemon=True)
        if busy:
            neighbour.start()
        print("beside a busy process" if busy else "alone")
        for name, data in sets.items():
            for loss in ("logistic", "squared"):
                problem = Problem(data.X, data.y, loss=loss, alpha=1.0)
                for ratio in (0.3, 0.1, 0.01):
                    own = problem.with_alpha(ratio * problem.alpha_max)
                    one, two = compare(own, args.repeats)
                    print(
                        f"  {name:20} {loss:9} {ratio:5g}: one thread {one * 1e3:8.2f} ms, two {two * 1e3:8.2f} ms, "
                        f"{two / one:.2f}",
                        flush=True,
                    )
        if busy:
            neighbour.kill()


if __name__ == "__main__":
    main()
