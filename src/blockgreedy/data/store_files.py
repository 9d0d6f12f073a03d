"""The files of a store: their names, and arrays in them with checksums."""

from __future__ import annotations

import io
import math
import mmap
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypedDict

import numpy as np

from blockgreedy.base.files import replacing
from blockgreedy.base.reading import read_header

if TYPE_CHECKING:
    from numpy.typing import NDArray

META, CONVERSION = "meta.json", "conversion.json"
PARTS = ("indptr", "indices", "data")
TYPES: dict[str, Any] = {"indptr": np.int64, "indices": np.int32}
HEADER = 128  # bytes before the entries, in files that are made here
_BLOCK = 1 << 22  # bytes


Identity = tuple[int, int, int, int]  # device, file, bytes and time of the last change, in nanoseconds


class FileFacts(TypedDict):
    """What meta.json says of a file."""

    bytes: int
    crc32: int


def tile_file(r: int, c: int, part: str) -> str:
    return f"tile-{r:04}-{c:04}.{part}.npy"


def statistics_file(c: int) -> str:
    return f"statistics-{c:04}.npy"


class ArrayWriter:
    """An array that is written a piece at a time; ``facts`` once it is complete."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.facts: FileFacts = {"bytes": 0, "crc32": 0}

    def write(self, values: NDArray[Any]) -> None:
        plain: Any = np.ascontiguousarray(values)
        self.add_bytes(memoryview(plain).cast("B") if values.size else b"")

    def add_bytes(self, text: bytes | memoryview) -> None:
        for start in range(0, len(text), _BLOCK):  # while a block is in the cache
            block = text[start : start + _BLOCK]
            self._file.write(block)
            self.facts["crc32"] = zlib.crc32(block, self.facts["crc32"])
        self.facts["bytes"] += len(text)


@contextmanager
def writing(path: Path, dtype: Any, shape: tuple[int, ...]) -> Iterator[ArrayWriter]:
    """An ``.npy`` file that appears when all of it is there."""
    header = io.BytesIO()
    described = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, described)
    assert len(header.getvalue()) == HEADER
    try:
        with replacing(path) as file:
            writer = ArrayWriter(file)
            writer.add_bytes(header.getvalue())
            yield writer
    except OSError as error:
        if error.filename is None:  # what fails to write does not know where
            error.filename = str(path)
        raise


def write_array(path: Path, values: NDArray[Any]) -> FileFacts:
    with writing(path, values.dtype, values.shape) as writer:
        writer.write(values)
    return writer.facts


def read_part(path: Path, dtype: Any, begin: int, end: int) -> NDArray[Any]:
    """Entries ``begin`` to ``end - 1`` of a file that ``writing`` has made, in memory of their own.

    Pages of mapped files would count as memory of the process.
    """
    kind = np.dtype(dtype)
    with path.open("rb") as file:
        file.seek(HEADER + begin * kind.itemsize)
        found: NDArray[Any] = np.fromfile(file, dtype=kind, count=end - begin)
    if len(found) != end - begin:
        raise _damaged(path, "it ends too early")
    return found


def mapped(path: Path, facts: FileFacts | None, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """An array of this type and shape, mapped into memory and not to be written to."""
    with _opened(path, facts) as (file, _):
        return _mapped(path, file, dtype, shape)


def _mapped(path: Path, file: IO[bytes], dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    kind = np.dtype(dtype)
    try:
        found, begin = read_header(file)
    except ValueError as error:
        raise _damaged(path, f"it cannot be read as an array ({error})") from error
    if found != (kind, shape):
        raise _damaged(path, f"it holds {found[0]} of shape {found[1]}, not {kind} of shape {shape}")
    if not np.prod(shape):  # cannot be mapped
        return np.zeros(shape, dtype=kind)
    try:
        whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        plain: NDArray[Any] = np.frombuffer(whole, dtype=kind, count=math.prod(shape), offset=begin).reshape(shape)
    except (OSError, ValueError) as error:
        raise _damaged(path, f"it cannot be mapped into memory ({error})") from error
    return plain


def check_file(path: Path, facts: FileFacts) -> Identity:
    """Reads the file and compares its checksum; which file that was."""
    found = 0
    with _opened(path, facts) as (file, identity):
        try:
            while block := file.read(_BLOCK):
                found = zlib.crc32(block, found)
        except OSError as error:
            raise _damaged(path, f"it cannot be read ({error.strerror})") from error
        if found != facts["crc32"]:
            raise _damaged(path, f"its checksum is {found:08x}, not {facts['crc32']:08x}")
        if _identity_of(file) != identity:
            raise _changed(path)
    return identity


class KnownFiles:
    """The files of an open store: each is the same whenever it is read, or an error says that it has changed.

    Tiles are mapped anew for every product and read from disk during it, so what was checked once proves nothing of
    a file that somebody has written to since. Writers that a file system does not tell of remain: those that map a
    file of a file system in memory (tmpfs), and other machines, until the network's file system hears of them.
    """

    def __init__(self, folder: Path, facts: dict[str, FileFacts]) -> None:
        self._folder, self._facts = folder, facts
        self._known: dict[str, Identity] = {}
        self._sound: set[str] = set()  # files whose checksums have been compared

    def facts_of(self, name: str) -> FileFacts:
        try:
            return self._facts[name]
        except KeyError:
            raise ValueError(f"{self._folder / META} is damaged: it does not list {name}") from None

    def compare_once(self, name: str) -> None:
        """Its checksum, the first time; then whether it is still the same file."""
        if name not in self._sound:
            self._see(name, check_file(self._folder / name, self.facts_of(name)))
            self._sound.add(name)

    def array(self, name: str, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        path = self._folder / name
        with _opened(path, self.facts_of(name), is_known=name in self._known) as (file, identity):
            self._see(name, identity)
            return _mapped(path, file, dtype, shape)

    def check_unchanged(self) -> None:
        """Refuses files that are no longer what was read of them."""
        for name, identity in list(self._known.items()):
            path = self._folder / name
            with _opened(path, None, is_known=True) as (_, now):
                if now != identity:
                    raise _changed(path)

    def _see(self, name: str, identity: Identity) -> None:
        if self._known.setdefault(name, identity) != identity:
            raise _changed(self._folder / name)


def pointers_leave(tile: Any, wanted: NDArray[np.integer[Any]]) -> bool:
    starts, ends = tile.indptr[wanted], tile.indptr[wanted + 1]
    return not np.all((starts >= 0) & (starts <= ends) & (ends <= len(tile.indices)))


def rows_leave(rows: NDArray[np.int32], n_rows: int) -> bool:
    return len(rows) > 0 and not (rows.min() >= 0 and rows.max() < n_rows)


def leaves_tile(tile: Any, wanted: NDArray[np.integer[Any]]) -> bool:
    """Whether these columns of a tile (csc_array) have entries or rows that it has not."""
    if pointers_leave(tile, wanted):
        return True
    starts = tile.indptr[wanted]
    counts = tile.indptr[wanted + 1] - starts
    before = np.append(0, np.cumsum(counts))
    a = 0
    while a < len(wanted):
        b = max(int(np.searchsorted(before, before[a] + _BLOCK, side="right")) - 1, a + 1)
        at = np.arange(before[a], before[b]) + np.repeat(starts[a:b] - before[a:b], counts[a:b])
        if rows_leave(tile.indices[at], tile.shape[0]):
            return True
        a = b
    return False


def _identity_of(file: IO[bytes]) -> Identity:
    found = os.fstat(file.fileno())
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


@contextmanager
def _opened(path: Path, facts: FileFacts | None, is_known: bool = False) -> Iterator[tuple[IO[bytes], Identity]]:
    """The file, and which one it is; ``is_known``: it was there, and as large as ``facts`` say."""
    if facts is None and not is_known:
        raise _damaged(path, f"{META} does not list it")
    try:
        file = path.open("rb")
    except OSError as error:
        if is_known:
            raise _changed(path) from error
        raise _damaged(path, f"it is not there ({error.strerror})") from error
    with file:
        identity = _identity_of(file)
        if facts is not None and identity[2] != facts["bytes"]:
            if is_known:
                raise _changed(path)
            raise _damaged(path, f"it has {identity[2]:,} bytes, not {facts['bytes']:,}")
        yield file, identity


def _changed(path: Path) -> ValueError:
    return ValueError(
        f"{path} has changed since the store was opened, so that nothing can be said of what was computed from it; "
        f"open {path.parent.name} again once nobody writes to it"
    )


def _damaged(path: Path, how: str) -> ValueError:
    return ValueError(
        f"{path} is damaged: {how}. Copy it again from where the store was made, or delete the folder "
        f"{path.parent.name} and convert the data again"
    )
