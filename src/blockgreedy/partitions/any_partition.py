"""What no partition can avoid: a lower bound on rho_block for all partitions whose blocks have a limited load.

rho_block is the maximum over unit vectors z of Σ_b v_b, where v_b is the largest (a_j·z)² of block b (spectrum.py).
Take any z and sort the columns by (a_j·z)², the largest first. If a block holds at most a load of L, k−1 blocks
cannot hold all of the first columns whose loads add up to more than (k−1)·L: one of these lies in another block, and
the k-th largest v_b is at least as large as the value of the last of them. Added up over k, this bounds rho_block of
every such partition from below, for every z; the search below only looks for a good one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.base.validate import at_least, whole
from blockgreedy.partitions.bounds import Bound
from blockgreedy.partitions.spectrum import UnitColumns

Array = NDArray[np.float64]

_SLACK = 1e-9  # what products and sums may be off by, relatively
_STEPS, _ENOUGH = 20, 1e-4  # of a climb: at most, and the relative gain that is worth another


def least_rho_block(
    X: Any, n_blocks: int, max_load: float = 1.0, *, center: bool = False, n_threads: int | None = None
) -> Bound:
    """A lower bound on rho_block that holds for every partition into blocks of limited load.

    No partition of the features of X into B blocks, of which none has more than max_load times the mean number of
    nonzeros (dense X: entries), has a smaller rho_block. So it says how much a better clustering could gain at most.
    It depends on X, B and max_load alone, costs about fifty passes over X, and is certified: docs/theory.md has
    the proof. How close it comes to the best partition is not known.

    Parameters
    ----------
    X : sparse matrix, array or UnitColumns
        The data; columns are scaled to norm 1.
    n_blocks : int
        B.
    max_load : float, default 1.0
        The load of the heaviest block over the mean, at least 1 (``BlockDiagnosis.load_balance`` of a partition). For
        inf nothing can be said, and the bound is 1.
    center, n_threads
        See ``rho_block``.

    Returns
    -------
    Bound
        Of side "lower".

    Examples
    --------
    >>> import numpy as np, blockgreedy as bg
    >>> copies = np.ones((5, 12))  # whatever the blocks are, each of them has a copy of the same column
    >>> round(bg.theory.least_rho_block(copies, n_blocks=4).value, 6)
    4.0
    """
    unit = X if isinstance(X, UnitColumns) else UnitColumns(X, center=center, n_threads=n_threads)
    B = whole("n_blocks", n_blocks, 1, unit.n_features)
    limit = at_least("max_load", max_load, 1)
    loads = unit.loads.astype(np.float64)
    best = 1.0
    for z in _starts(unit, loads):
        reached = 0.0
        for _ in range(_STEPS):
            norm = float(np.linalg.norm(z))
            if not norm > 0:
                break
            products = unit.products(z / norm)
            value = bound_of_direction(products**2, loads, B, limit)
            if not value > reached * (1 + _ENOUGH):
                break
            reached = value
            z = _all(unit, loads * np.abs(products) * products)
        best = max(best, reached * (1 - _SLACK))
    how = f"holds for any {B:,} blocks of which none has more than {limit:g} times the mean load"
    return Bound("any partition", min(best, float(B)), "lower", "certified", how)


def bound_of_direction(values: Array, loads: Array, n_blocks: int, max_load: float) -> float:
    """Σ_k t_k over k = 1 … B, t_k being the least that the k-th largest of the blocks' largest values can be.

    ``values`` are (a_j·z)² for some z; no block has more than max_load times the mean of the loads.
    """
    order = np.argsort(-values, kind="stable")
    places = np.zeros(1, dtype=np.intp)  # the largest value is that of a block, whatever its load
    limit = max_load * float(loads.sum()) / n_blocks * (1 + _SLACK)
    if np.isfinite(limit):
        beyond = np.searchsorted(np.cumsum(loads[order]), limit * np.arange(1, n_blocks), side="right")
        places = np.append(places, beyond[beyond < len(order)])
    return float(values[order[places]].sum())


def _all(unit: UnitColumns, weights: Array) -> Array:
    return unit.combine(np.arange(unit.n_features), weights)


def _starts(unit: UnitColumns, loads: Array) -> list[Array]:
    """The mean of all columns, that of the dense ones, and single columns from the densest to the median."""
    densest_first = np.argsort(-loads * (unit.scale > 0), kind="stable")
    n_filled = int(np.count_nonzero(unit.scale))
    if n_filled == 0:
        return []
    single = densest_first[[0, n_filled // 32, n_filled // 2]]
    return [
        _all(unit, np.ones(unit.n_features)),
        _all(unit, np.sqrt(loads)),
        *(unit.combine(np.array([j]), np.ones(1)) for j in single),
    ]
