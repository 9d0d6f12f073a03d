"""A file on disk → a Dataset; the name's ending says how."""

from __future__ import annotations

import json
import math
import os
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from blockgreedy.base.validate import float_type
from blockgreedy.data.arrays import read_mtx, read_npy
from blockgreedy.data.arrow import read_schema
from blockgreedy.data.dataset import Dataset
from blockgreedy.data.encoding import Encoding
from blockgreedy.data.npz import read_npz, write_npz
from blockgreedy.data.svmlight import IndexBase, read_svmlight
from blockgreedy.data.tables import open_table, plan_table, table_to_dataset
from blockgreedy.data.treatment import Crosses, Fill, Names, Treatment

SVMLIGHT_SUFFIXES = (".svm", ".svmlight", ".libsvm", ".txt")
COMPRESSION_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
TABLE_SUFFIXES = (".parquet", ".arrow", ".feather", ".csv")
CACHE_SUFFIX = ".cache.npz"
_CACHE_VERSION = 2  # raised when a file would be read differently than before


def load(
    path: str | os.PathLike[str],
    *,
    target: str | os.PathLike[str] | None = None,
    categorical: Names = None,
    drop: Names = None,
    fill: Fill = None,
    cross: Crosses = None,
    min_count: int = 1,
    encoding: Encoding | None = None,
    labelled: bool = True,
    dtype: Any = None,
    index_base: IndexBase = "auto",
    n_features: int | None = None,
    allow_unterminated: bool = False,
    cache: bool = False,
    n_threads: int | None = None,
) -> Dataset:
    """Read a dataset from a file, whose extension determines the format.

    ``.npz``: scipy's sparse format with an array ``y`` and optionally ``feature_names`` in the same file.
    ``.svm``, ``.svmlight``, ``.libsvm``, ``.txt``: svmlight text, also compressed (``.gz``, ``.bz2``, ``.xz``,
    ``.zst``), read by all threads.
    ``.parquet``, ``.arrow``, ``.feather``, ``.csv`` (``.csv.gz`` …): a table. Numbers and booleans are a feature per
    column; columns of text (also dictionary-encoded text) are one-hot encoded as a sparse matrix, a feature
    ``column=value`` per value. A missing category (in a CSV: an empty field, NA …) is encoded as all zeros; a missing
    number is an error unless ``fill`` is given.
    ``.mtx`` (MatrixMarket) and ``.npy`` (dense): a matrix, with the labels in a separate file.

    Parameters
    ----------
    target : tables: the column of labels (default: the one named y, label, target or class);
        ``.mtx`` and ``.npy``: a file of labels, ``.npy`` or text with one number per line.
    categorical : tables: columns of numbers to encode as categories too: a list, or text such as ``"site,hour"``.
        A pattern such as ``"site_*"`` matches several columns; ``"all"`` means all columns whose values are text,
        booleans or whole numbers.
    drop : tables: columns to leave out, given in the same way.
    fill : tables: replaces missing numbers: a number, ``"mean"`` or ``"median"`` of the column, or different values
        for columns: ``"price=0,age=median"`` or a dict. The encoding stores the values.
    cross : tables: crosses of columns of categories, with a feature for each combination that occurs:
        ``"site,hour"``, a list of these, or ``"all:2"`` (``"all:3"``) for all pairs (triples) of such columns.
    min_count : tables: categories and combinations that occur in fewer rows have no feature.
    encoding : tables: the ``Dataset.encoding`` of an earlier table, to encode this one in the same way; categories
        and combinations without a feature in it are encoded as all zeros.
    labelled : False accepts a table or matrix without labels; ``y`` is then all 0.
    dtype : type of the values, float64 or float32. Default: float64 for text and tables, the type in the file for
        ``.npz``, ``.mtx`` and ``.npy``.
    index_base, n_features, allow_unterminated : svmlight: whether indices start at 0 or 1 ("auto": at 1 unless 0
        occurs), the number of columns, and whether a last line without newline is accepted (the file may be cut off).
    cache : write a binary copy beside the file, ``NAME.cache.npz``, and read this copy as long as file and options
        are the same. Not for dense matrices and not with ``encoding``.
    """
    path = Path(path)
    kind, compression = kind_of(path)
    check_options(
        path, target, categorical, drop, fill, cross, min_count, encoding, index_base, n_features, allow_unterminated
    )
    treatment = Treatment.of(categorical, drop, fill, cross, min_count)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}")
    float_type("dtype", dtype, may_be_none=True)
    text_dtype = np.float64 if dtype is None else dtype

    def read() -> Dataset:
        if kind in SVMLIGHT_SUFFIXES:
            return read_svmlight(
                path, compression, dtype=text_dtype, index_base=index_base, n_features=n_features,
                allow_unterminated=allow_unterminated, n_threads=n_threads,
            )  # fmt: skip
        if kind in TABLE_SUFFIXES:
            table = open_table(
                path, kind, compression, target=target, treatment=treatment, encoding=encoding, labelled=labelled,
                n_threads=n_threads,
            )  # fmt: skip
            return table_to_dataset(
                table, encoding=encoding, labelled=labelled, dtype=text_dtype, n_threads=n_threads
            )
        if kind == ".npz":
            return read_npz(path)
        read_matrix = read_mtx if kind == ".mtx" else read_npy
        return read_matrix(path, target, labelled)

    if not cache or kind == ".npz":
        dataset = read()
    else:
        asked: dict[str, Any] = {
            "target": None if target is None else os.fspath(target), **treatment.to_json(),
            "labelled": labelled, "dtype": np.dtype(text_dtype).name, "index_base": index_base,
            "n_features": n_features, "allow_unterminated": allow_unterminated,
        }  # fmt: skip
        if target is not None and kind in (".mtx", ".npy") and Path(target).is_file():
            asked["labels"] = _state(Path(target))
        dataset = _cached(path, asked, read) if encoding is None else read()
    return dataset if dtype is None else dataset.astype(dtype)


def kind_of(path: Path) -> tuple[str, str]:
    """(".svm", ".gz") of "a.svm.gz", or an error that says what is accepted."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSION_SUFFIXES else ""
    kind = suffixes[-1] if suffixes else ""
    plain = (*TABLE_SUFFIXES[:-1], ".npz", ".mtx", ".npy")
    if kind in (*SVMLIGHT_SUFFIXES, ".csv") or (kind in plain and not compression):
        return kind, compression
    raise ValueError(
        f"path must end in .npz (scipy sparse), {', '.join(SVMLIGHT_SUFFIXES)} (svmlight), "
        f"{', '.join(TABLE_SUFFIXES)} (tables), .mtx or .npy (matrices); svmlight and .csv also with "
        f"{', '.join(COMPRESSION_SUFFIXES)} after it; got {str(path)!r}"
    )


def check_options(
    path: Path,
    target: str | os.PathLike[str] | None = None,
    categorical: Names = None,
    drop: Names = None,
    fill: Fill = None,
    cross: Crosses = None,
    min_count: int = 1,
    encoding: Encoding | None = None,
    index_base: IndexBase = "auto",
    n_features: int | None = None,
    allow_unterminated: bool = False,
) -> None:
    """Refuses options that this kind of file does not have: reading over them would hide a mistake."""
    kind, _ = kind_of(path)
    text, tables = "svmlight text", "tables"
    owners = {
        **dict.fromkeys(SVMLIGHT_SUFFIXES, text), **dict.fromkeys(TABLE_SUFFIXES, tables),
        ".mtx": ".mtx", ".npy": ".npy", ".npz": ".npz",
    }  # fmt: skip
    given: tuple[tuple[str, Any, bool, tuple[str, ...]], ...] = (
        ("target", target, target is not None, (tables, ".mtx", ".npy")),
        ("categorical", categorical, bool(categorical), (tables,)),
        ("drop", drop, bool(drop), (tables,)),
        ("fill", fill, fill is not None, (tables,)),
        ("cross", cross, bool(cross), (tables,)),
        ("min_count", min_count, min_count != 1, (tables,)),
        ("index_base", index_base, index_base != "auto", (text,)),
        ("n_features", n_features, n_features is not None, (text,)),
        ("allow_unterminated", allow_unterminated, allow_unterminated, (text,)),
    )
    for name, value, is_given, kinds in given:
        if is_given and owners[kind] not in kinds:
            raise ValueError(f"{name}={value!r} is for {', '.join(kinds)} only; it does not apply to {str(path)!r}")
        if is_given and encoding is not None and name in ("categorical", "drop", "fill", "cross", "min_count"):
            raise ValueError(
                f"{name}={value!r} cannot be combined with an encoding, such as that of a saved model, which already "
                "determines how columns are read"
            )


def check_columns(path: Path, *, target: str | None = None, labelled: bool = True, **asked: Any) -> None:
    """Refuses names that are no columns of a table, by its names and types alone: the rows are not read.

    ``asked`` are the options of ``Treatment``. A file that cannot be read is left to whoever reads it.
    """
    kind, compression = kind_of(path)
    treatment = Treatment.of(**asked)
    if kind not in TABLE_SUFFIXES or not path.is_file():
        return
    try:
        read_schema(path, kind, compression)
    except ValueError:
        return
    plan_table(path, kind, compression, target, treatment, labelled)


def _cached(path: Path, asked: dict[str, Any], read: Callable[[], Dataset]) -> Dataset:
    """What is kept beside the file, if it was made of this very file in this very way; else it is made."""
    kept = cache_of(path)
    made_of = json.dumps({"version": _CACHE_VERSION, "file": _state(path), **asked}, sort_keys=True)
    if kept.is_file():
        try:
            with kept.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                about = json.loads(str(archive["about"]))
            if about["made_of"] == made_of and _are_complete(kept):
                found = read_npz(kept)
                if about["named"] == (found.feature_names is not None):  # a directory entry can be skipped unnoticed
                    encoding = Encoding.of_json(about["encoding"])
                    own = {name: about[name] for name in ("index_base", "labelled")}
                    return replace(found, encoding=encoding, code_columns=tuple(about["code_columns"]), **own)
        except Exception:  # a changed byte can raise anything; whatever it is, the source is there to be read again
            pass
    dataset = read()
    if isinstance(dataset.X, np.ndarray):  # an .npz file would make it sparse
        return dataset
    about = {
        "made_of": made_of,
        "index_base": dataset.index_base,
        "encoding": None if dataset.encoding is None else dataset.encoding.to_json(),
        "labelled": dataset.labelled,
        "code_columns": dataset.code_columns,
        "named": dataset.feature_names is not None,
    }
    try:
        write_npz(dataset, kept, {"about": np.array(json.dumps(about))})
    except OSError as error:  # a read-only folder is no reason to throw away what was read
        warnings.warn(f"{kept} cannot be written: {error}", stacklevel=3)
    return dataset


def _are_complete(kept: Path) -> bool:
    """Whether every array ends where its file in the archive ends.

    The archive's checksums are compared at the end of a file, so an array that a damaged header makes shorter would
    otherwise be read without one.
    """
    with zipfile.ZipFile(kept) as archive:
        for info in archive.infolist():
            with archive.open(info) as member:
                version = np.lib.format.read_magic(member)
                read_header = np.lib.format.read_array_header_1_0
                shape, _, dtype = (read_header if version == (1, 0) else np.lib.format.read_array_header_2_0)(member)
                if member.tell() + math.prod(shape) * dtype.itemsize != info.file_size:
                    return False
    return True


def cache_of(path: Path) -> Path:
    """Where ``cache=True`` keeps what was read."""
    return path.with_name(path.name + CACHE_SUFFIX)


def _state(path: Path) -> list[int]:
    """Size and time of the last change."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]
