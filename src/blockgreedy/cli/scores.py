"""How well a model predicts, on the command line: rows kept aside to score on, and the table of the scores."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from blockgreedy.base.design import TiledDesign
from blockgreedy.cli.shell import fail
from blockgreedy.cli.texts import WRONG_USE
from blockgreedy.data import Dataset
from blockgreedy.data.dataset import label_text
from blockgreedy.models.extras import unless_memory_ends
from blockgreedy.models.quality import LABELS, LOWER_IS_BETTER, ON_TRAINING_ROWS, Quality, measure
from blockgreedy.problem.problem import Problem
from blockgreedy.solvers.solution import Solution

_ROWS = 12  # of a table of alphas
_OPTIMISTIC = (
    "These scores are optimistic, because the model was fitted on the same rows. --holdout 0.2 scores on rows that "
    "are left out of the fit."
)


def check_share(share: float | None) -> None:
    if share is not None and not 0 < share < 1:
        fail(
            f"--holdout {share:g} must lie between 0 and 1: the share of the rows to leave out, such as 0.2",
            WRONG_USE,
        )


def split(dataset: Dataset, share: float, seed: int) -> tuple[Dataset, Dataset]:
    """(rows to fit on, rows held out), drawn at random; of two classes the same share each."""
    held_out = _drawn(dataset.y, share, np.random.default_rng(seed))
    n_held_out = int(np.count_nonzero(held_out))
    if not 0 < n_held_out < len(held_out):
        few = f"--holdout {share:g} of {len(held_out):,} rows leaves {n_held_out:,} to score on"
        raise ValueError(f"{few} and {len(held_out) - n_held_out:,} to fit on; both need at least one")
    return _rows(dataset, ~held_out), _rows(dataset, held_out)


def _drawn(y: NDArray[Any], share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    labels, codes = np.unique(y, return_inverse=True)
    groups = [np.flatnonzero(codes == k) for k in range(2)] if len(labels) == 2 else [np.arange(len(y))]
    drawn = np.zeros(len(y), dtype=bool)
    for rows in groups:
        count = min(round(share * len(rows)), len(rows) - 1)  # a model must have seen every class
        drawn[rng.choice(rows, count, replace=False)] = True
    return drawn


def _rows(dataset: Dataset, chosen: NDArray[np.bool_]) -> Dataset:
    at = np.flatnonzero(chosen)
    return replace(dataset, X=dataset.X[at], y=dataset.y[at])


def held_out_words(share: float) -> str:
    return f"{100 * share:g} % of the rows, held out"


def some_of(n_alphas: int, chosen: Iterable[int]) -> list[int]:
    """Positions for a table that fits on a screen: some, evenly spaced, and those that were chosen."""
    evenly = np.linspace(0, n_alphas - 1, min(_ROWS, n_alphas)).round().astype(int)
    return sorted({*evenly.tolist(), *chosen})


def show_elided(console: Console, n_alphas: int, n_shown: int, where: str) -> None:
    if n_shown < n_alphas:
        console.print(f"… {n_alphas - n_shown} more alphas; {where}", style="dim", highlight=False)


def scores_of(
    problem: Problem, solution: Solution, scored: Dataset, rows: str, weights: NDArray[np.float64] | None
) -> Quality | None:
    """Of these rows. None, with a warning, where there is too little memory: the model is worth more."""

    def made() -> Quality:
        X = scored.X
        product = X.combine(solution.coef) if isinstance(X, TiledDesign) else X @ solution.coef
        decision = np.asarray(product, dtype=np.float64) + solution.intercept
        decision = decision if problem.offset is None else decision + problem.offset
        return measure(problem.loss.name, problem.classes, decision, scored.y, rows=rows, sample_weight=weights)

    return unless_memory_ends("the scores", made)


def score_facts(quality: Quality) -> dict[str, Any]:
    """For --json."""
    return {
        "rows": quality.rows,
        "n_samples": quality.n_samples,
        "scores": dict(quality.scores),
        "baseline": dict(quality.baseline),
    }


def show_scores(console: Console, quality: Quality, classes: NDArray[Any] | None) -> None:
    size = f"{quality.n_samples:,} rows"
    if classes is not None:
        size += f", base rate of class {label_text(classes[1])}: {100 * quality.baseline['base_rate']:.4g} %"
    table = Table(box=None, header_style="dim", pad_edge=False)
    for name in ("", "model", "constant prediction", ""):
        table.add_column(name, justify="right" if name else "left", style="" if name else "dim")
    for name, score in quality.scores.items():
        better = "lower is better" if name in LOWER_IS_BETTER else ""
        table.add_row(LABELS.get(name, name), f"{score:.5g}", f"{quality.baseline[name]:.5g}", better)
    console.print(f"Scores on {quality.rows} ({size})", style="bold", highlight=False)
    console.print(table, highlight=False)
    if classes is not None and "roc_auc" not in quality.scores:
        console.print(
            "All of these rows are of one class, so there is no AUC and no average precision.",
            style="yellow",
            highlight=False,
        )
    if quality.rows == ON_TRAINING_ROWS:
        console.print(_OPTIMISTIC, style="dim", highlight=False)
