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
    if not path.is_file():
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
