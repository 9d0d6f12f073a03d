"""Vignettes: examples/vignettes/*.py as pages, cell by cell with what each printed and drew.

A vignette is a script in the percent format, which notebooks open: ``# %% [markdown]`` begins text, ``# %%`` code.

    python tools/docs/vignettes.py VIGNETTE FOLDER     # runs it in the folder; leaves cells.json and pictures there
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
ORDER = ("text", "clicks", "genomics", "statistics")
_CELL = re.compile(r"^# %%(.*)\n", flags=re.MULTILINE)


class Vignette:
    """``# # Title`` and a line in italics, which says for whom it is, begin the text."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.stem
        _, *parts = _CELL.split(path.read_text(encoding="utf-8"))
        self.cells = [
            (kind.strip() == "[markdown]", text.strip("\n"))
            for kind, text in zip(parts[::2], parts[1::2], strict=True)
        ]
        first = self.text(self.cells[0][1])
        self.title = first.splitlines()[0].removeprefix("# ")
        found = re.search(r"^\*(.+?)\*$", first, flags=re.DOTALL | re.MULTILINE)
        if found is None:
            raise ValueError(f"{path.name}: the text must begin with '# # Title' and '# *For whom it is.*'")
        self.audience = " ".join(found[1].split())
        self.results: list[dict[str, Any]] = []
        self.folder = Path()

    @staticmethod
    def text(cell: str) -> str:
        return "\n".join(line.removeprefix("#").removeprefix(" ") for line in cell.splitlines())

    def run(self, folder: Path) -> None:
        """Runs it in a process of its own, unless neither it nor the package has changed since."""
        made_of = hashlib.sha256(Path(__file__).read_bytes())
        for path in (self.path, *sorted((ROOT / "src").rglob("*.py"))):
            made_of.update(path.read_bytes())
        self.folder = folder / self.name
        self.folder.mkdir(parents=True, exist_ok=True)
        kept, sign = self.folder / "cells.json", made_of.hexdigest()
        if not kept.is_file() or json.loads(kept.read_text(encoding="utf-8"))["made_of"] != sign:
            environment = os.environ | {"MPLBACKEND": "agg", "NO_COLOR": "1", "COLUMNS": "100"}
            command = [sys.executable, str(Path(__file__).resolve()), str(self.path.resolve()), "."]
            done = subprocess.run(
                command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise RuntimeError(f"{self.path.name} failed ({done.returncode}):\n{done.stderr[-3000:]}")
            made = json.loads(kept.read_text(encoding="utf-8"))
            kept.write_text(json.dumps(made | {"made_of": sign}), encoding="utf-8")
        self.results = json.loads(kept.read_text(encoding="utf-8"))["cells"]

    @property
    def pictures(self) -> list[Path]:
        return [self.folder / name for result in self.results for names in result["pictures"] for name in names]

    @property
    def thumbnail(self) -> list[str]:
        """The light and the dark variant of the first picture."""
        found: list[str] = next(result["pictures"][0] for result in self.results if result["pictures"])
        return found

    def page(self) -> str:
        parts = []
        results = iter(self.results)
        for is_text, cell in self.cells:
            if is_text:
                parts.append(self.text(cell))
                continue
            result = next(results)
            parts.append(f"```python\n{cell}\n```")
            if result["output"].strip():
                parts.append(f'```text title="output"\n{result["output"].rstrip()}\n```')
            parts += [both(*names, alt=f"Drawn by the lines above: {self.name}") for names in result["pictures"]]
        where = f"The whole file: `examples/vignettes/{self.path.name}`. "
        where += "Run it with Python, or open it as a notebook (Jupytext, VS Code)."
        return "\n\n".join([*parts, f"<small>{where}</small>"]) + "\n"


def both(light: str, dark: str, alt: str) -> str:
    """Markdown of a picture in the variant of the reader's colours."""
    return f"![{alt}]({light}#only-light)\n![{alt}]({dark}#only-dark)"


def all_vignettes() -> list[Vignette]:
    found = {path.stem: Vignette(path) for path in sorted((ROOT / "examples" / "vignettes").glob("*.py"))}
    return sorted(found.values(), key=lambda vignette: ORDER.index(vignette.name))


def _execute(path: Path, folder: Path) -> None:
    """In the process that was started for it: every cell, what it wrote to stdout, and the figures left open."""
    sys.path.insert(0, str(ROOT))
    from benchmarks.shades import save_both
    from matplotlib import pyplot

    names: dict[str, Any] = {"__name__": "__main__"}
    cells = []
    terminal = os.dup(1)
    for number, (is_text, cell) in enumerate(Vignette(path).cells):
        if is_text:
            continue
        captured = folder / "output.txt"
        with captured.open("wb") as file:
            os.dup2(file.fileno(), 1)  # commands that a cell starts write there too
            try:
                exec(compile(cell, f"{path.name}, cell {number}", "exec"), names)
            finally:
                sys.stdout.flush()
                os.dup2(terminal, 1)
        pictures = []
        for figure in map(pyplot.figure, pyplot.get_fignums()):
            place = folder / f"{path.stem}-{number}-{figure.number}.png"
            pictures.append([written.name for written in save_both(figure, place)])
        pyplot.close("all")
        cells.append({"output": captured.read_text(encoding="utf-8"), "pictures": pictures})
    (folder / "cells.json").write_text(json.dumps({"made_of": "", "cells": cells}), encoding="utf-8")


if __name__ == "__main__":
    _execute(Path(sys.argv[1]), Path(sys.argv[2]))
