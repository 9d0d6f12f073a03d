"""Tables in files, by pyarrow, some rows at a time."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from blockgreedy.data.arrow import ArrowColumn, conversion, explained, sound
from blockgreedy.data.compression import decompressed
from blockgreedy.data.formats import DataFile

_CSV_BLOCK = 1 << 20  # bytes of text


def column_batches(
    file: DataFile, names: list[str], types: dict[str, str], start: int, n_rows: int
) -> Iterator[tuple[int, list[ArrowColumn]]]:
    """The rows from ``start`` on in batches that end at multiples of ``n_rows``, with the row after the last.

    ``types`` are the types of a CSV's columns: "text", "number" or "bool".
    """
    with explained(file.path, file.suffix) as pa:
        at, waiting = start, []  # rows before `at` were given out, or are waiting
        held = 0
        for batch in _batches(pa, file, names, types, start):
            left = batch
            while left.num_rows:
                part = left.slice(0, n_rows - (at % n_rows))
                left = left.slice(part.num_rows)
                waiting.append(part)
                held, at = held + part.num_rows, at + part.num_rows
                if at % n_rows == 0:
                    yield at, _columns(pa, waiting, names)
                    waiting, held = [], 0
        if held:
            yield at, _columns(pa, waiting, names)


def _columns(pa: Any, batches: list[Any], names: list[str]) -> list[ArrowColumn]:
    table = pa.Table.from_batches(batches)
    return [ArrowColumn(name, table.column(name)) for name in names]


def _batches(pa: Any, file: DataFile, names: list[str], types: dict[str, str], start: int) -> Iterator[Any]:
    if file.suffix == ".csv":
        yield from _skipped(_csv(pa, file, names, types), start)
    elif file.suffix == ".parquet":
        yield from _parquet(pa, file.path, names, start)
    else:
        yield from _skipped(_arrow(pa, file.path, names), start)


def _skipped(batches: Iterator[Any], n_rows: int) -> Iterator[Any]:
    """Without the first rows."""
    for batch in batches:
        if n_rows < batch.num_rows:
            yield batch.slice(n_rows)
        n_rows = max(0, n_rows - batch.num_rows)


def _csv(pa: Any, file: DataFile, names: list[str], types: dict[str, str]) -> Iterator[Any]:
    known = {"text": pa.string(), "number": pa.float64(), "bool": pa.bool_()}
    source = file.path
    if file.compression:
        source = pa.PythonFile(_Unpacked(decompressed(file.path, file.compression, _CSV_BLOCK)), mode="r")
    options = conversion(pa, include_columns=names, column_types={name: known[types[name]] for name in names})
    # without threads: only then do messages name the row
    reading = pa.csv.ReadOptions(use_threads=False, block_size=_CSV_BLOCK)
    with pa.csv.open_csv(source, read_options=reading, convert_options=options) as reader:
        yield from reader


def _parquet(pa: Any, path: Path, names: list[str], start: int) -> Iterator[Any]:
    with pa.parquet.ParquetFile(path, pre_buffer=False, buffer_size=_CSV_BLOCK) as source:
        groups, before = list(range(source.num_row_groups)), 0
        while groups and before + source.metadata.row_group(groups[0]).num_rows <= start:
            before += source.metadata.row_group(groups.pop(0)).num_rows
        if groups:
            batches = source.iter_batches(columns=names, row_groups=groups, use_threads=False, batch_size=1 << 14)
            yield from _skipped(map(sound, batches), start - before)


def _arrow(pa: Any, path: Path, names: list[str]) -> Iterator[Any]:
    with pa.memory_map(str(path)) as mapped:
        try:
            source = pa.ipc.open_file(mapped)
        except pa.ArrowInvalid:
            mapped.seek(0)
            for batch in pa.ipc.open_stream(mapped):
                yield sound(batch.select(names))
        else:
            for k in range(source.num_record_batches):
                yield sound(source.get_batch(k).select(names))


class _Unpacked(io.RawIOBase):
    """Blocks of bytes as a file that is read from its beginning to its end."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._rest = blocks, b""

    def readable(self) -> bool:
        return True

    def readinto(self, out: Any) -> int:
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = block
        part = self._rest[: len(out)]
        self._rest = self._rest[len(part) :]
        out[: len(part)] = part
        return len(part)
