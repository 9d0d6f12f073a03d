"""Sparse columns, gathered, cut and sent: scipy's own would widen row numbers to int64."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockgreedy.backends.tiles.local import Part, Team, gathered
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
    return _gathered(team, n_rows, [Part(matrix, at, (0, matrix.shape[0]), columns) for matrix, at, columns in parts])


def _gathered(team: Team, n_rows: int, parts: Sequence[Part]) -> Any:
    indptr, indices, data = gathered(parts, team)
    return assemble(sp.csc_array, data, indices, indptr, (n_rows, len(indptr) - 1))


def some_rows(team: Team, matrix: Any, begin: int, end: int, columns: NDArray[Any] | None = None) -> Any:
    """A copy of a run of rows of these columns (None: of all)."""
    chosen = np.arange(matrix.shape[1]) if columns is None else columns
    return _gathered(team, end - begin, [Part(matrix, 0, (begin, end), chosen)])


def cut_rows(team: Team, columns: Any, cuts: NDArray[np.int64]) -> list[Any]:
    """A CSC matrix, cut between rows; the first cut is 0, the last one its number of rows."""
    if len(cuts) == 2:
        return [columns]
    return [some_rows(team, columns, begin, end) for begin, end in pairwise(cuts.tolist())]


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
