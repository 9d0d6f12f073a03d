"""What a dataset is like: sizes, values, labels, empty and repeated rows and columns, density of the columns."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from blockgreedy.data.dataset import label_text
from blockgreedy.partitions.duplicates import find_duplicates
from blockgreedy.problem.columns import as_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from blockgreedy.data.dataset import Dataset

MOST_LABELS = 10  # as many distinct ones are counted, more are summed up


@dataclass(frozen=True)
class Bin:
    """Columns with ``low`` to ``high`` nonzeros: how many, and the nonzeros that are in them."""

    low: int
    high: int
    columns: int
    nonzeros: int


@dataclass(frozen=True)
class Spread:
    """Of the nonzeros per row or per column."""

    least: int
    median: float
    mean: float
    most: int
    empty: int

    @classmethod
    def of(cls, counts: NDArray[np.int64]) -> Spread:
        if not len(counts):
            return cls(0, 0.0, 0.0, 0, 0)
        empty = int(np.count_nonzero(counts == 0))
        return cls(int(counts.min()), float(np.median(counts)), float(counts.mean()), int(counts.max()), empty)


@dataclass(frozen=True)
class Summary:
    """What ``blockgreedy data info`` shows. Stored zeros do not count as nonzeros.

    Attributes
    ----------
    name, dtype, storage : str
        Name of the data set, type of its values, and how they are stored.
    megabytes : float
        Memory of X.
    labelled : bool
        Whether the file has labels.
    n_samples, n_features, nonzeros, stored_zeros : int
        The size of X.
    density : float
        Share of the entries that are not zero.
    values : dict or None
        Describes the nonzero values; None if there are none.
    not_finite : int
        Values that are NaN or infinite.
    labels : dict
        Counts by label; if there are more than ten labels, ``distinct`` instead, and for numbers ``least``, ``mean``
        and ``most``.
    repeated_rows, repeated_columns : int or None
        Rows that equal an earlier row, and columns that are multiples of an earlier one, without empty ones; None
        with ``duplicates=False``.
    rows, columns : Spread
        Nonzeros per row and per column.
    bins : list of Bin
        All columns, by their number of nonzeros.
    per_column : ndarray of shape (n_features,)
        Nonzeros of each column.
    """

    name: str
    n_samples: int
    n_features: int
    nonzeros: int
    stored_zeros: int
    density: float
    dtype: str
    storage: str
    megabytes: float
    values: dict[str, float] | None
    not_finite: int
    labelled: bool
    labels: dict[str, Any]
    rows: Spread
    columns: Spread
    repeated_rows: int | None
    repeated_columns: int | None
    bins: list[Bin]
    per_column: NDArray[np.int64] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        plain = asdict(self)
        del plain["per_column"]
        return plain


def summarize(dataset: Dataset, *, duplicates: bool = True, n_threads: int | None = None) -> Summary:
    """Summarise a dataset. ``duplicates=False`` leaves out the search for repeated rows and columns."""
    stored = dataset.X
    rows: Any = sparse.csr_array(stored)
    if not np.all(rows.data):
        rows = rows.copy()
        rows.eliminate_zeros()
    per_row = np.diff(rows.indptr).astype(np.int64)
    per_column = np.bincount(rows.indices, minlength=rows.shape[1]).astype(np.int64)
    not_finite = int(np.count_nonzero(~np.isfinite(rows.data)))
    looked = duplicates and not not_finite
    n_samples, n_features = rows.shape
    return Summary(
        name=dataset.name,
        n_samples=n_samples,
        n_features=n_features,
        nonzeros=int(rows.nnz),
        stored_zeros=0 if isinstance(stored, np.ndarray) else int(stored.nnz - rows.nnz),
        density=rows.nnz / max(n_samples * n_features, 1),
        dtype=str(stored.dtype),
        storage="dense" if isinstance(stored, np.ndarray) else stored.format,
        megabytes=_megabytes(stored),
        values=_values(rows.data),
        not_finite=not_finite,
        labelled=dataset.labelled,
        labels=_labels(dataset.y),
        rows=Spread.of(per_row),
        columns=Spread.of(per_column),
        repeated_rows=_repeated_rows(rows) if looked else None,
        repeated_columns=find_duplicates(as_columns(rows, n_threads), n_threads).count if looked else None,
        bins=histogram(per_column),
        per_column=per_column,
    )


def histogram(counts: NDArray[np.int64]) -> list[Bin]:
    """0, then 1, 2-4, 5-9, 10-19, 20-49 …: three bins a decade, down to the last that has a column in it."""
    edges = [0, 1]
    while edges[-1] <= counts.max():
        edges.append(edges[-1] * 5 // 2 if str(edges[-1])[0] == "2" else edges[-1] * 2)
    place = np.searchsorted(np.array(edges), counts, side="right") - 1
    columns = np.bincount(place, minlength=len(edges) - 1)
    nonzeros = np.bincount(place, weights=counts, minlength=len(edges) - 1)
    return [Bin(low, high - 1, int(columns[k]), int(nonzeros[k])) for k, (low, high) in enumerate(pairwise(edges))]


def _values(data: NDArray[Any]) -> dict[str, float] | None:
    finite = data[np.isfinite(data)]
    if not len(finite):
        return None
    return _range(finite)


def _range(values: NDArray[Any]) -> dict[str, float]:
    mean = float(values.mean(dtype=np.float64))
    return {"least": float(values.min()), "mean": mean, "most": float(values.max())}


def _labels(y: NDArray[Any]) -> dict[str, Any]:
    distinct, counts = np.unique(y, return_counts=True)
    if len(distinct) <= MOST_LABELS:
        return dict(zip(map(label_text, distinct), counts.tolist(), strict=True))
    if y.dtype.kind == "U":
        return {"distinct": len(distinct)}
    return {"distinct": len(distinct), **_range(y)}


def _megabytes(X: Any) -> float:
    arrays = [X] if isinstance(X, np.ndarray) else [X.data, X.indices, X.indptr]
    return sum(array.nbytes for array in arrays) / 1e6


def _repeated_rows(rows: Any) -> int:
    """Equal rows have the same product with any vector, to the last bit; those that agree in one are compared."""
    rows.sort_indices()
    mixed = rows @ np.random.default_rng(0).normal(size=rows.shape[1])
    filled = np.flatnonzero(np.diff(rows.indptr))
    order = filled[np.argsort(mixed[filled], kind="stable")]
    same = mixed[order[1:]] == mixed[order[:-1]]
    suspects = order[np.concatenate([[False], same]) | np.concatenate([same, [False]])] if len(order) else order
    seen: set[tuple[bytes, bytes]] = set()
    for i in suspects:
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        seen.add((rows.indices[part].tobytes(), rows.data[part].tobytes()))
    return len(suspects) - len(seen)
