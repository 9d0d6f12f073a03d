"""What the README shows can be run as it stands."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import blockgreedy as bg
from blockgreedy.cli import app

README = (Path(__file__).parent.parent / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
COMMANDS = re.findall(r"^    (blockgreedy fit .*)$", README, flags=re.MULTILINE)


def test_readme_has_examples_in_both_languages():
    assert BLOCKS
    assert COMMANDS


@pytest.mark.parametrize("code", BLOCKS)
def test_python_in_the_readme_runs(code, capsys):
    exec(compile(code, "README.md", "exec"), {})
    assert "Solution(converged" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_in_the_readme_run(command, tmp_path, monkeypatch):
    from sklearn.datasets import dump_svmlight_file

    monkeypatch.chdir(tmp_path)
    data = bg.data.text_like(300, 400, 20.0)
    bg.save(data, "data.npz")
    dump_svmlight_file(data.X, data.y, "data.svm")
    result = CliRunner().invoke(app, shlex.split(command)[1:])
    assert result.exit_code == 0, result.output
