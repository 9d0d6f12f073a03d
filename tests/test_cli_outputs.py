"""No result takes the place of what was read, or of another result; and nothing asked for is passed over."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.io

import blockgreedy as bg
import command_line


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    np.save("X.npy", X)
    scipy.io.mmwrite("X.mtx", X)
    np.savetxt("y.txt", X[:, 0])
    data = bg.Dataset(X, np.where(X[:, 0] > 0, 1.0, -1.0))
    bg.save(data, "data.npz")
    bg.data.write(data, "data.svm")
    Path("table.csv").write_text("a,b,y\n" + "".join(f"{k},{k % 3},{k % 2}\n" for k in range(40)))
    bg.make_partition(X, n_blocks=2).save("blocks.npz")
    problem = bg.Problem(X, X[:, 0], alpha=0.1)
    model = bg.Model.of_solution(problem, bg.solve(problem))
    model.save("model.npz")
    model.save("model.json")
    return tmp_path


def run(line):
    return command_line.run(*line.split())


def contents():
    return {path: path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()}


FAMILY = "--method thread-greedy --alpha 0.1"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("fit X.npy --target y.txt --alpha 0.1 --trace y.txt", "--trace y.txt would replace the labels"),
        ("fit X.mtx --target y.txt --alpha 0.1 --trace ./y.txt", "--trace y.txt would replace the labels"),
        ("fit X.npy --target y.txt --alpha 0.1 --trace X.npy", "--trace X.npy would replace the data"),
        ("fit data.npz --alpha 0.1 --model data.npz", "--model data.npz would replace the data"),
        (f"fit data.npz {FAMILY} --partition blocks.npz --model blocks.npz", "would replace the partition"),
        (f"fit data.npz {FAMILY} --partition blocks.npz --trace ../F/blocks.npz", "would replace the partition"),
        ("fit data.npz --alpha 0.1 --model a.npz --trace a.npz", "--model a.npz and --trace a.npz are the same file"),
        ("fit data.npz --alpha 0.1 --model a.npz --trace ./a.npz", "are the same file"),
        ("fit data.npz --alpha 0.1 --report a.html --trace a.html", "are the same file"),
        ("fit data.svm --alpha 0.1 --cache --model data.svm.cache.npz", "--cache data.svm.cache.npz are the same"),
        ("path data.npz --csv data.npz", "--csv data.npz would replace the data"),
        ("path data.npz --csv p.html --report p.html", "are the same file"),
        ("path data.npz --csv p.npz --model p.npz", "are the same file"),
        ("cv X.npy --target y.txt --model y.npz --report y.npz", "are the same file"),
        ("predict model.json table.csv --out table.csv", "--out table.csv would replace the data"),
        ("report model.npz --out model.npz", "--out model.npz would replace the model"),
        ("partition data.npz --out data.npz", "--out data.npz would replace the data"),
        ("partition data.npz --out b.npz --picture b.npz", "are the same file"),
        ("data convert data.svm ./data.svm", "OUT data.svm would replace the data"),
        ("data convert data.npz data.npz", "OUT data.npz would replace the data"),
        ("data info data.npz --picture data.npz", "--picture data.npz would replace the data"),
    ],
)
def test_clashes_are_refused_before_any_work(folder, line, sentence):
    before = contents()
    result = run(line.replace("../F", f"../{folder.name}"))
    assert result.exit_code == 2, result.output
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert contents() == before


@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.parametrize(
    ("line", "linked"),
    [
        ("fit X.npy --target y.txt --alpha 0.1 --trace link", "y.txt"),
        (f"fit data.npz {FAMILY} --partition blocks.npz --trace link", "blocks.npz"),
        ("path data.npz --csv link", "data.npz"),
        ("fit link.svm --alpha 0.1 --trace data.svm", "data.svm"),
        ("predict model.json data.npz --out link.csv", "model.json"),
    ],
)
def test_links_do_not_hide_a_clash(folder, link, line, linked):
    link(linked, next(word for word in line.split() if word.startswith("link")))
    before = contents()
    result = run(line)
    assert result.exit_code == 2, result.output
    assert "would replace" in result.stderr
    assert contents() == before


def test_two_links_to_a_file_that_is_not_there_yet_are_one_output(folder):
    os.symlink("new.npz", "a.npz")
    os.symlink("./new.npz", "b.csv")
    result = run("fit data.npz --alpha 0.1 --model a.npz --trace b.csv")
    assert result.exit_code == 2
    assert "are the same file" in result.stderr


def test_a_folder_of_links_to_the_data_is_refused_by_reproduce(folder):
    Path("sets").mkdir()
    bg.save(bg.data.text_like(120, 200, 8.0, 4), "sets/small.npz")
    Path("out").mkdir()
    os.symlink("../sets/small.npz", "out/config.json")
    result = run("reproduce --data-dir sets --seconds 0.001 --out out")
    assert result.exit_code == 2
    assert "out/config.json would replace the data" in result.stderr


def test_devices_may_be_named_twice(folder):
    result = run("fit data.npz --alpha 0.1 --trace /dev/null -q")
    assert result.exit_code == 0, result.output
    assert run("path data.npz --alphas 3 --csv /dev/null -q").exit_code == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("data.svm --target y", "--target y is for tables, .mtx, .npy"),
        ("data.npz --target y.txt", "--target y.txt is for tables, .mtx, .npy"),
        ("data.svm --categorical a", "--categorical a is for tables"),
        ("X.npy --target y.txt --categorical a", "--categorical a is for tables"),
        ("table.csv --index-base 0", "--index-base 0 is for svmlight text"),
        ("data.npz --allow-unterminated", "--allow-unterminated is for svmlight text"),
        ("data.svm --threads 99999999999999", "--threads 99999999999999 must be a whole number from 1 to 1024"),
    ],
)
@pytest.mark.parametrize("command", ["fit --alpha 0.1", "path", "cv", "partition", "diagnose", "data info"])
def test_options_that_a_file_does_not_have_are_refused(folder, monkeypatch, command, options, sentence):
    monkeypatch.setattr("blockgreedy.cli.asked.load", None)  # before anything is read
    result = run(f"{command} {options}")
    assert result.exit_code == 2, result.output
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1


def test_load_refuses_them_too(folder):
    with pytest.raises(ValueError, match=r"n_features=9 is for svmlight text only; it does not apply to 'data\.npz'"):
        bg.load("data.npz", n_features=9)
    result = run("data convert table.csv a.npz --features 9")
    assert result.exit_code == 2
    assert "--features 9 is for svmlight text" in result.stderr


def test_a_model_of_a_table_predicts_for_the_same_data_in_another_format(folder):
    assert run("fit table.csv --loss logistic --target y --alpha 0.01 --model t.npz -q").exit_code == 0
    assert run("data convert table.csv converted.npz --target y").exit_code == 0
    assert run("predict t.npz converted.npz --out p.csv").exit_code == 0
    assert run("fit data.svm --loss logistic --alpha 0.01 --model s.npz -q").exit_code == 0
    assert run("predict s.npz data.npz --out p.csv").exit_code == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize(
    "line", ["fit data.npz --alpha 0.1 --json", "predict model.npz data.npz", "data info data.npz"]
)
def test_a_full_stdout_is_one_line_on_stderr(folder, line):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "blockgreedy", *line.split()]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 1
    said = [line for line in ended.stderr.splitlines(keepends=True) if not line.startswith("Note: ")]
    assert len(said) == 1
    assert said[0].startswith("Error: the ")
    assert said[0].endswith("No space left on device\n")


@pytest.mark.parametrize(
    "line", ["fit data.npz --alpha 0.1 --json -q", "fit data.npz --alpha 0.1 -q", "path data.npz -q"]
)
def test_a_reader_that_has_seen_enough_is_no_failure(folder, line):
    command = f"{sys.executable} -m blockgreedy {line}"
    ended = subprocess.run(
        ["bash", "-c", f"{command} | true; echo ${{PIPESTATUS[0]}}"], capture_output=True, text=True, check=True
    )
    assert (ended.stdout, ended.stderr) == ("0\n", "")
