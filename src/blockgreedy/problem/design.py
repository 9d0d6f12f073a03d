"""The matrix of a problem. Rows, as most users hold them, become columns when somebody needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockgreedy.base.design import TiledDesign
from blockgreedy.base.forks import ModuleLock
from blockgreedy.problem.columns import (
    Columns,
    as_columns,
    as_rows,
    chosen_columns,
    column_norms,
    columns_of_rows,
    combined_exactly,
)
from blockgreedy.problem.passes import (
    column_scales,
    combine_some_columns,
    core_matrix,
    release_spare_memory,
    squared_norms,
)
from blockgreedy.problem.some_columns import SomeColumns
from blockgreedy.problem.tiled_columns import TiledColumns

if TYPE_CHECKING:
    from blockgreedy import _core
    from blockgreedy.problem.problem import Problem

_FEW = 50_000  # entries that are turned at once: there is nothing to save
_CACHED = 2**17  # numbers of a dense matrix that are worked on at a time
_CANCELLED = 100  # sizes that add up to so many times the sum: columns nearly cancel
_WIDE = 2**18  # columns; tables of fewer are small beside what a solve takes, and fresh memory costs time
_TURNING = ModuleLock()  # folds share a matrix


class Design:
    """X in the forms that somebody has asked for so far. Nothing that it has said changes."""

    is_tiled = False

    def __init__(self, X: Any, n_threads: int | None = None) -> None:
        self._n_threads = n_threads
        self._columns: Columns = None
        self._some: SomeColumns | None = None  # those of the last solve
        self._rows: _core.Rows | None = None
        is_sparse: bool = sp.issparse(X)
        if is_sparse and X.format == "csr" and np.size(X.data) > _FEW and 0 not in X.shape:
            given, self._rows = as_rows(X, n_threads)
        else:
            given = self._columns = as_columns(X, n_threads)
        self.shape: tuple[int, int] = given.shape
        self.dtype: np.dtype[Any] = given.dtype
        self.size = int(given.size)  # of sparse X: the entries stored
        self.is_sparse = bool(sp.issparse(given))

    @classmethod
    def of(cls, columns: Columns) -> Self:
        """Of canonical columns, without another check."""
        self = object.__new__(cls)
        self._n_threads, self._columns, self._some, self._rows = None, columns, None, None
        self.shape, self.dtype, self.size = columns.shape, columns.dtype, int(columns.size)
        self.is_sparse = bool(sp.issparse(columns))
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Design.of, (self.columns,)

    @property
    def columns(self) -> Columns:
        """All of them: canonical CSC or a Fortran-ordered array."""
        with _TURNING:
            return self._all()

    def _all(self) -> Columns:
        if self._columns is None:
            assert self._rows is not None
            self._some = None  # first: there need not be room for both
            self._columns = columns_of_rows(self._rows, None, self.shape, self._n_threads)
        return self._columns

    def products(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """x_j·θ of every column."""
        return np.asarray(self.columns.T @ theta, dtype=np.float64)

    def scales(self, row_weights: NDArray[np.float64] | None, centred: bool, n_threads: int) -> NDArray[np.float64]:
        """Standard deviation of every column, or the root of its mean square; 0 for a column that does not vary."""
        return column_scales(core_matrix(self.columns), row_weights, centred, n_threads)

    def norms(self) -> NDArray[np.float64]:
        return np.asarray(column_norms(self.columns))

    @property
    def is_of_rows(self) -> bool:
        """Whether there is a choice of columns to be made: ``near``."""
        return self._rows is not None

    def take(self, features: NDArray[np.integer[Any]]) -> Columns:
        """A copy of these columns."""
        with _TURNING:
            if self._columns is not None:
                return chosen_columns(self._columns, features)
            if self._some is not None and self._some.has(features):
                return chosen_columns(self._some.columns, features)
            assert self._rows is not None
            kept = np.zeros(self.shape[1], dtype=np.uint8)
            kept[features] = 1
            return chosen_columns(columns_of_rows(self._rows, kept, self.shape, self._n_threads), features)

    def sum_and_size(
        self, features: NDArray[np.integer[Any]], w: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], float]:
        """Of sparse X: X[:, features] @ w and Σ|w_j|‖x_j‖; columns that are there are not copied."""
        with _TURNING:
            columns = self._columns
            if columns is None and self._some is not None and self._some.has(features):
                columns = self._some.columns
        if columns is None:
            columns, features = self.take(features), np.arange(len(features))
        matrix = core_matrix(columns)
        size = float(np.sum(np.abs(w) * np.sqrt(squared_norms(matrix, features))))
        return combine_some_columns(matrix, features, w), size

    def long_columns(self, least: float) -> NDArray[np.intp]:
        """Of sparse X: those with at least so many entries."""
        with _TURNING:
            if self._columns is not None:
                return np.flatnonzero(np.diff(self._columns.indptr) >= least)
            assert self._rows is not None
            return self._rows.long_columns(int(np.ceil(least))).astype(np.intp, copy=False)

    def near(
        self, problem: Problem, theta: NDArray[np.float64], features: NDArray[np.integer[Any]], n_threads: int
    ) -> SomeColumns | None:
        """What a solve of this problem is to begin with at θ and weights of these features; None: all columns.

        The same whether all columns have been made meanwhile or not: a solve is to give the same bits each time.
        """
        with _TURNING:
            self._some = None
            if self._rows is None:
                return None
            some = SomeColumns(self._rows, problem, n_threads)
            if some.begin(theta, features):
                self._some = some
            else:
                self._all()
                self._rows = None
                if self.shape[1] >= _WIDE:  # tables of all columns would lie idle beside the whole matrix
                    release_spare_memory()
            return self._some


def design_of(X: Any, n_threads: int | None = None) -> Design | TiledColumns:
    """Of what users hand over: any matrix, or one in tiles, which may be larger than memory."""
    return TiledColumns(X, n_threads) if isinstance(X, TiledDesign) else Design(X, n_threads)


def combined(
    design: Design | TiledColumns, features: NDArray[np.integer[Any]], w: NDArray[np.float64], intercept: float
) -> NDArray[np.float64]:
    """X[:, features] @ w + intercept in float64."""
    total, size = _sum_and_size(design, features, w)
    total += intercept
    if size > _CANCELLED * np.sqrt(np.sum(total**2)):
        return combined_exactly(design.take(features), w, intercept)
    return total


def _sum_and_size(
    design: Design | TiledColumns, features: NDArray[np.integer[Any]], w: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """X[:, features] @ w and Σ|w_j|‖x_j‖.

    Of a dense array a few columns at a time, which stay in the cache: all in float64 would be a second matrix.
    """
    if design.is_sparse:
        return design.sum_and_size(features, w)
    columns, total, size = design.columns, np.zeros(design.shape[0]), 0.0
    width = max(1, _CACHED // design.shape[0])
    for first in range(0, len(features), width):
        part = slice(first, first + width)
        own = np.asarray(columns[:, features[part]], dtype=np.float64)
        total += own @ w[part]
        size += float(np.sum(np.abs(w[part]) * np.sqrt(np.einsum("ij,ij->j", own, own))))
    return total, size
