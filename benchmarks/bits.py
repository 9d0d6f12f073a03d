"""Solves, paths and family runs of every kind, each reduced to a fingerprint of its weights, gaps and statuses.

python -m benchmarks.bits --out before.json          # before a change that must not change any result
python -m benchmarks.bits --compare before.json      # after it: names the runs that differ
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import blockgreedy as bg

LOSSES = ("squared", "logistic", "squared_hinge", "huber")
FAMILY = ("thread-greedy", "scd", "shotgun", "greedy", "block-greedy")


def matrices() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    text = bg.data.text_like(400, 900, 25.0, seed=1).X
    dense = rng.normal(size=(150, 60)) @ (np.eye(60) + 0.3 * rng.normal(size=(60, 60)))
    table = np.column_stack(
        [1.6e9 + 1e5 * rng.random(200), rng.integers(1950, 2024, 200), rng.lognormal(3, 2, (200, 6))]
    )
    return {
        "text csc": sp.csc_array(text), "text csr float32": sp.csr_array(text.astype(np.float32)),
        "dense": np.asfortranarray(dense), "dense float32": dense.astype(np.float32), "table": table,
    }  # fmt: skip


def problems() -> Iterator[tuple[str, bg.Problem]]:
    for (name, X), loss in itertools.product(matrices().items(), LOSSES):
        rng = np.random.default_rng(7)
        n, p = X.shape
        spread = np.asarray(sp.csc_array(X).max(axis=0).toarray()).ravel()
        signal = X @ (rng.normal(size=p) * (rng.random(p) < 0.1) / np.where(spread == 0, 1, np.abs(spread)))
        y = np.asarray(signal / max(float(np.std(signal)), 1e-12) + 0.3 * rng.normal(size=n))
        y = np.where(y > np.median(y), 1.0, -1.0) if loss in ("logistic", "squared_hinge") else y
        settings: dict[str, dict[str, Any]] = {
            "plain": {},
            "intercept": {"fit_intercept": True},
            "weights, bounds": {
                "fit_intercept": True, "l2": 1e-3, "sample_weight": rng.integers(0, 4, n).astype(float),
                "penalty_weights": rng.choice([0.5, 1.0, 2.0], p), "lower": -0.5, "upper": 2.0,
            },
            "standardised, offset": {"fit_intercept": True, "standardize": True, "offset": 0.1 * rng.normal(size=n)},
        }  # fmt: skip
        for kind, options in settings.items():
            problem = bg.Problem(X, y, loss=loss, alpha=1.0, **options)
            yield f"{name}, {loss}, {kind}", problem.with_alpha(0.05 * problem.alpha_max)


def fingerprint(*parts: Any) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
    return digest.hexdigest()[:16]


def runs() -> Iterator[tuple[str, str]]:
    for name, problem in problems():
        for threads in (1, 2):
            s = bg.solve(problem, tol=1e-7, n_threads=threads)
            yield (
                f"solve {name}, threads {threads}",
                fingerprint(s.coef, s.intercept, s.gap, s.objective, s.status, s.n_iter),
            )
        if "plain" in name or "bounds" in name:
            path = bg.solve_path(problem, n_alphas=6, eps=0.02, tol=1e-5)
            yield (
                f"path {name}",
                fingerprint(path.coefs.data, path.coefs.indices, path.intercepts, path.gaps, path.status),
            )
        if "plain" in name and "table" not in name:
            for method in FAMILY:
                s = bg.solve(problem, method, max_iter=300, tol=1e-5)
                yield f"{method} {name}", fingerprint(s.coef, s.gap, s.objective, s.status, s.n_iter)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the fingerprints to this file")
    parser.add_argument("--compare", type=Path, help="compare with this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = dict(runs())
    if options.out is not None:
        options.out.write_text(json.dumps(found, indent=1))
    print(f"{len(found)} runs")
    if options.compare is None:
        return 0
    before = json.loads(options.compare.read_text())
    differing = [name for name in before.keys() | found.keys() if before.get(name) != found.get(name)]
    print(f"{len(differing)} differ", *sorted(differing), sep="\n  ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
