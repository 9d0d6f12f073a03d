"""A matplotlib figure as a Picture: SVG in the page's colours, and the values that the page shows under a pointer."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.reports.figures_axes import plain_number
from blockgreedy.reports.figures_style import NAME_OF, style
from blockgreedy.reports.page import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Readings:
    """Points whose values the page shows, and how they are found.

    ``by_point``: the one point nearest to the pointer; otherwise all those above and below it.
    """

    x: str
    y: str
    lines: Sequence[Reading]
    by_point: bool = False


@dataclass(frozen=True)
class Reading:
    label: str
    color: str
    x: NDArray[Any]
    y: NDArray[Any]
    x_words: Sequence[str] | None = None  # instead of the numbers
    y_words: Sequence[str] | None = None
    notes: Sequence[tuple[str, str]] = ()
    quiet: bool = False


def picture(
    name: str,
    figure: Figure,
    axes: Axes,
    alt: str,
    caption: str = "",
    readings: Readings | None = None,
    picks: Mapping[str, str] | None = None,
) -> Picture:
    vector = io.StringIO()
    figure.savefig(vector, format="svg", transparent=True, metadata={"Date": None})
    figure.set_layout_engine("none")  # keeps the layout, which takes as long as drawing

    def render(file: Any, form: str) -> None:
        with style():
            figure.savefig(file, format=form, dpi=130, facecolor="white")

    curves = {} if readings is None else _curve_values(figure, axes, readings)
    return Picture(name, _compact(vector.getvalue(), name), alt, caption, curves, dict(picks or {}), render)


def write_pdf(pictures: Iterable[Picture], file: Any) -> None:
    """A page for each picture, as vectors."""
    from matplotlib.backends.backend_pdf import PdfPages

    with PdfPages(file, metadata={"CreationDate": None}) as pages:
        for drawn in pictures:
            drawn.render(pages, "pdf")


def _curve_values(figure: Figure, axes: Axes, readings: Readings) -> dict[str, Any]:
    """What ``Picture.curves`` holds, in the units of the drawing: points, from its upper left corner."""
    width, height = (72 * inches for inches in figure.get_size_inches())

    def places(xs: Any, ys: Any, transform: Any) -> NDArray[np.float64]:
        corners = figure.transFigure.inverted().transform(transform.transform(np.column_stack([xs, ys])))
        return np.asarray(np.round(corners * [width, -height] + [0, height], 2))

    found: list[dict[str, Any]] = []
    for line in readings.lines:
        with np.errstate(divide="ignore", invalid="ignore"):
            on_paper = places(line.x, line.y, axes.transData)
        points = [
            [
                *on_paper[k].tolist(),
                line.x_words[k] if line.x_words else number_text(line.x[k]),
                line.y_words[k] if line.y_words else number_text(line.y[k]),
                *(line.notes[k] if line.notes else ()),
            ]
            for k in np.flatnonzero(np.all(np.isfinite(on_paper), axis=1)).tolist()  # what is unknown has no place
        ]
        if points:
            quiet = {"quiet": True} if line.quiet else {}
            found.append({"label": line.label, "color": NAME_OF.get(line.color, "ink"), "points": points} | quiet)
    if not found:
        return {}
    bottom, top = places([0, 0], [0, 1], axes.transAxes)[:, 1].tolist()
    values: dict[str, Any] = {"x": readings.x, "y": readings.y, "box": [top, bottom], "lines": found}
    if readings.by_point:
        values["nearest"] = True
    if axes.get_xscale() == "log":  # where any x lies: the first number plus the second times log10(x)
        ends = np.log10(axes.get_xlim())
        left, right = places([0, 1], [0, 0], axes.transAxes)[:, 0]
        slope = (right - left) / (ends[1] - ends[0])
        values["log"] = [round(float(left - slope * ends[0]), 3), round(float(slope), 4)]
    return values


def number_text(value: float) -> str:
    """Six digits; whole numbers in full, with commas."""
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e15 else plain_number(value)


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
