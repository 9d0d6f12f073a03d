"""How late fits are that are told to stop: nasty problems of the hunt, each with max_seconds of 0.05 and 0.5.

    python -m benchmarks.deadlines --problems 200

Prints how late they were: seconds beyond max_seconds, by the clock or by processor time, whichever is less, so that a
busy machine does not count. A fit is late if it takes more than twice max_seconds and half a second. The worst are
named by the hunt's seeds: `python -m hunt --case deadlines:SEED` repeats one.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from dataclasses import replace

# before NumPy: threads of its own wait for each other on a machine that is busy with others
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from hunt.case import Case
from hunt.deadlines import run_once
from hunt.lateness import allowed, timed
from hunt.problems import make

LIMITS = (0.05, 0.5)
QUANTILES = (0.5, 0.9, 0.99, 1.0)
WORST = 5  # that are named


def nasty(n_problems: int, seed: int) -> list[Case]:
    """Problems of this class that a limit of seconds may end."""
    cases: list[Case] = []
    while len(cases) < n_problems:
        case = make("deadlines", seed)
        seed += 1
        if case.use["call"] != "one iteration":
            cases.append(case)
    return cases


def beyond(case: Case, limit: float) -> float:
    """Seconds beyond max_seconds: the least of two runs where the first was late."""
    case = replace(case, options={**case.options, "max_seconds": limit})
    seconds = timed(lambda: run_once(case))[1]
    if seconds > allowed(limit):
        seconds = min(seconds, timed(lambda: run_once(case))[1])
    return seconds - limit


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    cases, late = nasty(options.problems, options.seed), 0
    print("| max_seconds | problems | late | " + " | ".join(f"{q:.0%} at most" for q in QUANTILES) + " | worst |")
    print("|---|---|---|" + "---|" * (len(QUANTILES) + 1))
    for limit in LIMITS:
        over = np.array([beyond(case, limit) for case in cases])
        n_late = int(np.sum(over + limit > allowed(limit)))
        worst = ", ".join(f"deadlines:{cases[k].seed} +{over[k]:.2f} s" for k in np.argsort(-over)[:WORST])
        quantiles = " | ".join(f"+{max(v, 0):.2f} s" for v in np.quantile(over, QUANTILES))
        print(f"| {limit} | {len(cases)} | {n_late} | {quantiles} | {worst} |", flush=True)
        late += n_late
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
