"""How each package is asked for a path. Conversions and imports happen in ``prepare``, outside the timed section.

Each gets what it reads fastest: float64 columns, its own path function where it has one, a warm-started loop where it
has not. LIBLINEAR knows no warm start and fits every alpha anew.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import glmnet
from ..race.peers import Peer, decades
from ..race.peers.adelie import coefs_along_alphas
from ..race.peers.liblinear import Liblinear, LiblinearMulticore
from ..race.problems import Cell, Data, Loss
from .cell import Array, PathCell


class PathPeer(Peer):
    registry = __name__
    default_tolerance = None
    count_cpu = True

    def cell(self, data: Data, loss: Loss, question: Array) -> PathCell:
        return PathCell(data.X, data.y(loss), loss, question)

    def answer(self, found: Any) -> Any:
        """Most of a path is zeros: it travels as CSC, p × k."""
        return sp.csc_matrix(found)


def half_decades(loosest: float, tightest: float) -> tuple[float, ...]:
    """Tolerances from loose to tight, √10 apart: a whole decade may cost half of a path's time."""
    whole = decades(loosest, tightest)
    return tuple(sorted({*whole, *(float(f"{t * 10**-0.5:.3g}") for t in whole[:-1])}, reverse=True))


def columns(X: Any, dtype: type = np.float64) -> Any:
    return sp.csc_matrix(X, dtype=dtype) if sp.issparse(X) else np.asfortranarray(X, dtype=dtype)


class Blockgreedy(PathPeer):
    """Ours, with the construction of its Problem inside the timed section; X keeps its precision."""

    name = package = "blockgreedy"
    max_threads = 64
    tolerances = half_decades(1e-1, 1e-7)

    def prepare(self, cell: PathCell, n_threads: int) -> Any:
        import blockgreedy  # noqa: F401

        return columns(cell.X, cell.X.dtype), cell, n_threads

    def fit(self, prepared: Any, tolerance: float) -> Any:
        import blockgreedy as bg

        X, cell, n_threads = prepared
        problem = bg.Problem(X, cell.y, loss=cell.loss, alpha=float(cell.alphas[0]))
        path = bg.solve_path(problem, cell.alphas, tol=tolerance, n_threads=n_threads)
        self.details = {"solver_status": path.status}
        return path.coefs


class Celer(PathPeer):
    """``celer_path``; its logistic objective is a sum. Pruning is what its estimators do, and was a little faster."""

    name = package = "celer"
    tolerances = half_decades(1e-2, 1e-8)
    newton = False
    dtype: type = np.float64

    def prepare(self, cell: PathCell, n_threads: int) -> Any:
        import celer  # noqa: F401

        scale, problem = (cell.X.shape[0], "logreg") if cell.loss == "logistic" else (1, "lasso")
        return columns(cell.X, self.dtype), cell.y.astype(self.dtype), problem, scale * cell.alphas

    def fit(self, prepared: Any, tolerance: float) -> Any:
        from celer.homotopy import celer_path

        X, y, problem, alphas = prepared
        options = {"max_iter": 10_000, "max_epochs": 1_000_000, "prune": True, "use_PN": self.newton}
        return celer_path(X, y, problem, alphas=alphas, tol=tolerance, **options)[1]


class CelerNewton(Celer):
    name = "celer-pn"
    losses = ("logistic",)
    newton = True


class SklearnPath(PathPeer):
    name = "sklearn"
    package = "scikit-learn"
    losses = ("squared",)
    tolerances = half_decades(1e-2, 1e-8)
    dtype: type = np.float64

    def prepare(self, cell: PathCell, n_threads: int) -> Any:
        import sklearn.linear_model  # noqa: F401

        return columns(cell.X, self.dtype), cell.y.astype(self.dtype), cell.alphas

    def fit(self, prepared: Any, tolerance: float) -> Any:
        from sklearn.linear_model import lasso_path

        X, y, alphas = prepared
        options = {"precompute": False, "copy_X": False, "max_iter": 10_000_000}
        return lasso_path(X, y, alphas=alphas, tol=tolerance, **options)[1]


class SklearnPathFloat32(SklearnPath):
    name = "sklearn-f32"
    tolerances = half_decades(1e-2, 1e-6)
    dtype = np.float32


class Glmnet(PathPeer):
    """R's glmnet, timed by R. Covariance updates (squared) were far slower on reuters.

    Its Newton steps have no line search: near alpha_max/1000 on nearly separable data they may go on for ever.
    """

    name = package = "glmnet"
    tolerances = half_decades(1e-3, 1e-12)
    types = MappingProxyType({"squared": "naive", "logistic": "Newton"})

    def version(self) -> str:
        return glmnet.version()

    def prepare(self, cell: PathCell, n_threads: int) -> Any:
        session = glmnet.Session()
        session.load(cell.X, cell.y, cell.alphas)
        return session, glmnet.FAMILIES[cell.loss], self.types[cell.loss]

    def fit(self, prepared: Any, tolerance: float) -> Any:
        session, family, kind = prepared
        seconds, cpu_seconds = session.ask("path", family, kind, tolerance)
        self.details = {"seconds": seconds, "cpu_seconds": cpu_seconds}
        return session.coefs()


class GlmnetModified(Glmnet):
    """With an upper bound for the Hessian: slower steps, but they always lead down."""

    name = "glmnet-modified"
    losses = ("logistic",)
    types = MappingProxyType({"logistic": "modified.Newton"})


class Skglm(PathPeer):
    """A warm-started loop over its solver: what its ``path`` does, with a tolerance that follows alpha."""

    name = "skglm"
    package = "skglm"
    tolerances = half_decades(1e1, 1e-6)
    relative_to_alpha = True

    def prepare(self, cell: PathCell, n_threads: int) -> Any:
        import skglm.solvers  # noqa: F401

        return columns(cell.X), cell

    def solver(self, tol: float, p0: int) -> Any:
        from skglm.solvers import AndersonCD

        return AndersonCD(max_iter=10_000, max_epochs=1_000_000, p0=p0, tol=tol, fit_intercept=False)

    def fit(self, prepared: Any, tolerance: float) -> Any:
        from skglm.datafits import Logistic, Quadratic
        from skglm.penalties import L1

        X, cell = prepared
        datafit = Logistic() if cell.loss == "logistic" else Quadratic()
        w, Xw, found = np.zeros(X.shape[1]), np.zeros(X.shape[0]), []
        for alpha in cell.alphas:
            solver = self.solver(tolerance * alpha, max(10, np.count_nonzero(w)))
            w = solver.solve(X, cell.y, datafit, L1(alpha), w, Xw)[0]
            Xw = X @ w  # it may have left ours behind
            found.append(sp.csc_matrix(w[:, None]))
        return sp.hstack(found, format="csc")


class SkglmPath(Skglm):
    """Its own path function, which has one tolerance for all alphas: here relative to the smallest."""

    name = "skglm-path"
    losses = ("squared",)

    def fit(self, prepared: Any, tolerance: float) -> Any:
        from skglm import Lasso

        X, cell = prepared
        limits = {"max_iter": 10_000, "max_epochs": 1_000_000}
        model = Lasso(tol=tolerance * cell.alphas[-1], fit_intercept=False, **limits)
        return model.path(X, cell.y, cell.alphas)[1]


class SkglmNewton(Skglm):
    name = "skglm-pn"
    losses = ("logistic",)

    def solver(self, tol: float, p0: int) -> Any:
        from skglm.solvers import ProxNewton

        return ProxNewton(p0=p0, max_iter=10_000, max_pn_iter=10_000, tol=tol, fit_intercept=False)


class Adelie(PathPeer):
    name = package = "adelie"
    max_threads = 64
    tolerances = half_decades(1e-4, 1e-13)  # looser ones gave the same error in no less time

    def prepare(self, cell: PathCell, n_threads: int) -> Any:
        import adelie

        make = adelie.matrix.sparse if sp.issparse(cell.X) else adelie.matrix.dense
        X = make(columns(cell.X), n_threads=n_threads, copy=True)
        glm = adelie.glm.gaussian(cell.y) if cell.loss == "squared" else adelie.glm.binomial((cell.y + 1) / 2)
        return X, glm, cell.alphas, n_threads

    def fit(self, prepared: Any, tolerance: float) -> Any:
        return coefs_along_alphas(prepared, tolerance).T


class LiblinearLoop(PathPeer):
    """One fit after the other, each from zero."""

    name = "liblinear"
    package = "liblinear-official"
    losses = ("logistic",)
    tolerances = half_decades(1e-1, 1e-6)
    single: type[Liblinear] = Liblinear

    def version(self) -> str:
        return self.single().version()

    def prepare(self, cell: PathCell, n_threads: int) -> Any:
        single = Cell(cell.X, cell.y, cell.loss, float(cell.alphas[0]))
        return self.single().prepare(single, n_threads), cell.alphas

    def fit(self, prepared: Any, tolerance: float) -> Any:
        (problem, shape, _, n_threads), alphas = prepared
        peer = self.single()
        fits = (peer.fit((problem, shape, alpha, n_threads), tolerance) for alpha in alphas)
        return sp.hstack([sp.csc_matrix(w[:, None]) for w in fits], format="csc")


class LiblinearMulticoreLoop(LiblinearLoop):
    name = package = "liblinear-multicore"
    max_threads = 64
    single = LiblinearMulticore


PEERS: list[PathPeer] = [
    Blockgreedy(),
    Celer(),
    CelerNewton(),
    SklearnPath(),
    SklearnPathFloat32(),
    Glmnet(),
    GlmnetModified(),
    Skglm(),
    SkglmPath(),
    SkglmNewton(),
    Adelie(),
    LiblinearLoop(),
    LiblinearMulticoreLoop(),
]


def find_peer(name: str) -> PathPeer:
    return next(peer for peer in PEERS if peer.name == name)
