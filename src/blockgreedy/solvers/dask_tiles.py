"""A matrix whose tiles are futures of Dask, as the client sees it."""

from __future__ import annotations

from typing import Any

import numpy as np

from blockgreedy.backends.tiles.held_tiles import HeldTiles
from blockgreedy.backends.tiles.parcel import Parcel
from blockgreedy.backends.tiles.sparse_columns import as_csc


class DaskTiles(HeldTiles):
    """``futures``: the tile at each place (row group, column group), wherever it is."""

    futures: dict[tuple[int, int], Any]
    client: Any

    def tile(self, r: int, c: int) -> Any:
        """For the few columns that the null model needs."""
        return FarTile(self.client, self.futures[r, c])

    def places(self, parcel: Parcel) -> list[tuple[int, int]]:
        """Of the tiles that make up the tile of a rank."""
        rows = _inside(self.row_cuts, parcel.rows)
        columns = _inside(self.column_cuts, parcel.columns)
        return [(r, c) for r in rows for c in columns]

    def best_grid(self, size: int, n_relevant: int) -> tuple[int, int]:
        """For at most so many ranks: as many of them as tiles allow, then the shortest messages."""
        shapes = [
            (r, c)
            for r in range(1, min(size, self.grid[0]) + 1)
            for c in range(1, min(size // r, self.grid[1]) + 1)
        ]  # fmt: skip
        return min(shapes, key=lambda s: (-s[0] * s[1], self.shape[0] / s[0] + 2 * n_relevant / s[1]))


def _inside(cuts: Any, wanted: slice) -> list[int]:
    return np.flatnonzero((cuts[:-1] >= wanted.start) & (cuts[1:] <= wanted.stop)).tolist()


class FarTile:
    """A tile somewhere on the cluster, of which columns can be fetched."""

    def __init__(self, client: Any, future: Any) -> None:
        self._client, self._future = client, future

    def __getitem__(self, wanted: tuple[slice, Any]) -> Any:
        return self._client.submit(some_columns, self._future, np.asarray(wanted[1]), pure=False).result()


def some_columns(tile: Any, columns: Any) -> Any:
    """On a worker: a copy of these columns, as CSC."""
    return as_csc(np.asfortranarray(tile[:, columns]) if isinstance(tile, np.ndarray) else tile[:, columns])
