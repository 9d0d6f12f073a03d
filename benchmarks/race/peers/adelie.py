"""adelie's grpnet with groups of one. Its documentation advises a path, so a short one down to alpha is raced too."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..problems import Cell
from . import Peer, decades


def coefs_along_alphas(prepared: Any, tolerance: float) -> Any:
    """A row of weights for each alpha; ``prepared`` is (matrix, adelie's likelihood, alphas, threads)."""
    import adelie

    X, glm, alphas, n_threads = prepared
    options = {"intercept": False, "early_exit": False, "progress_bar": False, "n_threads": n_threads}
    limits = {"irls_max_iters": 1_000_000, "max_iters": 10_000_000}
    state = adelie.grpnet(X, glm, lmda_path=alphas, tol=tolerance, irls_tol=tolerance, **options, **limits)
    if state.error:
        raise RuntimeError(state.error)
    return state.betas


class Adelie(Peer):
    name = "adelie"
    package = "adelie"
    max_threads = 64
    tolerances = decades(1e-1, 1e-14)
    default_tolerance = 1e-7
    n_alphas = 1

    def prepare(self, cell: Cell, n_threads: int) -> Any:
        import adelie

        n = cell.X.shape[0]
        if sp.issparse(cell.X):
            X = adelie.matrix.sparse(sp.csc_matrix(cell.X, dtype=np.float64), n_threads=n_threads, copy=True)
        else:
            X = adelie.matrix.dense(np.asfortranarray(cell.X, dtype=np.float64), n_threads=n_threads, copy=True)
        if cell.loss == "logistic":
            glm, slope = adelie.glm.binomial((cell.y + 1) / 2), cell.y / 2
        else:
            glm, slope = adelie.glm.gaussian(cell.y), cell.y
        alphas = np.geomspace(np.max(np.abs(cell.X.T @ slope)) / n, cell.alpha, self.n_alphas + 1)[1:]
        return X, glm, alphas, n_threads

    def fit(self, prepared: Any, tolerance: float) -> NDArray[np.float64]:
        return coefs_along_alphas(prepared, tolerance)[-1].toarray().ravel()


class AdeliePath(Adelie):
    name = "adelie-path"
    default_tolerance = None
    n_alphas = 10


PEERS = [Adelie(), AdeliePath()]
