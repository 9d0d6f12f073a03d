"""Names of features in a store: an encoding and arrays of text, which stay on disk until somebody asks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from blockgreedy.base.files import replacing
from blockgreedy.base.reading import parsed_json
from blockgreedy.data.encoding import Cross, Encoding
from blockgreedy.data.store_files import ArrayWriter, FileFacts, check_file, mapped, write_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

NAMES, ENDS, ENCODING = "names.npy", "name_ends.npy", "encoding.json"
Files = dict[str, FileFacts]


def write_names(folder: Path, names: NDArray[np.str_]) -> Files:
    """All names one after the other in UTF-8, and where each ends."""
    texts = [str(name).encode() for name in names]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    joined = np.frombuffer(b"".join(texts), dtype=np.uint8)
    return {NAMES: write_array(folder / NAMES, joined), ENDS: write_array(folder / ENDS, ends)}


def read_names(folder: Path, files: Files, n_features: int) -> NDArray[np.str_]:
    ends = _sound(folder / ENDS, files, np.int64, (n_features,)).tolist()
    length = ends[-1] if ends else 0
    text = _sound(folder / NAMES, files, np.uint8, (length,)).tobytes()
    return np.array([text[a:b].decode() for a, b in zip([0, *ends[:-1]], ends, strict=True)], dtype=np.str_)


def write_encoding(folder: Path, encoding: Encoding) -> Files:
    """Crosses, which may have millions of combinations, are arrays of their own."""
    plain = Encoding(encoding.columns, (), encoding.min_count, encoding.dropped).to_json()
    plain["crosses"] = [{"columns": list(cross.columns), "features": cross.n_features} for cross in encoding.crosses]
    made: Files = {}
    for k, cross in enumerate(encoding.crosses):
        made[_cross_file(k)] = write_array(folder / _cross_file(k), np.ascontiguousarray(cross.codes))
    with replacing(folder / ENCODING) as file:
        writer = ArrayWriter(file)
        writer.add_bytes(json.dumps(plain).encode())
    made[ENCODING] = writer.facts
    return made


def read_encoding(folder: Path, files: Files) -> Encoding:
    check_file(folder / ENCODING, files[ENCODING])
    plain: Any = parsed_json((folder / ENCODING).read_bytes())
    crosses = []
    for k, entry in enumerate(plain["crosses"]):
        shape = (len(entry["columns"]), int(entry["features"]))
        codes = _sound(folder / _cross_file(k), files, np.int32, shape)
        crosses.append(Cross(tuple(entry["columns"]), codes))
    made = Encoding.of_json({**plain, "crosses": []})
    assert made is not None
    return Encoding(made.columns, tuple(crosses), made.min_count, made.dropped)


def _sound(path: Path, files: Files, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """An array whose checksum has been compared."""
    if path.name in files:
        check_file(path, files[path.name])
    return mapped(path, files.get(path.name), dtype, shape)


def _cross_file(k: int) -> str:
    return f"cross-{k:04}.npy"
