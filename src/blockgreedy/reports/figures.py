"""Pictures for reports: curves, points, bars and heat maps, drawn by matplotlib in the colours of the page.

A picture is drawn once. Its colours become the page's CSS variables, so light and dark show the same thing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blockgreedy.reports.figures_axes import canvas, label_ends, label_marks, legend, set_up
from blockgreedy.reports.figures_style import (
    AMBER,
    BLUE,
    DOTS,
    GREEN,
    HEIGHT,
    INK,
    NAME_OF,
    OF_KIND,
    RED,
    SOFT,
    STYLES,
    TEAL,
    VIOLET,
    WIDTH,
    Axis,
    Band,
    Line,
    Mark,
    color_of,
    style,
)
from blockgreedy.reports.figures_svg import Reading, Readings, picture
from blockgreedy.reports.page import Picture

__all__ = [
    "AMBER", "BLUE", "DOTS", "GREEN", "HEIGHT", "INK", "NAME_OF", "OF_KIND", "RED", "SOFT", "STYLES", "TEAL",
    "VIOLET", "WIDTH", "Axis", "Band", "Line", "Mark", "bars", "color_of", "curves", "heat_map", "style", "thinned",
]  # fmt: skip

_FEW = 40  # points of a line that is alone: each is drawn


def curves(
    name: str,
    lines: Sequence[Line],
    x: Axis,
    y: Axis,
    *,
    alt: str,
    title: str = "",
    caption: str = "",
    entries: Sequence[Line] | None = None,
    at_ends: bool = False,
    by_point: bool = False,
    bands: Sequence[Band] = (),
    marks: Sequence[Mark] = (),
    picks: Mapping[str, str] | None = None,
    height: float = HEIGHT,
) -> Picture:
    """Lines over a common axis.

    Names of lines stand in a legend below the axes (of ``entries``, or of the lines that have labels and are not
    quiet), or with ``at_ends`` beside the ends of the lines. The page shows the values of lines that have labels, and
    of a line that is alone: of all lines at the pointer's x, or with ``by_point`` of the nearest point.
    """
    with style():
        figure, axes = canvas(title, height)
        drawn = [(line, *_visible(line, x, y)) for line in lines]
        if not any(len(xs) for _, xs, _ in drawn):  # a logarithmic axis needs a positive number
            x, y = replace(x, log=False), replace(y, log=False)
        for band in bands:
            axes.fill_between(band.x, band.low, band.high, color=band.color, alpha=0.18, linewidth=0)
        for mark in marks:
            axes.axvline(mark.x, color=mark.color, linestyle=mark.style, linewidth=1.2)
        for line, xs, ys in drawn:
            look: dict[str, Any] = {"linestyle": line.style, "linewidth": line.width}
            if line.style == DOTS:
                look = {"linestyle": "none", "marker": "o", "markersize": 3.2, "markeredgewidth": 0, "alpha": 0.55}
            elif len(lines) == 1 and len(xs) <= _FEW:
                look |= {"marker": "o", "markersize": 2.8}
            axes.plot(xs, ys, color=line.color, **look)
        set_up(axes, x, y)
        label_marks(axes, marks)
        named = [replace(line, x=xs, y=ys) for line, xs, ys in drawn if line.label and not line.quiet]
        if at_ends:
            label_ends(axes, [line for line in named if len(np.asarray(line.x))], height)
        else:
            legend(figure, named if entries is None else entries)
        read = [
            Reading(line.label or y.label, line.color, xs, ys, notes=line.notes, quiet=line.quiet)
            for line, xs, ys in drawn
            if line.label or len(lines) == 1
        ]
        return picture(name, figure, axes, alt, caption, Readings(x.label, y.label, read, by_point), picks)


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
    edges: ArrayLike | None = None,
    colors: Mapping[str, str] | None = None,
) -> Picture:
    """A row of bars per group, the groups' bars side by side; group names choose colours as kinds do.

    ``places``: what the page calls a place on the axis when it shows values, ("block", ["7", "3", …]). With ``edges``
    it is a histogram: bars between edges, those of several groups in front of each other, see-through.
    """
    with style():
        figure, axes = canvas(title)
        color = {group: (colors or {}).get(group) or color_of(group) for group in groups}
        counts = {group: np.asarray(heights, dtype=np.float64) for group, heights in groups.items()}
        at = np.arange(len(next(iter(counts.values()))), dtype=np.float64)
        if edges is not None:
            borders = np.asarray(edges, dtype=np.float64)
            at = (borders[1:] + borders[:-1]) / 2
            for group, values in counts.items():
                axes.stairs(values, borders, fill=True, alpha=0.45, color=color[group], linewidth=0)
                axes.stairs(values, borders, color=color[group], linewidth=1.2)
        else:
            width = 0.84 / len(groups)
            for k, (group, values) in enumerate(counts.items()):
                centers = at + (k - (len(groups) - 1) / 2) * width
                axes.bar(centers, values, width=width, color=color[group], label=group, linewidth=0)
        set_up(axes, x, y)
        axes.grid(False, axis="x")
        if len(groups) > 1 or places is None:
            legend(figure, [Line([], [], color[group], label=group, width=6) for group in groups])
        # without the shift of side-by-side bars: one place on the axis shows all groups
        what, names = places or (x.label, None)
        read = [Reading(group, color[group], at, values, names) for group, values in counts.items()]
        return picture(name, figure, axes, alt, caption, Readings(what, y.label, read))


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
        figure, axes = canvas(title, height=max(HEIGHT, 1.15 + 0.27 * len(rows)))
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
        cells = [(i, j) for i in range(len(rows)) for j in range(len(columns)) if texts[i][j]]
        where = [", ".join(" ".join(names[k].split()) for names, k in ((rows, i), (columns, j))) for i, j in cells]
        said = [" ".join(texts[i][j].split()) for i, j in cells]
        across, down = np.array([j for _, j in cells]), np.array([i for i, _ in cells])
        read = [Reading(title.split("\n")[0], INK, across, down, where, said)]
        words = ", ".join(part for part in (y, x) if part) or "cell"
        return picture(name, figure, axes, alt, caption, Readings(words, "value", read, by_point=True))


def thinned(x: ArrayLike, y: ArrayLike, n: int = 100) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """At most about n points of a curve, evenly spread over the logarithm of their index; the ends are kept."""
    xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(xs) <= n:
        return xs, ys
    chosen = np.unique(np.concatenate([[0], np.geomspace(1, len(xs) - 1, n - 1).round().astype(int)]))
    return xs[chosen], ys[chosen]


def _visible(line: Line, x: Axis, y: Axis) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Without what is unknown or a logarithmic axis cannot show, and thinned."""
    xs, ys = np.asarray(line.x, dtype=np.float64), np.asarray(line.y, dtype=np.float64)
    keep = np.isfinite(xs) & np.isfinite(ys)
    keep &= (xs > 0) if x.log else True
    keep &= (ys > 0) if y.log else True
    return (xs[keep], ys[keep]) if line.whole else thinned(xs[keep], ys[keep])


def _readable(shade: Any) -> str:
    """Black or white on a filled cell, the page's ink on an empty one."""
    if shade is None:
        return SOFT
    return "#000000" if 0.299 * shade[0] + 0.587 * shade[1] + 0.114 * shade[2] > 0.55 else "#ffffff"
