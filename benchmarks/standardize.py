"""What an intercept and standardisation cost on sparse data.

    python benchmarks/standardize.py news20.npz

Seconds from Problem to solution at a part of each problem's own alpha_max, medians of interleaved runs. Standardising
changes the problem: rare features count as much as frequent ones and many more enter. Its fair comparison is with
columns that were scaled beforehand, which the last column has.
"""

from __future__ import annotations

import argparse
import time
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp

import blockgreedy as bg


def timed(X: Any, y: Any, ratio: float, **options: Any) -> tuple[float, int]:
    began = time.perf_counter()
    problem = bg.Problem(X, y, alpha=0.0, **options)
    solution = bg.solve(problem.with_alpha(ratio * problem.alpha_max))
    return time.perf_counter() - began, solution.nonzeros


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--ratios", default="0.3,0.1,0.03")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    data = bg.load(options.data)
    X, y = sp.csc_array(data.X, dtype=np.float32), np.asarray(data.y, dtype=np.float64)
    scales = bg.Problem(X, y, alpha=0.0, standardize=True).scales
    assert scales is not None
    scaled = X.copy()
    scaled.data /= np.repeat(np.where(scales > 0, scales, 1.0), np.diff(X.indptr)).astype(np.float32)
    kinds: dict[str, tuple[Any, dict[str, bool]]] = {
        "plain": (X, {}),
        "intercept": (X, {"fit_intercept": True}),
        "standardize": (X, {"fit_intercept": True, "standardize": True}),
        "scaled": (scaled, {}),
    }
    for loss in ("logistic", "squared"):
        for ratio in map(float, options.ratios.split(",")):
            runs = [
                {kind: timed(Z, y, ratio, loss=loss, **more) for kind, (Z, more) in kinds.items()}
                for _ in range(options.repeats)
            ]
            seconds = {kind: median(run[kind][0] for run in runs) for kind in kinds}
            nonzeros = {kind: runs[0][kind][1] for kind in kinds}
            print(
                f"{loss} {ratio:g}: plain {seconds['plain']:.3f} s ({nonzeros['plain']:,} nonzeros); intercept "
                f"{seconds['intercept'] / seconds['plain']:.2f} ×; standardised with intercept "
                f"{seconds['standardize'] / seconds['plain']:.2f} × ({nonzeros['standardize']:,} nonzeros), "
                f"{seconds['standardize'] / seconds['scaled']:.2f} × of scaled columns",
                flush=True,
            )


if __name__ == "__main__":
    main()
