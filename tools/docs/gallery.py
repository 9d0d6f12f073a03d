"""The gallery: a first page with pictures of the vignettes and notebooks, and examples/*.py as pages.

Title and text of an example are its docstring; its output and its code stand below.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from notebooks import Notebook
from vignettes import Vignette

ROOT = Path(__file__).parents[2]
_PICTURE = "picture.png"  # what an example that draws is given as its argument


@dataclass
class Example:
    """``Title: what it shows.`` is the first line of the docstring, text follows."""

    path: Path
    output: str = ""
    pictures: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        source = self.path.read_text(encoding="utf-8")
        self.name = self.path.stem
        self.doc = ast.get_docstring(ast.parse(source)) or ""
        self.code = re.sub(r'^""".*?"""\n+', "", source, count=1, flags=re.DOTALL)
        first, _, self.text = self.doc.partition("\n")
        self.title, _, self.subtitle = first.partition(": ")
        if not self.subtitle:
            raise ValueError(f"{self.path.name}: its docstring must begin 'Title: what it shows.', got {first!r}")

    @property
    def draws(self) -> bool:
        return f"[{_PICTURE}]" in self.doc

    def run(self, folder: Path) -> None:
        """Runs it, or takes what it printed when neither it nor the package has changed since."""
        made_of = hashlib.sha256()
        for path in (self.path, *sorted((ROOT / "src").rglob("*.py"))):
            made_of.update(path.read_bytes())
        place = folder / self.name
        place.mkdir(parents=True, exist_ok=True)
        kept = place / f"{made_of.hexdigest()[:16]}.txt"
        if not kept.is_file():
            for old in place.glob("*.txt"):
                old.unlink()
            arguments = [_PICTURE] if self.draws else []
            environment = os.environ | {"COLUMNS": "110", "NO_COLOR": "1", "MPLBACKEND": "agg"}
            done = subprocess.run(
                [sys.executable, str(self.path), *arguments],
                cwd=place, env=environment, capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode:
                raise RuntimeError(f"{self.path.name} failed ({done.returncode}):\n{done.stderr}")
            if self.draws:
                (place / _PICTURE).replace(place / f"{self.name}.png")
            kept.write_text(done.stdout, encoding="utf-8")
        self.output = kept.read_text(encoding="utf-8")
        self.pictures = (place / f"{self.name}.png",) if self.draws else ()

    def page(self) -> str:
        parts = [f"# {self.title}", f"{self.subtitle[0].upper()}{self.subtitle[1:]}", self.text.strip()]
        parts += [f"![What {self.name}.py draws]({picture.name})" for picture in self.pictures]
        parts += ["## Output", f"```text\n{self.output.rstrip()}\n```"]
        parts += ["## Code", f'```python title="examples/{self.path.name}"\n{self.code.rstrip()}\n```']
        return "\n\n".join(part for part in parts if part) + "\n"


def first_page(vignettes: list[Vignette], notebooks: list[Notebook], examples: list[Example]) -> str:
    """A card with a picture for each vignette and notebook, a line for each script."""
    lines = [
        "# Gallery",
        "",
        "## Vignettes",
        "",
        "Worked from raw data to a decision, with pictures, each for one audience.",
    ]
    lines += ["All run without a network; the pages show what they printed and drew when this site was built.", ""]
    shades = ("light", "dark")
    lines += _cards(
        (f"../vignettes/{vignette.name}.md", vignette.title, vignette.audience,
         [f"../vignettes/{name}#only-{shade}" for name, shade in zip(vignette.thumbnail, shades, strict=True)])
        for vignette in vignettes
    )  # fmt: skip
    lines += ["## Notebooks for research", "", "On the paper's algorithms, to read here or to run in Jupyter.", ""]
    lines += _cards(
        (f"../notebooks/{notebook.name}.md", notebook.title, notebook.audience,
         [f"../notebooks/{notebook.thumbnail}"])
        for notebook in notebooks
    )  # fmt: skip
    lines += [
        "## Scripts",
        "",
        "From the folder `examples/`: each makes its own data; the page shows its output.",
        "",
    ]
    lines += [f"- [{example.title}]({example.name}.md): {example.subtitle}" for example in examples]
    return "\n".join(lines) + "\n"


def _cards(cards: Iterable[tuple[str, str, str, list[str]]]) -> list[str]:
    """Each of a page, its title, whom it is for, and its pictures."""
    lines = ['<div class="grid cards" markdown>', ""]
    for page, title, audience, pictures in cards:
        shown = "".join(f"[![{title}]({picture})]({page})" for picture in pictures)
        lines += [f"-   {shown}", "", f"    **[{title}]({page})**", "", f"    {audience}", ""]
    return [*lines, "</div>", ""]


def all_examples() -> list[Example]:
    return [Example(path) for path in sorted((ROOT / "examples").glob("*.py"))]
