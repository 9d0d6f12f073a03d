"""Hooks of mkdocs: pages made of other files of the project, links to them, and nothing fetched from elsewhere.

The site is docs/ plus what already stands somewhere: ARCHITECTURE.md and its like are pages, examples/ becomes the
gallery, the vignettes and the notebooks, the demo leaves the example report of the front page, the tables of options
come from the command line itself, and formulae become MathML.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from assets import foreign_assets
from commands import options_table
from formulae import as_mathml
from gallery import all_examples, first_page
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from notebooks import all_notebooks
from vignettes import all_vignettes

ROOT = Path(__file__).parents[2]
PAGES = {
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "LICENSE": "LICENSE.txt",
    "CITATION.cff": "CITATION.cff",
}
EXAMPLE_REPORT = "build/gallery/demo/build/demo/cv.html"  # which examples/demo.py writes into its working folder
ALONE = ("index.md", "start.md")  # no other pages in their part of the menu: the room is theirs
_LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
_OPTIONS = re.compile(r"<!-- options: (.+?) -->")


def on_config(config: Any) -> None:
    """The pages of vignettes, notebooks and scripts follow the gallery's first page in the menu."""
    pages: list[Any] = [f"vignettes/{vignette.name}.md" for vignette in all_vignettes()]
    pages += [f"notebooks/{notebook.name}.md" for notebook in all_notebooks()]
    pages.append({"Scripts": [f"gallery/{example.name}.md" for example in all_examples()]})
    for entry in config.nav:
        if "Gallery" in entry:
            entry["Gallery"] = ["gallery/index.md", *pages]


def on_files(files: Files, config: Any) -> Files:
    for source, place in PAGES.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    for path in sorted((ROOT / "benchmarks" / "results").iterdir()):
        if path.suffix in (".md", ".png", ".csv", ".json"):
            files.append(File.generated(config, f"results/{path.name}", abs_src_path=str(path)))
    examples, vignettes, notebooks = all_examples(), all_vignettes(), all_notebooks()
    for example in examples:
        example.run(ROOT / "build" / "gallery")
        files.append(File.generated(config, f"gallery/{example.name}.md", content=example.page()))
        for picture in example.pictures:
            files.append(File.generated(config, f"gallery/{picture.name}", abs_src_path=str(picture)))
    for vignette in vignettes:
        vignette.run(ROOT / "build" / "vignettes")
        files.append(File.generated(config, f"vignettes/{vignette.name}.md", content=vignette.page()))
        for picture in vignette.pictures:
            files.append(File.generated(config, f"vignettes/{picture.name}", abs_src_path=str(picture)))
    for notebook in notebooks:
        origin = f"examples/notebooks/{notebook.path.name}"
        page = notebook.page(lambda text, origin=origin: _with_links_moved(text, origin, "notebooks"))
        files.append(File.generated(config, f"notebooks/{notebook.name}.md", content=page))
        files.append(File.generated(config, f"notebooks/{notebook.path.name}", abs_src_path=str(notebook.path)))
        for name, picture in notebook.pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=picture))
    files.append(File.generated(config, "gallery/index.md", content=first_page(vignettes, notebooks, examples)))
    files.append(File.generated(config, "example-report.html", abs_src_path=str(ROOT / EXAMPLE_REPORT)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    if page.file.src_uri in ALONE:
        page.meta["hide"] = ["navigation", "toc"] if page.file.src_uri == "index.md" else ["navigation"]
    markdown = as_mathml(_OPTIONS.sub(lambda found: options_table(found[1]), markdown))
    if page.file.src_uri.startswith(("gallery/", "vignettes/", "notebooks/")):
        page.meta["hide"] = ["toc"]
        return markdown  # made here, for here
    return _with_links_moved(markdown, _origin(page.file.src_uri), posixpath.dirname(page.file.src_uri))


def on_post_build(config: Any) -> None:
    found = foreign_assets(Path(config.site_dir))
    if found:
        raise PluginError("the site fetches from elsewhere:\n" + "\n".join(found))


def _with_links_moved(markdown: str, origin: str, here: str) -> str:
    """``origin``: the file of the project that the links start from; ``here``: the folder of the site."""

    def moved(found: re.Match[str]) -> str:
        before, target, anchor, after = found.groups(default="")
        if re.match(r"\w+:", target):
            return found[0]
        place = _place(posixpath.normpath(posixpath.join(posixpath.dirname(origin), target)))
        return f"{before}{posixpath.relpath(place, here or '.')}{anchor}{after}"

    return _LINK.sub(moved, markdown)


def _origin(uri: str) -> str:
    """Where in the project a page of the site stands."""
    for source, place in PAGES.items():
        if uri == place:
            return source
    return f"benchmarks/{uri}" if uri.startswith("results/") else f"docs/{uri}"


def _place(source: str) -> str:
    """Where on the site a file of the project stands; strict mode complains of what is nowhere."""
    if source in PAGES:
        return PAGES[source]
    if source.startswith("examples/vignettes/"):
        return f"vignettes/{Path(source).stem}.md"
    if source.startswith("examples/notebooks/"):
        return f"notebooks/{Path(source).stem}.md"
    if source.startswith("examples/") and source.endswith(".py"):
        return f"gallery/{Path(source).stem}.md"
    return source.removeprefix("docs/") if source.startswith("docs/") else source.removeprefix("benchmarks/")
