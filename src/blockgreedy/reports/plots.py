"""What ``.plot()`` returns and notebooks show of results: matplotlib figures, and small tables beside them.

A figure belongs to pyplot where pyplot is imported: ``plt.gcf()`` is it and ``plt.show()`` shows it. Without pyplot
no global state is touched. In a notebook the last line of a cell shows it once, in both cases.
"""

from __future__ import annotations

import base64
import io
import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from blockgreedy.reports.figures_style import AMBER, BLUE, GREEN, HEIGHT, INK, RED, SOFT, TEAL, VIOLET, WIDTH, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from blockgreedy.solvers.trace import Trace

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
        figure = _figure(0.4 + 0.55 * HEIGHT * len(loads))
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
        figure = _figure(0.7 + 0.24 * max(len(weights), 4))
        axes = figure.add_subplot()
        values = [weight for _, weight in weights]
        axes.barh(range(len(values)), values, color=[RED if weight < 0 else TEAL for weight in values])
        axes.set_yticks(range(len(values)), [name for name, _ in weights])
        axes.set(xlabel="weight")
        axes.invert_yaxis()
        axes.grid(False, axis="y")
    return figure


def scores_figure(
    alphas: NDArray[np.float64],
    mean: NDArray[np.float64],
    error: NDArray[np.float64],
    folds: Sequence[NDArray[np.float64]],
    chosen: tuple[float, float],
    score: str,
) -> Figure:
    """Scores of held-out rows against alpha: the mean with its error, each fold, and both choices of alpha."""
    with style():
        figure = _figure(HEIGHT)
        axes = figure.add_subplot()
        for k, scores in enumerate(folds):
            axes.plot(alphas, scores, color=SOFT, linewidth=0.6, label="_" if k else "each fold")
        look: Any = {"color": TEAL, "linewidth": 1.8, "elinewidth": 0.8, "capsize": 2}
        axes.errorbar(alphas, mean, yerr=np.nan_to_num(error), label="mean ± 1 standard error", **look)
        least, sparse = chosen
        axes.axvline(least, color=RED, linestyle="--", linewidth=1.2, label=f"minimum, alpha {least:.3g}")
        if sparse != least:
            axes.axvline(sparse, color=AMBER, linestyle="-.", linewidth=1.2, label=f"1 SE, alpha {sparse:.3g}")
        axes.set(xlabel="alpha", ylabel=score, xscale="log")
        axes.invert_xaxis()
        figure.legend(loc="outside lower center", ncols=2, frameon=False)  # below: curves go anywhere
    return figure


def notebook_html(
    title: str,
    facts: Sequence[tuple[str, str]],
    alt: str = "",
    draw: Callable[[], Figure] | None = None,
    weights: Sequence[tuple[str, float]] = (),
) -> str:
    """Tables, and the figure where matplotlib is installed; all on white, as notebooks show figures."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in facts
    )
    top = "".join(
        f'<tr><td style="text-align:left">{escape(name)}</td><td>{weight:+.4g}</td></tr>' for name, weight in weights
    )
    head = '<tr><th style="text-align:left">largest weights</th><th>weight</th></tr>'
    table = f"<table>{head}{top}</table>" if weights else ""
    return f"<div><strong>{escape(title)}</strong><table>{rows}</table>{table}{_image(alt, draw)}</div>"


def _image(alt: str, draw: Callable[[], Figure] | None) -> str:
    if draw is None:
        return ""
    token = _APART.set(True)
    try:
        figure = draw()
    except ImportError:
        return ""
    finally:
        _APART.reset(token)
    data = base64.b64encode(_png(figure)).decode()
    return f'<img alt="{escape(alt)}" style="max-width:100%" src="data:image/png;base64,{data}">'


def _png(figure: Figure) -> bytes:
    raster = io.BytesIO()
    figure.savefig(raster, format="png", dpi=100, facecolor="white")
    return raster.getvalue()


_APART = ContextVar("_APART", default=False)  # figures that are drawn for a table are none of pyplot's


def _figure(height: float) -> Figure:
    look: Any = {"figsize": (1.5 * WIDTH, height), "layout": "constrained"}
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None or _APART.get():
        return cast("Figure", _figure_class()(**look))
    return cast("Figure", pyplot.figure(FigureClass=_figure_class(), **look))


@cache
def _figure_class() -> Any:
    from matplotlib._pylab_helpers import Gcf  # pyplot's figures, without making another one the current
    from matplotlib.figure import Figure

    class NotebookFigure(Figure):
        """Knows how to be the last line of a cell: pyplot may be about to show it too, or not be there at all."""

        def _ipython_display_(self) -> None:
            pyplot: Any = sys.modules.get("matplotlib.pyplot")
            canvas: Any = self.canvas
            managed = pyplot is not None and any(manager.canvas is canvas for manager in Gcf.get_all_fig_managers())
            if managed and (canvas.required_interactive_framework or "ipympl" in pyplot.get_backend()):
                return  # it has a window or a widget
            from IPython.display import Image, display

            display(Image(_png(self)))
            if managed:
                pyplot.close(self)  # or it would be shown again at the end of the cell

    return NotebookFigure


def _two_axes(heights: tuple[float, float]) -> tuple[Axes, Axes]:
    figure = _figure(1.5 * HEIGHT)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=heights)
    return upper, lower


def _figure_of(axes: Axes) -> Figure:
    from matplotlib.figure import Figure

    figure = axes.figure
    assert isinstance(figure, Figure)  # no subfigures here
    return figure
