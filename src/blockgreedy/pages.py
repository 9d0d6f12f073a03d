"""The pages of reports: what a model is and how good, what a partition is and how even.

    model_page(Model.load("model.npz")).save("model.html")
    partition_page(blocks, X, y).save("blocks.html")

They draw with matplotlib.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from blockgreedy.columns import as_columns
from blockgreedy.page_pictures import (
    block_pictures,
    convergence_pictures,
    cross_validation_pictures,
    path_pictures,
)
from blockgreedy.report import Page, Section, signed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from blockgreedy.model import Model
    from blockgreedy.partition import Partition

_TOP, _FIRST_IN = 30, 20  # rows of the tables of features
_LONG = 64  # tables with more rows open on a click

_STATUS = {
    "converged": "the proof is as tight as was asked for",
    "max_iter": "it stopped at the limit of iterations, before the proof was as tight as was asked for",
    "max_seconds": "it stopped at the limit of seconds, before the proof was as tight as was asked for",
    "interrupted": "it was interrupted; this is the best point that it had",
    "stalled": "no step lowered the objective in floating point any more, before the proof was tight enough",
    "diverged": "the steps of this method raised the objective; this is the best point that it had",
}


def model_page(model: Model) -> Page:
    """Everything that is known of a model, whichever command or call made it."""
    if not len(model):
        raise ValueError("model has no alphas: there is nothing to show")
    page = Page(_title(model), _lead(model))
    _what(page.section("What was fitted"), model)
    _certificate(page.section("Certificate"), model)
    if model.trace is not None and len(model.trace) > 1:
        _convergence(page.section("Convergence"), model)
    if len(model) > 1:
        _path(page.section("Path"), model)
    if model.cross_validation is not None:
        _cross_validation(page.section("Cross-validation"), model)
    _features(page.section("Features"), model)
    if model.settings:
        _settings(page.section("Settings"), model.settings)
    return page


def partition_page(partition: Partition, X: Any, y: Any = None, *, settings: Mapping[str, Any] | None = None) -> Page:
    """Size, load and density of the blocks; with y also where weights are to be expected."""
    columns = as_columns(X)
    n_rows = columns.shape[0]
    sizes, loads = partition.sizes, partition.nonzeros(columns)
    mass = None if y is None else partition.mass(columns, y)
    density = loads / (n_rows * sizes)
    chosen = dict(settings or {})
    name = _data_name(chosen)
    page = Page(
        f"{partition.n_blocks:,} {partition.kind} blocks{f' of {name}' if name else ''}",
        f"{partition.n_features:,} features of {n_rows:,} samples, {int(loads.sum()):,} nonzeros.",
    )
    part = page.section("Blocks")
    facts = [
        ("blocks", f"{partition.n_blocks:,}", partition.kind),
        ("features per block", _span(sizes.min(), sizes.max()), f"mean {sizes.mean():,.6g}"),
        ("heaviest block / mean", _over_mean(loads), "in nonzeros"),
    ]
    if mass is not None:
        facts.append(("largest share / mean", _over_mean(mass), "of the gradient mass"))
    if partition.seed is not None:
        facts.append(("seed", str(partition.seed), ""))
    part.facts(facts)
    part.text(
        "An iteration that scans whole blocks waits for the one with most nonzeros. A block without gradient mass "
        "has little to contribute: few weights are to be expected in it."
    )
    part.figures(*block_pictures(partition, loads, density, mass))
    head = ["block", "features", "nonzeros", "of the mean", "density", *([] if mass is None else ["mass"])]
    rows = [
        [
            str(b),
            f"{sizes[b]:,}",
            f"{loads[b]:,}",
            f"{loads[b] / max(loads.mean(), 1e-300):.3f}",
            f"{100 * density[b]:.3g} %",
            *([] if mass is None else [f"{100 * mass[b]:.3g} %"]),
        ]
        for b in np.argsort(-loads, kind="stable")
    ]
    note = "Density: nonzeros of all entries." + (
        "" if mass is None else " Mass: share of |x·y|/‖x‖ of the features."
    )
    part.table(head, rows, "Blocks, the heaviest first", note, folded=len(rows) > _LONG)
    if chosen:
        _settings(page.section("Settings"), chosen)
    return page


# ---------------------------------------------------------------------------------------------------- sections


def _what(part: Section, model: Model) -> None:
    nonzeros, alphas, classes = model.nonzeros, model.alphas, model.classes
    versus = "regression" if classes is None else f"{_plain(classes[1])} against {_plain(classes[0])}"
    facts = [("loss", model.loss, versus)]
    ratio = _alpha_ratio(model)
    if len(model) == 1:
        facts += [("alpha", f"{alphas[0]:.6g}", f"{ratio:.3g} of alpha_max" if ratio is not None else "")]
        facts += [("nonzero weights", f"{nonzeros[0]:,}", f"of {model.n_features:,} features")]
    else:
        facts += [("alphas", f"{len(model):,}", f"{alphas[0]:.3g} … {alphas[-1]:.3g}")]
        facts += [("nonzero weights", _span(nonzeros.min(), nonzeros.max()), f"of {model.n_features:,} features")]
    samples, entries = model.settings.get("n_samples"), model.settings.get("nonzeros_X")
    if isinstance(samples, int):
        facts += [("samples", f"{samples:,}", f"{entries:,} nonzeros" if isinstance(entries, int) else "")]
    if model.deviance_explained is not None:
        most = float(np.max(model.deviance_explained))
        facts += [("deviance explained", f"{100 * most:.4g} %", "" if len(model) == 1 else "at most")]
    if np.any(model.intercepts):
        last = "" if len(model) == 1 else "at the last alpha"
        facts += [("intercept", f"{model.intercepts[-1]:.6g}", last)]
    part.facts(facts)
    part.text(f"Minimised: the mean {model.loss} loss + alpha · ‖weights‖₁{_l2(model)}.")
    if "command" in model.settings:
        part.text("To do it again:")
        part.code(str(model.settings["command"]))


def _certificate(part: Section, model: Model) -> None:
    worst = int(np.argmax(np.where(np.isnan(model.gaps), np.inf, model.gaps)))
    relative = _relative(model, worst)
    status = next((s for s in model.statuses if s != "converged"), "converged")
    tol = model.settings.get("tol")
    asked = f"asked for: {tol:g}" if isinstance(tol, (int, float)) else ""
    one = len(model) == 1
    part.facts(
        [
            ("status", status, ""),
            *([("objective", f"{model.objectives[0]:.10g}", f"null model: {model.f_null:.6g}")] if one else []),
            ("dual gap" if one else "largest dual gap", f"{model.gaps[worst]:.3g}",
             "" if one else f"at alpha {model.alphas[worst]:.3g}"),
            ("relative gap", f"{relative:.3g}", asked),
        ]
    )  # fmt: skip
    where = "" if one or status == "converged" else f", at alpha {model.alphas[model.statuses.index(status)]:.6g}"
    words = _STATUS.get(status, "see the settings below")
    part.text(f"{status}{where}: {words}." if status != "converged" else f"Converged: {words}.")
    if math.isfinite(model.gaps[worst]):
        part.text(
            f"No weights whatsoever have an objective that is lower by more than {model.gaps[worst]:.3g}"
            f"{'' if one else ', at any of the alphas'}. The relative gap is the gap over the objective of the null "
            f"model, {model.f_null:.6g}, in which every penalised weight is 0."
        )
    else:
        part.text("There is no proof of how good the weights are: no feasible dual point was found.")
    if not one:
        rows = [
            [f"{alpha:.6g}", f"{count:,}", f"{objective:.10g}", f"{gap:.3g}", f"{_relative(model, k):.3g}", state]
            for k, (alpha, count, objective, gap, state) in enumerate(
                zip(model.alphas, model.nonzeros, model.objectives, model.gaps, model.statuses, strict=True)
            )
        ]
        head = ["alpha", "nonzeros", "objective", "dual gap", "relative gap", "status"]
        part.table(head, rows, "Certificates", folded=True)


def _convergence(part: Section, model: Model) -> None:
    assert model.trace is not None
    last = model.trace.records[-1]
    part.text(
        f"{last.iteration:,} iterations in {last.seconds:.3g} s. The dual gap proves how far the objective is from "
        "the best possible one at most; the other curve is its distance to the lowest that was seen."
    )
    part.figures(*convergence_pictures(model.trace, float(np.min(model.objectives))))


def _path(part: Section, model: Model) -> None:
    part.text("From the largest alpha on the left, at which few weights are not 0, to the smallest.")
    part.figures(*path_pictures(model))
    coefs = sp.csr_array(model.coefs)
    coefs.sort_indices()
    first = np.full(model.n_features, len(model))
    entered = np.flatnonzero(np.diff(coefs.indptr))
    first[entered] = coefs.indices[coefs.indptr[entered]]
    last = np.asarray(coefs[:, [len(model) - 1]].toarray()).ravel()
    order = sorted(entered.tolist(), key=lambda j: (first[j], -abs(last[j]), j))[:_FIRST_IN]
    rows = [[model.name_of(j), f"{model.alphas[first[j]]:.6g}", signed(last[j])] for j in order]
    if rows:
        head = ["feature", "alpha at which it enters", "weight at the last"]
        part.table(head, rows, "The first features to enter")


def _cross_validation(part: Section, model: Model) -> None:
    found = model.cross_validation
    assert found is not None
    chosen = []
    for what, alpha in (("alpha_min", found.alpha_min), ("alpha_1se", found.alpha_1se)):
        k = int(np.argmin(np.abs(found.alphas - alpha)))
        score = f"{found.shown[k]:.6g} ± {found.std_error[k]:.2g}"
        chosen.append([what, f"{alpha:.6g}", score, f"{found.nonzeros[k]:.4g}"])
    part.text(
        f"{found.n_folds} folds, scored by {found.scoring} on the rows held out; {found.better} is better. "
        "alpha_min has the best mean score. alpha_1se is the largest alpha, hence the sparsest model, whose score is "
        "within one standard error of the best."
    )
    part.figures(*cross_validation_pictures(found))
    note = f"{found.scoring} ± one standard error; nonzeros are the mean of the folds."
    part.table(["choice", "alpha", found.scoring, "nonzeros"], chosen, "Choices of alpha", note)


def _features(part: Section, model: Model) -> None:
    places = [("", len(model) - 1)]
    if len(model) > 1 and model.cross_validation is not None:
        chosen = model.cross_validation
        places = [("alpha_min", _nearest(model, chosen.alpha_min)), ("alpha_1se", _nearest(model, chosen.alpha_1se))]
    for name, k in places:
        count = int(model.nonzeros[k])
        where = f" at {f'{name} = ' if name else 'alpha '}{model.alphas[k]:.6g}"
        if not count:
            part.text(f"Every weight is 0{where}: the null model.")
            continue
        alone = model if len(model) == 1 else model.at(float(model.alphas[k])) if model.alphas[k] > 0 else None
        if alone is None:
            continue
        shown = f"the {_TOP} largest of {count:,}" if count > _TOP else f"all {count:,}"
        plus = int(np.count_nonzero(alone.coefs.data > 0))
        toward = f" Weights above 0 speak for {_plain(model.classes[1])}." if model.classes is not None else ""
        caption = f"Weights{where}: {shown}"
        part.weights(alone.top(_TOP), caption, f"{plus:,} above 0, {count - plus:,} below.{toward}")


def _settings(part: Section, settings: Mapping[str, Any]) -> None:
    rows = [[str(name), _plain(value)] for name, value in settings.items()]
    part.table(["setting", "value"], rows, "All that is known of how it came about")


# ------------------------------------------------------------------------------------------------------- words


def _title(model: Model) -> str:
    kind = "Cross-validated model" if model.cross_validation is not None else "Path" if len(model) > 1 else "Model"
    name = _data_name(model.settings)
    return f"{kind} of {name}" if name else f"{kind}: {model.loss} loss"


def _lead(model: Model) -> str:
    gap = float(np.max(model.gaps))
    proof = f"proven to within {gap:.2g} of the best objective" if math.isfinite(gap) else "without a proof"
    if len(model) == 1:
        return f"{model.nonzeros[0]:,} of {model.n_features:,} features have a weight, {proof}."
    return f"{len(model):,} models of {model.n_features:,} features, from sparse to dense, each {proof}."


def _data_name(settings: Mapping[str, Any]) -> str:
    return PurePath(str(settings["data"])).name if settings.get("data") else ""


def _alpha_ratio(model: Model) -> float | None:
    largest = model.settings.get("alpha_max")
    known = isinstance(largest, (int, float)) and largest > 0
    return float(model.alphas[0] / largest) if known else None


def _l2(model: Model) -> str:
    l2 = model.settings.get("l2")
    return f" + {l2:g}/2 · ‖weights‖²" if isinstance(l2, (int, float)) and l2 > 0 else ""


def _relative(model: Model, k: int) -> float:
    gap = float(model.gaps[k])
    return gap / model.f_null if model.f_null > 0 else gap


def _nearest(model: Model, alpha: float) -> int:
    return int(np.argmin(np.abs(model.alphas - alpha)))


def _span(low: Any, high: Any) -> str:
    return f"{low:,}" if low == high else f"{low:,} … {high:,}"


def _over_mean(values: NDArray[Any]) -> str:
    mean = float(values.mean())
    return f"{float(values.max()) / mean:.2f}" if mean > 0 else "1"


def _plain(value: Any) -> str:
    """A setting in words: None is nothing, numbers in six digits, lists with commas."""
    if value is None:
        return "–"
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (int, np.integer)):
        return f"{value:,}" if abs(int(value)) >= 10_000 else str(value)
    if isinstance(value, (float, np.floating)):
        return f"{value:.10g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_plain(inner)}" for name, inner in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_plain, value))
    return str(value)
