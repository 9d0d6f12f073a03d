"""What drawings are made of: colours, sizes, lines and axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import ArrayLike

from blockgreedy.reports.page_style import LIGHT

INK, SOFT, GRID, RED, TEAL, AMBER, VIOLET, BLUE, GREEN = (
    LIGHT[name] for name in ("ink", "soft", "grid", "red", "teal", "amber", "violet", "blue", "green")
)
NAME_OF = {color: name for name, color in LIGHT.items() if name not in ("paper", "line", "card")}
# The paper draws randomised features in black and clustered ones in red.
OF_KIND = {"random": INK, "clustered": RED, "balanced": TEAL, "contiguous": AMBER, "capped": BLUE}
SPARE = (VIOLET, BLUE, GREEN, AMBER)
STYLES = ("-", "--", "-.", ":")
DOTS = ""  # the style of a line that is points only

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


def style() -> Any:
    try:
        import matplotlib.figure
    except ImportError as error:
        raise ImportError("a plot needs matplotlib: pip install 'blockgreedy[report]'") from error

    return matplotlib.rc_context(_RC)  # type: ignore[arg-type]


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
    quiet: bool = False  # its values are shown only where the pointer is close to it
    whole: bool = False  # never thinned
    notes: Sequence[tuple[str, str]] = ()  # for each point one more value to show beside it: (name, value)


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
    """A value of x that has a name, which stands above it."""

    x: float
    label: str
    color: str = INK
    style: str = "--"
