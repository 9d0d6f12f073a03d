"""What users hold → columns the core can walk: canonical CSC or a Fortran-ordered array, float32 or float64."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockgreedy.base.reals import as_array, in_host_memory, real_array
from blockgreedy.base.threads import resolve_threads
from blockgreedy.problem.passes import copied_columns, find_fault, scan_rows

if TYPE_CHECKING:
    from blockgreedy import _core

Columns = Any  # scipy.sparse.csc_array | NDArray; scipy's stubs do not let the two share methods

_MAX_ROWS = 2**31 - 1
_MAX_POINTER = 2**63 - 1
_TOGETHER = 1 << 16  # entries that are copied at a time


def as_columns(X: Any, n_threads: int | None = None) -> Columns:
    """X as canonical CSC (sorted, no duplicates, int32 rows) or Fortran-ordered array; copies only if it must.

    Accepts scipy sparse matrices and arrays of any format with int32 or int64 indices, and anything NumPy
    turns into a 2-D array of real numbers, tables of numbers included. float32 and float64 are kept, other real types
    become float64. NaN, infinities, wrong shapes and indices outside of the matrix are refused.
    """
    in_host_memory("X", X)
    is_sparse: bool = sp.issparse(X)
    if is_sparse and X.format == "csr" and 0 not in X.shape:
        csr, rows = as_rows(X, n_threads)
        return columns_of_rows(rows, None, csr.shape, n_threads)
    columns = _sparse_columns(X) if is_sparse else _dense_columns(X, n_threads)
    if 0 in columns.shape:
        raise ValueError(f"X has shape {columns.shape}; it needs at least one row and one column")
    return _canonical(columns, find_fault(columns, n_threads), n_threads)


def as_rows(X: Any, n_threads: int | None = None) -> tuple[Any, _core.Rows]:
    """CSR on X's own buffers where they can be used, and the core's handle on it; refused as by ``as_columns``."""
    in_host_memory("X", X)
    csr = _compressed(X, sp.csr_array, X.shape[0])
    rows = scan_rows(csr, n_threads)
    _refuse(rows.fault)
    return csr, rows


def columns_of_rows(
    rows: _core.Rows, kept: NDArray[np.uint8] | None, shape: tuple[int, int], n_threads: int | None
) -> Columns:
    """Canonical columns, where ``kept`` is not 0 (None: all of them); the others are empty."""
    data, indices, indptr, fault = rows.write(kept, resolve_threads(n_threads))
    return _canonical(assemble(sp.csc_array, data, indices, indptr, shape), fault, n_threads)


def products_of_rows(
    rows: _core.Rows, theta: NDArray[np.float64], n_threads: int | None, every: int = 1
) -> NDArray[np.float64]:
    """x_j·theta of every column; ``every``: an estimate from every second, third, … row."""
    products = rows.products(np.ascontiguousarray(theta), every, resolve_threads(n_threads))
    if products is None:
        _refuse("changed")
    return np.asarray(products)


def reaches_of_rows(rows: _core.Rows, most: NDArray[np.float64], n_threads: int | None) -> NDArray[np.float64]:
    """How large x_j·θ of every column may be where |θ_i| ≤ most_i."""
    reaches = rows.reaches(np.ascontiguousarray(most), resolve_threads(n_threads))
    if reaches is None:
        _refuse("changed")
    return np.asarray(reaches)


def _canonical(columns: Any, fault: str, n_threads: int | None) -> Columns:
    if fault == "unsorted":  # or duplicated; the user's matrix is left as it is
        columns = columns.copy()
        columns.sum_duplicates()
        columns.indices = columns.indices.astype(np.int32, copy=False)
        fault = find_fault(columns, n_threads)
    _refuse(fault)
    return columns


def _refuse(fault: str) -> None:
    if fault == "changed":
        raise ValueError("X has been changed since the problem was made of it; make a new one")
    if fault == "finite":
        raise ValueError("X holds NaN or infinite values; replace or drop them first")
    if fault:
        raise _broken("indptr" if fault == "indptr" else "indices")


def chosen_columns(columns: Columns, features: NDArray[np.integer[Any]]) -> Columns:
    """A copy of some columns, canonical as all of them are: scipy's own would take all row numbers to int64 first.

    Entries are copied some at a time, so that it takes little memory beside the copy, and of a mapped file only what
    these columns have is read.
    """
    if not sp.issparse(columns):
        return columns[:, features]
    csc: Any = columns
    starts = csc.indptr[features].astype(np.int64)
    counts = csc.indptr[np.asarray(features) + 1].astype(np.int64) - starts
    pointers = np.append(0, np.cumsum(counts))
    indices = np.empty(pointers[-1], dtype=np.int32)
    data = np.empty(pointers[-1], dtype=csc.dtype)
    a = 0
    while a < len(counts):
        b = max(int(np.searchsorted(pointers, pointers[a] + _TOGETHER, side="right")) - 1, a + 1)
        to = slice(int(pointers[a]), int(pointers[b]))
        if b == a + 1:
            at: Any = slice(int(starts[a]), int(starts[a] + counts[a]))
        else:
            at = np.arange(to.start, to.stop) + np.repeat(starts[a:b] - pointers[a:b], counts[a:b])
        indices[to], data[to] = csc.indices[at], csc.data[at]
        a = b
    kind = np.int32 if pointers[-1] <= _MAX_ROWS else np.int64
    return assemble(sp.csc_array, data, indices, pointers.astype(kind), (csc.shape[0], len(counts)))


def dense_columns(columns: Columns, features: Any) -> NDArray[np.float64]:
    """Some columns as a dense float64 array."""
    return as_dense(chosen_columns(columns, features))


def as_dense(columns: Columns) -> NDArray[np.float64]:
    """Columns as a float64 array."""
    return np.asarray(columns.toarray() if hasattr(columns, "toarray") else columns, dtype=np.float64)


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


def without_stored_zeros(columns: Columns) -> Columns:
    """The same columns, sparse ones with nonzeros alone; a copy where a zero is stored."""
    if not sp.issparse(columns):
        return columns
    csc: Any = columns
    if np.all(csc.data):
        return csc
    csc = csc.copy()
    csc.eliminate_zeros()
    csc.indices = csc.indices.astype(np.int32, copy=False)  # copy() gives indices the type of indptr
    return csc


def loads_of(columns: Columns) -> NDArray[np.int64]:
    """Nonzeros of each column; of dense columns all entries, since a scan reads them all."""
    if not sp.issparse(columns):
        return np.full(columns.shape[1], columns.shape[0], dtype=np.int64)
    return np.asarray(np.diff(without_stored_zeros(columns).indptr), dtype=np.int64)


def combined_exactly(columns: Columns, w: NDArray[np.float64], start: float) -> NDArray[np.float64]:
    """start + columns @ w, added up in NumPy's widest type: for columns that nearly cancel."""
    total = np.full(columns.shape[0], start, dtype=np.longdouble)
    is_sparse: bool = sp.issparse(columns)
    for j, weight in enumerate(w.astype(np.longdouble)):
        if is_sparse:
            own = slice(columns.indptr[j], columns.indptr[j + 1])
            total[columns.indices[own]] += weight * columns.data[own]
        else:
            total += weight * columns[:, j]
    return np.asarray(total, dtype=np.float64)


def unit_columns(X: Any, n_threads: int | None = None) -> Columns:
    """X with columns of norm 1, as the paper's theory has them; empty columns stay zero. A copy."""
    columns = as_columns(X, n_threads)
    norms = column_norms(columns)
    inverse = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    if not sp.issparse(columns):
        return np.asfortranarray(columns * inverse, dtype=columns.dtype)
    csc: Any = columns
    scale = np.repeat(inverse, np.diff(csc.indptr)).astype(csc.dtype)
    return assemble(sp.csc_array, csc.data * scale, csc.indices, csc.indptr, csc.shape)


def _real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        return dtype.newbyteorder("=")
    if dtype.kind in "biuf":
        return np.dtype(np.float64)
    raise TypeError(f"X has dtype {dtype}; it must hold real numbers (float32, float64, integers or booleans)")


def _dense_columns(X: Any, n_threads: int | None) -> NDArray[Any]:
    array = as_array("X", X)
    if array.ndim != 2:
        raise ValueError(f"X has {array.ndim} dimension(s), expected 2 (samples × features)")
    names = getattr(X, "columns", None)  # of a table
    names = None if names is None or len(names) != array.shape[1] else list(names)
    real = real_array("X", array, names)
    dtype = _real_dtype(real.dtype)
    if real.dtype == dtype and real.flags.c_contiguous and not real.flags.f_contiguous and real.flags.aligned:
        return copied_columns(real, n_threads)
    return np.asfortranarray(real, dtype=dtype)


def _checked(X: Any) -> np.dtype[Any]:
    """The type that X's entries will have, if X has a shape that the core can hold."""
    if len(X.shape) != 2:
        raise ValueError(f"X has {len(X.shape)} dimension(s), expected 2 (samples × features)")
    if X.shape[0] > _MAX_ROWS or X.shape[1] > _MAX_ROWS:
        raise ValueError(f"X has shape {X.shape}; at most {_MAX_ROWS} rows and columns are supported")
    return _real_dtype(X.dtype)


def _sparse_columns(X: Any) -> Columns:
    dtype = _checked(X)
    columns: Any = _compressed(X if X.format == "csc" else _from_entries(X, dtype), sp.csc_array, X.shape[1])
    if columns.indices.dtype != np.int32:
        _in_range(columns.indices, X.shape[0])
        columns.indices = columns.indices.astype(np.int32)
    return columns


def _compressed(X: Any, form: Any, n_pointers: int) -> Any:
    """CSC or CSR on X's own buffers where they can be used, with lengths and types that the core can rely on.

    scipy checks none of this when arrays of a matrix are replaced or changed in place.
    """
    dtype = _checked(X)
    indices, indptr = _whole_numbers(X.indices, "indices"), _whole_numbers(X.indptr, "indptr")
    if np.ndim(X.data) != 1:
        raise _broken("data", f" (of shape {np.shape(X.data)})")
    if len(indptr) != n_pointers + 1 or not 0 <= indptr[-1] <= min(len(indices), len(X.data)):
        raise _broken("indptr")
    end = int(indptr[-1])  # buffers may be longer
    return assemble(form, np.ascontiguousarray(X.data[:end], dtype=dtype), indices[:end], indptr, X.shape)


def _from_entries(X: Any, dtype: np.dtype[Any]) -> sp.csc_array:
    """CSC of any other format, by way of single entries, whose places scipy's conversion trusts blindly."""
    if X.format == "bsr":  # scipy narrows these two on the way to single entries
        _in_range(_whole_numbers(X.indices, "indices"), X.shape[1] // X.blocksize[1])
    if X.format == "lil":
        _in_range(np.array([end for row in X.rows if row for end in (min(row), max(row))]), X.shape[1])
    try:
        entries = X.tocoo()
        rows, cols = _whole_numbers(entries.row, "rows"), _whole_numbers(entries.col, "columns")
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise ValueError(f"X is not a valid sparse matrix: {error}") from error
    if not len(rows) == len(cols) == len(entries.data):
        raise _broken("rows, columns and values")
    _in_range(rows, X.shape[0])
    _in_range(cols, X.shape[1])
    # in the final type: tocsc adds duplicates up, which may overflow in X's own
    return sp.coo_array((entries.data.astype(dtype, copy=False), (rows, cols)), shape=X.shape).tocsc()


def _whole_numbers(values: Any, what: str) -> NDArray[Any]:
    """Row numbers, column numbers or pointers, in a type that the core reads: int32 or int64."""
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array.dtype == np.uint64 and np.any(array > _MAX_POINTER)):
        raise ValueError(
            f"X is not a valid sparse matrix: its {what} have dtype {array.dtype} and shape {array.shape}; "
            "they must be whole numbers in one dimension, within int64"
        )
    known = array.dtype in (np.dtype(np.int32), np.dtype(np.int64))
    return np.ascontiguousarray(array, dtype=array.dtype if known else np.int64)


def _in_range(numbers: NDArray[Any], end: int) -> None:
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= end):
        bad = numbers[(numbers < 0) | (numbers >= end)][0]
        raise _broken("indices", f" ({bad} is not in 0..{end - 1})")


def _broken(what: str, how: str = "") -> ValueError:
    return ValueError(f"X is not a valid sparse matrix: its {what} are broken{how}")


def assemble(form: Any, data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> Any:
    """A csc_array or csr_array on exactly these buffers (the constructor may copy or change index types)."""
    matrix = form(shape, dtype=data.dtype)
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    return matrix
