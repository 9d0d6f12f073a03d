"""DaskLasso, DaskLogisticRegression: fitted where the chunks of a Dask collection are.

A module of its own, so that nobody else needs Dask: ``from blockgreedy.estimators.dask import DaskLasso``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from blockgreedy.base.design import TiledDesign
from blockgreedy.base.validate import shown
from blockgreedy.estimators.base import Array, SparseLinearModel
from blockgreedy.estimators.classifiers import LogisticRegression
from blockgreedy.estimators.dask_chunks import Chunks, by_rows, is_collection, local_vector, tiles_of
from blockgreedy.estimators.parameters import with_parameters
from blockgreedy.estimators.regressors import Lasso
from blockgreedy.estimators.scoring import chosen_class, log_probabilities
from blockgreedy.estimators.sparse_coef import dense_coef
from blockgreedy.solvers.cluster import is_client


class DaskModel:
    """What a plain estimator needs to be fitted on a cluster of Dask, and to predict for its collections."""

    def _on(self, client: Any, X: Any, y: Any, sample_weight: Any, offset: Any) -> tuple[Any, Any, Any, Any]:
        """X in tiles, and what belongs to rows in their order, in this process."""
        if client is None:
            from distributed import default_client

            client = default_client()
        if not is_client(client):
            raise TypeError(f"client={shown(client)} must be a Client of Dask")
        self._client = client
        vectors = [local_vector(client, values) for values in (y, sample_weight, offset)]
        if isinstance(X, TiledDesign):
            return X, X.labels if y is None else vectors[0], *vectors[1:]
        if y is None:
            raise TypeError("y is missing: it may be left out only where X is a Store")
        chunks = tiles_of(client, X, len(client.scheduler_info(n_workers=-1)["workers"]))
        return chunks.tiles, *(_in_order(chunks, name, values) for name, values in zip(_NAMES, vectors, strict=True))

    def _checked(self, X: Any, y: Any, **options: Any) -> tuple[Any, Any]:
        """Both are what ``_on`` made of them; Problem looks at the values."""
        self.n_features_in_ = X.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if X.feature_names is not None:
            self.feature_names_in_ = np.asarray(X.feature_names, dtype=object)
        return X, y

    @property
    def _cluster(self: Any) -> Any:
        return self._client

    def __getstate__(self) -> dict[str, Any]:
        """Without the connection to the cluster."""
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {name: value for name, value in state.items() if name != "_client"}

    def _lazily(self: Any, X: Any, what: Any, width: int | None, dtype: Any) -> Any:
        """Of a Dask collection, a Dask array; of anything else, an array at once."""
        check_is_fitted(self)
        if isinstance(X, TiledDesign):
            weights = np.atleast_2d(dense_coef(self))
            decision = np.column_stack([X.combine(w) for w in weights]) + self.intercept_
            return what(decision[:, 0] if np.ndim(self.intercept_) == 0 else decision)
        if not is_collection(X):
            return what(SparseLinearModel._decision(self, X))
        _check_feature_names(self, getattr(X, "_meta", X), reset=False)  # those of a DataFrame
        return by_rows(X, _decided, dense_coef(self), self.intercept_, what, width=width, dtype=dtype)

    def _to(self: Any, kind: type) -> Any:
        check_is_fitted(self)
        local = kind(**self.get_params())
        for name, value in vars(self).items():
            if name.endswith("_") and not name.startswith("_"):
                setattr(local, name, value)
        return local


_NAMES = ("y", "sample_weight", "offset")


def _in_order(chunks: Chunks, name: str, values: Any) -> Any:
    if values is None or np.ndim(values) == 0:
        return values
    n = chunks.tiles.shape[0]
    if len(values) != n:
        raise ValueError(f"{name} has {len(values)} rows, and X has {n}")
    return values[chunks.rows]


def _decided(parts: Sequence[Any], coef: NDArray[Any], intercept: Any, what: Any) -> Any:
    """On a worker: what follows from the decision values of a row of chunks."""
    begin, total = 0, np.zeros(())
    for part in parts:
        own = np.asarray(part.to_numpy()) if hasattr(part, "to_numpy") else part
        end = begin + own.shape[1]
        total = total + np.asarray(own @ coef[..., begin:end].T)
        begin = end
    if begin != coef.shape[-1]:
        raise ValueError(f"X has {begin} features, and the model was fitted with {coef.shape[-1]}")
    return what(total + intercept)


def _same(decision: Array) -> Array:
    return decision


def _first_column(decision: Array) -> Array:
    return decision[:, 0] if decision.shape[1] == 1 else decision


def _probabilities(decision: Array) -> Array:
    return np.exp(log_probabilities(decision))


@dataclass(frozen=True)
class _Classes:
    """Decision values → classes; an object, so that it can be sent."""

    classes: NDArray[Any]

    def __call__(self, decision: Array) -> NDArray[Any]:
        return np.asarray(self.classes[chosen_class(decision)])


@with_parameters
@dataclass(eq=False, repr=False)
class DaskLasso(DaskModel, Lasso):
    """``Lasso`` on a cluster of Dask: each worker takes the rows that it holds.

    Parameters
    ----------
    alpha : float, default 1.0
        Weight of the L1 norm against the mean loss.
    {common}
    """

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None, *, client: Any = None
    ) -> Self:
        """Fits the weights.

        Parameters
        ----------
        X : Dask array, Dask DataFrame of numbers, list of delayed partitions, or Store
            The design matrix. Chunks are arrays or scipy.sparse matrices, cut by rows, by columns or both.
        y : Dask array or Series, list of delayed parts, or array of shape (n_samples,)
            Targets, which the client collects; may be left out with a Store that has labels.
        sample_weight, offset : like y, or a float, optional
            Weights of the rows; what is added to every prediction of the fit.
        client : distributed.Client, optional
            Whose cluster fits it (default: the current client).
        """
        X, y, sample_weight, offset = self._on(client, X, y, sample_weight, offset)
        return super().fit(X, y, sample_weight, offset)

    def predict(self, X: Any) -> Any:
        """X @ coef_ + intercept_, as a Dask array if X is a collection of Dask."""
        return self._lazily(X, _same, None, np.float64)

    def to_local(self) -> Lasso:
        """The plain estimator, which needs no Dask."""
        local: Lasso = self._to(Lasso)
        return local


@with_parameters
@dataclass(eq=False, repr=False)
class DaskLogisticRegression(DaskModel, LogisticRegression):
    """``LogisticRegression`` on a cluster of Dask: each worker takes the rows that it holds.

    Parameters
    ----------
    {penalty}
    {common}
    {classes}
    {penalty_attributes}
    """

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None, *, client: Any = None
    ) -> Self:
        """Fits the weights.

        Parameters
        ----------
        X : Dask array, Dask DataFrame of numbers, list of delayed partitions, or Store
            The design matrix. Chunks are arrays or scipy.sparse matrices, cut by rows, by columns or both.
        y : Dask array or Series, list of delayed parts, or array of shape (n_samples,)
            Classes, which the client collects; may be left out with a Store that has labels.
        sample_weight, offset : like y, or a float, optional
            Weights of the rows; what is added to every decision value of the fit.
        client : distributed.Client, optional
            Whose cluster fits it (default: the current client).
        """
        X, y, sample_weight, offset = self._on(client, X, y, sample_weight, offset)
        return super().fit(X, y, sample_weight, offset)

    def decision_function(self, X: Any) -> Any:
        """Xw + b, as a Dask array if X is a collection of Dask; a column for each of more than two classes."""
        n_models = self.coef_.shape[0]
        return self._lazily(X, _first_column, None if n_models == 1 else n_models, np.float64)

    def predict(self, X: Any) -> Any:
        """The class of each row, as a Dask array if X is a collection of Dask."""
        return self._lazily(X, _Classes(self.classes_), None, self.classes_.dtype)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of each class, as a Dask array if X is a collection of Dask."""
        return self._lazily(X, _probabilities, len(self.classes_), np.float64)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities of each class, as a Dask array if X is a collection of Dask."""
        return self._lazily(X, log_probabilities, len(self.classes_), np.float64)

    def to_local(self) -> LogisticRegression:
        """The plain estimator, which needs no Dask."""
        local: LogisticRegression = self._to(LogisticRegression)
        return local
