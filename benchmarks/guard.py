"""What the guard costs: the recomputation of every result, as a share of the solve that it ends.

    BLOCKGREEDY_DATA=folder python -m benchmarks.guard --problems reuters dorothea enron news20

Cold solves at the default tol with an intercept, one thread, medians; writes benchmarks/results/guard.md. Beside the
seconds stands what the guard touches of X, which is exact: the support's columns, twice at most, against all nonzeros
that the solve touched.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median

import numpy as np
from benchmarks.race.problems import LOSSES, NAMES, load

import blockgreedy as bg

RATIOS = (0.1, 0.01, 0.001)
RESULT = Path(__file__).parent / "results" / "guard.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", default=["reuters-shaped", "dense-tall"], choices=NAMES)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    lines = [
        "| problem | loss | alpha/alpha_max | solve, ms | guard, ms | share | its part of the nonzeros touched |",
        "|---|---|---|---|---|---|---|",
    ]
    shares = []
    for name in options.problems:
        data = load(name)
        for loss in LOSSES:
            problem = bg.Problem(data.X, data.y(loss), loss=loss, alpha=1.0, fit_intercept=True)
            counts = np.diff(problem.X.indptr) if data.is_sparse else np.full(problem.n_features, problem.n_samples)
            for ratio in RATIOS:
                here = problem.with_alpha(ratio * problem.alpha_max)
                runs = [bg.solve(here, n_threads=1) for _ in range(options.repeats)]
                whole = median(run.seconds + run.check_seconds for run in runs)
                own = median(run.phase_seconds["guard"] for run in runs)
                touched = float(runs[0].trace["nonzeros_touched"][-1])
                part = 2 * float(np.sum(counts[runs[0].coef != 0])) / touched
                shares.append(own / whole)
                figures = f"{1e3 * whole:.1f} | {1e3 * own:.2f} | {100 * own / whole:.1f} % | {100 * part:.1f} %"
                lines.append(f"| {name} | {loss} | {ratio:g} | {figures} |")
                print(lines[-1], flush=True)
    lines += ["", f"Median share: {100 * median(shares):.1f} %, largest {100 * max(shares):.1f} %."]
    print(lines[-1])
    RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
