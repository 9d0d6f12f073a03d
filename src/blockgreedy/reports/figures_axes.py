"""The canvas of a drawing: title, axes, labels and legends."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from blockgreedy.reports.figures_style import HEIGHT, WIDTH, Axis, Line, Mark

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LABEL = 8.0  # points: letters of labels beside lines and above marks
_LONGEST = 16  # letters of such a label; the page shows the whole name with its values


def canvas(title: str, height: float = HEIGHT) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")  # without pyplot: no global state, no backend
    axes = figure.add_subplot()
    if title:  # over the figure, not the axes: there it has the whole width
        wrapped = "\n".join(part for line in title.split("\n") for part in textwrap.wrap(line, 48))
        figure.suptitle(wrapped, x=0.01, ha="left", fontweight="bold")
    return figure, axes


def set_up(axes: Axes, x: Axis, y: Axis) -> None:
    axes.set(xlabel=x.label, ylabel=y.label)
    axes.set(xscale="log" if x.log else "linear", yscale="log" if y.log else "linear")
    if x.limits != (None, None):
        axes.set_xlim(*x.limits)
    if x.falling:
        axes.invert_xaxis()
    if y.limits != (None, None):
        axes.set_ylim(*y.limits)
    if x.log:
        _label_decades(axes.xaxis, sorted(axes.get_xlim()), most=5)  # side by side they need more room
    else:
        axes.locator_params(axis="x", nbins=6)  # beyond that labels such as 0.0025 touch
    if y.log:
        _label_decades(axes.yaxis, sorted(axes.get_ylim()), most=8)


def _label_decades(axis: Any, limits: Sequence[float], most: int) -> None:
    """Plain numbers at powers of ten; between them too where there is room."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = limits
    decades = math.log10(high / low) if 0 < low < high else 0.0
    choices = [subs for subs in ((1.0, 2.0, 5.0), (1.0, 3.0)) if decades * len(subs) <= most]
    axis.set_major_locator(LogLocator(subs=choices[0] if choices else (1.0,), numticks=most + 1))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    axis.set_minor_locator(NullLocator())  # minor ticks are half of the drawing time


def _tick(value: float) -> str:
    """5e-4 rather than 0.0005, which would touch its neighbours."""
    return plain_number(value) if abs(value) >= 9e-4 else re.sub("e-0", "e-", f"{value:.0e}")


def plain_number(value: float, digits: int = 6) -> str:
    """0.01, 1000 and 1e-5 rather than 1e-05."""
    return re.sub(r"e([-+])0?", lambda sign: "e-" if sign[1] == "-" else "e", f"{value:.{digits}g}")


def label_ends(axes: Axes, lines: Sequence[Line], height: float = HEIGHT) -> None:
    """Names to the right of where lines end, moved apart where they would overlap. After the axes are set up."""
    ends = [(line, *(np.asarray(part, dtype=np.float64)[-1] for part in (line.x, line.y))) for line in lines]
    heights = [_share(axes, x, y)[1] for _, x, y in ends]
    apart = 1.2 * _LABEL / (72 * 0.72 * height)  # axes take about 0.72 of a drawing's height
    for (line, _, _), place in zip(ends, spread(heights, apart), strict=True):
        axes.text(
            1.02,
            place,
            shortened(line.label),
            transform=axes.transAxes,
            color=line.color,
            fontsize=_LABEL,
            va="center",
        )


def _share(axes: Axes, x: float, y: float) -> tuple[float, float]:
    """A point in parts of the axes."""
    axes.get_xlim()  # the limits follow the data only when they are asked for
    across, up = (axes.transData + axes.transAxes.inverted()).transform((x, y))
    return float(across), float(up)


def spread(places: Sequence[float], apart: float) -> list[float]:
    """The nearest places in the same order that are at least so far apart."""
    order = np.argsort(places, kind="stable")
    steps = np.arange(len(order)) * apart
    wanted = np.asarray(places, dtype=np.float64)[order] - steps  # now they only have to ascend
    groups: list[list[float]] = []  # pool adjacent violators: (mean, how many)
    for place in wanted:
        groups.append([float(place), 1])
        while len(groups) > 1 and groups[-2][0] > groups[-1][0]:
            (one, n), (other, m) = groups[-2:]
            groups[-2:] = [[(n * one + m * other) / (n + m), n + m]]
    found = np.empty(len(order))
    found[order] = np.repeat([g[0] for g in groups], [int(g[1]) for g in groups]) + steps
    return found.tolist()


def label_marks(axes: Axes, marks: Sequence[Mark]) -> None:
    """Names above marks; of two marks each to its own side."""
    at = [_share(axes, mark.x, axes.get_ylim()[1])[0] for mark in marks]
    for mark, place in zip(marks, at, strict=True):
        side = sum(place < other for other in at) - sum(place > other for other in at)
        axes.text(
            min(max(place, 0.0), 1.0),
            1.015,
            mark.label,
            transform=axes.transAxes,
            color=mark.color,
            fontsize=_LABEL,
            va="bottom",
            ha="right" if side > 0 else "left" if side < 0 else "center",
        )


def shortened(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def legend(figure: Figure, entries: Sequence[Line]) -> None:
    """Below the axes."""
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
