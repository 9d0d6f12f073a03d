"""Our certificate, checked by other means, and what it costs.

For each cell at tol = 1e-6: the gap recomputed from (coef, dual) by the few lines below and nothing of ours, and the
time at which the run stopped with its proof against the time at which its true error first was 1e-6.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from . import problems
from .report import RESULTS, seconds

Array = NDArray[np.float64]


def dual_value(y: Array, theta: Array, loss: str) -> float:
    """−(1/n) Σ loss*(nθ), −inf outside the domain."""
    v = y.size * theta
    if loss == "squared":
        return -float(np.mean(0.5 * v**2 + v * y))
    s = -y * v
    if np.any(s < 0) or np.any(s > 1):
        return -math.inf
    return -float(np.mean(xlogy(s, s) + xlogy(1 - s, 1 - s)))


def independent_gap(
    data: problems.Data, loss: problems.Loss, alpha: float, w: Array, theta: Array
) -> tuple[float, float]:
    """The gap, and by how much |Xᵀθ| ≤ alpha is violated relative to alpha (rounding: below 1e-12)."""
    excess = float(np.max(np.abs(data.X64.T @ theta))) / alpha - 1.0
    return data.objective(w, loss, alpha) - dual_value(data.y(loss), theta, loss), max(excess, 0.0)


def seconds_to_error(trace: Any, best: float, allowed: float) -> float:
    """The trace's clock when the objective first was within ``allowed`` of ``best``; nan if never."""
    reached = np.flatnonzero(trace["objective"] - best <= allowed)
    return float(trace["seconds"][reached[0]]) if reached.size else math.nan


def check(data: problems.Data, loss: problems.Loss, ratio: float, tol: float, n_threads: int) -> dict[str, object]:
    import blockgreedy as bg

    alpha, f_null = ratio * data.alpha_max(loss), data.f_null(loss)
    problem = bg.Problem(data.X.tocsc() if data.is_sparse else data.X, data.y(loss), loss=loss, alpha=alpha)
    began = time.perf_counter()
    solution = bg.solve(problem, method="auto", tol=tol, n_threads=n_threads)
    wall = time.perf_counter() - began
    deep = bg.solve(problem, method="auto", tol=1e-12, n_threads=n_threads)
    best = min(data.objective(deep.coef, loss, alpha), data.objective(solution.coef, loss, alpha))
    gap, excess = independent_gap(data, loss, alpha, solution.coef, solution.dual)
    stopped = float(solution.trace["seconds"][-1])
    reached = seconds_to_error(solution.trace, best, tol * f_null)
    return {
        "problem": data.name,
        "loss": loss,
        "ratio": ratio,
        "tol": tol,
        "threads": n_threads,
        "status": solution.status,
        "reported_gap": solution.gap / f_null,
        "recomputed_gap": gap / f_null,
        "dual_excess": excess,
        "error": (data.objective(solution.coef, loss, alpha) - best) / f_null,
        "seconds_to_certificate": stopped,
        "seconds_to_error": reached,
        "overhead": stopped / reached if reached > 0 else math.nan,
        "wall_seconds": wall,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.race.certificate", description=__doc__)
    parser.add_argument("--problems", nargs="+", default=problems.NAMES, choices=problems.NAMES, metavar="NAME")
    parser.add_argument("--losses", nargs="+", default=problems.LOSSES, choices=problems.LOSSES)
    parser.add_argument("--ratios", nargs="+", type=float, default=problems.RATIOS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    gone = problems.missing(tuple(options.problems))
    for name, reason in gone.items():
        print(f"left out: {name}: {reason}")
    rows = []
    print("cell: gap reported / recomputed, true error; time to the certificate / to the error")
    for name in [name for name in options.problems if name not in gone]:
        data = problems.load(name)
        for loss in options.losses:
            for ratio in options.ratios:
                row = check(data, loss, ratio, options.tol, options.threads)
                rows.append(row)
                print(
                    f"{name} {loss} {ratio:g}: {row['status']}, "
                    f"{row['reported_gap']:.2e} / {row['recomputed_gap']:.2e}, "
                    f"error {row['error']:.1e}; {seconds(row['seconds_to_certificate'])} / "  # type: ignore[arg-type]
                    f"{seconds(row['seconds_to_error'])} = {row['overhead']:.2f}",  # type: ignore[arg-type]
                    flush=True,
                )
    if not rows:
        sys.exit("nothing to check")
    with (options.results / "race-certificate.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
