"""What all estimators share: the common parameters, the way to ``solve`` and what a fit leaves behind."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from blockgreedy.base.reals import collected, in_host_memory
from blockgreedy.estimators.doc_link import DocLinkMixin
from blockgreedy.estimators.fit_tasks import FRAMES, CallbackSupportMixin, heard_by_both, tasks_of
from blockgreedy.estimators.fitting import Callback, Outcome, solve_all
from blockgreedy.estimators.sparse_coef import SparseCoefMixin, dense_coef
from blockgreedy.estimators.to_sklearn import ToSklearnMixin
from blockgreedy.problem.problem import Problem
from blockgreedy.solvers.trace import Trace

Array = NDArray[np.float64]


def _are_plain(X: Any, y: Any) -> bool:
    """Whether these are arrays of floats and of as many finite numbers, just as a fit needs them."""
    if type(X) is not np.ndarray or type(y) is not np.ndarray or X.ndim != 2 or y.ndim != 1:
        return False
    if X.dtype not in (np.float64, np.float32) or y.dtype.kind not in "fiub" or not len(X) == len(y) > 0 < X.shape[1]:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return y.dtype.kind != "f" or bool(np.isfinite(np.sum(y)))  # not if one of them is not


@dataclass(eq=False, repr=False)
class SparseLinearModel(SparseCoefMixin, ToSklearnMixin, DocLinkMixin, CallbackSupportMixin, BaseEstimator):
    """Parameters, fit and prediction of one or more weight vectors on one matrix.

    A dataclass because its constructor does just what scikit-learn asks of one: store the arguments.
    """

    _: KW_ONLY
    fit_intercept: bool = True
    standardize: bool = False
    penalty_weights: ArrayLike | None = None
    positive: bool = False
    lower: ArrayLike | None = None
    upper: ArrayLike | None = None
    tol: float = 1e-4
    max_iter: int | None = None
    max_seconds: float | None = None
    n_threads: int | None = None
    warm_start: bool = False
    verbose: bool = False
    callback: Callback | None = None

    @property
    def _title(self) -> str:
        """What is fitted, for progress and warnings."""
        return type(self).__name__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _checked(self, X: Any, y: Any, **options: Any) -> tuple[Any, Any]:
        """X and y as scikit-learn wants them looked at; any sparse format passes, and Problem looks for NaN.

        Plain arrays, which its checks would leave as they are, are spared them: they take a third of a small fit.
        """
        if _are_plain(X, y):
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)
            return X, y
        X, y = collected(X), collected(y)
        in_host_memory("X", X)
        in_host_memory("y", y)
        try:
            X, y = validate_data(
                self, X, y, accept_sparse=True, dtype=[np.float64, np.float32], ensure_all_finite=False, **options
            )
        except ValueError as error:
            if "could not convert string to float" in str(error) and hasattr(X, "columns"):
                raise ValueError(f"{error}; blockgreedy.TableEncoder makes features of columns of text") from error
            raise
        return X, y

    def _problem(self, X: Any, y: Any, sample_weight: Any, offset: Any, **options: Any) -> Problem:
        return Problem(
            X,
            y,
            sample_weight=sample_weight,
            offset=offset,
            fit_intercept=self.fit_intercept,
            standardize=self.standardize,
            penalty_weights=self.penalty_weights,
            positive=self.positive,
            lower=self.lower,
            upper=self.upper,
            n_threads=self.n_threads,
            **options,
        )

    @property
    def _cluster(self) -> Any:
        """Who solves the problems together, as in ``solve``; None: this process."""
        return None

    def _solve_all(
        self,
        problems: Sequence[Problem],
        names: Sequence[str],
        max_seconds: float | None = None,
        starts: list[tuple[Array, float]] | None = None,
    ) -> Outcome:
        return solve_all(
            problems,
            names,
            self._starts(problems) if starts is None and self.warm_start else starts,
            title=self._title,
            verbose=self.verbose,
            callback=heard_by_both(self.callback, tasks_of(self)),
            tol=self.tol,
            max_iter=self.max_iter,
            max_seconds=self.max_seconds if max_seconds is None else max_seconds,
            n_threads=self.n_threads,
            cluster=self._cluster,
        )

    def _starts(self, problems: Sequence[Problem]) -> list[tuple[Array, float]] | None:
        """The last fit's weights, moved inside today's bounds; None where there is no such fit."""
        if not hasattr(self, "coef_"):
            return None
        coefs = np.atleast_2d(dense_coef(self).astype(np.float64))
        intercepts = np.broadcast_to(np.asarray(getattr(self, "intercept_", 0.0), dtype=np.float64), len(coefs))
        if coefs.shape != (len(problems), problems[0].n_features):
            return None
        return [
            (np.clip(w, problem.penalty.lower, problem.penalty.upper), float(b) if self.fit_intercept else 0.0)
            for w, b, problem in zip(coefs, intercepts, problems, strict=True)
        ]

    def _keep(self, outcome: Outcome, one: bool) -> None:
        """Sets the fitted attributes. ``one``: those of a single solution instead of one for each target."""
        dtype = outcome.round_to(outcome.problems[0].design.dtype, self.tol)
        coefs, intercepts = outcome.weights()
        solutions = outcome.solutions
        gaps = np.array([s.gap for s in solutions] + [np.nan] * (len(coefs) - len(solutions)))
        self.coef_: Any = (coefs[0] if one else coefs).astype(dtype, copy=False)
        self.intercept_: Any = intercepts[0] if one else intercepts
        self.dual_gap_: Any = float(gaps[0]) if one else gaps
        self.status_ = outcome.status
        n_iters = [max(1, s.n_iter) for s in solutions] + [1] * (len(coefs) - len(solutions))
        self.n_iter_: Any = n_iters[0] if one else np.array(n_iters, dtype=np.int32)
        traces = [s.trace for s in solutions]
        self.trace_: Trace | list[Trace] = traces[0] if one else traces

    def _conclude(self, outcome: Outcome, stacklevel: int = 3) -> Self:
        """Once the attributes are set: a warning where it did not converge, Ctrl-C where it was pressed.

        ``stacklevel``: such that the warning names the line that called ``fit``.
        """
        tasks = tasks_of(self)
        if tasks is not None:
            tasks.end()
        complaints = outcome.complaints()
        if complaints:
            others = f" (and {len(complaints) - 1} more)" if len(complaints) > 1 else ""
            warnings.warn(
                f"{self._title} did not converge: {complaints[0]}{others}",
                ConvergenceWarning,
                stacklevel=stacklevel + FRAMES,
            )
        if outcome.by_keyboard:
            raise KeyboardInterrupt
        return self

    def _decision(self, X: Any) -> Array:
        check_is_fitted(self)
        X = collected(X)
        in_host_memory("X", X)
        X = validate_data(self, X, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32], reset=False)
        return np.asarray(X @ dense_coef(self).T + self.intercept_)
