"""Tables in files, by pyarrow: the names and types of their columns, and the columns."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from json import JSONDecodeError
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from blockgreedy.data.column import Column, Kind, Words, words_of_array
from blockgreedy.data.compression import decompressed

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HEAD = 1 << 20  # bytes of a CSV in which pyarrow looks for the types of its columns


class ArrowColumn(Column):
    """A column in a ChunkedArray."""

    def __init__(self, name: str, values: Any) -> None:
        self.name, self._values = name, values
        self.kind, self.type = kind_of_type(values.type), type_text(values.type)

    def __len__(self) -> int:
        return len(self._values)

    def numbers(self) -> NDArray[np.float64]:
        import pyarrow as pa

        return np.asarray(self._values.cast(pa.float64(), safe=False).to_numpy())  # null becomes NaN

    def array(self) -> NDArray[Any]:
        import pyarrow as pa

        values = self._values.cast(pa.float64()) if pa.types.is_decimal(self._values.type) else self._values
        return np.asarray(values.to_numpy())

    def words(self) -> Words:
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.kind == "real":  # NaN is missing, and numbers are written as everywhere
            return words_of_array(self.numbers())
        values = self._values
        try:
            if self.kind == "text" and not pa.types.is_string(values.type):
                values = values.cast(pa.string())
            encoded = pc.dictionary_encode(values).unify_dictionaries()
            codes = [np.asarray(pc.fill_null(chunk.indices, -1)) for chunk in encoded.chunks]
            found = encoded.chunks[0].dictionary.cast(pa.string()).to_pylist() if codes else []
        except pa.ArrowException as error:
            raise ValueError(
                f"column {self.name!r} of type {values.type} cannot be taken as categories: {error}"
            ) from error
        joined = np.concatenate(codes) if codes else np.empty(0, dtype=np.int32)
        return Words(joined.astype(np.int32, copy=False), found)


def kind_of_type(kind: Any) -> Kind:
    import pyarrow.types as types

    # string_view is what polars writes; older versions of pyarrow do not have it.
    is_view = getattr(types, "is_string_view", lambda _: False)
    if types.is_dictionary(kind) or types.is_string(kind) or types.is_large_string(kind) or is_view(kind):
        return "text"
    if types.is_boolean(kind):
        return "bool"
    if types.is_integer(kind):
        return "whole"
    # a column of a CSV without any value has the type null
    return "real" if types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind) else "other"


def type_text(kind: Any) -> str:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return "categories"
    return "text" if kind_of_type(kind) == "text" else str(kind)


@dataclass(frozen=True)
class Field:
    """What a file says of a column before it is read."""

    kind: Kind
    type: str


def read_schema(path: Path, kind: str, compression: str) -> dict[str, Field]:
    """The columns of a file and what they hold, without its body. Of a CSV: as its first megabyte looks."""
    with explained(path, kind) as pa:
        if kind == ".csv":
            with pa.csv.open_csv(_text_of(path, compression, _HEAD), convert_options=conversion(pa)) as reader:
                schema = reader.schema
        elif kind == ".parquet":
            schema = pa.parquet.read_schema(path)
        else:
            schema = _arrow(pa, path, lambda source: source.schema)
        names, gone = schema.names, _index_of_pandas(schema)  # both may be damaged
    _check_names(path, kind, names)
    return {own.name: Field(kind_of_type(own.type), type_text(own.type)) for own in schema if own.name not in gone}


def read_columns(
    path: Path, kind: str, compression: str, names: Iterable[str], as_text: Iterable[str], n_threads: int | None
) -> list[ArrowColumn]:
    """These columns. Those ``as_text`` are text as it stands in a CSV, where 01 and 1 may be two categories."""
    wanted, as_text = list(names), set(as_text)
    with explained(path, kind) as pa:
        if kind == ".csv":
            table = pa.csv.read_csv(
                _text_of(path, compression, None),
                read_options=pa.csv.ReadOptions(use_threads=n_threads != 1),
                convert_options=conversion(
                    pa, include_columns=wanted, column_types=dict.fromkeys(as_text, pa.string())
                ),
            )
        elif kind == ".parquet":
            table = pa.parquet.read_table(path, columns=wanted, use_threads=n_threads != 1)
        else:
            table = _arrow(pa, path, lambda source: source.read_all())
        sound(table)
    return [ArrowColumn(name, table.column(name)) for name in wanted]


def sound(read: Any) -> Any:
    """A table or a batch of one, once its buffers agree with what it says of them: pyarrow takes a file's word."""
    read.validate(full=True)
    return read


def _text_of(path: Path, compression: str, head: int | None) -> Any:
    """A file, or what it is unpacked to. Of the first ``head`` bytes: whole lines, so that they can be read alone."""
    if not compression:
        return path
    blocks = decompressed(path, compression)
    if head is None:
        return io.BytesIO(b"".join(blocks))
    text = b""
    for block in blocks:
        text += block
        if len(text) > 2 * head:
            return io.BytesIO(text[: text.rindex(b"\n") + 1] if b"\n" in text else text)
    return io.BytesIO(text)


def conversion(pa: Any, **more: Any) -> Any:
    # An empty field is missing in columns of text too, not a category of its own.
    return pa.csv.ConvertOptions(strings_can_be_null=True, **more)


def _arrow(pa: Any, path: Path, use: Any) -> Any:
    """Of an Arrow file, or of a stream."""
    try:
        with pa.ipc.open_file(path) as source:
            return use(source)
    except pa.ArrowInvalid:
        with pa.ipc.open_stream(path) as source:
            return use(source)


@contextmanager
def explained(path: Path, kind: str) -> Iterator[Any]:
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
        yield pa
    except (pa.ArrowException, OSError, KeyError, TypeError, OverflowError, UnicodeError, JSONDecodeError) as error:
        raise ValueError(f"{path} cannot be read as {kind[1:]}: {error}") from error


def _index_of_pandas(schema: Any) -> set[str]:
    """pandas writes an index as a column and says so beside the schema; it is no feature."""
    return {name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)}


def _check_names(path: Path, kind: str, names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if kind == ".csv" and names and all(map(reads_as_number, names)):
        raise ValueError(f"{path} must begin with a line of column names, got {','.join(names[:5])!r}")
    if twice:
        raise ValueError(f"{path} has several columns named {twice[0]!r}; column names must differ")


def reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # which Python reads over, and nobody else
