"""``meta.json`` of a store: what it holds, with a checksum of its own, and whether it can be true."""

from __future__ import annotations

import json
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from blockgreedy.base.reading import parsed_json
from blockgreedy.data.store_files import CONVERSION, META

FORMAT, VERSION = "blockgreedy store", 1
_CHECKSUM = "checksum"  # of all else; stores of earlier versions have none


def sealed(meta: dict[str, Any]) -> dict[str, Any]:
    """The same as plain data, with its checksum."""
    plain: dict[str, Any] = json.loads(json.dumps(meta))
    return {**plain, _CHECKSUM: _checksum(plain)}


def read_meta(folder: Path) -> dict[str, Any]:
    """Of a store that is complete and of this version; what is damaged is a ValueError."""
    meta = _read(folder)
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise ValueError(f"{folder} is no store: {META} does not say that it is one")
    if meta.get("version") != VERSION:
        raise ValueError(
            f"{folder} has version {meta.get('version')!r}, and this version of blockgreedy reads version {VERSION}; "
            "update it, or convert the data again"
        )
    found = meta.pop(_CHECKSUM, None)
    if found is not None and found != _checksum(meta):
        raise _damaged(folder, "it was changed after it had been written")
    try:
        _check(meta)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise _damaged(folder, f"{type(error).__name__}: {error}") from error
    return meta


def _read(folder: Path) -> Any:
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no store {str(folder)!r}, a folder that blockgreedy data convert makes")
    try:
        return parsed_json((folder / META).read_bytes())
    except FileNotFoundError:
        if (folder / CONVERSION).is_file():
            raise ValueError(
                f"{folder} is not complete: its conversion has not ended. Run the same conversion again, which goes "
                "on where it stopped"
            ) from None
        raise ValueError(f"{folder} is no store: it has no {META}") from None
    except ValueError as error:
        raise _damaged(folder, str(error)) from error


def _damaged(folder: Path, how: str) -> ValueError:
    return ValueError(
        f"{folder / META} is damaged: {how}. Copy it again from where the store was made, or delete the folder "
        f"{folder.name} and convert the data again"
    )


def _checksum(meta: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(meta, sort_keys=True).encode())


def _check(meta: dict[str, Any]) -> None:
    """Raises where what it says cannot be: sizes decide where files are read, and the core trusts them."""
    for name, facts in meta["files"].items():
        _require(set(facts) == {"bytes", "crc32"} and all(_is_count(value) for value in facts.values()), name, facts)
        _require(Path(name).name == name, "files", name)
    n_rows, n_columns = meta["shape"]
    _require(_is_count(n_rows) and _is_count(n_columns), "shape", meta["shape"])
    for name, end in (("row_cuts", n_rows), ("column_cuts", n_columns)):
        cuts = meta[name]
        ascend = all(_is_count(cut) for cut in cuts) and all(a <= b for a, b in pairwise(cuts))
        _require(ascend and len(cuts) > 1 and cuts[0] == 0 and cuts[-1] == end, name, cuts)
    entries = meta["tile_entries"]
    widths = {len(row) for row in entries}
    _require(
        len(entries) == len(meta["row_cuts"]) - 1 and widths == {len(meta["column_cuts"]) - 1}, "tile_entries", ""
    )
    counts = [count for row in entries for count in row]
    _require(all(_is_count(count) for count in counts), "tile_entries", entries)
    _require(_is_count(meta["n_entries"]) and sum(counts) == meta["n_entries"], "n_entries", meta["n_entries"])
    _require(meta["dtype"] in ("float32", "float64"), "dtype", meta["dtype"])
    _require(isinstance(meta["name"], str), "name", meta["name"])
    _require(meta["index_base"] in (None, 0, 1), "index_base", meta["index_base"])
    _require(isinstance(meta["made_of"], dict), "made_of", meta["made_of"])
    _check_labels(meta["labels"])


def _check_labels(labels: dict[str, Any]) -> None:
    classes, name = labels["classes"], labels["name"]
    _require(isinstance(labels["labelled"], bool), "labelled", labels["labelled"])
    _require(name is None or isinstance(name, str), "the name of the labels", name)
    is_text = isinstance(classes, list) and all(isinstance(label, str) for label in classes)
    _require(classes is None or is_text, "classes", classes)
    kind = np.dtype(labels["dtype"]).kind
    _require(kind in ("U" if is_text else "biuf"), "the type of the labels", labels["dtype"])


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _require(holds: bool, name: str, value: Any) -> None:
    if not holds:
        raise ValueError(f"{name} cannot be {str(value)[:80]}")
