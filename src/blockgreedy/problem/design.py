"""The matrix of a problem. Rows, as most users hold them, become columns when somebody needs them, and only those.

Turning rows into columns takes as long as a solve. Of a loss with bounded derivative most columns can never get a
weight: |x_j·θ| ≤ bound·Σ_i ω_i|x_ij|, and one pass over the rows, which has to check them anyway, adds up these sums.
So a solver gets a matrix in which columns below their threshold are left empty. Their weights are 0 at the solution,
and they keep their constraints at every dual point in the domain of the loss: a proof without them is a proof.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockgreedy.problem.columns import Columns, all_columns, as_columns, as_rows, column_norms, kept_columns

if TYPE_CHECKING:
    from blockgreedy import _core
    from blockgreedy.problem.problem import Problem

_FEW = 50_000  # entries that are turned at once: there is nothing to save
_MOST_KEPT = 0.8  # of the entries; beyond that all columns are made, which serve every later solve as well
_CACHED = 2**17  # numbers of a dense matrix that are worked on at a time
_TURNING = threading.Lock()  # folds share a matrix


@dataclass(frozen=True)
class SolverColumns:
    """A matrix as a solver gets it, some of its columns perhaps left empty."""

    columns: Columns
    runs: tuple[NDArray[np.int64], int] | None = None  # of all columns, if some are: ColumnRuns


class Design:
    """X in the forms that somebody has asked for so far. Nothing that it has said changes."""

    def __init__(self, X: Any, n_threads: int | None = None) -> None:
        self._n_threads = n_threads
        self._columns: Columns = None
        self._kept: tuple[float, Any, SolverColumns] | None = None  # the limits that a reduced matrix was made for
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
        self._n_threads, self._columns, self._kept, self._rows = None, columns, None, None
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
        if self._rows is not None:
            self._columns = all_columns(self._rows, self.shape, self.dtype, self._n_threads)
            self._rows = self._kept = None
        return self._columns

    def take(self, features: NDArray[np.integer[Any]]) -> Columns:
        """A copy of these columns."""
        with _TURNING:
            if self._kept is not None and self._rows is not None and self._rows.has_kept(_numbers(features)):
                return self._kept[-1].columns[:, features]
            return self._all()[:, features]

    def long_columns(self, least: float) -> NDArray[np.intp]:
        """Of sparse X: those with at least so many entries."""
        with _TURNING:
            if self._rows is not None:
                return self._rows.long_columns(int(np.ceil(least))).astype(np.intp, copy=False)
            return np.flatnonzero(np.diff(self._columns.indptr) >= least)

    def above(self, limit: float, weights: Any, features: NDArray[np.integer[Any]]) -> SolverColumns:
        """The columns with Σ_i|x_ij| > limit·weights_j (None: 1), these features, and perhaps others."""
        with _TURNING:
            rows, always = self._rows, _numbers(features)
            if rows is None:
                return SolverColumns(self._columns)
            if self._kept is not None:
                lowest, same, made = self._kept
                is_enough = lowest <= limit and same is weights and rows.has_kept(always)
                return made if is_enough else SolverColumns(self._all())
            n_entries = rows.keep_above(limit, weights, always)
            columns = None
            if n_entries <= _MOST_KEPT * self.size:
                columns = kept_columns(rows, n_entries, self.shape, self.dtype, self._n_threads)
            if columns is None:
                return SolverColumns(self._all())
            made = SolverColumns(columns, (rows.cuts(), self.size))
            self._kept = limit, weights, made
            return made


def combined(design: Design, features: NDArray[np.integer[Any]], w: Any) -> tuple[NDArray[np.float64], float]:
    """X[:, features] @ w in float64, and Σ|w_j|‖x_j‖.

    Of a dense array a few columns at a time, which stay in the cache: all in float64 would be a second matrix.
    """
    if design.is_sparse:
        columns = design.take(features)
        return np.asarray(columns @ w, dtype=np.float64), float(np.sum(np.abs(w) * column_norms(columns)))
    columns, total, size = design.columns, np.zeros(design.shape[0]), 0.0
    width = max(1, _CACHED // design.shape[0])
    for first in range(0, len(features), width):
        part = slice(first, first + width)
        own = np.asarray(columns[:, features[part]], dtype=np.float64)
        total += own @ w[part]
        size += float(np.sum(np.abs(w[part]) * np.sqrt(np.einsum("ij,ij->j", own, own))))
    return total, size


def solver_columns(problem: Problem, least_alpha: float, features: NDArray[np.integer[Any]]) -> SolverColumns:
    """What a solver needs of X for alphas from ``least_alpha`` up, if it starts with weights of these features."""
    bound = problem.loss.derivative_bound
    if not np.isfinite(bound):
        return SolverColumns(problem.X)
    heaviest = 1 / problem.n_samples if problem.row_weights is None else float(np.max(problem.row_weights))
    limit = min(least_alpha, problem.alpha) / (bound * heaviest)
    return problem.design.above(limit, problem.penalty_weights, features)


def _numbers(features: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
    return np.ascontiguousarray(features, dtype=np.int32)
