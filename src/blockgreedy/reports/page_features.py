"""The features of a model on its page: weights of either sign side by side, search, download, a slider over a path.

The tables are there without a script, at one alpha; for other alphas and further features the script has the data
that is embedded here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from blockgreedy.data.dataset import label_text
from blockgreedy.reports.figures_axes import plain_number
from blockgreedy.reports.page import quoted, signed, table_html
from blockgreedy.solvers.criteria import lowest

if TYPE_CHECKING:
    from blockgreedy.models.model import Model

_TOP = 15  # rows of the tables of either sign
_MOST_ROWS, _MOST_OF_ALL = 5_000, 60_000  # embedded features of an alpha, and of all alphas together
_MOST_SOURCES = 30
_NAMED_COPIES, _MOST_COPIES, _MOST_OF_ALL_COPIES = 2, 20, 20_000  # named under a feature, in its title, embedded


def opening(model: Model) -> tuple[int, str]:
    """The alpha that a page opens at, and why: ("lowest BIC")."""
    stops = choices(model)
    return (stops[0][1], stops[0][0]) if stops else (len(model) - 1, "smallest alpha")


def choices(model: Model) -> list[tuple[str, int]]:
    """The alphas that have a name, the first the one to begin with."""
    if len(model) == 1:
        return []
    found = []
    cross = model.cross_validation
    if cross is not None:
        found += [("CV minimum", _nearest(model, cross.alpha_min)), ("CV 1 SE", _nearest(model, cross.alpha_1se))]
    for name in ("bic", "ebic", "aic"):
        values = (model.criteria or {}).get(name)
        if values is not None and np.any(np.isfinite(values)):
            found.append((name.upper(), lowest(name, values)))
    return found


def effect(model: Model) -> str:
    """What a positive weight does, and that of copies any could have it."""
    same = " Features that are the same column, up to sign and scale, are interchangeable." if model.aliases else ""
    if model.classes is None:
        return f"Positive weights raise the prediction, negative weights lower it.{same}"
    what = "probability" if model.loss == "logistic" else "score"
    return f"Positive weights raise the {what} of class {label_text(model.classes[1])}.{same}"


def certificate_words(model: Model, k: int) -> str:
    gap = float(model.gaps[k])
    if not math.isfinite(gap):
        return "no proof"
    return f"{'proven' if model.statuses[k] == 'converged' else model.statuses[k]}, gap {plain_number(gap, 2)}"


def features_html(model: Model) -> str:
    """The part of a page that shows weights; with several alphas a place for the slider is on top of it."""
    data = _data(model)
    here = data["points"][data["open"]]
    sides = "".join(
        _side(
            data, here, f"{caption} ({here['signs'][k]:,})", [row for row in _rows(here) if (row[1] > 0) == (k == 0)]
        )
        for k, caption in enumerate(data["captions"])
    )
    bar = "" if len(model) == 1 else f'<div class="slider">{_facts(here["facts"])}</div>'
    sources = _sources(here["sources"]) if data["has_sources"] else ""
    return f'<div class="features" data-features={quoted(data)}>{bar}<div class="sides">{sides}</div>{sources}</div>'


def _facts(facts: dict[str, str]) -> str:
    cells = "".join(
        f'<div><dt>{escape(name)}</dt><dd data-fact="{escape(name)}">{escape(value)}</dd></div>'
        for name, value in facts.items()
    )
    return f'<dl class="facts">{cells}</dl>'


def _rows(point: dict[str, Any]) -> list[tuple[int, float]]:
    return list(zip(point["of"], point["weights"], strict=True))


def _side(data: dict[str, Any], point: dict[str, Any], caption: str, rows: list[tuple[int, float]]) -> str:
    largest = max((abs(weight) for weight in point["weights"]), default=0.0) or 1.0
    support = data["support"]
    body = ""
    for feature, weight in rows[:_TOP]:
        name = escape(data["names"][feature]) + _same_html(data["same"] and data["same"][feature])
        body += f'<tr><th scope="row">{name}</th><td class="number">{signed(weight)}</td>'
        body += "" if support is None else f'<td class="number">{support[feature]:,}</td>'
        body += _bar(abs(weight) / largest, "minus" if weight < 0 else "plus") + "</tr>"
    rows_head = "" if support is None else _HEAD.format("rows")
    head = '<th scope="col">feature</th>' + _HEAD.format("weight") + rows_head + '<th aria-hidden="true"></th>'
    return f"<div>{table_html(caption, head, body, kind='weights')}</div>"


def _same_html(same: tuple[str, str] | None) -> str:
    return "" if not same else f'<small title="{escape(same[1])}">{escape(same[0])}</small>'


def _sources(sources: list[tuple[str, int, int, float]]) -> str:
    most = max((count for _, count, _, _ in sources), default=0) or 1
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="number">{count:,}</td><td class="number">{of:,}</td>'
        f'<td class="number">{signed(weight)}</td>{_bar(count / most, "plus")}</tr>'
        for name, count, of, weight in sources
    )
    head = '<th scope="col">column</th>' + "".join(
        map(_HEAD.format, ("nonzero weights", "features", "largest weight"))
    )
    note = "A column of the table becomes one feature (a number) or one per category; crosses combine columns."
    table = table_html(
        "Nonzero weights per source column", head + '<th aria-hidden="true"></th>', body, note, "weights"
    )
    return f'<div class="sources">{table}</div>'


_HEAD = '<th scope="col" class="number">{}</th>'


def _bar(share: float, kind: str) -> str:
    return f'<td class="bar"><span class="{kind}" style="width:{100 * share:.1f}%"></span></td>'


# ------------------------------------------------------------------------------------------------------------ data


def _data(model: Model) -> dict[str, Any]:
    """What the script needs: the names of all features that it may show, and for each alpha its weights."""
    most = min(_MOST_ROWS, max(2 * _TOP, _MOST_OF_ALL // len(model)))
    kept = [_largest(model, k, most) for k in range(len(model))]
    features = np.unique(np.concatenate([chosen for chosen, _ in kept]))
    support = model.support
    names = source_names(model)
    sources = None if names is None else _Sources(names)
    positive = "prediction" if model.classes is None else f"class {label_text(model.classes[1])}"
    verb = "Positive weights" if model.classes is None else f"For {positive}"
    return {
        "names": [model.name_of(int(j)) for j in features],
        "support": None if support is None else [int(support[j]) for j in features],
        "same": _same_columns(model, features),
        "captions": [verb, "Negative weights" if model.classes is None else f"Against {positive}"],
        "top": _TOP,
        "open": opening(model)[0],
        "jumps": choices(model),
        "has_sources": sources is not None,
        "points": [
            {
                "alpha": f"{model.alphas[k]:.6g}",
                "nonzeros": int(model.nonzeros[k]),
                "signs": _signs(model, k),
                "facts": _facts_at(model, k),
                "of": np.searchsorted(features, chosen).tolist(),
                "weights": [float(f"{weight:.6g}") for weight in weights],
                "sources": [] if sources is None else sources.at(*_column(model, k)),
            }
            for k, (chosen, weights) in enumerate(kept)
        ],
    }


def _same_columns(model: Model, features: Any) -> list[tuple[str, str] | None] | None:
    """Of each feature with copies: the line under its name, and a longer list of them; None if none has any."""
    aliases: Mapping[int, list[int]] = model.aliases or {}
    n_copied = sum(int(j) in aliases for j in features)
    if n_copied == 0:
        return None
    most = max(_NAMED_COPIES, min(_MOST_COPIES, _MOST_OF_ALL_COPIES // n_copied))
    found: list[tuple[str, str] | None] = []
    for j in features:
        copies = aliases.get(int(j), [])
        names = [model.name_of(copy) for copy in copies[:most]]
        short = "same column as " + _listed(names[:_NAMED_COPIES], len(copies))
        found.append((short, _listed(names, len(copies))) if copies else None)
    return found


def _listed(names: list[str], count: int) -> str:
    """B, C and 3 more"""
    if count > len(names):
        return f"{', '.join(names)} and {count - len(names):,} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _facts_at(model: Model, k: int) -> dict[str, str]:
    explained = model.deviance_explained
    return {
        "alpha": f"{model.alphas[k]:.4g}",
        "nonzero weights": f"{model.nonzeros[k]:,} of {model.n_features:,}",
        **({} if explained is None else {"deviance explained": f"{100 * explained[k]:.3g} %"}),
        "certificate": certificate_words(model, k),
    }


def _column(model: Model, k: int) -> tuple[Any, Any]:
    """(features, weights) at an alpha."""
    part = slice(model.coefs.indptr[k], model.coefs.indptr[k + 1])
    return model.coefs.indices[part], model.coefs.data[part]


def _largest(model: Model, k: int, most: int) -> tuple[Any, Any]:
    features, weights = _column(model, k)
    order = np.argsort(-np.abs(weights), kind="stable")[:most]
    return features[order].astype(np.int64), weights[order]


def _signs(model: Model, k: int) -> list[int]:
    _, weights = _column(model, k)
    return [int(np.count_nonzero(weights > 0)), int(np.count_nonzero(weights < 0))]


def source_names(model: Model) -> list[str] | None:
    """The column (or columns of a cross) that each feature comes from; None for data that is no table."""
    encoding = model.encoding
    if encoding is None:
        return None
    return [" × ".join(columns) for columns, first, end in encoding.groups for _ in range(first, end)]


class _Sources:
    """Counts nonzero weights per source column."""

    def __init__(self, names: list[str]) -> None:
        self.names, self.of, self.totals = np.unique(names, return_inverse=True, return_counts=True)

    def at(self, features: Any, weights: Any) -> list[tuple[str, int, int, float]]:
        """(column, nonzero weights, features, largest weight), the columns with most nonzero weights first."""
        of = self.of[features]
        counts = np.bincount(of, minlength=len(self.names))
        largest = np.zeros(len(self.names))
        ascending = np.argsort(np.abs(weights), kind="stable")
        largest[of[ascending]] = weights[ascending]  # the last one stays
        chosen = [int(s) for s in np.argsort(-counts, kind="stable")[:_MOST_SOURCES] if counts[s]]
        return [(str(self.names[s]), int(counts[s]), int(self.totals[s]), float(f"{largest[s]:.6g}")) for s in chosen]


def _nearest(model: Model, alpha: float) -> int:
    return int(np.argmin(np.abs(model.alphas - alpha)))
