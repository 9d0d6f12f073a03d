"""Passes over the columns of a matrix, done by the core with all threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockgreedy import _core
from blockgreedy.base.threads import resolve_threads

_SMALL = 20_000  # entries


def core_matrix(columns: Any) -> _core.Matrix:
    """A handle on canonical CSC or Fortran-ordered columns; no copy.

    But where scipy has made row numbers int64, as most of its operations do: whoever comes here need not care.
    """
    if not sp.issparse(columns):
        return _core.dense(columns)
    csc: Any = columns
    return _core.csc(csc.shape[0], csc.indptr, csc.indices.astype(np.int32, copy=False), csc.data)


def copied_columns(rows: NDArray[Any], n_threads: int | None = None) -> NDArray[Any]:
    """A C-ordered array of float32 or float64 in Fortran order; several times as fast as ``np.asfortranarray``."""
    columns: NDArray[Any] = np.empty(rows.shape, dtype=rows.dtype, order="F")
    _core.copy_dense(rows, columns, _threads_for(rows, n_threads))
    return columns


def find_fault(columns: Any, n_threads: int | None = None) -> str:
    """What is wrong with the columns: "" or one of indptr, range, unsorted, finite."""
    return _core.find_fault(core_matrix(columns), _threads_for(columns, n_threads))


def _threads_for(X: Any, n_threads: int | None) -> int:
    """One for a pass over what is small: to find out how many there are would take longer."""
    return 1 if X.size <= _SMALL else resolve_threads(n_threads)


def scan_rows(csr: Any, n_threads: int | None = None) -> _core.Rows:
    """A handle on a CSR matrix, whose rows it has checked; no copy."""
    indptr: Any = np.ascontiguousarray(
        csr.indptr, dtype=csr.indptr.dtype if csr.indices.dtype == np.int32 else np.int64
    )
    n_rows, n_columns = csr.shape
    return _core.Rows(n_rows, n_columns, indptr, csr.indices, csr.data, resolve_threads(n_threads))


def release_spare_memory() -> None:
    """What the core keeps for the next table or matrix goes back to the system."""
    _core.release_spare_memory()


def column_products(matrix: _core.Matrix, r: NDArray[np.float64], n_threads: int) -> NDArray[np.float64]:
    """x_j·r of every column: one pass over the nonzeros."""
    return _core.column_products(matrix, np.ascontiguousarray(r, dtype=np.float64), n_threads)


def some_column_products(matrix: _core.Matrix, features: Any, r: NDArray[np.float64]) -> NDArray[np.float64]:
    """x_j·r of these features: takes as long as their columns."""
    columns = np.ascontiguousarray(features, dtype=np.int32)
    return _core.some_column_products(matrix, columns, np.ascontiguousarray(r, dtype=np.float64))


def combine_columns(matrix: _core.Matrix, w: NDArray[np.float64]) -> NDArray[np.float64]:
    """Xw, without a copy of X in another type."""
    return _core.combine_columns(matrix, w)


def combine_some_columns(matrix: _core.Matrix, features: Any, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Xw of a w that is 0 but for these features: takes as long as their columns."""
    return _core.combine_some_columns(matrix, np.ascontiguousarray(features, dtype=np.int32), values)


def squared_norms(matrix: _core.Matrix, features: Any) -> NDArray[np.float64]:
    """‖x_j‖² of these features: takes as long as their columns."""
    return _core.squared_norms(matrix, np.ascontiguousarray(features, dtype=np.int32))


def weighted_squares(
    matrix: _core.Matrix, weights: NDArray[np.float64] | None, n_threads: int
) -> NDArray[np.float64]:
    """Σ_i weights_i x_ij² of every column (weights None: all 1)."""
    return _core.weighted_squares(matrix, weights, n_threads)


def column_scales(
    matrix: _core.Matrix, row_weights: NDArray[np.float64] | None, centred: bool, n_threads: int
) -> NDArray[np.float64]:
    """Standard deviation of every column, or the root of its mean square; 0 for a column that does not vary."""
    return _core.column_scales(matrix, row_weights, centred, n_threads)
