"""Svmlight/LIBSVM text: ``label [qid:number] index:value index:value … # comment``, a line per row.

The core parses; here text is brought to it: a file mapped into memory, or blocks of a compressed one as they come.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np
from scipy import sparse

from blockgreedy import _core
from blockgreedy.base.threads import resolve_threads
from blockgreedy.data.compression import decompressed
from blockgreedy.data.dataset import Dataset

if TYPE_CHECKING:
    from numpy.typing import NDArray

IndexBase = Literal["auto", 0, 1]
Block = TypeVar("Block")
_INT32_MAX = 2**31 - 1


def read_svmlight(
    path: Path,
    compression: str = "",
    *,
    dtype: Any = np.float64,
    index_base: IndexBase = "auto",
    n_features: int | None = None,
    allow_unterminated: bool = False,
    n_threads: int | None = None,
) -> Dataset:
    """Rows in file order. Indices count from 1 unless one is 0, or as ``index_base`` says.

    ``n_features`` is the width of the result; features beyond it are an error. A last line without a newline is one
    too, since a file that was cut off looks like that, unless ``allow_unterminated`` says that it is meant.
    """
    check_index_base(index_base)
    reader = _Reader(path, np.dtype(dtype), index_base, resolve_threads(n_threads))
    if compression:
        for block in _whole_lines(path, ahead(decompressed(path, compression)), allow_unterminated):
            reader.read(block)
    elif path.stat().st_size > 0:  # an empty file cannot be mapped
        with path.open("rb") as file:
            text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # unmapped with its last view
        whole = text.rfind(b"\n") + 1
        view = memoryview(text)
        for block in _whole_lines(path, [view[:whole], bytes(view[whole:])], allow_unterminated):
            reader.read(block)
    return reader.dataset(n_features)


def check_index_base(index_base: Any) -> None:
    if index_base not in ("auto", 0, 1):
        raise ValueError(f"index_base={index_base!r} must be 'auto', 0 or 1")


class ParsedText(NamedTuple):
    """Rows of a block of whole lines; ``smallest`` and ``largest`` are the least and the greatest of ``indices``."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[Any]
    y: NDArray[np.float64]
    lines: int
    smallest: int
    largest: int


def parse(path: Path, block: Any, lines: int, dtype: Any, base: int, strict: bool, n_threads: int) -> ParsedText:
    """``lines`` stand before the block, for messages. Unless ``strict``, an index below ``base`` becomes negative."""
    text = _core.SvmlightText(np.frombuffer(block, dtype=np.uint8), n_threads)
    indptr = np.empty(text.max_rows + 1, dtype=np.int64)
    indices = np.empty(text.max_entries, dtype=np.int32)
    data = np.empty(text.max_entries, dtype=dtype)
    y = np.empty(text.max_rows, dtype=np.float64)
    fault: Any = text.parse(indptr, indices, data, y, base, strict, n_threads)
    if fault is not None:
        line, column, expected, found = fault
        shown = repr(found.decode(errors="replace")) if found else "nothing"
        raise ValueError(f"{path}, line {lines + line}, column {column}: expected {expected}, found {shown}")
    rows, entries = text.rows, text.entries
    own = indptr[: rows + 1], indices[:entries], data[:entries], y[:rows]
    return ParsedText(*own, text.lines, text.smallest, text.largest)


class _Reader:
    """Blocks of whole lines in, one matrix out."""

    def __init__(self, path: Path, dtype: Any, index_base: IndexBase, n_threads: int) -> None:
        self.path, self.dtype, self.n_threads = path, dtype, n_threads
        # Files that count from 0 are rare, so "auto" takes 1 for granted and makes up for it at the end.
        self.guessed = index_base == "auto"
        self.base = 1 if index_base == "auto" else index_base
        self.lines = 0
        self.smallest, self.largest = _INT32_MAX, -1
        self.parts: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]] = []

    def read(self, block: Any) -> None:
        found = parse(self.path, block, self.lines, self.dtype, self.base, not self.guessed, self.n_threads)
        self.lines += found.lines
        self.smallest, self.largest = min(self.smallest, found.smallest), max(self.largest, found.largest)
        self.parts.append((found.indptr, found.indices, found.data, found.y))

    def dataset(self, n_features: int | None) -> Dataset:
        if not sum(len(part[3]) for part in self.parts):
            raise ValueError(f"{self.path} holds no rows")
        indptr, indices, data, y = self.parts[0] if len(self.parts) == 1 else _joined(self.parts)
        self.parts.clear()
        base, width = self.base, self.largest + 1
        if self.guessed and self.smallest < 0:
            np.add(indices, 1, out=indices)
            base, width = 0, width + 1
        if n_features is not None and width > n_features:
            raise ValueError(
                f"{self.path} has a feature with index {width - 1 + base}, which is more than "
                f"n_features={n_features} allows"
            )
        if indptr[-1] <= _INT32_MAX:  # scipy keeps both index arrays in one type and would widen the large one
            indptr = indptr.astype(np.int32)
        X = sparse.csr_array((data, indices, indptr), shape=(len(y), n_features or max(width, 1)))
        X.has_sorted_indices = True  # the parser saw to it
        X.has_canonical_format = True
        return Dataset.of_file(self.path, X, y, None, index_base=base)


def _joined(parts: list[Any]) -> tuple[Any, ...]:
    starts = np.cumsum([0] + [part[0][-1] for part in parts])
    pointers = [part[0][1:] + start for part, start in zip(parts, starts, strict=False)]
    indptr = np.concatenate([np.zeros(1, dtype=np.int64), *pointers])
    return (indptr, *(np.concatenate([part[k] for part in parts]) for k in (1, 2, 3)))


def _whole_lines(path: Path, blocks: Any, allow_unterminated: bool) -> Iterator[Any]:
    """The same text in blocks that end with a line."""
    rest = b""
    for block in blocks:
        end = block.rfind(b"\n") + 1 if isinstance(block, bytes) else len(block)
        if end:
            yield rest + block[:end] if rest else block[:end]
            rest = b""
        if end < len(block):
            rest += block[end:]
    if rest:
        yield ended(path, rest, allow_unterminated)


def ended(path: Path, rest: bytes, allow_unterminated: bool) -> bytes:
    """A last line without a newline, with one."""
    if not allow_unterminated:
        raise ValueError(
            f"{path} does not end in a newline, so it may be truncated; its last line begins "
            f"{rest[:40].decode(errors='replace')!r}. Complete it, or pass allow_unterminated=True"
        )
    return rest + b"\n"


def ahead(blocks: Iterator[Block]) -> Iterator[Block]:
    """The next block is made while the last one is used."""
    with ThreadPoolExecutor(1) as helper:
        coming = helper.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = helper.submit(next, blocks, None)
            yield block
