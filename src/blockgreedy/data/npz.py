"""``.npz`` files: scipy's sparse format with ``y`` and optional ``feature_names`` beside the matrix."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from blockgreedy.base.files import replacing
from blockgreedy.base.reading import Archive, archive_of, explained
from blockgreedy.data.dataset import Dataset

if TYPE_CHECKING:
    from numpy.typing import NDArray


_ARRAY_FILE = b"\x93NUMPY"  # how an .npy file begins
_ARRAYS: dict[str, tuple[str, ...]] = dict.fromkeys(("csr", "csc", "bsr"), ("indices", "indptr"))
_ARRAYS |= {"coo": ("row", "col"), "dia": ("offsets",)}
_FORMS: dict[str, Any] = {"csr": sparse.csr_array, "csc": sparse.csc_array, "bsr": sparse.bsr_array}


def read_npz(path: Path) -> Dataset:
    with path.open("rb") as file:
        if file.read(len(_ARRAY_FILE)) == _ARRAY_FILE:
            raise ValueError(
                f"{path} holds a single array; needed is an .npz file with a sparse matrix and an array y of labels"
            )
        with archive_of(file, f"{path} is not an .npz file") as archive:
            return _read(path, archive)


def _read(path: Path, archive: Archive) -> Dataset:
    if not {"format", "shape", "data"} <= set(archive.names):
        if "header" in archive:
            raise ValueError(f"{path} holds a model, not data; use it with blockgreedy predict or report")
        found = ", ".join(archive.names) or "nothing"
        raise ValueError(f"{path} holds no sparse matrix as scipy.sparse.save_npz writes it; it holds {found}")
    if "y" not in archive:
        raise ValueError(f"{path} holds a matrix but no labels: add an array named y, one number per row")
    with explained(f"{path} cannot be read as a sparse matrix with labels"):
        y = archive["y"]
        names = archive.get("feature_names")
        X = _matrix_of(archive)
        X = (sparse.csc_array if X.format == "csc" else sparse.csr_array)(X)
        X.check_format(full_check=True)  # scipy's products trust indices
    return Dataset.of_file(path, X, y, names)


def format_of(archive: Archive) -> str:
    """Which of scipy's formats the matrix has."""
    found: Any = archive["format"].item()
    return found.decode("ascii") if isinstance(found, bytes) else str(found)


def _matrix_of(archive: Archive) -> Any:
    """What ``scipy.sparse.save_npz`` has written."""
    form, data, shape = format_of(archive), archive["data"], tuple(archive["shape"].tolist())
    if form not in _ARRAYS:
        raise ValueError(f"its format {form!r} is none of {', '.join(_ARRAYS)}")
    parts = tuple(archive[name] for name in _ARRAYS[form])
    if form == "coo":
        return sparse.coo_array((data, parts), shape=shape)
    if form == "dia":
        return sparse.dia_array((data, *parts), shape=shape)
    return _FORMS[form]((data, *parts), shape=shape)


def save(dataset: Dataset, path: str | os.PathLike[str], *, compressed: bool = False) -> None:
    """Write a dataset as an ``.npz`` file that ``load``, ``scipy.sparse.load_npz`` and ``numpy.load`` read.

    The file is written under a temporary name and then renamed, so it is never incomplete.

    Parameters
    ----------
    dataset : Dataset
        What to write.
    path : str or Path
        A file name that ends in ``.npz``.
    compressed : bool, default False
        Make a smaller file, which takes several times as long.
    """
    write_npz(dataset, Path(path), {}, compressed)


def write_npz(dataset: Dataset, path: Path, more: dict[str, NDArray[Any]], compressed: bool = False) -> None:
    """With other arrays beside what a dataset has."""
    X = sparse.csr_array(dataset.X) if isinstance(dataset.X, np.ndarray) else dataset.X
    extra = {"y": dataset.y, **more}
    if dataset.feature_names is not None:
        extra["feature_names"] = np.asarray(dataset.feature_names, dtype=np.str_)
    with replacing(path, ".npz") as file:
        sparse.save_npz(file, X, compressed=compressed)
        with zipfile.ZipFile(file, "a") as archive:
            for key, array in extra.items():
                with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
