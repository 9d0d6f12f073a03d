"""glum's irls-cd, which forms Hessians. Its tolerance is a sum of subgradient distances, here relative to alpha."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..problems import Cell
from . import Peer, decades


class Glum(Peer):
    name = "glum"
    package = "glum"
    max_threads = 64
    max_features = 50_000
    tolerances = decades(1e2, 1e-7)
    default_tolerance = 1e-4
    relative_to_alpha = True

    def prepare(self, cell: Cell, n_threads: int) -> Any:
        import glum  # noqa: F401
        import tabmat

        if sp.issparse(cell.X):
            X: Any = tabmat.SparseMatrix(sp.csc_matrix(cell.X, dtype=np.float64))
        else:
            X = tabmat.DenseMatrix(np.asfortranarray(cell.X, dtype=np.float64))
        y = (cell.y + 1) / 2 if cell.loss == "logistic" else cell.y
        return X, y, "binomial" if cell.loss == "logistic" else "normal", cell.alpha

    def fit(self, prepared: Any, tolerance: float) -> NDArray[np.float64]:
        from glum import GeneralizedLinearRegressor

        X, y, family, alpha = prepared
        options = {"solver": "irls-cd", "max_iter": 10_000, "max_inner_iter": 10_000_000, "check_input": False}
        model = GeneralizedLinearRegressor(
            alpha=alpha, l1_ratio=1, family=family, fit_intercept=False, gradient_tol=tolerance * alpha, **options
        )
        return model.fit(X, y).coef_


PEERS = [Glum()]
