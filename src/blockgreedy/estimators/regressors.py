"""Lasso, ElasticNet, HuberLasso."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from sklearn.base import MultiOutputMixin, RegressorMixin

from blockgreedy.base.validate import positive
from blockgreedy.estimators.base import Array, SparseLinearModel
from blockgreedy.estimators.checks import offsets_like, share, weights_of_rows
from blockgreedy.estimators.fit_tasks import begin_tasks, hears_callbacks
from blockgreedy.estimators.parameters import with_parameters
from blockgreedy.estimators.to_sklearn import huber_of, lasso_of


@dataclass(eq=False, repr=False)
class SparseRegressor(MultiOutputMixin, RegressorMixin, SparseLinearModel, ABC):
    """Predicts Xw + b. Several targets are several models."""

    _loss: ClassVar[str] = "squared"

    @abstractmethod
    def _penalties(self) -> dict[str, float]:
        """alpha, l2 and what the loss takes."""

    @hears_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        """Fits the weights.

        Parameters
        ----------
        X : sparse matrix or array of shape (n_samples, n_features)
            The design matrix.
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Targets; several are fitted one after the other.
        sample_weight : float or array of shape (n_samples,), optional
            Weights of the rows.
        offset : array in the shape of y, optional
            Added to every prediction of the fit; ``predict`` does not know it.

        Returns
        -------
        self
            The fitted estimator.
        """
        X, y = self._checked(X, y, multi_output=True, y_numeric=True)
        begin_tasks(self, X, y, sample_weight)
        weights = weights_of_rows(sample_weight, X)
        one = y.ndim == 1 or y.shape[1] == 1
        targets = y.reshape(-1, 1) if one else y
        offsets = None if offset is None else offsets_like(y, offset)
        first = self._problem(
            X, targets[:, 0], weights, None if offsets is None else offsets[0], loss=self._loss, **self._penalties()
        )
        problems = [first] + [
            first.with_targets(targets[:, k], None if offsets is None else offsets[k])
            for k in range(1, targets.shape[1])
        ]
        names = [""] if one else [f"target {k}: " for k in range(len(problems))]
        outcome = self._solve_all(problems, names)
        self._keep(outcome, one)
        return self._conclude(outcome)

    def predict(self, X: Any) -> Array:
        """X @ coef_ + intercept_"""
        return self._decision(X)


@with_parameters
@dataclass(eq=False, repr=False)
class Lasso(SparseRegressor):
    """Least squares with an L1 penalty: (1/2n)‖y − Xw − b‖² + alpha‖w‖₁, as scikit-learn's ``Lasso``.

    Parameters
    ----------
    alpha : float, default 1.0
        Weight of the L1 norm against the mean loss.
    {common}

    Examples
    --------
    >>> import numpy as np
    >>> import blockgreedy as bg
    >>> X = np.random.default_rng(0).normal(size=(100, 20))
    >>> model = bg.Lasso(alpha=0.1).fit(X, 3 * X[:, 4])
    >>> np.flatnonzero(model.coef_)
    array([4])
    """

    alpha: float = 1.0

    def _penalties(self) -> dict[str, float]:
        return {"alpha": self.alpha}

    def _counterpart(self) -> Any:
        return lasso_of(self, self.alpha, None)


@with_parameters
@dataclass(eq=False, repr=False)
class ElasticNet(SparseRegressor):
    """Least squares with an elastic-net penalty, as scikit-learn's ``ElasticNet``.

    The objective is (1/2n)‖y − Xw − b‖² + alpha·l1_ratio‖w‖₁ + alpha(1 − l1_ratio)/2·‖w‖².

    Parameters
    ----------
    alpha : float, default 1.0
        Weight of the penalty against the mean loss.
    l1_ratio : float, default 0.5
        Share of the L1 norm, from 0 to 1.
    {common}
    """

    alpha: float = 1.0
    l1_ratio: float = 0.5

    def _penalties(self) -> dict[str, float]:
        return share(self.alpha, self.l1_ratio)

    def _counterpart(self) -> Any:
        return lasso_of(self, self.alpha, self.l1_ratio)


@with_parameters
@dataclass(eq=False, repr=False)
class HuberLasso(SparseRegressor):
    """The Huber loss with an L1 penalty: residuals beyond ``delta`` count linearly, so outliers pull less.

    Unlike scikit-learn's ``HuberRegressor`` it fits no scale: ``delta`` is in units of y.

    Parameters
    ----------
    alpha : float, default 1.0
        Weight of the L1 norm against the mean loss.
    delta : float, default 1.35
        Residual at which the loss ½r² turns into delta·(|r| − delta/2).
    {common}
    """

    _loss: ClassVar[str] = "huber"
    alpha: float = 1.0
    delta: float = 1.35

    def _penalties(self) -> dict[str, float]:
        return {"alpha": self.alpha, "huber_delta": positive("delta", self.delta)}

    def _counterpart(self) -> Any:
        return huber_of(self, self.alpha, self.delta)
