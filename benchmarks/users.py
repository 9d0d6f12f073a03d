"""Fits as users ask for them: the CSR matrix in hand, an intercept, every conversion on the clock.

    python -m benchmarks.users --sets crosses-like,reuters --ratios 0.1,0.01,0.001 --threads 2

Ours: certified ``--tol``, from the matrix to an estimator's weights. A peer: the first of a grid of its own
tolerances, loose to tight, whose weights have a true error of at most 1e-5 of the null model's objective (in NumPy).
Each runs in a process of its own, once on a corner of the data and then ``--rounds`` times; medians are shown.
LIBLINEAR's intercept is unpenalised by -R.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import blockgreedy as bg

ERROR = 1e-5  # true error asked of peers, over the null model's objective
Array = NDArray[np.float64]
Weights = tuple[Array, float]


def ours(X: Any, y: Array, alpha: float, tol: float, threads: int) -> Weights:
    model = bg.LogisticRegression(alpha=alpha, tol=tol, n_threads=threads).fit(X, y)
    return model.coef_.ravel(), float(model.intercept_[0])


def liblinear(X: Any, y: Array, alpha: float, tol: float, threads: int) -> Weights:
    from liblinear.liblinear import problem
    from liblinear.liblinearutil import train

    n, p = X.shape
    made = problem(y, sp.csr_matrix(X, dtype=np.float64), bias=1)
    model = train(made, f"-s 6 -B 1 -R -q -c {1.0 / (n * alpha)!r} -e {tol!r}")
    w = (1.0 if model.label[0] == 1 else -1.0) * np.ctypeslib.as_array(model.w, (p + 1,))
    return w[:p].copy(), float(w[p])


def skglm(X: Any, y: Array, alpha: float, tol: float, threads: int) -> Weights:
    from skglm.datafits import Logistic
    from skglm.penalties import L1
    from skglm.solvers import ProxNewton

    solver = ProxNewton(max_iter=10_000, max_pn_iter=10_000, tol=tol * alpha, fit_intercept=True)
    w = solver.solve(sp.csc_matrix(X, dtype=np.float64), y, Logistic(), L1(alpha))[0]
    return w[:-1], float(w[-1])


def snapml(X: Any, y: Array, alpha: float, tol: float, threads: int) -> Weights:
    import snapml as package

    model = package.LogisticRegression(
        penalty="l1", dual=False, fit_intercept=True, max_iter=1_000_000, random_state=0, tol=tol, n_jobs=threads,
        regularizer=alpha * X.shape[0],
    )  # fmt: skip
    model.fit(sp.csc_matrix(X, dtype=np.float32), y)
    return np.asarray(model.coef_, dtype=np.float64).ravel(), float(np.ravel(model.intercept_)[0])


def gblinear(X: Any, y: Array, alpha: float, rounds: float, threads: int) -> Weights:
    import xgboost  # type: ignore[import-not-found, unused-ignore]

    options = {"booster": "gblinear", "updater": "shotgun", "objective": "binary:logistic", "lambda": 0.0}
    options |= {"alpha": alpha, "eta": 1.0, "nthread": threads, "base_score": 0.5, "verbosity": 0}
    model = xgboost.train(options, xgboost.DMatrix(X, (y > 0).astype(float)), int(rounds))
    lines = model.get_dump()[0].split("\n")
    at = lines.index("weight:")
    return np.array([float(v) for v in lines[at + 1 : at + 1 + X.shape[1]]]), float(lines[lines.index("bias:") + 1])


PEERS: dict[str, tuple[Callable[..., Weights], tuple[float, ...]]] = {
    "liblinear": (liblinear, (1e-1, 1e-2, 1e-3, 1e-4)),
    "skglm": (skglm, (1e0, 1e-1, 1e-2, 1e-3)),
    "snapml": (snapml, (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)),
    "gblinear": (gblinear, (30, 100, 300)),
}


def load(name: str) -> tuple[Any, Array]:
    if name == "crosses-like":
        made = bg.data.crosses_like()
    elif name.endswith("-shaped"):
        made = bg.data.shaped(name.removesuffix("-shaped"))  # type: ignore[arg-type]
    else:
        made = bg.load(Path(os.environ["BLOCKGREEDY_DATA"]) / f"{name}.npz")
    dtype = made.X.dtype if made.X.dtype.kind == "f" else np.float32
    return sp.csr_matrix(made.X, dtype=dtype), np.asarray(made.y, dtype=np.float64)


def objective(X: Any, y: Array, alpha: float, weights: Weights) -> float:
    w, b = weights
    return float(np.mean(np.logaddexp(0.0, -y * (X @ w + b)))) + alpha * float(np.sum(np.abs(w)))


def work(folder: Path, who: str, tolerance: float, options: argparse.Namespace) -> None:
    """In a process of its own, which is killed at the time limit: writes times and weights."""
    X, y = sp.load_npz(folder / "X.npz"), np.load(folder / "y.npy")
    fit = ours if who.startswith("ours") else PEERS[who][0]
    X = sp.csc_matrix(X) if who == "ours-csc" else X
    fit(X[:300], np.where(np.arange(300) % 2, 1.0, -1.0), 0.1, PEERS.get(who, (ours, (1e-2,)))[1][0], 1)  # compile
    times = []
    for _ in range(options.rounds):
        began = time.perf_counter()
        coef, intercept = fit(X, y, options.alpha, tolerance, options.threads)
        times.append(time.perf_counter() - began)
        if sum(times) > options.limit / 4:
            break
    np.savez(folder / "found.npz", coef=coef, intercept=intercept, seconds=statistics.median(times))


def found_by(
    folder: Path, who: str, tolerance: float, alpha: float, options: argparse.Namespace
) -> tuple[float, Weights]:
    """Seconds and weights; infinite beyond the time limit."""
    own = ["--work", str(folder), "--who", who, "--tol", repr(tolerance), "--alpha", repr(alpha)]
    own += ["--threads", str(options.threads), "--rounds", str(options.rounds), "--limit", str(options.limit)]
    try:
        subprocess.run([sys.executable, "-m", "benchmarks.users", *own], check=True, timeout=options.limit + 20)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return float("inf"), (np.zeros(0), 0.0)
    with np.load(folder / "found.npz") as found:
        return float(found["seconds"]), (found["coef"].astype(np.float64), float(found["intercept"]))


def race(name: str, ratio: float, options: argparse.Namespace, folder: Path) -> None:
    X, y = load(name)
    sp.save_npz(folder / "X.npz", X, compressed=False)
    np.save(folder / "y.npy", y)
    X64 = X.astype(np.float64)
    alpha = ratio * bg.Problem(X, y, loss="logistic", alpha=1.0, fit_intercept=True).alpha_max
    problem = bg.Problem(X, y, loss="logistic", alpha=alpha, fit_intercept=True)
    least, null = bg.solve(problem, tol=1e-9).objective, problem.null_model.objective
    seconds: dict[str, float] = {}
    print(f"{name}, alpha_max·{ratio:g}")
    for who in ("ours-csr", "ours-csc", *options.peers.split(",")):
        for tolerance in PEERS[who][1] if who in PEERS else (options.tol,):
            took, found = found_by(folder, who, tolerance, alpha, options)
            error = (objective(X64, y, alpha, found) - least) / null if took < np.inf else np.inf
            print(f"    {who:10s} tolerance {tolerance:<7g} {took:8.3f} s   true error {error:.1e}", flush=True)
            if error <= ERROR or took > options.limit:
                seconds[who] = took if error <= ERROR else np.inf
                break
    best = min((took for who, took in seconds.items() if who in PEERS), default=np.inf)
    rows, columns = seconds["ours-csr"], seconds["ours-csc"]
    print(f"    best peer / ours {best / rows:.1f}; CSR / CSC {rows / columns:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="crosses-like")
    parser.add_argument("--ratios", default="0.01,0.00333,0.001")
    parser.add_argument("--peers", default="liblinear,skglm,snapml,gblinear")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which a peer is given up")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--who", help=argparse.SUPPRESS)
    parser.add_argument("--alpha", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work, options.who, options.tol, options)
        return
    with TemporaryDirectory() as folder:
        for name in options.sets.split(","):
            for ratio in map(float, options.ratios.split(",")):
                race(name, ratio, options, Path(folder))


if __name__ == "__main__":
    main()
