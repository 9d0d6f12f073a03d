"""A matrix whose tiles are futures of Dask, as the client sees it."""

from __future__ import annotations

from typing import Any

import numpy as np

from blockgreedy.backends.tiles.held_tiles import HeldTiles
from blockgreedy.backends.tiles.parcel import Parcel


class DaskTiles(HeldTiles):
    """``futures``: the tile at each place (row group, column group), wherever it is."""

    futures: dict[tuple[int, int], Any]

    def places(self, parcel: Parcel) -> list[tuple[int, int]]:
        """Of the tiles that make up the tile of a rank."""
        rows = _inside(self.row_cuts, parcel.rows)
        columns = _inside(self.column_cuts, parcel.columns)
        return [(r, c) for r in rows for c in columns]

    def best_grid(self, size: int) -> tuple[int, int]:
        """For at most so many ranks: as many of them as tiles allow, then the shortest messages."""
        shapes = [
            (r, c)
            for r in range(1, min(size, self.grid[0]) + 1)
            for c in range(1, min(size // r, self.grid[1]) + 1)
        ]  # fmt: skip
        return min(shapes, key=lambda s: (-s[0] * s[1], self.shape[0] / s[0] + 2 * self.shape[1] / s[1]))


def _inside(cuts: Any, wanted: slice) -> list[int]:
    return np.flatnonzero((cuts[:-1] >= wanted.start) & (cuts[1:] <= wanted.stop)).tolist()
