"""The look of a page: light and dark, on a phone, on a desk and on paper. Drawings use the same colours by name.

The rules are in page.css; the colours are here because drawings need them too.
"""

from importlib.resources import files

LIGHT = {
    "ink": "#1b1f24",
    "soft": "#57606a",
    "grid": "#d3d9df",
    "red": "#cf222e",
    "teal": "#0a7f8f",
    "amber": "#b26a00",
    "violet": "#8250df",
    "blue": "#0969da",
    "green": "#2f8132",
    "paper": "#ffffff",
    "line": "#d0d7de",
    "card": "#f6f8fa",
}
DARK = {
    "ink": "#e6e9ed",
    "soft": "#a3acb6",
    "grid": "#343b43",
    "red": "#ff6b6b",
    "teal": "#3fc6d6",
    "amber": "#ffb648",
    "violet": "#bc8cff",
    "blue": "#58a6ff",
    "green": "#56d364",
    "paper": "#14171b",
    "line": "#3a424b",
    "card": "#1d2126",
}


def _colors(scheme: str, colors: dict[str, str]) -> str:
    return f"color-scheme: {scheme}; " + " ".join(f"--{name}: {color};" for name, color in colors.items())


STYLE = f"""
:root {{ {_colors("light", LIGHT)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_colors("dark", DARK)} }} }}
:root[data-theme=light] {{ {_colors("light", LIGHT)} }}
:root[data-theme=dark] {{ {_colors("dark", DARK)} }}
@media print {{ :root, :root[data-theme] {{ {_colors("light", LIGHT)} }} }}
{files("blockgreedy.reports").joinpath("page.css").read_text(encoding="utf-8")}
""".strip()
