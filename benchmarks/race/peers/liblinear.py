"""LIBLINEAR's own package and its multi-core twin, -s 6: ‖w‖₁ + C Σ loss, without a bias term (-B -1)."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..problems import Cell
from . import Peer, decades


class Liblinear(Peer):
    name = "liblinear"
    package = "liblinear-official"
    losses = ("logistic",)
    tolerances = decades(1e0, 1e-8)
    default_tolerance = 1e-2

    def prepare(self, cell: Cell, n_threads: int) -> Any:
        from liblinear.liblinear import problem

        X = sp.csr_matrix(cell.X, dtype=np.float64)
        return problem(cell.y, X), X.shape, cell.alpha, n_threads

    def fit(self, prepared: Any, tolerance: float) -> NDArray[np.float64]:
        from liblinear.liblinearutil import train

        problem, (n, p), alpha, n_threads = prepared
        model = train(problem, f"-s 6 -B -1 -q -c {1.0 / (n * alpha)!r} -e {tolerance!r}{self.more(n_threads)}")
        sign = 1.0 if model.label[0] == 1 else -1.0
        return sign * np.ctypeslib.as_array(model.w, (p,))

    def more(self, n_threads: int) -> str:
        return ""


class LiblinearMulticore(Liblinear):
    """Lies in a folder of its own, because its module has the same name (install.py)."""

    name = "liblinear-multicore"
    package = "liblinear-multicore"
    max_threads = 64
    folder = Path(sys.prefix) / "liblinear-multicore"

    def version(self) -> str:
        found = list(importlib.metadata.distributions(name=self.package, path=[str(self.folder)]))
        if not found:
            raise ModuleNotFoundError("liblinear-multicore is not in the folder that install.py makes")
        return found[0].version

    def prepare(self, cell: Cell, n_threads: int) -> Any:
        if str(self.folder) not in sys.path:
            sys.path.insert(0, str(self.folder))
        return super().prepare(cell, n_threads)

    def more(self, n_threads: int) -> str:
        return f" -m {n_threads}"


PEERS = [Liblinear(), LiblinearMulticore()]
