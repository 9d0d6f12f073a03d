"""Rows → runs: as many rows as memory holds, turned into columns and written to disk.

A run holds the columns of its rows in canonical order. Tiles are put together of runs (tiling.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from blockgreedy.base.memory import bytes_text
from blockgreedy.base.threads import resolve_threads
from blockgreedy.data.row_batches import Position, RowBatch
from blockgreedy.data.store_files import PARTS, FileFacts, write_array
from blockgreedy.problem.columns import assemble, columns_of_rows
from blockgreedy.problem.passes import scan_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_ROWS = 2**31 - 1
_PER_ROW = 40  # bytes: pointer and label of a row, while they are gathered and once more when they are joined
_PER_COLUMN = 32  # bytes: counts, places and pointers in two types while rows become columns
_PER_THREAD, _MOST_THREADS = 12, 16  # bytes of a column for each thread that helps
_PER_ENTRY = 9  # the most that these tables may take: there are no more of them than 3/4 of the entries


@dataclass
class Run:
    """Some rows as columns in files of their own. ``shift``: how many empty columns stand before its first."""

    number: int
    n_rows: int
    n_columns: int
    n_entries: int
    shift: int = 0
    files: dict[str, FileFacts] = field(default_factory=dict)  # by part
    labels: FileFacts | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def file(self, part: str) -> str:
        return f"run-{self.number:05}.{part}.npy"


class Labels:
    """Labels as numbers; text is numbered in the order in which it is met."""

    def __init__(self, words: list[str] | None = None, dtype: str | None = None) -> None:
        self.dtype = dtype
        self._places: dict[str, int] | None = None if words is None else {word: k for k, word in enumerate(words)}

    @property
    def words(self) -> list[str] | None:
        return None if self._places is None else list(self._places)

    def coded(self, y: NDArray[Any]) -> NDArray[np.float64]:
        is_text = y.dtype.kind == "U"
        if self.dtype is not None and is_text != (self._places is not None):
            raise ValueError("some labels are text and others are numbers; a target must be one of the two")
        if not is_text:
            self.dtype = str(y.dtype if self.dtype is None else np.promote_types(self.dtype, y.dtype))
            return np.asarray(y, dtype=np.float64)
        self.dtype = "str"
        places = self._places = {} if self._places is None else self._places
        words, codes = np.unique(y, return_inverse=True)
        return np.array([places.setdefault(str(word), len(places)) for word in words], dtype=np.float64)[
            codes.ravel()
        ]


class RunBuilder:
    """Gathers batches and writes a run whenever the memory is full.

    ``written`` is called after each run with the place where the source stands: the position after the last batch
    that is in a run as a whole, and how many rows of the next one are. Where runs end depends on the batches and on
    ``n_bytes`` alone.
    """

    def __init__(
        self,
        folder: Path,
        dtype: np.dtype[Any],
        labels: Labels,
        runs: list[Run],
        *,
        n_bytes: int,
        order: NDArray[np.int32] | None,
        n_threads: int | None,
        written: Callable[[Position | None, int], None],
    ) -> None:
        self.folder, self.labels, self.runs, self.written = folder, labels, runs, written
        self.n_bytes, self.order = n_bytes, order
        self.n_threads = min(resolve_threads(n_threads), _MOST_THREADS)
        self.width = len(order) if order is not None else max((run.n_columns + run.shift for run in runs), default=1)
        self._per_entry = 2 * (4 + dtype.itemsize)  # rows, and the columns that they become
        self._indices = np.empty(n_bytes // self._per_entry, dtype=np.int32)
        self._data = np.empty(n_bytes // self._per_entry, dtype=dtype)
        self._clear()

    def _clear(self) -> None:
        self._lengths: list[NDArray[Any]] = []
        self._y: list[NDArray[np.float64]] = []
        self._n_rows = self._n_entries = 0

    def add(self, batch: RowBatch, before: Position | None, skip: int = 0) -> None:
        """``before``: the position after the batch before; ``skip``: rows that are in a run already."""
        y = self.labels.coded(batch.y)
        indices, width = batch.indices, self.width
        if self.order is not None:
            indices = self._in_order(indices)
        else:
            width = max(width, batch.width, int(indices.max(initial=-1)) + 1)
        indptr = np.asarray(batch.indptr, dtype=np.int64)
        first = skip
        while first < batch.n_rows:  # a batch may be larger than all that fits
            ends = indptr[first + 1 :] - indptr[first]
            fit = self._rows_that_fit(ends, width)
            if fit < len(ends) and self._n_rows:
                self.flush(before, first)
            elif fit:
                self.width = width
                self._append(indptr[first : first + fit + 1], indices, batch.data, y[first : first + fit])
                first += fit
            else:
                self._refuse(int(ends[0]), width)

    def _append(self, indptr: NDArray[np.int64], indices: Any, data: Any, y: NDArray[np.float64]) -> None:
        own, count = slice(indptr[0], indptr[-1]), int(indptr[-1] - indptr[0])
        to = slice(self._n_entries, self._n_entries + count)
        self._indices[to], self._data[to] = indices[own], data[own]
        self._lengths.append(np.diff(indptr))
        self._y.append(y)
        self._n_entries += count
        self._n_rows += len(y)

    def _needed(self, n_entries: Any, n_rows: Any, width: int) -> Any:
        tables = np.minimum(_PER_ENTRY * n_entries, _MOST_THREADS * _PER_THREAD * width) + _PER_COLUMN * width
        return self._per_entry * n_entries + _PER_ROW * n_rows + tables

    def _rows_that_fit(self, ends: NDArray[np.int64], width: int) -> int:
        rows = np.arange(1, len(ends) + 1)
        needed = self._needed(self._n_entries + ends, self._n_rows + rows, width)
        return min(int(np.searchsorted(needed, self.n_bytes, side="right")), _MOST_ROWS - self._n_rows)

    def _refuse(self, n_entries: int, width: int) -> None:
        needed = bytes_text(self._needed(n_entries, 1, width))
        raise ValueError(
            f"{width:,} columns and a row of {n_entries:,} entries need {needed} to become columns, and "
            f"memory=… leaves {bytes_text(self.n_bytes)} for it; raise it"
        )

    def _in_order(self, indices: NDArray[np.int32]) -> NDArray[np.int32]:
        assert self.order is not None
        if len(indices) and int(indices.max()) >= len(self.order):
            raise ValueError(
                f"the data have a feature with number {int(indices.max())}, counted from 0, and partition has "
                f"{len(self.order):,} features"
            )
        return self.order[indices]

    def shift(self) -> None:
        """All columns so far move up by one."""
        if self.order is not None and (self.runs or self._n_rows):
            raise ValueError("the data count features from 0, which came out late; say so with index_base=0")
        self._indices[: self._n_entries] += 1
        for run in self.runs:
            run.shift += 1
        self.width += self.order is None and bool(self.runs or self._n_rows)

    def flush(self, before: Position | None, n_rows_of_next: int = 0) -> None:
        """Writes what has been gathered."""
        if self._n_rows:
            self._write()
        self.written(before, n_rows_of_next)

    def _write(self) -> None:
        indptr = np.concatenate([[0], *self._lengths]).cumsum(dtype=np.int64)
        end, shape = self._n_entries, (self._n_rows, self.width)
        rows = assemble(sparse.csr_array, self._data[:end], self._indices[:end], indptr, shape)
        columns = columns_of_rows(scan_rows(rows, self.n_threads), None, shape, self.n_threads)
        run = Run(len(self.runs), *shape, self._n_entries)
        for part in PARTS:
            values = getattr(columns, part)
            values = values.astype(np.int64) if part == "indptr" else values
            run.files[part] = write_array(self.folder / run.file(part), values)
        run.labels = write_array(self.folder / run.file("y"), np.concatenate(self._y))
        self.runs.append(run)
        self._clear()
