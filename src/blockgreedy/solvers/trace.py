"""What a run looked like over time: one record per observation, CSV in and out. No plotting, no solver."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.base.files import replacing_text


@dataclass(frozen=True)
class Record:
    iteration: int
    seconds: float  # in iterations alone: checks and recording are not counted
    objective: float
    nonzeros: int
    nonzeros_touched: int  # entries of X scanned by propose so far
    critical_nonzeros: int  # of those, the heaviest block of each iteration: what P threads would wait for
    active_blocks: int  # blocks that hold any nonzero weight
    gap: float  # nan where it was not computed
    spectral_radius: float = math.nan  # of the last iteration's accepted features; nan unless asked for


@dataclass
class Trace:
    """The course of a run: a list of records, of which ``trace["objective"]`` is one column as an array.

    Attributes
    ----------
    records : list of Record
        One for each observation: iteration, seconds, objective, nonzeros, nonzeros_touched, critical_nonzeros,
        active_blocks, gap and spectral_radius.

    Examples
    --------
    >>> import blockgreedy as bg
    >>> data = bg.data.text_like(300, 400, 10.0)
    >>> trace = bg.solve(bg.Problem(data, loss="logistic", alpha=0.001)).trace
    >>> bool(trace["objective"][-1] <= trace["objective"][0])
    True
    """

    records: list[Record] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        """One column as an array: ``trace["objective"]``."""
        if name not in COLUMNS:
            raise KeyError(f"{name!r} is not a column of the trace; there are {', '.join(COLUMNS)}")
        return np.array([getattr(record, name) for record in self.records], dtype=np.float64)

    def to_csv(self, path: str | Path) -> None:
        """Writes the records with all digits; the file is written under a temporary name and then renamed."""
        with replacing_text(path) as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows([[repr(getattr(record, name)) for name in COLUMNS] for record in self.records])

    @classmethod
    def from_csv(cls, path: str | Path) -> Trace:
        with open(path, newline="") as file:
            rows = list(csv.reader(file))
        if not rows or tuple(rows[0]) != COLUMNS:
            raise ValueError(f"{path} is not a trace: its first line must be {','.join(COLUMNS)}")
        parse: list[Any] = [int if name in WHOLE_COLUMNS else float for name in COLUMNS]
        return cls([Record(*(read(cell) for read, cell in zip(parse, row, strict=True))) for row in rows[1:]])


COLUMNS = tuple(f.name for f in fields(Record))
WHOLE_COLUMNS = tuple(f.name for f in fields(Record) if f.type in (int, "int"))
