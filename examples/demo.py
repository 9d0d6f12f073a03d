"""A first look: a fit with its proof beside scikit-learn, the words it found, a cross-validation, and its report.

``make demo`` runs this. The documents are generated: word counts that look like text, and a label that depends on 60
of the words, which have names here so that the result can be read. Times are measured while you watch.
"""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from rich.columns import Columns
from rich.console import Console
from rich.table import Table
from rich.text import Text

import blockgreedy as bg

_GOOD = """
excellent superb delightful brilliant charming moving wonderful funny gripping tender masterful elegant witty
warm stunning clever honest fresh lovely graceful inspired bold lively rich subtle radiant original sincere
joyful vivid
"""
_BAD = """
awful boring dull tedious clumsy shallow bland messy dreadful lazy hollow stale noisy predictable pointless
weak muddled grim ugly wooden sloppy cheap painful lifeless forced empty trite crude slow confusing
"""
GOOD, BAD = _GOOD.split(), _BAD.split()
FOLDER = Path("build/demo")
ALPHA_RATIO = 0.1  # of alpha_max, the smallest alpha at which no word has a weight
N_ALPHAS, EPS = 25, 0.06


def make_documents(n_documents: int = 10_000, n_words: int = 30_000, seed: int = 0) -> bg.Dataset:
    """Generated documents; their class depends on the words of GOOD and BAD, and on chance."""
    rng = np.random.default_rng(seed)
    X = bg.data.text_like(n_documents, n_words, 70.0, seed=seed).X
    by_frequency = np.argsort(-np.bincount(X.indices, minlength=n_words), kind="stable")
    opinions = rng.permutation(by_frequency[50:1_500])[: len(GOOD) + len(BAD)]
    names = np.array([f"word{j}" for j in range(n_words)], dtype=object)
    names[opinions] = [*GOOD, *BAD]
    truth = np.zeros(n_words)
    truth[opinions] = np.repeat([1.0, -1.0], [len(GOOD), len(BAD)]) * rng.uniform(8.0, 20.0, len(opinions))
    positive = rng.random(n_documents) < 1 / (1 + np.exp(0.3 - X @ truth))
    return bg.Dataset(X, np.where(positive, "positive", "negative"), names.astype(str), name="documents")


def timed(task: Callable[[], Any], times: int = 1) -> tuple[Any, float]:
    """The result of the task, and the seconds of its fastest run."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        result = task()
        seconds.append(time.perf_counter() - start)
    return result, min(seconds)


def scikit_learn(solver: str, problem: bg.Problem, X: Any, y: Any) -> Callable[[], Any]:
    """The fit of the same problem by scikit-learn, at its default tolerance of 1e-4."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.utils.fixes import parse_version

    renamed = parse_version(sklearn.__version__) >= parse_version("1.8")  # replaced penalty="l1" by l1_ratio=1
    l1: dict[str, Any] = {"l1_ratio": 1} if renamed else {"penalty": "l1"}
    C = 1 / (problem.alpha * problem.n_samples)  # C multiplies the sum of losses, our loss is a mean
    model = LogisticRegression(C=C, solver=solver, max_iter=1_000, **l1)
    return lambda: model.fit(X, y)


def compare_fits(console: Console, data: bg.Dataset) -> bg.Solution:
    problem = bg.Problem(data.X, data.y, loss="logistic", alpha=1.0, fit_intercept=True)
    problem = problem.with_alpha(ALPHA_RATIO * problem.alpha_max)
    X = data.X.astype(np.float64)  # the same matrix, rows of float64, for everybody

    def fit() -> bg.Solution:
        """From the matrix to weights: what was computed above for alpha_max is computed again, and timed."""
        return bg.solve(bg.Problem(X, data.y, loss="logistic", alpha=problem.alpha, fit_intercept=True))

    solution, ours = timed(fit, times=3)
    minimum = bg.solve(problem, tol=1e-10, coef_init=solution.coef).objective
    table = Table(box=None, header_style="dim", padding=(0, 3, 0, 0), pad_edge=False)
    table.add_column("L1 logistic regression", no_wrap=True)
    for name in ("seconds", "objective", "above the minimum", "words"):
        table.add_column(name, justify="right", no_wrap=True)

    def add(name: str, seconds: float, coef: Any, intercept: float, style: str = "") -> None:
        objective = problem.objective(coef, intercept)
        above = f"{max(0.0, objective - minimum):.0e}"
        words = f"{np.count_nonzero(coef):,}"
        table.add_row(name, f"{seconds:.2f}", f"{objective:.7f}", above, words, style=style)

    add("blockgreedy", ours, solution.coef, solution.intercept, "bold green")
    with console.status("scikit-learn is fitting the same problem"), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of names that scikit-learn is changing
        for solver, times in (("liblinear", 3), ("saga", 1)):
            model, seconds = timed(scikit_learn(solver, problem, X, data.y), times)
            add(f"scikit-learn {sklearn.__version__}, {solver}", seconds, model.coef_[0], float(model.intercept_[0]))
    console.print(table)
    console.print(
        f"[green]Proven:[/] the objective of blockgreedy is at most {solution.gap:.0e} above the minimum "
        f"({solution.status}, duality gap).\n"
        "[dim]Same float64 matrix, same alpha, default tolerances (1e-4), timed from matrix to weights; best of "
        "three runs (saga: one). blockgreedy uses all cores, the others one. The lead is smaller at smaller alphas. "
        "liblinear also penalises the intercept, a slightly different problem; saga solves exactly this one.[/]"
    )
    return solution


def show_words(console: Console, data: bg.Dataset, coef: Any) -> None:
    order = np.argsort(coef)
    columns = []
    for title, chosen, style in (("more positive", order[::-1][:6], "green"), ("more negative", order[:6], "red")):
        table = Table(box=None, header_style="dim", padding=(0, 1, 0, 0), pad_edge=False)
        table.add_column(title)
        table.add_column("weight", justify="right")
        table.add_column("")
        for j in chosen:
            table.add_row(
                data.feature_names[j], f"{coef[j]:+.2f}", Text(bar(abs(coef[j]) / np.max(np.abs(coef))), style=style)
            )
        columns.append(table)
    console.print(Columns(columns, padding=(0, 4)))
    found = set(data.feature_names[coef != 0]) & {*GOOD, *BAD}
    console.print(f"[dim]{len(found)} of the {len(GOOD) + len(BAD)} words that decide the class are in the model.[/]")


def bar(share: float, width: int = 14) -> str:
    """Eighths of a character, so that small differences show."""
    eighths = round(8 * width * share)
    return "█" * (eighths // 8) + ("", *"▏▎▍▌▋▊▉")[eighths % 8]


def cross_validate(console: Console, data: bg.Dataset) -> tuple[bg.Model, float]:
    """By the command line, as one would do it with a file."""
    bg.save(data, FOLDER / "documents.npz")
    arguments = ["cv", f"{FOLDER}/documents.npz", "--alphas", str(N_ALPHAS), "--eps", str(EPS)]
    arguments += ["--model", f"{FOLDER}/best.npz", "--report", f"{FOLDER}/cv.html"]
    console.print(f"[dim]$[/] blockgreedy {' '.join(arguments)}", highlight=False)
    with console.status("5 folds"):
        done, seconds = timed(
            lambda: subprocess.run(
                [sys.executable, "-m", "blockgreedy", *arguments, "--quiet"],
                capture_output=True, text=True, check=False,
            )
        )  # fmt: skip
    if done.returncode:
        sys.exit(f"blockgreedy cv failed ({done.returncode}):\n{done.stderr}")
    return bg.Model.load(FOLDER / "best.npz"), seconds


def curve(cross: bg.model.CrossValidation, height: int = 8) -> list[Text]:
    """Mean score of the held-out rows, ± a standard error, against alpha; two characters for each alpha."""
    low, high = float(np.min(cross.shown - cross.std_error)), float(np.max(cross.shown + cross.std_error))

    def row(value: float) -> tuple[int, int]:
        """The line of text for a value, and the quarter of the line's height (0 is the top)."""
        return divmod(round((4 * height - 1) * (high - value) / (high - low)), 4)

    lines = [Text(f"{high - (k + 0.5) * (high - low) / height:9.3f} ┤") for k in range(height)]
    for alpha, mean, error in zip(cross.alphas, cross.shown, cross.std_error, strict=True):
        style = "bold green" if alpha == cross.alpha_min else "bold yellow" if alpha == cross.alpha_1se else "cyan"
        at, quarter = row(mean)
        for k, line in enumerate(lines):
            if k == at:
                line.append({"bold green": "● ", "bold yellow": "○ "}.get(style) or 2 * "⠉⠒⠤⣀"[quarter], style=style)
            else:
                line.append("│ " if row(mean + error)[0] <= k <= row(mean - error)[0] else "  ", style="dim")
    left, right = f"alpha {cross.alphas[0]:.2g}", f"{cross.alphas[-1]:.2g}"
    words = [f"{n:,.0f} word{'' if round(n) == 1 else 's'}" for n in (cross.nonzeros[0], cross.nonzeros[-1])]
    width = 2 * len(cross.alphas)
    lines.append(Text(f"{'':10}└{'─' * width}"))
    lines.append(Text(f"{'':11}{left}{right:>{width - len(left)}}", style="dim"))
    lines.append(Text(f"{'':11}{words[0]}{words[1]:>{width - len(words[0])}}", style="dim"))
    return lines


def show_choice(console: Console, model: bg.Model, seconds: float) -> None:
    cross = model.cross_validation
    assert cross is not None
    assert model.quality is not None
    for line in curve(cross):
        console.print(line)
    console.print(
        f"{cross.n_folds}-fold {cross.scoring} on held-out documents (lower is better), {len(cross.alphas)} alphas, "
        f"{seconds:.1f} s.\n[green]●[/] the best: alpha {cross.alpha_min:.2g}, {model.nonzeros[0]:,} words; "
        f"[yellow]○[/] the largest alpha within one standard error of it: {cross.alpha_1se:.2g}\n"
        f"AUC on held-out documents: {model.quality.scores['roc_auc']:.3f} (0.5 is chance)",
        highlight=False,
    )


def main() -> None:
    console = Console(highlight=False)
    start = time.perf_counter()
    FOLDER.mkdir(parents=True, exist_ok=True)
    data = make_documents()
    size = f"{data.X.shape[0]:,} generated documents, {data.X.shape[1]:,} words, {data.X.nnz:,} nonzeros"
    console.rule(f"[bold]blockgreedy[/]: {size}", align="left")
    solution = compare_fits(console, data)
    console.rule("What the model found", align="left", style="dim")
    show_words(console, data, solution.coef)
    console.rule("Which alpha? Cross-validation", align="left", style="dim")
    model, seconds = cross_validate(console, data)
    show_choice(console, model, seconds)
    console.rule(style="dim")
    page = (FOLDER / "cv.html").resolve()
    console.print(f"The report on this model, for any browser: [bold]{page}[/]", soft_wrap=True)
    console.print(f"{time.perf_counter() - start:.1f} seconds in all. Next: docs/start.md, or make demo-family.")


if __name__ == "__main__":
    main()
