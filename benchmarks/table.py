"""Rows of one dataclass as a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

Row = TypeVar("Row")


def read_table(path: Path, kind: type[Row]) -> list[Row]:
    """Nothing where there is no file."""
    if not path.exists():
        return []
    parse: dict[str, Any] = {f.name: {"int": int, "float": float}.get(str(f.type), str) for f in fields(kind)}  # type: ignore[arg-type]
    with path.open(newline="") as file:
        return [kind(**{name: parse[name](value) for name, value in line.items()}) for line in csv.DictReader(file)]


def write_table(path: Path, kind: type[Any], rows: Iterable[Any]) -> None:
    """Floats to four digits."""
    unfinished = path.with_suffix(".tmp")
    with unfinished.open("w", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(kind)], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            line = asdict(row)
            writer.writerow({n: f"{v:.4g}" if isinstance(v, float) else v for n, v in line.items()})
    unfinished.replace(path)
