"""A table of the page and of a CSV file: a head and rows of plain values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from blockgreedy.reports.page import Section


@dataclass(frozen=True)
class Table:
    name: str  # of the CSV file
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""

    def texts(self) -> list[list[str]]:
        return [[shown(cell) for cell in row] for row in self.rows]


def shown(value: Any) -> str:
    """A value as people read it."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, (bool, str)):
        return str(value)
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def put(section: Section, table: Table, *, folded: bool = False) -> None:
    """The table in a section of the page, or that there is nothing in it."""
    if table.rows:
        section.table(table.head, table.texts(), table.caption, table.note, folded=folded)
    else:
        section.text(f"{table.caption}: not measured.")
