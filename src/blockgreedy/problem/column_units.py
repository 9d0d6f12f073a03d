"""Columns of the inner problem: about their means where these are far from 0, times powers of two where needed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockgreedy.base.cached import cached_property
from blockgreedy.base.forks import ModuleLock
from blockgreedy.problem.columns import as_dense, assemble
from blockgreedy.problem.design import Design
from blockgreedy.problem.tiled_columns import TiledColumns

Array = NDArray[np.float64]
Features = NDArray[np.intp]

_FAR = 64.0  # standard deviations between a mean and 0 from which a column is moved: two digits of sixteen
_SAMPLE = 32  # rows that show which columns might be so far from 0
_NEARLY_ALL = 0.85  # of these rows lie near one value then
_RESCALING = ModuleLock()  # folds share a matrix


class ColumnUnits:
    """Columns in the units of the inner problem; all problems on one matrix share them. Nothing in them changes."""

    def __init__(
        self,
        design: Design | TiledColumns,
        centred: bool,
        exponents: NDArray[np.int32] | None = None,
        is_for_some_rows: bool = False,
    ) -> None:
        """``is_for_some_rows``: values of the other rows do not count, and may be cut."""
        self._given, self._centred = design, centred
        self.exponents = exponents  # k_j, where a solver has asked for them
        self._is_for_some_rows = is_for_some_rows
        self._design: Design | TiledColumns | None = None
        self._rescaled: ColumnUnits | None = None

    @cached_property
    def shifts(self) -> tuple[Features, Array]:
        """The columns that lie far from 0 beside their spread, and their means."""
        if not self._centred:
            return np.zeros(0, dtype=np.intp), np.zeros(0)
        if isinstance(self._given, TiledColumns):
            return self._given.far_columns(_FAR)
        features = _candidates(self._given)
        chosen, means = [], []
        for j in features:
            column = as_dense(self._given.take(np.array([j])))[:, 0]
            exponent = math.frexp(float(np.max(np.abs(column))))[1]
            column = np.ldexp(column, -exponent)  # between 1/2 and 1, where no square overflows or vanishes
            mean = float(np.mean(column))
            if abs(mean) > _FAR * math.sqrt(float(np.mean(np.square(column - mean)))):
                chosen.append(j)
                # differences to it are exact in that type
                means.append(float(self._given.dtype.type(math.ldexp(mean, exponent))))
        return np.array(chosen, dtype=np.intp), np.array(means)

    @property
    def design(self) -> Design | TiledColumns:
        """The matrix itself where nothing is to change."""
        if self._design is None:
            features, means = self.shifts
            design: Design | TiledColumns = self._given
            if isinstance(design, TiledColumns):
                design = design.moved_by(features, means) if len(features) else design
            elif len(features):
                design = Design.of(_shifted(design.columns, features, means))
            if self.exponents is not None and not isinstance(design, TiledColumns):
                design = Design.of(_scaled(design.columns, self.exponents, self._is_for_some_rows))
            self._design = design
        return self._design

    def rescaled(self, used: NDArray[np.bool_] | None) -> ColumnUnits:
        """Units in which the largest entry of every column, of the rows that are used, lies between 1 and 2.

        Where all rows are used there is one such matrix for all who ask, from any thread.
        """
        if isinstance(self._given, TiledColumns):
            raise ValueError("X has columns whose values are too large or too small for float32; rescale them")
        if used is not None and not np.all(used):
            return self._rescaled_to(_largest(self._shifted_only()[used]), is_for_some_rows=True)
        with _RESCALING:
            if self._rescaled is None:
                self._rescaled = self._rescaled_to(_largest(self._shifted_only()))
            return self._rescaled

    @property
    def for_all_rows(self) -> ColumnUnits:
        """Units in which every row may count."""
        return ColumnUnits(self._given, self._centred) if self._is_for_some_rows else self

    def _shifted_only(self) -> Any:
        units = self if self.exponents is None else ColumnUnits(self._given, self._centred)
        return units.design.columns

    def _rescaled_to(self, largest: Array, is_for_some_rows: bool = False) -> ColumnUnits:
        exponents = np.where(largest > 0, np.frexp(largest)[1] - 1, 0).astype(np.int32)
        return ColumnUnits(self._given, self._centred, exponents, is_for_some_rows)


def _is_sparse(X: Any) -> bool:  # scipy's own would narrow the type to one without methods
    return bool(sp.issparse(X))


def _candidates(design: Design) -> Features:
    """Columns of which nearly all entries lie near one value, judged by a sample of rows."""
    n = design.shape[0]
    rows = np.arange(min(n, _SAMPLE)) * (n - 1) // max(min(n, _SAMPLE) - 1, 1)
    if design.is_sparse:
        features = design.long_columns(0.99 * n)
        if not len(features):
            return features
        sample = as_dense(design.take(features))[rows]
    else:
        features = np.arange(design.shape[1])
        sample = np.asarray(design.columns[rows], dtype=np.float64)
    # most entries have one sign then; in ordinary data no column is like that
    most = np.add.reduce(sample > 0, axis=0) / len(rows)
    if np.all((most > 1 - _NEARLY_ALL) & (most < _NEARLY_ALL)):
        return np.zeros(0, dtype=np.intp)
    middle = np.sort(sample, axis=0)[len(rows) // 2]
    with np.errstate(over="ignore"):
        near = np.abs(sample - middle) <= 0.1 * np.abs(middle)
    return np.asarray(features[(middle != 0) & (np.mean(near, axis=0) >= _NEARLY_ALL)])


def _shifted(X: Any, features: Features, means: Array) -> Any:
    shifts = means.astype(X.dtype)
    if not _is_sparse(X):
        X = X.copy(order="F")
        X[:, features] -= shifts
        return X
    n, counts = X.shape[0], np.diff(X.indptr)
    if np.all(counts[features] == n):
        data = X.data.copy()
        for j, shift in zip(features, shifts, strict=True):
            data[X.indptr[j] : X.indptr[j + 1]] -= shift
        return assemble(sp.csc_array, data, X.indices, X.indptr, X.shape)
    # columns with some zeros become full: the pieces between them are put together again
    pieces, begin, all_rows = [], 0, np.arange(n, dtype=np.int32)
    for j, shift in zip(features, shifts, strict=True):
        pieces.append(X[:, begin:j])
        column = np.asarray(X[:, [j]].toarray()[:, 0] - shift, dtype=X.dtype)
        pieces.append(sp.csc_array((column, all_rows, np.array([0, n])), shape=(n, 1)))
        begin = int(j) + 1
    stacked = sp.hstack([*pieces, X[:, begin:]], format="csc")
    return assemble(sp.csc_array, stacked.data, stacked.indices.astype(np.int32, copy=False), stacked.indptr, X.shape)


def _largest(X: Any) -> Array:
    """max |x| of every column."""
    X = X.tocsc() if _is_sparse(X) else X  # a choice of rows may have another format
    if not _is_sparse(X):
        return np.asarray(np.maximum(np.max(X, axis=0), -np.min(X, axis=0)), dtype=np.float64)
    largest = np.zeros(X.shape[1])
    filled = np.flatnonzero(np.diff(X.indptr))
    if len(filled):
        largest[filled] = np.maximum.reduceat(np.abs(X.data), X.indptr[filled])
    return largest


def _scaled(X: Any, exponents: NDArray[np.int32], is_cut: bool) -> Any:
    """``is_cut``: values beyond 2, which only rows that do not count have, could leave the range of float32."""
    by = -exponents if not _is_sparse(X) else np.repeat(-exponents, np.diff(X.indptr))
    with np.errstate(over="ignore"):
        values = np.ldexp(X.data if _is_sparse(X) else X, by)
    values = np.clip(values, -2, 2, out=values) if is_cut else values
    if not _is_sparse(X):
        return np.asfortranarray(values)
    return assemble(sp.csc_array, values, X.indices, X.indptr, X.shape)
