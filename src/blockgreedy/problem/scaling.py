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
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.problem.column_units import ColumnUnits

if TYPE_CHECKING:
    from blockgreedy.problem.null_model import NullModel
    from blockgreedy.problem.problem import Problem

Array = NDArray[np.float64]
Features = NDArray[np.intp]

_TARGET_FAR = 8.0  # the same of the target, which costs no copy of X
_TARGET_RANGE = 2**10  # between its inverse and this the target keeps its scale
_SQUARED = 1e100  # numbers between its inverse and this have squares that float64 adds up
_MOST_SCALE = 1e150  # of inner ridge scales: columns of 1e-150, whose weights l2 holds at 0; its square is a number
_MOST_EXPONENT = 1000  # of a power of two that is a number, as its inverse is: there are smaller targets than 2^-1023
_MOST = 1e25  # of inner penalties: beyond every gradient there is, and a number in float32


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
        unit = 1.0
        if not 1 / _SQUARED < largest < _SQUARED:
            unit = math.ldexp(1.0, min(-math.frexp(largest)[1], _MOST_EXPONENT))
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
            self._exponent = max(math.frexp(size)[1] - 1, -_MOST_EXPONENT)
            y = np.ldexp(y, -self._exponent)
        return y

    def _inner(self, problem: Problem, y: Array, offset: Array | None) -> Problem:
        inner = problem.copied("penalty", "lowest", "null_model", "alpha_max", "scaling")
        inner.design, inner.y, inner.offset = self.units.design, y, offset
        inner.column_units = ColumnUnits(inner.design, False)
        inner.loss = problem.loss.scaled(math.ldexp(1.0, -self._exponent))
        inner.alpha = self.alpha_in(problem.alpha)  # l2 is all in its weights
        inner.__dict__["scaling"] = _Identity(inner).detached()
        if self._exponents is not None:
            by = self._common - self._exponents
            u = np.ones(problem.n_features) if problem.penalty_weights is None else problem.penalty_weights
            with np.errstate(over="ignore"):
                scales = np.ldexp(1.0 if problem.ridge_scales is None else problem.ridge_scales, -self._exponents)
                finite = np.minimum(np.ldexp(u, by), _MOST / max(inner.alpha, 1 / _MOST))
            inner.penalty_weights = np.where(np.isinf(u), np.inf, finite)
            inner.ridge_scales = np.minimum(scales, _MOST_SCALE)
        for name in ("lower", "upper"):
            bound = np.asarray(getattr(problem, name))
            if not np.all(np.isinf(bound) | (bound == 0)):
                bound = np.broadcast_to(bound, problem.n_features)
                with np.errstate(over="ignore"):  # a bound beyond all numbers is none
                    bound = np.ldexp(bound, self._weight_exponents(slice(None)))
                setattr(inner, name, np.ascontiguousarray(bound))
        return inner

    def predictions_out(self, predictions: Array) -> Array:
        """Of rows without an offset, such as those that are held out."""
        if self._exponent == 0 and self._shift == 0:
            return predictions
        return np.asarray(np.ldexp(predictions, self._exponent) + self._shift)

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
        try:
            return math.ldexp(alpha, -self._exponent - self._common)
        except OverflowError:
            return sys.float_info.max  # beyond every gradient, as it was

    def penalty_in(self, features: Any, values: Array) -> float:
        """What the problem's own penalty says of its own weights, in inner units: no scaling can hide in it."""
        return self._problem.penalty_at(features).value(values, -2 * self._exponent)

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
        known: NullModel | None = self.inner.__dict__.get("null_model")
        if known is None or null.objective > 0:  # else squares of the targets have underflown on their way out
            known = null.restated(
                objective=math.ldexp(null.objective, -2 * self._exponent),
                floor=math.ldexp(null.floor, -2 * self._exponent),
            )
        return null.restated(
            coef=self.weights_in(null.features, null.coef),
            intercept=self.intercept_in(null.intercept, null.features, null.coef),
            objective=known.objective,
            floor=known.floor,
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
