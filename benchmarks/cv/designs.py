"""Whether cross-validation chooses the alpha that folds solved tightly do, on designs with correlated columns.

    python -m benchmarks.cv.designs                     # 12 designs at each rho: a minute or two
    python -m benchmarks.cv.designs --rhos 0.99 --designs 40 --rows 300 --columns 2000

Columns are an AR(1) process: neighbours have correlation rho, and scores depend on how well a fold was solved. The
default folds are compared with ``fold_tol=1e-7``, and with all alphas solved to 1e-2 once, which is how they start
("rough folds": how many of them choose the same alpha_min and alpha_1se). Nonzeros are means over the folds at the
alpha that both chose: their largest relative difference.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
NOISES = (0.3, 1.0, 3.0, 10.0)  # signal-to-noise ratios, in turn
TIGHT, ROUGH = 1e-7, 1e-2


def autoregressive(seed: int, n: int, p: int, rho: float) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = np.asfortranarray(rng.normal(size=(n, p)))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    signal = X[:, rng.choice(p, 10, replace=False)] @ rng.normal(size=10)
    return X, signal + np.std(signal) / np.sqrt(NOISES[seed % len(NOISES)]) * rng.normal(size=n)


def fit(X: Array, y: Array, loss: str, fold_tol: float | None) -> tuple[Any, float]:
    import blockgreedy as bg

    make = bg.LassoCV if loss == "squared" else bg.LogisticRegressionCV
    began = time.process_time()
    model = make(fold_tol=fold_tol, n_threads=1).fit(X, y if loss == "squared" else y > np.median(y))
    return model, time.process_time() - began


def compare(loss: str, rho: float, options: argparse.Namespace) -> str:
    same, rough_same, off, seconds, curve = np.zeros(2, int), np.zeros(2, int), 0.0, np.zeros(2), 0.0
    for seed in range(options.designs):
        X, y = autoregressive(seed, options.rows, options.columns, rho)
        (usual, own), (tight, theirs), (rough, _) = (fit(X, y, loss, tol) for tol in (None, TIGHT, ROUGH))
        seconds += own, theirs
        for k, name in enumerate(("alpha_min_", "alpha_1se_")):
            same[k] += getattr(usual, name) == getattr(tight, name)
            rough_same[k] += getattr(rough, name) == getattr(tight, name)
        if usual.alpha_ == tight.alpha_:
            at = int(np.flatnonzero(usual.alphas_ == usual.alpha_)[0])
            found, exact = (model.cv_results_["mean_nonzeros"][at] for model in (usual, tight))
            off = max(off, abs(found - exact) / exact)
        means = [model.cv_results_["mean_test_score"] for model in (usual, tight)]
        curve = max(curve, float(np.max(np.abs(means[0] - means[1])) / abs(means[1][0])))
    return (
        f"| {loss} | {rho:g} | {same[0]} of {options.designs} | {same[1]} of {options.designs} | {rough_same[0]}, "
        f"{rough_same[1]} | {off:.1%} | {curve:.0e} | {seconds[0]:.1f} s | {seconds[1]:.1f} s |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cv.designs", description=__doc__.splitlines()[0])
    parser.add_argument("--rhos", type=float, nargs="+", default=[0.5, 0.9, 0.99])
    parser.add_argument("--losses", nargs="+", default=["squared", "logistic"], choices=["squared", "logistic"])
    parser.add_argument("--designs", type=int, default=12)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--columns", type=int, default=500)
    options = parser.parse_args()
    print("| loss | rho | same alpha_min | same alpha_1se | rough folds | nonzeros off | curve off | CPU | tight |")
    print("|---|---|---|---|---|---|---|---|---|")
    for loss in options.losses:
        for rho in options.rhos:
            print(compare(loss, rho, options), flush=True)


if __name__ == "__main__":
    main()
