"""Which columns enter the working set: those that could gain most. One round decides for all ranks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.tiles import tuning
from blockgreedy.backends.tiles.shard import OwnPenalty

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Selection:
    """The columns of this rank outside of the support, by what each of them could gain."""

    def __init__(self, penalty: OwnPenalty, norms: Array, products: Array, outside: Mask) -> None:
        """``outside``: columns that are not in the working set anyway, and may be."""
        outwards = np.where(products > 0, penalty.lower < 0, penalty.upper > 0)
        excess = np.abs(products) - penalty.l1
        self._wants = (excess > 0) & outwards & outside & (norms > 0)
        self._score = np.divide(excess, norms, out=np.zeros(len(excess)), where=self._wants)
        self._bins = np.full(len(excess), -1, dtype=np.int64)

    @property
    def best(self) -> float:
        return float(np.max(self._score, initial=0.0))

    def counts(self, best: float) -> NDArray[np.int64]:
        """How many columns each bin has; ``best`` is the best score of all ranks, with which the first bin begins."""
        if best > 0:
            depth = -2 * tuning.BINS_PER_OCTAVE * np.log2(self._score[self._wants] / best)
            self._bins[self._wants] = np.minimum(depth, tuning.BINS - 1).astype(np.int64)
        return np.bincount(self._bins[self._wants & (self._bins >= 0)], minlength=tuning.BINS)

    def chosen(self, n_bins: int) -> Mask:
        """The columns in the first bins."""
        return (self._bins >= 0) & (self._bins < n_bins)


def bins_that_fit(counts: Array, n_support: float, distinct: float) -> tuple[int, bool]:
    """How many bins enter beside the support, and whether columns in others have to wait.

    ``distinct``: the part of columns that is expected to repeat no other.
    """
    totals = np.cumsum(counts)
    room = tuning.SET_MARGIN * max(tuning.LEAST_SET, tuning.SET_GROWTH * n_support) - n_support
    n_bins = int(np.searchsorted(totals, max(room / distinct, totals[0]), side="right"))
    return n_bins, bool(n_bins < tuning.BINS and totals[-1] > totals[n_bins - 1])
