"""Columns of a table → an Encoding, and by it → a sparse matrix, which the core fills."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from blockgreedy import _core
from blockgreedy.base.threads import resolve_threads
from blockgreedy.data.column import Column, Words
from blockgreedy.data.encoding import CROSSED, Cross, Encoding, Source
from blockgreedy.data.treatment import Plan, columns_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FEW = 0.1  # of the values of a column
_WITHIN_NUMBERS = str.maketrans("", "", ",' \u00a0\u202f$€£¥%")  # what people write into them
_SHOWN = 4  # columns in a warning


def fit_encoding(
    columns: Sequence[Column], plan: Plan, where: str = "the table", n_threads: int | None = None
) -> tuple[Encoding, dict[str, Words]]:
    """The encoding of these columns, and their categories as text, which ``encode`` takes for the same columns."""
    sources: list[Source] = []
    words: dict[str, Words] = {}
    codes: dict[str, NDArray[np.int32]] = {}
    for column in columns:
        role = plan.roles[column.name]
        if role == "whole?":
            role = "categories" if column.is_whole() else "numbers"
        if role == "numbers":
            sources.append(Source(column.name, fill=_fill(column, plan.fills.get(column.name), where)))
            continue
        if column.name in plan.fills and plan.roles[column.name] == "categories":
            raise ValueError(
                f"fill: column {column.name!r} of {where} holds categories; fill is only for columns of numbers"
            )
        found = words[column.name] = words_of(column, where)
        counts = found.counts()
        kept = sorted(value for value, n in zip(found.values, counts, strict=True) if n >= plan.min_count)
        sources.append(Source(column.name, tuple(kept), from_numbers=column.is_number))
        codes[column.name] = recoded(found, {value: k for k, value in enumerate(kept)})
    if not sources:
        raise ValueError(f"{where} has no columns except the labels")
    crosses = _find_crosses(sources, codes, plan, len(columns[0]), where, n_threads)
    return Encoding(tuple(sources), crosses, plan.min_count, plan.dropped), words


def refuse_columns(columns: Mapping[str, Column], encoding: Encoding, where: str = "the table") -> None:
    """Raises what ``encode`` would raise on the columns that the encoding was made of."""
    for source in encoding.columns:
        if source.categories is None:
            _numbers(columns[source.name], source.fill, where, 0)


def encode(
    columns: Mapping[str, Column],
    encoding: Encoding,
    *,
    dtype: Any = np.float64,
    known: Mapping[str, Words] | None = None,
    where: str = "the table",
    n_threads: int | None = None,
) -> Any:
    """The matrix of these columns, in CSR.

    Categories and combinations without a feature are encoded as all zeros, and one warning counts them. With
    ``known``, the text of the columns that the encoding was made of, there is nothing to warn of.
    """
    encoder = RowEncoder(encoding, dtype, n_threads)
    X, unseen = encoder.encode(columns, known=known, where=where)
    if known is None:
        warn_of_unseen(unseen, X.shape[0], encoding, where, 4)
    return X


class RowEncoder:
    """Encodes rows of one table after the other; what finds categories and combinations is made once."""

    def __init__(self, encoding: Encoding, dtype: Any = np.float64, n_threads: int | None = None) -> None:
        self.encoding, self.dtype, self.n_threads = encoding, np.dtype(dtype), resolve_threads(n_threads)
        self._places = encoding.category_places()
        self._rows: _core.TableRows | None = None

    def encode(
        self,
        columns: Mapping[str, Column],
        *,
        known: Mapping[str, Words] | None = None,
        where: str = "the table",
        first_row: int = 0,
    ) -> tuple[Any, dict[str, int]]:
        """The matrix, and by column and cross in how many rows it has a category that the encoding does not know.

        Rows before ``first_row`` were encoded before, for messages.
        """
        arrays: list[NDArray[Any]] = []
        unseen: dict[str, int] = {}
        for source in self.encoding.columns:
            column = columns.get(source.name)
            if column is None:
                raise ValueError(
                    f"{where} has no column {source.name!r}, which the model was fitted on; {columns_text(columns)}"
                )
            if source.categories is None:
                arrays.append(_numbers(column, source.fill, where, first_row))
                continue
            words = known[source.name] if known is not None else words_of(column, where)
            codes = recoded(words, self._places[source.name])
            unseen[source.name] = int(np.count_nonzero((words.codes >= 0) & (codes < 0)))
            arrays.append(codes)
        X, uncrossed = self._matrix(arrays)
        for cross, count in zip(self.encoding.crosses, uncrossed, strict=True):
            unseen[CROSSED.join(cross.columns)] = count
        return X, unseen

    def _matrix(self, arrays: list[NDArray[Any]]) -> tuple[Any, list[int]]:
        n_rows, encoding = len(arrays[0]), self.encoding
        if self._rows is None:
            self._rows = _core.TableRows(
                n_rows,
                arrays,
                [source.n_features for source in encoding.columns],
                [[encoding.places[name] for name in cross.columns] for cross in encoding.crosses],
                [encoding.keys_of(cross) for cross in encoding.crosses],
            )
        else:
            self._rows.take(n_rows, arrays)
        indptr: NDArray[Any] = np.empty(n_rows + 1, dtype=np.int64)
        self._rows.count(indptr, self.dtype == np.float32, self.n_threads)
        indices, data = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1], dtype=self.dtype)
        uncrossed: Any = self._rows.fill(indptr, indices, data, self.n_threads)
        if indptr[-1] < 2**31:  # scipy keeps both index arrays in one type and would widen the large one
            indptr = indptr.astype(np.int32)
        X = sparse.csr_array((data, indices, indptr), shape=(n_rows, encoding.n_features))
        X.has_sorted_indices = True
        X.has_canonical_format = True
        return X, uncrossed.tolist()


def warn_of_numbers(name: str, counts: Mapping[str, int], where: str, stacklevel: int) -> None:
    """One "?" among the numbers of a CSV makes a column text, as do the commas of "1,000"; nobody would see it."""
    from blockgreedy.data.arrow import reads_as_number

    odd = [value for value in counts if not reads_as_number(value)]
    others = [value for value in odd if not reads_as_number(value.translate(_WITHIN_NUMBERS))]
    rows, n_odd = sum(counts.values()), sum(counts[value] for value in odd)
    few_rows = sum(counts[value] for value in others) <= _FEW * rows
    if odd and (few_rows or len(others) <= _FEW * len(counts)):
        warnings.warn(
            f"{where}, column {name!r}: {n_odd:,} of {rows:,} values are not numbers, such as {odd[0]!r}, so its "
            f"{len(counts):,} different values are used as categories. If the column should hold numbers, write "
            "these values as numbers (1000.5, without separators or units). If it holds categories, "
            f"categorical={name!r} silences this warning",
            stacklevel=stacklevel,
        )


def words_of(column: Column, where: str) -> Words:
    try:
        return column.words()
    except ValueError as error:
        raise ValueError(f"{where}, {error}") from error


def recoded(words: Words, places: Mapping[str, int]) -> NDArray[np.int32]:
    """Codes in another list of values, by their places in it; -1 for those that are not in it."""
    recode = np.array([*(places.get(value, -1) for value in words.values), -1], dtype=np.int32)
    return recode[words.codes]  # a missing value, -1, takes the last


def _fill(column: Column, fill: float | str | None, where: str) -> float | None:
    if fill is None or not isinstance(fill, str):
        return fill
    if not column.is_number:
        return None  # an error that encoding explains
    values = column.numbers()
    values = values[~np.isnan(values)]
    if not len(values):
        raise no_values(column.name, fill, where)
    return float(np.mean(values) if fill == "mean" else np.median(values))


def _numbers(column: Column, fill: float | None, where: str, first_row: int) -> NDArray[np.float64]:
    if column.kind == "text":
        raise ValueError(f"{where}, column {column.name!r} holds text, but it held numbers when the model was fitted")
    refuse_type(column, where)
    values = column.numbers()
    missing = np.isnan(values)
    if missing.any():
        if fill is None:
            row = first_row + int(missing.argmax()) + 1
            raise ValueError(
                f"{where}, column {column.name!r}, row {row}: a value is missing (so are "
                f"{int(missing.sum()) - 1:,} more of {len(values):,}); fill them (fill='{column.name}=median'), or "
                f"leave the column out (drop={column.name!r})"
            )
        values = np.where(missing, fill, values)
    return np.ascontiguousarray(values)


def refuse_type(column: Column, where: str) -> None:
    """A column that is to be numbers must hold some."""
    if not column.is_number:
        raise ValueError(
            f"{where}, column {column.name!r} has type {column.type}, which cannot be used as it is. Leave it out "
            f"(drop={column.name!r}), or use its values as categories (categorical={column.name!r})"
        )


def no_values(name: str, fill: str, where: str) -> ValueError:
    return ValueError(
        f"{where}, column {name!r} has no values, so that fill={fill} is undefined; leave it out (drop={name!r})"
    )


def _find_crosses(
    sources: list[Source],
    codes: dict[str, NDArray[np.int32]],
    plan: Plan,
    n_rows: int,
    where: str,
    n_threads: int | None,
) -> tuple[Cross, ...]:
    crossed = plan.crosses(list(codes))
    if not crossed:
        return ()
    widths = {source.name: source.n_features for source in sources if source.categories is not None}
    places = {name: k for k, name in enumerate(codes)}
    try:
        found = _core.find_crosses(
            n_rows,
            list(codes.values()),
            list(widths.values()),
            [[places[name] for name in names] for names in crossed],
            plan.min_count,
            resolve_threads(n_threads),
        )
    except OverflowError:
        largest = max(crossed, key=lambda names: np.prod([float(widths[name]) for name in names]))
        raise ValueError(
            f"cross={','.join(largest)}: {where} has more than 2^63 combinations of these categories; "
            "cross fewer columns, or raise min_count"
        ) from None
    made = []
    for names, own in zip(crossed, found, strict=True):
        keys = np.asarray(own)
        digits = np.empty((len(names), len(keys)), dtype=np.int32)
        for k in range(len(names) - 1, -1, -1):
            keys, digits[k] = np.divmod(keys, max(widths[names[k]], 1))
        made.append(Cross(names, digits))
    return tuple(made)


def warn_of_unseen(counts: dict[str, int], n_rows: int, encoding: Encoding, where: str, stacklevel: int) -> None:
    unseen = {name: count for name, count in counts.items() if count}
    if not unseen:
        return
    shown = [f"{name} in {count:,}" for name, count in list(unseen.items())[:_SHOWN]]
    more = f" and {len(unseen) - _SHOWN:,} more columns and crosses" if len(unseen) > _SHOWN else ""
    rare = f" or were in fewer than {encoding.min_count:,} rows" if encoding.min_count > 1 else ""
    warnings.warn(
        f"{where}: unseen categories are encoded as all zeros: {', '.join(shown)} of {n_rows:,} rows{more} "
        f"(they did not occur{rare} in the training data)",
        stacklevel=stacklevel,
    )
