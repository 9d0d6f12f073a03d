"""ColumnFacts: what a column of a table holds, and what becomes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from blockgreedy.data.codes import look_like_codes
from blockgreedy.data.column import Column
from blockgreedy.data.tables import Table

Use = Literal["number", "categories", "label", "dropped", "unusable"]
_SHOWN = 3  # most frequent values


@dataclass(frozen=True)
class ColumnFacts:
    """``n_features`` is what the column becomes: 1 for numbers, the categories that are frequent enough, else 0.

    ``distinct`` and ``missing`` are None where the values cannot be compared. ``fill`` takes the place of missing
    numbers. ``span`` has the least and the greatest number, ``frequent`` the most frequent values and their rows.
    """

    name: str
    type: str
    use: Use
    n_features: int
    distinct: int | None
    missing: int | None
    fill: float | str | None = None
    looks_like_codes: bool = False
    span: tuple[float, float] | None = None
    frequent: tuple[tuple[str, int], ...] = ()


def describe(table: Table) -> list[ColumnFacts]:
    """All columns that were read, in the order of the file."""
    return [_facts(table, column) for column in table.columns.values()]


def _facts(table: Table, column: Column) -> ColumnFacts:
    assert table.plan is not None
    held_as = table.fields[column.name].type  # categories of a CSV are read as text, whatever they are
    role = table.plan.roles.get(column.name)
    if role == "whole?":
        role = "categories" if column.is_whole() else "numbers"
    use: Use = "dropped"
    if column.name == table.target:
        use = "label"
    elif role is not None:
        use = "categories" if role == "categories" else "number" if column.is_number else "unusable"
    if use == "number" or (use != "categories" and column.kind == "real"):
        values = column.numbers()
        there = values[~np.isnan(values)]
        return ColumnFacts(
            column.name,
            held_as,
            use,
            n_features=int(use == "number"),
            distinct=len(np.unique(there)),
            missing=len(values) - len(there),
            fill=table.plan.fills.get(column.name),
            looks_like_codes=use == "number" and look_like_codes(column),
            span=(float(there.min()), float(there.max())) if len(there) else None,
        )
    try:
        words = column.words()
    except ValueError:  # lists and the like
        return ColumnFacts(column.name, held_as, use, 0, None, None)
    counts = words.counts()
    is_there = counts > 0
    order = np.argsort(-counts, kind="stable")[:_SHOWN]
    return ColumnFacts(
        column.name,
        held_as,
        use,
        n_features=int(np.count_nonzero(counts >= table.plan.min_count)) if use == "categories" else 0,
        distinct=int(is_there.sum()),
        missing=int(np.count_nonzero(words.codes < 0)),
        frequent=tuple((words.values[k], int(counts[k])) for k in order if counts[k]),
    )


def to_plain(facts: ColumnFacts) -> dict[str, Any]:
    """For JSON: without what does not apply."""
    return {name: value for name, value in vars(facts).items() if value not in (None, (), False)}
