"""How far the proof lags behind the solution.

    BLOCKGREEDY_DATA=folder python -m benchmarks.certificate_lag --problems reuters enron dorothea news20

For each cell and each tol: CPU seconds of one thread, nonzeros touched and outer iterations when the error
(f − f*)/f_null is first at most tol, and when the solve ended with a duality gap of tol. f* is the objective of a
solve with tol = 1e-9. The proof includes the guard's final check. Counts are exact, seconds are medians.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from benchmarks.race.problems import LOSSES, REAL, Data, load

import blockgreedy as bg

RATIOS = (1 / 10, 1 / 30, 1 / 100, 1 / 300, 1 / 1000)
TOLS = (1e-2, 1e-4, 1e-5)


class Clock:
    """A callback that notes the CPU time of every record."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def __call__(self, _: object) -> None:
        self.times.append(time.process_time())


def measure(problem: bg.Problem, tol: float, best: float, repeats: int) -> dict[str, float]:
    """Seconds, nonzeros touched / nnz and iterations, to the error and to the proof."""
    true_seconds, seconds = [], []
    for _ in range(repeats):
        clock = Clock()
        began = time.process_time()
        solution = bg.solve(problem, tol=tol, n_threads=1, trace_iters=1, callback=clock)
        seconds.append(time.process_time() - began)
        error = (solution.trace["objective"] - best) / problem.null_model.objective
        reached = int(np.argmax(error <= tol))
        true_seconds.append(clock.times[reached] - began)
    touched = solution.trace["nonzeros_touched"] / problem.X.nnz
    return {
        "converged": float(solution.status == "converged"),
        "error": float(error[-1]),
        "true_seconds": median(true_seconds),
        "seconds": median(seconds),
        "check_seconds": solution.check_seconds,
        "true_touched": float(touched[reached]),
        "touched": float(touched[-1]),
        "true_iterations": float(solution.trace["iteration"][reached]),
        "iterations": float(solution.trace["iteration"][-1]),
        "nonzeros": float(np.count_nonzero(solution.coef)),
    }


def read(name: str) -> Data:
    """A problem of the race, or an .npz file."""
    if not name.endswith(".npz"):
        return load(name)
    made = bg.load(name)
    y = np.asarray(made.y, dtype=np.float64)
    return Data(Path(name).stem, made.X, y, y)


def cells(data: Data, options: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    X = data.X.tocsc()
    for loss in options.losses:
        for intercept in (False, True):
            whole = bg.Problem(X, data.y(loss), loss=loss, alpha=1.0, fit_intercept=intercept)
            for ratio in options.ratios:
                problem = whole.with_alpha(ratio * whole.alpha_max)
                best = bg.solve(problem, tol=1e-9, n_threads=1, max_iter=200).objective
                for tol in options.tols:
                    row = {"problem": data.name, "loss": loss, "intercept": intercept, "ratio": ratio, "tol": tol}
                    row |= measure(problem, tol, best, options.repeats)
                    rows.append(row)
                    print(line(row), flush=True)
    return rows


def line(row: dict[str, Any]) -> str:
    failed = "" if row["converged"] else "  FAILED"
    name = f"{row['problem']} {row['loss']}{' +b' if row['intercept'] else ''} /{1 / row['ratio']:.0f} {row['tol']:g}"
    return (
        f"{name:38s} error {row['error']:8.1e}  ms {1e3 * row['true_seconds']:7.1f} → {1e3 * row['seconds']:7.1f}"
        f"  × {row['seconds'] / row['true_seconds']:5.2f}  touched {row['true_touched']:7.1f} → {row['touched']:7.1f}"
        f"  iterations {row['true_iterations']:.0f} → {row['iterations']:.0f}{failed}"
    )


def summary(rows: list[dict[str, Any]]) -> None:
    by_tol = {tol: [row for row in rows if row["tol"] == tol] for tol in sorted({row["tol"] for row in rows})}
    for tol, own in by_tol.items():
        for what in ("seconds", "touched", "iterations"):
            ratios = [row[what] / max(row[f"true_{what}"], 1e-9) for row in own]
            print(f"tol {tol:g}: certified / true in {what}: median {median(ratios):.2f}, worst {max(ratios):.2f}")
    loose, tight = by_tol.get(1e-2), by_tol.get(1e-5)
    if loose and tight:
        for what in ("seconds", "touched"):
            ratios = [a[what] / b[what] for a, b in zip(loose, tight, strict=True)]
            print(f"{what} at tol 1e-2 / at 1e-5: median {median(ratios):.2f}, worst {max(ratios):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", default=[*REAL, "reuters-shaped"], help="names, or .npz files")
    parser.add_argument("--losses", nargs="+", default=list(LOSSES))
    parser.add_argument("--ratios", nargs="+", type=float, default=list(RATIOS))
    parser.add_argument("--tols", nargs="+", type=float, default=list(TOLS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, help="a JSON file for the rows")
    options = parser.parse_args()
    rows = [row for name in options.problems for row in cells(read(name), options)]
    summary(rows)
    if options.out:
        options.out.write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
