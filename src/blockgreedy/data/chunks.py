"""Chunks of a matrix → tiles: what workers of a cluster do with those that they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from blockgreedy.data.column_statistics import ColumnStatistics, statistics_of
from blockgreedy.problem.columns import as_columns, assemble


@dataclass(frozen=True)
class TileFacts:
    shape: tuple[int, int]
    n_entries: int
    n_bytes: int
    dtype: str


def make_tile(parts: Sequence[Any], by_rows: bool, dtype: Any) -> Any:
    """On a worker: canonical columns of chunks that lie one below the other (``by_rows``) or side by side.

    Nothing (None) where there are no rows.
    """
    made = [as_columns(own, 1) for own in map(_values, parts) if 0 not in own.shape]
    if not made:
        return None
    made = [part.astype(dtype, copy=False) for part in made]
    if len(made) == 1:
        return made[0]
    if any(sp.issparse(part) for part in made):
        stacked = (sp.vstack if by_rows else sp.hstack)([sp.csc_array(part) for part in made], format="csc")
        return assemble(
            sp.csc_array, stacked.data, stacked.indices.astype(np.int32, copy=False), stacked.indptr, stacked.shape
        )
    return np.asfortranarray(np.vstack(made) if by_rows else np.hstack(made))


def _values(part: Any) -> Any:
    if hasattr(part, "to_numpy"):
        return part.to_numpy()
    if not hasattr(part, "shape"):
        raise TypeError(
            f"a part of X is a {type(part).__name__}; it must be a NumPy array, a scipy.sparse matrix or a DataFrame"
        )
    return part


def facts_of(tile: Any) -> TileFacts:
    if tile is None:
        return TileFacts((0, 0), 0, 0, "float32")
    arrays = (tile,) if isinstance(tile, np.ndarray) else (tile.data, tile.indices, tile.indptr)
    return TileFacts(tile.shape, int(tile.size), sum(int(a.nbytes) for a in arrays), str(tile.dtype))


def column_statistics(tile: Any) -> tuple[int, ColumnStatistics | None]:
    """On a worker: rows, and what is known of the columns."""
    if tile is None:
        return 0, None
    n, p = tile.shape
    if isinstance(tile, np.ndarray):
        return n, statistics_of(np.arange(p + 1, dtype=np.int64) * n, tile.ravel(order="F"), n, 1)
    return n, statistics_of(tile.indptr.astype(np.int64), tile.data, n, 1)


def merged_statistics(
    first: tuple[int, ColumnStatistics | None], other: tuple[int, ColumnStatistics | None]
) -> tuple[int, ColumnStatistics | None]:
    (n, known), (m, more) = first, other
    if known is None or more is None:
        return (m, more) if known is None else (n, known)
    return n + m, known.merged(n, more, m)
