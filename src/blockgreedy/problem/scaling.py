"""The units in which a problem is solved: columns about their means, columns and targets times powers of two.

A year, a price in cents or a timestamp is an ordinary column, and an ordinary target. Taken as it is, its products
lose the digits that its mean occupies, and values far from 1 leave the range of float32, in which the solver keeps
its models. With an intercept a column may be moved about its mean, and so may the target; a power of two costs no
digit.

    x'_j = (x_j − shift_j)·2^−k_j      y' = (y − offset − shift)·2^−s      w'_j = w_j·2^(k_j−s)

Ordinary data is left alone: the inner problem is then the problem itself.
"""

from __future__ import annotations

import math
import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockgreedy.problem.columns import as_dense, assemble
from blockgreedy.problem.design import Design

if TYPE_CHECKING:
    from blockgreedy.problem.null_model import NullModel
    from blockgreedy.problem.problem import Problem

Array = NDArray[np.float64]
Features = NDArray[np.intp]

_FAR = 64.0  # standard deviations between a mean and 0 from which a column is moved: two digits of sixteen
_TARGET_FAR = 8.0  # the same of the target, which costs no copy of X
_SAMPLE = 32  # rows that show which columns might be so far from 0
_NEARLY_ALL = 0.85  # of these rows lie near one value then
_TARGET_RANGE = 2**10  # between its inverse and this the target keeps its scale
_SQUARED = 1e100  # numbers between its inverse and this have squares that float64 adds up
_RESCALING = threading.Lock()  # folds share a matrix
_MOST_RIDGE = 1e300  # of inner ridge weights: columns of 1e-150, whose weights it holds at 0
_MOST = 1e25  # of inner penalties: beyond every gradient there is, and a number in float32


class ColumnUnits:
    """Columns in the units of the inner problem; all problems on one matrix share them. Nothing in them changes."""

    def __init__(self, design: Design, centred: bool, exponents: NDArray[np.int32] | None = None) -> None:
        self._given, self._centred = design, centred
        self.exponents = exponents  # k_j, where a solver has asked for them
        self._design: Design | None = None
        self._rescaled: ColumnUnits | None = None

    @cached_property
    def shifts(self) -> tuple[Features, Array]:
        """The columns that lie far from 0 beside their spread, and their means."""
        features = _candidates(self._given) if self._centred else np.zeros(0, dtype=np.intp)
        chosen, means = [], []
        for j in features:
            column = as_dense(self._given.take(np.array([j])))[:, 0]
            unit = math.ldexp(1.0, -math.frexp(float(np.max(np.abs(column))))[1])
            mean = float(np.mean(column * unit)) / unit
            spread = math.sqrt(float(np.mean(np.square((column - mean) * unit)))) / unit
            if abs(mean) > _FAR * spread:
                chosen.append(j)
                means.append(float(self._given.dtype.type(mean)))  # differences to it are exact in that type
        return np.array(chosen, dtype=np.intp), np.array(means)

    @property
    def design(self) -> Design:
        """The matrix itself where nothing is to change."""
        if self._design is None:
            features, means = self.shifts
            design = self._given
            if len(features):
                design = Design.of(_shifted(design.columns, features, means))
            if self.exponents is not None:
                design = Design.of(_scaled(design.columns, self.exponents))
            self._design = design
        return self._design

    def rescaled(self, used: NDArray[np.bool_] | None) -> ColumnUnits:
        """Units in which the largest entry of every column, of the rows that are used, lies between 1 and 2.

        Where all rows are used there is one such matrix for all who ask, from any thread.
        """
        if used is not None and not np.all(used):
            return self._rescaled_to(_largest(self._shifted_only()[used]))
        with _RESCALING:
            if self._rescaled is None:
                self._rescaled = self._rescaled_to(_largest(self._shifted_only()))
            return self._rescaled

    def _shifted_only(self) -> Any:
        units = self if self.exponents is None else ColumnUnits(self._given, self._centred)
        return units.design.columns

    def _rescaled_to(self, largest: Array) -> ColumnUnits:
        exponents = np.where(largest > 0, np.frexp(largest)[1] - 1, 0).astype(np.int32)
        return ColumnUnits(self._given, self._centred, exponents)


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


def _scaled(X: Any, exponents: NDArray[np.int32]) -> Any:
    if not _is_sparse(X):
        return np.asfortranarray(np.ldexp(X, -exponents))
    data = np.ldexp(X.data, np.repeat(-exponents, np.diff(X.indptr)))
    return assemble(sp.csc_array, data, X.indices, X.indptr, X.shape)


class Scaling:
    """A problem and the inner problem that is solved in its place; takes points from one to the other."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.units: ColumnUnits = problem.column_units
        self._shift, self._exponent = 0.0, 0  # of the target
        self._offset_shift = 0.0  # of a classifier's offset
        y, offset = problem.y, problem.offset
        if not problem.loss.depends_on_residual:
            if offset is not None and problem.fit_intercept:
                self._offset_shift = problem.mean(offset)
                offset = offset - self._offset_shift
        else:
            y, offset = (y if offset is None else y - offset), None
            y = self._in_target_units(problem, y)
        self._exponents = self.units.exponents
        self._common = self._common_exponent(problem.alpha)
        self.is_identity = (
            y is problem.y and offset is problem.offset and self._exponents is None and not len(self.units.shifts[0])
        )
        self.inner = problem if self.is_identity else self._inner(problem, y, offset)

    def detached(self) -> Scaling:
        """For the problem to keep: without a way back to it, which would leave X to the garbage collector."""
        other = object.__new__(type(self))
        other.__dict__.update({name: value for name, value in self.__dict__.items() if value is not self._problem})
        return other

    def of(self, problem: Problem) -> Scaling:
        """A detached one, for its problem."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._problem = problem
        if self.is_identity:
            other.inner = problem
        return other

    def _common_exponent(self, alpha: float) -> int:
        """What is taken out of alpha instead of out of the penalty weights: so much that alpha is about 1."""
        if self._exponents is None:
            return 0
        return math.frexp(alpha)[1] - self._exponent if alpha > 0 else int(np.median(self._exponents))

    def _in_target_units(self, problem: Problem, y: Array) -> Array:
        lowest, highest = float(np.min(y)), float(np.max(y))
        largest = max(highest, -lowest)
        if largest == 0 or not np.isfinite(largest):
            return y
        # squares must neither overflow nor vanish
        unit = 1.0 if 1 / _SQUARED < largest < _SQUARED else math.ldexp(1.0, -math.frexp(largest)[1])
        counts = problem.row_weights is None or problem.row_weights > 0

        def scaled(values: Array) -> Array:
            return values if unit == 1 else values * unit

        def centred(shift: float) -> Array:
            return y - shift if counts is True else np.where(counts, y - shift, 0.0)

        if problem.fit_intercept:
            if counts is not True:
                lowest, highest = float(np.min(y[counts])), float(np.max(y[counts]))
            mean = problem.mean(scaled(y)) / unit
            mean += problem.mean(scaled(y - mean)) / unit
            mean = min(max(mean, lowest), highest)
            spread = math.sqrt(problem.mean(np.square(scaled(y - mean)))) / unit
            if abs(mean) > _TARGET_FAR * spread:
                self._shift = mean
                y = centred(mean)
        size = math.sqrt(problem.mean(np.square(scaled(y)))) / unit
        if size > 0 and not 1 / _TARGET_RANGE <= size <= _TARGET_RANGE:
            self._exponent = math.frexp(size)[1] - 1
            y = np.ldexp(y, -self._exponent)
        return y

    def _inner(self, problem: Problem, y: Array, offset: Array | None) -> Problem:
        inner = problem.copied("penalty", "null_model", "alpha_max", "scaling")
        inner.design, inner.y, inner.offset = self.units.design, y, offset
        inner.column_units = ColumnUnits(inner.design, False)
        inner.loss = problem.loss.scaled(math.ldexp(1.0, -self._exponent))
        inner.alpha = self.alpha_in(problem.alpha)  # l2 is all in its weights
        inner.__dict__["scaling"] = _Identity(inner).detached()
        if self._exponents is not None:
            by = self._common - self._exponents
            u = np.ones(problem.n_features) if problem.penalty_weights is None else problem.penalty_weights
            with np.errstate(over="ignore"):
                ridge = np.ldexp(1.0 if problem.l2_weights is None else problem.l2_weights, -2 * self._exponents)
                finite = np.minimum(np.ldexp(u, by), _MOST / max(inner.alpha, 1 / _MOST))
            inner.penalty_weights = np.where(np.isinf(u), np.inf, finite)
            inner.l2_weights = np.minimum(ridge, _MOST_RIDGE)
        for name in ("lower", "upper"):
            bound = np.asarray(getattr(problem, name))
            if not np.all(np.isinf(bound) | (bound == 0)):
                bound = np.broadcast_to(bound, problem.n_features)
                setattr(inner, name, np.ascontiguousarray(np.ldexp(bound, self._weight_exponents(slice(None)))))
        return inner

    def with_alpha(self, problem: Problem) -> Scaling:
        """For the same problem at another alpha and l2."""
        if self.is_identity:
            return _Identity(problem)
        other = object.__new__(Scaling)
        other.__dict__.update(self.__dict__)
        other._problem = problem
        other.inner = self.inner.with_alpha(self.alpha_in(problem.alpha), problem.l2)
        return other

    def _weight_exponents(self, features: Any) -> Any:
        """What a weight is multiplied with, as a power of two, to become an inner one."""
        return -self._exponent if self._exponents is None else self._exponents[features] - self._exponent

    def alpha_in(self, alpha: float) -> float:
        return math.ldexp(alpha, -self._exponent - self._common)

    def penalty_in(self, features: Any, values: Array) -> float:
        """What the problem's own penalty says of its own weights, in inner units: no scaling can hide in it."""
        return math.ldexp(self._problem.penalty_at(features).value(values), -2 * self._exponent)

    def alpha_out(self, alpha: float) -> float:
        return math.ldexp(alpha, self._exponent + self._common)

    def value_out(self, value: float) -> float:
        """An objective, a gap."""
        try:
            return math.ldexp(value, 2 * self._exponent)
        except OverflowError:
            return math.inf

    def dual_in(self, theta: Array) -> Array:
        return theta if self._exponent == 0 else np.ldexp(theta, -self._exponent)

    def dual_out(self, theta: Array) -> Array:
        return theta if self._exponent == 0 else np.ldexp(theta, self._exponent)

    def weights_in(self, features: Any, values: Array) -> Array:
        return values if self.is_identity else np.asarray(np.ldexp(values, self._weight_exponents(features)))

    def weights_out(self, features: Any, values: Array) -> Array:
        if self.is_identity:
            return values
        with np.errstate(over="ignore"):
            outer: Array = np.ldexp(values, -self._weight_exponents(features))
        if not np.all(np.isfinite(outer)):
            raise ValueError(
                "the weights of this problem are too large for float64: the values of X are too small beside y; "
                "rescale X or y"
            )
        return outer

    def coef_in(self, coef: Array) -> Array:
        """All weights at once."""
        return self.weights_in(slice(None), coef)

    def intercept_in(self, intercept: float, features: Any, values: Array) -> float:
        """The inner intercept of a point with this intercept and these weights, both the problem's own."""
        if self.is_identity:
            return intercept
        moved = math.fsum([intercept, -self._shift, self._offset_shift, *self._absorbed(features, values)])
        return math.ldexp(moved, -self._exponent)

    def intercept_out(self, intercept: float, features: Any, values: Array) -> float:
        """The other way round; the weights are the problem's own here too."""
        if self.is_identity:
            return intercept
        absorbed = [-part for part in self._absorbed(features, values)]
        return math.fsum([math.ldexp(intercept, self._exponent), self._shift, -self._offset_shift, *absorbed])

    def _absorbed(self, features: Any, values: Array) -> list[float]:
        """Σ shift_j·w_j as numbers that add up to it exactly."""
        shifted, means = self.units.shifts
        if not len(shifted):
            return []
        if isinstance(features, slice):
            weights = values[shifted]
        else:
            weights = np.zeros(len(shifted))
            _, here, there = np.intersect1d(shifted, features, return_indices=True)
            weights[here] = values[there]
        high = means * weights
        return [*high.tolist(), *_product_errors(means, weights, high).tolist()]

    def null_out(self, null: NullModel) -> NullModel:
        """The inner null model in the problem's units."""
        if self.is_identity:
            return null
        coef = self.weights_out(null.features, null.coef)
        return null.restated(
            coef=coef,
            intercept=self.intercept_out(null.intercept, null.features, coef),
            objective=self.value_out(null.objective),
            floor=self.value_out(null.floor),
            dual=self.dual_out(null.dual),
        )

    def null_in(self, null: NullModel) -> NullModel:
        """The problem's null model in inner units."""
        if self.is_identity:
            return null
        return null.restated(
            coef=self.weights_in(null.features, null.coef),
            intercept=self.intercept_in(null.intercept, null.features, null.coef),
            objective=math.ldexp(null.objective, -2 * self._exponent),
            floor=math.ldexp(null.floor, -2 * self._exponent),
            dual=self.dual_in(null.dual),
        )


class _Identity(Scaling):
    """Of an inner problem: there is nothing more to scale."""

    def __init__(self, problem: Problem) -> None:
        self._problem = self.inner = problem
        self.units, self.is_identity = problem.column_units, True
        self._shift, self._exponent, self._offset_shift = 0.0, 0, 0.0
        self._exponents, self._common = None, 0


def _product_errors(a: Array, b: Array, product: Array) -> Array:
    """a·b − product, exactly: Dekker's product of two halves each."""

    def halves(v: Array) -> tuple[Array, Array]:
        big = 134217729.0 * v  # 2^27 + 1
        high = big - (big - v)
        return high, v - high

    with np.errstate(over="ignore", invalid="ignore"):
        (a1, a2), (b1, b2) = halves(a), halves(b)
        errors = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2
    return np.where(np.isfinite(errors), errors, 0.0)
