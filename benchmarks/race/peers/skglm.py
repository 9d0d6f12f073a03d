"""skglm's solvers without their estimators. The tolerance is a subgradient distance, here relative to alpha.

In float32 AndersonCD is no faster and ProxNewton fails (0.5), so float64 it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..problems import Cell
from . import Peer, decades


class SkglmAnderson(Peer):
    name = "skglm-anderson"
    package = "skglm"
    tolerances = decades(1e2, 1e-8)
    default_tolerance = 1e-4
    relative_to_alpha = True

    def prepare(self, cell: Cell, n_threads: int) -> Any:
        import skglm.solvers  # noqa: F401
        from skglm.datafits import Logistic, Quadratic
        from skglm.penalties import L1

        convert = sp.csc_matrix if sp.issparse(cell.X) else np.asfortranarray
        datafit = Logistic() if cell.loss == "logistic" else Quadratic()
        return convert(cell.X, dtype=np.float64), cell.y, datafit, L1(cell.alpha), cell.alpha

    def solver(self, tol: float) -> Any:
        from skglm.solvers import AndersonCD

        return AndersonCD(max_iter=10_000, max_epochs=1_000_000, tol=tol, fit_intercept=False)

    def fit(self, prepared: Any, tolerance: float) -> NDArray[np.float64]:
        X, y, datafit, penalty, alpha = prepared
        return self.solver(tolerance * alpha).solve(X, y, datafit, penalty)[0]


class SkglmNewton(SkglmAnderson):
    name = "skglm-pn"
    losses = ("logistic",)

    def solver(self, tol: float) -> Any:
        from skglm.solvers import ProxNewton

        return ProxNewton(max_iter=10_000, max_pn_iter=10_000, tol=tol, fit_intercept=False)


class SkglmGram(SkglmAnderson):
    name = "skglm-gram"
    losses = ("squared",)
    storages = ("dense",)
    max_threads = 2
    max_features = 5_000
    default_tolerance = None

    def prepare(self, cell: Cell, n_threads: int) -> Any:
        X, y, _, penalty, alpha = super().prepare(cell, n_threads)
        return X, y, None, penalty, alpha  # GramCD knows its datafit

    def solver(self, tol: float) -> Any:
        from skglm.solvers import GramCD

        return GramCD(max_iter=1_000_000, tol=tol, fit_intercept=False)


class SkglmGramCyclic(SkglmGram):
    name = "skglm-gram-cyclic"

    def solver(self, tol: float) -> Any:
        from skglm.solvers import GramCD

        return GramCD(max_iter=1_000_000, tol=tol, fit_intercept=False, greedy_cd=False, use_acc=True)


PEERS = [SkglmAnderson(), SkglmNewton(), SkglmGram(), SkglmGramCyclic()]
