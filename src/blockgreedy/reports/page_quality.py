"""How well a model predicts, on its page: scores beside those of a constant prediction, and their curves."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from blockgreedy.data.dataset import label_text
from blockgreedy.models.quality import LABELS, LOWER_IS_BETTER, ON_TRAINING_ROWS
from blockgreedy.reports.figures import AMBER, BLUE, DOTS, SOFT, TEAL, VIOLET, Axis, Line, bars, curves
from blockgreedy.reports.figures_axes import plain_number

if TYPE_CHECKING:
    from blockgreedy.models.model import Model
    from blockgreedy.models.quality import Quality
    from blockgreedy.reports.page import Picture, Section

_BEST = {"roc_auc": "AUC", "r2": "R²", "average_precision": "average precision", "accuracy": "accuracy"}
_MEANING = {
    "roc_auc": "probability that a row of the positive class scores higher than a row of the other; 0.5 is guessing",
    "average_precision": "precision averaged over recall; the baseline is the share of the positive class",
    "log_loss": "mean of −log(predicted probability of the true class)",
    "brier": "mean squared error of the probabilities",
    "accuracy": "share of rows whose class is predicted correctly",
    "r2": "share of the variance of the target that the model explains",
    "mae": "mean of |observed − predicted|",
    "rmse": "root of the mean of (observed − predicted)²",
}


def headline(quality: Quality | None) -> tuple[str, str, str] | None:
    """The score to see first: (name, value, beside what and on which rows)."""
    for name, short in _BEST.items():
        if quality is not None and name in quality.scores:
            return short, f"{quality.scores[name]:.4g}", f"{_beside(quality, name)}; {_briefly(quality.rows)}"
    return None


def _beside(quality: Quality, name: str) -> str:
    return f"baseline {quality.baseline[name]:.3g}" if name in quality.baseline else "no baseline"


def _briefly(rows: str) -> str:
    """Which rows were scored, in words for a narrow tile; the section below has all of them."""
    return rows.split(", each")[0].split(", by")[0]


def quality_section(part: Section, model: Model) -> None:
    quality = model.quality
    if quality is None:
        part.text(
            "No scores are stored with this model. The commands fit, path and cv store them; predict --score "
            "computes them for any labelled file."
        )
        return
    part.text(f"Measured on {quality.n_samples:,} rows: {quality.rows}.")
    if quality.rows.startswith(ON_TRAINING_ROWS):
        part.text(
            "These scores are optimistic, because the model was fitted on the same rows. fit --holdout 0.2 and cv "
            "score on rows that are left out of the fit."
        )
    rate = quality.baseline.get("base_rate")
    constant = "the mean of the targets" if rate is None else f"the share of the positive class, {rate:.4g}"
    rows = [
        [
            LABELS.get(name, name),
            f"{value:.4g}",
            f"{quality.baseline[name]:.4g}" if name in quality.baseline else "–",
            "lower" if name in LOWER_IS_BETTER else "higher",
            _MEANING.get(name, ""),
        ]
        for name, value in quality.scores.items()
    ]
    part.table(
        ["score", "this model", "baseline", "better if", "meaning"],
        rows,
        "Scores beside the baseline",
        f"Baseline: the best constant prediction, {constant}.",
        one_line=True,
    )
    part.figures(*quality_pictures(quality, model))


def quality_pictures(quality: Quality, model: Model) -> list[Picture]:
    """ROC, precision-recall, calibration and scores by class; or predicted against observed, and residuals."""
    if model.classes is None:
        return _of_regression(quality)
    negative, positive = (f"class {label_text(label)}" for label in model.classes)
    return _of_classes(quality, negative, positive, model.loss == "logistic")


def _of_classes(quality: Quality, negative: str, positive: str, has_probabilities: bool) -> list[Picture]:
    found, made = quality.curves, []
    unit = (-0.02, 1.02)
    guess = Line([0, 1], [0, 1], SOFT, "--", 1.0)
    if "roc_fpr" in found:
        auc = quality.scores["roc_auc"]
        made.append(
            curves(
                "quality-roc",
                [guess, Line(found["roc_fpr"], found["roc_tpr"], TEAL, label="this model", whole=True)],
                Axis("false positive rate", limits=unit),
                Axis("true positive rate", limits=unit),
                title=f"ROC curve, AUC {auc:.4g}",
                alt=f"ROC curve: true against false positive rate; the area under it is {auc:.4g}",
                entries=[Line([], [], SOFT, "--", 1.0, "guessing")],
                by_point=True,
            )
        )
        rate, mean = quality.baseline["base_rate"], quality.scores["average_precision"]
        made.append(
            curves(
                "quality-precision-recall",
                [
                    Line([0, 1], [rate, rate], SOFT, "--", 1.0),
                    Line(found["pr_recall"], found["pr_precision"], VIOLET, label="this model", whole=True),
                ],
                Axis("recall", limits=unit),
                Axis("precision", limits=unit),
                title=f"Precision and recall, average {mean:.4g}",
                alt=f"Precision against recall; average precision {mean:.4g}, the share of {positive} is {rate:.4g}",
                entries=[Line([], [], SOFT, "--", 1.0, f"share of {positive}: {rate:.3g}")],
                by_point=True,
            )
        )
    if "calibration_predicted" in found:
        rows = [("rows", f"{count:,.0f}") for count in found["calibration_count"]]
        at = (found["calibration_predicted"], found["calibration_observed"])
        made.append(
            curves(
                "quality-calibration",
                [
                    guess,
                    Line(*at, BLUE, width=1.2),
                    Line(*at, BLUE, DOTS, label="ten groups", whole=True, notes=rows),
                ],
                Axis("predicted probability", limits=unit),
                Axis(f"observed share of {positive}", limits=unit),
                title="Calibration",
                alt="Observed share of the positive class against the predicted probability, in ten groups of rows",
                entries=[Line([], [], SOFT, "--", 1.0, "perfectly calibrated")],
                by_point=True,
            )
        )
    edges = np.asarray(found["scores_edges"])
    word = "predicted probability" if has_probabilities else "decision value"
    made.append(
        bars(
            "quality-scores",
            {negative: found["scores_negative"], positive: found["scores_positive"]},
            Axis(f"{word}{f' of {positive}' if has_probabilities else ''}"),
            Axis("rows", limits=(0, None)),
            title="Predictions by class",
            alt=f"Histogram of the {word} for rows of {negative} and of {positive}",
            places=(word, _between(edges)),
            edges=edges,
            colors={negative: AMBER, positive: TEAL},
        )
    )
    return made


def _of_regression(quality: Quality) -> list[Picture]:
    found = quality.curves
    predicted, observed = found["fit_predicted"], found["fit_observed"]
    ends = [min(predicted.min(), observed.min()), max(predicted.max(), observed.max())]
    some = "" if len(predicted) == quality.n_samples else f"{len(predicted):,} of {quality.n_samples:,} rows."
    edges = np.asarray(found["residual_edges"])
    return [
        curves(
            "quality-fit",
            [Line(ends, ends, SOFT, "--", 1.0), Line(predicted, observed, TEAL, DOTS, label="row", whole=True)],
            Axis("predicted"),
            Axis("observed"),
            title="Observed against predicted",
            alt="Observed against predicted targets; a perfect model has all points on the diagonal",
            caption=some,
            entries=[Line([], [], SOFT, "--", 1.0, "perfect prediction")],
            by_point=True,
        ),
        bars(
            "quality-residuals",
            {"rows": found["residual_count"]},
            Axis("observed − predicted"),
            Axis("rows", limits=(0, None)),
            title="Residuals",
            alt="Histogram of observed minus predicted targets",
            places=("observed − predicted", _between(edges)),
            edges=edges,
            colors={"rows": VIOLET},
        ),
    ]


def _between(edges: np.ndarray) -> list[str]:
    words = [plain_number(edge, 3) for edge in edges]
    return [f"{low} to {high}" for low, high in pairwise(words)]
