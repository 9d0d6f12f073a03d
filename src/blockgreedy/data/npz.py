"""``.npz`` files: scipy's sparse format with ``y`` and optional ``feature_names`` beside the matrix."""

from __future__ import annotations

import os
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from blockgreedy.base.files import replacing
from blockgreedy.data.dataset import Dataset

if TYPE_CHECKING:
    from numpy.typing import NDArray


BROKEN = (ValueError, OSError, EOFError, KeyError, NotImplementedError, zipfile.BadZipFile, zlib.error)


def read_npz(path: Path) -> Dataset:
    with path.open("rb") as file:  # NumPy leaves broken files open
        return _read(path, file)


def _read(path: Path, file: Any) -> Dataset:
    try:
        archive = np.load(file, allow_pickle=False)
    except BROKEN as error:
        raise ValueError(f"{path} is not an .npz file: {error}") from error
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise ValueError(
            f"{path} holds a single array; needed is an .npz file with a sparse matrix and an array y of labels"
        )
    with archive:
        if not {"format", "shape", "data"} <= set(archive.files):
            if "header" in archive.files:
                raise ValueError(f"{path} holds a model, not data; use it with blockgreedy predict or report")
            found = ", ".join(archive.files) or "nothing"
            raise ValueError(f"{path} holds no sparse matrix as scipy.sparse.save_npz writes it; it holds {found}")
        if "y" not in archive:
            raise ValueError(f"{path} holds a matrix but no labels: add an array named y, one number per row")
        try:
            y = archive["y"]
            names = archive.get("feature_names")
            file.seek(0)
            X: Any = sparse.load_npz(file)
            X = (sparse.csc_array if X.format == "csc" else sparse.csr_array)(X)
            X.check_format(full_check=True)  # scipy's products trust indices
        except BROKEN as error:
            raise ValueError(f"{path} cannot be read as a sparse matrix with labels: {error}") from error
    return Dataset.of_file(path, X, y, names)


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
