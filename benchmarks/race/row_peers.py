"""Who races from the CSR matrix that a user holds: an estimator's whole fit of a logistic model with an intercept.

Conversions to what a peer likes best are on the clock; imports and compiling are not. Everybody answers with weights
and an intercept that is not penalised. Peers that know only a penalised one get a constant column of a size at which
its penalty does not matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .peers import Peer
from .problems import Cell, Data, Loss

Weights = tuple[NDArray[np.float64], float]


class RowPeer(Peer):
    registry = __name__
    losses = ("logistic",)
    storages = ("sparse",)
    default_tolerance = None

    def cell(self, data: Data, loss: Loss, question: Any) -> Cell:
        return Cell(sp.csr_matrix(data.X, copy=True), data.y(loss), loss, question)  # in memory, not in a file

    def prepare(self, cell: Cell, n_threads: int) -> Any:
        self.load()
        return cell, n_threads

    def load(self) -> None:
        """Imports."""

    def fit(self, prepared: Any, tolerance: float) -> Any:
        cell, n_threads = prepared
        return self.weights(cell.X, cell.y, cell.alpha, tolerance, n_threads)

    def weights(self, X: Any, y: NDArray[np.float64], alpha: float, tolerance: float, n_threads: int) -> Any:
        raise NotImplementedError

    def answer(self, found: Any) -> Weights:
        w, b = found
        return np.array(w, dtype=np.float64).ravel(), float(np.ravel(b)[0])


class Blockgreedy(RowPeer):
    """Ours, certified to its default tolerance."""

    name = package = "blockgreedy"
    tolerances = (1e-4,)

    def load(self) -> None:
        import blockgreedy  # noqa: F401

    def weights(self, X: Any, y: NDArray[np.float64], alpha: float, tolerance: float, n_threads: int) -> Any:
        import blockgreedy as bg

        model = bg.LogisticRegression(alpha=alpha, n_threads=n_threads).fit(X, y)
        return model.coef_, model.intercept_


class SklearnLiblinear(RowPeer):
    """Penalises the intercept, divided by intercept_scaling."""

    name, package = "sklearn-liblinear", "scikit-learn"
    tolerances = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 1e-4, 1e-5)

    def load(self) -> None:
        import sklearn.linear_model  # noqa: F401

    def weights(self, X: Any, y: NDArray[np.float64], alpha: float, tolerance: float, n_threads: int) -> Any:
        from sklearn.linear_model import LogisticRegression

        options = {"solver": "liblinear", "C": 1.0 / (X.shape[0] * alpha), "tol": tolerance, "random_state": 0}
        model = LogisticRegression(l1_ratio=1, max_iter=1_000_000, intercept_scaling=100.0, **options).fit(X, y)
        return model.coef_, model.intercept_


class Liblinear(RowPeer):
    """LIBLINEAR's own package, whose -R leaves the intercept out of the penalty."""

    name, package = "liblinear", "liblinear-official"
    tolerances = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 1e-4, 1e-5)

    def load(self) -> None:
        import liblinear.liblinearutil  # noqa: F401

    def weights(self, X: Any, y: NDArray[np.float64], alpha: float, tolerance: float, n_threads: int) -> Any:
        from liblinear.liblinear import problem
        from liblinear.liblinearutil import train

        n, p = X.shape
        made = problem(y, sp.csr_matrix(X, dtype=np.float64), bias=1)
        model = train(made, f"-s 6 -B 1 -R -q -c {1.0 / (n * alpha)!r} -e {tolerance!r}")
        w = (1.0 if model.label[0] == 1 else -1.0) * np.ctypeslib.as_array(model.w, (p + 1,))
        return w[:p], w[p]


class Skglm(RowPeer):
    name = package = "skglm"
    tolerances = (1e0, 3e-1, 1e-1, 3e-2, 1e-2, 1e-3)  # times alpha

    def load(self) -> None:
        import skglm.solvers  # noqa: F401

    def weights(self, X: Any, y: NDArray[np.float64], alpha: float, tolerance: float, n_threads: int) -> Any:
        from skglm.datafits import Logistic
        from skglm.penalties import L1
        from skglm.solvers import ProxNewton

        solver = ProxNewton(max_iter=10_000, max_pn_iter=10_000, tol=tolerance * alpha, fit_intercept=True)
        w = solver.solve(sp.csc_matrix(X, dtype=np.float64), y, Logistic(), L1(alpha))[0]
        return w[:-1], w[-1]


class Snapml(RowPeer):
    """Its own fit_intercept=True fits one but says 0 (1.17.2), so the intercept is a column."""

    name = package = "snapml"
    tolerances = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6)
    constant = 1000.0

    def load(self) -> None:
        import snapml  # noqa: F401

    def weights(self, X: Any, y: NDArray[np.float64], alpha: float, tolerance: float, n_threads: int) -> Any:
        import snapml

        column = sp.csc_matrix(np.full((X.shape[0], 1), self.constant, dtype=np.float32))
        columns = sp.hstack([sp.csc_matrix(X, dtype=np.float32), column], format="csc")
        options = {"penalty": "l1", "dual": False, "fit_intercept": False, "max_iter": 1_000_000, "random_state": 0}
        regularizer = alpha * X.shape[0]
        model = snapml.LogisticRegression(regularizer=regularizer, tol=tolerance, n_jobs=n_threads, **options)
        w = np.ravel(model.fit(columns, y).coef_)
        return w[:-1], self.constant * w[-1]


class Gblinear(RowPeer):
    """XGBoost's linear booster with the updater shotgun. Its tolerance is a number of rounds."""

    name, package = "gblinear", "xgboost"
    tolerances = (10, 30, 100, 300, 1000)

    def load(self) -> None:
        import xgboost  # type: ignore[import-not-found, unused-ignore]  # noqa: F401

    def weights(self, X: Any, y: NDArray[np.float64], alpha: float, tolerance: float, n_threads: int) -> Any:
        import xgboost

        options = {"booster": "gblinear", "updater": "shotgun", "objective": "binary:logistic", "lambda": 0.0}
        options |= {"alpha": alpha, "eta": 1.0, "nthread": n_threads, "base_score": 0.5, "verbosity": 0}
        return xgboost.train(options, xgboost.DMatrix(X, (y > 0).astype(float)), int(tolerance)), X.shape[1]

    def answer(self, found: Any) -> Weights:
        """Written out as text, which takes longer than the fit and is not counted."""
        model, n_features = found
        lines = model.get_dump()[0].split("\n")
        at = lines.index("weight:") + 1
        return np.array(lines[at : at + n_features], dtype=np.float64), float(lines[lines.index("bias:") + 1])


OURS = Blockgreedy()
PEERS = [SklearnLiblinear(), Liblinear(), Skglm(), Snapml(), Gblinear()]


def find_peer(name: str) -> Peer:
    return next(peer for peer in (OURS, *PEERS) if peer.name == name)
