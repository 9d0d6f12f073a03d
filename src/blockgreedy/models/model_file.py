"""The file of a model: a header and arrays, in ``.npz`` or ``.json``; docs/model-format.md describes them.

What is read is checked before it is believed, and what is written by the same rules, so that no file is written that
would be refused later. Of an archive only the arrays of a model are decompressed, and only where their sizes agree.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.base.files import replacing
from blockgreedy.base.names import CRITERIA
from blockgreedy.base.reading import archive_of, explained, parsed_json
from blockgreedy.models.quality import CURVES
from blockgreedy.problem.losses import LOSSES
from blockgreedy.solvers.trace import COLUMNS, WHOLE_COLUMNS

FORMAT, VERSION = "blockgreedy-model", 2
SUFFIXES = (".npz", ".json")
Arrays = dict[str, NDArray[Any]]
Described = Callable[[str], tuple[tuple[int, ...], Any] | None]  # shape and dtype of an array, or None
Read = Callable[[str], NDArray[Any]]

_MOST_HEADER = 1 << 30  # bytes
_PER_ALPHA = ("intercepts", "objectives", "gaps")
_TRACE = tuple(f"trace_{name}" for name in COLUMNS)
_CV = ("cv_alphas", "cv_mean", "cv_std_error", "cv_nonzeros")
_FOLD_SCORES = "cv_fold_scores"  # the only one with two dimensions
_CRITERIA = tuple(f"criteria_{name}" for name in CRITERIA)
_CURVES = tuple(f"quality_{name}" for name in CURVES)
_ALIASES = ("alias_indptr", "alias_features")
_TEXTS, _WHOLE = ("feature_names",), ("indptr", "features", "support", *_ALIASES)  # arrays that do not hold floats
_ARRAYS = (
    *(*_TEXTS, *_WHOLE, "alphas", "weights", *_PER_ALPHA, "deviance_explained"),
    *(*_CRITERIA, *_TRACE, *_CV, _FOLD_SCORES, *_CURVES),
)
_NOT_FINITE = ("nan", "inf", "-inf")  # as .json has them
_MISSING = object()


def write_model(path: Path, header: dict[str, Any], arrays: Arrays) -> None:
    """Complete or not at all."""
    with replacing(path, *SUFFIXES) as file:
        _checked(header, lambda name: _described(arrays.get(name)), lambda name: arrays[name])
        if path.suffix.lower() == ".json":
            plain = header | {"arrays": {name: _numbers(values) for name, values in arrays.items()}}
            file.write(_json(plain).encode())
        else:
            np.savez_compressed(file, header=np.array(_json(header)), **arrays)  # type: ignore[arg-type]


def read_model(path: Path) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays that make a model; executes nothing."""
    if not path.is_file():
        raise FileNotFoundError(f"path must name an existing file, got {str(path)!r}")
    with explained(f"{path} cannot be read as a model"):
        return _read_json(path) if path.suffix.lower() == ".json" else _read_npz(path)


def _read_json(path: Path) -> tuple[dict[str, Any], Arrays]:
    header = parsed_json(path.read_text(encoding="utf-8"))
    lists = header.pop("arrays", None) if isinstance(header, dict) else None
    _check_format(header)
    if not isinstance(lists, dict):
        raise ValueError("its arrays are no table of names and lists")
    arrays = {name: _array(name, lists[name]) for name in _ARRAYS if name in lists}
    return header, _checked(header, lambda name: _described(arrays.get(name)), lambda name: arrays[name])


def _read_npz(path: Path) -> tuple[dict[str, Any], Arrays]:
    if not zipfile.is_zipfile(path):
        raise ValueError("it is no model")
    with archive_of(path) as archive:

        def described(name: str) -> tuple[tuple[int, ...], Any] | None:
            if name not in archive:
                return None
            dtype, shape = archive.described(name)
            return shape, dtype

        found = described("header")
        if found is None or found[0] != () or found[1].kind != "U":
            raise ValueError("it is no model")
        if found[1].itemsize > _MOST_HEADER:
            raise ValueError(f"its header takes {found[1].itemsize:,} bytes, expected at most {_MOST_HEADER:,}")
        header = parsed_json(str(archive["header"]))
        _check_format(header)
        return header, _checked(header, described, archive.__getitem__)


# ------------------------------------------------------------------------------------------------------- checks


def _check_format(header: Any) -> None:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError("it is no model")
    version: Any = header.get("version")
    if not _is_whole(version) or version < 1:
        raise ValueError(f"version={version!r} must be a whole number of at least 1")
    if version > VERSION:
        raise ValueError(f"it is of version {version}; this blockgreedy reads up to {VERSION}")


def _check_header(header: Mapping[str, Any], shape: tuple[int, ...]) -> None:
    """All that the header says, for alphas of this shape."""

    def expect(name: str, good: Callable[[Any], bool], accepted: str) -> Any:
        value = header.get(name, _MISSING)
        if value is _MISSING:
            raise ValueError(f"{name} is missing")
        if not good(value):
            raise ValueError(f"{name}={_short(value)} must be {accepted}")
        return value

    loss = header.get("loss")
    if not isinstance(loss, str) or loss not in LOSSES:
        raise ValueError(f"loss {loss!r} is not known; accepted are {', '.join(LOSSES)}")
    expect("n_features", lambda v: _is_whole(v) and v >= 0, "a whole number of at least 0")
    expect("f_null", _is_number, "a number")
    expect("index_base", lambda v: v is None or (_is_whole(v) and v in (0, 1)), "null, 0 or 1")
    expect("settings", lambda v: isinstance(v, dict), "a table of names and values")
    if LOSSES[loss].is_classifier:
        expect("classes", _are_classes, f"two different numbers or words, for the loss {loss}")
    else:
        expect("classes", lambda v: v is None, f"null, for the loss {loss}")
    statuses = expect("statuses", lambda v: isinstance(v, list) and all(isinstance(s, str) for s in v), "words")
    if shape != (len(statuses),):
        raise ValueError(f"there are {len(statuses)} statuses for {math.prod(shape)} alphas")
    for table, wanted in _TABLES.items():
        if header.get(table) is not None:
            _check_table(table, header[table], wanted)


def _check_table(table: str, found: Any, wanted: Mapping[str, tuple[Callable[[Any], bool], str]]) -> None:
    if not isinstance(found, dict):
        raise ValueError(f"{table}={_short(found)} must be null or a table of names and values")
    for name, (good, accepted) in wanted.items():
        if not good(found.get(name)):
            raise ValueError(f"{table}: {name}={_short(found.get(name))} must be {accepted}")


def _checked(header: dict[str, Any], described: Described, read: Read) -> Arrays:
    """The arrays of a model: first what they are, then what they hold."""
    alphas = described("alphas")
    if alphas is None:
        raise ValueError("alphas is missing")
    _check_header(header, alphas[0])
    n_alphas, n_features = alphas[0][0], header["n_features"]
    shapes: dict[str, tuple[int, ...]] = {"alphas": (n_alphas,), "indptr": (n_alphas + 1,)}
    shapes |= dict.fromkeys(_PER_ALPHA, (n_alphas,))
    optional: dict[str, tuple[int, ...]] = {"deviance_explained": (n_alphas,)}
    optional |= {"feature_names": (n_features,), "support": (n_features,)}
    shapes |= {name: shape for name, shape in optional.items() if described(name)}
    shapes |= dict.fromkeys(_CRITERIA, (n_alphas,)) if described(_CRITERIA[0]) else {}
    for names, is_there in ((_TRACE, described(_TRACE[0])), (_CV, header.get("cv") is not None)):
        first = described(names[0]) if is_there else None
        if first is not None:
            shapes |= dict.fromkeys(names, (math.prod(first[0]),))
        elif is_there:
            raise ValueError(f"{names[0]} is missing")
    if header.get("cv") is not None and described(_FOLD_SCORES):
        shapes[_FOLD_SCORES] = (header["cv"]["n_folds"], *shapes[_CV[0]])
    if header.get("quality") is not None:
        for name, (leader, longer) in CURVES.items():
            if described(f"quality_{name}"):
                first = described(f"quality_{leader}")
                if first is None:
                    raise ValueError(f"quality_{leader} is missing")
                shapes[f"quality_{name}"] = (math.prod(first[0]) + longer,)
    groups = described(_ALIASES[0])
    shapes |= {} if groups is None else {_ALIASES[0]: (math.prod(groups[0]),)}
    arrays = _read_all(shapes, described, read)
    entries = _last("indptr", arrays["indptr"])
    shapes = {"features": entries, "weights": entries}
    shapes |= {} if groups is None else {_ALIASES[1]: _last(_ALIASES[0], arrays[_ALIASES[0]])}
    arrays |= _read_all(shapes, described, read)
    _check_values(arrays, n_features)
    return arrays


def _last(name: str, ends: NDArray[Any]) -> tuple[int]:
    """The shape of the array that is divided at these ends."""
    if len(ends) == 0 or ends[0] != 0 or np.any(ends[1:] < ends[:-1]):
        raise ValueError(f"{name} must begin with 0 and never descend")
    return (int(ends[-1]),)


def _read_all(shapes: dict[str, tuple[int, ...]], described: Described, read: Read) -> Arrays:
    """Not one is read before all are known to have the right kind and shape."""
    for name, shape in shapes.items():
        found = described(name)
        if found is None:
            raise ValueError(f"{name} is missing")
        kind = _kind(name)
        if found[1].kind not in kind.of_arrays:
            raise ValueError(f"{name} must hold {kind.words}, got {found[1]}")
        if found[0] != shape:
            raise ValueError(f"{name} has shape {found[0]}, expected {shape}")
    return {name: read(name) for name in shapes}


def _check_values(arrays: Arrays, n_features: int) -> None:
    _every("alphas", arrays["alphas"], lambda v: np.isfinite(v) & (v >= 0), "a finite number of at least 0")
    for name in ("weights", "intercepts"):
        _every(name, arrays[name], np.isfinite, "finite")
    for name in WHOLE_COLUMNS:
        if f"trace_{name}" in arrays:
            column = arrays[f"trace_{name}"]
            _every(f"trace_{name}", column, lambda v: np.isfinite(v) & (v == np.floor(v)), "a whole number")
    if "support" in arrays:
        _every("support", arrays["support"], lambda v: v >= 0, "a number of rows")
    ends = arrays["indptr"]
    column = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    _check_features("features", arrays["features"], n_features, column, "a second time, at the same alpha")
    if _ALIASES[0] in arrays:
        if np.any(np.diff(arrays[_ALIASES[0]]) < 2):
            raise ValueError(f"{_ALIASES[0]} must divide {_ALIASES[1]} into groups of two or more")
        copies = arrays[_ALIASES[1]]
        _check_features(_ALIASES[1], copies, n_features, np.zeros(len(copies)), "a second time")


def _check_features(name: str, features: NDArray[Any], n_features: int, part: NDArray[Any], second_time: str) -> None:
    """All of them are features of the model, and no part has one of them twice."""
    _every(name, features, lambda v: (v >= 0) & (v < n_features), f"one of the {n_features:,} features, from 0")
    order = np.lexsort((features, part))
    again = (np.diff(features[order]) == 0) & (np.diff(part[order]) == 0)
    if np.any(again):
        at = order[int(np.argmax(again)) + 1]
        raise ValueError(f"{name}[{at}]={features[at]} is there {second_time}")


def _every(name: str, values: NDArray[Any], good: Callable[[NDArray[Any]], NDArray[Any]], accepted: str) -> None:
    fine = good(values)
    if not np.all(fine):
        at = int(np.argmin(fine))
        raise ValueError(f"{name}[{at}]={values[at]} must be {accepted}")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_word(value: Any) -> bool:
    return isinstance(value, str)


def _are_scores(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_number(v) and math.isfinite(v) for v in value.values())


# The parts of the header that a model may have, what they hold, and what is accepted.
_TABLES: dict[str, dict[str, tuple[Callable[[Any], bool], str]]] = {
    "cv": {
        "scoring": (_is_word, "a word"),
        "alpha_min": (_is_number, "a number"),
        "alpha_1se": (_is_number, "a number"),
        "n_folds": (_is_whole, "a whole number"),
    },
    "quality": {
        "rows": (_is_word, "a word"),
        "n_samples": (_is_whole, "a whole number"),
        "scores": (_are_scores, "a table of finite numbers"),
        "baseline": (_are_scores, "a table of finite numbers"),
    },
}


def _are_classes(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != 2 or value[0] == value[1]:
        return False
    return all(isinstance(v, str) for v in value) or all(isinstance(v, (int, float)) and v == v for v in value)


@dataclass(frozen=True)
class _Kind:
    """What an array of a model may hold."""

    of_arrays: str  # NumPy's letters
    of_json: Callable[[Any], bool]
    dtype: Any
    word: str
    words: str


def _kind(name: str) -> _Kind:
    if name in _TEXTS:
        return _Kind("U", lambda v: isinstance(v, str), np.str_, "text", "text")
    if name in _WHOLE:
        return _Kind("iu", _is_whole, np.int64, "a whole number", "whole numbers")
    return _Kind("iuf", lambda v: _is_number(v) or v in _NOT_FINITE, np.float64, "a number", "numbers")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _described(values: NDArray[Any] | None) -> tuple[tuple[int, ...], Any] | None:
    return None if values is None else (values.shape, values.dtype)


# --------------------------------------------------------------------------------------------------------- JSON


def _json(plain: dict[str, Any]) -> str:
    try:
        return json.dumps(plain, ensure_ascii=False)
    except TypeError as error:
        raise ValueError(f"classes and settings must be numbers, text, lists or tables: {error}") from error


def _numbers(values: NDArray[Any]) -> list[Any]:
    """For JSON, which has no nan and no inf."""
    if values.ndim > 1:
        return [_numbers(row) for row in values]
    return [v if not isinstance(v, float) or math.isfinite(v) else str(v) for v in values.tolist()]


def _array(name: str, values: Any) -> NDArray[Any]:
    if not isinstance(values, list):
        raise ValueError(f"{name} must be a list, got {_short(values)}")
    if name == _FOLD_SCORES and values:
        return np.array([_array(f"{name}[{k}]", row) for k, row in enumerate(values)])
    kind = _kind(name)
    for k, value in enumerate(values):
        if not kind.of_json(value):
            raise ValueError(f"{name}[{k}]={_short(value)} must be {kind.word}")
    return np.array(values, dtype=kind.dtype)
