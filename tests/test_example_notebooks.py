"""The notebooks of examples/notebooks run, show what they are kept with, and are pages of the site."""

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from conftest import SANITIZED

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools" / "docs"))

import notebooks  # noqa: E402

PATHS = [notebooks.FOLDER / f"{name}.ipynb" for name in notebooks.ORDER]
LARGEST = 400_000  # bytes of a file


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def path(request):
    return request.param


def code_cells(path):
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def words(output):
    """What an output says, without numbers: they may differ in the last digit, and seconds do in the first."""
    if output.output_type == "stream":
        assert output.name == "stdout", output.text
        text = output.text
    else:
        text = output.data.get("text/html") or output.data.get("text/plain")
    said = re.sub(r"-?\d[\d,.]*(e[-+]?\d+)?", "0", text)
    return re.sub(r"\s+", " ", said)


def test_every_notebook_is_in_the_order_of_the_site():
    assert sorted(PATHS) == sorted(notebooks.FOLDER.glob("*.ipynb"))
    assert [notebook.path for notebook in notebooks.all_notebooks()] == PATHS


def test_notebooks_are_kept_as_they_came_out_of_a_run(path):
    cells = code_cells(path)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))  # once, from top to bottom
    outputs = [output for cell in cells for output in cell.outputs]
    assert {output.output_type for output in outputs} == {"stream", "display_data"} | (
        {"execute_result"} if path.stem == "selection_rule" else set()
    )
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 2
    for cell in cells:
        if "print(" in cell.source or "plt.show()" in cell.source:
            assert cell.outputs, cell.source


def test_notebooks_are_small_and_speak_of_no_machine(path):
    text = path.read_text(encoding="utf-8")
    assert len(text) < LARGEST
    without_pictures = re.sub(r'"image/png": "[^"]*"', "", text)
    assert not re.search(
        r"(?<![\w.])/(?:home|root|tmp|work|usr|opt|Users)\b|[A-Z]:\\|site-packages", without_pictures
    )
    kept = nbformat.read(path, as_version=4)
    assert kept.metadata.language_info == {"name": "python"}  # no version of Python
    assert all(not cell.metadata for cell in kept.cells)  # no times of execution


def test_links_of_notebooks_lead_to_files(path):
    texts = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown"]
    found = re.findall(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)", "\n".join(texts))
    assert len(found) >= 3
    for target in found:
        assert (path.parent / target).is_file(), target


@pytest.mark.skipif(bool(SANITIZED), reason="a sanitized process is slow")
def test_notebooks_run_and_say_what_they_are_kept_with(path, tmp_path):
    """No cell raises (each asserts what the text says of it), and all outputs are there, with the same words."""
    command = [sys.executable, str(Path(notebooks.__file__)), str(path), "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    for kept, run in zip(code_cells(path), code_cells(tmp_path / path.name), strict=True):
        assert kept.source == run.source
        assert list(map(words, kept.outputs)) == list(map(words, run.outputs)), (
            "make notebooks, and look at the change"
        )
        for mine, theirs in zip(kept.outputs, run.outputs, strict=True):
            assert set(mine.get("data", {})) == set(theirs.get("data", {}))


def test_a_notebook_is_a_page_with_its_text_code_outputs_and_pictures(path):
    notebook = notebooks.Notebook(path)
    page = notebook.page(lambda text: text.replace("../../docs/", "../"))
    assert page.startswith(f"# {notebook.title}\n")
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert f"```python\n{cell.source}\n```" in page
            for output in cell.outputs:
                if output.output_type == "stream":
                    assert output.text.rstrip() in page
    assert len(notebook.pictures) >= 2
    for name, picture in notebook.pictures.items():
        assert f"]({name})" in page
        assert picture.startswith(b"\x89PNG")
    assert "../../docs/" not in page
    assert not re.search(r"<style|<table .", page)  # tables of pandas look like those of the site


def test_formulae_of_notebooks_become_those_of_pages():
    text = "a $x_j$ costs\n\n$$\nf(w) = 1\n$$\n\nand `$y$` stays"
    assert notebooks.with_fenced_formulae(text) == "a $`x_j`$ costs\n\n```math\nf(w) = 1\n```\n\nand `$y$` stays"
