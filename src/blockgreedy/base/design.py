"""What a Problem accepts in place of X and y, and what stands for a matrix that may be larger than memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class LabelledDesign:
    """A base class for matrices that know their labels and the names of their columns, such as ``Dataset``."""

    X: Any
    y: NDArray[Any]
    feature_names: NDArray[np.str_] | None
    labelled: bool  # False where y is made up


class TiledDesign:
    """A base class for matrices that lie in tiles, such as ``Store``: rows in R groups, columns in C groups.

    Row group r has the rows ``row_cuts[r]`` to ``row_cuts[r + 1] - 1``, and so have column groups. Columns stand in
    an order of their own: that at place j is the feature ``features[j]`` (None: the feature j).
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]  # of the entries: float32 or float64
    n_entries: int
    row_cuts: NDArray[np.int64]
    column_cuts: NDArray[np.int64]
    labelled: bool  # False where labels are made up
    ndim = 2
    are_apart = False  # tiles lie in the memory of different workers: none is shared by ranks

    def _lacks(self, name: str) -> TypeError:
        """Of what a subclass does not have, because nobody asks it for that."""
        return TypeError(f"{type(self).__name__} has no {name}")

    @property
    def labels(self) -> NDArray[Any]:
        raise self._lacks("labels")

    @property
    def feature_names(self) -> NDArray[np.str_] | None:
        """In the order of the features."""
        raise self._lacks("feature_names")

    @property
    def grid(self) -> tuple[int, int]:
        """Row groups and column groups."""
        return len(self.row_cuts) - 1, len(self.column_cuts) - 1

    @property
    def features(self) -> NDArray[np.int32] | None:
        raise self._lacks("features")

    def tile(self, r: int, c: int) -> Any:
        """Row group r of column group c: canonical columns without stored zeros."""
        raise self._lacks("tile")

    def sound_tile(self, r: int, c: int) -> Any:
        """The same for who reads all of it, once it has been found to be as it was written."""
        self.check_once(r, c)
        return self.tile(r, c)

    def some_columns(self, r: int, c: int, wanted: NDArray[np.integer[Any]]) -> Any:
        """A copy of these columns of a tile."""
        return self.tile(r, c)[:, wanted]

    def tile_bytes(self, r: int, c: int) -> int:
        raise self._lacks("tile_bytes")

    def statistics_of(self, c: int) -> Any:
        """Of the columns of group c, over all rows: ``entries``, ``mean``, ``squares`` (of deviations) and others."""
        raise self._lacks("statistics_of")

    def check_once(self, r: int, c: int) -> None:
        """Refuses a tile that is not as it was written; it is read the first time."""

    def check_statistics(self, c: int) -> None:
        """The same of what is known of the columns of a group."""

    def check_unchanged(self) -> None:
        """Refuses a matrix that is no longer what was read of it, as far as that shows without reading it."""

    def checksum(self) -> int:
        """Of the whole matrix: another one has another."""
        raise self._lacks("checksum")

    def will_need(self, r: int, c: int) -> None:
        """Says that this tile is used soon: it may be read from disk meanwhile."""

    def combine(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """X @ weights, the weights in the order of the features."""
        raise self._lacks("combine")
