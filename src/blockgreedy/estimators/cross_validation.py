"""Choosing alpha (and l1_ratio) by cross-validation: what LassoCV, ElasticNetCV and LogisticRegressionCV share."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold, check_cv

from blockgreedy.base.names import SELECTIONS
from blockgreedy.base.threads import resolve_threads
from blockgreedy.base.validate import check_grid, count_of, flag, non_negative, whole
from blockgreedy.estimators.base import Array, SparseLinearModel
from blockgreedy.estimators.checks import check_classes, given_alphas, weights_of_rows
from blockgreedy.estimators.choice import Doubts, ScoreTable, best_so_far
from blockgreedy.estimators.fit_tasks import FRAMES, tasks_of
from blockgreedy.estimators.fold_coefs import coefs_of, n_iter_of
from blockgreedy.estimators.fold_groups import FIRST_STEP, Group, Starts, Whole, grouped
from blockgreedy.estimators.folds import Effort, Fold, FoldPath, Judge, make_folds, run_folds
from blockgreedy.estimators.progress import Progress
from blockgreedy.estimators.routing import Routed, RouterMixin
from blockgreedy.estimators.row_judge import RowJudge
from blockgreedy.estimators.score_plot import ScorePlotMixin
from blockgreedy.estimators.scoring import RowScorer, is_deviance, make_score
from blockgreedy.estimators.sparse_coef import dense_coef
from blockgreedy.problem.problem import Problem
from blockgreedy.solvers.fold_group import has_few_rows
from blockgreedy.solvers.polish import is_small

_FEW_ENTRIES, _MANY_ENTRIES, _VERY_MANY_ENTRIES = 300_000, 2_000_000, 20_000_000
_LOOSER = 100.0  # scores of folds differ far more from each other than this lets them differ from exact ones
_CLOSER = (1.0, 0.01)  # of alphas that are solved again
_FINEST = 1e-10  # a finer tol is at the mercy of rounding
# Before that: steps until one gains no more than this, without a finer proof. Settles most choices.
_FINEST_STEP = 1e-8
_LAST_SECONDS = 10.0  # of the fit of all rows after Ctrl-C


def _is_cheap(problem: Problem) -> bool:
    """Whether folds may as well be solved to ``tol``: sparse data of few rows, where a few steps more cost little.

    Measured: Dorothea 0.41 s instead of 0.46, with a curve within 5e-5 instead of 9e-4; generated text 0.33 s instead
    of 0.23, 5e-4 instead of 4e-3. With the squared loss, whose weights come close to interpolating the rows, it would
    take 2.5 times as long and still leave 4e-4 and 1e-3.
    """
    return problem.design.is_sparse and has_few_rows(problem) and not problem.loss.is_quadratic


class Choice(NamedTuple):
    alpha: float
    l1_ratio: float
    interrupted: bool  # by Ctrl-C, with only the first alphas known
    starts: Starts | None = None  # of the fit of all rows


class ScoringMixin(RouterMixin):
    """Goes before scikit-learn's mixins, which have a ``score`` too."""

    def score(self: Any, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> float:
        """By ``scoring`` if that is given, else R² of a regressor and the accuracy of a classifier.

        Parameters
        ----------
        X, y
            Rows to be predicted, and what is true of them.
        sample_weight : float or array of shape (n_samples,), optional
            Weights of the rows.
        **params
            What the scorer asks for, if scikit-learn's metadata routing is enabled.
        """
        routed = self._route("score", params, sample_weight=sample_weight)
        if self.scoring is None:
            return float(super().score(X, y, sample_weight=sample_weight))  # type: ignore[misc]
        score, options = make_score(self.scoring, getattr(self, "classes_", None)), dict(routed.score)
        weights = weights_of_rows(sample_weight, X)
        if isinstance(score, RowScorer):
            if "sample_weight" in options and not score.takes_weights:
                del options["sample_weight"]
            # not this model, whose own score would call the scorer again
            return score(self._single(), X, np.asarray(y), **options)
        decision = self._decision(X)
        if weights is None or not (is_deviance(self.scoring) or options.pop("sample_weight", None) is not None):
            weights = np.ones(len(decision))
        return score(decision.reshape(len(decision), -1), np.asarray(y), weights, **options)


@dataclass(eq=False, repr=False)
class CrossValidated(ScorePlotMixin, SparseLinearModel):
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
    store_coefs: bool = False

    _is_classifier: ClassVar[bool] = False
    _title = "the fit of all rows"  # at the alpha chosen

    def _ratios(self) -> list[float]:
        return [1.0]

    def _choose(
        self,
        problems: Sequence[Problem],
        of_fold: Callable[[Fold], Sequence[Problem]],
        folds: Sequence[Fold],
        judge: Judge,
        classes: NDArray[Any] | None = None,
    ) -> Choice:
        """(alpha, l1_ratio) of the best score; sets everything that is known of the scores."""
        (tol, efforts), ratios = self._fold_tol(problems[0]), self._ratios()
        if classes is not None:
            check_classes(folds, judge.y, classes, self.scoring, judge.score, len(judge.offsets))
        grids = [self._grid(problems, ratio) for ratio in ratios]
        n_jobs, n_threads = self._jobs(len(ratios) * len(folds), problems[0].design.size)
        limits = {"max_iter": self.max_iter, "max_seconds": self.max_seconds, "n_threads": n_threads}
        paths = [
            FoldPath(of_fold, fold, grid, ratio, judge, **limits)
            for ratio, grid in zip(ratios, grids, strict=True)
            for fold in folds
        ]
        efforts = [] if is_small(problems[0]) else efforts  # those are solved to the last digits at once
        whole = Whole(problems, folds[0])
        interrupted = self._run(paths, whole, len(ratios), tol, efforts, n_jobs)
        choice = self._judge(paths, ratios, grids, interrupted)
        choice = choice._replace(starts=whole.starts(choice.alpha, choice.l1_ratio))
        self.oof_decision_ = self._out_of_fold(paths, choice, len(judge.y), problems[0].X)
        return choice

    def _fold_tol(self, problem: Problem) -> tuple[float, list[Effort]]:
        """Of all alphas, then of those that are solved again because the choice depends on them."""
        tol = non_negative("tol", self.tol)
        if self.fold_tol is not None:
            return non_negative("fold_tol", self.fold_tol), []
        closer = [Effort(share * tol) for share in _CLOSER if share == 1 or share * tol >= _FINEST]
        looser = 1.0 if _is_cheap(problem) else _LOOSER
        return looser * tol, [Effort(looser * tol, _FINEST_STEP), *closer]

    def _grid(self, problems: Sequence[Problem], ratio: float) -> Array:
        n_alphas = self.n_alphas
        if isinstance(self.alphas, (int, np.integer)):
            n_alphas = whole("alphas", self.alphas, 1)  # scikit-learn's name for their number since 1.7
        elif self.alphas is not None:
            return given_alphas(self.alphas)
        if not ratio > 0:
            raise ValueError("l1_ratio=0 has no largest alpha to begin with; give alphas")
        n_alphas = check_grid(n_alphas, self.eps, may_be_1=True)
        largest = max(problem.alpha_max for problem in problems) / ratio
        if largest == 0:  # nothing to explain: any alpha gives the null model
            return np.full(n_alphas, np.finfo(np.float64).resolution)  # scikit-learn's
        return np.asarray(largest * np.geomspace(1.0, float(self.eps), n_alphas))

    def _jobs(self, n_tasks: int, n_entries: int) -> tuple[int, int]:
        """(folds at a time, threads of each)"""
        threads = resolve_threads(self.n_threads)
        # On large data the core has work for all threads: one fold at a time is as fast, in one solver's memory. In
        # between two at a time are faster. On small data most of the time is Python's, whose threads take turns.
        n_jobs = threads if n_entries <= _MANY_ENTRIES else min(threads, 2)
        n_jobs = n_jobs if _FEW_ENTRIES < n_entries <= _VERY_MANY_ENTRIES else 1
        if self.n_jobs is not None:
            n_jobs = count_of("n_jobs", self.n_jobs, threads, sys.maxsize)
        n_jobs = min(n_jobs, n_tasks)
        return n_jobs, max(1, threads // n_jobs)

    def _run(
        self, paths: list[FoldPath], whole: Whole, n_ratios: int, tol: float, efforts: list[Effort], n_jobs: int
    ) -> bool:
        """All alphas to tol, then with these efforts those that the choice depends on; True after Ctrl-C."""
        n_models = sum(len(path.alphas) for path in paths) * len(paths[0].judge.offsets)
        done, again, heard = 0, 0, tasks_of(self)
        title = f"{len(paths) // n_ratios} folds"
        with Progress(title, n_models, "models") if self.verbose else nullcontext() as progress:

            def count() -> None:
                nonlocal done
                done += 1
                if heard is not None:
                    heard.step("model of a fold")
                if progress is not None:
                    progress.show(self._state(paths, n_ratios, again), min(done, n_models))

            groups = [Group(own, whole) for own in grouped(paths, n_ratios, tol)]
            at_once, n_threads = self._jobs(len(groups), paths[0].problems[0].design.size)
            if run_folds([partial(group.solve, tol, n_threads) for group in groups], at_once, count):
                return True
            doubts = Doubts(ScoreTable(paths, n_ratios), self.selection)
            if efforts and any(group.goes_on for group in groups):
                efforts = [Effort(tol, FIRST_STEP), *efforts]
            while efforts and np.any(wanted := doubts.next() & (doubts.times < len(efforts))):
                again += int(np.sum(wanted))
                of_path = dict(zip(paths, doubts.of_each_path(wanted), strict=True))
                tasks = []
                for group in groups:
                    mask, times = of_path[group.paths[0]]
                    at = [(int(i), efforts[times[i]]) for i in np.flatnonzero(mask)]
                    tasks += group.again(at)
                if run_folds(tasks, n_jobs, count):
                    return True
                doubts.learn(wanted, ScoreTable(paths, n_ratios))
        return False

    def _state(self, paths: list[FoldPath], n_ratios: int, again: int) -> str:
        """For people who wait: the best score so far, and what is done after all models were fitted once."""
        said = [f"{again} alphas again, more exactly"] if again else []
        best = best_so_far(paths, n_ratios)
        if best is not None:
            score, alpha = best
            deviance = is_deviance(self.scoring)
            name = "deviance" if deviance else self.scoring if isinstance(self.scoring, str) else "score"
            said.insert(0, f"best {name} {-score if deviance else score:.4g} at alpha {alpha:.2g}")
        return "; ".join(said)

    def _judge(self, paths: list[FoldPath], ratios: list[float], grids: list[Array], interrupted: bool) -> Choice:
        table = ScoreTable(paths, len(ratios))
        one = len(ratios) == 1
        given = self.alphas is not None and not isinstance(self.alphas, (int, np.integer))
        self.alphas_ = grids[0] if one or given else np.array(grids)
        self.score_path_ = table.scores[0] if one else table.scores
        n_iter = n_iter_of(paths, len(ratios))
        self.n_iter_path_ = n_iter[0] if one else n_iter
        if flag("store_coefs", self.store_coefs):
            n_features = paths[0].problems[0].n_features
            self.coefs_paths_, self.intercepts_paths_ = coefs_of(paths, len(ratios), n_features)
        self.cv_results_ = {
            "alpha": np.concatenate(grids),
            "l1_ratio": np.repeat(ratios, len(grids[0])),
            "mean_test_score": table.mean.ravel(),
            "std_error": table.error.ravel(),
            "mean_nonzeros": table.nonzeros.mean(axis=-1).ravel(),
            **{f"split{k}_test_score": table.scores[..., k].ravel() for k in range(table.scores.shape[-1])},
        }
        if not np.any(table.finished):
            if interrupted:
                self.status_ = "interrupted"
                raise KeyboardInterrupt("no alpha was finished in all folds")
            raise ValueError(self._why_no_score(paths))
        unfinished = sorted({status for path in paths for status in path.statuses} - {"converged"})
        if unfinished and not interrupted:
            warnings.warn(
                f"cross-validation: some folds did not converge at some alphas ({', '.join(unfinished)}); "
                "raise tol, max_iter or max_seconds, or eps to leave out the smallest alphas",
                ConvergenceWarning,
                stacklevel=4 + FRAMES,
            )
        (ratio, least), (_, sparse) = table.best, table.sparsest
        self.alpha_min_, self.alpha_1se_ = float(grids[ratio][least]), float(grids[ratio][sparse])
        self.alpha_ = self.alpha_min_ if self.selection == "min" else self.alpha_1se_
        self.l1_ratio_ = ratios[ratio]
        return Choice(self.alpha_, ratios[ratio], interrupted)

    def _out_of_fold(self, paths: list[FoldPath], choice: Choice, n_samples: int, X: Any) -> Array:
        """Decision values of every row at the alpha chosen, by the models of folds that held the row out."""
        sums, counts = np.zeros((n_samples, len(paths[0].judge.offsets))), np.zeros((n_samples, 1))
        for path in paths:
            if path.l1_ratio == choice.l1_ratio:
                rows = path.fold.held_out
                sums[rows] += path.predict_held_out(int(np.flatnonzero(path.alphas == choice.alpha)[0]), X)
                counts[rows] += 1
        decision = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
        return decision[:, 0] if decision.shape[1] == 1 else decision

    def _why_no_score(self, paths: list[FoldPath]) -> str:
        wrong = [k for k, path in enumerate(paths) if any(np.isnan(path.scores[: len(path.models)]))]
        if wrong:
            return (
                f"scoring={self.scoring!r} gives nan at every alpha, first in fold {wrong[0]}: check the held-out "
                "rows of that fold, or use another scoring or other folds (cv)"
            )
        return "no alpha was reached in every fold: raise max_seconds, or ask for fewer alphas"

    def _folds(self, X: Any, y: Any, weights: Array | None, routed: Routed) -> list[Fold]:
        """Once the other arguments are looked at: what is wrong with them is said before what is wrong with folds."""
        if self.selection not in SELECTIONS:
            raise ValueError(f"selection={self.selection!r} is not known; use {' or '.join(map(repr, SELECTIONS))}")
        self._ratios()
        cv = 5 if self.cv is None else self.cv
        if isinstance(cv, (int, np.integer)) and self.random_state is not None:
            kind = StratifiedKFold if self._is_classifier else KFold
            cv = kind(int(cv), shuffle=True, random_state=self.random_state)
        splits = check_cv(cv, y, classifier=self._is_classifier).split(X, y, **routed.split)
        # a scorer that does not ask for weights gets none, and rows of weight 0 count in its scores like any other
        weights_in_scores = is_deviance(self.scoring) or "sample_weight" in routed.score
        return make_folds(splits, len(y), weights, weights_in_scores)

    def _judge_with(
        self,
        X: Any,
        y: NDArray[Any],
        offsets: Sequence[Array | None],
        weights: Array | None,
        routed: Routed,
        classes: NDArray[Any] | None = None,
    ) -> Judge:
        """Who scores the models of the folds."""
        score = make_score(self.scoring, classes)
        params = {name: value for name, value in routed.score.items() if name != "sample_weight"}
        if not isinstance(score, RowScorer):
            return Judge(y, offsets, score, params)
        if any(offset is not None for offset in offsets):
            raise ValueError(
                f"scoring={self.scoring!r} is a function of X and a fitted model, whose predictions know no offset; "
                "with an offset use 'deviance', the name of a scorer, or what sklearn.metrics.make_scorer makes"
            )
        if "sample_weight" in routed.score and score.takes_weights:
            params["sample_weight"] = weights
        return RowJudge(y, offsets, score, params, X, self._model_of)

    def _model_of(self, coefs: Array, intercepts: Array, alpha: float, l1_ratio: float) -> Any:
        """A fitted estimator of one alpha, with these weights."""
        raise TypeError(f"{type(self).__name__} has no estimator of a single alpha")

    def _single(self) -> Any:
        """This model as the estimator of the alpha chosen."""
        coefs, intercepts = np.atleast_2d(dense_coef(self)), np.atleast_1d(self.intercept_)
        model = self._model_of(coefs, intercepts, self.alpha_, self.l1_ratio_)
        for name in ("n_iter_", "dual_gap_", "alpha_", "C_"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name))
        return model

    def _counterpart(self) -> Any:
        return self._single().to_sklearn()

    def _as(self, kind: Any, coef: Array, intercept: Any, alpha: float, l1_ratio: float) -> Any:
        """The estimator of a single alpha, with our parameters and these weights."""
        known = {"alpha": alpha, "l1_ratio": l1_ratio}
        names = kind().get_params()
        model = kind(**{name: value for name, value in (self.get_params() | known).items() if name in names})
        model.coef_, model.intercept_, model.n_features_in_ = coef, intercept, self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_
        return model

    def _refit(self, problems: Sequence[Problem], names: Sequence[str], choice: Choice, one: bool) -> Self:
        """All rows at the alpha chosen. After Ctrl-C there are a few seconds for that."""
        chosen = [
            p.with_alpha(choice.alpha * choice.l1_ratio, choice.alpha * (1 - choice.l1_ratio)) for p in problems
        ]
        if not choice.interrupted:
            outcome = self._solve_all(chosen, names, starts=choice.starts)
            self._keep(outcome, one)
            return self._conclude(outcome, stacklevel=4)
        seconds = _LAST_SECONDS if self.max_seconds is None else min(_LAST_SECONDS, self.max_seconds)
        self._keep(self._solve_all(chosen, names, seconds, choice.starts), one)
        self.status_ = "interrupted"
        raise KeyboardInterrupt
