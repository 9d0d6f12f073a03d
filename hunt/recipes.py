"""Lines of Python that make X and y of larger problems, so that their scripts stay short."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from hunt.draws import Rng


def made(recipe: list[str]) -> tuple[Any, np.ndarray]:
    """X and y of a recipe."""
    names: dict[str, Any] = {"np": np, "sp": sp}
    exec("\n".join(recipe), names)
    return names["X"], names["y"]


def _start(rng: Rng) -> list[str]:
    return [f"r = np.random.default_rng({int(rng.integers(10**6))})"]


def text(rng: Rng, n: int, p: int, per_row: int, noise: float, labels: bool) -> list[str]:
    """Rows with a fixed number of words, some of them more frequent than others."""
    power = float(rng.choice([0.0, 0.8]))
    zero = "(t > 0).astype(float)" if labels else "t"
    return [
        *_start(rng),
        f"n, p, k = {n}, {p}, {per_row}",
        f"q = 1 / np.arange(1, p + 1) ** {power}",
        "J = r.choice(p, (n, k), p=q / q.sum())",
        "words = np.abs(r.normal(size=n * k)) + 0.05",
        "X = sp.csr_array((words, (np.repeat(np.arange(n), k), J.ravel())), shape=(n, p))",
        "t = X @ (r.normal(size=p) * (r.random(p) < 0.2))",
        f"t = (t - t.mean()) / max(t.std(), 1e-9) + {noise!r} * r.normal(size=n)",
        f"y = {zero}",
    ]


def walks(rng: Rng, n: int, p: int, labels: bool) -> list[str]:
    """Columns that are random walks: nearly dependent, of growing size."""
    scale = float(rng.choice([1.0, 1e6]))
    target = "np.where(t > np.median(t), 1.0, -1.0)" if labels else f"t * {scale!r} + r.normal(size=len(t))"
    return [
        *_start(rng),
        f"X = np.cumsum(r.normal(size=({n}, {p})), 0)",
        f"t = X @ (r.normal(size={p}) * (r.random({p}) < 0.3)) + r.normal(size=len(X))",
        f"y = {target}",
    ]


def raw_table(rng: Rng, n: int, labels: bool) -> list[str]:
    """Timestamps, years, prices, counts, as they come."""
    target = "np.where(t > np.median(t), 1.0, -1.0)" if labels else "t"
    return [
        *_start(rng),
        f"n = {n}",
        "X = np.column_stack([1.6e9 + np.cumsum(r.exponential(60.0, n)), np.round(1.6e9 + 1e7 * r.normal(size=n)),",
        "    r.integers(1980, 2021, n), np.round(1e5 * np.exp(r.normal(size=n))), np.exp(3 * r.normal(size=n)),",
        "    r.poisson(3.0, n), r.poisson(300.0, n), 1e7 + np.arange(n)])",
        "t = ((X - X.mean(0)) / X.std(0)) @ r.normal(size=8) + r.normal(size=n)",
        f"y = {target}",
    ]


def correlated(rng: Rng, n: int, p: int, labels: bool) -> list[str]:
    """More columns than rows, correlated, some far from 0."""
    target = "np.where(t > 0, 1.0, -1.0)" if labels else "t"
    return [
        *_start(rng),
        f"X = r.normal(size=({n}, {p})) + {float(rng.choice([0.0, 1.0, 3.0]))} * r.normal(size=({n}, 1))",
        f"X = X + {float(rng.choice([0.0, 100.0]))}",
        f"t = X[:, :5] @ r.normal(size=5) + r.normal(size={n})",
        "t = t - t.mean()",
        f"y = {target}",
    ]


def counts(rng: Rng, n: int, p: int, labels: bool) -> list[str]:
    """Sparse counts, with empty columns and equal ones."""
    target = "np.where(t > np.median(t), 1.0, -1.0)" if labels else "t"
    return [
        *_start(rng),
        f"X = sp.random({n}, {p}, {float(rng.choice([0.003, 0.03]))}, format='csr', random_state=r)",
        "X.data = np.ceil(r.exponential(2.0, X.nnz))",
        f"t = X @ (r.normal(size={p}) * (r.random({p}) < 0.1)) + r.normal(size={n})",
        f"y = {target}",
    ]
