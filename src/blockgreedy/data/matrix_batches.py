"""Matrices in memory → batches of rows."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from blockgreedy.data.dataset import Dataset
from blockgreedy.data.row_batches import Position, RowBatch, RowSource, first_not_finite, without_zeros
from blockgreedy.problem.columns import as_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from blockgreedy.data.encoding import Encoding


class MatrixRows(RowSource):
    """A dataset that is in memory. ``files``: what it was read from, or None."""

    def __init__(self, dataset: Dataset, dtype: Any = None, files: list[Any] | None = None) -> None:
        self._X: Any = dataset.X
        self._dataset, self._files = dataset, files
        self._is_sparse: bool = sparse.issparse(dataset.X)
        if self._is_sparse:
            self._X = _rows_of(dataset.X)
        wide = np.dtype(np.float64) if self._X.dtype != np.float32 else self._X.dtype
        self.dtype = wide if dtype is None else np.dtype(dtype)
        self.size, self.n_features = self._X.shape
        self.labelled, self.name = dataset.labelled, dataset.name

    @property
    def names(self) -> NDArray[np.str_] | None:
        return None if self.encoding is not None else self._dataset.feature_names

    @property
    def encoding(self) -> Encoding | None:
        return self._dataset.encoding

    def index_base(self, position: Position) -> int | None:
        return self._dataset.index_base

    def made_of(self) -> dict[str, Any]:
        if self._files is not None:
            return {"files": self._files}
        X: Any = self._X
        arrays: list[Any] = [X.indptr, X.indices, X.data] if self._is_sparse else [X]
        sums = [_checksum(array) for array in (*arrays, self._dataset.y)]
        return {"shape": list(X.shape), "crc32": sums}

    def batches(self, position: Position | None, n_bytes: int) -> Iterator[RowBatch]:
        start = 0 if position is None else int(position["row"])
        n_rows, width = self._X.shape
        while start < n_rows:
            if self._is_sparse:
                wanted = self._X.indptr[start] + n_bytes // 32
                end = int(np.searchsorted(self._X.indptr, wanted, side="right")) - 1
                end = min(max(end, start + 1), start + max(1, n_bytes // 64), n_rows)
                part = self._X[start:end]
            else:
                end = min(start + max(1, n_bytes // (40 * max(width, 1))), n_rows)
                part = sparse.csr_array(self._X[start:end])
            data = part.data.astype(self.dtype)
            row = first_not_finite(part.indptr, data)
            if row >= 0:
                raise ValueError(f"X, row {start + row + 1}: a value is NaN or infinite (in {self.dtype})")
            rows = without_zeros(part.indptr, part.indices.astype(np.int32, copy=False), data)
            yield RowBatch(*rows, self._dataset.y[start:end], {"row": end, "done": end})
            start = end


def _checksum(array: Any) -> int:
    plain: Any = np.ascontiguousarray(array)
    return (
        zlib.crc32(plain.tobytes() if plain.dtype.kind == "U" else memoryview(plain).cast("B")) if plain.size else 0
    )


def _rows_of(X: Any) -> Any:
    """CSR with sorted rows in which no entry occurs twice."""
    rows = sparse.csr_array(X)
    if X.format == "csr":
        rows, _ = as_rows(rows)  # refuses broken ones
    return canonical_rows(rows)


def canonical_rows(rows: Any) -> Any:
    """Sorted and without entries that occur twice; a copy only if they are not."""
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows
