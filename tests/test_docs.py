"""What the README and the docs show can be run as it stands, and the site leaves nothing out."""

import ast
import doctest
import inspect
import re
import shlex
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

import blockgreedy as bg
import test_mpi
from blockgreedy.cli import app
from blockgreedy.data import formats
from blockgreedy.models import cross_validation, quality
from blockgreedy.partitions.diagnose import BlockDiagnosis

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EVERYWHERE = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md"]
# A block in a list is indented.
FENCE = re.compile(r"^ *```(\w+)[^\n]*\n(.*?)^ *```$", flags=re.DOTALL | re.MULTILINE)
# Made when the site is built.
OF_SITE = ("gallery/index.md", "example-report.html")
# What a test cannot do: set up, build, measure for hours, or fetch from the network.
NOT_RUN = (
    *("make", "pip install", "python3 -m venv", ". env/bin/activate", "python benchmarks/", ".venv-bench/bin/python"),
    *("python -m benchmarks.", "mpirun -n 2 python -m benchmarks."),
    *("BLOCKGREEDY_DATA=data python", "blockgreedy reproduce", "blockgreedy data fetch"),
)
# Their packages warn of each other, or leave threads behind: each block in a process of its own.
APART = {"deploy.md": ("skl2onnx", "onnxruntime", "skops", "mlflow")}
sys.path.insert(0, str(ROOT / "tools" / "docs"))

import assets  # noqa: E402
import commands  # noqa: E402
import formulae  # noqa: E402
import gallery  # noqa: E402
import notebooks  # noqa: E402
import vignettes  # noqa: E402

sys.path.insert(0, str(ROOT))

from benchmarks import speed  # noqa: E402


def blocks(page):
    """(language, text) of every fenced block."""
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [(language, textwrap.dedent(text)) for language, text in found]


def shell_lines(text):
    """Commands without their comments; a backslash goes on in the next line."""
    lines = text.replace("\\\n", " ").splitlines()
    return [line for line in (re.sub(r"(^|\s+)#.*", "", line).strip() for line in lines) if line]


def test_pages_have_examples_in_both_languages():
    languages = [language for page in PAGES for language, _ in blocks(page)]
    assert languages.count("python") > 20
    assert languages.count("sh") > 20
    assert set(languages) <= {"python", "sh", "text", "math", "bibtex"}


@pytest.mark.parametrize("page", EVERYWHERE, ids=lambda page: page.stem)
def test_commands_stand_in_blocks_that_are_run(page):
    outside = FENCE.sub("", page.read_text(encoding="utf-8"))
    allowed = {"CONTRIBUTING.md": "make"}.get(page.name, "–")
    found = re.findall(r"^    ((?:blockgreedy|make|pip|python) .*)$", outside, flags=re.MULTILINE)
    assert [line for line in found if not line.startswith(allowed)] == []


def runs(page):
    return any(
        language == "python" or (language == "sh" and any(not line.startswith(NOT_RUN) for line in shell_lines(text)))
        for language, text in blocks(page)
    )


@pytest.mark.filterwarnings("ignore::blockgreedy.ConvergenceRiskWarning")  # some pages show it
@pytest.mark.parametrize("page", [page for page in PAGES if runs(page)], ids=lambda page: page.stem)
def test_examples_run_in_the_order_of_the_page(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(formats, "READERS", formats.READERS)  # a page adds to it
    for number, (language, text) in enumerate(blocks(page)):
        if language == "python" and page.name in APART:
            if all(find_spec(name) for name in APART[page.name]):  # a development environment has them all
                subprocess.run([sys.executable, "-c", text], check=True)
        elif language == "python":
            # each block can be copied alone: it does not see the names of those before, only their files
            exec(compile(text, f"{page.name}, block {number}", "exec"), {"__name__": "__main__"})
        elif language == "sh":
            for line in shell_lines(text):
                run_command(line)
    if page.name in ("start.md", "convergence.md"):
        assert "converged" in capsys.readouterr().out


def run_command(line):
    if line.startswith(NOT_RUN):
        return
    if line.startswith("mpirun "):
        if not test_mpi.IS_THERE:
            return
        mpirun, n, count, *words = shlex.split(line)
        assert (mpirun, n, words[0]) == ("mpirun", "-n", "blockgreedy")
        said, code = test_mpi.run(int(count), "command", "--", *words[1:])
        assert code == 0, f"{line}\n{said}"
        return
    first, *rest = shlex.split(line)
    assert first == "blockgreedy", f"what is {line!r}? Commands that are not run are listed in NOT_RUN"
    result = CliRunner().invoke(app, rest)
    assert result.exit_code == 0, f"{line}\n{result.output}"
    for name in re.findall(r"--(?:out|model|report|csv|trace|picture) (\S+)", line):
        assert Path(name).stat().st_size > 0, line


def test_commands_that_are_not_run_exist(monkeypatch):
    for page in PAGES:
        for language, text in blocks(page):
            for line in shell_lines(text) if language == "sh" else []:
                if line.startswith("make "):
                    assert f"\n{line.split()[1]}:" in (ROOT / "Makefile").read_text(), line
                if "python benchmarks/" in line:
                    assert (ROOT / re.search(r"benchmarks/\S+", line)[0]).is_file(), line
                if line.startswith("blockgreedy "):
                    words = line.split()[1:]
                    known = commands.all_commands()
                    command = known.get(words[0]) or known[" ".join(words[:2])]
                    options = {name for p in command.params for name in (*p.opts, *p.secondary_opts)}
                    assert {word for word in words if word.startswith("--")} <= options, line


def test_the_theory_page_shows_the_numbers_that_come_out():
    (code,) = [text for _, text in blocks(ROOT / "docs" / "theory.md") if "rate_bound" in text]
    assert "epsilon(8, 32, rho))  # 0.09\n" in code
    assert bg.theory.epsilon(8, 32, 1.4) == pytest.approx(7 * 0.4 / 31)
    assert "max_safe_blocks_per_iter(32, rho))  # 32" in code
    assert bg.theory.max_safe_blocks_per_iter(32, 1.4) == 32
    assert "safe_step_scale(32, 32, 4.0))  # 0.25:" in code
    assert bg.theory.safe_step_scale(32, 32, 4.0) == 0.25


@pytest.mark.parametrize("page", EVERYWHERE, ids=lambda page: page.stem)
def test_links_lead_to_files(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"", text):
        target = "".join(target)
        if not re.match(r"\w+:|#", target) and target not in OF_SITE:
            assert (page.parent / target.split("#")[0]).is_file(), target


# ------------------------------------------------------------------------------------------------- the site


def test_every_page_is_in_the_menu():
    menu = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    for page in (ROOT / "docs").rglob("*.md"):
        assert f" {page.relative_to(ROOT / 'docs').as_posix()}\n" in menu


def test_the_reference_has_every_public_name():
    pages = [page.read_text() for page in (ROOT / "docs").glob("api*.md")]
    shown = re.findall(r"^::: (\S+)", "\n".join(pages), flags=re.MULTILINE)
    modules = {"data", "family", "theory"}  # sections of their own
    assert {name.split(".")[-1] for name in shown} >= set(bg.__all__) - modules
    for module in (bg.data, bg.family):
        constants = {name for name in module.__all__ if name.isupper()}
        within = [name for name in shown if name.startswith(module.__name__)]
        assert {name.split(".")[-1] for name in within} >= set(module.__all__) - constants
    assert {"blockgreedy.partitions.theory", "blockgreedy.models.model.Model"} <= set(shown)


def test_the_command_line_page_has_every_verb_with_all_its_options():
    page = (ROOT / "docs" / "command-line.md").read_text()
    known = commands.all_commands()
    assert re.findall(r"<!-- options: (.+?) -->", page) == re.findall(r"^## (.+)$", page, flags=re.MULTILINE)
    assert set(re.findall(r"^## (.+)$", page, flags=re.MULTILINE)) == set(known)
    for name in known:
        table = commands.options_table(name)
        helped = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).output
        options = set(re.findall(r"^│ [* ]*(--[a-z0-9-]+)", helped, flags=re.MULTILINE)) - {"--help"}
        assert options, name
        assert {option for option in options if f"`{option}`" not in table} == set()


def test_the_table_of_the_readme_is_what_was_measured():
    readme = (ROOT / "README.md").read_text()
    assert speed.with_table(readme, speed.table(speed.fits())) == readme


def test_the_pictures_of_speed_are_drawn_for_light_and_dark_pages():
    found = speed.fits()
    assert set(found) == {"dorothea", "reuters", "enron", "news20"}
    for shade in speed.INK:
        drawn = {text.get_text() for text in speed.draw(found, shade).axes[0].texts}
        assert {"LIBLINEAR", "skglm", "blockgreedy 187 ms"} <= drawn
        place = ROOT / "docs" / "img" / f"speed-{shade}.svg"
        assert speed.INK[shade][2] in place.read_text()
        assert place.name in (ROOT / "README.md").read_text()


def test_formulae_become_mathml():
    page = "before\n\n```math\n\\frac{1}{n} x_j\n```\n\nand $`\\alpha`$; a price of $5 stays"
    made = formulae.as_mathml(page)
    assert "```" not in made
    assert "<mfrac>" in made
    assert made.count("<math") == 2
    assert "$5 stays" in made
    assert formulae.as_mathml("a\n$`x`$ b").startswith("a\n<span><math")  # at the start of a line, too, part of it
    for page in PAGES:
        for language, text in blocks(page):
            if language == "math":
                assert "\\" not in re.sub(r"<.*?>", "", formulae.as_mathml(f"```math\n{text}```\n")), page.name


def test_every_example_is_a_page_of_the_gallery():
    examples = gallery.all_examples()
    assert len(examples) == len(list((ROOT / "examples").glob("*.py"))) > 4
    for example in examples:
        example.output = "what it printed"
        page = example.page()
        assert page.startswith(f"# {example.title}\n")
        code = FENCE.findall(page)[-1][1]
        assert ast.dump(ast.parse(code)) in ast.dump(ast.parse(example.path.read_text())).replace(
            ast.dump(ast.parse(example.path.read_text()).body[0]) + ", ", "", 1
        )
        assert "what it printed" in page


def test_the_first_page_of_the_gallery_shows_a_picture_of_every_vignette_and_notebook():
    found, others = vignettes.all_vignettes(), notebooks.all_notebooks()
    assert [vignette.name for vignette in found] == list(vignettes.ORDER)
    for vignette in found:
        vignette.results = [{"output": "", "pictures": [[f"{vignette.name}-light.png", f"{vignette.name}-dark.png"]]}]
    page = gallery.first_page(found, others, gallery.all_examples())
    for notebook in others:
        assert f"](../notebooks/{notebook.name}.md)" in page
        assert f"](../notebooks/{notebook.thumbnail})" in page
        assert notebook.audience.startswith("For researchers")
    for vignette in found:
        assert f"](../vignettes/{vignette.name}.md)" in page
        assert f"{vignette.name}-light.png#only-light" in page
        assert f"{vignette.name}-dark.png#only-dark" in page
        assert vignette.audience.startswith("For people who") or vignette.audience.startswith("For people with")


def test_an_asset_from_elsewhere_is_found(tmp_path):
    (tmp_path / "good.html").write_text(
        '<link href="a.css"><script src="b.js"></script><a href="https://x.org">x</a>'
    )
    (tmp_path / "good.css").write_text("p { background: url(a.png) }")
    assert assets.foreign_assets(tmp_path) == []
    (tmp_path / "bad.html").write_text('<img src="https://x.org/a.png"><style>@import "//y.org/b.css";</style>')
    (tmp_path / "bad.css").write_text("p { src: url('https://x.org/font.woff2') }")
    assert assets.foreign_assets(tmp_path) == [
        "bad.css: https://x.org/font.woff2",
        "bad.html: https://x.org/a.png",
        "bad.html: //y.org/b.css",
    ]


PUBLIC = {name: getattr(bg, name) for name in bg.__all__ if name not in ("data", "family", "theory")}
PUBLIC |= {f"family.{name}": getattr(bg.family, name) for name in bg.family.__all__ if not name.isupper()}


@pytest.mark.parametrize("name", PUBLIC)
def test_examples_in_docstrings_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = doctest.DocTestFinder(recurse=False).find(PUBLIC[name], name, globs={})
    for test in found:
        result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test)
        assert result.failed == 0


SHOWN = PUBLIC | {
    thing.__name__: thing
    for thing in (
        *(bg.data.fetch, bg.data.PublicSet, bg.data.Summary, BlockDiagnosis),
        *(bg.theory.Bound, bg.theory.RhoBlock, bg.theory.rho_block, bg.theory.rate_bound),
        bg.theory.safe_step_scale,
        *(quality.Quality, quality.measure, cross_validation.CrossValidation),
    )
}
ENTRY = re.compile(r"^[*\w]+(, [*\w]+)*( : \S.*)?$")


@pytest.mark.parametrize("name", SHOWN)
def test_docstrings_of_public_names_are_numpydoc(name):
    """Entries of a section are ``name : type``, and what they are stands below, indented."""
    text = inspect.cleandoc(SHOWN[name].__doc__)
    assert not re.search(r"\{[a-z_]+\}", text)  # a part that estimators share
    parts = re.split(r"^(\w[\w ]*)\n-{3,}$", text, flags=re.MULTILINE)
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        if title not in ("Parameters", "Other Parameters", "Attributes"):
            assert title in ("Returns", "Examples", "Warns", "Notes"), title
            continue
        lines = [line for line in body.splitlines() if line.strip()]
        for line, following in zip(lines, [*lines[1:], ""], strict=True):
            if not line.startswith(" "):
                assert ENTRY.match(line), line
                assert following.startswith("    "), f"{line}: says nothing of it"
    fields = getattr(SHOWN[name], "__dataclass_fields__", {})
    named = set(re.findall(r"\w+", text))
    assert [field for field in fields if not field.startswith("_") and field not in named] == []
    if inspect.isfunction(SHOWN[name]) or name == "Problem":
        assert [parameter for parameter in inspect.signature(SHOWN[name]).parameters if parameter not in named] == []
