"""Data of any size → a store, in bounded memory, and resumed where an earlier run was killed.

1. Rows are read in batches and written to disk as runs: the columns of as many rows as memory holds (runs.py).
2. Runs become tiles, and tiles statistics of the columns (tiling.py).
3. ``meta.json`` is written last: without it the folder is no store.

After every run the journal (journal.py) says where the source stood.
"""

from __future__ import annotations

import errno
import json
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import blockgreedy
from blockgreedy.base.files import replacing_text
from blockgreedy.base.memory import bytes_of, bytes_text
from blockgreedy.base.threads import resolve_threads
from blockgreedy.base.validate import float_type, whole
from blockgreedy.data.feature_names import write_encoding, write_names
from blockgreedy.data.journal import Journal, locked
from blockgreedy.data.row_batches import RowSource
from blockgreedy.data.runs import Labels, RunBuilder
from blockgreedy.data.sources import row_source
from blockgreedy.data.store import STORE_SUFFIX, Store
from blockgreedy.data.store_files import CONVERSION, HEADER, META, PARTS, statistics_file, tile_file, write_array
from blockgreedy.data.store_meta import FORMAT, VERSION, sealed
from blockgreedy.data.tiling import Tiling, even_columns, joined
from blockgreedy.partitions.partition import Partition

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Progress = Callable[[str, int, int], None]  # what is being done, how much of it is done, of how much

_PROGRAM = 80 << 20  # bytes that the interpreter and its libraries take
_LEAST = 64 << 20  # bytes beyond that
_BATCH_SHARE = 8  # of the memory for a batch of rows


@dataclass(frozen=True)
class Layout:
    """How rows and columns are grouped."""

    row_groups: int | None
    column_groups: int
    partition: Partition | None

    @classmethod
    def of(cls, row_groups: int | None, column_groups: int | None, partition: Partition | None) -> Layout:
        if partition is not None and column_groups is not None:
            raise ValueError(
                f"column_groups={column_groups!r} cannot be combined with partition, whose blocks are column groups"
            )
        if partition is not None and not isinstance(partition, Partition):
            raise TypeError(f"partition must be a Partition, got {type(partition).__name__}")
        rows = None if row_groups is None else whole("row_groups", row_groups, 1)
        return cls(rows, 1 if column_groups is None else whole("column_groups", column_groups, 1), partition)

    def to_json(self) -> dict[str, Any]:
        blocks = None if self.partition is None else zlib.crc32(self.partition.block_of.tobytes())
        return {"row_groups": self.row_groups, "column_groups": self.column_groups, "partition": blocks}

    @property
    def place_of(self) -> NDArray[np.int32] | None:
        """Of each feature among the columns."""
        if self.partition is None:
            return None
        places = np.empty(self.partition.n_features, dtype=np.int32)
        places[self.partition.order] = np.arange(len(places), dtype=np.int32)
        return places


def convert(
    source: Any,
    path: str | os.PathLike[str],
    *,
    memory: int | str = "2G",
    row_groups: int | None = None,
    column_groups: int | None = None,
    partition: Partition | None = None,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    dtype: Any = None,
    n_threads: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Store:
    """Write data of any size to a store, a folder of tiles that map into memory.

    A conversion that was interrupted or killed goes on where it stopped when it is called again with the same source
    and options; a store that is complete is returned as it is. While it runs it takes up to twice the space of the
    store on disk, or once if ``row_groups``, ``column_groups`` and ``partition`` are left out.

    Parameters
    ----------
    source : str, Path, list of them, or Dataset
        A file, a pattern such as ``"part-*.svm.zst"``, or several files of one kind: svmlight text (also compressed),
        tables (``.parquet``, ``.arrow``, ``.feather``, ``.csv``). Other files and data in memory must fit in memory.
    path : str or Path
        The folder to make; its name must end in ``.store``.
    memory : int or str, default "2G"
        The most memory that the process takes for it, the interpreter included.
    row_groups : int, optional
        Groups of equally many rows (default: as many rows in each as memory holds).
    column_groups : int, optional
        Groups of neighbouring columns that take about the same space (default: one).
    partition : Partition, optional
        Every block of it becomes a column group.
    sample_weight, offset : array of shape (n_samples,), optional
        Kept in the store beside the labels.
    dtype : float32 or float64, optional
        Type of the values (default: float64, or the type of the matrix).
    n_threads : int, optional
        Default: all cores that the process may use.
    progress : callable, optional
        Called with what is being done, how much of it is done, and of how much.
    **options
        How files are read, as for ``load``: ``target``, ``categorical``, ``drop``, ``fill``, ``cross``,
        ``min_count``, ``encoding``, ``labelled``, ``index_base``, ``n_features``, ``allow_unterminated``.

    Returns
    -------
    Store
    """
    folder, seen = Path(path), progress or (lambda what, done, total: None)
    if folder.suffix.lower() != STORE_SUFFIX:
        raise ValueError(f"path must end in {STORE_SUFFIX}, got {str(path)!r}")
    layout = Layout.of(row_groups, column_groups, partition)
    n_bytes = bytes_of("memory", memory)
    resolve_threads(n_threads)
    rows = row_source(source, dtype=float_type("dtype", dtype, may_be_none=True), n_threads=n_threads, **options)
    given = {"sample_weight": sample_weight, "offset": offset}
    of_rows = {name: _row_values(name, values) for name, values in given.items() if values is not None}
    made_of = {"version": VERSION, "dtype": rows.dtype.name, **layout.to_json(), **rows.made_of(), **_sums(of_rows)}
    if not folder.parent.is_dir():
        raise FileNotFoundError(f"path must lie in an existing folder, got {str(path)!r}")
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{str(folder)!r} is a file, and a store is a folder; choose another name")
    if (folder / META).is_file():
        return _finished(folder, made_of)
    free = n_bytes - _PROGRAM - rows.extra_memory
    if free < _LEAST:
        least = _PROGRAM + rows.extra_memory + _LEAST
        raise ValueError(f"memory={memory!r} is too little; at least {bytes_text(least)} are needed")
    folder.mkdir(exist_ok=True)
    with locked(folder):
        if (folder / META).is_file():  # by another process, just now
            return _finished(folder, made_of)
        journal = Journal.opened(folder, made_of)
        work = _Conversion(folder, rows, layout, journal, free, n_threads, seen)
        try:
            work.learn()
            work.read_rows()
            work.check(of_rows)
            work.make_tiles()
            return work.finish(of_rows)
        except OSError as error:
            raise _explained(error, folder, journal) from error


class _Conversion:
    def __init__(
        self, folder: Path, source: RowSource, layout: Layout, journal: Journal, n_bytes: int, n_threads: int | None,
        seen: Progress,
    ) -> None:  # fmt: skip
        self.folder, self.source, self.layout, self.journal = folder, source, layout, journal
        self.n_bytes, self.n_threads, self.seen = n_bytes, n_threads, seen

    def learn(self) -> None:
        learned = self.source.learn(self.journal.learned, self.folder, self.n_bytes, self.seen)
        if self.source.n_features == 0:
            raise ValueError(f"{self.source.name} has no features; a store needs one at least")
        if learned != self.journal.learned:
            self.journal.learned = learned
            self.journal.save()
        self.n_bytes -= self.source.held_memory
        if self.n_bytes < _LEAST:
            raise ValueError(
                f"memory is too little: what has been learned of the columns takes "
                f"{bytes_text(self.source.held_memory)} of it; raise it by {bytes_text(_LEAST - self.n_bytes)}"
            )

    def read_rows(self) -> None:
        journal = self.journal
        if journal.rows_done:
            return
        labels = Labels(journal.words, journal.label_type)
        builder = RunBuilder(
            self.folder, self.source.dtype, labels, journal.runs, n_bytes=self.n_bytes - self.n_bytes // _BATCH_SHARE,
            order=self.layout.place_of, n_threads=self.n_threads, written=lambda *at: self._note(labels, *at),
        )  # fmt: skip
        before, skip = journal.position, journal.skip
        for batch in self.source.batches(journal.position, self.n_bytes // _BATCH_SHARE):
            if batch.shifted and not journal.shifted:
                builder.shift()
                journal.shifted = True
            builder.add(batch, before, skip)
            before, skip = batch.after, 0
            self.seen("rows", min(int(before["done"]), self.source.size), self.source.size)
        builder.flush(before)
        if not journal.runs:
            raise ValueError(f"{self.source.name} holds no rows")
        journal.rows_done = True
        journal.save()

    def _note(self, labels: Labels, position: Any, skip: int) -> None:
        journal = self.journal
        journal.position, journal.skip = position, skip
        journal.words, journal.label_type = labels.words, labels.dtype
        journal.save()

    @property
    def n_rows(self) -> int:
        return sum(run.n_rows for run in self.journal.runs)

    @property
    def n_columns(self) -> int:
        widest = max(run.n_columns + run.shift for run in self.journal.runs)
        return max(widest, self.source.n_features or 1)

    def check(self, of_rows: dict[str, NDArray[np.float64]]) -> None:
        for name, values in of_rows.items():
            if values.shape != (self.n_rows,):
                raise ValueError(f"{name} has shape {values.shape}, expected ({self.n_rows},): one number per row")

    def make_tiles(self) -> None:
        journal = self.journal
        if journal.cuts is None:  # runs, which are needed for it, may be gone later
            journal.cuts = [cuts.tolist() for cuts in self._cuts()]
        cuts = [np.array(own, dtype=np.int64) for own in journal.cuts]
        # half, since memory that the core has given back still counts until the system takes it
        self.tiling = Tiling(self.folder, journal.runs, self.source.dtype, cuts[0], cuts[1], self.n_bytes // 2)
        n_entries = sum(run.n_entries for run in journal.runs)
        n_rows, n_columns = self.tiling.grid
        count = self._counter("tiles", n_entries)
        for c in range(n_columns):
            for r in range(n_rows):
                if all(tile_file(r, c, part) in journal.files for part in PARTS):
                    count((journal.files[tile_file(r, c, "indices")]["bytes"] - HEADER) // 4)
                else:
                    journal.files |= self.tiling.make(r, c, count)
                    journal.save(soon=True)
        journal.save()
        count = self._counter("statistics", n_entries)
        for c in range(n_columns):
            if statistics_file(c) not in journal.files:
                journal.files |= self.tiling.write_statistics(c, self.n_threads, count)
                journal.save(soon=True)

    def _counter(self, what: str, total: int) -> Callable[[int], None]:
        """Adds up entries for the progress."""
        done = 0

        def count(entries: int) -> None:
            nonlocal done
            done += entries
            self.seen(what, done, total)

        return count

    def _cuts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        runs, groups = self.journal.runs, self.layout.row_groups
        n, p = self.n_rows, self.n_columns
        if groups is None:
            rows = np.cumsum([0] + [run.n_rows for run in runs])
        else:
            rows = np.arange(whole("row_groups", groups, 1, n) + 1, dtype=np.int64) * n // groups
        partition = self.layout.partition
        if partition is not None:
            if p != partition.n_features:
                raise ValueError(f"partition has {partition.n_features:,} features, and the data have {p:,}")
            return rows, np.concatenate([[0], np.cumsum(partition.sizes)])
        count = whole("column_groups", self.layout.column_groups, 1, p)
        if count == 1:
            return rows, np.array([0, p])
        return rows, even_columns(self.folder, runs, p, count, self.n_bytes)

    def finish(self, of_rows: dict[str, NDArray[np.float64]]) -> Store:
        journal, folder, source = self.journal, self.folder, self.source
        words, recode, classes = journal.words, None, None
        if words is not None:
            classes = sorted(words)
            recode = np.argsort(np.argsort(np.array(words))).astype(np.float64)
        files = journal.files
        if all((folder / run.file("y")).exists() for run in journal.runs):
            files["y.npy"] = joined(folder, journal.runs, "y.npy", recode)
        for name, values in of_rows.items():
            files[f"{name}.npy"] = write_array(folder / f"{name}.npy", values)
        if self.layout.partition is not None:
            files["features.npy"] = write_array(folder / "features.npy", self.layout.partition.order.astype(np.int32))
        if source.encoding is not None:
            files |= write_encoding(folder, source.encoding)
        elif source.names is not None:
            files |= write_names(folder, source.names)
        journal.save()
        for pattern in ("run-*", "numbers-*", "combinations-*"):  # also what a killed process has left
            for left in folder.glob(pattern):
                left.unlink()
        with replacing_text(folder / META) as file:
            json.dump(sealed(self._meta(classes)), file, indent=1)
        journal.close()
        return Store(folder)

    def _meta(self, classes: list[str] | None) -> dict[str, Any]:
        journal, source, tiling = self.journal, self.source, self.tiling
        sizes = [
            [journal.files[tile_file(r, c, "indices")]["bytes"] for c in range(tiling.grid[1])]
            for r in range(tiling.grid[0])
        ]
        assert journal.position is not None
        labels = {"labelled": source.labelled, "name": source.target, "classes": classes, "dtype": journal.label_type}
        return {
            "format": FORMAT,
            "version": VERSION,
            "made_by": f"blockgreedy {blockgreedy.__version__}",
            "name": source.name,
            "shape": [self.n_rows, self.n_columns],
            "n_entries": sum(run.n_entries for run in journal.runs),
            "dtype": source.dtype.name,
            "row_cuts": tiling.row_cuts.tolist(),
            "column_cuts": tiling.column_cuts.tolist(),
            "tile_entries": [[(size - HEADER) // 4 for size in row] for row in sizes],
            "labels": labels,
            "index_base": source.index_base(journal.position),
            "made_of": journal.made_of,
            "files": journal.files,
        }


def _finished(folder: Path, made_of: dict[str, Any]) -> Store:
    store = Store(folder)
    if (folder / CONVERSION).exists():  # killed after the last file was written
        (folder / CONVERSION).unlink()
    if store.made_of != json.loads(json.dumps(made_of)):
        raise FileExistsError(
            f"{str(folder)!r} is a store of other data, or made with other options; delete it first, or choose "
            "another name"
        )
    return store


def _explained(error: OSError, folder: Path, journal: Journal) -> OSError:
    if error.errno is None:
        return error
    kept = sum(run.n_rows for run in journal.runs)
    full = " Make room on the disk." if error.errno == errno.ENOSPC else ""
    return OSError(
        error.errno,
        f"{error.strerror}.{full} {kept:,} rows are kept in {folder}: the same conversion goes on from there",
        error.filename,
    )


def _sums(of_rows: dict[str, NDArray[np.float64]]) -> dict[str, int]:
    """What tells other weights apart."""
    return {name: zlib.crc32(values.tobytes()) for name, values in of_rows.items()}


def _row_values(name: str, values: Any) -> NDArray[np.float64]:
    array = np.ascontiguousarray(values, dtype=np.float64)
    if not np.isfinite(array).all() or (name == "sample_weight" and np.any(array < 0)):
        kind = "finite and not negative" if name == "sample_weight" else "finite"
        raise ValueError(f"{name} must be {kind}")
    return array
