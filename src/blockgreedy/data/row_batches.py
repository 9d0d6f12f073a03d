"""Rows of data that may be larger than memory: batches of them, one after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from blockgreedy.data.encoding import Encoding

Position = dict[str, Any]  # plain numbers and text: it is kept in a file


@dataclass(frozen=True)
class RowBatch:
    """Some rows in CSR, and where the source stands after them.

    ``shifted``: an index 0 has been met in text that seemed to count from 1, so that every column of earlier batches
    moves up by one.
    """

    indptr: NDArray[Any]
    indices: NDArray[np.int32]
    data: NDArray[Any]
    y: NDArray[Any]  # numbers or text
    after: Position
    shifted: bool = False
    width: int = 0  # columns that are named, also those whose values are 0

    @property
    def n_rows(self) -> int:
        return len(self.y)


class RowSource(ABC):
    """A base class of what rows come from. Where options or files differ, ``made_of`` does.

    ``size`` and ``after["done"]`` count the same thing, bytes or rows, for progress.
    """

    name: str
    dtype: np.dtype[Any]
    size: int
    n_features: int | None = None  # None: as many as are met
    labelled: bool = True
    target: str | None = None  # the name of the labels
    extra_memory: int = 0  # bytes of libraries that it needs

    @property
    def held_memory(self) -> int:
        """Bytes of what has been learned."""
        return 0

    @abstractmethod
    def made_of(self) -> dict[str, Any]:
        """Plain numbers and text: the files as they are now, and the options that matter."""

    def learn(self, known: dict[str, Any] | None, folder: Path, n_bytes: int, seen: Any) -> dict[str, Any] | None:
        """What must be known before the first batch, as plain numbers and text; ``known``: what is known already."""
        return None

    @abstractmethod
    def batches(self, position: Position | None, n_bytes: int) -> Iterator[RowBatch]:
        """From the beginning, or from a position that an earlier batch gave; each takes about so much memory.

        Where batches end does not depend on the position.
        """

    def index_base(self, position: Position) -> int | None:
        return None

    @property
    def names(self) -> NDArray[np.str_] | None:
        return None

    @property
    def encoding(self) -> Encoding | None:
        return None


def without_zeros(indptr: NDArray[Any], indices: Any, data: Any) -> tuple[NDArray[Any], Any, Any]:
    """The same rows without stored zeros."""
    there = data != 0
    if there.all():
        return indptr, indices, data
    counts = np.concatenate([[0], np.cumsum(there)])
    return counts[indptr], indices[there], data[there]


def first_not_finite(indptr: NDArray[Any], data: Any) -> int:
    """The row that holds the first NaN or infinity, or -1."""
    if np.isfinite(data).all():
        return -1
    entry = int(np.argmin(np.isfinite(data)))
    return int(np.searchsorted(indptr, entry, side="right")) - 1
