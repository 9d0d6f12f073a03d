"""The problem that is solved, and what can be said of any point of it.

::

    min over w, b   Σ_i ω_i loss(y_i, (Xw)_i + b + offset_i)  +  alpha Σ_j u_j |w_j|  +  l2/2 ‖w‖²
    subject to      lower ≤ w ≤ upper

ω_i = s_i/Σs are the sample weights (1/n by default, a plain mean); b is 0 unless an intercept is fitted.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from blockgreedy.backends.cpu import CpuModel, resolve_threads
from blockgreedy.certificate import dual_value, scaled_dual_point
from blockgreedy.columns import as_columns
from blockgreedy.losses import make_loss
from blockgreedy.null_model import NullModel, fit_null_model
from blockgreedy.penalties import Penalty

Array = NDArray[np.float64]


class Problem:
    """L1-regularised loss minimisation on one matrix.

    Parameters
    ----------
    X : sparse (any scipy format) or dense, n × p
        float32 and float64 are kept; canonical CSC and Fortran-ordered arrays are not copied.
    y : array of n targets
        For the classification losses any two values; the larger one is the positive class.
    loss : "squared", "logistic", "squared_hinge", "huber"
    alpha : float ≥ 0
        Weight of the L1 norm against the *mean* loss (λ in the paper, ``Lasso(alpha)`` in scikit-learn).
    l2 : float ≥ 0
        Adds l2/2·‖w‖².
    sample_weight : array of n, optional
        s_i ≥ 0, not all 0; only their ratios matter. A weight of k is a row repeated k times, 0 a row left out.
    penalty_weights : array of p, optional
        u_j ≥ 0; 0 leaves a feature unpenalised, inf excludes it.
    positive : bool
        Only weights ≥ 0; short for ``lower=0``.
    lower, upper : float or array of p, optional
        Bounds with lower ≤ 0 ≤ upper.
    fit_intercept : bool
        Adds an intercept, free of penalty (l2 included) and of bounds.
    offset : float or array of n, optional
        Added to every prediction; not fitted.
    huber_delta : float
        Where the Huber loss turns linear.

    Attributes
    ----------
    row_weights : array of n, or None
        ω_i = s_i/Σs; None where all are 1/n. Rows of weight 0 hold 0 as offset and as regression target, so that no
        value of theirs can overflow into a sum.
    offset : array of n, or None
        None where it is 0 everywhere.
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        *,
        loss: str = "squared",
        alpha: float,
        l2: float = 0.0,
        sample_weight: ArrayLike | None = None,
        penalty_weights: ArrayLike | None = None,
        positive: bool = False,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        fit_intercept: bool = False,
        offset: ArrayLike | None = None,
        standardize: bool = False,
        huber_delta: float = 1.35,
    ) -> None:
        if standardize:
            raise NotImplementedError("standardize is not available yet; it comes with the estimators")
        self.loss = make_loss(loss, huber_delta)
        self.alpha = _non_negative("alpha", alpha)
        self.l2 = _non_negative("l2", l2)
        self.X = as_columns(X)
        self.n_samples, self.n_features = self.X.shape
        self.y, self.classes = _targets(y, self.n_samples, self.loss.is_classifier)
        self.row_weights = _row_weights(sample_weight, self.n_samples)
        self.offset = _offset(offset, self.n_samples)
        if self.row_weights is not None:
            self.y, self.offset = _silence(self.row_weights == 0, self.y, self.offset, self.loss.is_classifier)
        self.fit_intercept = _flag("fit_intercept", fit_intercept)
        self.penalty_weights = _weights(penalty_weights, self.n_features)
        if positive and lower is not None:
            raise ValueError("positive=True and lower=… say the same thing twice; give one of them")
        self.lower = _bound("lower", 0.0 if positive else lower, self.n_features, -1.0)
        self.upper = _bound("upper", upper, self.n_features, 1.0)

    def __repr__(self) -> str:
        kind = "sparse" if sp.issparse(self.X) else "dense"
        return (
            f"Problem({self.n_samples} × {self.n_features} {kind} {self.X.dtype}, loss={self.loss.name!r}, "
            f"alpha={self.alpha:g}{f', l2={self.l2:g}' if self.l2 else ''}"
            f"{', fit_intercept=True' if self.fit_intercept else ''})"
        )

    def with_alpha(self, alpha: float) -> Problem:
        """The same problem at another alpha; shares X and y."""
        other = object.__new__(Problem)
        other.__dict__.update(self.__dict__)
        other.__dict__.pop("penalty", None)
        other.alpha = _non_negative("alpha", alpha)
        return other

    def with_features(self, features: NDArray[np.integer[Any]], alpha: float) -> Problem:
        """The problem of these features alone; a copy of their columns."""
        other = self.with_alpha(alpha)
        for name in ("null_model", "alpha_max"):
            other.__dict__.pop(name, None)
        columns = self.X[:, features]
        other.X = columns if sp.issparse(columns) else np.asfortranarray(columns)
        other.n_features = len(features)
        for name in ("penalty_weights", "lower", "upper"):
            value = getattr(self, name)
            setattr(other, name, value[features] if isinstance(value, np.ndarray) else value)
        return other

    @cached_property
    def penalty(self) -> Penalty:
        """The penalty in NumPy, one entry per feature."""
        return self.penalty_at(np.arange(self.n_features))

    def penalty_at(self, features: NDArray[np.integer[Any]]) -> Penalty:
        """The penalty of these features alone."""

        def pick(values: float | Array | None) -> Array:
            if isinstance(values, np.ndarray):
                return np.asarray(values[features])
            return np.full(len(features), 1.0 if values is None else values)

        u = pick(self.penalty_weights)
        excluded = np.isinf(u)
        lower, upper = np.where(excluded, 0.0, pick(self.lower)), np.where(excluded, 0.0, pick(self.upper))
        return Penalty(self.alpha * np.where(excluded, 0.0, u), self.l2, lower, upper)

    # The two column passes that a certificate needs; backends.cpu.CpuModel has the same pair, threaded.

    def alpha_needed(self, theta: Array, at_null: bool = False) -> float:
        """The smallest alpha for which ``theta`` satisfies every inequality of the dual.

        With ``at_null``: for which weights of 0 are optimal, so that features with room up to a bound count too.
        """
        correlation = -(self.X.T @ theta)
        room = np.where(correlation > 0, self.penalty.upper, -self.penalty.lower)
        u = np.ones(self.n_features) if self.penalty_weights is None else self.penalty_weights
        counted = (room > 0 if at_null else np.isinf(room)) & (u > 0) & np.isfinite(u)
        return float(np.max(np.abs(correlation[counted]) / u[counted], initial=0.0))

    def penalty_conjugate(self, theta: Array, scale: float) -> float:
        """Σ_j r_j*(−scale·x_j·theta), without the unpenalised features, which certificate.py takes care of."""
        held = np.flatnonzero(~self.penalty.is_free)
        return float(np.sum(self.penalty.at(held).conjugate(-scale * (self.X.T @ theta)[held])))

    # Sums over rows. Everything that sums over rows goes through these three.

    def mean(self, values: Array) -> float:
        """Σ_i ω_i values_i"""
        # not as a dot product: BLAS may wake its threads for it, which takes longer than the sum
        return float(np.mean(values) if self.row_weights is None else np.sum(self.row_weights * values))

    def weigh(self, values: Array) -> Array:
        """ω_i values_i: loss derivatives → dual point"""
        return values / self.n_samples if self.row_weights is None else self.row_weights * values

    def unweigh(self, theta: Array) -> Array:
        """theta_i/ω_i, 0 where ω_i = 0: dual point → argument of the loss's conjugate"""
        if self.row_weights is None:
            return np.asarray(theta * self.n_samples)
        ratio: Array = np.zeros(self.n_samples)
        return np.divide(theta, self.row_weights, out=ratio, where=self.row_weights > 0)

    def decision(self, w: ArrayLike, intercept: float = 0.0) -> Array:
        """Predictions Xw + intercept + offset in float64."""
        predictions = np.asarray(self.X @ _point("w", w, self.n_features), dtype=np.float64)
        predictions += self._intercept(intercept)
        if self.offset is not None:
            predictions += self.offset
        return predictions

    def dual_at(self, predictions: Array) -> Array:
        """θ_i = ω_i loss′(y_i, predictions_i): the dual point that belongs to predictions, feasible at a solution."""
        return self.weigh(self.loss.deriv(self.y, predictions))

    def objective(self, w: ArrayLike, intercept: float = 0.0) -> float:
        w = _point("w", w, self.n_features)
        return self.mean(self.loss.value(self.y, self.decision(w, intercept))) + self.penalty.value(w)

    def gradient(self, w: ArrayLike, intercept: float = 0.0) -> Array:
        """Gradient of the mean loss with respect to w."""
        return np.asarray(self.X.T @ self.dual_at(self.decision(w, intercept)), dtype=np.float64)

    def duality_gap(self, w: ArrayLike, intercept: float = 0.0, dual: ArrayLike | None = None) -> float:
        """objective(w, intercept) − dual value: an upper bound on the error of this point.

        ``dual`` is an n-vector θ; infeasible beyond rounding (1e-12) it proves nothing and the gap is inf.
        None takes the rescaled residual of the point, which is loose close to the solution.
        """
        if dual is None:
            _, value = scaled_dual_point(self, self.decision(w, intercept), self)
        else:
            value = dual_value(self, _point("dual", dual, self.n_samples), self)
        return self.objective(w, intercept) - value

    def kkt_residual(self, w: ArrayLike, intercept: float = 0.0) -> float:
        """Largest distance of −gradient to the penalty's subdifferential: 0 exactly at a solution.

        With an intercept its own derivative counts too.
        """
        w = _point("w", w, self.n_features)
        theta = self.dual_at(self.decision(w, intercept))
        largest = float(np.max(self.penalty.subgradient_distance(w, np.asarray(self.X.T @ theta, dtype=np.float64))))
        return max(largest, abs(float(np.sum(theta)))) if self.fit_intercept else largest

    def _intercept(self, intercept: float) -> float:
        number = float(intercept) if np.ndim(intercept) == 0 and np.isreal(intercept) else float("nan")
        if not np.isfinite(number):
            raise ValueError(f"intercept={intercept!r} must be a finite number; a dual point goes in as dual=…")
        if number != 0 and not self.fit_intercept:
            raise ValueError(f"intercept={intercept!r} needs a problem with fit_intercept=True; this one has none")
        return number

    @property
    def has_unpenalised(self) -> bool:
        """Whether the null model has weights of its own."""
        return self.penalty_weights is not None and bool(np.any(self.penalty_weights == 0))

    @cached_property
    def null_model(self) -> NullModel:
        """The best model whose penalised weights are all zero."""
        return fit_null_model(self)

    @cached_property
    def alpha_max(self) -> float:
        """The smallest alpha at which the null model is a solution."""
        # on the core: scipy would copy a float32 matrix to float64 for this product
        return CpuModel(self, resolve_threads()).alpha_needed(self.null_model.dual, at_null=True)


def _non_negative(name: str, value: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not (np.isfinite(number) and number >= 0):
        raise ValueError(f"{name}={value!r} must be a finite number of at least 0")
    return number


def _point(name: str, values: ArrayLike, length: int) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (length,):
        raise ValueError(f"{name} has shape {array.shape}, expected ({length},)")
    return array


def _targets(y: ArrayLike, n: int, is_classifier: bool) -> tuple[Array, NDArray[Any] | None]:
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(f"y has shape {labels.shape}, expected ({n},): one target per row of X")
    if labels.dtype.kind == "f" and not np.all(np.isfinite(labels)):
        raise ValueError("y holds NaN or infinite values")
    if not is_classifier:
        if labels.dtype.kind not in "biuf":
            raise TypeError(f"y has dtype {labels.dtype}; a regression loss needs numbers")
        return np.ascontiguousarray(labels, dtype=np.float64), None
    classes = np.unique(labels)
    if len(classes) == 1 and labels.dtype.kind in "iuf" and abs(classes[0]) == 1:
        classes = np.array([-1, 1], dtype=classes.dtype if labels.dtype.kind != "u" else np.int64)
    if len(classes) != 2:
        shown = ", ".join(map(repr, classes[:5].tolist()))
        raise ValueError(
            f"y holds {len(classes)} distinct value(s) ({shown}{', …' if len(classes) > 5 else ''}); "
            "a classification loss needs exactly two"
        )
    return np.where(labels == classes[1], 1.0, -1.0), classes


def _per_row(name: str, values: ArrayLike, n: int) -> Array:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} holds something that is not a number; it takes {n} numbers, one per row") from None
    if array.shape != (n,):
        raise ValueError(f"{name} has shape {array.shape}, expected ({n},): one number per row of X")
    if not np.all(np.isfinite(array)):
        bad = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"{name}[{bad}] is {array[bad]}; every value must be finite")
    return array


def _row_weights(sample_weight: ArrayLike | None, n: int) -> Array | None:
    """ω, or None where all weights are equal."""
    if sample_weight is None:
        return None
    weights = _per_row("sample_weight", sample_weight, n)
    lowest, highest = float(np.min(weights)), float(np.max(weights))
    if lowest < 0:
        bad = int(np.argmin(weights))
        raise ValueError(f"sample_weight[{bad}] is {lowest}; weights must be at least 0")
    if highest == 0:
        raise ValueError("sample_weight is 0 everywhere; at least one row needs a weight above 0")
    if lowest == highest:
        return None
    weights = weights / highest  # so that no sum overflows
    return np.asarray(weights / np.sum(weights))


def _offset(offset: ArrayLike | None, n: int) -> Array | None:
    if offset is None:
        return None
    values = _per_row("offset", np.full(n, offset) if np.ndim(offset) == 0 else offset, n)
    return values.copy() if np.any(values) else None


def _silence(
    rows: NDArray[np.bool_], y: Array, offset: Array | None, is_classifier: bool
) -> tuple[Array, Array | None]:
    """Targets and offset without what rows of weight 0 say."""
    if not is_classifier:
        y = np.where(rows, 0.0, y)
    return y, None if offset is None else np.where(rows, 0.0, offset)


def _flag(name: str, value: bool) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name}={value!r} must be True or False")
    return bool(value)


def _weights(weights: ArrayLike | None, p: int) -> Array | None:
    if weights is None:
        return None
    u = np.ascontiguousarray(_point("penalty_weights", weights, p))
    if np.any(np.isnan(u)) or np.any(u < 0):
        raise ValueError(
            "penalty_weights must be at least 0 (0 = unpenalised, inf = excluded); negative or NaN found"
        )
    return u


def _bound(name: str, bound: ArrayLike | None, p: int, side: float) -> float | Array:
    """A scalar when all features share it. side is -1 for lower, +1 for upper."""
    if bound is None:
        return side * float("inf")
    values = np.asarray(bound, dtype=np.float64)
    if values.ndim > 0:
        values = np.ascontiguousarray(_point(name, values, p))
    if np.any(np.isnan(values)) or np.any(side * values < 0):
        raise ValueError(f"{name} must satisfy lower ≤ 0 ≤ upper; got a value on the other side of 0, or NaN")
    return float(values) if values.ndim == 0 else values
