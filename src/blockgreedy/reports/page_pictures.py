"""The pictures on the pages of models and partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from blockgreedy.reports.figures import (
    AMBER,
    BLUE,
    GREEN,
    INK,
    RED,
    SOFT,
    TEAL,
    VIOLET,
    Axis,
    Band,
    Line,
    Mark,
    bars,
    curves,
)
from blockgreedy.reports.plots import chosen_features, errors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from blockgreedy.models.model import CrossValidation, Model
    from blockgreedy.partitions.partition import Partition
    from blockgreedy.reports.page import Picture
    from blockgreedy.solvers.trace import Trace

_NAMED, _DRAWN, _MOST_BARS = 6, 60, 64
_COLORS = (TEAL, RED, AMBER, VIOLET, BLUE, GREEN)


def convergence_pictures(trace: Trace, objective: float) -> list[Picture]:
    """Error, gap and nonzeros, against seconds or iterations, on a logarithmic or a linear scale."""
    made = []
    for clock, column in (("seconds", "seconds"), ("iterations", "iteration")):
        for scale in ("log", "linear"):
            picks = {"against": clock, "scale": scale}
            for name, label, values, color in (
                ("objective", "objective − best", errors(trace, objective), INK),
                ("gap", "duality gap", trace["gap"], TEAL),
            ):
                made.append(
                    curves(
                        f"convergence-{name}-{clock}-{scale}",
                        [Line(trace[column], values, color)],
                        Axis(clock, limits=(0, None)),
                        Axis(label, log=scale == "log"),
                        title=f"{label[0].upper()}{label[1:]} against {clock}",
                        alt=f"{label} against {clock}, {scale} scale: {_from_to(values)}",
                        picks=picks,
                    )
                )
        made.append(
            curves(
                f"convergence-nonzeros-{clock}",
                [Line(trace[column], trace["nonzeros"], VIOLET)],
                Axis(clock, limits=(0, None)),
                Axis("nonzero weights", limits=(0, None)),
                title=f"Nonzero weights against {clock}",
                alt=f"Nonzero weights against {clock}: {_from_to(trace['nonzeros'])}",
                picks={"against": clock},
            )
        )
    return made


def path_pictures(model: Model) -> list[Picture]:
    """Weights, nonzeros and deviance explained against alpha, the largest first."""
    drawn = model.alphas > 0  # at alpha = 0 there is no place on a logarithmic axis
    if not np.any(drawn):
        return []
    alphas, nonzeros = model.alphas[drawn], model.nonzeros[drawn]
    x = Axis("alpha", log=True, falling=True)
    coefs = sp.csr_array(model.coefs)
    shown = chosen_features(coefs, _NAMED)[:_DRAWN]
    weights = coefs[shown].toarray()[:, drawn]
    names = [model.name_of(int(j)) for j in shown]
    looks = zip(weights, _COLORS, names, strict=False)
    named = [Line(alphas, row, color, width=1.5, label=name) for row, color, name in looks]
    rest = zip(weights[_NAMED:], names[_NAMED:], strict=True)
    thin = [Line(alphas, row, SOFT, width=0.5, label=name, quiet=True) for row, name in rest]
    made = [
        curves(
            "path-weights",
            [*thin, *named],
            x,
            Axis("weight"),
            title="Weights against alpha",
            alt=f"Weights of the {len(shown)} features with the largest ones against alpha, falling; named are "
            + ", ".join(line.label for line in named),
            caption=f"{len(shown)} of {coefs.shape[0]:,} features; the largest are named." if len(shown) else "",
            at_ends=True,
        )
    ]
    made += [
        curves(
            f"path-nonzeros-{scale}",
            [Line(alphas, nonzeros, VIOLET)],
            x,
            Axis("nonzero weights", log=scale == "log", limits=(None, None) if scale == "log" else (0, None)),
            title="Nonzero weights against alpha",
            alt=f"Nonzero weights against alpha, {scale} scale: {_from_to(nonzeros)}",
            picks={"nonzeros": scale},
        )
        for scale in ("linear", "log")
    ]
    if model.deviance_explained is not None:
        made.append(
            curves(
                "path-deviance",
                [Line(alphas, 100 * model.deviance_explained[drawn], TEAL)],
                x,
                Axis("deviance explained, %", limits=(0, None)),
                title="Deviance explained against alpha",
                alt=f"Share of the null model's loss that is explained: {_from_to(100 * model.deviance_explained)} %",
            )
        )
    return made


def cross_validation_pictures(found: CrossValidation) -> list[Picture]:
    """The score and nonzeros against alpha, with one standard error and both choices."""
    drawn = (found.alphas > 0) & np.isfinite(found.shown)
    if not np.any(drawn):
        return []
    alphas, mean = found.alphas[drawn], found.shown[drawn]
    spread = np.nan_to_num(found.std_error[drawn])
    x = Axis("alpha", log=True, falling=True)
    marks = [Mark(found.alpha_min, "minimum", RED), Mark(found.alpha_1se, "1 SE", AMBER, "-.")]
    if found.alpha_min == found.alpha_1se:
        marks = [Mark(found.alpha_min, "minimum and 1 SE", RED)]
    each = [scores[drawn] for scores in found.shown_folds]
    at = f"alpha_min {found.alpha_min:.3g}, alpha_1se {found.alpha_1se:.3g}"
    return [
        curves(
            "cross-validation-score",
            [
                *(
                    Line(alphas, scores, SOFT, width=0.7, label=f"fold {k + 1}", quiet=True)
                    for k, scores in enumerate(each)
                ),
                Line(alphas, mean, TEAL, width=2.0, label="mean"),
                Line(alphas, mean - spread, SOFT, width=0.6, label="− 1 standard error"),
                Line(alphas, mean + spread, SOFT, width=0.6, label="+ 1 standard error"),
            ],
            x,
            Axis(found.scoring),
            title=f"Score on held-out rows: {found.scoring}",
            alt=f"Mean {found.scoring} of {found.n_folds} folds against alpha, with one standard error; {at}",
            entries=[
                Line([], [], TEAL, width=2.0, label="mean ± 1 standard error"),
                *([Line([], [], SOFT, width=0.7, label="each fold")] if each else []),
            ],
            bands=[Band(alphas, mean - spread, mean + spread, TEAL)],
            marks=marks,
        ),
        curves(
            "cross-validation-nonzeros",
            [Line(alphas, found.nonzeros[drawn], VIOLET)],
            x,
            Axis("nonzero weights", limits=(0, None)),
            title="Nonzero weights, mean of the folds",
            alt=f"Mean nonzero weights of the folds against alpha; {at}",
            marks=marks,
        ),
    ]


def block_pictures(
    partition: Partition, loads: NDArray[Any], density: NDArray[Any], mass: NDArray[Any] | None
) -> list[Picture]:
    """Load, density, size and mass of each block, the heaviest first."""
    order = np.argsort(-loads, kind="stable")
    shown = [("load", "nonzeros of X in the block", loads), ("density", "density of the block, %", 100 * density)]
    shown += [("features", "features of the block", partition.sizes)]
    shown += [] if mass is None else [("mass", "share of the gradient mass, %", 100 * mass)]
    made = []
    for name, label, values in shown:
        words: dict[str, Any] = {
            "title": f"{label[0].upper()}{label[1:]}",
            "alt": f"{label}, for each of {len(values):,} blocks, that with most nonzeros first: "
            f"{values.min():.4g} to {values.max():.4g}",
        }
        x, y = Axis("block, most nonzeros first"), Axis(label, limits=(0, None))
        if len(values) <= _MOST_BARS:
            places = ("block", [str(b) for b in order])
            made.append(bars(f"blocks-{name}", {partition.kind: values[order]}, x, y, places=places, **words))
        else:
            made.append(curves(f"blocks-{name}", [Line(np.arange(len(values)), values[order], INK)], x, y, **words))
    return made


def _from_to(values: NDArray[Any]) -> str:
    known = values[np.isfinite(values)]
    return f"from {known[0]:.4g} to {known[-1]:.4g}" if len(known) else "unknown"
