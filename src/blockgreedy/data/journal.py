"""How far a conversion has come, kept in the unfinished store so that the next run goes on from there."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blockgreedy.base.files import growing, replacing_text
from blockgreedy.base.reading import explained, parsed_json
from blockgreedy.data.row_batches import Position
from blockgreedy.data.runs import Run
from blockgreedy.data.store_files import CONVERSION, FileFacts

_SECONDS = 1.0  # between two writes of the journal where nothing but time would be lost
LOCK = "lock"


@dataclass
class Journal:
    """``position``: where the source stood at the end of the last run, ``skip`` how many rows of the batch after it
    are in that run. ``rows_done``: all rows are in runs. ``files`` are those that are complete."""

    folder: Path
    made_of: dict[str, Any]
    runs: list[Run] = field(default_factory=list)
    position: Position | None = None
    skip: int = 0
    shifted: bool = False
    rows_done: bool = False
    words: list[str] | None = None
    label_type: str | None = None
    cuts: list[list[int]] | None = None  # between row groups and column groups, once they are known
    learned: dict[str, Any] | None = None  # of a table: what the first passes found
    files: dict[str, FileFacts] = field(default_factory=dict)
    _saved: float = -float("inf")

    @classmethod
    def opened(cls, folder: Path, made_of: dict[str, Any]) -> Journal:
        """That of an earlier run with the same source and options, or a new one."""
        path = folder / CONVERSION
        for left in folder.glob(".*.tmp"):  # of a process that was killed
            left.unlink(missing_ok=True)
        if not path.is_file():
            if any(entry.name != LOCK for entry in folder.iterdir()):
                raise FileExistsError(f"the folder {str(folder)!r} holds other files; choose another name")
            made = cls(folder, made_of)
            made.save()
            return made
        with explained(f"{path} is damaged", "; delete the folder and begin again"):
            plain = parsed_json(path.read_bytes())
            found = cls(folder, plain.pop("made_of"), [Run(**run) for run in plain.pop("runs")], **plain)
        asked = json.loads(json.dumps(made_of))
        if not found.runs and found.learned is None:  # nothing would be lost
            return cls(folder, asked)
        if found._may_go_on(asked):
            found.made_of = asked
        else:
            raise FileExistsError(
                f"{str(folder)!r} holds the unfinished conversion of other files, or with other options: "
                f"{_difference(found.made_of, asked)}. Run that one to its end, or delete the folder"
            )
        return found

    def _may_go_on(self, asked: dict[str, Any]) -> bool:
        """Whether nothing has changed but files that come after the one that is being read."""
        if self.rows_done or self.learned is not None or "files" not in asked:
            return asked == self.made_of
        reading = 0 if self.position is None else self.position.get("file", 0)
        old, new = self.made_of, asked
        alike = [file[0] for file in old["files"]] == [file[0] for file in new["files"]]
        return alike and old | {"files": old["files"][: reading + 1]} == new | {"files": new["files"][: reading + 1]}

    def save(self, *, soon: bool = False) -> None:
        """``soon``: not if it was saved a moment ago."""
        now = time.monotonic()
        if soon and now - self._saved < _SECONDS:
            return
        names = ("made_of", "position", "skip", "shifted", "rows_done", "words", "label_type", "cuts", "learned")
        plain = {name: getattr(self, name) for name in names}
        plain |= {"files": self.files, "runs": [run.to_json() for run in self.runs]}
        with replacing_text(self.folder / CONVERSION) as file:
            json.dump(plain, file)
        self._saved = now

    def close(self) -> None:
        (self.folder / CONVERSION).unlink(missing_ok=True)


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return f"{names[0]} was {old.get(names[0])!r} and is {new.get(names[0])!r}" if names else "an older version"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time."""
    try:
        import fcntl
    except ModuleNotFoundError:  # a system without it has no such protection
        yield
        return
    with growing(folder / LOCK, anew=False) as file:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FileExistsError(f"another process is converting to {str(folder)!r}; wait for it") from None
        yield
        (folder / LOCK).unlink(missing_ok=True)
