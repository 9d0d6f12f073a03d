"""What ``.plot()`` returns and notebooks show of results: matplotlib figures, and small tables beside them."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.figures_style import AMBER, BLUE, GREEN, HEIGHT, INK, RED, SOFT, TEAL, VIOLET, WIDTH, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from blockgreedy.trace import Trace

_COLORS = (TEAL, RED, AMBER, VIOLET, BLUE, GREEN)
_CLOCKS = {"seconds": "seconds", "iterations": "iteration"}
_MOST_DRAWN, _MOST_BARS = 200, 64


def chosen_features(coefs: Any, n_named: int) -> NDArray[np.int64]:
    """Of a matrix of weights, a column for each alpha: the features to draw, those with the largest weights first."""
    largest = abs(coefs).max(axis=1).toarray().ravel()
    count = min(max(_MOST_DRAWN, n_named), np.count_nonzero(largest))
    return np.argsort(-largest, kind="stable")[:count]


def errors(trace: Trace, objective: float) -> NDArray[np.float64]:
    """objective − best objective that is known; 0 where the two differ by rounding alone."""
    values = trace["objective"]
    best = min(np.min(values, initial=np.inf), objective)
    return np.where(values - best > 1e-14 * abs(best), values - best, 0.0)


def convergence_figure(trace: Trace, objective: float, x: str = "seconds") -> Figure:
    """Error and gap on one axis, nonzeros on another, against seconds or iterations."""
    if x not in _CLOCKS:
        raise ValueError(f"x={x!r} is not known; use {' or '.join(map(repr, _CLOCKS))}")
    with style():
        upper, lower = _two_axes((2, 1))
        clock = trace[_CLOCKS[x]]
        look = {"marker": "o", "markersize": 3} if len(trace) <= 40 else {}
        for name, values, color in (("objective − best", errors(trace, objective), INK), ("gap", trace["gap"], TEAL)):
            seen = np.isfinite(values) & (values > 0)
            if np.any(seen):
                upper.plot(clock[seen], values[seen], color=color, label=name, **look)  # type: ignore[arg-type]
        if upper.lines:
            upper.set_yscale("log")
            upper.legend(frameon=False)
        lower.step(clock, trace["nonzeros"], where="post", color=INK)
        lower.set(ylabel="nonzeros", xlabel=x)
    return _figure_of(upper)


def path_figure(
    alphas: NDArray[np.float64], weights: NDArray[np.float64], names: Sequence[str], nonzeros: NDArray[np.int64]
) -> Figure:
    """Weights (a row for each feature shown, those with a name labelled) and nonzeros against alpha, falling."""
    with style():
        upper, lower = _two_axes((3, 1))
        for k in range(len(weights)):
            named = k < len(names)
            upper.plot(
                alphas,
                weights[k],
                color=_COLORS[k % len(_COLORS)] if named else SOFT,
                linestyle=("-", "--", ":")[k // len(_COLORS) % 3] if named else "-",  # a colour may come again
                linewidth=1.4 if named else 0.6,
                alpha=1.0 if named else 0.5,
                label=names[k] if named else None,
                zorder=3 if named else 2,
            )
        upper.set(ylabel="weight")
        if names:
            upper.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))  # beside: weights go anywhere
        lower.step(alphas, nonzeros, where="mid", color=INK)
        lower.set(ylabel="nonzeros", xlabel="alpha", xscale="log")
        lower.invert_xaxis()
    return _figure_of(upper)


def loads_figure(loads: dict[str, NDArray[Any]]) -> Figure:
    """A panel for each kind of load, over the blocks, those with the largest first kind of load first."""
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(1.5 * WIDTH, 0.4 + 0.55 * HEIGHT * len(loads)), layout="constrained")
        panels = figure.subplots(len(loads), 1, sharex=True, squeeze=False)[:, 0]
        order = np.argsort(-next(iter(loads.values())), kind="stable")
        for k, (panel, (name, values)) in enumerate(zip(panels, loads.items(), strict=True)):
            places = np.arange(len(values))
            if len(values) <= _MOST_BARS:
                panel.bar(places, values[order], color=_COLORS[k], linewidth=0)
            else:
                panel.fill_between(places, values[order], step="mid", color=_COLORS[k], linewidth=0)
            panel.axhline(values.mean(), color=INK, linestyle="--", linewidth=1)
            panel.set_title(f"mean {values.mean():,.4g}, largest {values.max():,.4g}", loc="right", fontsize=8.5)
            panel.set(ylabel=name, ylim=(0, None))
            panel.grid(False, axis="x")
        panels[-1].set(xlabel=f"block, most {next(iter(loads))} first")
    return figure


def weights_figure(weights: Sequence[tuple[str, float]]) -> Figure:
    """Bars of named weights, the first on top."""
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(1.5 * WIDTH, 0.7 + 0.24 * max(len(weights), 4)), layout="constrained")
        axes = figure.add_subplot()
        values = [weight for _, weight in weights]
        axes.barh(range(len(values)), values, color=[RED if weight < 0 else TEAL for weight in values])
        axes.set_yticks(range(len(values)), [name for name, _ in weights])
        axes.set(xlabel="weight")
        axes.invert_yaxis()
        axes.grid(False, axis="y")
    return figure


def notebook_html(title: str, facts: Sequence[tuple[str, str]], alt: str, draw: Callable[[], Figure] | None) -> str:
    """A table, and the figure where matplotlib is installed; all on white, as notebooks show figures."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in facts
    )
    return f"<div><strong>{escape(title)}</strong><table>{rows}</table>{_image(alt, draw)}</div>"


def _image(alt: str, draw: Callable[[], Figure] | None) -> str:
    if draw is None:
        return ""
    try:
        figure = draw()
    except ImportError:
        return ""
    raster = io.BytesIO()
    figure.savefig(raster, format="png", dpi=100, facecolor="white")
    data = base64.b64encode(raster.getvalue()).decode()
    return f'<img alt="{escape(alt)}" style="max-width:100%" src="data:image/png;base64,{data}">'


def _two_axes(heights: tuple[float, float]) -> tuple[Axes, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.5 * WIDTH, 1.5 * HEIGHT), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=heights)
    return upper, lower


def _figure_of(axes: Axes) -> Figure:
    from matplotlib.figure import Figure

    figure = axes.figure
    assert isinstance(figure, Figure)  # no subfigures here
    return figure
