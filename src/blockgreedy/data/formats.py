"""The formats of data files: ``READERS`` has an entry for each, with its suffixes, its reader and its options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from blockgreedy.data.arrays import read_mtx, read_npy
from blockgreedy.data.dataset import Dataset
from blockgreedy.data.encoding import Encoding
from blockgreedy.data.npz import read_npz
from blockgreedy.data.store import STORE_SUFFIX, Store
from blockgreedy.data.svmlight import read_svmlight
from blockgreedy.data.tables import open_table, table_to_dataset
from blockgreedy.data.treatment import TREATMENTS, Treatment

SVMLIGHT_SUFFIXES = (".svm", ".svmlight", ".libsvm", ".txt")
COMPRESSION_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
TABLE_SUFFIXES = (".parquet", ".arrow", ".feather", ".csv")


@dataclass(frozen=True)
class Format:
    """One format of data files.

    ``options`` are the keyword arguments of ``load`` that ``read`` takes; ``load`` refuses the others, but for those
    that every format has (``cache``, ``dtype``, ``labelled``, ``n_threads``).
    """

    name: str  # in messages
    suffixes: tuple[str, ...]
    read: Callable[..., Dataset]  # called with a DataFile and the options by name
    options: tuple[str, ...] = ()
    compressible: tuple[str, ...] = ()  # the suffixes after which one of COMPRESSION_SUFFIXES may stand
    target_is_file: bool = False  # ``target`` names a file of labels, not a column
    may_cache: bool = True  # False where a binary copy would be read no faster
    is_folder: bool = False


class DataFile(NamedTuple):
    """A data file, by what its name says: of "a.svm.gz" the suffix is ".svm" and the compression ".gz"."""

    path: Path
    suffix: str
    compression: str
    format: Format


def _read_svmlight(file: DataFile, dtype: Any, **options: Any) -> Dataset:
    return read_svmlight(file.path, file.compression, dtype=_or_float64(dtype), **options)


def _read_table(
    file: DataFile, *, target: Any, encoding: Encoding | None, labelled: bool, dtype: Any, n_threads: int | None,
    **treatment: Any,
) -> Dataset:  # fmt: skip
    shared: dict[str, Any] = {"encoding": encoding, "labelled": labelled, "n_threads": n_threads}
    columns = Treatment.of(**treatment)
    table = open_table(file.path, file.suffix, file.compression, target=target, treatment=columns, **shared)
    return table_to_dataset(table, dtype=_or_float64(dtype), **shared)


def _or_float64(dtype: Any) -> Any:
    """The type of values that are read from text."""
    return np.float64 if dtype is None else dtype


NPZ = Format(".npz", (".npz",), lambda file: read_npz(file.path), may_cache=False)
SVMLIGHT = Format(
    "svmlight text",
    SVMLIGHT_SUFFIXES,
    _read_svmlight,
    ("index_base", "n_features", "allow_unterminated", "dtype", "n_threads"),
    compressible=SVMLIGHT_SUFFIXES,
)
TABLES = Format(
    "tables",
    TABLE_SUFFIXES,
    _read_table,
    ("target", *TREATMENTS, "encoding", "labelled", "dtype", "n_threads"),
    compressible=(".csv",),
)
MTX = Format(
    ".mtx", (".mtx",), lambda file, **of: read_mtx(file.path, **of), ("target", "labelled"), target_is_file=True
)
NPY = Format(
    ".npy", (".npy",), lambda file, **of: read_npy(file.path, **of), ("target", "labelled"), target_is_file=True
)
STORE = Format("stores", (STORE_SUFFIX,), lambda file: Store(file.path).dataset(), may_cache=False, is_folder=True)
READERS = (NPZ, SVMLIGHT, TABLES, MTX, NPY, STORE)


def data_file(path: str | Path) -> DataFile:
    """What the name of a file says of it, or an error that says what is accepted."""
    path = Path(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSION_SUFFIXES else ""
    suffix = suffixes[-1] if suffixes else ""
    for format in READERS:
        if suffix in (format.compressible if compression else format.suffixes):
            return DataFile(path, suffix, compression, format)
    raise ValueError(f"path must end in {_accepted()}; got {str(path)!r}")


def _accepted() -> str:
    kinds, compressible = [], []
    for format in READERS:
        note = "" if format.name in format.suffixes else f" ({format.name})"
        kinds.append(", ".join(format.suffixes) + note)
        if format.compressible:
            is_all = format.compressible == format.suffixes
            compressible.append(format.name if is_all else ", ".join(format.compressible))
    return f"{', '.join(kinds)}; {' and '.join(compressible)} also with {', '.join(COMPRESSION_SUFFIXES)} after it"


def readers_of(option: str) -> list[str]:
    """The names of the formats that have an option."""
    return [format.name for format in READERS if option in format.options]
