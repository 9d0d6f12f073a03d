"""A problem as the core holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy import _core
from blockgreedy.base.threads import resolve_threads
from blockgreedy.problem.certificate import NumpyPasses
from blockgreedy.problem.null_model import ConstantRange
from blockgreedy.problem.passes import column_products, core_matrix

if TYPE_CHECKING:
    from blockgreedy.problem.null_model import NullModel
    from blockgreedy.problem.problem import Problem


class CoreProblem:
    """A problem on the core: its objective and the passes over the columns that a certificate needs."""

    def __init__(self, problem: Problem, n_threads: int, columns: Any = None) -> None:
        """``columns``: instead of the problem's own, some left empty (``SomeColumns``)."""
        self.matrix, self.n_threads = core_matrix(problem.X if columns is None else columns), n_threads
        self._problem = problem
        with np.errstate(over="ignore"):
            l2_weights = None if problem.ridge_scales is None else problem.ridge_scales**2
        self.core = _core.CoreProblem(
            self.matrix,
            problem.y,
            problem.loss.code,
            getattr(problem.loss, "delta", 1.0),
            problem.alpha,
            problem.l2,
            problem.penalty_weights,
            l2_weights,
            problem.lower,
            problem.upper,
            problem.row_weights,
            problem.offset,
            problem.fit_intercept,
            n_threads,
        )

    def constants(self) -> tuple[float, float, int] | None:
        """Where the core looks for an intercept: None, between the targets; else see ``ConstantRange``."""
        if not self._problem.fit_intercept or self._problem.loss.depends_on_residual:
            return None
        found = ConstantRange.of(self._problem)
        return found.low, found.high, found.only_class

    def predict(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.core.predict(w)

    def settled(self, w: NDArray[np.float64], intercept: float) -> tuple[NDArray[np.float64], float, float] | None:
        """Weights, intercept and objective of the minimum, where it has the signs of this point near it."""
        return self.core.settled(w, intercept)

    def objective(self, w: NDArray[np.float64], Xw: NDArray[np.float64]) -> float:
        return self.core.objective(w, Xw)

    def products(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        return column_products(self.matrix, theta, self.n_threads)

    def alpha_needed(self, theta: NDArray[np.float64], at_null: bool = False, rounding: float = 0.0) -> float:
        return self.core.alpha_needed(np.ascontiguousarray(theta), at_null, rounding)

    def penalty_conjugate(
        self, theta: NDArray[np.float64], scale: float, rounding: float = 0.0, most: float = np.inf
    ) -> float:
        return self.core.penalty_conjugate(np.ascontiguousarray(theta), scale, rounding, most)


def alpha_at_null(problem: Problem, null: NullModel) -> float:
    """The smallest alpha at which the null model is a solution, after it was fitted: that may rescale the columns."""
    scaling = problem.scaling
    inner = scaling.inner
    # on the core: scipy would copy a float32 matrix to float64 for this product
    passes = NumpyPasses(inner) if inner.design.is_tiled else CoreProblem(inner, resolve_threads(problem.n_threads))
    return scaling.alpha_out(passes.alpha_needed(scaling.dual_in(null.dual), at_null=True))
