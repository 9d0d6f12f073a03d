"""forks_while_busy.py WHAT N: forks N children while a thread keeps doing WHAT; each of them fits, or hangs."""

import faulthandler
import os
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import blockgreedy as bg

DEADLINE = 20.0  # seconds of a child, which needs a tenth of one


def data(n, p, per_row):
    rng = np.random.default_rng(0)
    at = np.repeat(np.arange(n), per_row), rng.integers(0, p, n * per_row)
    X = sp.csr_array((rng.normal(size=n * per_row), at), shape=(n, p))
    X.sum_duplicates()
    return X, np.sign(rng.normal(size=n))


X, Y = data(4000, 3000, 40)
LARGE = X * 1e100  # float64 that float32 cannot hold: the columns are rescaled


def problem(X=X, **more):
    return bg.Problem(X, Y[: X.shape[0]], loss="logistic", **{"alpha": 0.01, **more})


def estimators():
    bg.LogisticRegression(alpha=0.01).fit(X, Y)
    bg.Lasso(alpha=0.01).fit(X, Y)


def store():
    made = Path(tempfile.mkdtemp()) / "a.npz"
    bg.data.save(bg.data.Dataset(X, Y), made)
    return bg.data.convert(made, made.with_suffix(".store"))


STORE = store()
BUSY = {
    "conversion": lambda: problem().X,
    "null model": lambda: problem(penalty_weights=np.r_[0.0, np.ones(X.shape[1] - 1)]).null_model,
    "standardize": lambda: bg.solve(problem(standardize=True, fit_intercept=True)),
    "rescaling": lambda: bg.solve(bg.Problem(LARGE, Y, alpha=1e98)),
    "cross-validation": lambda: bg.LogisticRegressionCV(n_alphas=4, cv=3).fit(X, Y),
    "store": lambda: bg.solve(bg.Problem(STORE, STORE.y, loss="logistic", alpha=0.01, fit_intercept=True)),
    "estimators": estimators,
}


def child(what):
    faulthandler.dump_traceback_later(DEADLINE, exit=True, file=sys.stderr)
    bg.solve(problem(X[:2000], fit_intercept=True), n_threads=1)
    BUSY[what]()
    os._exit(0)


def main(what, n):
    warnings.simplefilter("ignore")
    rng, stop = np.random.default_rng(1), threading.Event()

    def work():
        warnings.simplefilter("ignore")
        while not stop.is_set():
            BUSY[what]()

    BUSY[what]()
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    failed = 0
    for _ in range(n):
        time.sleep(rng.uniform(0, 0.03))
        process = os.fork()
        if process == 0:
            try:
                child(what)
            finally:
                os._exit(1)
        failed += os.waitpid(process, 0)[1] != 0
        if failed:
            break
    stop.set()
    thread.join()
    sys.exit(f"{what}: a child hung or failed" if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
