"""Sparse columns, gathered, cut and sent: scipy's own would widen row numbers to int64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockgreedy.backends.tiles.local import Team, gathered
from blockgreedy.problem.columns import assemble


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


def as_csc(columns: Any) -> Any:
    """A Fortran-ordered array as CSC, zeros included; CSC as it is."""
    if sp.issparse(columns):
        return columns
    n_rows, n_columns = columns.shape
    rows = np.tile(np.arange(n_rows, dtype=np.int32), n_columns)
    return make_columns(n_rows, np.full(n_columns, n_rows), rows, columns.ravel(order="F"))


def gather(team: Team, n_rows: int, parts: Sequence[tuple[Any, int, NDArray[Any]]]) -> Any:
    """A copy of columns whose rows lie in several matrices.

    Each part is a CSC matrix, where its rows begin, and the numbers that the columns have in it, −1 where they have
    none; parts that share columns come in the order of their rows.
    """
    indptr, indices, data = gathered(parts, team)
    return assemble(sp.csc_array, data, indices, indptr, (n_rows, len(indptr) - 1))


def cut_rows(columns: Any, cuts: NDArray[np.int64]) -> list[Any]:
    """A CSC matrix with sorted rows, cut between rows; the first cut is 0, the last one its number of rows."""
    if len(cuts) == 2:
        return [columns]
    n_columns, n_parts = columns.shape[1], len(cuts) - 1
    # a table of all rows: their numbers ascend in every column, so that it is read in order
    part_of_row = np.repeat(np.arange(n_parts, dtype=np.uint8 if n_parts <= 256 else np.int32), np.diff(cuts))
    part_of = part_of_row[columns.indices]
    # runs of entries of one column and part: few, where numbers as large as all entries would take long to come by
    is_first = np.ones(len(part_of), dtype=np.bool_)
    is_first[1:] = part_of[1:] != part_of[:-1]
    is_first[columns.indptr[:-1][np.diff(columns.indptr) > 0]] = True
    starts = np.flatnonzero(is_first)
    places = (np.searchsorted(columns.indptr, starts, side="right") - 1) * n_parts + part_of[starts]
    lengths = np.diff(np.append(starts, len(part_of)))
    counts = np.bincount(places, lengths, minlength=n_parts * n_columns).astype(np.int64)
    pieces = []
    for k, own in enumerate(counts.reshape(n_columns, n_parts).T):
        mine = part_of == k
        indices = columns.indices[mine] - np.int32(cuts[k])
        pieces.append(make_columns(int(cuts[k + 1] - cuts[k]), own, indices, columns.data[mine]))
    return pieces


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
