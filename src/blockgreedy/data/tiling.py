"""Runs → tiles: the same entries in row groups and column groups, and statistics of the columns.

Every run holds its rows column after column, so that a column group is one piece of each run. A tile is put together
of such pieces, some columns at a time; where row groups are runs and there is one column group, runs are tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.data.column_statistics import ColumnStatistics, statistics_of
from blockgreedy.data.runs import Run
from blockgreedy.data.store_files import (
    PARTS,
    TYPES,
    ArrayWriter,
    FileFacts,
    read_part,
    statistics_file,
    tile_file,
    writing,
)

Files = dict[str, FileFacts]
Seen = Callable[[int], None]  # hears of entries as they are written or read
Ends = NDArray[np.int64]  # where columns begin, and where the last one ends
_FIELDS = len(ColumnStatistics._fields)
# Bytes of memory, copies on the way included: for a column of a run, an entry, and the statistics of a column.
_POINTER, _ENTRY, _STATISTICS = 64, 80, 480


class Pieces:
    """Columns of a run by their places in the store, read from its files a few at a time."""

    def __init__(self, folder: Path, run: Run, first_row: int, dtype: np.dtype[Any]) -> None:
        self.folder, self.run, self.first_row, self.dtype = folder, run, first_row, dtype
        self.end_row = first_row + run.n_rows

    def ends(self, begin: int, end: int) -> Ends:
        """Where the columns begin, and where the last of them ends; columns that the run does not have are empty."""
        lo, hi = (int(np.clip(at - self.run.shift, 0, self.run.n_columns)) for at in (begin, end))
        own = read_part(self.folder / self.run.file("indptr"), np.int64, lo, hi + 1)
        before = max(0, min(self.run.shift, end) - begin)
        return np.pad(own, (before, (end - begin) - before - (hi - lo)), mode="edge")

    def entries(self, begin: int, end: int) -> tuple[Any, Any]:
        """Rows and values, by places in the files."""
        rows = read_part(self.folder / self.run.file("indices"), np.int32, begin, end)
        return rows, read_part(self.folder / self.run.file("data"), self.dtype, begin, end)


class Tiling:
    """Makes the tiles of a grid out of runs, and statistics out of tiles, within ``n_bytes`` of memory."""

    def __init__(
        self, folder: Path, runs: Sequence[Run], dtype: np.dtype[Any], row_cuts: Ends, column_cuts: Ends, n_bytes: int
    ) -> None:
        self.folder, self.dtype, self.n_bytes = folder, dtype, n_bytes
        self.row_cuts, self.column_cuts = row_cuts, column_cuts
        first = np.cumsum([0] + [run.n_rows for run in runs])
        self.runs = [Pieces(folder, run, int(row), dtype) for run, row in zip(runs, first, strict=False)]
        self.grid = len(row_cuts) - 1, len(column_cuts) - 1
        self.runs_are_tiles = self.grid[1] == 1 and np.array_equal(first, row_cuts)

    def make(self, r: int, c: int, seen: Seen) -> Files:
        """The files of a tile. May be called again for one that was made before the process was killed."""
        if not self.runs_are_tiles:
            return self._put_together(r, c, seen)
        seen(self.runs[r].run.n_entries)
        return self._take_over(r)

    def _take_over(self, r: int) -> Files:
        """The run's own files; its pointers must be those of all columns."""
        run = self.runs[r].run
        n_columns = int(self.column_cuts[-1])
        made: Files = {}
        name = tile_file(r, 0, "indptr")
        with writing(self.folder / name, np.int64, (n_columns + 1,)) as writer:
            step = max(1, self.n_bytes // _POINTER)
            for begin in range(0, n_columns, step):
                ends = self.runs[r].ends(begin, min(begin + step, n_columns))
                writer.write(ends if begin == 0 else ends[1:])
        made[name] = writer.facts
        for part in ("indices", "data"):
            name, own = tile_file(r, 0, part), self.folder / run.file(part)
            if own.exists():
                own.replace(self.folder / name)
            made[name] = run.files[part]
        return made

    def _put_together(self, r: int, c: int, seen: Seen) -> Files:
        begin, end = self.column_cuts[c : c + 2].tolist()
        first, last = self.row_cuts[r : r + 2].tolist()
        pieces = [piece for piece in self.runs if piece.first_row < last and piece.end_row > first]
        n_entries = self.count(r, c)
        lengths = {"indptr": end - begin + 1, "indices": n_entries, "data": n_entries}
        with ExitStack() as stack:
            out = {
                part: stack.enter_context(
                    writing(self.folder / tile_file(r, c, part), TYPES.get(part, self.dtype), (lengths[part],))
                )
                for part in PARTS
            }
            out["indptr"].write(np.zeros(1, dtype=np.int64))
            written = 0
            for a, b, ends in self._blocks(pieces, begin, end):
                if b - a == 1:
                    counts = np.array([self._long_column(pieces, ends, first, last, out)])
                else:
                    counts, rows, values = self._merged(pieces, ends, first, last)
                    out["indices"].write(rows)
                    out["data"].write(values)
                out["indptr"].write(written + np.cumsum(counts, dtype=np.int64))
                written += int(counts.sum())
                seen(int(counts.sum()))
        return {tile_file(r, c, part): out[part].facts for part in PARTS}

    def _blocks(self, pieces: Sequence[Pieces], begin: int, end: int) -> Iterator[tuple[int, int, list[Ends]]]:
        """Columns in runs of as many entries as may be in memory at a time, or one by one where one has more."""
        window = max(1, self.n_bytes // (2 * _POINTER * (len(pieces) + 1)))
        most = max(1, self.n_bytes // (2 * _ENTRY))
        for start in range(begin, end, window):
            stop = min(start + window, end)
            ends = [piece.ends(start, stop) for piece in pieces]
            total = np.sum([own - own[0] for own in ends], axis=0) if ends else np.zeros(stop - start + 1, np.int64)
            a = 0
            while a < stop - start:
                b = int(np.searchsorted(total, total[a] + most, side="right")) - 1
                b = max(b, a + 1)
                yield start + a, start + b, [own[a : b + 1] for own in ends]
                a = b

    def _piece(self, piece: Pieces, ends: Ends, first: int, last: int) -> tuple[Ends, Any, Any]:
        """What a run has of a row group: entries in each column, rows counted from the group's first, values."""
        rows, values = piece.entries(int(ends[0]), int(ends[-1]))
        counts = np.diff(ends)
        if piece.first_row < first or piece.end_row > last:
            own = (rows >= first - piece.first_row) & (rows < last - piece.first_row)
            counts = np.diff(np.concatenate([[0], np.cumsum(own)])[ends - ends[0]])
            rows, values = rows[own], values[own]
        rows += np.int32(piece.first_row - first)
        return counts, rows, values

    def _merged(self, pieces: Sequence[Pieces], ends: list[Ends], first: int, last: int) -> tuple[Ends, Any, Any]:
        found = [self._piece(piece, own, first, last) for piece, own in zip(pieces, ends, strict=True)]
        if len(found) == 1:
            return found[0]
        total = np.sum([counts for counts, _, _ in found], axis=0)
        starts = np.concatenate([[0], np.cumsum(total)[:-1]])
        rows = np.empty(int(total.sum()), dtype=np.int32)
        values = np.empty(len(rows), dtype=self.dtype)
        for counts, own_rows, own_values in found:
            before = np.concatenate([[0], np.cumsum(counts)[:-1]])
            to = np.repeat(starts - before, counts) + np.arange(len(own_rows))
            rows[to], values[to] = own_rows, own_values
            starts = starts + counts
        return total, rows, values

    def _long_column(
        self, pieces: Sequence[Pieces], ends: list[Ends], first: int, last: int, out: dict[str, ArrayWriter]
    ) -> int:
        n_entries = 0
        for piece, own in zip(pieces, ends, strict=True):
            counts, rows, values = self._piece(piece, own, first, last)
            out["indices"].write(rows)
            out["data"].write(values)
            n_entries += int(counts.sum())
        return n_entries

    def count(self, r: int, c: int) -> int:
        """Entries of a tile. Of runs that lie in several row groups they have to be looked for."""
        begin, end = self.column_cuts[c : c + 2].tolist()
        first, last = self.row_cuts[r : r + 2].tolist()
        total = 0
        for piece in self.runs:
            if piece.first_row >= last or piece.end_row <= first:
                continue
            at, stop = int(piece.ends(begin, begin)[0]), int(piece.ends(end, end)[0])
            if piece.first_row >= first and piece.end_row <= last:
                total += stop - at
                continue
            step = max(1, self.n_bytes // _ENTRY)
            for a in range(at, stop, step):
                rows = read_part(self.folder / piece.run.file("indices"), np.int32, a, min(a + step, stop))
                total += int(np.count_nonzero((rows >= first - piece.first_row) & (rows < last - piece.first_row)))
        return total

    def write_statistics(self, c: int, n_threads: int | None, seen: Seen) -> Files:
        """Of the columns of a group, out of its tiles."""
        width = int(self.column_cuts[c + 1] - self.column_cuts[c])
        name = statistics_file(c)
        with writing(self.folder / name, np.float64, (width, _FIELDS)) as writer:
            step = max(1, self.n_bytes // (2 * _STATISTICS))
            for begin in range(0, width, step):
                writer.write(self._statistics(c, begin, min(begin + step, width), n_threads, seen))
        return {name: writer.facts}

    def _statistics(self, c: int, begin: int, end: int, n_threads: int | None, seen: Seen) -> NDArray[np.float64]:
        made, n_made = ColumnStatistics(*np.zeros((_FIELDS, end - begin))), 0
        for r in range(self.grid[0]):
            n_rows = int(self.row_cuts[r + 1] - self.row_cuts[r])
            ends = read_part(self.folder / tile_file(r, c, "indptr"), np.int64, begin, end + 1)
            own = self._of_tile(r, c, ends, n_rows, n_threads)
            made = own if r == 0 else made.merged(n_made, own, n_rows)
            n_made += n_rows
            seen(int(ends[-1] - ends[0]))
        return np.ascontiguousarray(np.array(made).T)

    def _of_tile(self, r: int, c: int, ends: Ends, n_rows: int, n_threads: int | None) -> ColumnStatistics:
        most = max(1, self.n_bytes // _ENTRY)
        out = np.empty((_FIELDS, len(ends) - 1))
        a = 0
        while a < len(ends) - 1:
            b = max(int(np.searchsorted(ends, ends[a] + most, side="right")) - 1, a + 1)
            values = read_part(self.folder / tile_file(r, c, "data"), self.dtype, int(ends[a]), int(ends[b]))
            out[:, a:b] = np.array(statistics_of(ends[a : b + 1] - ends[a], values, n_rows, n_threads))
            a = b
        return ColumnStatistics(*out)


def joined(folder: Path, runs: Sequence[Run], name: str, recode: NDArray[np.float64] | None) -> FileFacts:
    """The labels of all runs in one file. ``recode``: the number that takes the place of each."""
    with writing(folder / name, np.float64, (sum(run.n_rows for run in runs),)) as writer:
        for run in runs:
            own = read_part(folder / run.file("y"), np.float64, 0, run.n_rows)
            writer.write(own if recode is None else recode[own.astype(np.int64)])
    return writer.facts


def even_columns(folder: Path, runs: Sequence[Run], n_columns: int, n_groups: int, n_bytes: int) -> Ends:
    """Cuts between column groups that take about the same memory."""
    pieces = [Pieces(folder, run, 0, np.dtype(np.float64)) for run in runs]
    weight = sum(run.n_entries for run in runs) + n_columns
    targets = np.arange(1, n_groups) * weight // n_groups
    cuts, before = [0], 0
    step = max(1, n_bytes // _POINTER)
    for begin in range(0, n_columns, step):
        end = min(begin + step, n_columns)
        total = before + np.arange(end - begin + 1)
        for piece in pieces:
            ends = piece.ends(begin, end)
            total += ends - ends[0]
        here = targets[(targets > before) & (targets <= total[-1])]
        cuts += (begin + np.searchsorted(total, here, side="left")).tolist()
        before = int(total[-1])
    # every group has a column
    found = np.maximum.accumulate(np.array([*cuts, n_columns]))
    low = np.arange(n_groups + 1)
    return np.minimum(np.maximum(found, low), n_columns - low[::-1]).astype(np.int64)
