"""One drawing, two pictures: black on transparent for a light page, light grey for a dark one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

INK = {"light": "#1f2328", "dark": "#d6d9de"}


def save_both(figure: Any, place: Path, dpi: int = 110) -> list[Path]:
    """Writes NAME-light and NAME-dark beside each other; what is black in the figure takes the ink of each."""
    from matplotlib.artist import Artist
    from matplotlib.colors import to_rgba
    from matplotlib.legend import Legend

    black: list[tuple[Artist, str]] = []
    for artist in figure.findobj():
        if isinstance(artist, Legend):
            artist.get_frame().set_facecolor("none")
        for name in ("color", "edgecolor"):
            value = getattr(artist, f"get_{name}", lambda: None)()
            if isinstance(value, str | tuple) and to_rgba(value) == (0.0, 0.0, 0.0, 1.0):
                black.append((artist, f"set_{name}"))
    for axis in figure.axes:  # ticks that are drawn later take their colour from here
        black += [(_Ticks(axis), "set_color")]
    written = []
    for shade, ink in INK.items():
        for artist, setter in black:
            getattr(artist, setter)(ink)
        written.append(place.with_name(f"{place.stem}-{shade}{place.suffix}"))
        figure.savefig(written[-1], dpi=dpi, transparent=True)
    return written


class _Ticks:
    def __init__(self, axis: Any) -> None:
        self.axis = axis

    def set_color(self, ink: str) -> None:
        self.axis.tick_params(colors=ink, which="both")
