"""Public sets by name: downloaded once, to a cache folder, resumed where they broke off, and checked."""

from __future__ import annotations

import difflib
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from blockgreedy.base.files import replacing_text
from blockgreedy.base.reading import parsed_json
from blockgreedy.data.collection import SETS, PublicSet
from blockgreedy.data.compression import decompressed
from blockgreedy.data.download import Download, Seen
from blockgreedy.data.formats import COMPRESSION_SUFFIXES

_BLOCK = 1 << 24
_LAST_INDEX = re.compile(rb"(\d+):[^:\s]+[ \t]*\r?\n")


def fetch(name: str, *, folder: str | os.PathLike[str] | None = None, progress: bool | None = None) -> Path:
    """The file of a public set, downloaded if it is not in the cache yet; ``load`` reads it.

    An interrupted download is resumed, now or in the next call. If a checksum is published, the download is compared
    with it. The SHA-256 of the first download is written beside the file; every later call verifies the file with it,
    and downloads the file again if it has changed on disk. Rows, largest feature and nonzeros are counted once, and a
    warning is given if they differ from the published numbers.

    Parameters
    ----------
    name : str
        A key of ``SETS``; ``blockgreedy data fetch --list`` shows them.
    folder : str or Path, optional
        The cache; by default ``BLOCKGREEDY_CACHE``, or the system's place for caches.
    progress : bool, optional
        Show a bar; by default on a terminal.
    """
    entry = _known(name)
    place = cache_folder(folder)
    path, note = place / entry.file_name, place / f"{entry.file_name}.json"
    about = _read_note(note)
    known = about.get("sha256") or entry.checksum
    with _shown(entry, sys.stderr.isatty() if progress is None else progress) as seen:
        _retrieve(entry, place, known, seen)
    if about.get("sha256") is None:
        import pooch

        about = {"url": entry.url, "bytes": path.stat().st_size, "sha256": f"sha256:{pooch.file_hash(str(path))}"}
    if "n_samples" not in about:
        try:
            about |= count(path)
        except ValueError:
            if entry.checksum is None:  # an error page, say: the next fetch must not take it for the set
                path.unlink(missing_ok=True)
                note.unlink(missing_ok=True)
            raise
        _write_note(note, about)
        for difference in differences(entry, about):
            warnings.warn(f"{name} differs from the published description: {difference}", stacklevel=2)
    return path


def cache_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """Where ``fetch`` keeps files."""
    chosen = folder if folder is not None else os.environ.get("BLOCKGREEDY_CACHE")
    return Path(chosen) if chosen else Path(_pooch().os_cache("blockgreedy"))


def fetched(name: str, folder: str | os.PathLike[str] | None = None) -> Path | None:
    """The file of a public set if it is in the cache; nothing is downloaded, nothing checked."""
    path = cache_folder(folder) / _known(name).file_name
    return path if path.is_file() else None


def differences(entry: PublicSet, counted: dict[str, Any]) -> list[str]:
    """What is not as published. Fewer features are no difference: not every feature occurs in every file."""
    found = []
    if counted["n_samples"] != entry.n_samples:
        found.append(f"{counted['n_samples']:,} rows, not {entry.n_samples:,}")
    if counted["n_features"] > entry.n_features:
        found.append(f"{counted['n_features']:,} features, not {entry.n_features:,}")
    if entry.nonzeros is not None and counted["nonzeros_X"] != entry.nonzeros:
        found.append(f"{counted['nonzeros_X']:,} nonzeros, not {entry.nonzeros:,}")
    return found


def count(path: Path) -> dict[str, int]:
    """Rows, largest feature and entries of svmlight text, a block at a time: some sets are larger than memory."""
    rows = entries = largest = 0
    rest = b""
    for block in _blocks(path):
        text = rest + block
        cut = text.rfind(b"\n") + 1
        text, rest = text[:cut], text[cut:]
        rows += text.count(b"\n")
        entries += text.count(b":")
        largest = max(largest, max(map(int, _LAST_INDEX.findall(text)), default=0))
    if rest.strip():
        rows, entries = rows + 1, entries + rest.count(b":")
        largest = max(largest, max(map(int, _LAST_INDEX.findall(rest + b"\n")), default=0))
    return {"n_samples": rows, "n_features": largest, "nonzeros_X": entries}


def _blocks(path: Path) -> Iterator[bytes]:
    if path.suffix in COMPRESSION_SUFFIXES:
        yield from decompressed(path, path.suffix)
        return
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            yield block


def _known(name: str) -> PublicSet:
    if name not in SETS:
        close = difflib.get_close_matches(name, SETS, n=3, cutoff=0.4)
        meant = f" (did you mean {' or '.join(close)}?)" if close else ""
        raise ValueError(f"name={name!r} is not a data set that can be fetched{meant}; there are {', '.join(SETS)}")
    return SETS[name]


def _pooch() -> Any:
    try:
        import pooch
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "fetching public sets needs the package pooch: pip install 'blockgreedy[data]'"
        ) from None
    return pooch


def _retrieve(entry: PublicSet, place: Path, known: str | None, seen: Seen) -> None:
    pooch = _pooch()
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("WARNING")  # it would name the cache's path on every download
    try:
        pooch.retrieve(
            entry.url, known, fname=entry.file_name, path=place, downloader=Download(place / entry.file_name, seen)
        )
    except ValueError as error:  # of pooch: the checksum
        expected = "the published one" if known == entry.checksum else "that of the first download"
        raise ValueError(
            f"the file from {entry.url} does not have the checksum {known} ({expected}), so it was not kept"
        ) from error
    finally:
        logger.setLevel(level)


def _read_note(note: Path) -> dict[str, Any]:
    try:
        about = parsed_json(note.read_text())
    except (OSError, ValueError):
        return {}
    return about if isinstance(about, dict) else {}


def _write_note(note: Path, about: dict[str, Any]) -> None:
    with replacing_text(note) as file:
        file.write(json.dumps(about, indent=1))


@contextmanager
def _shown(entry: PublicSet, wanted: bool) -> Iterator[Callable[[int, int | None], None]]:
    """What the download tells, as a bar that appears with the first bytes."""
    if not wanted:
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        tasks: list[Any] = []

        def see(done: int, total: int | None) -> None:
            if not tasks:
                tasks.append(bar.add_task(entry.name, total=total))
            bar.update(tasks[0], completed=done, total=total)

        yield see
