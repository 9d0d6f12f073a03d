"""Choosing alpha (and l1_ratio) by cross-validation: what LassoCV, ElasticNetCV and LogisticRegressionCV share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold, check_cv

from blockgreedy.backends.cpu import resolve_threads
from blockgreedy.estimators.base import Array, SparseLinearModel
from blockgreedy.estimators.folds import Fold, Scores, Stopped, make_folds, run_folds, score_along
from blockgreedy.estimators.progress import Progress
from blockgreedy.estimators.scoring import Score, make_score
from blockgreedy.options import number, whole
from blockgreedy.problem import Problem

_FEW_ENTRIES, _MANY_ENTRIES = 300_000, 2_000_000
_LOOSER = 100.0  # scores of folds differ far more from each other than this lets them differ from exact ones


@dataclass(eq=False, repr=False)
class CrossValidated(SparseLinearModel):
    """A model at the alpha that predicts held-out rows best.

    All folds use the same columns, with weights of 0 on the rows held out: centring, scaling and class weights are
    those of the training rows alone, and no fold copies X.
    """

    _: KW_ONLY
    alphas: ArrayLike | None = None
    n_alphas: int = 100
    eps: float = 1e-3
    cv: Any = None
    scoring: Any = None
    selection: str = "min"
    fold_tol: float | None = None
    n_jobs: int | None = None
    random_state: Any = None

    _is_classifier: ClassVar[bool] = False

    def _ratios(self) -> list[float]:
        return [1.0]

    def _choose(
        self,
        problems: Sequence[Problem],
        of_fold: Callable[[Fold], Sequence[Problem]],
        y: NDArray[Any],
        offsets: Sequence[Array | None],
        splits: Any,
        weights: Array | None,
        classes: NDArray[Any] | None = None,
    ) -> tuple[float, float]:
        """(alpha, l1_ratio) of the best score; sets everything that is known of the scores."""
        if self.selection not in ("min", "1se"):
            raise ValueError(f"selection={self.selection!r} is not known; use 'min' or '1se'")
        score = make_score(self.scoring, classes)
        folds = make_folds(splits, len(y), weights)
        ratios = self._ratios()
        grids = [self._grid(problems, ratio) for ratio in ratios]
        try:
            results = self._run(of_fold, folds, ratios, grids, y, offsets, score, int(problems[0].X.size))
        except Stopped:
            self.status_ = "interrupted"
            self.alphas_ = grids[0] if len(grids) == 1 else np.array(grids)
            raise KeyboardInterrupt from None
        return self._judge(results, folds, ratios, grids)

    def _grid(self, problems: Sequence[Problem], ratio: float) -> Array:
        n_alphas = self.n_alphas
        if isinstance(self.alphas, (int, np.integer)):
            n_alphas = whole("alphas", self.alphas, 1)  # scikit-learn's name for their number since 1.7
        elif self.alphas is not None:
            grid = np.asarray(self.alphas, dtype=np.float64)
            if grid.ndim != 1 or not len(grid) or not np.all(np.isfinite(grid)) or np.any(grid <= 0):
                raise ValueError("alphas must be a list of numbers above 0, one or more, or how many")
            return np.sort(grid)[::-1]
        if not ratio > 0:
            raise ValueError("l1_ratio=0 has no largest alpha to begin with; give alphas")
        n_alphas, eps = whole("n_alphas", n_alphas, 1), number("eps", self.eps)
        if not 0 < eps < 1:
            raise ValueError(f"eps={self.eps!r} must lie above 0 and below 1: the last alpha as a part of the first")
        largest = max(problem.alpha_max for problem in problems) / ratio
        # nothing to explain: any alpha gives the null model
        return np.asarray((largest or np.finfo(np.float64).eps) * np.geomspace(1.0, eps, n_alphas))

    def _run(
        self,
        of_fold: Callable[[Fold], Sequence[Problem]],
        folds: list[Fold],
        ratios: list[float],
        grids: list[Array],
        y: NDArray[Any],
        offsets: Sequence[Array | None],
        score: Score,
        n_entries: int,
    ) -> list[Scores]:
        """Of every fold at every ratio, ratio by ratio."""
        threads = resolve_threads(self.n_threads)
        # On large data the core has work for all threads: one fold at a time is as fast, in one solver's memory. On
        # small data most of the time is Python's, whose threads take turns.
        side_by_side = _FEW_ENTRIES < n_entries <= _MANY_ENTRIES
        n_jobs = min(threads, len(ratios) * len(folds)) if side_by_side else 1
        if self.n_jobs is not None:
            n_jobs = threads if self.n_jobs == -1 else whole("n_jobs", self.n_jobs, 1)
        options: dict[str, Any] = {
            "tol": _LOOSER * self.tol if self.fold_tol is None else self.fold_tol,
            "max_iter": self.max_iter,
            "max_seconds": self.max_seconds,
            "n_threads": max(1, threads // n_jobs),
        }

        def task(fold: Fold, ratio: float, grid: Array, advance: Callable[[], bool]) -> Scores:
            return score_along(of_fold(fold), grid, ratio, fold, y, offsets, score, advance, **options)

        tasks = [
            partial(task, fold, ratio, grid) for ratio, grid in zip(ratios, grids, strict=True) for fold in folds
        ]
        n_points = len(grids[0]) * len(offsets)
        with Progress(type(self).__name__) if self.verbose else nullcontext() as progress:
            return run_folds(tasks, n_jobs, progress, n_points)

    def _judge(
        self, results: list[Scores], folds: list[Fold], ratios: list[float], grids: list[Array]
    ) -> tuple[float, float]:
        scores = np.array([r.values for r in results]).reshape(len(ratios), len(folds), -1).transpose(0, 2, 1)
        nonzeros = np.array([r.nonzeros for r in results]).reshape(len(ratios), len(folds), -1)
        # Folds count by the weight of the rows that they predict, as if all rows were scored together.
        shares = np.array([fold.total for fold in folds])
        shares = shares / np.sum(shares)
        mean = np.sum(scores * shares, axis=-1)
        spread = np.sum((scores - mean[..., None]) ** 2 * shares, axis=-1)
        error = np.sqrt(spread / max(1, len(folds) - 1))
        if not np.any(np.isfinite(mean)):
            raise ValueError(
                "no alpha has a score in every fold: give max_seconds more, fewer alphas, or another scoring"
            )
        unfinished = sorted({s for r in results for s in r.statuses} - {"converged"})
        if unfinished:
            warnings.warn(
                f"{type(self).__name__}: some folds did not converge at some alphas ({', '.join(unfinished)}); "
                "raise tol, max_iter or max_seconds, or eps to leave out the smallest alphas",
                ConvergenceWarning,
                stacklevel=4,
            )
        best = np.where(np.isfinite(mean), mean, -np.inf)
        ratio, at = np.unravel_index(int(np.argmax(best)), best.shape)
        within = best[ratio] >= best[ratio, at] - error[ratio, at]
        self.alpha_min_ = float(grids[ratio][at])
        self.alpha_1se_ = float(grids[ratio][int(np.argmax(within))])
        self.alpha_ = self.alpha_min_ if self.selection == "min" else self.alpha_1se_
        one = len(ratios) == 1
        self.alphas_ = grids[0] if one else np.array(grids)
        self.score_path_ = scores[0] if one else scores
        self.cv_results_ = {
            "alpha": np.concatenate(grids),
            "l1_ratio": np.repeat(ratios, len(grids[0])),
            "mean_test_score": mean.ravel(),
            "std_error": error.ravel(),
            "mean_nonzeros": nonzeros.mean(axis=1).ravel(),
            **{f"split{k}_test_score": scores[..., k].ravel() for k in range(len(folds))},
        }
        return self.alpha_, ratios[int(ratio)]

    def _splits(self, X: Any, y: Any, groups: Any) -> Any:
        cv = 5 if self.cv is None else self.cv
        if isinstance(cv, (int, np.integer)) and self.random_state is not None:
            kind = StratifiedKFold if self._is_classifier else KFold
            cv = kind(int(cv), shuffle=True, random_state=self.random_state)
        return check_cv(cv, y, classifier=self._is_classifier).split(X, y, groups)

    def _refit(
        self, problems: Sequence[Problem], names: Sequence[str], alpha: float, ratio: float, one: bool
    ) -> Self:
        """All rows at the alpha chosen."""
        chosen = [p.with_alpha(alpha * ratio, alpha * (1 - ratio)) for p in problems]
        outcome = self._solve_all(chosen, names)
        self._keep(outcome, one)
        return self._conclude(outcome, stacklevel=4)
