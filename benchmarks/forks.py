"""Forks while threads fit: whether the children can fit too, as multiprocessing under a server or notebook wants.

    python -m benchmarks.forks --forks 500

Prints a row for each pair of things that threads do meanwhile, and where a child that hangs stands.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from itertools import cycle

import numpy as np
import scipy.sparse as sp
from hunt.forks import BUSY, busy_threads, fork

import blockgreedy as bg

PATIENCE = 3.0  # seconds; a child's fit takes milliseconds
AT_A_TIME = 10  # forks beside the same threads


def fit(X: sp.csr_array, y: np.ndarray) -> bytes:
    problem = bg.Problem(X, y, loss="logistic", alpha=0.01, fit_intercept=True, standardize=True)
    return bg.solve(problem, n_threads=1).coef.tobytes()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--forks", type=int, default=500)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X = sp.csr_array(sp.random(500, 200, 0.05, format="csr", random_state=rng))
    y = np.where(rng.random(500) < 0.5, 1.0, -1.0)
    expected, kinds = fit(X, y), list(BUSY)
    counts = {pair: [0, 0, 0] for pair in zip(kinds, kinds[1:] + kinds[:1], strict=True)}
    stacks: set[str] = set()
    done, pairs = 0, cycle(counts)
    while done < options.forks:
        pair = next(pairs)
        with busy_threads(list(pair)):
            for _ in range(min(AT_A_TIME, options.forks - done)):
                time.sleep(rng.uniform(0, 0.02))
                code, where = fork(lambda: fit(X, y) == expected, PATIENCE)
                counts[pair][0] += 1
                counts[pair][1] += code is None
                counts[pair][2] += code not in (None, 0)
                stacks |= {where} if code != 0 else set()
                done += 1
    print("| threads | forks | hang | other failures |\n|---|---|---|---|")
    for pair, (forks, hangs, others) in counts.items():
        print(f"| {' and '.join(pair)} | {forks} | {hangs} | {others} |")
    hangs, others = (sum(count[k] for count in counts.values()) for k in (1, 2))
    print(f"\n{done} forks, {hangs} hang, {others} fail otherwise")
    print("\n".join(sorted(stacks)))
    return 1 if hangs or others else 0


if __name__ == "__main__":
    sys.exit(main())
