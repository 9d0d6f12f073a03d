"""Problems that look like tables: timestamps, years, prices, counts, identifiers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hunt.case import Case
from hunt.draws import (
    LOSSES,
    Rng,
    draw_labels,
    draw_response,
    draw_tol,
    with_alpha,
)
from hunt.oracle import CLASSIFIERS


def _table_column(rng: Rng, n: int) -> np.ndarray:
    kinds: list[Callable[[], np.ndarray]] = [
        lambda: np.round(1.6e9 + 1e7 * rng.normal(size=n)),  # timestamps
        lambda: 1.6e9 + np.cumsum(rng.exponential(60.0, size=n)),
        lambda: rng.integers(1980, 2021, n).astype(float),  # years
        lambda: np.round(1e5 * np.exp(rng.normal(size=n))),  # prices in cents
        lambda: rng.poisson(rng.choice([0.3, 3.0, 300.0]), n).astype(float),  # counts
        lambda: np.exp(rng.normal(size=n) * rng.choice([1.0, 2.0, 3.0])),
        lambda: (rng.random(n) < rng.choice([0.02, 0.2, 0.5])).astype(float),  # one value of a code
        lambda: np.arange(n) + float(rng.integers(1, 10**7)),  # ids
        lambda: np.round(100 * rng.random(n), 1),  # percentages
        lambda: np.full(n, float(rng.choice([0.0, 1.0, 7.0, 1e6]))),  # constant
        lambda: rng.normal(size=n) * 10.0 ** rng.integers(-9, 10),  # other units
        lambda: rng.normal(size=n),
        lambda: 20 + 8 * rng.normal(size=n),  # temperatures
    ]
    return np.asarray(kinds[int(rng.integers(len(kinds)))]())


def _table_target(rng: Rng, z: np.ndarray) -> np.ndarray:
    kinds: list[Callable[[], np.ndarray]] = [
        lambda: z,
        lambda: 1.7e9 + 600 * z,  # timestamps
        lambda: np.round(1.6e9 + 1e7 * z),
        lambda: 4e6 + 17 * z,  # prices
        lambda: 4e6 + 17 * z,
        lambda: 1e5 + 3 * z,
        lambda: 1e5 * np.exp(z),
        lambda: 2000 + np.round(20 * z),
        lambda: np.round(100 * np.exp(z / 2)),  # counts
        lambda: 1e-6 * z,
        lambda: 50 + 10 * z,
        lambda: 1e12 + 1e5 * z,
    ]
    return np.asarray(kinds[int(rng.integers(len(kinds)))]())


def tables(rng: Rng) -> Case:
    n = int(np.exp(rng.uniform(np.log(20), np.log(400))))
    p = int(rng.integers(1, 13))
    X = np.column_stack([_table_column(rng, n) for _ in range(p)])
    redundant = rng.random() < 0.12
    if redundant:  # already standardised, with columns that are combinations of others
        p = int(rng.integers(4, 21))
        X = rng.normal(size=(n, p))
        X[:, p // 2 : p // 2 + 2] = X[:, : p // 2] @ rng.normal(size=(p // 2, 2))
    for _ in range(int(rng.integers(0, 3)) if p > 2 and rng.random() < 0.3 else 0):  # collinear
        a, b, c = rng.integers(0, p, 3)
        X[:, a] = X[:, b] + X[:, c] * float(rng.choice([1.0, -1.0, 1e-3]))
    problem: dict[str, Any] = {"fit_intercept": bool(rng.random() < 0.95)}
    problem["standardize"] = bool(rng.random() < 0.2)
    z = draw_response(rng, X)
    problem["loss"] = str(rng.choice(LOSSES, p=[0.35, 0.2, 0.3, 0.15]))
    if problem["loss"] in CLASSIFIERS:
        y = draw_labels(rng, z)
    else:
        y = _table_target(rng, z)
        if problem["loss"] == "huber":
            problem["huber_delta"] = float(rng.uniform(0.3, 2) * max(float(np.std(y)), 1e-6))
    tol = 1e-4 if rng.random() < 0.5 else draw_tol(rng, 1e-7)
    if rng.random() < 0.2:
        tol = 1e-10 if rng.random() < 0.6 else 1e-8
    case = Case("", 0, X, y, problem=problem, options={"tol": tol}, must_converge=tol >= 1e-7)
    if problem["loss"] == "logistic" and rng.random() < (0.8 if redundant else 0.4):
        problem["alpha"] = 1 / (float(rng.choice([1.0, 100.0, 1e8, 1e10, 1e12])) * n)
        return case
    if rng.random() < 0.2:
        problem["alpha"] = float(rng.choice([1.0, 0.1, 1e-3, 1e-6]))
        return case
    return with_alpha(rng, case, 1e-9)
