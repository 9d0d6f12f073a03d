"""Binary copies of data files, kept beside them: ``NAME.cache.npz``."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from blockgreedy.base.reading import archive_of, parsed_json
from blockgreedy.data.dataset import Dataset
from blockgreedy.data.encoding import Encoding
from blockgreedy.data.npz import read_npz, write_npz

CACHE_SUFFIX = ".cache.npz"
_CACHE_VERSION = 2  # raised when a file would be read differently than before


def cache_of(path: Path) -> Path:
    """Where ``cache=True`` keeps what was read."""
    return path.with_name(path.name + CACHE_SUFFIX)


def state_of(path: Path) -> list[int]:
    """Size and time of the last change."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def cached(path: Path, asked: dict[str, Any], read: Callable[[], Dataset]) -> Dataset:
    """The copy, if it was made of this very file with the same options; else what ``read`` returns, copied."""
    copy = cache_of(path)
    made_of = json.dumps({"version": _CACHE_VERSION, "file": state_of(path), **asked}, sort_keys=True)
    if copy.is_file():
        try:
            found = _read_copy(copy, made_of)
        except Exception:  # a changed byte can raise anything; whatever it is, the source is there to be read again
            found = None
        if found is not None:
            return found
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
        write_npz(dataset, copy, {"about": np.array(json.dumps(about))})
    except OSError as error:  # a read-only folder is no reason to throw away what was read
        warnings.warn(f"{copy} cannot be written: {error}", stacklevel=4)
    return dataset


def _read_copy(copy: Path, made_of: str) -> Dataset | None:
    """None if it was made of something else, or is damaged."""
    with archive_of(copy) as archive:
        about = parsed_json(str(archive["about"]))
    if about["made_of"] != made_of:
        return None
    found = read_npz(copy)
    if about["named"] != (found.feature_names is not None):  # a directory entry can be skipped unnoticed
        return None
    encoding = Encoding.of_json(about["encoding"])
    own = {name: about[name] for name in ("index_base", "labelled")}
    return replace(found, encoding=encoding, code_columns=tuple(about["code_columns"]), **own)
