"""How each package is asked for a cross-validation. ``fit`` returns (curve, chosen alpha)."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np

from .. import glmnet
from ..paths.cell import Array
from ..paths.peers import columns
from ..race.peers import Peer
from ..race.problems import Data, Loss
from .cell import CvCell
from .memory import matrix_bytes, with_peak


class CvPeer(Peer):
    registry = __name__
    max_threads = 64

    def cell(self, data: Data, loss: Loss, question: Any) -> CvCell:
        alphas, folds = question
        return CvCell(data.X, data.y(loss), loss, alphas, folds)

    def answer(self, found: Any) -> tuple[Array, float]:
        curve, chosen = found
        return np.array(curve, dtype=np.float64), float(chosen)


class Blockgreedy(CvPeer):
    """Ours, by its estimators; also measures what the fit adds to the memory that holds the matrix."""

    name = package = "blockgreedy"
    tolerances = (1e-4,)
    default_tolerance = 1e-4

    def prepare(self, cell: CvCell, n_threads: int) -> Any:
        import blockgreedy as bg

        make = bg.LassoCV if cell.loss == "squared" else bg.LogisticRegressionCV
        return columns(cell.X, cell.X.dtype), cell, make, n_threads

    def fit(self, prepared: Any, tolerance: float) -> Any:
        X, cell, make, n_threads = prepared
        options = {"alphas": cell.alphas, "cv": cell.splits, "fit_intercept": False, "tol": tolerance}
        model, peak = with_peak(lambda: make(n_threads=n_threads, **options).fit(X, cell.y))
        self.details = {"peak": peak / matrix_bytes(X)}
        # its score is −MSE, or −2·(mean log loss)
        return -np.mean(model.score_path_, axis=1) / (1 if cell.loss == "squared" else 2), model.alpha_


class SklearnLassoCV(CvPeer):
    name = "sklearn-lassocv"
    package = "scikit-learn"
    losses = ("squared",)
    tolerances = (1e-4,)
    default_tolerance = 1e-4
    max_iter = 1_000_000  # its default of 1,000 would be reached, and leave the curve unfinished

    def prepare(self, cell: CvCell, n_threads: int) -> Any:
        from sklearn.linear_model import LassoCV

        return columns(cell.X), cell, LassoCV, {"n_jobs": n_threads, "precompute": False, "copy_X": False}

    def fit(self, prepared: Any, tolerance: float) -> Any:
        X, cell, make, options = prepared
        options = options | {"fit_intercept": False, "max_iter": self.max_iter, "tol": tolerance}
        model = make(alphas=cell.alphas, cv=cell.splits, **options).fit(X, cell.y)
        return np.mean(model.mse_path_, axis=1), model.alpha_


class CelerLassoCV(SklearnLassoCV):
    """celer has no LogisticRegressionCV (0.7.4)."""

    name = "celer-lassocv"
    package = "celer"
    max_iter = 100  # its default: subproblems

    def prepare(self, cell: CvCell, n_threads: int) -> Any:
        import celer
        from sklearn.linear_model._coordinate_descent import LinearModelCV

        class LassoCV(celer.LassoCV):  # type: ignore[misc]
            """Its own constructor passes an argument that scikit-learn 1.9 has dropped; the defaults are celer's."""

            def __init__(
                self, alphas=None, fit_intercept=True, max_iter=100, tol=1e-4, cv=None, max_epochs=50_000, p0=10,
                prune=True, precompute="auto", positive=False, n_jobs=None,
            ):  # fmt: skip
                options = {"fit_intercept": fit_intercept, "max_iter": max_iter, "tol": tol, "positive": positive}
                LinearModelCV.__init__(self, alphas=alphas, cv=cv, n_jobs=n_jobs, precompute=precompute, **options)
                self.max_epochs, self.p0, self.prune = max_epochs, p0, prune

        return columns(cell.X), cell, LassoCV, {"n_jobs": n_threads}


class SklearnLogisticCV(CvPeer):
    """liblinear, one process per thread. Its C weighs the sum over a fold's rows, so C = 1/(alpha · those rows)."""

    name = "sklearn-logisticcv"
    package = "scikit-learn"
    losses = ("logistic",)
    tolerances = (1e-4,)
    default_tolerance = 1e-4

    def prepare(self, cell: CvCell, n_threads: int) -> Any:
        import scipy.sparse as sp
        import sklearn.linear_model  # noqa: F401

        X = sp.csr_matrix(cell.X, dtype=np.float64) if sp.issparse(cell.X) else np.ascontiguousarray(cell.X)
        return X, cell, n_threads

    def fit(self, prepared: Any, tolerance: float) -> Any:
        from sklearn.linear_model import LogisticRegressionCV

        X, cell, n_threads = prepared
        splits = cell.splits
        rows = float(np.mean([len(train) for train, _ in splits]))
        model = LogisticRegressionCV(
            Cs=1.0 / (rows * cell.alphas),
            l1_ratios=(1.0,),
            solver="liblinear",
            scoring="neg_log_loss",
            fit_intercept=False,
            cv=splits,
            tol=tolerance,
            max_iter=100_000,
            n_jobs=n_threads,
            random_state=0,
            use_legacy_attributes=False,
        ).fit(X, cell.y)
        return -np.mean(model.scores_, axis=(0, 1)), 1.0 / (rows * model.C_)


class CvGlmnet(CvPeer):
    """R's cv.glmnet, timed by R; with two threads its folds run in two processes."""

    name = package = "glmnet"
    tolerances = (1e-7,)
    default_tolerance = 1e-7
    types = MappingProxyType({"squared": "naive", "logistic": "Newton"})

    def version(self) -> str:
        return glmnet.version()

    def prepare(self, cell: CvCell, n_threads: int) -> Any:
        session = glmnet.Session()
        session.load(cell.X, cell.y, cell.alphas, cell.folds)
        return session, cell.loss, n_threads

    def fit(self, prepared: Any, tolerance: float) -> Any:
        session, loss, n_threads = prepared
        seconds, _ = session.ask("cv", glmnet.FAMILIES[loss], self.types[loss], tolerance, n_threads)
        self.details = {"seconds": seconds}
        curve = session.read("curve")
        return curve / 2 if loss == "logistic" else curve, session.read("chosen")[0]  # a deviance is twice a loss


PEERS: list[CvPeer] = [Blockgreedy(), SklearnLassoCV(), CelerLassoCV(), SklearnLogisticCV(), CvGlmnet()]


def find_peer(name: str) -> CvPeer:
    return next(peer for peer in PEERS if peer.name == name)
