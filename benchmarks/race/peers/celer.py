"""celer through ``celer_path`` with one alpha: what its estimators call, without their copy from CSC to CSR and back.

Its logistic objective is a sum: alpha·n.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..problems import Cell
from . import Peer, decades


class CelerNewton(Peer):
    name = "celer-pn"
    package = "celer"
    losses = ("logistic",)
    tolerances = decades(1e-1, 1e-11)
    default_tolerance = 1e-4
    newton = True
    dtype: type = np.float64

    def prepare(self, cell: Cell, n_threads: int) -> Any:
        import celer  # noqa: F401

        convert = sp.csc_matrix if sp.issparse(cell.X) else np.asfortranarray
        alpha = cell.alpha * (cell.X.shape[0] if cell.loss == "logistic" else 1)
        problem = "logreg" if cell.loss == "logistic" else "lasso"
        return convert(cell.X, dtype=self.dtype), cell.y.astype(self.dtype), problem, alpha

    def fit(self, prepared: Any, tolerance: float) -> NDArray[np.float64]:
        from celer import celer_path

        X, y, problem, alpha = prepared
        options = {"tol": tolerance, "max_iter": 10_000, "max_epochs": 1_000_000, "use_PN": self.newton}
        return celer_path(X, y, problem, alphas=np.array([alpha]), **options)[1].ravel()


class Celer(CelerNewton):
    name = "celer"
    losses = ("logistic", "squared")
    newton = False


class CelerNewtonFloat32(CelerNewton):
    name = "celer-pn-f32"
    tolerances = decades(1e-1, 1e-7)
    default_tolerance = None
    dtype = np.float32


class CelerFloat32(Celer):
    name = "celer-f32"
    losses = ("squared",)
    tolerances = decades(1e-1, 1e-7)
    default_tolerance = None
    dtype = np.float32


PEERS = [CelerNewton(), CelerNewtonFloat32(), Celer(), CelerFloat32()]
