"""Tables in files (Parquet, Arrow, CSV) → Datasets."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from blockgreedy.data.arrow import Field, read_columns, read_schema
from blockgreedy.data.codes import look_like_codes
from blockgreedy.data.column import Column
from blockgreedy.data.dataset import Dataset
from blockgreedy.data.encode import encode, fit_encoding, warn_of_numbers
from blockgreedy.data.encoding import Encoding
from blockgreedy.data.treatment import Plan, Treatment, columns_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

TARGET_NAMES = ("y", "label", "target", "class")


@dataclass(frozen=True)
class Table:
    """The columns of a file that were asked for, in its order, and what is to become of them.

    ``fields`` are all columns that the file has. The column of labels, ``target``, is among ``columns``.
    """

    path: Path
    fields: dict[str, Field]
    columns: dict[str, Column]
    target: str | None
    plan: Plan | None  # None where an encoding says it

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.columns.values())))


def plan_table(
    path: Path, kind: str, compression: str, target: str | None, treatment: Treatment, labelled: bool
) -> tuple[dict[str, Field], str | None, Plan]:
    """What becomes of the columns, by their names and types alone: the rows are not read."""
    fields = read_schema(path, kind, compression)
    where = target_column(path, fields, target, labelled, ())
    return fields, where, treatment.plan({name: own.kind for name, own in fields.items()}, where, str(path))


def open_table(
    path: Path,
    kind: str,
    compression: str,
    *,
    target: str | os.PathLike[str] | None = None,
    treatment: Treatment | None = None,
    encoding: Encoding | None = None,
    labelled: bool = True,
    with_dropped: bool = False,
    n_threads: int | None = None,
) -> Table:
    named = None if target is None else os.fspath(target)
    plan: Plan | None = None
    if encoding is None:
        fields, where, plan = plan_table(path, kind, compression, named, treatment or Treatment(), labelled)
        wanted = [name for name in fields if name in plan.roles or name == where or with_dropped]
        # A CSV does not say that 01 is text: columns of categories are read as they stand.
        as_text = {name for name, role in plan.roles.items() if role == "categories"}
        if not plan.roles and not with_dropped:
            raise ValueError(
                f"{path} has no columns except the labels{' and the dropped ones' if plan.dropped else ''}"
            )
    else:
        fields = read_schema(path, kind, compression)
        used = [source.name for source in encoding.columns]
        where = target_column(path, fields, named, labelled, (*used, *encoding.dropped))
        wanted = [name for name in fields if name in used or name == where]
        as_text = {
            source.name for source in encoding.columns if source.categories is not None and not source.from_numbers
        }
        missing = [name for name in used if name not in fields]
        if missing:
            raise ValueError(
                f"{path} has no column {missing[0]!r}, which the model was fitted on; {columns_text(fields)}"
            )
    columns = read_columns(path, kind, compression, wanted, as_text & set(wanted), n_threads)
    table = Table(path, fields, {column.name: column for column in columns}, where, plan)
    if table.n_rows == 0:
        raise ValueError(f"{path} holds no rows")
    return table


def table_to_dataset(
    table: Table,
    *,
    encoding: Encoding | None = None,
    labelled: bool = True,
    dtype: Any = np.float64,
    n_threads: int | None = None,
) -> Dataset:
    path = table.path
    label = None if table.target is None else table.columns[table.target]
    # Rows to predict may have the column of labels and nothing in it.
    if label is not None and not labelled and first_missing(label) >= 0:
        label = None
    y = np.zeros(table.n_rows) if label is None else labels_of(path, label)
    columns = {name: column for name, column in table.columns.items() if name != table.target}
    words = None
    advice: tuple[str, ...] = ()
    if encoding is None:
        assert table.plan is not None
        used = [columns[name] for name in table.plan.roles]
        made, words = fit_encoding(used, table.plan, str(path), n_threads)
        for column in used:
            # what was asked to be categories was meant
            if table.fields[column.name].kind == "text" and column.name not in table.plan.named:
                found = words[column.name]
                counts = dict(zip(found.values, found.counts().tolist(), strict=True))
                warn_of_numbers(column.name, counts, str(path), 7)
        numbers = {source.name for source in made.columns if source.categories is None}
        advice = tuple(name for name, column in columns.items() if name in numbers and look_like_codes(column))
    else:
        made = encoding
    X = encode(columns, made, dtype=dtype, known=words, where=str(path), n_threads=n_threads)
    return Dataset.of_file(
        path, X, y, made.feature_names, encoding=made, labelled=label is not None, code_columns=advice
    )


def target_column(
    path: Path, fields: dict[str, Field], target: str | None, labelled: bool, known: tuple[str, ...]
) -> str | None:
    if target is not None:
        if target in fields:
            return target
        if not labelled:
            return None
        raise ValueError(f"target={target!r} is not a column of {path}; {columns_text(fields)}")
    named = [name for name in fields if name.lower() in TARGET_NAMES and name not in known]
    if len(named) == 1:
        return str(named[0])
    if not labelled:
        return None
    raise ValueError(
        f"which column of {path} holds the labels? Name it with target=… (only a column named "
        f"{' or '.join(TARGET_NAMES)} is found without it{', and here there are several' if named else ''}); "
        f"{columns_text(fields)}"
    )


def first_missing(column: Column) -> int:
    missing = np.isnan(column.numbers()) if column.is_number else column.words().codes < 0
    return int(missing.argmax()) if missing.any() else -1


def no_labels(path: Path, name: str, kind: str) -> ValueError:
    return ValueError(f"{path}, column {name!r}: labels must be numbers or text, got {kind}")


def labels_of(path: Path, column: Column, first_row: int = 0) -> NDArray[Any]:
    """Rows before ``first_row`` were read before, for messages."""
    if not column.is_number and column.kind != "text":
        raise no_labels(path, column.name, column.type)
    row = first_missing(column)
    if row >= 0:
        raise ValueError(f"{path}, column {column.name!r}, row {first_row + row + 1}: a label is missing")
    if column.kind == "text":
        words = column.words()
        return np.array(words.values, dtype=np.str_)[words.codes]
    return column.array()
