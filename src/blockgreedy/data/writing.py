"""Datasets as svmlight text: every number in the fewest digits that read back as the same float64."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse

from blockgreedy.base.files import replacing
from blockgreedy.data.formats import COMPRESSION_SUFFIXES, NPZ, SVMLIGHT, SVMLIGHT_SUFFIXES, data_file
from blockgreedy.data.npz import save

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from blockgreedy.data.dataset import Dataset

_CHUNK = 1 << 18  # entries turned into text at a time
WRITTEN = f".npz, or {', '.join(SVMLIGHT_SUFFIXES)} with or without {', '.join(COMPRESSION_SUFFIXES)}"


def write(dataset: Dataset, path: str | os.PathLike[str], *, index_base: Literal[0, 1] = 1) -> list[str]:
    """Write ``dataset`` to ``path`` in the format of its ending: ``.npz``, or svmlight text, also compressed.

    Returns remarks on what the format does not store: svmlight text has no feature names and no number of features.
    The file is written under a temporary name and then renamed.
    """
    path = Path(path)
    check_writable(path, index_base)
    if data_file(path).format is NPZ:
        save(dataset, path)
        return []
    return write_svmlight(dataset, path, index_base)


def check_writable(path: Path, index_base: int = 1) -> None:
    """Before the work, not after it: the ending, the folder and the base."""
    if index_base not in (0, 1):
        raise ValueError(f"index_base={index_base!r} must be 0 or 1")
    try:
        is_written = data_file(path).format in (NPZ, SVMLIGHT)
    except ValueError:
        is_written = False
    if not is_written:
        raise ValueError(f"path must end in {WRITTEN}; got {str(path)!r}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"path must lie in an existing folder, got {str(path)!r}")


def write_svmlight(dataset: Dataset, path: Path, index_base: Literal[0, 1] = 1) -> list[str]:
    """Rows in order, ``label index:value …``; returns remarks, as ``write`` does."""
    labels = _numbers("y", dataset.y)
    rows: Any = sparse.csr_array(dataset.X)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    _numbers("X", rows.data)
    compression = data_file(path).compression
    with replacing(path) as plain, _compressing(plain, compression) as file:
        for text in _lines(rows, labels, index_base):
            file.write(text.encode("ascii"))
    return _remarks(dataset, rows, index_base)


def _numbers(name: str, values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{name} holds text ({str(values[0])!r}); svmlight files take numbers only, .npz keeps text")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} holds NaN or infinite values; svmlight files take finite numbers only")
    return values


def _lines(rows: Any, labels: NDArray[Any], index_base: int) -> Iterator[str]:
    """Some rows at a time, as text."""
    indptr = rows.indptr
    begin = 0
    while begin < len(labels):
        end = int(np.searchsorted(indptr, indptr[begin] + _CHUNK, side="right")) - 1
        end = min(max(end, begin + 1), len(labels), begin + _CHUNK)
        low, high = int(indptr[begin]), int(indptr[end])
        entries = [
            f"{index}:{value}"
            for index, value in zip(
                (rows.indices[low:high] + index_base).tolist(), _shortest(rows.data[low:high]), strict=True
            )
        ]
        bounds = (indptr[begin : end + 1] - low).tolist()
        of_rows = zip(_shortest(labels[begin:end]), bounds[:-1], bounds[1:], strict=True)
        yield "".join(f"{' '.join([label, *entries[first:last]])}\n" for label, first, last in of_rows)
        begin = end


def _shortest(values: NDArray[Any]) -> list[str]:
    """Python's repr, which is the shortest exact one, without the .0 of whole numbers; lists have it in one call."""
    if not len(values):
        return []
    numbers = values.astype(np.int8 if values.dtype == bool else values.dtype).tolist()
    return f"{repr(numbers)[1:-1]}, ".replace(".0, ", ", ")[:-2].split(", ")


@contextmanager
def _compressing(plain: IO[bytes], compression: str) -> Iterator[Any]:
    if compression == ".zst":
        try:
            import zstandard
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                "writing .zst needs the package zstandard: pip install 'blockgreedy[data]'"
            ) from None
        with zstandard.ZstdCompressor().stream_writer(plain, closefd=False) as file:
            yield file
        return
    openers: dict[str, Any] = {"": nullcontext, ".gz": _gzip, ".bz2": bz2.BZ2File, ".xz": lzma.LZMAFile}
    with openers[compression](plain, *(("wb",) if compression else ())) as file:
        yield file


def _gzip(file: IO[bytes], mode: str) -> gzip.GzipFile:
    """Without the name and the time that its header can hold: the same data give the same bits."""
    return gzip.GzipFile("", mode, fileobj=file, mtime=0)


def _remarks(dataset: Dataset, rows: Any, index_base: int) -> list[str]:
    remarks = []
    n_features = rows.shape[1]
    last = int(rows.indices.max()) if rows.nnz else -1
    if last + 1 < n_features:
        remarks.append(
            f"the last {n_features - 1 - last:,} columns are empty, and svmlight text does not show that: read it "
            f"with n_features={n_features}"
        )
    if index_base == 0 and not (rows.nnz and rows.indices.min() == 0):
        remarks.append(
            "feature 0 occurs in no row, so that the file does not show that indices begin at 0: read it with "
            "index_base=0"
        )
    if dataset.feature_names is not None:
        remarks.append("svmlight text does not keep the names of the features")
    return remarks
