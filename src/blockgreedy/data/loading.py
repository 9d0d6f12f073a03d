"""A file on disk → a Dataset; the name's ending says how."""

from __future__ import annotations

import os
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from blockgreedy.base.validate import float_type
from blockgreedy.data.arrow import read_schema
from blockgreedy.data.cache import cached, state_of
from blockgreedy.data.dataset import Dataset
from blockgreedy.data.encoding import Encoding
from blockgreedy.data.formats import TABLES, data_file, readers_of
from blockgreedy.data.svmlight import IndexBase
from blockgreedy.data.tables import plan_table
from blockgreedy.data.treatment import TREATMENTS, Crosses, Fill, Names, Treatment


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
    """Read a dataset from a file, whose suffix determines the format.

    ``.npz``: scipy's sparse format with an array ``y`` and optionally ``feature_names`` in the same file. ``.svm``,
    ``.svmlight``, ``.libsvm``, ``.txt``: svmlight text. ``.parquet``, ``.arrow``, ``.feather``, ``.csv``: a table;
    text is one-hot encoded. ``.mtx`` (MatrixMarket), ``.npy`` (dense): a matrix, with the labels in another file.
    ``.store``: a folder that ``data.convert`` has made, if it fits in memory. Text may be compressed (``.gz``,
    ``.bz2``, ``.xz``, ``.zst``). The page "Data formats" says more.

    Parameters
    ----------
    path : str or Path
        The file.
    target : str or Path, optional
        Tables: the column of labels (default: the one named y, label, target or class); matrices: a file of labels,
        ``.npy`` or text with one number per line.
    categorical, drop : str or list of str, optional
        Tables: columns of numbers that are categories, and columns to leave out: ``"site,hour"``, a list, patterns
        such as ``"site_*"``; ``categorical="all"``: all columns of text, booleans or whole numbers.
    fill : float, str or dict, optional
        Tables: replaces missing numbers: a number, ``"mean"``, ``"median"``, or by column: ``"price=0,age=median"``.
    cross : str or list of str, optional
        Tables: a feature for each combination of categories: ``"site,hour"``, or ``"all:2"`` for all pairs.
    min_count : int, default 1
        Tables: categories and combinations that occur in fewer rows have no feature.
    encoding : Encoding, optional
        Tables: the ``Dataset.encoding`` of an earlier table, to encode this one in the same way.
    labelled : bool, default True
        False accepts a table or matrix without labels; ``y`` is then all 0.
    dtype : float32 or float64, optional
        Type of the values (default: float64 for text and tables, else the type in the file).
    index_base, n_features, allow_unterminated : 0, 1 or "auto"; int, optional; bool
        svmlight: the first index, the number of columns, and whether the last line may lack its newline.
    cache : bool, default False
        Write a binary copy, ``NAME.cache.npz``, and read it as long as file and options are the same.
    n_threads : int, optional
        Default: all cores that the process may use.
    """
    options: dict[str, Any] = {
        "target": target, "categorical": categorical, "drop": drop, "fill": fill, "cross": cross,
        "min_count": min_count, "encoding": encoding, "index_base": index_base, "n_features": n_features,
        "allow_unterminated": allow_unterminated, "labelled": labelled, "dtype": dtype, "n_threads": n_threads,
    }  # fmt: skip
    return _load(Path(path), cache, options)


# Options that any file accepts: those that not every reader needs have no meaning there.
_FOR_ALL = ("labelled", "dtype", "cache", "n_threads", "encoding")
_DEFAULTS = {name: parameter.default for name, parameter in signature(load).parameters.items()}


def _load(path: Path, cache: bool, options: dict[str, Any]) -> Dataset:
    file = data_file(path)
    check_options(path, **options)
    treatment = Treatment.of(**{name: options[name] for name in TREATMENTS})
    if not path.is_file() and not file.format.is_folder:
        raise FileNotFoundError(f"there is no file {str(path)!r}")
    dtype, target = float_type("dtype", options["dtype"], may_be_none=True), options["target"]

    def read() -> Dataset:
        return file.format.read(file, **{name: options[name] for name in file.format.options})

    if not cache or not file.format.may_cache or options["encoding"] is not None:
        dataset = read()
    else:
        asked = {name: options[name] for name in ("labelled", "index_base", "n_features", "allow_unterminated")}
        asked |= {"target": None if target is None else os.fspath(target), **treatment.to_json()}
        asked["dtype"] = np.dtype(np.float64 if dtype is None else dtype).name
        if target is not None and file.format.target_is_file and Path(target).is_file():
            asked["labels"] = state_of(Path(target))
        dataset = cached(path, asked, read)
    return dataset if dtype is None else dataset.astype(dtype)


def check_options(path: Path, **options: Any) -> None:
    """Refuses options of ``load`` that this kind of file does not have: reading over them would hide a mistake."""
    file = data_file(path)
    encoding = options.get("encoding")
    for name, value in options.items():
        is_empty = isinstance(value, (str, list, tuple)) and not value
        if name in _FOR_ALL or is_empty or value == _DEFAULTS[name]:
            continue
        if name not in file.format.options:
            formats = ", ".join(readers_of(name))
            raise ValueError(f"{name}={value!r} is for {formats} only; it does not apply to {str(path)!r}")
        if encoding is not None and name in TREATMENTS:
            raise ValueError(
                f"{name}={value!r} cannot be combined with an encoding, such as that of a saved model, which already "
                "determines how columns are read"
            )


def check_columns(path: Path, *, target: str | None = None, labelled: bool = True, **asked: Any) -> None:
    """Refuses names that are no columns of a table, by its names and types alone: the rows are not read.

    ``asked`` are the options of ``Treatment``. A file that cannot be read is left to whoever reads it.
    """
    file = data_file(path)
    treatment = Treatment.of(**asked)
    if file.format is not TABLES or not path.is_file():
        return
    try:
        read_schema(path, file.suffix, file.compression)
    except ValueError:
        return
    plan_table(path, file.suffix, file.compression, target, treatment, labelled)
