"""scikit-learn's Lasso, on the columns and through the Gram matrix (whose product counts: it is part of fit)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..problems import Cell
from . import Peer, decades


class SklearnLasso(Peer):
    name = "sklearn-lasso"
    package = "scikit-learn"
    losses = ("squared",)
    tolerances = decades(1e-1, 1e-11)
    default_tolerance = 1e-4
    precompute = False
    dtype: type = np.float64

    def prepare(self, cell: Cell, n_threads: int) -> Any:
        import sklearn.linear_model  # noqa: F401

        convert = sp.csc_matrix if sp.issparse(cell.X) else np.asfortranarray
        return convert(cell.X, dtype=self.dtype), cell.y.astype(self.dtype), cell.alpha

    def fit(self, prepared: Any, tolerance: float) -> NDArray[np.float64]:
        from sklearn.linear_model import Lasso

        X, y, alpha = prepared
        options = {"fit_intercept": False, "max_iter": 10_000_000, "copy_X": False, "tol": tolerance}
        return Lasso(alpha=alpha, precompute=self.precompute, **options).fit(X, y).coef_


class SklearnLassoFloat32(SklearnLasso):
    name = "sklearn-lasso-f32"
    tolerances = decades(1e-1, 1e-7)
    default_tolerance = None
    dtype = np.float32


class SklearnLassoGram(SklearnLasso):
    name = "sklearn-lasso-gram"
    storages = ("dense",)
    max_threads = 2
    max_features = 5_000
    default_tolerance = None
    precompute = True


PEERS = [SklearnLasso(), SklearnLassoFloat32(), SklearnLassoGram()]
