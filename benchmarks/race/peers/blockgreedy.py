"""Ours: the default solver, with the construction of its Problem inside the timed section."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..problems import Cell
from . import Peer, decades


class Blockgreedy(Peer):
    name = "blockgreedy"
    package = "blockgreedy"
    max_threads = 64
    tolerances = decades(1e-1, 1e-10)
    default_tolerance = 1e-4

    def prepare(self, cell: Cell, n_threads: int) -> Any:
        import blockgreedy  # noqa: F401

        X = sp.csc_matrix(cell.X) if sp.issparse(cell.X) else np.asfortranarray(cell.X)
        return X, cell, n_threads

    def fit(self, prepared: Any, tolerance: float) -> NDArray[np.float64]:
        import blockgreedy as bg

        X, cell, n_threads = prepared
        problem = bg.Problem(X, cell.y, loss=cell.loss, alpha=cell.alpha)
        solution = bg.solve(problem, method="auto", tol=tolerance, n_threads=n_threads)
        self.details = {"gap": solution.gap, "solver_status": solution.status}
        return solution.coef


PEERS = [Blockgreedy()]
