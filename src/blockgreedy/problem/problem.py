"""The problem that is solved, and what can be said of any point of it.

::

    min over w, b   Σ_i ω_i loss(y_i, (Xw)_i + b + offset_i)  +  alpha Σ_j u_j |w_j|  +  l2/2 ‖w‖²
    subject to      lower ≤ w ≤ upper

ω_i = s_i/Σs are the sample weights (1/n by default, a plain mean); b is 0 unless an intercept is fitted. With
``standardize=True`` u_j is multiplied with the column's standard deviation and l2 with its square.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from blockgreedy.base.cached import cached_property
from blockgreedy.base.deadline import NEVER, Deadline
from blockgreedy.base.threads import resolve_threads
from blockgreedy.base.validate import number, shown
from blockgreedy.problem import arguments
from blockgreedy.problem.certificate import NumpyPasses, dual_value, scaled_dual_point
from blockgreedy.problem.column_units import ColumnUnits
from blockgreedy.problem.core_problem import alpha_at_null
from blockgreedy.problem.design import Design, combined, design_of
from blockgreedy.problem.losses import make_loss
from blockgreedy.problem.null_model import UNFINISHED, NullModel, best_intercept, known_null_model
from blockgreedy.problem.penalties import Penalty
from blockgreedy.problem.scaling import Scaling

Array = NDArray[np.float64]


class Problem:
    """The minimisation problem: mean loss on (X, y) plus an L1 penalty, and optionally a ridge penalty and bounds.

    Parameters
    ----------
    X : sparse matrix or array of shape (n_samples, n_features), DataFrame or Dataset
        Any scipy format, or dense. The column names of a DataFrame of numbers or a Dataset become ``feature_names``.
        float32 and float64 values keep their type. Canonical CSC, CSR and Fortran-ordered arrays are not copied but
        shared, so X must not be changed while the problem is in use. All other arrays are copied.
    y : array of shape (n_samples,), optional
        Targets; may be left out if X is a Dataset. For the classification losses any two values; the larger one is
        the positive class.
    loss : {"squared", "logistic", "squared_hinge", "huber"}, default "squared"
        The loss.
    alpha : float
        Weight of the L1 norm against the *mean* loss, at least 0 (λ in the paper, ``Lasso(alpha)`` in scikit-learn).
    l2 : float, default 0
        Adds l2/2·‖w‖².
    sample_weight : array of shape (n_samples,), optional
        s_i ≥ 0, not all 0; only their ratios matter. A weight of k is a row repeated k times, 0 a row left out.
    penalty_weights : array of shape (n_features,), optional
        u_j ≥ 0; 0 leaves a feature unpenalised, inf excludes it.
    positive : bool, default False
        Only weights ≥ 0; short for ``lower=0``.
    lower, upper : float or array of shape (n_features,), optional
        Bounds with lower ≤ 0 ≤ upper.
    fit_intercept : bool, default False
        Adds an intercept, free of penalty (l2 included) and of bounds.
    offset : float or array of shape (n_samples,), optional
        Added to every prediction; not fitted.
    standardize : bool, default False
        Applies the penalty as if every column had variance 1: alpha·u_j·sd_j and l2·sd_j² instead of alpha·u_j and
        l2. X is not changed; weights and bounds are on its scale. sd_j is the weighted standard deviation of column
        j, about its mean with fit_intercept and about 0 without (R's glmnet: always about the mean). Constant columns
        are excluded.
    huber_delta : float, default 1.35
        The residual beyond which the Huber loss is linear.
    n_threads : int, optional
        Threads that check X, standardise it and fit the null model, and those of a solve that names no other number.
        Default: all cores that the process may use. Results do not depend on it.

    Attributes
    ----------
    row_weights : ndarray of shape (n_samples,) or None
        ω_i = s_i/Σs; None if all are 1/n. For rows of weight 0, ``offset`` and regression targets are set to 0, so
        that large values in them cannot overflow.
    offset : ndarray of shape (n_samples,) or None
        None if it is 0 everywhere.
    scales : ndarray of shape (n_features,) or None
        sd_j, with ``standardize=True``.
    penalty_weights : ndarray of shape (n_features,) or None
        u_j, times sd_j with ``standardize=True``; inf for a constant column.
    feature_names : ndarray of shape (n_features,) or None
        Names of the columns, as text.

    Examples
    --------
    >>> import numpy as np
    >>> import blockgreedy as bg
    >>> X = np.eye(4)
    >>> problem = bg.Problem(X, [3.0, 0.0, 0.0, 1.0], alpha=0.5)
    >>> float(problem.alpha_max)
    0.75
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike | None = None,
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
        n_threads: int | None = None,
    ) -> None:
        self.n_threads = None if n_threads is None else resolve_threads(n_threads)
        self.loss = make_loss(loss, huber_delta)
        self.alpha = arguments.non_negative("alpha", alpha)
        self.l2 = arguments.non_negative("l2", l2)
        X, y, self.feature_names = arguments.named_design(X, y)
        self.design = design_of(X, self.n_threads)
        self.shares_design = False  # with other problems, which need other columns of it
        self.n_samples, self.n_features = self.design.shape
        given_y, self.classes = arguments.targets(y, self.n_samples, self.loss.is_classifier)
        self.fit_intercept = arguments.flag("fit_intercept", fit_intercept)
        self.column_units = ColumnUnits(self.design, self.fit_intercept)
        self.standardize = arguments.flag("standardize", standardize)
        # as given: other sample weights start from these
        self.given = (
            given_y,
            arguments.row_offset(offset, self.n_samples),
            arguments.feature_weights(penalty_weights, self.n_features),
        )
        self._weigh_rows(sample_weight)
        if arguments.flag("positive", positive) and lower is not None:
            raise ValueError("positive=True and lower=… both set the lower bound; give only one of them")
        self.lower = arguments.bound("lower", 0.0 if positive else lower, self.n_features, -1.0)
        self.upper = arguments.bound("upper", upper, self.n_features, 1.0)
        if not self.fit_intercept and not self.loss.is_classifier and offset is None:
            arguments.warn_of_mean(self.design, given_y)

    @property
    def X(self) -> Any:
        """The matrix as columns, canonical CSC or a Fortran-ordered array; made of rows when first asked for."""
        return self.design.columns

    def __repr__(self) -> str:
        kind = "sparse" if self.design.is_sparse else "dense"
        return (
            f"Problem({self.n_samples} × {self.n_features} {kind} {self.design.dtype}, loss={self.loss.name!r}, "
            f"alpha={self.alpha:g}{f', l2={self.l2:g}' if self.l2 else ''}"
            f"{', fit_intercept=True' if self.fit_intercept else ''}"
            f"{', standardize=True' if self.standardize else ''})"
        )

    def with_alpha(self, alpha: float, l2: float | None = None) -> Problem:
        """The same problem at another alpha (and l2); shares X and y."""
        other = self.copied("penalty", "scaling")
        other.alpha = arguments.non_negative("alpha", alpha)
        if l2 is not None:
            other.l2 = arguments.non_negative("l2", l2)
            if self.has_unpenalised:  # their weights are part of the null model, and l2 concerns them too
                other = other.copied("null_model", "alpha_max")
        if "scaling" in self.__dict__:
            other.__dict__["scaling"] = self.scaling.with_alpha(other).detached()
        return other

    def with_sample_weight(self, sample_weight: ArrayLike | None) -> Problem:
        """The same problem with other sample weights; shares X, without a second check; ``scales`` change."""
        other = self.copied("penalty", "lowest", "null_model", "alpha_max", "scaling")
        other.column_units = self.column_units.for_all_rows
        other._weigh_rows(sample_weight)
        return other

    def with_features(self, features: NDArray[np.integer[Any]], alpha: float) -> Problem:
        """The problem restricted to these features, whose columns are copied."""
        other = self.copied("penalty", "null_model", "alpha_max", "scaling")
        other.alpha = arguments.non_negative("alpha", alpha)
        columns = self.design.take(features)
        other.design = Design.of(columns if sp.issparse(columns) else np.asfortranarray(columns))
        other.column_units = ColumnUnits(other.design, self.fit_intercept)
        other.n_features = len(features)
        for name in ("penalty_weights", "scales", "ridge_scales", "lower", "upper", "feature_names"):
            value = getattr(self, name)
            setattr(other, name, value[features] if isinstance(value, np.ndarray) else value)
        targets, offset, u = self.given
        other.given = targets, offset, None if u is None else u[features]
        return other

    def with_targets(self, y: ArrayLike, offset: ArrayLike | None = None) -> Problem:
        """The same problem for other targets; shares X and ``scales``."""
        other = self.copied("lowest", "null_model", "alpha_max", "scaling")
        targets, other.classes = arguments.targets(y, self.n_samples, self.loss.is_classifier)
        other.given = targets, arguments.row_offset(offset, self.n_samples), self.given[2]
        other._silence_rows()
        return other

    def copied(self, *stale: str) -> Problem:
        """A copy that shares all data, without the cached results of these names."""
        other = object.__new__(Problem)
        other.__dict__.update(self.__dict__, shares_design=True)
        for name in (*stale, UNFINISHED):
            other.__dict__.pop(name, None)
        return other

    def _weigh_rows(self, sample_weight: ArrayLike | None) -> None:
        """Sets everything that depends on the sample weights."""
        self.row_weights = arguments.row_weights(sample_weight, self.n_samples)
        self._silence_rows()
        self.penalty_weights = self.given[2]
        self.scales: Array | None = None
        if self.standardize:
            threads = resolve_threads(self.n_threads)
            self.scales = self.design.scales(self.row_weights, self.fit_intercept, threads)
            u = np.ones(self.n_features) if self.penalty_weights is None else self.penalty_weights
            excluded = np.full(self.n_features, np.inf)
            self.penalty_weights = np.multiply(u, self.scales, out=excluded, where=self.scales > 0)
        self.ridge_scales = self.scales  # of weights, as l2 counts them

    def _silence_rows(self) -> None:
        """Targets and offset without what rows of weight 0 say."""
        self.y, self.offset, _ = self.given
        if self.row_weights is not None and np.any(self.row_weights == 0):
            rows = self.row_weights == 0
            if not self.loss.is_classifier:
                self.y = np.where(rows, 0.0, self.y)
            self.offset = None if self.offset is None else np.where(rows, 0.0, self.offset)

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
        scales = None if self.ridge_scales is None else self.ridge_scales[features]
        return Penalty(self.alpha, np.where(excluded, 0.0, u), self.l2, scales, lower, upper)

    def products(self, theta: Array) -> Array:
        """x_j·theta of every column."""
        return self.design.products(theta)

    @cached_property
    def lowest(self) -> float:
        """Σ_i ω_i inf loss(y_i, ·): no objective is lower, whatever the weights."""
        return self.mean(self.loss.lowest(self.y))

    # Sums over rows. Everything that sums over rows goes through these three.

    def mean(self, values: Array) -> float:
        """Σ_i ω_i values_i"""
        # not as a dot product: BLAS may wake its threads for it, which takes longer than the sum; nor by np.mean
        total = np.add.reduce(values if self.row_weights is None else self.row_weights * values)
        return float(total / self.n_samples if self.row_weights is None else total)

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
        return self._predictions(arguments.point("w", w, self.n_features), self._intercept(intercept))

    def _predictions(self, w: Array, intercept: float) -> Array:
        features = np.flatnonzero(w)
        predictions = combined(self.design, features, w[features], intercept)
        if self.offset is not None:
            predictions += self.offset
        return predictions

    def dual_at(self, predictions: Array) -> Array:
        """θ_i = ω_i loss′(y_i, predictions_i): the dual point that belongs to predictions, feasible at a solution."""
        return self.weigh(self.loss.deriv(self.y, predictions))

    def objective(self, w: ArrayLike, intercept: float = 0.0) -> float:
        """The objective at weights w and this intercept."""
        return self.scaling.value_out(self._evaluate(w, intercept)[2])

    def _evaluate(self, w: ArrayLike, intercept: float) -> tuple[tuple[Array, float], Array, float]:
        """The point, its predictions and objective in the units of ``scaling.inner``, in which sums do not cancel."""
        w, number = arguments.point("w", w, self.n_features), self._intercept(intercept)
        scaling, inner = self.scaling, self.scaling.inner
        point = scaling.coef_in(w), scaling.intercept_in(number, slice(None), w)
        predictions = inner._predictions(*point)
        features = np.flatnonzero(w)
        penalty = scaling.penalty_in(features, w[features])
        return point, predictions, inner.mean(inner.loss.value(inner.y, predictions)) + penalty

    def gradient(self, w: ArrayLike, intercept: float = 0.0) -> Array:
        """Gradient of the mean loss with respect to w."""
        return self.products(self.dual_at(self.decision(w, intercept)))

    def duality_gap(self, w: ArrayLike, intercept: float = 0.0, dual: ArrayLike | None = None) -> float:
        """objective(w, intercept) − dual value: the objective is at most this much above the true minimum.

        ``dual`` is a dual point θ, an array of n. If it violates a constraint by more than rounding (1e-12), it
        proves nothing and the gap is inf. None: the loss derivatives at w, scaled to be feasible; close to the
        solution this gives a much larger gap than the dual point of a ``Solution``.
        """
        return self.objective_and_gap(w, intercept, dual)[1]

    def objective_and_gap(self, w: ArrayLike, intercept: float, dual: ArrayLike | None) -> tuple[float, float]:
        """``objective`` and ``duality_gap`` of one evaluation."""
        point, predictions, objective = self._evaluate(w, intercept)
        inner = self.scaling.inner
        if dual is None:
            _, value = scaled_dual_point(inner, predictions, NumpyPasses(inner), objective)
        else:
            theta = self.scaling.dual_in(arguments.point("dual", dual, self.n_samples))
            value = dual_value(inner, theta, NumpyPasses(inner), objective, point)
        return self.scaling.value_out(objective), self.scaling.value_out(objective - value)

    def best_intercept(self, w: ArrayLike) -> float:
        """The intercept that minimises the objective for these weights; 0 for a problem without intercept."""
        w = arguments.point("w", w, self.n_features)
        if not self.fit_intercept:
            return 0.0
        inner = self.scaling.inner.copied("null_model", "alpha_max", "scaling")
        inner.offset = inner._predictions(self.scaling.coef_in(w), 0.0)
        return self.scaling.intercept_out(best_intercept(inner), slice(None), w)

    def kkt_residual(self, w: ArrayLike, intercept: float = 0.0) -> float:
        """Largest distance of −gradient to the penalty's subdifferential: 0 exactly at a solution.

        With an intercept its own derivative counts too.
        """
        w = arguments.point("w", w, self.n_features)
        theta = self.dual_at(self.decision(w, intercept))
        largest = float(np.max(self.penalty.subgradient_distance(w, self.products(theta))))
        return max(largest, abs(float(np.sum(theta)))) if self.fit_intercept else largest

    def _intercept(self, intercept: float) -> float:
        try:
            value = number("intercept", intercept)
        except ValueError:
            value = float("nan")
        if not np.isfinite(value):
            raise ValueError(f"intercept={shown(intercept)} must be a finite number; pass a dual point as dual=…")
        if value != 0 and not self.fit_intercept:
            raise ValueError(f"intercept={intercept!r} needs a problem with fit_intercept=True; this one has none")
        return value

    @property
    def has_unpenalised(self) -> bool:
        """Whether some features are unpenalised, so that the null model can have nonzero weights."""
        return self.penalty_weights is not None and bool(np.any(self.penalty_weights == 0))

    @property
    def scaling(self) -> Scaling:
        """The problem in the units in which it is solved."""
        known: Scaling = self.__dict__.get("scaling") or Scaling(self).detached()
        self.__dict__["scaling"] = known
        return known.of(self)

    def rescale_columns(self) -> None:
        """Called where the values of X turn out to be too large or too small for a solver."""
        self.column_units = self.column_units.rescaled(None if self.row_weights is None else self.row_weights > 0)
        for name in ("scaling", "null_model", "alpha_max"):
            self.__dict__.pop(name, None)

    @property
    def null_model(self) -> NullModel:
        """The best model in which all penalised weights are 0, such as the intercept alone."""
        null = self.fit_null_model()
        if null.status == "interrupted":
            raise KeyboardInterrupt
        return null

    def fit_null_model(self, deadline: Deadline = NEVER, n_threads: int | None = None) -> NullModel:
        """``null_model``, or the best found by the deadline or at Ctrl-C."""
        return known_null_model(self, deadline, resolve_threads(self.n_threads if n_threads is None else n_threads))

    @cached_property
    def alpha_max(self) -> float:
        """The smallest alpha at which the null model is a solution."""
        return alpha_at_null(self, self.null_model)
