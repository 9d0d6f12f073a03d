"""A path of solutions: what ``solve_path`` returns, and how to choose among its models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockgreedy.base.names import CRITERIA
from blockgreedy.base.validate import number, one_of, whole
from blockgreedy.problem.problem import Problem
from blockgreedy.solvers.criteria import Criteria, lowest
from blockgreedy.solvers.solution import REMEDIES, Solution
from blockgreedy.solvers.solve import solve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PathPoint:
    """The solution at one alpha of a path.

    Attributes
    ----------
    alpha : float
        Weight of the penalty.
    features : ndarray of int
        The features whose weight is not 0, ascending.
    values : ndarray of float
        Their weights.
    intercept : float
        The intercept, 0 if none is fitted.
    objective : float
        Mean loss plus penalty.
    gap : float
        The objective is at most this much above the true minimum.
    loss : float
        The mean loss: the objective without the penalty.
    n_iter : int
        Iterations.
    seconds : float
        Wall-clock time.
    status : str
        "converged", "max_iter", "max_seconds", "interrupted" or "stalled".
    dual : ndarray of shape (n_samples,) or None
        The dual point that proves the gap, if ``keep_duals`` was asked for.
    """

    alpha: float
    features: NDArray[np.int32]
    values: Array
    intercept: float
    objective: float
    gap: float
    loss: float
    n_iter: int
    seconds: float
    status: str
    dual: Array | None = field(default=None, repr=False)


@dataclass(frozen=True)
class SolutionPath:
    """Solutions along a sequence of alphas, each with its duality gap.

    Attributes
    ----------
    problem : Problem
        The problem, with an alpha of its own that is not used.
    points : list of PathPoint
        The solutions, alphas descending.
    null_loss : float
        Mean loss of the null model.
    status : str
        "converged", or the first other status; "stopped" where a rule or a callback ended the path early.
    message : str
        One sentence on the status.
    seconds : float
        Wall-clock time.

    Examples
    --------
    >>> import blockgreedy as bg
    >>> data = bg.data.text_like(300, 400, 10.0)
    >>> path = bg.solve_path(bg.Problem(data, loss="logistic", alpha=0), n_alphas=10, eps=0.1)
    >>> path.coefs.shape
    (400, 10)
    >>> k = path.index_of_nonzeros(20)
    >>> path.coef(k).shape
    (400,)
    """

    problem: Problem = field(repr=False)
    points: list[PathPoint] = field(repr=False)
    null_loss: float
    status: str
    message: str
    seconds: float

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        if not self.points:
            return f"SolutionPath({self.status}: no points)"
        first, last = self.points[0], self.points[-1]
        return (
            f"SolutionPath({self.status}: {len(self)} alphas {first.alpha:.3g} … {last.alpha:.3g}, "
            f"{len(first.values)} … {len(last.values)} nonzeros, largest gap {np.max(self.gaps, initial=0.0):.2g}, "
            f"{self.seconds:.3g} s)"
        )

    def _each(self, name: str) -> Array:
        return np.array([getattr(point, name) for point in self.points], dtype=np.float64)

    @property
    def alphas(self) -> Array:
        return self._each("alpha")

    @property
    def intercepts(self) -> Array:
        return self._each("intercept")

    @property
    def objectives(self) -> Array:
        return self._each("objective")

    @property
    def gaps(self) -> Array:
        """objective − dual value at each alpha: the objective is at most this much above the true minimum."""
        return self._each("gap")

    @property
    def n_iters(self) -> NDArray[np.int64]:
        return self._each("n_iter").astype(np.int64)

    @property
    def statuses(self) -> list[str]:
        return [point.status for point in self.points]

    @property
    def coefs(self) -> Any:
        """Weights as a sparse matrix, a column for each alpha."""
        counts = [len(point.values) for point in self.points]
        indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        indices = np.concatenate([point.features for point in self.points] or [np.zeros(0, dtype=np.int32)])
        values = np.concatenate([point.values for point in self.points] or [np.zeros(0)])
        return sp.csc_array((values, indices, indptr), shape=(self.problem.n_features, len(self)))

    def coef(self, k: int) -> Array:
        """Weights at ``alphas[k]``, zeros included."""
        w = np.zeros(self.problem.n_features)
        w[self.points[k].features] = self.points[k].values
        return w

    @property
    def nonzeros(self) -> NDArray[np.int64]:
        return np.array([len(point.values) for point in self.points], dtype=np.int64)

    @property
    def deviance_explained(self) -> Array:
        """1 − loss/(loss of the null model): glmnet's ``dev.ratio``, R² for the squared loss with an intercept."""
        return 1 - self._each("loss") / self.null_loss if self.null_loss > 0 else np.ones(len(self))

    @property
    def degrees_of_freedom(self) -> NDArray[np.int64]:
        """Nonzero weights and the intercept: for a lasso an unbiased estimate, with l2 an upper bound."""
        return self.nonzeros + int(self.problem.fit_intercept)

    def aic(self) -> Array:
        """Akaike's criterion: −2 log-likelihood + 2 degrees of freedom; choose the alpha with the lowest value."""
        return self.criteria.aic()

    def bic(self) -> Array:
        """Schwarz's criterion: −2 log-likelihood + log(n) degrees of freedom."""
        return self.criteria.bic()

    def ebic(self, gamma: float = 0.5) -> Array:
        """BIC + 2·gamma·log(p choose nonzeros): for more features than samples (Chen and Chen 2008)."""
        if not 0 <= number("gamma", gamma) <= 1:
            raise ValueError(f"gamma={gamma!r} must lie in 0..1; 0 is bic()")
        return self.criteria.ebic(gamma)

    @property
    def criteria(self) -> Criteria:
        """AIC, BIC and EBIC of the models of the path."""
        weights = self.problem.row_weights  # rows of weight 0 are none
        n_rows = float(self.problem.n_samples if weights is None else np.count_nonzero(weights))
        sizes = self.problem.n_features, self._each("loss"), self.nonzeros, self.degrees_of_freedom
        return Criteria(self.problem.loss, n_rows, *sizes)

    def recommended(self, criterion: str = "bic") -> int:
        """The position on the path of the lowest "aic", "bic" or "ebic".

        Least-squares models with more than half as many weights as there are rows are not considered: as a model
        comes close to fitting every row exactly, its log-likelihood grows without bound, and it would be chosen.
        """
        one_of("criterion", criterion, CRITERIA)
        if not self.points:
            raise ValueError("the path has no points")
        values = self.criteria.to_choose_by()
        if values is None:
            raise ValueError(f"loss={self.problem.loss.name!r} belongs to no likelihood; squared and logistic do")
        return lowest(criterion, values[criterion])

    def index_of_nonzeros(self, k: int) -> int:
        """The position on the path whose number of nonzero weights is nearest to k (the first one if several are)."""
        whole("k", k, 0)
        if not self.points:
            raise ValueError("the path has no points")
        return int(np.argmin(np.abs(self.nonzeros - k)))

    def refit(self, k: int, *, tol: float = 1e-6, n_threads: int | None = None) -> Solution:
        """The relaxed lasso: fits the features that are nonzero at ``alphas[k]`` again, without penalty (l2 = 0 too).

        If the features separate the classes perfectly, there is no minimum, and the status is not "converged".
        """
        features = self.points[k].features
        full = self.problem
        small = full.with_features(features, alpha=0.0).with_alpha(0.0, l2=0.0)
        solution = solve(small, tol=tol, n_threads=n_threads, coef_init=self.points[k].values,
                         intercept_init=self.points[k].intercept)  # fmt: skip
        coef = np.zeros(full.n_features)
        coef[features] = solution.coef
        return replace(solution, coef=coef, feature_names=full.feature_names)

    def plot(self, *, n_named: int = 6, feature_names: Sequence[str] | None = None) -> Figure:
        """Weights and number of nonzeros against alpha: a matplotlib figure, which notebooks show by themselves.

        The ``n_named`` features with the largest weights are labelled with their names (``feature_names``, default:
        those of the problem); up to 200 features are drawn in all, the others as thin lines.
        """
        from blockgreedy.reports.plots import chosen_features, path_figure

        whole("n_named", n_named, 0)
        if feature_names is not None and len(feature_names) != self.problem.n_features:
            raise ValueError(f"feature_names has {len(feature_names)} names, expected {self.problem.n_features}")
        coefs = self.coefs.tocsr()
        shown = chosen_features(coefs, n_named)
        known = self.problem.feature_names if feature_names is None else feature_names
        names = [f"feature {j}" if known is None else str(known[j]) for j in shown[:n_named]]
        # at alpha = 0 there is no place on a logarithmic axis
        drawn = self.alphas > 0
        return path_figure(self.alphas[drawn], coefs[shown].toarray()[:, drawn], names, self.nonzeros[drawn])

    def _repr_html_(self) -> str:
        from blockgreedy.reports.plots import notebook_html

        facts = [("status", self.message), ("alphas", str(len(self)))]
        if self.points:
            first, last = self.points[0], self.points[-1]
            facts += [
                ("alpha", f"{first.alpha:.6g} … {last.alpha:.6g}"),
                ("nonzeros", f"{len(first.values):,} … {len(last.values):,}"),
                ("deviance explained", f"{100 * self.deviance_explained[-1]:.4g} % at the last"),
                ("largest gap", f"{np.max(self.gaps):.3g}"),
            ]
        facts += [("seconds", f"{self.seconds:.3g}")]
        draw = self.plot if np.any(self.nonzeros) else None
        return notebook_html("SolutionPath", facts, "Weights and nonzeros against alpha", draw)


def path_message(status: str, points: list[PathPoint], n_alphas: int) -> str:
    """What happened to a path of so many alphas, where, and what to change."""
    got = f"{len(points)} of {n_alphas} alphas"
    if status == "converged":
        return f"converged at {got}"
    if status == "stopped":
        return f"ended after {got}, as asked for"
    where = next((point.alpha for point in points if point.status == status), points[-1].alpha)
    remedy = {
        "max_seconds": f"{REMEDIES['max_seconds']}, or ask for fewer alphas",
        "interrupted": "the points so far are returned",
    }.get(status, REMEDIES[status])
    return f"{status} at alpha={where:.3g} ({got}): {remedy}"
