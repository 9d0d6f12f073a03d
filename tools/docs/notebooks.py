"""Notebooks: examples/notebooks/*.ipynb, which are kept with their outputs, as pages of the site.

    python tools/docs/notebooks.py                 # runs all of them in place: make notebooks
    python tools/docs/notebooks.py --out FOLDER    # leaves them as they are, and writes what comes out to the folder
    python tools/docs/notebooks.py NOTEBOOK …      # only these

The site shows the outputs that are kept; tests run the notebooks and compare.
"""

from __future__ import annotations

import argparse
import base64
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "notebooks"
ORDER = ("paper_in_ten_minutes", "selection_rule")
_DISPLAYED = re.compile(r"^\$\$\s*(.+?)\s*\$\$$", flags=re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"(?<![$`])\$([^$`\n]+)\$(?![$`])")


class Notebook:
    """``# Title`` and a line in italics, which says for whom it is, begin the text, as in vignettes."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.stem
        self.cells: list[Any] = nbformat.read(path, as_version=4).cells
        first = self.cells[0].source
        self.title = first.splitlines()[0].removeprefix("# ")
        found = re.search(r"^\*(.+?)\*$", first, flags=re.DOTALL | re.MULTILINE)
        if found is None:
            raise ValueError(f"{path.name}: the text must begin with '# Title' and '*For whom it is.*'")
        self.audience = " ".join(found[1].split())

    @property
    def pictures(self) -> dict[str, bytes]:
        """What its cells drew, by the names that the page knows."""
        return {
            self._picture(number, place): base64.b64decode(output.data["image/png"])
            for number, cell in enumerate(self.cells)
            for place, output in enumerate(cell.get("outputs", ()))
            if "image/png" in output.get("data", {})
        }

    @property
    def thumbnail(self) -> str:
        """The second picture: the first one shows the data."""
        return list(self.pictures)[1]

    def _picture(self, number: int, place: int) -> str:
        return f"{self.name}-{number}-{place}.png"

    def page(self, moved: Callable[[str], str] = str) -> str:
        """``moved``: takes links that start from the notebook to where they lead on the site."""
        parts = []
        for number, cell in enumerate(self.cells):
            if cell.cell_type == "markdown":
                parts.append(moved(with_fenced_formulae(cell.source)))
                continue
            parts.append(f"```python\n{cell.source}\n```")
            for place, output in enumerate(cell.outputs):
                if "image/png" in output.get("data", {}):
                    parts.append(f"![Drawn by the lines above]({self._picture(number, place)})")
                else:
                    parts.append(_shown(output))
        where = f'The notebook: <a href="{self.path.name}" download>{self.path.name}</a> (examples/notebooks/). '
        where += "The outputs are those of its last run (make notebooks)."
        return "\n\n".join([*parts, f"<small>{where}</small>"]) + "\n"


def _shown(output: Any) -> str:
    """An output that is no picture."""
    data = output.get("data", {})
    if "text/html" in data:
        html = re.sub(r"<style.*?</style>", "", data["text/html"], flags=re.DOTALL)
        html = re.sub(r"<(table|tr) [^>]*>", r"<\1>", html)  # the site's own style is for tables without a class
        return re.sub(r"\n\s*", "\n", html).strip()  # indented lines would be code
    text = output.text if output.output_type == "stream" else data["text/plain"]
    return f'```text title="output"\n{text.rstrip()}\n```'


def with_fenced_formulae(text: str) -> str:
    """Formulae as notebooks write them ($x$), in the form that the pages of docs/ have them in ($`x`$)."""
    return _INLINE.sub(r"$`\1`$", _DISPLAYED.sub(r"```math\n\1\n```", text))


def run(path: Path, out: Path) -> float:
    """Runs a notebook from top to bottom in a fresh process and an empty folder; seconds that it took."""
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=600,
            startup_timeout=300,  # of the kernel, on a busy machine
            kernel_name="python3",
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": folder}},
        )
        client.execute()
    seconds = time.perf_counter() - began
    # Nothing that differs from one machine to the next, so that changes of the file are changes of what it shows.
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.pop("id", None)
        cell.metadata = {}
    notebook.nbformat, notebook.nbformat_minor = 4, 4  # the last without random ids of cells
    out.write_text(nbformat.writes(notebook, version=4) + "\n", encoding="utf-8")
    return seconds


def all_notebooks() -> list[Notebook]:
    found = {path.stem: Notebook(path) for path in sorted(FOLDER.glob("*.ipynb"))}
    return sorted(found.values(), key=lambda notebook: ORDER.index(notebook.name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebooks", nargs="*", type=Path)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    for path in asked.notebooks or sorted(FOLDER.glob("*.ipynb")):
        out = path if asked.out is None else asked.out / path.name
        seconds = run(path, out)
        print(f"{path.name}: {seconds:.0f} s, {out.stat().st_size / 1024:.0f} kB")


if __name__ == "__main__":
    main()
