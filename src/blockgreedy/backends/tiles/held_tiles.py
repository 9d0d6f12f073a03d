"""A matrix whose tiles lie in the memory of different workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from blockgreedy.base.design import TiledDesign


class HeldTiles(TiledDesign):
    """What is known of such a matrix everywhere, and the tiles that are here."""

    labelled = False
    are_apart = True

    def __init__(
        self,
        row_cuts: NDArray[np.int64],
        column_cuts: NDArray[np.int64],
        dtype: np.dtype[Any],
        tile_bytes: NDArray[np.int64],
        n_entries: int,
        statistics: list[Any],
        names: NDArray[np.str_] | None = None,
    ) -> None:
        """``statistics``: those of each column group, see ``TiledDesign.statistics_of``."""
        self.row_cuts, self.column_cuts, self.dtype, self.n_entries = row_cuts, column_cuts, dtype, n_entries
        self.shape = int(row_cuts[-1]), int(column_cuts[-1])
        self._bytes, self._statistics, self._names = tile_bytes, statistics, names
        self._held: Mapping[tuple[int, int], Any] = {}

    def holding(self, held: Mapping[tuple[int, int], Any]) -> Self:
        """The same with these tiles, where they are."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, _held=held)
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        """Without its tiles, and without what only the client needs."""
        return HeldTiles, (self.row_cuts, self.column_cuts, self.dtype, self._bytes, self.n_entries, [])

    @property
    def labels(self) -> NDArray[Any]:
        raise ValueError("chunks of X hold no labels; give y")

    @property
    def feature_names(self) -> NDArray[np.str_] | None:
        return self._names

    @property
    def features(self) -> NDArray[np.int32] | None:
        return None

    def tile(self, r: int, c: int) -> Any:
        return self._held[r, c]

    def tile_bytes(self, r: int, c: int) -> int:
        return int(self._bytes[r, c])

    def statistics_of(self, c: int) -> Any:
        return self._statistics[c]
