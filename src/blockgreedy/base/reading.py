"""Files that may be damaged: whatever a changed byte makes their parsers do, the error is a ValueError.

NumPy hands headers to a parser of Python, archives and their decompressors have errors of their own, and a size that
was changed asks for any amount of memory. So every array of a file is read here, once its size agrees with the file.
"""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1 << 22  # bytes that are read at a time
_MOST_DEFLATED = 1100  # times a deflated array may be as large as what the archive holds of it

Described = tuple[np.dtype[Any], tuple[int, ...]]


@contextmanager
def explained(what: str, remedy: str = "") -> Iterator[None]:
    """Inside, any error but a lack of memory becomes a ValueError that begins with this."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # parsers raise what they like
        raise ValueError(f"{what}: {_reason(error)}{remedy}") from error


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError) and error.args:
        return f"it has no {error.args[0]}"
    return str(error) or f"it is damaged ({type(error).__name__})"


def parsed_json(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("its lists are nested too deeply") from error


def read_header(file: IO[bytes]) -> tuple[Described, int]:
    """What an ``.npy`` file holds, and where its entries begin; these must stand row after row."""
    described, by_columns, begin = _header_of(file)
    if by_columns and len(described[1]) > 1:
        raise ValueError("its entries stand column after column")
    return described, begin


def read_array(file: IO[bytes], size: int | None = None) -> NDArray[Any]:
    """The array of an ``.npy`` file or of a member of an archive, which has so many bytes (None: a file on disk)."""
    size = os.fstat(file.fileno()).st_size if size is None else size
    (dtype, shape), by_columns, begin = _header_of(file)
    if begin + math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"it has {size - begin:,} bytes, which are no {dtype} of shape {shape}")
    values: NDArray[Any] = np.empty(math.prod(shape), dtype=dtype)
    if values.nbytes:
        out, at = values.view(np.uint8), 0
        while at < len(out):
            block = file.read(min(_BLOCK, len(out) - at))
            if not block:
                raise ValueError("it ends too early")
            out[at : at + len(block)] = np.frombuffer(block, dtype=np.uint8)
            at += len(block)
    if file.read(1):  # archives compare checksums at the end
        raise ValueError("it goes on behind its array")
    return values.reshape(shape, order="F" if by_columns else "C")


def _header_of(file: IO[bytes]) -> tuple[Described, bool, int]:
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, by_columns, dtype = read(file)
    except MemoryError:
        raise ValueError("its header is damaged") from None
    except Exception as error:
        raise ValueError(f"its header is damaged ({type(error).__name__})") from error
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are not read (allow_pickle=False)")
    if any(length < 0 for length in shape):
        raise ValueError(f"its header is damaged (shape {shape})")
    return (dtype, shape), bool(by_columns), file.tell()


class Archive:
    """An ``.npz`` file. Members are known by the names of their arrays; what is not there is a KeyError."""

    def __init__(self, file: zipfile.ZipFile) -> None:
        self._file = file
        self._members = {
            info.filename.removesuffix(".npy"): info for info in file.infolist() if info.filename.endswith(".npy")
        }

    @property
    def names(self) -> list[str]:
        return list(self._members)

    def __contains__(self, name: str) -> bool:
        return name in self._members

    @contextmanager
    def member(self, name: str) -> Iterator[tuple[IO[bytes], int]]:
        """The bytes of one, and how many they are."""
        info = self._members[name]
        stored = info.compress_type == zipfile.ZIP_STORED
        if info.file_size > info.compress_size * (1 if stored else _MOST_DEFLATED):
            raise ValueError(f"the size of {name} is damaged")
        with explained(f"{name} is damaged"), self._file.open(info) as file:
            yield file, info.file_size

    def described(self, name: str) -> Described:
        with self.member(name) as (file, _):
            return _header_of(file)[0]

    def get(self, name: str) -> NDArray[Any] | None:
        return None if name not in self._members else self[name]

    def __getitem__(self, name: str) -> NDArray[Any]:
        with self.member(name) as (file, size):
            return read_array(file, size)


@contextmanager
def archive_of(file: Any, otherwise: str = "it is no archive") -> Iterator[Archive]:
    """The archive in a file, or at a path; ``otherwise``: what the error says where it is none."""
    try:
        opened = zipfile.ZipFile(file)
    except (MemoryError, OSError):
        raise
    except Exception as error:
        raise ValueError(f"{otherwise}: {_reason(error)}") from error
    with opened:
        yield Archive(opened)
