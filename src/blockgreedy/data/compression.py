"""Compressed text, a block at a time; a file that ends too early is an error."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BLOCK = 1 << 24  # bytes of text


def decompressed(path: Path, suffix: str) -> Iterator[bytes]:
    """The text of a ``.gz``, ``.bz2``, ``.xz`` or ``.zst`` file in blocks."""
    try:
        if suffix == ".zst":
            yield from _zstd(path)
        else:
            openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
            with openers[suffix](path, "rb") as file:
                while block := file.read(BLOCK):
                    yield block
    except EOFError:
        raise ValueError(f"{path} is truncated: its compressed data ends too early") from None
    except (OSError, lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"{path} cannot be decompressed as {suffix}: {error}") from error


def _zstd(path: Path) -> Iterator[bytes]:
    try:
        import zstandard
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"reading {path.name} needs the package zstandard: pip install 'blockgreedy[data]'"
        ) from None
    engine = zstandard.ZstdDecompressor()
    # Not its stream reader, which takes a file that ends too early for complete.
    frame: Any = engine.decompressobj()
    fed = False  # the frame at hand has seen bytes
    with path.open("rb") as file:
        try:
            while packed := file.read(BLOCK >> 4):
                while packed:
                    yield frame.decompress(packed)
                    packed, fed = b"", True
                    if frame.eof:  # another frame may follow
                        packed, fed = frame.unused_data, False
                        frame = engine.decompressobj()
        except zstandard.ZstdError as error:
            raise ValueError(f"{path} cannot be decompressed as .zst: {error}") from error
    if fed:
        raise EOFError
