"""``.npz`` files in CSR → batches of rows, without the matrix in memory."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from blockgreedy.base.reading import archive_of, explained, read_header
from blockgreedy.data.cache import state_of
from blockgreedy.data.matrix_batches import canonical_rows
from blockgreedy.data.npz import format_of
from blockgreedy.data.row_batches import Position, RowBatch, RowSource, first_not_finite, without_zeros

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PER_ENTRY = 64  # bytes of memory in a batch, copies included
_PER_ROW = 64


def is_rows(path: Path) -> bool:
    """Whether a file holds a sparse matrix in CSR with labels; what is wrong with others ``read_npz`` says."""
    try:
        with explained(str(path)), archive_of(path) as archive:
            names = {"format", "shape", "data", "indices", "indptr", "y"}
            return names <= set(archive.names) and format_of(archive) == "csr"
    except ValueError:
        return False


class NpzRows(RowSource):
    """Pointers of rows and labels are in memory, and so are feature names when they are written."""

    def __init__(self, path: Path, dtype: Any) -> None:
        self.path, self.name = path, path.name.split(".")[0]
        with explained(f"{path} cannot be read as a sparse matrix with labels"), archive_of(path) as archive:
            n, n_features = (int(length) for length in archive["shape"])
            self._indptr: NDArray[np.int64] = archive["indptr"].astype(np.int64)
            self._y: NDArray[Any] = archive["y"]
            self._has_names = "feature_names" in archive
        self.size = n
        self.n_features: int = n_features
        if self._y.shape != (n,) or self._y.dtype.kind not in "biufU":
            raise ValueError(f"{path}: y must hold a number or a text for each of {n:,} rows, got {self._y.shape}")
        if len(self._indptr) != n + 1 or self._indptr[0] != 0 or np.any(np.diff(self._indptr) < 0):
            raise ValueError(f"{path} is not a valid sparse matrix: its indptr is broken")
        with self._member("data") as data:
            self.dtype = np.dtype(dtype or (np.float32 if data.dtype == np.float32 else np.float64))
        self.extra_memory = self._indptr.nbytes + self._y.nbytes

    def made_of(self) -> dict[str, Any]:
        return {"files": [[os.path.abspath(self.path), *state_of(self.path)]]}

    @property
    def names(self) -> NDArray[np.str_] | None:
        if not self._has_names:
            return None
        with explained(f"{self.path} has no names of features"), archive_of(self.path) as archive:
            found: NDArray[np.str_] = archive["feature_names"].astype(np.str_)
        return found

    def _member(self, name: str) -> _Member:
        return _Member(self.path, name, int(self._indptr[-1]))

    def batches(self, position: Position | None, n_bytes: int) -> Iterator[RowBatch]:
        start = 0 if position is None else int(position["row"])
        most = max(1, n_bytes // _PER_ENTRY)
        with self._member("indices") as indices, self._member("data") as data:
            indices.skip(int(self._indptr[start]))
            data.skip(int(self._indptr[start]))
            while start < self.size:
                end = int(np.searchsorted(self._indptr, self._indptr[start] + most, side="right")) - 1
                end = min(max(end, start + 1), start + max(1, n_bytes // _PER_ROW), self.size)
                count = int(self._indptr[end] - self._indptr[start])
                yield self._batch(start, end, indices.read(count), data.read(count))
                start = end

    def _batch(self, start: int, end: int, indices: NDArray[Any], data: NDArray[Any]) -> RowBatch:
        indptr = self._indptr[start : end + 1] - self._indptr[start]
        data = data.astype(self.dtype)
        row = first_not_finite(indptr, data)
        if row >= 0:
            raise ValueError(f"{self.path}, row {start + row + 1}: a value is NaN or infinite (in {self.dtype})")
        if len(indices) and not (indices.min() >= 0 and indices.max() < self.n_features):
            raise ValueError(
                f"{self.path} is not a valid sparse matrix: rows {start + 1} to {end} have other columns"
            )
        shape = (end - start, self.n_features)
        rows = canonical_rows(sparse.csr_array((data, indices, indptr), shape=shape))
        own = without_zeros(rows.indptr, rows.indices.astype(np.int32, copy=False), rows.data)
        return RowBatch(*own, self._y[start:end], {"row": end, "done": end})


class _Member:
    """An array in an archive, read from its beginning to its end."""

    def __init__(self, path: Path, name: str, length: int) -> None:
        self.path, self.name, self.length = path, name, length
        self._opened = ExitStack()

    def __enter__(self) -> _Member:
        with self._explained(), ExitStack() as opened:
            archive = opened.enter_context(archive_of(self.path))
            self._file, size = opened.enter_context(archive.member(self.name))
            (self.dtype, shape), begin = read_header(self._file)
            if begin + math.prod(shape) * self.dtype.itemsize != size:
                raise ValueError(f"its {self.name} take {size - begin:,} bytes, not {self.dtype} of shape {shape}")
            if len(shape) != 1 or shape[0] < self.length or self.dtype.kind not in "biuf":
                raise ValueError(f"its {self.name} are {self.dtype} of shape {shape}")
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()

    def _explained(self) -> AbstractContextManager[None]:
        return explained(f"{self.path} cannot be read as a sparse matrix with labels")

    def read(self, count: int) -> NDArray[Any]:
        with self._explained():
            text = self._file.read(count * self.dtype.itemsize)
            if len(text) < count * self.dtype.itemsize:
                raise ValueError(f"{self.name} ends too early")
            return np.frombuffer(text, dtype=self.dtype)

    def skip(self, count: int) -> None:
        with self._explained():
            self._file.seek(count * self.dtype.itemsize, 1)
