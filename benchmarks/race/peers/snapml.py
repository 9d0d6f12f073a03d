"""Snap ML on the CPU: float32 throughout, primal, objective Σ loss + regularizer ‖w‖₁, threads by n_jobs."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..problems import Cell
from . import Peer, decades


class Snapml(Peer):
    name = "snapml"
    package = "snapml"
    max_threads = 64
    tolerances = decades(1e0, 1e-8)
    default_tolerance = 1e-3

    def prepare(self, cell: Cell, n_threads: int) -> Any:
        import snapml

        convert = sp.csc_matrix if sp.issparse(cell.X) else np.ascontiguousarray  # the primal solver wants columns
        estimator = snapml.LogisticRegression if cell.loss == "logistic" else snapml.LinearRegression
        regularizer = cell.alpha * cell.X.shape[0]
        return convert(cell.X, dtype=np.float32), cell.y, estimator, regularizer, n_threads

    def fit(self, prepared: Any, tolerance: float) -> NDArray[np.float64]:
        X, y, estimator, regularizer, n_threads = prepared
        options = {"penalty": "l1", "dual": False, "fit_intercept": False, "max_iter": 1_000_000, "random_state": 0}
        model = estimator(regularizer=regularizer, tol=tolerance, n_jobs=n_threads, **options).fit(X, y)
        return np.asarray(model.coef_, dtype=np.float64).ravel()


PEERS = [Snapml()]
