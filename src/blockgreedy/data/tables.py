"""Tables (Parquet, Arrow, CSV) → sparse matrices; categories become features straight away, nothing is densified."""

from __future__ import annotations

import io
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from blockgreedy.data.compression import decompressed
from blockgreedy.data.dataset import Dataset

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FEW = 0.1  # of the values of a column
_WITHIN_NUMBERS = str.maketrans("", "", ",' \u00a0\u202f$€£¥%")  # what people write into them
TARGET_NAMES = ("y", "label", "target", "class")


@dataclass(frozen=True)
class Encoding:
    """How columns became features: per column its name, and its categories, or None for a column of numbers."""

    columns: tuple[tuple[str, tuple[str, ...] | None], ...]

    @property
    def feature_names(self) -> NDArray[np.str_]:
        names = [
            name
            for column, values in self.columns
            for name in ([column] if values is None else [f"{column}={value}" for value in values])
        ]
        return np.array(names, dtype=np.str_)

    @property
    def n_features(self) -> int:
        return sum(1 if values is None else len(values) for _, values in self.columns)

    def to_json(self) -> list[Any]:
        return [[name, None if values is None else list(values)] for name, values in self.columns]

    @classmethod
    def of_json(cls, columns: list[Any] | None) -> Encoding | None:
        if columns is None:
            return None
        for column in columns:
            if not isinstance(column, list) or len(column) != 2 or not _names_categories(*column):
                raise ValueError(f"encoding: {column!r} must be the name of a column and its categories, or null")
        return cls(tuple((name, None if values is None else tuple(values)) for name, values in columns))


def _names_categories(name: Any, values: Any) -> bool:
    is_list = isinstance(values, list) and all(isinstance(value, str) for value in values)
    return isinstance(name, str) and (values is None or is_list)


def read_table(
    path: Path,
    kind: str,
    compression: str,
    *,
    target: str | os.PathLike[str] | None,
    categorical: list[str] | None,
    encoding: Encoding | None,
    labelled: bool,
    dtype: Any,
    n_threads: int | None,
) -> Dataset:
    forced = set(categorical or ())
    known = {} if encoding is None else dict(encoding.columns)
    # A CSV does not say that 01 is text: columns of categories are read as they stand.
    as_text = forced | {name for name, values in known.items() if values is not None}
    table = _without_index(_open(path, kind, compression, as_text, n_threads))
    _check_names(path, kind, table)
    if table.num_rows == 0:
        raise ValueError(f"{path} holds no rows")
    where = _target_column(path, table, None if target is None else os.fspath(target), labelled, encoding)
    # Rows to predict may have the column of labels and nothing in it.
    labels = where if where is None or labelled or _first_null(table.column(where)) < 0 else None
    y = np.zeros(table.num_rows) if labels is None else _labels(path, labels, table.column(labels))
    if encoding is None:
        features = [name for name in table.column_names if name != where]
        unknown = sorted(forced - set(features))
        if unknown:
            what = "takes the labels from" if unknown[0] == where else "has no"
            raise ValueError(f"categorical: {path} {what} column {unknown[0]!r}; {_columns(table)}")
        parts = [_encode(path, name, table.column(name), name in forced, None, dtype) for name in features]
    else:
        for name, values in encoding.columns:
            if name not in table.column_names:
                raise ValueError(f"{path} has no column {name!r}, which the model was fitted on; {_columns(table)}")
            if values is None and _is_text(table.column(name).type):
                raise ValueError(f"{path}, column {name!r} holds text, but numbers when the model was fitted")
        parts = [
            _encode(path, name, table.column(name), values is not None, values, dtype)
            for name, values in encoding.columns
        ]
    if not parts:
        raise ValueError(f"{path} has no columns but the labels")
    made = Encoding(tuple((part.name, part.categories) for part in parts))
    X = _stacked(parts, table.num_rows, dtype)
    return Dataset.of_file(
        path, X, y, made.feature_names, encoding=made if encoding is None else encoding, labelled=labels is not None
    )


def _open(path: Path, kind: str, compression: str, as_text: set[str], n_threads: int | None) -> Any:
    try:
        import pyarrow as pa
        import pyarrow.csv
        import pyarrow.feather
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"reading {path.name} needs the package pyarrow: pip install 'blockgreedy[data]'"
        ) from None
    try:
        if kind == ".csv":
            source = io.BytesIO(b"".join(decompressed(path, compression))) if compression else path
            return pa.csv.read_csv(
                source,
                read_options=pa.csv.ReadOptions(use_threads=n_threads != 1),
                # An empty field is missing in columns of text too, not a category of its own.
                convert_options=pa.csv.ConvertOptions(
                    strings_can_be_null=True, column_types=dict.fromkeys(as_text, pa.string())
                ),
            )
        if kind == ".parquet":
            return pa.parquet.read_table(path, use_threads=n_threads != 1)
        try:
            return pa.feather.read_table(path)
        except pa.ArrowInvalid:  # an Arrow stream, not a file
            with pa.ipc.open_stream(path) as stream:
                return stream.read_all()
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path} cannot be read as {kind[1:]}: {error}") from error


def _without_index(table: Any) -> Any:
    """pandas writes an index as a column and says so beside the schema; it is no feature."""
    index = (table.schema.pandas_metadata or {}).get("index_columns", [])
    return table.drop_columns([name for name in index if isinstance(name, str) and name in table.column_names])


def _check_names(path: Path, kind: str, table: Any) -> None:
    names = table.column_names
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if kind == ".csv" and names and all(map(_reads_as_number, names)):
        raise ValueError(f"{path} must begin with a line of column names, got {','.join(names[:5])!r}")
    if twice:
        raise ValueError(f"{path} has several columns named {twice[0]!r}; names must differ")


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # which Python reads over, and nobody else


def _warn_of_numbers(path: Path, name: str, counts: dict[str, int]) -> None:
    """One "?" among the numbers of a CSV makes a column text, as do the commas of "1,000"; nobody would see it."""
    words = [value for value in counts if not _reads_as_number(value)]
    others = [value for value in words if not _reads_as_number(value.translate(_WITHIN_NUMBERS))]
    rows, wordy = sum(counts.values()), sum(counts[value] for value in words)
    few_rows = sum(counts[value] for value in others) <= _FEW * rows
    if words and (few_rows or len(others) <= _FEW * len(counts)):
        warnings.warn(
            f"{path}, column {name!r}: {wordy:,} of {rows:,} values are not numbers, such as {words[0]!r}, so its "
            f"{len(counts):,} different values are taken as categories. If numbers are meant, write these values as "
            f"numbers (1000.5, without separators or units); if categories are meant, name the column in categorical",
            stacklevel=5,
        )


def _columns(table: Any) -> str:
    names = table.column_names
    return f"its columns are {', '.join(names[:20])}{', …' if len(names) > 20 else ''}"


def _target_column(
    path: Path, table: Any, target: str | None, labelled: bool, encoding: Encoding | None
) -> str | None:
    if target is not None:
        if target in table.column_names:
            return target
        if not labelled:
            return None
        raise ValueError(f"target={target!r} is no column of {path}; {_columns(table)}")
    known = {name for name, _ in encoding.columns} if encoding is not None else set()
    named = [name for name in table.column_names if name.lower() in TARGET_NAMES and name not in known]
    if len(named) == 1:
        return str(named[0])
    if not labelled:
        return None
    raise ValueError(
        f"which column of {path} holds the labels? Say target=…; {', '.join(TARGET_NAMES)} are found without it"
        f"{', but several are there' if named else ''}; {_columns(table)}"
    )


def _first_null(column: Any) -> int:
    import pyarrow.compute as pc

    return int(pc.index(pc.is_null(column, nan_is_null=True), True).as_py())


def _is_text(kind: Any) -> bool:
    import pyarrow.types as types

    # string_view is what polars writes; older versions of pyarrow do not have it.
    is_view = getattr(types, "is_string_view", lambda _: False)
    return bool(types.is_dictionary(kind) or types.is_string(kind) or types.is_large_string(kind) or is_view(kind))


def _is_number(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind))


def _numbers(path: Path, name: str, column: Any, dtype: Any) -> NDArray[Any]:
    import pyarrow as pa

    row = _first_null(column)
    if row >= 0:
        raise ValueError(
            f"{path}, column {name!r}, row {row + 1}: a value is missing; fill it, or leave the column out"
        )
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy()).astype(dtype, copy=False)


def _labels(path: Path, name: str, column: Any) -> NDArray[Any]:
    import pyarrow as pa

    row = _first_null(column)
    if row >= 0:
        raise ValueError(f"{path}, column {name!r}, row {row + 1}: a label is missing")
    if _is_text(column.type):
        return np.array(column.cast(pa.string()).to_pylist(), dtype=np.str_)
    if not _is_number(column.type):
        raise ValueError(f"{path}, column {name!r}: labels must be numbers or text, got {column.type}")
    return np.asarray(column.to_numpy() if not pa.types.is_decimal(column.type) else column.cast(pa.float64()))


@dataclass(frozen=True)
class _Part:
    """A column's entries: at most one per row, in feature ``codes`` with ``values``, where ``present``."""

    name: str
    categories: tuple[str, ...] | None
    codes: NDArray[np.int32] | None
    values: NDArray[Any] | None
    present: NDArray[np.bool_]

    @property
    def width(self) -> int:
        return 1 if self.categories is None else len(self.categories)


def _encode(
    path: Path, name: str, column: Any, as_category: bool, known: tuple[str, ...] | None, dtype: Any
) -> _Part:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if not (as_category or _is_text(kind)):
        if not _is_number(kind):
            raise ValueError(
                f"{path}, column {name!r} is of type {kind}; accepted are numbers, booleans, text and dictionaries. "
                "Name it in categorical to take its values as categories, or leave it out"
            )
        values = _numbers(path, name, column, dtype)
        return _Part(name, None, None, values, values != 0)
    if pa.types.is_floating(kind):  # NaN is a missing value here as in columns of numbers, not a category
        column = pc.if_else(pc.is_nan(column), None, column)
    try:
        text = column if pa.types.is_string(kind) else column.cast(pa.string())
    except pa.ArrowException as error:
        raise ValueError(f"{path}, column {name!r} of type {kind} cannot be taken as categories: {error}") from error
    is_new = known is None
    if known is None:
        counted = pc.value_counts(text)
        counts = dict(zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True))
        counts.pop(None, None)
        known = tuple(sorted(counts))
        if not as_category:
            _warn_of_numbers(path, name, counts)
    found = pc.index_in(text, value_set=pa.array(known, type=pa.string()), skip_nulls=True)
    codes = np.asarray(pc.fill_null(found, -1)).astype(np.int32, copy=False)
    unknown = len(text) - text.null_count - int(np.count_nonzero(codes >= 0))
    if not is_new and unknown:
        warnings.warn(
            f"{path}, column {name!r}: {unknown:,} of {len(text):,} rows have a category that the encoding does not "
            "know; it counts as none",
            stacklevel=5,
        )
    return _Part(name, known, codes, None, codes >= 0)


def _stacked(parts: list[_Part], n_rows: int, dtype: Any) -> Any:
    """Row after row: at most one entry per column."""
    present = np.column_stack([part.present for part in parts])
    indptr: NDArray[Any] = np.zeros(n_rows + 1, dtype=np.int64)
    np.cumsum(present.sum(axis=1), out=indptr[1:])
    indices = np.empty((n_rows, len(parts)), dtype=np.int32)
    data = np.ones((n_rows, len(parts)), dtype=dtype)
    start = 0
    for k, part in enumerate(parts):
        indices[:, k] = start if part.codes is None else start + part.codes
        if part.values is not None:
            data[:, k] = part.values
        start += part.width
    if indptr[-1] < 2**31:  # scipy keeps both index arrays in one type and would widen the large one
        indptr = indptr.astype(np.int32)
    X = sparse.csr_array((data[present], indices[present], indptr), shape=(n_rows, start))
    X.has_sorted_indices = True
    X.has_canonical_format = True
    return X
