"""Pictures for reports: curves, bars and heat maps, drawn by matplotlib, readable on light and on dark pages.

A picture is drawn once. Its dark form exchanges colours (``DARK``), so both always show the same thing.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blockgreedy.report import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, SOFT, GRID = "#1b1f24", "#57606a", "#d3d9df"
RED, TEAL, AMBER, VIOLET, BLUE, GREEN = "#cf222e", "#0a7f8f", "#b26a00", "#8250df", "#0969da", "#2f8132"
DARK = {
    INK: "#e6e9ed",
    SOFT: "#a3acb6",
    GRID: "#343b43",
    RED: "#ff6b6b",
    TEAL: "#3fc6d6",
    AMBER: "#ffb648",
    VIOLET: "#bc8cff",
    BLUE: "#58a6ff",
    GREEN: "#56d364",
}
# The paper draws randomised features in black and clustered ones in red.
OF_KIND = {"random": INK, "clustered": RED, "balanced": TEAL, "contiguous": AMBER}
SPARE = (VIOLET, BLUE, GREEN, AMBER)
STYLES = ("-", "--", "-.", ":")

_WIDTH, _HEIGHT = 4.4, 3.5  # inches: at 390 px a figure is shown at about nine tenths of its size
_RC = {
    "font.size": 9.5,
    "figure.titlesize": 10.5,
    "axes.labelsize": 9.5,
    "legend.fontsize": 8.5,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": SOFT,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "path",  # the page looks the same whatever fonts the reader has
    "svg.hashsalt": "blockgreedy",
}


def color_of(kind: str) -> str:
    """One colour per kind of partition, everywhere; unknown kinds get one of the spare colours by their name."""
    return OF_KIND.get(kind, SPARE[sum(map(ord, kind)) % len(SPARE)])


@dataclass(frozen=True)
class Line:
    x: ArrayLike
    y: ArrayLike
    color: str = INK
    style: str = "-"
    width: float = 1.6
    label: str = ""


@dataclass(frozen=True)
class Axis:
    label: str
    log: bool = False
    limits: tuple[float | None, float | None] = field(default=(None, None))


def curves(
    name: str,
    lines: Sequence[Line],
    x: Axis,
    y: Axis,
    *,
    alt: str,
    title: str = "",
    caption: str = "",
    legend: Sequence[Line] = (),
) -> Picture:
    """Lines over a common axis. The legend, below the axes, is of ``legend`` or of the lines that have labels."""
    with _style():
        figure, axes = _canvas(title)
        drawn = [(line, *_visible(line, x, y)) for line in lines]
        if not any(len(xs) for _, xs, _ in drawn):  # a logarithmic axis needs a positive number
            x, y = replace(x, log=False), replace(y, log=False)
        for line, xs, ys in drawn:
            axes.plot(xs, ys, color=line.color, linestyle=line.style, linewidth=line.width)
        _set_up(axes, x, y)
        _legend(figure, legend or [line for line in lines if line.label])
        return _picture(name, figure, alt, caption)


def bars(
    name: str,
    groups: Mapping[str, ArrayLike],
    x: Axis,
    y: Axis,
    *,
    alt: str,
    title: str = "",
    caption: str = "",
) -> Picture:
    """A row of bars per group, the groups' bars side by side; group names choose colours as kinds do."""
    with _style():
        figure, axes = _canvas(title)
        for k, (group, heights) in enumerate(groups.items()):
            values = np.asarray(heights, dtype=np.float64)
            width = 0.84 / len(groups)
            places = np.arange(len(values)) + (k - (len(groups) - 1) / 2) * width
            axes.bar(places, values, width=width, color=color_of(group), label=group, linewidth=0)
        _set_up(axes, x, y)
        axes.grid(False, axis="x")
        _legend(figure, [Line([], [], color_of(group), label=group, width=6) for group in groups])
        return _picture(name, figure, alt, caption)


def heat_map(
    name: str,
    values: ArrayLike,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    texts: Sequence[Sequence[str]],
    x: str,
    y: str,
    alt: str,
    title: str = "",
    caption: str = "",
    log: bool = True,
    center: float | None = None,
) -> Picture:
    """A grid of cells with its values written in; nan cells are left blank but for their text.

    With ``center`` the scale has two sides, blue below and red above it; otherwise darker is larger.
    """
    from matplotlib import colormaps
    from matplotlib.colors import LogNorm, Normalize

    grid = np.asarray(values, dtype=np.float64)
    seen = grid[np.isfinite(grid) & ((grid > 0) | (not log))]
    low, high = (float(seen.min()), float(seen.max())) if len(seen) else (1.0, 1.0)
    if center is not None and log:
        reach = max(high / center, center / low, 1.01)
        low, high = center / reach, center * reach
    low, high = (low, high) if low < high else (low * 0.99, high * 1.01 + 1e-300)
    norm: Any = LogNorm(low, high) if log else Normalize(low, high)
    shades = colormaps["RdBu_r" if center is not None else "YlGnBu"]
    with _style():
        figure, axes = _canvas(title, height=max(_HEIGHT, 1.15 + 0.27 * len(rows)))
        axes.grid(False)
        for i in range(len(rows)):
            for j in range(len(columns)):
                known = np.isfinite(grid[i, j]) and (grid[i, j] > 0 or not log)
                shade = shades(norm(grid[i, j])) if known else None
                if shade is not None:
                    axes.fill_between([j - 0.48, j + 0.48], i - 0.47, i + 0.47, color=shade, linewidth=0)
                axes.text(j, i, texts[i][j], ha="center", va="center", fontsize=8, color=_readable(shade))
        axes.set_xticks(range(len(columns)), columns)
        axes.set_yticks(range(len(rows)), rows)
        axes.set(xlabel=x, ylabel=y, xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5))
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        return _picture(name, figure, alt, caption)


def thinned(x: ArrayLike, y: ArrayLike, n: int = 100) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """At most about n points of a curve, evenly spread over the logarithm of their index; the ends are kept."""
    xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(xs) <= n:
        return xs, ys
    chosen = np.unique(np.concatenate([[0], np.geomspace(1, len(xs) - 1, n - 1).round().astype(int)]))
    return xs[chosen], ys[chosen]


def _style() -> Any:
    import matplotlib

    return matplotlib.rc_context(_RC)  # type: ignore[arg-type]


def _canvas(title: str, height: float = _HEIGHT) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height), layout="constrained")  # without pyplot: no global state, no backend
    axes = figure.add_subplot()
    if title:  # over the figure, not the axes: there it has the whole width
        wrapped = "\n".join(part for line in title.split("\n") for part in textwrap.wrap(line, 48))
        figure.suptitle(wrapped, x=0.01, ha="left", fontweight="bold")
    return figure, axes


def _visible(line: Line, x: Axis, y: Axis) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Thinned, and without what a logarithmic axis cannot show."""
    xs, ys = thinned(line.x, line.y)
    keep = np.isfinite(xs) & np.isfinite(ys)
    keep &= (xs > 0) if x.log else True
    keep &= (ys > 0) if y.log else True
    return xs[keep], ys[keep]


def _set_up(axes: Axes, x: Axis, y: Axis) -> None:
    axes.set(xlabel=x.label, ylabel=y.label)
    axes.set(xscale="log" if x.log else "linear", yscale="log" if y.log else "linear")
    if x.limits != (None, None):
        axes.set_xlim(*x.limits)
    if y.limits != (None, None):
        axes.set_ylim(*y.limits)
    if x.log:
        _label_decades(axes.xaxis, *axes.get_xlim())
    if y.log:
        _label_decades(axes.yaxis, *axes.get_ylim())


def _label_decades(axis: Any, low: float, high: float) -> None:
    """Plain numbers at powers of ten; between them too where there are hardly more than two decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    decades = math.log10(high / low) if 0 < low < high else 0.0
    axis.set_major_locator(LogLocator(subs=(1.0,) if decades > 2.2 else (1.0, 2.0, 5.0), numticks=9))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _plain(value)))
    axis.set_minor_locator(NullLocator())  # minor ticks are half of the drawing time


def _plain(value: float) -> str:
    """0.01, 1000 and 1e-5 rather than 1e-05."""
    return re.sub(r"e([-+])0?", lambda sign: "e-" if sign[1] == "-" else "e", f"{value:.6g}")


def _legend(figure: Figure, entries: Sequence[Line]) -> None:
    from matplotlib.lines import Line2D

    merged = {entry.label: entry for entry in entries if entry.label}
    if not merged:
        return
    handles = []
    for entry in merged.values():
        look: Any = {"color": entry.color, "linestyle": entry.style, "linewidth": entry.width}
        handles.append(Line2D([], [], label=entry.label, **look))
    longest = max(map(len, merged))
    columns = max(1, min(len(merged), 4, math.floor(58 / (longest + 7))))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False, handlelength=2.6)


def _readable(shade: Any) -> str:
    """Black or white on a filled cell, the page's ink on an empty one."""
    if shade is None:
        return SOFT
    return "#000000" if 0.299 * shade[0] + 0.587 * shade[1] + 0.114 * shade[2] > 0.55 else "#ffffff"


def _picture(name: str, figure: Figure, alt: str, caption: str) -> Picture:
    vector, raster = io.StringIO(), io.BytesIO()
    figure.savefig(vector, format="svg", transparent=True, metadata={"Date": None})
    figure.set_layout_engine("none")  # keeps the layout, which takes as long as drawing
    figure.savefig(raster, format="png", dpi=130, facecolor="white")
    light = dark = _compact(vector.getvalue())
    for bright, dim in DARK.items():
        dark = dark.replace(bright, dim)
    return Picture(name, light, dark, raster.getvalue(), alt, caption)


def _compact(svg: str) -> str:
    """Without what browsers do not need: header, comments, metadata, and more than tenths of a point in paths."""
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r' d="[^"]*"', lambda path: " " + re.sub(r"(\.\d)\d+", r"\1", " ".join(path[0].split())), svg)
    return re.sub(r"\n\s*", "\n", svg)


def path_figure(
    alphas: NDArray[np.float64], weights: NDArray[np.float64], names: Sequence[str], nonzeros: NDArray[np.int64]
) -> Figure:
    """Weights (a row for each feature shown, those with a name labelled) and nonzeros against alpha, falling."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("a plot needs matplotlib: pip install 'blockgreedy[report]'") from error
    with _style():
        figure = Figure(figsize=(1.5 * _WIDTH, 1.5 * _HEIGHT), layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        colors = (TEAL, RED, AMBER, VIOLET, BLUE, GREEN)
        for k in range(len(weights)):
            named = k < len(names)
            upper.plot(
                alphas,
                weights[k],
                color=colors[k % len(colors)] if named else SOFT,
                linestyle=("-", "--", ":")[k // len(colors) % 3] if named else "-",  # a colour may come again
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
    return figure
