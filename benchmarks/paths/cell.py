"""What is asked of a peer: one path, without intercept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..race.problems import Cell, Data, Loss

Array = NDArray[np.float64]


def grid(data: Data, loss: Loss, n_alphas: int, eps: float) -> Array:
    """Descending, from alpha_max on."""
    return data.alpha_max(loss) * np.geomspace(1.0, eps, n_alphas)


@dataclass(frozen=True)
class PathCell:
    """X as it lies in memory, to convert as a peer likes before the clock runs."""

    X: Any
    y: Array
    loss: Loss
    alphas: Array

    def small(self) -> PathCell:
        """A corner of it, to compile what is compiled at first use."""
        corner = Cell(self.X, self.y, self.loss, float(self.alphas[-1])).small()
        return PathCell(corner.X, corner.y, self.loss, corner.alpha * np.array([5.0, 2.0, 1.0]))


def objectives(data: Data, loss: Loss, alphas: Array, coefs: Any) -> Array:
    """f(w_k) at each alpha, in plain NumPy; ``coefs`` is p × k."""
    coefs = sp.csc_matrix(coefs)
    found = np.empty(len(alphas))
    for k, alpha in enumerate(alphas):  # one column at a time: n × k predictions need not fit
        w = np.zeros(coefs.shape[0])
        nonzero = slice(coefs.indptr[k], coefs.indptr[k + 1])
        w[coefs.indices[nonzero]] = coefs.data[nonzero]
        found[k] = data.objective(w, loss, float(alpha))
    return found


def worst_error(found: Array, best: Array, f_null: float) -> tuple[float, int]:
    """The largest suboptimality of a path relative to f(0), and where it is."""
    errors = (found - best) / f_null
    where = int(np.argmax(errors))  # the first nan, if there is one
    return float(errors[where]), where
