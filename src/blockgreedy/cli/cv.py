"""``blockgreedy cv``: alpha chosen by cross-validation, and the model at it."""

import json
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from blockgreedy.base.names import Selection
from blockgreedy.base.validate import check_grid, check_limits, check_ratio, whole
from blockgreedy.cli.asked import ModelOption, ProblemOptions, ReportOption
from blockgreedy.cli.facts import data_facts, finite, numbers, pick, settings_of
from blockgreedy.cli.outputs import show_files
from blockgreedy.cli.scores import score_facts, show_elided, show_scores, some_of
from blockgreedy.cli.shell import Results, app, failures, option, takes, waiting, warnings_as_lines
from blockgreedy.cli.texts import ALPHAS, EPS, L1_RATIO, NOT_CONVERGED, THREADS, TOL, WRONG_USE
from blockgreedy.cli.together import refuse_copies
from blockgreedy.data import Dataset
from blockgreedy.models.model import CrossValidation, Model
from blockgreedy.models.quality import Quality, measure
from blockgreedy.problem.problem import Problem

_of_cv, _of_stopping, _of_output = partial(option, "Folds"), partial(option, "Stopping"), partial(option, "Output")
_ESTIMATORS = {"squared": "ElasticNetCV", "logistic": "LogisticRegressionCV"}


@dataclass(frozen=True)
class CvOptions(ProblemOptions):
    """What ``blockgreedy cv`` accepts."""

    folds: int = _of_cv(5, "--folds", "Number of folds.", min=2)
    seed: int | None = _of_cv(
        None, "--seed", "Random seed to shuffle the rows before they are divided into folds (default: no shuffling)."
    )
    scoring: str = _of_cv("deviance", "--scoring", "deviance, or a scorer of scikit-learn: accuracy, roc_auc, r2, …")
    selection: Selection = _of_cv(
        "min",
        "--selection",
        "min: the alpha with the best mean score; 1se: the largest alpha, hence the sparsest model, whose score is "
        "within one standard error of the best.",
        choices=Selection,
    )
    n_alphas: int = _of_cv(100, "--alphas", ALPHAS)
    eps: float = _of_cv(1e-3, "--eps", EPS)
    l1_ratio: float = _of_cv(1.0, "--l1-ratio", L1_RATIO)

    tol: float = _of_stopping(1e-4, "--tol", TOL)
    fold_tol: float | None = _of_stopping(
        None,
        "--fold-tol",
        "Accuracy (as --tol) of the models in the folds. Default: coarse at first, then finer where the choice of "
        "alpha depends on it.",
    )
    max_iter: int | None = _of_stopping(None, "--max-iter", "Stop after this many iterations at each alpha.")
    max_seconds: float | None = _of_stopping(None, "--max-seconds", "Stop after this many seconds, for each fold.")
    n_threads: int | None = _of_stopping(None, "--threads", THREADS)

    model: ModelOption = None
    report: ReportOption = None
    as_json: bool = _of_output(False, "--json", "Print one JSON object instead of the table.")
    quiet: bool = _of_output(False, "--quiet -q", "Print no progress and no notes.")

    def check(self) -> None:
        super().check()
        if self.loss not in (*_ESTIMATORS, "auto"):
            raise ValueError(
                f"--loss {self.loss}: cross-validation takes only the losses {' and '.join(_ESTIMATORS)}"
            )
        if self.l2:
            raise ValueError(f"--l2 {self.l2:g} is not accepted by cv; for an elastic net use --l1-ratio")
        check_limits(self.tol, self.max_iter, self.max_seconds)
        check_limits(self.tol if self.fold_tol is None else self.fold_tol, None, None)
        check_grid(self.n_alphas, self.eps)
        check_ratio(self.l1_ratio, 0.0)
        if self.seed is not None:
            whole("seed", self.seed, 0, 2**32 - 1)


@app.command()
@takes(CvOptions)
def cv(options: CvOptions) -> None:
    """Choose alpha by cross-validation, then fit a model to all rows at that alpha.

    If the labels have two values, the model is a logistic regression, otherwise a lasso; --loss overrides this. The
    printed scores are those of held-out rows.

    Exit codes: 0 converged, 3 not converged or interrupted, 2 wrong use, 1 any other error.

    \b
    [bold]Examples[/]
    [cyan]blockgreedy cv reuters.svm --scoring roc_auc --model best.npz --report cv.html[/]
    [cyan]blockgreedy cv data.npz --folds 10 --selection 1se --json[/]
    """
    refuse_copies()
    outputs = options.checked(options.model, options.report)
    with failures("interrupted before an alpha was finished in all folds; nothing was saved") as stage:
        with waiting(f"reading {options.data}", options.quiet):
            dataset = options.read(n_threads=options.n_threads)
        stage.code = WRONG_USE
        problem = options.make_problem(dataset)  # before the work: it refuses more than two classes
        estimator = _estimator(options, problem)
        with warnings_as_lines(UserWarning):
            try:
                estimator.fit(dataset.X, dataset.y)
            except KeyboardInterrupt:
                if not hasattr(estimator, "coef_"):  # no alpha was finished in all folds
                    raise
        alpha, ratio = estimator.alpha_, options.l1_ratio
        problem = problem.with_alpha(alpha * ratio, alpha * (1 - ratio))
    cross = _cross_validation(options, estimator)
    covered, asked_for = len(cross.alphas), len(estimator.alphas_)
    if covered < asked_for:
        why = "interrupted" if estimator.status_ == "interrupted" else "out of time"
        message = (
            f"{why}: only {covered} of {asked_for} alphas were finished in all folds; alpha is chosen among these"
        )
        typer.secho(message, err=True, fg="yellow")
    quality = _quality(problem, estimator, dataset, options.folds)
    model = replace(_model(problem, estimator, dataset, cross), quality=quality)
    facts = _facts(options, dataset, problem, estimator, cross, model)
    code = 0 if estimator.status_ == "converged" else NOT_CONVERGED
    outputs.write_model(lambda: replace(model, settings=settings_of(facts)))
    if options.as_json:
        curve: dict[str, Any] = {name: numbers(getattr(cross, name)) for name in ("alphas", "std_error", "nonzeros")}
        curve |= {"mean": numbers(cross.shown), "better": cross.better}
        typer.echo(json.dumps(finite(facts) | {"curve": curve, "quality": score_facts(quality)}))
    else:
        console = Results()
        _show(console, facts, cross)
        console.print()
        show_scores(console, quality, problem.classes)
        show_files(console, outputs.written)
    raise typer.Exit(outputs.code or code)


def _facts(
    options: CvOptions, dataset: Dataset, problem: Problem, estimator: Any, cross: CrossValidation, model: Model
) -> dict[str, Any]:
    return {
        **data_facts(options.data, dataset, problem),
        "loss": problem.loss.name,
        **pick(options, "target positive standardize tol folds scoring selection l1_ratio"),
        "fit_intercept": problem.fit_intercept,
        **pick(problem, "alpha l2"),
        **pick(cross, "alpha_min alpha_1se"),
        "alphas_covered": len(cross.alphas),
        "alphas_asked_for": len(estimator.alphas_),
        "status": estimator.status_,
        "objective": float(model.objectives[0]),
        "gap": float(model.gaps[0]),
        "f_null": model.f_null,
        "nonzeros": int(model.nonzeros[0]),
    }


def _estimator(options: CvOptions, problem: Problem) -> Any:
    from blockgreedy import estimators

    kind = getattr(estimators, _ESTIMATORS[problem.loss.name])
    shared = pick(options, "l1_ratio n_alphas eps scoring selection standardize positive")
    shared |= pick(options, "tol fold_tol max_iter max_seconds n_threads")
    shared["fit_intercept"] = problem.fit_intercept
    shows = not options.quiet and Console(stderr=True).is_terminal
    return kind(**shared, cv=options.folds, random_state=options.seed, verbose=shows)


def _cross_validation(options: CvOptions, estimator: Any) -> CrossValidation:
    results = estimator.cv_results_
    finished = np.isfinite(results["mean_test_score"])  # in all folds
    alphas, mean, error, nonzeros = (
        np.asarray(results[name], dtype=np.float64)[finished]
        for name in ("alpha", "mean_test_score", "std_error", "mean_nonzeros")
    )
    alpha_min, alpha_1se = float(estimator.alpha_min_), float(estimator.alpha_1se_)
    folds = np.asarray(estimator.score_path_.T[:, finished], dtype=np.float64)
    return CrossValidation(options.scoring, alphas, mean, error, nonzeros, alpha_min, alpha_1se, options.folds, folds)


def _quality(problem: Problem, estimator: Any, dataset: Dataset, folds: int) -> Quality:
    rows = f"the held-out rows of {folds}-fold cross-validation, each predicted by the model that had not seen it"
    return measure(problem.loss.name, problem.classes, estimator.oof_decision_, dataset.y, rows=rows)


def _model(problem: Problem, estimator: Any, dataset: Dataset, cross: CrossValidation) -> Model:
    coef = np.asarray(estimator.coef_, dtype=np.float64).ravel()
    intercept = float(np.ravel(estimator.intercept_)[0])
    trace = estimator.trace_[0] if isinstance(estimator.trace_, list) else estimator.trace_
    objective, gap = problem.objective(coef, intercept), float(np.max(estimator.dual_gap_))
    model = Model.of_weights(problem, coef, intercept, objective, gap, estimator.status_, trace, dataset)
    return replace(model, cross_validation=cross)


def _show(console: Console, f: dict[str, Any], cross: CrossValidation) -> None:
    table = Table(box=None, header_style="dim", pad_edge=False)
    for name in ("alpha", f"mean {cross.scoring}", "± std error", "nonzeros", ""):
        table.add_column(name, justify="right")
    marks = {cross.alpha_min: "min", cross.alpha_1se: "1se"}
    if cross.alpha_min == cross.alpha_1se:
        marks = {cross.alpha_min: "min, 1se"}
    shown = some_of(len(cross.alphas), [k for k, alpha in enumerate(cross.alphas) if alpha in marks])
    for k in shown:
        mark = marks.get(cross.alphas[k], "")
        table.add_row(
            f"{cross.alphas[k]:.4g}", f"{cross.shown[k]:.5g}", f"{cross.std_error[k]:.2g}",
            f"{cross.nonzeros[k]:,.0f}", mark, style="bold" if mark else "",
        )  # fmt: skip
    size = f"{f['n_samples']:,} × {f['n_features']:,}, {f['nonzeros_X']:,} nonzeros"
    console.print(f"{f['data']}: {size}; {f['loss']}, {f['folds']} folds", highlight=False)
    console.print(table)
    show_elided(console, len(cross.alphas), len(shown), "--json prints all")
    gap = f"relative gap {f['gap'] / f['f_null']:.1e}" if f["f_null"] else "gap 0"
    chosen_one = f"alpha {f['alpha']:.4g} ({f['selection']}): {f['nonzeros']:,} of {f['n_features']:,} features"
    style = "green" if f["status"] == "converged" else "yellow"
    console.print(f"{chosen_one}; {f['status']}, {gap}", style=style, highlight=False)
    if len(cross.alphas) > 1 and cross.alpha_min == cross.alphas[-1]:
        console.print(
            "the best alpha is the smallest one tried; a smaller --eps may find a better one", style="yellow"
        )
