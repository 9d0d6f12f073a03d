"""Pictures for reports: curves, bars and heat maps, drawn by matplotlib in the colours of the page.

A picture is drawn once. Its colours become the page's CSS variables, so light and dark show the same thing.
"""

from __future__ import annotations

import hashlib
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
from blockgreedy.report_style import LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, SOFT, GRID, RED, TEAL, AMBER, VIOLET, BLUE, GREEN = (
    LIGHT[name] for name in ("ink", "soft", "grid", "red", "teal", "amber", "violet", "blue", "green")
)
NAME_OF = {color: name for name, color in LIGHT.items() if name not in ("paper", "line", "card")}
# The paper draws randomised features in black and clustered ones in red.
OF_KIND = {"random": INK, "clustered": RED, "balanced": TEAL, "contiguous": AMBER}
SPARE = (VIOLET, BLUE, GREEN, AMBER)
STYLES = ("-", "--", "-.", ":")
_FEW = 40  # points of a line that is alone: each is drawn

WIDTH, HEIGHT = 4.4, 3.5  # inches: at 390 px a figure is shown at about nine tenths of its size
_RC = {
    "text.parse_math": False,  # a feature may be called $20_$30
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
    falling: bool = False  # the largest value first


@dataclass(frozen=True)
class Band:
    """What lies between two curves, shaded."""

    x: ArrayLike
    low: ArrayLike
    high: ArrayLike
    color: str = INK


@dataclass(frozen=True)
class Mark:
    """A value of x that has a name."""

    x: float
    label: str
    color: str = INK
    style: str = "--"


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
    bands: Sequence[Band] = (),
    marks: Sequence[Mark] = (),
    picks: Mapping[str, str] | None = None,
) -> Picture:
    """Lines over a common axis. The legend, below the axes, is of ``legend`` or of the lines that have labels.

    The page shows the values of lines that have labels, and of a line that is alone.
    """
    with style():
        figure, axes = _canvas(title)
        drawn = [(line, *_visible(line, x, y)) for line in lines]
        if not any(len(xs) for _, xs, _ in drawn):  # a logarithmic axis needs a positive number
            x, y = replace(x, log=False), replace(y, log=False)
        for band in bands:
            axes.fill_between(band.x, band.low, band.high, color=band.color, alpha=0.18, linewidth=0)
        for mark in marks:
            axes.axvline(mark.x, color=mark.color, linestyle=mark.style, linewidth=1.2)
        for line, xs, ys in drawn:
            few = {"marker": "o", "markersize": 2.8} if len(lines) == 1 and len(xs) <= _FEW else {}
            axes.plot(xs, ys, color=line.color, linestyle=line.style, linewidth=line.width, **few)  # type: ignore[arg-type]
        _set_up(axes, x, y)
        named = [Line([], [], mark.color, mark.style, 1.2, mark.label) for mark in marks]
        _legend(figure, [*(legend or [line for line in lines if line.label]), *named])
        shown = [
            (line.label or y.label, line.color, xs, ys) for line, xs, ys in drawn if line.label or len(lines) == 1
        ]
        return _picture(name, figure, alt, caption, axes, x.label, shown, picks)


def bars(
    name: str,
    groups: Mapping[str, ArrayLike],
    x: Axis,
    y: Axis,
    *,
    alt: str,
    title: str = "",
    caption: str = "",
    places: tuple[str, Sequence[str]] | None = None,
) -> Picture:
    """A row of bars per group, the groups' bars side by side; group names choose colours as kinds do.

    ``places``: what the page calls a place on the axis when it shows values, ("block", ["7", "3", …]).
    """
    with style():
        figure, axes = _canvas(title)
        for k, (group, heights) in enumerate(groups.items()):
            values = np.asarray(heights, dtype=np.float64)
            width = 0.84 / len(groups)
            centers = np.arange(len(values)) + (k - (len(groups) - 1) / 2) * width
            axes.bar(centers, values, width=width, color=color_of(group), label=group, linewidth=0)
        _set_up(axes, x, y)
        axes.grid(False, axis="x")
        if len(groups) > 1 or places is None:
            _legend(figure, [Line([], [], color_of(group), label=group, width=6) for group in groups])
        # without the shift of side-by-side bars: one place on the axis shows all groups
        tops = {group: np.asarray(heights, dtype=np.float64) for group, heights in groups.items()}
        shown = [(group, color_of(group), np.arange(len(values)), values) for group, values in tops.items()]
        what, names = places or (x.label, None)
        return _picture(name, figure, alt, caption, axes, what, shown, names=names)


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
    with style():
        figure, axes = _canvas(title, height=max(HEIGHT, 1.15 + 0.27 * len(rows)))
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


def style() -> Any:
    try:
        import matplotlib.figure
    except ImportError as error:
        raise ImportError("a plot needs matplotlib: pip install 'blockgreedy[report]'") from error

    return matplotlib.rc_context(_RC)  # type: ignore[arg-type]


def _canvas(title: str, height: float = HEIGHT) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")  # without pyplot: no global state, no backend
    axes = figure.add_subplot()
    if title:  # over the figure, not the axes: there it has the whole width
        wrapped = "\n".join(part for line in title.split("\n") for part in textwrap.wrap(line, 48))
        figure.suptitle(wrapped, x=0.01, ha="left", fontweight="bold")
    return figure, axes


def _visible(line: Line, x: Axis, y: Axis) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Without what is unknown or a logarithmic axis cannot show, and thinned."""
    xs, ys = np.asarray(line.x, dtype=np.float64), np.asarray(line.y, dtype=np.float64)
    keep = np.isfinite(xs) & np.isfinite(ys)
    keep &= (xs > 0) if x.log else True
    keep &= (ys > 0) if y.log else True
    return thinned(xs[keep], ys[keep])


def _set_up(axes: Axes, x: Axis, y: Axis) -> None:
    axes.set(xlabel=x.label, ylabel=y.label)
    axes.set(xscale="log" if x.log else "linear", yscale="log" if y.log else "linear")
    if x.limits != (None, None):
        axes.set_xlim(*x.limits)
    if x.falling:
        axes.invert_xaxis()
    if y.limits != (None, None):
        axes.set_ylim(*y.limits)
    if x.log:
        _label_decades(axes.xaxis, *sorted(axes.get_xlim()))
    else:
        axes.locator_params(axis="x", nbins=6)  # beyond that labels such as 0.0025 touch
    if y.log:
        _label_decades(axes.yaxis, *sorted(axes.get_ylim()))


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


def _picture(
    name: str,
    figure: Figure,
    alt: str,
    caption: str,
    axes: Axes | None = None,
    x: str = "",
    lines: Sequence[tuple[str, str, NDArray[Any], NDArray[Any]]] = (),
    picks: Mapping[str, str] | None = None,
    names: Sequence[str] | None = None,
) -> Picture:
    """``lines``: those whose values the page shows, as (label, colour, x, y)."""
    vector = io.StringIO()
    figure.savefig(vector, format="svg", transparent=True, metadata={"Date": None})
    figure.set_layout_engine("none")  # keeps the layout, which takes as long as drawing

    def render() -> bytes:
        raster = io.BytesIO()
        with style():
            figure.savefig(raster, format="png", dpi=130, facecolor="white")
        return raster.getvalue()

    curves = {} if axes is None else _curve_values(figure, axes, x, lines, names)
    return Picture(name, _compact(vector.getvalue(), name), alt, caption, curves, dict(picks or {}), render)


def _curve_values(
    figure: Figure,
    axes: Axes,
    x: str,
    lines: Sequence[tuple[str, str, NDArray[Any], NDArray[Any]]],
    names: Sequence[str] | None,
) -> dict[str, Any]:
    """What ``Picture.curves`` holds, in the units of the drawing: points, from its upper left corner."""
    width, height = (72 * inches for inches in figure.get_size_inches())

    def places(xs: Any, ys: Any, transform: Any) -> NDArray[np.float64]:
        corners = figure.transFigure.inverted().transform(transform.transform(np.column_stack([xs, ys])))
        return np.asarray(np.round(corners * [width, -height] + [0, height], 2))

    found = []
    for label, color, xs, ys in lines:
        with np.errstate(divide="ignore", invalid="ignore"):
            on_paper = places(xs, ys, axes.transData)
        words = names or [_number_text(u) for u in xs]
        points = [
            [*at.tolist(), word, _number_text(v)]
            for at, word, v in zip(on_paper, words, ys, strict=True)
            if np.all(np.isfinite(at))  # and what is unknown has no place
        ]
        if points:
            found.append({"label": label, "color": NAME_OF.get(color, "ink"), "points": points})
    if not found:
        return {}
    bottom, top = places([0, 0], [0, 1], axes.transAxes)[:, 1].tolist()
    return {"x": x, "box": [top, bottom], "lines": found}


def _number_text(value: float) -> str:
    """Six digits; whole numbers in full, with commas."""
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e15 else _plain(value)


def _compact(svg: str, name: str) -> str:
    """For a page: colours by name, without header, comments and more than tenths of a point in paths, ids its own."""
    svg = re.sub(
        r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", "", svg[svg.index("<svg") :], flags=re.DOTALL
    )
    svg = re.sub(r' d="[^"]*"', lambda path: " " + re.sub(r"(\.\d)\d+", r"\1", " ".join(path[0].split())), svg)
    svg = re.sub(r"\n\s*", "\n", svg).replace("<defs>\n</defs>\n", "").replace("xlink:href", "href")
    # the page decides on the size; joins and ends, as in the style sheet that went, are inherited
    svg = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', _ROOT, svg, count=1)
    for color, of_page in NAME_OF.items():
        svg = svg.replace(color, f"var(--{of_page}, {color})")
    used = dict.fromkeys(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', svg))
    short = hashlib.sha256((name + svg).encode()).hexdigest()[:6]
    ids = {a or b: f"i{short}{k}" for k, (a, b) in enumerate(used)}
    svg = re.sub(r' id="([^"]+)"', lambda m: f' id="{ids[m[1]]}"' if m[1] in ids else "", svg)
    return re.sub(r'(href="#|url\(#)([^")]+)', lambda m: m[1] + ids[m[2]], svg)


_ROOT = r'<svg xmlns="http://www.w3.org/2000/svg" viewBox="\1" style="stroke-linejoin:round;stroke-linecap:butt">'
