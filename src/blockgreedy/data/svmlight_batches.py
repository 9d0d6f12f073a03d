"""Svmlight text, plain or compressed, of one file or several → batches of rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from blockgreedy.base.threads import resolve_threads
from blockgreedy.data.cache import state_of
from blockgreedy.data.compression import decompressed
from blockgreedy.data.row_batches import Position, RowBatch, RowSource, without_zeros
from blockgreedy.data.svmlight import IndexBase, ParsedText, ahead, check_index_base, ended, parse

_PER_BYTE = 16  # bytes of memory for each byte of text: the text itself twice, and the numbers in it
_LEAST, _MOST = 1 << 16, 1 << 25  # bytes of text
_PIECE = 1 << 18  # bytes that are decompressed at a time: some text is a thousand times as long as its archive


class SvmlightRows(RowSource):
    """Batches end with the last line that ends within a multiple of the block size, counted from the
    beginning of the file, wherever reading began."""

    def __init__(
        self,
        files: Sequence[tuple[Path, str]],  # with their compression, "" for none
        *,
        dtype: Any,
        index_base: IndexBase,
        n_features: int | None,
        allow_unterminated: bool,
        n_threads: int | None,
    ) -> None:
        check_index_base(index_base)
        self.files, self.dtype, self.n_features = list(files), np.dtype(dtype), n_features
        self.asked_base, self.allow_unterminated = index_base, allow_unterminated
        self.n_threads = resolve_threads(n_threads)
        self.size = sum(path.stat().st_size for path, _ in files)
        self.name = self.files[0][0].name.split(".")[0]

    def made_of(self) -> dict[str, Any]:
        return {
            "files": [[os.path.abspath(path), *state_of(path)] for path, _ in self.files],
            "index_base": self.asked_base,
            "n_features": self.n_features,
            "allow_unterminated": self.allow_unterminated,
        }

    def index_base(self, position: Position) -> int | None:
        return int(position["base"])

    def batches(self, position: Position | None, n_bytes: int) -> Iterator[RowBatch]:
        first = position or {"file": 0, "at": 0, "line": 0, "done": 0, "base": 0 if self.asked_base == 0 else 1}
        block_size = int(np.clip(n_bytes // _PER_BYTE, _LEAST, _MOST))
        base, before = first["base"], sum(path.stat().st_size for path, _ in self.files[: first["file"]])
        for k in range(first["file"], len(self.files)):
            path, compression = self.files[k]
            at, line = (first["at"], first["line"]) if k == first["file"] else (0, 0)
            packed = _Packed(path)
            for text, at in ahead(self._blocks(packed, compression, at, block_size)):  # noqa: B020
                strict = self.asked_base != "auto" or base == 0
                found = parse(path, text, line, self.dtype, base, strict, self.n_threads)
                shifted = found.smallest < 0
                base = 0 if shifted else base
                after = {"file": k, "at": at, "line": line + found.lines, "done": before + packed.read, "base": base}
                yield self._batch(path, line, found, shifted, after)
                line = after["line"]
            before += path.stat().st_size

    def _batch(self, path: Path, line: int, found: ParsedText, shifted: bool, after: Position) -> RowBatch:
        width = found.largest + 1 + shifted
        if self.n_features is not None and width > self.n_features:
            raise ValueError(
                f"{path} has a feature with index {width - 1 + after['base']} after line {line}, which is more than "
                f"n_features={self.n_features} allows"
            )
        indices = found.indices + 1 if shifted else found.indices
        return RowBatch(*without_zeros(found.indptr, indices, found.data), found.y, after, shifted, width)

    def _blocks(self, packed: _Packed, compression: str, start: int, size: int) -> Iterator[tuple[bytes, int]]:
        """Whole lines, and where in the text they end."""
        path = packed.path
        pieces = packed.decompressed(compression, size, start) if compression else packed.plain(size, start)
        held, n_held, at = list[bytes](), 0, start  # text that is not handed out yet, and where it begins
        for piece in pieces:
            held.append(piece)
            n_held += len(piece)
            if n_held < size - at % size:
                continue
            text = b"".join(held)
            while len(text) >= (bound := size - at % size):
                end = text.rfind(b"\n", 0, bound) + 1 or text.find(b"\n") + 1
                if not end:  # a line longer than a block goes on
                    break
                yield text[:end], at + end
                text, at = text[end:], at + end
            held, n_held = [text], len(text)
        text = b"".join(held)
        end = text.rfind(b"\n") + 1
        if end:
            yield text[:end], at + end
        if end < len(text):
            yield ended(path, text[end:], self.allow_unterminated), at + len(text)


class _Packed:
    """A file on disk, and how many of its bytes have been read."""

    def __init__(self, path: Path) -> None:
        self.path, self.read = path, 0

    def plain(self, size: int, start: int) -> Iterator[bytes]:
        try:
            with self.path.open("rb") as file:
                file.seek(start)
                while block := file.read(size):
                    self.read = file.tell()
                    yield block
        except OSError as error:
            raise ValueError(f"{self.path} cannot be read: {error.strerror}") from error

    def decompressed(self, compression: str, size: int, start: int) -> Iterator[bytes]:
        skipped = 0
        for block in decompressed(self.path, compression, min(size, _PIECE), self._seen):
            if skipped < start:  # the text before was read in an earlier run
                part = block[start - skipped :]
                skipped += len(block)
                if part:
                    yield part
            else:
                yield block

    def _seen(self, n_bytes: int) -> None:
        self.read = n_bytes
