"""``.npz`` files in CSR → batches of rows, without the matrix in memory."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from blockgreedy.data.cache import state_of
from blockgreedy.data.matrix_batches import canonical_rows
from blockgreedy.data.npz import BROKEN
from blockgreedy.data.row_batches import Position, RowBatch, RowSource, first_not_finite, without_zeros

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PER_ENTRY = 64  # bytes of memory in a batch, copies included
_PER_ROW = 64


def is_rows(path: Path) -> bool:
    """Whether a file holds a sparse matrix in CSR with labels; what is wrong with others ``read_npz`` says."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            names = {"format", "shape", "data", "indices", "indptr", "y"}
            return names <= set(archive.files) and archive["format"].item() in (b"csr", "csr")
    except BROKEN:
        return False


class NpzRows(RowSource):
    """Pointers of rows and labels are in memory, and so are feature names when they are written."""

    def __init__(self, path: Path, dtype: Any) -> None:
        self.path, self.name = path, path.name.split(".")[0]
        try:
            with np.load(path, allow_pickle=False) as archive:
                shape = archive["shape"].tolist()
                self._indptr: NDArray[np.int64] = archive["indptr"].astype(np.int64)
                self._y: NDArray[Any] = archive["y"]
                self._has_names = "feature_names" in archive.files
        except BROKEN as error:
            raise ValueError(f"{path} cannot be read as a sparse matrix with labels: {error}") from error
        self.size = n = int(shape[0])
        self.n_features: int = int(shape[1])
        if self._y.shape != (n,) or self._y.dtype.kind not in "biufU":
            raise ValueError(f"{path}: y must hold a number or a text for each of {n:,} rows, got {self._y.shape}")
        if len(self._indptr) != n + 1 or self._indptr[0] != 0 or np.any(np.diff(self._indptr) < 0):
            raise ValueError(f"{path} is not a valid sparse matrix: its indptr is broken")
        with self._member("data") as (_, found):
            self.dtype = np.dtype(dtype or (found if found == np.float32 else np.float64))
        self.extra_memory = self._indptr.nbytes + self._y.nbytes

    def made_of(self) -> dict[str, Any]:
        return {"files": [[os.path.abspath(self.path), *state_of(self.path)]]}

    @property
    def names(self) -> NDArray[np.str_] | None:
        if not self._has_names:
            return None
        with np.load(self.path, allow_pickle=False) as archive:
            found: NDArray[np.str_] = archive["feature_names"].astype(np.str_)
        return found

    def _member(self, name: str) -> _Member:
        return _Member(self.path, name, int(self._indptr[-1]))

    def batches(self, position: Position | None, n_bytes: int) -> Iterator[RowBatch]:
        start = 0 if position is None else int(position["row"])
        most = max(1, n_bytes // _PER_ENTRY)
        try:
            with self._member("indices") as (indices, _), self._member("data") as (data, _):
                indices.skip(int(self._indptr[start]))
                data.skip(int(self._indptr[start]))
                while start < self.size:
                    end = int(np.searchsorted(self._indptr, self._indptr[start] + most, side="right")) - 1
                    end = min(max(end, start + 1), start + max(1, n_bytes // _PER_ROW), self.size)
                    count = int(self._indptr[end] - self._indptr[start])
                    yield self._batch(start, end, indices.read(count), data.read(count))
                    start = end
        except (OSError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{self.path} cannot be read to its end: {error}") from error

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

    def __enter__(self) -> tuple[_Member, np.dtype[Any]]:
        self._archive = zipfile.ZipFile(self.path)
        self._file = self._archive.open(f"{self.name}.npy")
        version = np.lib.format.read_magic(self._file)
        read_header = np.lib.format.read_array_header_1_0
        shape, _, self._dtype = (read_header if version == (1, 0) else np.lib.format.read_array_header_2_0)(
            self._file
        )
        if len(shape) != 1 or shape[0] < self.length:
            raise ValueError(f"{self.path} is not a valid sparse matrix: its {self.name} have shape {shape}")
        return self, self._dtype

    def __exit__(self, *error: object) -> None:
        self._file.close()
        self._archive.close()

    def read(self, count: int) -> NDArray[Any]:
        text = self._file.read(count * self._dtype.itemsize)
        if len(text) < count * self._dtype.itemsize:
            raise EOFError(f"{self.name} ends too early")
        return np.frombuffer(text, dtype=self._dtype)

    def skip(self, count: int) -> None:
        self._file.seek(count * self._dtype.itemsize, 1)
