"""Tables in one file or several → batches of rows, by an encoding that is given or learned from all of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from blockgreedy.base.threads import resolve_threads
from blockgreedy.data.arrow import Field, read_schema
from blockgreedy.data.arrow_batches import column_batches
from blockgreedy.data.cache import state_of
from blockgreedy.data.column import Column
from blockgreedy.data.encode import RowEncoder, warn_of_numbers, warn_of_unseen
from blockgreedy.data.encoding import Encoding
from blockgreedy.data.feature_names import read_encoding, write_encoding
from blockgreedy.data.formats import DataFile
from blockgreedy.data.row_batches import Position, RowBatch, RowSource, first_not_finite, without_zeros
from blockgreedy.data.svmlight import ahead
from blockgreedy.data.table_learning import TableLearner
from blockgreedy.data.tables import first_missing, labels_of, no_labels, plan_table, target_column
from blockgreedy.data.treatment import Plan, Treatment, columns_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PER_FIELD = 200  # bytes of memory for each column of a row: what was read, its code, and the entry that it becomes
_LIBRARIES = 112 << 20  # bytes that pyarrow takes
_PER_CATEGORY, _PER_COMBINATION = 250, 64  # bytes of an encoding, and of what finds them in it
_FEWEST, _MOST = 256, 1 << 20  # rows of a batch
_TYPES = {"text": "text", "whole": "number", "real": "number", "bool": "bool", "other": "text"}


class TableRows(RowSource):
    """Rows of all files, one after the other."""

    extra_memory = _LIBRARIES

    def __init__(
        self,
        files: Sequence[DataFile],
        *,
        target: str | None,
        treatment: Treatment,
        encoding: Encoding | None,
        labelled: bool,
        dtype: Any,
        n_threads: int | None,
    ) -> None:
        self.files, self.dtype, self.n_threads = list(files), np.dtype(dtype), resolve_threads(n_threads)
        self.treatment, self.needs_labels, self.name = treatment, labelled, files[0].path.name.split(".")[0]
        self._given, self._encoding, self._plan = encoding, encoding, None
        self.size = 0  # rows, once they are counted
        first = files[0]
        if encoding is None:
            parts = first.path, first.suffix, first.compression
            self.fields, self.target, self._plan = plan_table(*parts, target, treatment, labelled)
            used = list(self._plan.roles)
            if not used:
                raise ValueError(f"{first.path} has no columns except the labels and the dropped ones")
        else:
            self.fields = read_schema(first.path, first.suffix, first.compression)
            used = [source.name for source in encoding.columns]
            self.target = target_column(first.path, self.fields, target, labelled, (*used, *encoding.dropped))
        self.labelled = self.target is not None
        self.used = used
        if self.target is not None and self.fields[self.target].kind == "other":
            raise no_labels(first.path, self.target, self.fields[self.target].type)
        if encoding is not None:
            self.n_features = encoding.n_features
        for file in files:
            self._check(file)

    def _check(self, file: DataFile) -> None:
        """Every file has the columns that are used."""
        fields = self.fields if file is self.files[0] else read_schema(file.path, file.suffix, file.compression)
        for name in [*self.used, *([] if self.target is None else [self.target])]:
            if name not in fields:
                why = "which the encoding has" if self._plan is None else f"which {self.files[0].path} has"
                raise ValueError(f"{file.path} has no column {name!r}, {why}; {columns_text(fields)}")
            if (fields[name].kind == "text") != (self.fields[name].kind == "text") and not self._is_text(name):
                raise ValueError(
                    f"{file.path}, column {name!r} holds {fields[name].type}, and in {self.files[0].path} it holds "
                    f"{self.fields[name].type}"
                )

    def _is_text(self, name: str) -> bool:
        """Read from a CSV as it stands, where 01 and 1 are two categories."""
        if self._plan is not None:
            return self._plan.roles.get(name) == "categories"
        assert self._given is not None
        sources = {source.name: source for source in self._given.columns}
        return name in sources and sources[name].categories is not None and not sources[name].from_numbers

    def _type(self, name: str) -> str:
        return "text" if self._is_text(name) else _TYPES[self.fields[name].kind]

    def made_of(self) -> dict[str, Any]:
        given = None if self._given is None else hash_of(self._given)
        return {
            "files": [[os.path.abspath(file.path), *state_of(file.path)] for file in self.files],
            "target": self.target,
            **self.treatment.to_json(),
            "encoding": given,
        }

    @property
    def encoding(self) -> Encoding | None:
        return self._encoding

    @property
    def held_memory(self) -> int:
        if self._encoding is None:
            return 0
        categories = sum(source.n_features for source in self._encoding.columns)
        return _PER_CATEGORY * categories + _PER_COMBINATION * (self._encoding.n_features - categories)

    def _columns(
        self, file: DataFile, start: int, n_bytes: int, names: list[str]
    ) -> Iterator[tuple[int, dict[str, Column]]]:
        n_crosses = 0 if self._encoding is None else len(self._encoding.crosses)
        n_rows = int(np.clip(n_bytes // (_PER_FIELD * (len(names) + n_crosses)), _FEWEST, _MOST))
        types = {name: self._type(name) for name in names}
        for end, columns in ahead(column_batches(file, names, types, start, n_rows)):
            yield end, {column.name: column for column in columns}

    def learn(self, known: dict[str, Any] | None, folder: Path, n_bytes: int, seen: Any) -> dict[str, Any] | None:
        if self._plan is None:
            return None
        if known is not None:
            self._encoding, self.size = read_encoding(folder, known["files"]), known["rows"]
            self.n_features = self._encoding.n_features
            return known
        for name in self.used:
            self._refuse_others(name, self._plan)
        learner, where = TableLearner(self._plan, folder, n_bytes * 3 // 4), str(self.files[0].path)
        self.size = self._pass("categories", learner.see, self.used, n_bytes, seen)
        if not self.size:
            raise ValueError(f"{where} holds no rows")
        crossed = learner.columns_done(where)
        for name, own in learner.columns.items():
            if self.fields[name].kind == "text" and name not in self._plan.named and own.counts:
                warn_of_numbers(name, own.counts, where, 6)
        if crossed:
            used = [name for name in self.used if any(name in names for names in crossed)]
            self._pass("combinations", learner.see_crosses, used, n_bytes, seen)
        self._encoding = learner.encoding()
        self.n_features = self._encoding.n_features
        return {"files": write_encoding(folder, self._encoding), "rows": self.size}

    def _refuse_others(self, name: str, plan: Plan) -> None:
        """Dates and the like, before anything is read."""
        field: Field = self.fields[name]
        if field.kind == "other" and plan.roles[name] != "categories":
            raise ValueError(
                f"{self.files[0].path}, column {name!r} has type {field.type}, which cannot be used as it is. Leave "
                f"it out (drop={name!r}), or use its values as categories (categorical={name!r})"
            )

    def _pass(self, what: str, see: Any, names: list[str], n_bytes: int, seen: Any) -> int:
        """Rows of all files."""
        n_rows = 0
        for file in self.files:
            end = 0
            for end, columns in self._columns(file, 0, n_bytes // 8, names):
                see(columns, str(file.path))
                seen(what, n_rows + end, max(self.size, n_rows + end))
            n_rows += end
        return n_rows

    def batches(self, position: Position | None, n_bytes: int) -> Iterator[RowBatch]:
        first = position or {"file": 0, "row": 0, "done": 0}
        assert self._encoding is not None
        self.n_features = self._encoding.n_features
        encoder = RowEncoder(self._encoding, self.dtype, self.n_threads)
        done, unseen = first["done"], dict[str, int]()
        names = [*self.used, *([] if self.target is None else [self.target])]
        for k in range(first["file"], len(self.files)):
            path, start = self.files[k].path, first["row"] if k == first["file"] else 0
            for end, columns in self._columns(self.files[k], start, n_bytes, names):
                y = self._labels(path, columns, start, end)
                X, odd = encoder.encode(columns, where=str(path), first_row=start)
                row = first_not_finite(X.indptr, X.data)
                if row >= 0:
                    raise ValueError(f"{path}, row {start + row + 1}: a value is infinite (in {self.dtype})")
                unseen = {name: unseen.get(name, 0) + count for name, count in odd.items()}
                done += end - start
                yield RowBatch(*without_zeros(X.indptr, X.indices, X.data), y, {"file": k, "row": end, "done": done})
                start = end
        if self._plan is None:
            warn_of_unseen(unseen, done, self._encoding, str(self.files[0].path), 6)

    def _labels(self, path: Path, columns: dict[str, Column], start: int, end: int) -> NDArray[Any]:
        if self.target is None:
            return np.zeros(end - start)
        column = columns[self.target]
        if not self.needs_labels and first_missing(column) >= 0:
            raise ValueError(
                f"{path}, column {self.target!r}, row {start + first_missing(column) + 1}: a label is missing; drop "
                f"the column (drop={self.target!r}) if the rows have no labels"
            )
        y = labels_of(path, column, start)
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            row = start + int(np.argmin(np.isfinite(y))) + 1
            raise ValueError(f"{path}, column {self.target!r}, row {row}: a label is infinite")
        # a CSV's whole numbers are read as they are written; other batches may have fractions
        return y.astype(np.int64) if self.fields[self.target].kind == "whole" and np.all(y == np.floor(y)) else y


def hash_of(encoding: Encoding) -> str:
    import hashlib

    found = hashlib.sha256(repr((encoding.columns, encoding.min_count, encoding.dropped)).encode())
    for cross in encoding.crosses:
        found.update(repr(cross.columns).encode())
        found.update(np.ascontiguousarray(cross.codes).tobytes())
    return found.hexdigest()
