"""Whether cross-validation keeps what it promises on grids of few alphas, where each lies far from the one before.

    python -m benchmarks.cv.coarse                         # 130 draws, grids of 2-6, 5 and 12 alphas: minutes
    python -m benchmarks.cv.coarse --grids 30 100 --draws 20
    python -m benchmarks.cv.coarse --other PYTHON          # runs that interpreter's blockgreedy in turn

Default folds are compared with ``fold_tol=1e-7``. A curve is off by its largest distance to the tight one, relative
to the larger of the tight score there and that of the null model (the tight score at the first alpha). A choice is
worse by what the tight curve loses at it, in the same units. "said" counts curves that are off by more than 1e-3 and
come with a warning or another status than converged. Passes: entries of X touched by folds side by side, in matrices.
Time is that of the processors.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]
TIGHT = 1e-7
CURVE, CHOICE = 1e-3, 1e-4  # what is promised


class Draw(NamedTuple):
    X: Any
    y: Array
    estimator: str
    fit_intercept: bool
    few: int  # alphas of the coarsest grid
    eps: float


def draw(seed: int) -> Draw:
    rng = np.random.default_rng(seed)
    n, p, per = int(rng.choice([5000, 8000])), int(rng.choice([60, 150, 600, 3000])), int(rng.choice([36, 60]))
    frequency = 1 / np.arange(1, p + 1) ** rng.choice([0, 0.8])
    drawn = rng.choice(p, (n, min(per * (3 if p < 200 else 1), p * 3)), p=frequency / frequency.sum())
    rows = np.repeat(np.arange(n), drawn.shape[1])
    X = sp.csr_array((np.abs(rng.normal(size=drawn.size)) + 0.05, (rows, drawn.ravel())), shape=(n, p))
    X.sum_duplicates()
    signal = np.asarray(X @ (rng.normal(size=p) * (rng.random(p) < 0.2)))
    signal = (signal - signal.mean()) / (signal.std() or 1.0)
    estimator, noise = str(rng.choice(["LassoCV", "LogisticRegressionCV"])), float(rng.choice([0.5, 3, 10]))
    y = signal + noise * rng.normal(size=n)
    if estimator != "LassoCV":
        y = (y > rng.choice([0, 1.5, 3])).astype(float)
    fit_intercept = bool(rng.random() < 0.5)
    few, eps = int(rng.choice([2, 3, 4, 6])), float(rng.choice([0.003, 0.03, 0.1, 0.3]))
    return Draw(X, y, estimator, fit_intercept, few, eps)


@dataclass
class Fit:
    scores: list[float]
    chosen: int
    seconds: float
    passes: float
    said: bool


def fit(data: Draw, n_alphas: int, fold_tol: float | None) -> Fit:
    import blockgreedy as bg

    options = {"n_alphas": n_alphas, "eps": data.eps, "cv": 3, "fit_intercept": data.fit_intercept}
    model = getattr(bg, data.estimator)(**options, fold_tol=fold_tol)
    with warnings.catch_warnings(record=True) as caught, Counted() as counted:
        warnings.simplefilter("always")
        began = time.process_time()
        model.fit(data.X, data.y)
        seconds = time.process_time() - began
    said = model.status_ != "converged" or any("folds did not converge" in str(w.message) for w in caught)
    scores = model.cv_results_["mean_test_score"]
    chosen = int(np.flatnonzero(model.alphas_ == model.alpha_)[0])
    return Fit(scores.tolist(), chosen, seconds, counted.nonzeros / data.X.nnz, said)


class Counted:
    """Sums up the entries touched by all groups of folds that are made meanwhile."""

    def __enter__(self) -> Counted:
        from blockgreedy.solvers import fold_group

        self._module, self._own, self._cores = fold_group, fold_group.fold_paths, []

        def make(*arguments: Any) -> Any:
            self._cores.append(self._own(*arguments))
            return self._cores[-1]

        fold_group.fold_paths = make
        return self

    def __exit__(self, *_: object) -> None:
        self._module.fold_paths = self._own
        self.nonzeros = sum(core.nonzeros_touched for core in self._cores)


def serve() -> None:
    """Answers lines [seed, number of alphas] with the fit, its scores and its seconds, as JSON."""
    for line in sys.stdin:
        seed, n_alphas = json.loads(line)
        print(json.dumps(vars(fit(draw(seed), n_alphas, None))), flush=True)


def asker(python: str) -> Callable[[int, int], Fit]:
    command = [python, "-m", "benchmarks.cv.coarse", "--serve"]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(seed: int, n_alphas: int) -> Fit:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps([seed, n_alphas]) + "\n")
        server.stdin.flush()
        return Fit(**json.loads(server.stdout.readline()))

    return ask


class Compared(NamedTuple):
    seed: int
    n_alphas: int
    data: str
    fits: dict[str, Fit]  # by who did them
    tight: Fit

    def off(self, who: str) -> float:
        tight = np.array(self.tight.scores)
        return float(np.max(np.abs(np.array(self.fits[who].scores) - tight) / self._scale()))

    def lost(self, who: str) -> float:
        tight, chosen = np.array(self.tight.scores), self.fits[who].chosen
        return float((np.max(tight) - tight[chosen]) / self._scale()[chosen])

    def _scale(self) -> Array:
        tight = np.abs(self.tight.scores)
        return np.asarray(np.maximum(tight, tight[0]))


def summary(cases: list[Compared], who: str, versus: str | None) -> str:
    off, lost = (np.array([getattr(case, name)(who) for case in cases]) for name in ("off", "lost"))
    silent = np.array([not case.fits[who].said for case in cases])
    columns = [
        who,
        str(len(cases)),
        f"{np.median(off):.0e}, {np.max(off):.0e}",
        f"{np.sum(off > CURVE)} ({np.sum((off > CURVE) & ~silent)} said)",
        f"{np.sum(lost > CHOICE)} (worst {np.max(lost):.0e})",
        f"{np.mean([case.fits[who].passes for case in cases]):.0f}",
        f"{sum(case.fits[who].seconds for case in cases):.1f} s",
        ratio([case.fits[who].seconds for case in cases], [case.tight.seconds for case in cases]),
    ]
    if versus is not None:
        columns.append(ratio([case.fits[who].seconds for case in cases], [c.fits[versus].seconds for c in cases]))
    return "| " + " | ".join(columns) + " |"


def ratio(ours: list[float], theirs: list[float]) -> str:
    each = np.array(ours) / np.array(theirs)
    return f"{np.median(each):.2f}, worst {np.max(each):.2f}, of sums {sum(ours) / sum(theirs):.2f}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cv.coarse", description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=130)
    parser.add_argument("--first", type=int, default=0, help="seed of the first draw")
    parser.add_argument("--grids", type=int, nargs="+", default=[0, 5, 12], help="numbers of alphas; 0: 2, 3, 4 or 6")
    parser.add_argument("--repeats", type=int, default=1, help="the fastest counts")
    parser.add_argument("--other", help="another interpreter, whose blockgreedy is run in turn")
    parser.add_argument("--worst", type=int, default=0, help="how many of the worst curves are listed")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def compare(seed: int, n_alphas: int, ask: dict[str, Callable[[int, int], Fit]], repeats: int) -> Compared:
    data = draw(seed)
    n_alphas = n_alphas or data.few
    fits: dict[str, Fit] = {}
    for k in range(repeats):
        for who in sorted(ask, reverse=(seed + k) % 2 == 1):
            found = ask[who](seed, n_alphas)
            if who not in fits or found.seconds < fits[who].seconds:
                fits[who] = found
    tight = fit(data, n_alphas, TIGHT)
    what = f"{data.estimator} {data.X.shape[0]} x {data.X.shape[1]}, eps {data.eps:g}"
    return Compared(seed, n_alphas, what, fits, tight)


def main() -> None:
    options = arguments()
    if options.serve:
        serve()
        return
    ask = {"this": asker(sys.executable)} | ({"other": asker(options.other)} if options.other else {})
    names = "| which | fits | curve off (median, worst) | off by > 1e-3 | choice worse by > 1e-4 | passes | time |"
    print(f"{names} time / tight |{' time / other |' if options.other else ''}")
    print("|" + "---|" * (9 if options.other else 8))
    for grid in options.grids:
        seeds = range(options.first, options.first + options.draws)
        cases = [compare(seed, grid, ask, options.repeats) for seed in seeds]
        for who in sorted(ask):
            versus = "other" if options.other and who == "this" else None
            label = f"{who}, {grid or '2-6'} alphas"
            print(summary(cases, who, versus).replace(f"| {who} |", f"| {label} |", 1), flush=True)
        for case in sorted(cases, key=lambda case: -case.off("this"))[: options.worst]:
            print(f"    seed {case.seed}, {case.n_alphas} alphas, {case.data}: off by {case.off('this'):.1e}")


if __name__ == "__main__":
    main()
