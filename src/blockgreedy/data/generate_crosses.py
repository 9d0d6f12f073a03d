"""Generated one-hot crosses: a table of codes, all pairs and all triples of them, as of an access log."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from blockgreedy.base.validate import MAX_SEED, whole
from blockgreedy.data.dataset import Dataset

Codes = NDArray[np.int64]


def crosses_like(n_samples: int = 32_769, seed: int = 0) -> Dataset:
    """Generate one-hot crosses, 8 columns of codes, all pairs and triples of them: CSR float32, labels -1 and +1.

    The codes are those of an access log: a manager has one department, a department one area and an area one
    division, so that many crosses are copies of others, as in real tables. With the default size there are about
    3 million nonzeros in 480 thousand features, of which one in thirteen is distinct. Labels come from a logistic
    model over codes and a few crosses. The result depends on the arguments alone.
    """
    n_samples = whole("n_samples", n_samples, 100)
    rng = np.random.default_rng(whole("seed", seed, 0, MAX_SEED))
    codes = _codes(rng, n_samples)
    blocks = [_one_hot(few) for size in (1, 2, 3) for few in combinations(codes, size)]
    X = sparse.csr_array(sparse.hstack(blocks, format="csr", dtype=np.float32))
    X.sort_indices()
    score = 1.0 + sum(rng.normal(0.0, spread, 10_000)[codes[k]] for k, spread in ((0, 0.8), (1, 0.8), (5, 0.4)))
    effects = rng.normal(0.0, 0.7, X.shape[1]) * (rng.random(X.shape[1]) < 0.05)
    y = np.where(score + X @ effects + rng.logistic(size=n_samples) > 0, 1, -1).astype(np.int8)
    return Dataset(X, y, name="crosses-like (generated)")


def _codes(rng: np.random.Generator, n: int) -> list[Codes]:
    """Resource, manager, division, area, department, title, role and family of each row."""
    manager = _zipf(rng, 1_800, n, 0.8)
    department = _zipf(rng, 450, 1_800, 0.8)[manager]
    area = _zipf(rng, 177, 450)[department]
    division = _zipf(rng, 128, 177)[area]
    title = _zipf(rng, 343, 2 * 1_800)[2 * manager + (rng.random(n) < 0.25)]
    role = 3 * title + rng.choice(3, n, p=[0.8, 0.15, 0.05])
    family = _zipf(rng, 67, 343)[title]
    usual = 13 * manager + rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    resource = np.where(rng.random(n) < 0.85, usual % 7_500, _zipf(rng, 7_500, n, 0.9))
    return [resource, manager, division, area, department, title, role, family]


def _zipf(rng: np.random.Generator, n_codes: int, size: int, exponent: float = 1.1) -> Codes:
    chance = 1.0 / np.arange(1, n_codes + 1) ** exponent
    return rng.choice(n_codes, size, p=chance / chance.sum())


def _one_hot(codes: tuple[Codes, ...]) -> sparse.csr_array:
    """A column for each combination that occurs."""
    key = np.zeros(len(codes[0]), dtype=np.int64)
    for code in codes:
        key = key * 10_000 + code
    values, column = np.unique(key, return_inverse=True)
    n = len(key)
    parts = np.ones(n, np.float32), column.astype(np.int32), np.arange(n + 1, dtype=np.int32)
    return sparse.csr_array(parts, shape=(n, len(values)))
