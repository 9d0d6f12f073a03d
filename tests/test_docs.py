"""What the README and the docs show can be run as it stands."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import blockgreedy as bg
from blockgreedy.cli import app

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
THEORY = (ROOT / "docs" / "theory.md").read_text()
CLUSTERING = (ROOT / "docs" / "clustering.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
COMMANDS = re.findall(
    r"^    (blockgreedy (?:fit|partition|diagnose) .*)$", README + THEORY + CLUSTERING, flags=re.MULTILINE
)


def test_readme_has_examples_in_both_languages():
    assert BLOCKS
    assert COMMANDS


@pytest.mark.filterwarnings("ignore::blockgreedy.ConvergenceRiskWarning")  # one of them shows it
@pytest.mark.parametrize("code", BLOCKS)
def test_python_in_the_readme_runs(code, capsys):
    exec(compile(code, "README.md", "exec"), {})
    assert "Solution(converged" in capsys.readouterr().out


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", THEORY, flags=re.DOTALL))
def test_python_in_the_page_on_the_theory_runs_and_gives_what_its_comments_say(code, capsys):
    exec(compile(code, "theory.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "converged" in printed or printed.startswith("0.0903")


@pytest.mark.parametrize(
    ("page", "code"),
    [
        (page.name, code)
        for page in sorted((ROOT / "docs").glob("*.md"))
        if page.name != "theory.md"
        for code in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    ],
)
def test_python_in_the_docs_runs(page, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, page, "exec"), {})


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_in_the_readme_run(command, tmp_path, monkeypatch):
    from sklearn.datasets import dump_svmlight_file

    monkeypatch.chdir(tmp_path)
    data = bg.data.text_like(300, 400, 20.0)
    for name in ("data.npz", "other.npz"):
        bg.save(data, name)
    dump_svmlight_file(data.X, data.y, "data.svm")
    result = CliRunner().invoke(app, shlex.split(command)[1:])
    assert result.exit_code == 0, result.output
