"""scikit-learn's LogisticRegression(solver="liblinear"): its fork of LIBLINEAR, objective ‖w‖₁ + C Σ loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..problems import Cell
from . import Peer, decades


class SklearnLiblinear(Peer):
    name = "sklearn-liblinear"
    package = "scikit-learn"
    losses = ("logistic",)
    tolerances = decades(1e0, 1e-8)
    default_tolerance = 1e-4
    solver = "liblinear"
    dtype: type = np.float64

    def prepare(self, cell: Cell, n_threads: int) -> Any:
        import sklearn.linear_model  # noqa: F401

        convert = sp.csr_matrix if sp.issparse(cell.X) else np.ascontiguousarray
        return convert(cell.X, dtype=self.dtype), cell.y, 1.0 / (cell.X.shape[0] * cell.alpha)

    def fit(self, prepared: Any, tolerance: float) -> NDArray[np.float64]:
        from sklearn.linear_model import LogisticRegression

        X, y, C = prepared
        options = {"solver": self.solver, "C": C, "tol": tolerance, "fit_intercept": False, "random_state": 0}
        return LogisticRegression(l1_ratio=1, max_iter=1_000_000, **options).fit(X, y).coef_.ravel()


PEERS = [SklearnLiblinear()]
