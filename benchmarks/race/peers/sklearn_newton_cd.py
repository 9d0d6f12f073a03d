"""scikit-learn's newton-cd and newton-cd-gram, in versions that have them."""

from __future__ import annotations

from . import Peer, decades
from .sklearn_liblinear import SklearnLiblinear


class SklearnNewtonCD(SklearnLiblinear):
    name = "sklearn-newton-cd"
    solver = "newton-cd"
    tolerances = decades(1e-1, 1e-9)

    def version(self) -> str:
        from sklearn.linear_model import LogisticRegression

        installed = Peer.version(self)
        solvers = next(iter(LogisticRegression._parameter_constraints["solver"])).options
        if self.solver not in solvers:
            raise NotImplementedError(f'scikit-learn {installed} has no solver="{self.solver}"')
        return installed


class SklearnNewtonCDGram(SklearnNewtonCD):
    name = "sklearn-newton-cd-gram"
    solver = "newton-cd-gram"
    max_threads = 2
    max_features = 25_000


PEERS = [SklearnNewtonCD(), SklearnNewtonCDGram()]
