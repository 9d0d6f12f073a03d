"""Compressed text, a block at a time; a file that ends too early is an error."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

BLOCK = 1 << 24  # bytes of text
_LEAST_PACKED = 256  # bytes of an archive: at most 8 MB of text


def decompressed(
    path: Path, suffix: str, block_size: int = BLOCK, seen: Callable[[int], None] = lambda n_bytes: None
) -> Iterator[bytes]:
    """The text of a ``.gz``, ``.bz2``, ``.xz`` or ``.zst`` file in blocks of about this size.

    ``seen`` hears how many bytes of the file have been read.
    """
    try:
        with path.open("rb") as raw:
            blocks = _zstd(path.name, raw, block_size) if suffix == ".zst" else _unpacked(raw, suffix, block_size)
            for block in blocks:
                seen(raw.tell())
                yield block
    except EOFError:
        raise ValueError(f"{path} is truncated: its compressed data ends too early") from None
    except (OSError, lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"{path} cannot be decompressed as {suffix}: {error}") from error


def _unpacked(raw: IO[bytes], suffix: str, block_size: int) -> Iterator[bytes]:
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    with openers[suffix](raw, "rb") as file:
        while block := file.read(block_size):
            yield block


def _zstd(name: str, raw: IO[bytes], block_size: int) -> Iterator[bytes]:
    try:
        import zstandard
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"reading {name} needs the package zstandard: pip install 'blockgreedy[data]'"
        ) from None
    engine = zstandard.ZstdDecompressor()
    # Not its stream reader, which takes a file that ends too early for complete.
    frame: Any = engine.decompressobj()
    fed = False  # the frame at hand has seen bytes
    try:
        count = _LEAST_PACKED  # as much as makes about a block: repeated text is thousands of times as long
        while packed := raw.read(count):
            while packed:
                text = frame.decompress(packed)
                count = max(_LEAST_PACKED, count // 2) if len(text) > block_size else min(2 * count, block_size >> 2)
                yield text
                packed, fed = b"", True
                if frame.eof:  # another frame may follow
                    packed, fed = frame.unused_data, False
                    frame = engine.decompressobj()
    except zstandard.ZstdError as error:
        raise OSError(str(error)) from error
    if fed:
        raise EOFError
