"""What users of Dask hold (arrays, tables, partitions) as a matrix in tiles, in the memory of the workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.data.chunks import TileFacts, column_statistics, facts_of, make_tile, merged_statistics
from blockgreedy.solvers.dask_tiles import DaskTiles

Delayed = Any  # dask has no types
Parts = list[list[Delayed]]  # rows of chunks, each a list of chunks side by side


def parts_of(X: Any) -> Parts:
    """The chunks of a Dask array, the partitions of a Dask DataFrame, or a list of delayed partitions."""
    if not is_collection(X):
        raise TypeError(
            f"X is a {type(X).__name__}; it must be a Dask array, a Dask DataFrame, a list of delayed partitions or "
            "a Store"
        )
    if isinstance(X, (list, tuple)):
        return [[part] for part in X]
    if getattr(X, "ndim", 2) != 2:
        raise ValueError(f"X has {X.ndim} dimension(s), expected 2 (samples × features)")
    chunks = np.asarray(X.to_delayed(), dtype=object)
    return [list(row) for row in (chunks[:, None] if chunks.ndim == 1 else chunks)]


def is_collection(X: Any) -> bool:
    """Whether it lies on a cluster, in parts."""
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and all(_is_far(part) for part in X)
    return hasattr(X, "to_delayed")


def _is_far(part: Any) -> bool:
    return hasattr(part, "dask") or (
        type(part).__module__.startswith("distributed") and type(part).__name__ == "Future"
    )


def column_names(X: Any) -> NDArray[np.str_] | None:
    """Of a Dask DataFrame whose columns have names."""
    names = getattr(X, "columns", None)
    if names is None or not all(isinstance(name, str) for name in names):
        return None
    return np.array(list(names), dtype=np.str_)


@dataclass(frozen=True)
class Chunks:
    """A matrix in tiles, and the order of its rows there: by worker, so that ranks find their rows where they are."""

    tiles: DaskTiles
    rows: NDArray[np.int64]  # those of X in the order of the tiles


def tiles_of(client: Any, X: Any, n_workers: int) -> Chunks:
    """Rows of chunks become row groups of the matrix, or columns of chunks its column groups where there are more."""
    import dask

    parts = parts_of(X)
    by_columns = len(parts) < n_workers and len(parts[0]) > len(parts)
    dtype = np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
    groups = [list(column) for column in zip(*parts, strict=True)] if by_columns else parts
    make = dask.delayed(make_tile, pure=False)
    futures = client.compute([make(group, by_columns, dtype) for group in groups])
    facts: list[TileFacts] = client.gather(client.map(facts_of, futures, pure=False))
    kept = [k for k, fact in enumerate(facts) if fact.shape[0]]
    if not kept:
        raise ValueError("X has no rows")
    across = 0 if by_columns else 1
    sizes = {facts[k].shape[across] for k in kept}
    if len(sizes) > 1:
        what = "rows" if by_columns else "columns"
        raise ValueError(f"partitions of X have different numbers of {what}: {', '.join(map(str, sorted(sizes)))}")
    lengths = [facts[k].shape[1 - across] for k in range(len(facts))]
    first = np.append(0, np.cumsum(lengths)).astype(np.int64)
    if not by_columns:
        held = client.who_has(futures)
        kept.sort(key=lambda k: (min(held.get(futures[k].key) or ("",)), k))
    along = np.append(0, np.cumsum([lengths[k] for k in kept])).astype(np.int64)
    ends = np.array([0, sizes.pop()], dtype=np.int64)
    n_bytes = np.array([facts[k].n_bytes for k in kept], dtype=np.int64)
    statistics = [client.submit(column_statistics, futures[k], pure=False) for k in kept]
    if not by_columns:
        statistics = [_merged(client, statistics)]
    tiles = DaskTiles(
        ends if by_columns else along,
        along if by_columns else ends,
        np.dtype(dtype),
        n_bytes[None, :] if by_columns else n_bytes[:, None],
        sum(facts[k].n_entries for k in kept),
        [known for _, known in client.gather(statistics)],
        column_names(X),
    )
    tiles.client = client
    tiles.futures = {(0, i) if by_columns else (i, 0): futures[k] for i, k in enumerate(kept)}
    in_order = [np.arange(first[k], first[k + 1]) for k in kept]
    return Chunks(tiles, np.arange(int(ends[1])) if by_columns else np.concatenate(in_order))


def _merged(client: Any, statistics: Sequence[Any]) -> Any:
    """Two by two, on the workers: those of all tiles at once would not fit the client."""
    while len(statistics) > 1:
        pairs = [statistics[k : k + 2] for k in range(0, len(statistics), 2)]
        statistics = [
            client.submit(merged_statistics, *pair, pure=False) if len(pair) == 2 else pair[0] for pair in pairs
        ]
    return statistics[0]


def local_vector(client: Any, values: Any) -> Any:
    """A vector of the rows, or one for each, in the memory of this process."""
    if values is None or np.isscalar(values):
        return values
    if hasattr(values, "dask") or hasattr(values, "to_delayed"):
        values = client.compute(values).result()
    elif is_collection(values):
        values = np.concatenate([np.asarray(part) for part in client.gather(client.compute(list(values)))])
    return np.asarray(values)


def by_rows(X: Any, function: Callable[..., Any], *args: Any, width: int | None, dtype: Any) -> Any:
    """A Dask array of what ``function(chunks side by side, *args)`` returns for every row of chunks, when computed.

    ``width``: how many columns it has; None: it is a vector.
    """
    import dask
    import dask.array as da

    parts, chunks = parts_of(X), getattr(X, "chunks", None)
    lengths = [np.nan] * len(parts) if chunks is None else list(chunks[0])
    call, shared = dask.delayed(function), [dask.delayed(arg) for arg in args]
    rows = [
        da.from_delayed(call(row, *shared), (length,) if width is None else (length, width), dtype=dtype)
        for row, length in zip(parts, lengths, strict=True)
    ]
    return da.concatenate(rows, allow_unknown_chunksizes=True)
