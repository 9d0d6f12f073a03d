"""Sparse columns, taken, cut and put together: scipy's own would widen row numbers to int64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockgreedy.problem.columns import assemble

_ODD = np.uint64(0x9E3779B97F4A7C15)


def _pointers(counts: NDArray[Any]) -> NDArray[np.int64]:
    pointers = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=pointers[1:])
    return pointers


def make_columns(
    n_rows: int, counts: NDArray[Any], indices: NDArray[np.int32], data: NDArray[Any], pointers: Any = None
) -> Any:
    """CSC of the entries of columns with so many entries each."""
    pointers = _pointers(counts) if pointers is None else pointers
    return assemble(sp.csc_array, data, indices, pointers, (n_rows, len(pointers) - 1))


def take_columns(columns: Any, places: NDArray[np.integer[Any]]) -> Any:
    """A copy of these columns of CSC or of an array, as CSC."""
    n_rows = columns.shape[0]
    if not sp.issparse(columns):
        chosen = np.asfortranarray(columns[:, places]).ravel(order="F")
        rows = np.tile(np.arange(n_rows, dtype=np.int32), len(places))
        return make_columns(n_rows, np.full(len(places), n_rows), rows, chosen)
    csc: Any = columns
    begins = csc.indptr[places].astype(np.int64)
    counts = csc.indptr[places + 1] - begins
    pointers = _pointers(counts)
    entries = np.repeat(begins - pointers[:-1], counts) + np.arange(pointers[-1])
    return make_columns(n_rows, counts, csc.indices[entries], csc.data[entries], pointers)


def join_columns(n_rows: int, parts: Sequence[Any]) -> Any:
    """Columns side by side."""
    parts = [part for part in parts if part.shape[1]] or list(parts[:1])
    if len(parts) == 1:
        return parts[0]
    counts = np.concatenate([np.diff(part.indptr) for part in parts])
    indices, data = (np.concatenate([getattr(part, name) for part in parts]) for name in ("indices", "data"))
    return make_columns(n_rows, counts, indices.astype(np.int32, copy=False), data)


def stack_rows(parts: Sequence[Any]) -> Any:
    """The rows of several matrices with the same columns, one below the other."""
    if len(parts) == 1:
        return parts[0]
    firsts = np.cumsum([0, *(part.shape[0] for part in parts)])
    counts = np.sum([np.diff(part.indptr) for part in parts], axis=0)
    column = np.concatenate([np.repeat(np.arange(part.shape[1]), np.diff(part.indptr)) for part in parts])
    order = np.argsort(column, kind="stable")
    indices = np.concatenate([part.indices + first for part, first in zip(parts, firsts[:-1], strict=True)])
    data = np.concatenate([part.data for part in parts])
    return make_columns(int(firsts[-1]), counts, indices[order].astype(np.int32), data[order])


def cut_rows(columns: Any, cuts: NDArray[np.int64]) -> list[Any]:
    """A CSC matrix with sorted rows, cut between rows."""
    if len(cuts) == 2:
        return [columns]
    n_columns = columns.shape[1]
    column_of = np.repeat(np.arange(n_columns), np.diff(columns.indptr))
    part_of = np.searchsorted(cuts, columns.indices, side="right") - 1
    pieces = []
    for k in range(len(cuts) - 1):
        mine = part_of == k
        counts = np.bincount(column_of[mine], minlength=n_columns)
        indices = (columns.indices[mine] - cuts[k]).astype(np.int32)
        pieces.append(make_columns(int(cuts[k + 1] - cuts[k]), counts, indices, columns.data[mine]))
    return pieces


def column_keys(columns: Any, first_row: int) -> NDArray[np.uint64]:
    """A sum over the entries of each column: equal columns have equal sums, and others almost surely have not."""
    rows = columns.indices.astype(np.uint64) + np.uint64(first_row + 1)
    with np.errstate(over="ignore"):
        mixed = rows * _ODD
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(32)
        mixed *= columns.data.astype(np.float64).view(np.uint64) * _ODD | np.uint64(1)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
        return np.asarray(sums[columns.indptr[1:]] - sums[columns.indptr[:-1]])


def packed(columns: Any) -> NDArray[np.uint8]:
    """As bytes, to be sent."""
    counts = np.diff(columns.indptr).astype(np.int64)
    parts = (np.array([len(counts)], dtype=np.int64), counts, columns.data, columns.indices)
    return np.concatenate([np.ascontiguousarray(part).view(np.uint8) for part in parts])


def unpacked(sent: NDArray[np.uint8], n_rows: int, dtype: np.dtype[Any]) -> Any:
    sent = np.array(sent)  # aligned, and ours
    n_columns = int(sent[:8].view(np.int64)[0])
    counts = sent[8 : 8 + 8 * n_columns].view(np.int64)
    at, n_entries = 8 + 8 * n_columns, int(np.sum(counts))
    end = at + dtype.itemsize * n_entries
    return make_columns(n_rows, counts, sent[end : end + 4 * n_entries].view(np.int32), sent[at:end].view(dtype))
