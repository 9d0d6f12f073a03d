"""Tiles → one matrix in memory, the columns in the order of the features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from blockgreedy.base.design import TiledDesign
from blockgreedy.problem.columns import assemble

_BLOCK = 1 << 20  # entries that are put in their places at a time


def assembled(design: TiledDesign) -> Any:
    """A canonical csc_array. Entries go straight from the tiles to their places, without another copy of them."""
    n, p = design.shape
    rows, columns = design.grid
    places = np.arange(p) if design.features is None else np.asarray(design.features)
    counts = np.zeros(p + 1, dtype=np.int64)
    for c in range(columns):
        own = places[design.column_cuts[c] : design.column_cuts[c + 1]] + 1
        for r in range(rows):
            counts[own] += np.diff(design.sound_tile(r, c).indptr)
    indptr = np.cumsum(counts)
    indices, data = np.empty(design.n_entries, dtype=np.int32), np.empty(design.n_entries, dtype=design.dtype)
    starts = indptr[:-1].copy()
    for c in range(columns):
        own = places[design.column_cuts[c] : design.column_cuts[c + 1]]
        for r in range(rows):
            _put(design.tile(r, c), int(design.row_cuts[r]), own, starts, indices, data)
    small = indptr if design.n_entries > np.iinfo(np.int32).max else indptr.astype(np.int32)
    made = assemble(sparse.csc_array, data, indices, small, (n, p))
    made.has_sorted_indices = True
    made.has_canonical_format = True
    return made


def _put(
    tile: Any,
    first_row: int,
    places: NDArray[Any],
    starts: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[Any],
) -> None:
    """The entries of a tile behind those of the row groups before it; ``starts`` moves on."""
    ends, a = tile.indptr, 0
    while a < len(ends) - 1:
        b = max(int(np.searchsorted(ends, ends[a] + _BLOCK, side="right")) - 1, a + 1)
        lo, hi = int(ends[a]), int(ends[b])
        counts, own = np.diff(ends[a : b + 1]), places[a:b]
        to = np.repeat(starts[own] - (ends[a:b] - lo), counts) + np.arange(hi - lo)
        indices[to] = tile.indices[lo:hi] + np.int32(first_row)
        data[to] = tile.data[lo:hi]
        starts[own] += counts
        a = b
