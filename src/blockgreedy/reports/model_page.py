"""The pages of reports: how well a model predicts and with which features, and how even a partition is.

    model_page(Model.load("model.npz")).save("model.html")
    partition_page(blocks, X, y).save("blocks.html")

They draw with matplotlib.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from blockgreedy.data.dataset import label_text
from blockgreedy.reports.figures_axes import plain_number
from blockgreedy.reports.page import Badge, Page, Section, signed
from blockgreedy.reports.page_features import choices, effect, features_html, opening
from blockgreedy.reports.page_pictures import convergence_pictures, cross_validation_pictures, path_pictures
from blockgreedy.reports.page_quality import headline, quality_section
from blockgreedy.reports.page_settings import data_name, settings_section
from blockgreedy.reports.partition_page import partition_page

if TYPE_CHECKING:
    from blockgreedy.models.model import Model

__all__ = ["model_page", "partition_page"]

_FIRST_IN = 20  # rows of the table of features that enter first

_STATUS = {
    "converged": "The solver reached the accuracy that was asked for.",
    "max_iter": "The solver stopped at the limit of iterations, before it reached the accuracy that was asked for.",
    "max_seconds": "The solver stopped at the time limit, before it reached the accuracy that was asked for.",
    "interrupted": "The solver was interrupted; these are the best weights that it had found.",
    "stalled": "The solver could not improve the objective any further in floating point, before it reached the "
    "accuracy that was asked for. A larger tol, or scaling the columns, may help.",
    "diverged": "This method's steps raised the objective; these are the best weights that it had found.",
}


def model_page(model: Model) -> Page:
    """Everything that is known of a model, whichever command or call made it."""
    if not len(model):
        raise ValueError("model has no alphas: there is nothing to show")
    page = Page(_title(model), _lead(model))
    _summary(page.summary, model)
    quality_section(page.section("Prediction quality"), model)
    if model.cross_validation is not None:
        _cross_validation(page.section("Cross-validation"), model)
    if len(model) > 1:
        _path(page.section("Path"), model)
    else:
        _features(page.section("Features"), model)
    proof = page.section("Certificate", folded=True)
    _certificate(proof, model)
    page.badge = _badge(model, proof)
    if model.trace is not None and len(model.trace) > 1:
        _convergence(page.section("Convergence", folded=True), model)
    if model.settings:
        settings_section(page.section("Run settings"), model.settings)
    return page


# ---------------------------------------------------------------------------------------------------- sections


def _summary(part: Section, model: Model) -> None:
    k, why = opening(model)
    score = headline(model.quality)
    ratio = _alpha_ratio(model, k)
    notes = [] if ratio is None else [f"{ratio:.3g} of alpha_max"]
    notes = [_why_words(why), *notes] if len(model) > 1 else notes
    facts = [] if score is None else [score]
    facts += [("alpha", f"{model.alphas[k]:.4g}", "; ".join(notes))]
    facts += [("nonzero weights", f"{model.nonzeros[k]:,}", f"of {model.n_features:,} features")]
    if model.deviance_explained is not None:
        facts += [("deviance explained", f"{100 * model.deviance_explained[k]:.3g} %", "of the null model's loss")]
    samples, entries = model.settings.get("n_samples"), model.settings.get("nonzeros_X")
    if isinstance(samples, int):
        facts += [("rows", f"{samples:,}", f"{entries:,} nonzero entries" if isinstance(entries, int) else "")]
    if model.intercepts[k] != 0:
        facts += [("intercept", f"{model.intercepts[k]:.4g}", "")]
    part.facts(facts)


def _badge(model: Model, about: Section) -> Badge:
    worst = float(np.max(np.where(np.isnan(model.gaps), np.inf, model.gaps)))
    n, proven = len(model), sum(status == "converged" for status in model.statuses)
    if not math.isfinite(worst):
        return Badge("No proof", "how far the objective is from the true minimum is not known", False, about)
    bound = f"the objective is at most {plain_number(worst, 2)} above the true minimum"
    bound = bound if worst > 0 else "the objective is the true minimum, up to rounding"
    if proven == n:
        return Badge("Proven", f"{bound}{'' if n == 1 else f', at each of the {n:,} alphas'}", True, about)
    if n == 1:
        return Badge("Not converged", f"{model.statuses[0]}; even so, {bound}", False, about)
    return Badge(
        "Not converged", f"at {n - proven:,} of {n:,} alphas; even so, {bound} at each of them", False, about
    )


def _certificate(part: Section, model: Model) -> None:
    worst = int(np.argmax(np.where(np.isnan(model.gaps), np.inf, model.gaps)))
    status = next((s for s in model.statuses if s != "converged"), "converged")
    tol = model.settings.get("tol")
    one = len(model) == 1
    part.text(f"Minimised: the mean {model.loss} loss + alpha · ‖weights‖₁{_l2(model)}{_standardized(model)}.")
    if math.isfinite(model.gaps[worst]):
        part.text(
            f"The objective is at most {plain_number(model.gaps[worst], 3)} above the true minimum"
            f"{'' if one else ', at each of the alphas'}. The proof: the value of the dual problem at "
            "any feasible point is a lower bound on the objective. The difference between the objective and the best "
            "lower bound found is the duality gap. The relative gap is the gap divided by the "
            f"objective of the null model, {model.f_null:.6g}, in which every penalised weight is 0."
        )
    else:
        part.text(
            "No lower bound on the objective was found, so it is not known how far the objective is from its minimum."
        )
    where = (
        "" if one or status == "converged" else f" (first at alpha {model.alphas[model.statuses.index(status)]:.6g})"
    )
    part.text(f"Status: {status}{where}. {_STATUS.get(status, '')}")
    asked = f"asked for: {tol:g}" if isinstance(tol, (int, float)) else ""
    part.facts(
        [
            *([("objective", f"{model.objectives[0]:.10g}", f"null model: {model.f_null:.6g}")] if one else []),
            ("duality gap" if one else "largest duality gap", f"{model.gaps[worst]:.3g}",
             "" if one else f"at alpha {model.alphas[worst]:.3g}"),
            ("relative gap", f"{_relative(model, worst):.3g}", asked),
        ]
    )  # fmt: skip
    if not one:
        rows = [
            [f"{alpha:.6g}", f"{count:,}", f"{objective:.10g}", f"{gap:.3g}", f"{_relative(model, k):.3g}", state]
            for k, (alpha, count, objective, gap, state) in enumerate(
                zip(model.alphas, model.nonzeros, model.objectives, model.gaps, model.statuses, strict=True)
            )
        ]
        head = ["alpha", "nonzeros", "objective", "duality gap", "relative gap", "status"]
        part.table(head, rows, "Certificates of all alphas")


def _convergence(part: Section, model: Model) -> None:
    assert model.trace is not None
    last = model.trace.records[-1]
    part.text(
        f"{last.iteration:,} iterations in {last.seconds:.3g} s. Objective − best is the difference to the lowest "
        "objective of this run. The duality gap is a proven bound on the difference to the true minimum."
    )
    part.figures(*convergence_pictures(model.trace, float(np.min(model.objectives))))


def _path(part: Section, model: Model) -> None:
    k, why = opening(model)
    part.text(
        f"Models at {len(model):,} values of alpha, from few features to many. The page opens at alpha "
        f"{model.alphas[k]:.4g} ({_why_words(why)}); move the slider, or click on a curve, to see another model. "
        + effect(model)
    )
    if any(name in ("BIC", "EBIC", "AIC") for name, _ in choices(model)):
        part.text(
            "BIC, EBIC and AIC are information criteria: they add a penalty for each nonzero weight to the misfit, "
            "and the model with the lowest value is preferred. EBIC penalises more if there are many features."
        )
    part.html(features_html(model))
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
        head = ["feature", "enters at alpha", "weight at the smallest alpha"]
        part.table(head, rows, "The first features to enter the model")


def _cross_validation(part: Section, model: Model) -> None:
    found = model.cross_validation
    assert found is not None
    chosen = []
    for what, alpha in (("minimum", found.alpha_min), ("1 SE", found.alpha_1se)):
        k = int(np.argmin(np.abs(found.alphas - alpha)))
        score = f"{found.shown[k]:.6g} ± {found.std_error[k]:.2g}"
        chosen.append([what, f"{alpha:.6g}", score, f"{found.nonzeros[k]:.4g}"])
    part.text(
        f"{found.n_folds} folds, scored by {found.scoring} on the held-out rows; {found.better} is better. "
        "The minimum (alpha_min) has the best mean score. The 1 SE choice (alpha_1se) is the largest alpha, hence "
        "the sparsest model, whose score is within one standard error of the best."
    )
    part.figures(*cross_validation_pictures(found))
    note = f"{found.scoring}: mean of the folds ± one standard error. Nonzero weights: mean of the folds."
    part.table(["choice", "alpha", found.scoring, "nonzero weights"], chosen, "Choices of alpha", note)


def _features(part: Section, model: Model) -> None:
    if not model.nonzeros[0]:
        part.text(
            f"Every weight is 0 at alpha {model.alphas[0]:.6g}: no feature is used. With a smaller alpha, some "
            "weights become nonzero."
        )
        return
    rows = "" if model.support is None else " The column rows counts the training rows in which the feature is not 0."
    part.text(effect(model) + rows)
    part.html(features_html(model))


# ------------------------------------------------------------------------------------------------------- words


def _title(model: Model) -> str:
    kind = "Cross-validated model" if model.cross_validation is not None else "Path" if len(model) > 1 else "Model"
    name = data_name(model.settings)
    return f"{kind} of {name}" if name else f"{kind}: {model.loss} loss"


_KIND_OF_LOSS = {
    "logistic": "Logistic regression",
    "squared": "Linear regression",
    "squared_hinge": "Linear classifier with squared hinge loss",
    "huber": "Robust linear regression (Huber loss)",
}


def _lead(model: Model) -> str:
    kind = _KIND_OF_LOSS.get(model.loss, f"Linear model with {model.loss} loss")
    l2 = model.settings.get("l2")
    penalty = "an elastic net penalty" if isinstance(l2, (int, float)) and l2 > 0 else "an L1 penalty"
    if model.classes is None:
        return f"{kind} with {penalty}."
    negative, positive = map(label_text, model.classes)
    return f"{kind} with {penalty}: class {positive} against class {negative}."


def _why_words(why: str) -> str:
    return {
        "BIC": "lowest BIC",
        "EBIC": "lowest EBIC",
        "AIC": "lowest AIC",
        "CV minimum": "best cross-validation score",
    }.get(why, why)


def _alpha_ratio(model: Model, k: int) -> float | None:
    largest = model.settings.get("alpha_max")
    known = isinstance(largest, (int, float)) and largest > 0
    return float(model.alphas[k] / largest) if known else None


def _l2(model: Model) -> str:
    l2 = model.settings.get("l2")
    return f" + {l2:g}/2 · ‖weights‖²" if isinstance(l2, (int, float)) and l2 > 0 else ""


def _standardized(model: Model) -> str:
    if not model.settings.get("standardize"):
        return ""
    return ", where each weight is multiplied by the standard deviation of its column (--standardize)"


def _relative(model: Model, k: int) -> float:
    gap = float(model.gaps[k])
    return gap / model.f_null if model.f_null > 0 else gap
