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

    def counts(self, best: float, entries: Array) -> Array:
        """How many columns each bin has, and how many entries; ``best`` is the best score of all ranks."""
        if best > 0:
            depth = -2 * tuning.BINS_PER_OCTAVE * np.log2(self._score[self._wants] / best)
            self._bins[self._wants] = np.minimum(depth, tuning.BINS - 1).astype(np.int64)
        bins = self._bins[self._bins >= 0]
        in_bins = np.bincount(bins, weights=entries[self._bins >= 0], minlength=tuning.BINS)
        return np.concatenate([np.bincount(bins, minlength=tuning.BINS), in_bins])

    def chosen(self, n_bins: int) -> Mask:
        """The columns in the first bins."""
        return (self._bins >= 0) & (self._bins < n_bins)


def bins_that_fit(counts: Array, n_support: float, distinct: float, room_of_entries: float) -> tuple[int, bool]:
    """How many bins enter beside the support, and whether columns in others have to wait.

    ``counts`` of columns, then of entries. ``distinct``: the part of columns that is expected to repeat no other.
    The first bin always enters: without it there would be no step.
    """
    columns, entries = (np.cumsum(part) for part in np.split(counts, 2))
    room = tuning.SET_MARGIN * max(tuning.LEAST_SET, tuning.SET_GROWTH * n_support) - n_support
    n_bins = int(np.searchsorted(columns, max(room / distinct, columns[0]), side="right"))
    n_bins = min(n_bins, int(np.searchsorted(entries, max(room_of_entries, entries[0]), side="right")))
    return n_bins, bool(n_bins < tuning.BINS and columns[-1] > columns[n_bins - 1])
