"""What is to be converted → a RowSource."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from blockgreedy.data.cache import state_of
from blockgreedy.data.dataset import Dataset
from blockgreedy.data.formats import NPZ, SVMLIGHT, TABLES, DataFile, data_file
from blockgreedy.data.loading import check_options, load
from blockgreedy.data.matrix_batches import MatrixRows
from blockgreedy.data.npz_batches import NpzRows, is_rows
from blockgreedy.data.row_batches import RowSource
from blockgreedy.data.svmlight_batches import SvmlightRows
from blockgreedy.data.table_batches import TableRows
from blockgreedy.data.treatment import TREATMENTS, Treatment

_OPTIONS = ("target", *TREATMENTS, "encoding", "labelled", "index_base", "n_features", "allow_unterminated")


def row_source(source: Any, *, dtype: Any, n_threads: int | None, **options: Any) -> RowSource:
    """``options`` are those of ``load``."""
    unknown = [name for name in options if name not in _OPTIONS]
    if unknown:
        raise TypeError(f"{unknown[0]!r} is no option of convert; accepted are {', '.join(_OPTIONS)}")
    if isinstance(source, Dataset):
        given = [name for name, value in options.items() if value is not None]
        if given:
            raise ValueError(f"{given[0]}={options[given[0]]!r} is for files only")
        return MatrixRows(source, dtype)
    files = [data_file(path) for path in _paths(source)]
    for file in files:
        check_options(file.path, **options)
        if not (file.path.is_dir() if file.format.is_folder else file.path.is_file()):
            raise FileNotFoundError(f"there is no file {str(file.path)!r}")
    kind = _one_kind(files)
    if kind is SVMLIGHT:
        own = {"index_base": "auto", "n_features": None, "allow_unterminated": False}
        own |= {name: value for name, value in options.items() if name in own}
        pairs = [(file.path, file.compression) for file in files]
        return SvmlightRows(pairs, dtype=dtype or np.float64, n_threads=n_threads, **own)  # type: ignore[arg-type]
    if kind is TABLES:
        target = None if options.get("target") is None else os.fspath(options["target"])
        treatment = Treatment.of(**{name: options[name] for name in TREATMENTS if name in options})
        return TableRows(
            files, target=target, treatment=treatment, encoding=options.get("encoding"),
            labelled=options.get("labelled", True), dtype=dtype or np.float64, n_threads=n_threads,
        )  # fmt: skip
    if len(files) > 1:
        raise ValueError(f"several files of {kind.name} cannot become one store; svmlight text and tables can")
    if kind is NPZ and is_rows(files[0].path):
        return NpzRows(files[0].path, dtype)
    dataset = load(files[0].path, dtype=dtype, n_threads=n_threads, **options)
    path = files[0].path
    return MatrixRows(dataset, dtype, [[os.path.abspath(path), *state_of(path)]])


def _paths(source: Any) -> list[Path]:
    if not isinstance(source, (str, os.PathLike)) and isinstance(source, Iterable):
        found = [path for part in source for path in _paths(part)]
        if not found:
            raise ValueError("source names no files")
        return found
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(
            f"source must be a file, a pattern, a list of files or a Dataset, got {type(source).__name__}"
        )
    text = os.fspath(source)
    if not Path(text).exists() and any(letter in text for letter in "*?["):
        matching = sorted(glob.glob(text))
        if not matching:
            raise FileNotFoundError(f"no file matches {text!r}")
        return [Path(path) for path in matching]
    return [Path(text)]


def _one_kind(files: list[DataFile]) -> Any:
    for file in files:
        if file.format is not files[0].format:
            raise ValueError(
                f"all files of a store must be of one kind: {files[0].path} is of {files[0].format.name}, "
                f"{file.path} of {file.format.name}"
            )
    return files[0].format
