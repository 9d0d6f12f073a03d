"""Matrices in files of their own (``.mtx``, ``.npy``), with the labels in another."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from blockgreedy.base.reading import explained, read_array
from blockgreedy.data.dataset import Dataset

if TYPE_CHECKING:
    from numpy.typing import NDArray


def read_mtx(path: Path, target: str | os.PathLike[str] | None, labelled: bool) -> Dataset:
    from scipy.io import mmread

    with explained(f"{path} cannot be read as MatrixMarket"):
        X: Any = mmread(path)
    if X.dtype.kind == "c":
        raise ValueError(f"{path} holds complex numbers; only real numbers are accepted")
    as_array: Any = sparse.csr_array if hasattr(X, "tocsr") else np.asarray
    return _with_labels(path, as_array(X, dtype=np.float64), target, labelled)


def read_npy(path: Path, target: str | os.PathLike[str] | None, labelled: bool) -> Dataset:
    X = _read_array(path)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(f"{path} must hold a matrix of numbers, got {X.dtype} of shape {X.shape}")
    return _with_labels(path, X if X.dtype.kind == "f" else X.astype(np.float64), target, labelled)


def _read_array(path: Path) -> NDArray[Any]:
    with explained(f"{path} cannot be read as .npy"), path.open("rb") as file:
        return read_array(file)


def _with_labels(path: Path, X: Any, target: str | os.PathLike[str] | None, labelled: bool) -> Dataset:
    if target is None:
        if labelled:
            raise ValueError(
                f"{path} holds a matrix without labels; name the file of the labels (.npy, or text) with target=…"
            )
        return Dataset.of_file(path, X, np.zeros(X.shape[0]), None, labelled=False)
    return Dataset.of_file(path, X, _read_labels(Path(target)), None)


def _read_labels(path: Path) -> NDArray[Any]:
    if not path.is_file():
        raise FileNotFoundError(f"target must name an existing file of labels, got {str(path)!r}")
    if path.suffix == ".npy":
        return _read_array(path)
    try:
        lines = path.read_text().splitlines()
        return np.array([float(line) for line in lines if line.strip()])
    except ValueError as error:
        raise ValueError(f"{path}, a file of labels, must hold one number per line: {error}") from error
