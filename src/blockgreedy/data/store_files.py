"""The files of a store: their names, and arrays in them with checksums."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypedDict

import numpy as np

from blockgreedy.base.files import replacing

if TYPE_CHECKING:
    from numpy.typing import NDArray

META, CONVERSION = "meta.json", "conversion.json"
PARTS = ("indptr", "indices", "data")
TYPES: dict[str, Any] = {"indptr": np.int64, "indices": np.int32}
HEADER = 128  # bytes before the entries, in files that are made here
_BLOCK = 1 << 22  # bytes


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
    _check_size(path, facts)
    try:
        # an array without entries cannot be mapped
        array = np.load(path, mmap_mode="r" if np.prod(shape) else None, allow_pickle=False)
    except Exception as error:  # numpy has a parser of Python read a header, which raises what it likes
        raise _damaged(path, f"it cannot be read as an array ({error})") from error
    if array.dtype != np.dtype(dtype) or array.shape != shape:
        raise _damaged(path, f"it holds {array.dtype} of shape {array.shape}, not {np.dtype(dtype)} of shape {shape}")
    plain: NDArray[Any] = array.view(np.ndarray)
    plain.flags.writeable = False
    return plain


def check_file(path: Path, facts: FileFacts) -> None:
    """Reads the file and compares its checksum."""
    _check_size(path, facts)
    found = 0
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                found = zlib.crc32(block, found)
    except OSError as error:
        raise _damaged(path, f"it cannot be read ({error.strerror})") from error
    if found != facts["crc32"]:
        raise _damaged(path, f"its checksum is {found:08x}, not {facts['crc32']:08x}")


def leaves_tile(tile: Any, wanted: NDArray[np.integer[Any]]) -> bool:
    """Whether these columns of a tile (csc_array) have entries or rows that it has not; the core does not ask."""
    starts, ends, n_rows = tile.indptr[wanted], tile.indptr[wanted + 1], tile.shape[0]
    if not np.all((starts >= 0) & (starts <= ends) & (ends <= len(tile.indices))):
        return True
    counts = ends - starts
    before = np.append(0, np.cumsum(counts))
    a = 0
    while a < len(wanted):
        b = max(int(np.searchsorted(before, before[a] + _BLOCK, side="right")) - 1, a + 1)
        at = np.arange(before[a], before[b]) + np.repeat(starts[a:b] - before[a:b], counts[a:b])
        rows = tile.indices[at]
        if len(rows) and not (rows.min() >= 0 and rows.max() < n_rows):
            return True
        a = b
    return False


def _check_size(path: Path, facts: FileFacts | None) -> None:
    if facts is None:
        raise _damaged(path, f"{META} does not list it")
    try:
        size = path.stat().st_size
    except OSError as error:
        raise _damaged(path, f"it is not there ({error.strerror})") from error
    if size != facts["bytes"]:
        raise _damaged(path, f"it has {size:,} bytes, not {facts['bytes']:,}")


def _damaged(path: Path, how: str) -> ValueError:
    return ValueError(
        f"{path} is damaged: {how}. Copy it again from where the store was made, or delete the folder "
        f"{path.parent.name} and convert the data again"
    )
