"""``blockgreedy path``: the models of one problem along descending alphas."""

import contextlib
import csv
import json
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from blockgreedy.base.files import replacing_text
from blockgreedy.base.validate import check_grid, check_limits, check_ratio, whole
from blockgreedy.cli.asked import ModelOption, ProblemOptions, ReportOption
from blockgreedy.cli.facts import data_facts, finite, pick, settings_of
from blockgreedy.cli.outputs import Output, show_files
from blockgreedy.cli.scores import show_elided, some_of
from blockgreedy.cli.shell import Results, app, failures, option, takes, waiting
from blockgreedy.cli.texts import ALPHAS, EPS, L1_RATIO, NO_POINT, NOT_CONVERGED, THREADS, TOL, WRONG_USE
from blockgreedy.cli.together import refuse_copies
from blockgreedy.data import Dataset
from blockgreedy.models.model import Model
from blockgreedy.models.quality import ON_TRAINING_ROWS
from blockgreedy.solvers.path import solve_path
from blockgreedy.solvers.solution_path import PathPoint, SolutionPath

_of_path, _of_stopping, _of_output = partial(option, "Path"), partial(option, "Stopping"), partial(option, "Output")
_CSV = typer.Option("--csv", help="Write a line per alpha to this CSV file.", rich_help_panel="Output")


@dataclass(frozen=True)
class PathOptions(ProblemOptions):
    """What ``blockgreedy path`` accepts."""

    n_alphas: int = _of_path(100, "--alphas", ALPHAS)
    eps: float = _of_path(1e-3, "--eps", EPS)
    l1_ratio: float | None = _of_path(None, "--l1-ratio", L1_RATIO)
    max_nonzeros: int | None = _of_path(
        None, "--max-nonzeros", "End the path at the first model with more nonzero weights than this."
    )
    early_stop: bool = _of_path(
        False, "--early-stop", "End the path when smaller alphas hardly improve the fit any more (glmnet's rule)."
    )

    tol: float = _of_stopping(1e-4, "--tol", TOL)
    max_iter: int | None = _of_stopping(None, "--max-iter", "Stop after this many iterations at each alpha.")
    max_seconds: float | None = _of_stopping(None, "--max-seconds", "Stop the path after this many seconds.")
    n_threads: int | None = _of_stopping(None, "--threads", THREADS)

    model: ModelOption = None
    report: ReportOption = None
    csv_file: Annotated[Path | None, _CSV] = None
    as_json: bool = _of_output(False, "--json", "Print one JSON object instead of the table.")
    quiet: bool = _of_output(False, "--quiet -q", "Print no progress and no notes.")

    def check(self) -> None:
        super().check()
        check_limits(self.tol, self.max_iter, self.max_seconds)
        check_grid(self.n_alphas, self.eps)
        if self.l1_ratio is not None:
            check_ratio(self.l1_ratio, self.l2)
        if self.max_nonzeros is not None:
            whole("max_nonzeros", self.max_nonzeros, 0)


@app.command()
@takes(PathOptions)
def path(options: PathOptions) -> None:
    """Fit models at many alphas, from few features to many, each with a proof of its accuracy.

    For the squared and the logistic loss, the alphas with the lowest BIC and the lowest EBIC are marked. Both are
    information criteria: they add a penalty for each nonzero weight to the misfit. Prefer EBIC if there are more
    features than rows. Ctrl-C ends the path; the models that are finished are reported and saved.

    Exit codes: 0 all models converged (or the path ended at a limit you set), 3 not converged, 2 wrong use, 1 any
    other error.

    \b
    [bold]Examples[/]
    [cyan]blockgreedy path reuters.svm --model path.npz --report path.html[/]
    [cyan]blockgreedy path genes.npz --max-nonzeros 50 --csv path.csv[/]
    """
    refuse_copies()
    outputs = options.checked(options.model, options.report, Output("--csv", options.csv_file, "the table"))
    with failures(NO_POINT) as stage:
        with waiting(f"reading {options.data}", options.quiet):
            dataset = options.read(n_threads=options.n_threads)
        stage.code = WRONG_USE
        problem = options.make_problem(dataset)
        with progress_bar(options.quiet) as bar:
            task = bar.add_task("alphas", total=options.n_alphas, nonzeros=0)

            def advance(point: PathPoint) -> None:
                bar.update(task, advance=1, nonzeros=len(point.values))

            asked = pick(options, "n_alphas eps l1_ratio max_nonzeros early_stop tol max_iter max_seconds n_threads")
            found = solve_path(problem, callback=advance, **asked)
    code = 0 if found.status in ("converged", "stopped") else NOT_CONVERGED
    facts = {
        **data_facts(options.data, dataset, problem),
        "loss": problem.loss.name,
        **pick(options, "target l2 positive standardize tol eps l1_ratio"),
        "fit_intercept": problem.fit_intercept,
        "alpha_max": problem.alpha_max,
        "f_null": problem.null_model.objective,
        **pick(found, "status message seconds"),
        "n_alphas": len(found),
    }
    best = recommended(found)
    outputs.write("csv", lambda file: write_csv(file, found))
    outputs.write_model(lambda: _scored(Model.of_path(found, dataset, settings_of(facts)), dataset))
    if options.as_json:
        typer.echo(
            json.dumps(finite(facts) | {"recommended": best, "points": [finite(row) for row in rows_of(found)]})
        )
    else:
        console = Results()
        show(console, found, facts, best)
        show_files(console, outputs.written)
    raise typer.Exit(outputs.code or code)


def _scored(model: Model, dataset: Dataset) -> Model:
    """With the scores of the model that BIC recommends."""
    if model.criteria is None or np.all(np.isnan(model.criteria["bic"])):
        return model
    rows = f"{ON_TRAINING_ROWS}, by the model of lowest BIC"
    return replace(model, quality=model.at("bic").measure(dataset.X, dataset.y, rows=rows))


def progress_bar(quiet: bool) -> Progress:
    console = Console(stderr=True)
    columns = (
        TextColumn("[cyan]{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.fields[nonzeros]:,} nonzeros"),
    )  # fmt: skip
    return Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal)


def rows_of(path: SolutionPath) -> list[dict[str, Any]]:
    explained = path.deviance_explained.tolist()
    criteria = path.criteria.to_choose_by() or {}
    return [
        {
            "alpha": point.alpha,
            "nonzeros": len(point.values),
            "deviance_explained": explained[k],
            **{name: float(values[k]) for name, values in criteria.items()},
            **pick(point, "objective gap intercept n_iter seconds status"),
        }
        for k, point in enumerate(path.points)
    ]


def recommended(path: SolutionPath) -> dict[str, dict[str, Any]]:
    """By BIC and EBIC; none where the loss has no likelihood, or no model has few enough weights."""
    found = {}
    for name in ("bic", "ebic"):
        with contextlib.suppress(ValueError):
            k = path.recommended(name)
            found[name] = {"position": k, "alpha": path.points[k].alpha, "nonzeros": len(path.points[k].values)}
    return found


def write_csv(file: Path, path: SolutionPath) -> None:
    rows = rows_of(path)
    with replacing_text(file) as out:
        writer = csv.DictWriter(out, list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)


def show(console: Console, path: SolutionPath, facts: dict[str, Any], best: dict[str, dict[str, Any]]) -> None:
    table = Table(box=None, header_style="dim", pad_edge=False)
    for name in ("alpha", "of alpha_max", "nonzeros", "explained", "relative gap"):
        table.add_column(name, justify="right")
    table.add_column("", justify="left")
    rows, f_null = rows_of(path), facts["f_null"]
    shown = some_of(len(rows), [chosen["position"] for chosen in best.values()])
    for k in shown:
        row = rows[k]
        marks = [name.upper() for name, chosen in best.items() if chosen["position"] == k]
        table.add_row(
            f"{row['alpha']:.4g}",
            f"{row['alpha'] / facts['alpha_max']:.4f}" if facts["alpha_max"] else "",
            f"{row['nonzeros']:,}",
            f"{100 * max(0.0, row['deviance_explained']):.1f} %",
            f"{row['gap'] / f_null:.1e}" if f_null else "0",
            ", ".join(marks),
            style="bold" if marks else "",
        )
    console.print(
        f"{facts['data']}: {facts['n_samples']:,} × {facts['n_features']:,}, {facts['nonzeros_X']:,} nonzeros; "
        f"{facts['loss']}; {path.seconds:.3g} s",
        highlight=False,
    )
    console.print(table)
    show_elided(console, len(rows), len(shown), "--csv writes all")
    style = "green" if path.status in ("converged", "stopped") else "yellow"
    console.print(path.message, style=style, highlight=False)
    for name, chosen in best.items():
        size = f"{chosen['nonzeros']:,} of {facts['n_features']:,} features"
        console.print(f"recommended by {name.upper()}: alpha {chosen['alpha']:.4g}, {size}", highlight=False)
    if best:
        first = next(iter(best))
        console.print(
            f"blockgreedy predict --alpha {first} uses the model recommended by {first.upper()}; blockgreedy cv "
            "chooses alpha by held-out rows",
            style="dim",
        )
    if len(rows) > 1 and any(chosen["position"] == len(rows) - 1 for chosen in best.values()):
        console.print(
            "a recommended alpha is the smallest one tried; a smaller --eps may find a better one", style="yellow"
        )
