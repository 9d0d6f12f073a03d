"""LIBLINEAR (through scikit-learn) on generated data of a given shape: seconds and objective at its own tolerances.

    python benchmarks/liblinear.py --shape kdda --ratio 1e-5 --tols 1,0.1,0.01 --seconds 600

The counterpart of scaling.py: same data, loss and alpha. LIBLINEAR's tolerance is no bound on its error, so the
objective says how far it got. A fit runs in a process of its own and is killed after `seconds`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from blockgreedy.data import shaped


def fit(X: Any, y: Any, alpha: float, tol: float, connection: Any) -> None:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(
        l1_ratio=1.0, solver="liblinear", C=1.0 / (X.shape[0] * alpha), tol=tol, fit_intercept=False, max_iter=10**6
    )
    began = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    connection.send((seconds, model.coef_.ravel(), peak))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="kdda", choices=["kdda", "news20", "realsim", "reuters"])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--ratio", type=float, default=1e-5, help="alpha / alpha_max")
    parser.add_argument("--tols", default="1,0.1,0.01", help="LIBLINEAR's tolerances, loose to tight")
    parser.add_argument("--seconds", type=float, default=600.0, help="limit of one fit")
    args = parser.parse_args()

    data = shaped(args.shape, scale=args.scale)
    X = sp.csr_matrix(data.X)
    y = np.where(data.y > 0, 1.0, -1.0)
    alpha = args.ratio * float(np.max(np.abs(X.T @ y))) / (2 * X.shape[0])
    print(f"{args.shape}: {X.shape[0]:,} × {X.shape[1]:,}, {X.nnz:,} nonzeros; alpha {alpha:.3g}", flush=True)
    context = multiprocessing.get_context("fork")  # shares the matrix
    for tol in [float(t) for t in args.tols.split(",")]:
        ours, theirs = context.Pipe()
        process = context.Process(target=fit, args=(X, y, alpha, tol, theirs))
        process.start()
        theirs.close()
        try:
            answer = ours.recv() if ours.poll(args.seconds) else None
        except EOFError:
            print(f"tol {tol:g}: died (exit code {process.exitcode}), most likely for want of memory", flush=True)
            process.join()
            return
        if answer is None:
            process.kill()
            print(f"tol {tol:g}: not done after {args.seconds:g} s", flush=True)
            return
        seconds, coef, peak = answer
        process.join()
        objective = float(np.mean(np.logaddexp(0.0, -y * (X @ coef)))) + alpha * float(np.abs(coef).sum())
        print(
            f"tol {tol:g}: {seconds:.1f} s, objective {objective:.10f}, {np.count_nonzero(coef):,} nonzeros, "
            f"peak {peak:.2f} GiB",
            flush=True,
        )


if __name__ == "__main__":
    main()
