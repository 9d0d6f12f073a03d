"""What users hold → columns the core can walk: canonical CSC or a Fortran-ordered array, float32 or float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockgreedy.arguments import in_host_memory
from blockgreedy.backends.cpu import find_fault, transpose_rows

Columns = Any  # scipy.sparse.csc_array | NDArray; scipy's stubs do not let the two share methods

_MAX_ROWS = 2**31 - 1


def as_columns(X: Any, n_threads: int | None = None) -> Columns:
    """X as canonical CSC (sorted, no duplicates, int32 rows) or Fortran-ordered array; copies only if it must.

    Accepts scipy sparse matrices and arrays of any format with int32 or int64 indices, and anything NumPy
    turns into a 2-D array. float32 and float64 are kept, other real types become float64. NaN, infinities and
    wrong shapes are refused.
    """
    columns: Any
    in_host_memory("X", X)
    is_sparse: bool = sp.issparse(X)
    if is_sparse and X.format == "csr" and 0 not in X.shape:
        columns, fault = _columns_of_rows(X, n_threads)
    else:
        columns = _sparse_columns(X) if is_sparse else _dense_columns(X)
        if 0 in columns.shape:
            raise ValueError(f"X has shape {columns.shape}; it needs at least one row and one column")
        fault = find_fault(columns, n_threads)
    if fault == "unsorted":  # or duplicated; the user's matrix is left as it is
        columns = columns.copy()
        columns.sum_duplicates()
        columns.indices = columns.indices.astype(np.int32, copy=False)
        fault = find_fault(columns, n_threads)
    if fault == "finite":
        raise ValueError("X holds NaN or infinite values; replace or drop them first")
    if fault:
        broken = "indptr" if fault == "indptr" else "indices"
        raise ValueError(f"X is not a valid sparse matrix: its {broken} are broken")
    return columns


def dense_columns(columns: Columns, features: Any) -> NDArray[np.float64]:
    """Some columns as a dense float64 array."""
    chosen = columns[:, features]
    return np.asarray(chosen.toarray() if hasattr(chosen, "toarray") else chosen, dtype=np.float64)


def column_norms(columns: Columns) -> NDArray[np.float64]:
    """‖x_j‖ of canonical columns, in float64."""
    if not sp.issparse(columns):
        return np.asarray(np.sqrt(np.einsum("ij,ij->j", columns, columns, dtype=np.float64)))
    csc: Any = columns
    squares = np.zeros(csc.shape[1])
    filled = np.flatnonzero(np.diff(csc.indptr))
    if len(filled):  # reduceat: each column summed by itself, so that a small one keeps its digits
        squares[filled] = np.add.reduceat(np.square(csc.data, dtype=np.float64), csc.indptr[filled])
    return np.asarray(np.sqrt(squares))


def unit_columns(X: Any, n_threads: int | None = None) -> Columns:
    """X with columns of norm 1, as the paper's theory has them; empty columns stay zero. A copy."""
    columns = as_columns(X, n_threads)
    norms = column_norms(columns)
    inverse = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    if not sp.issparse(columns):
        return np.asfortranarray(columns * inverse, dtype=columns.dtype)
    csc: Any = columns
    scale = np.repeat(inverse, np.diff(csc.indptr)).astype(csc.dtype)
    return _assemble(csc.data * scale, csc.indices, csc.indptr, csc.shape)


def _real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        return dtype.newbyteorder("=")
    if dtype.kind in "biuf":
        return np.dtype(np.float64)
    raise TypeError(f"X has dtype {dtype}; it must hold real numbers (float32, float64, integers or booleans)")


def _dense_columns(X: Any) -> NDArray[Any]:
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(f"X has {array.ndim} dimension(s), expected 2 (samples × features)")
    return np.asfortranarray(array, dtype=_real_dtype(array.dtype))


def _columns_of_rows(X: Any, n_threads: int | None) -> tuple[sp.csc_array, str]:
    """CSR, what most users hold, turned by all threads and checked on the way."""
    dtype = _checked(X)
    data, indices, indptr, fault = transpose_rows(X if X.dtype == dtype else X.astype(dtype), n_threads)
    return _assemble(data, indices, indptr, X.shape), fault


def _checked(X: Any) -> np.dtype[Any]:
    """The type that X's entries will have, if X has a shape that the core can hold."""
    if len(X.shape) != 2:
        raise ValueError(f"X has {len(X.shape)} dimension(s), expected 2 (samples × features)")
    if X.shape[0] > _MAX_ROWS or X.shape[1] > _MAX_ROWS:
        raise ValueError(f"X has shape {X.shape}; at most {_MAX_ROWS} rows and columns are supported")
    return _real_dtype(X.dtype)


def _sparse_columns(X: Any) -> sp.csc_array:
    dtype = _checked(X)
    if X.format == "coo":  # tocsc would add duplicates up in X's own type, which may overflow
        X = X.astype(dtype, copy=False)
    csc = X.tocsc()
    indices = csc.indices.astype(np.int32, copy=False)
    indptr = csc.indptr if csc.indptr.dtype in (np.int32, np.int64) else csc.indptr.astype(np.int64)
    data = csc.data.astype(dtype, copy=False)
    return _assemble(data, indices, indptr, X.shape)


def _assemble(data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> sp.csc_array:
    """A csc_array on exactly these buffers (the constructor may copy or change index types)."""
    columns = sp.csc_array(shape, dtype=data.dtype)
    columns.data, columns.indices, columns.indptr = data, indices, indptr
    return columns
