"""blockgreedy reproduce: what it writes, and how it refuses."""

import csv
import json
import signal
import subprocess
import sys
import time

import pytest
from sklearn.datasets import dump_svmlight_file

import blockgreedy as bg
from command_line import run


def reproduce(*arguments):
    return run("reproduce", *arguments, BLOCKGREEDY_DATA="")


def write_small_sets(folder):
    """An .npz file that stands in for Reuters and a set of another name as svmlight text."""
    folder.mkdir(exist_ok=True)
    bg.save(bg.data.text_like(200, 400, 12.0, 6, seed=1), folder / "reuters.npz")
    other = bg.data.text_like(150, 300, 8.0, 5, seed=2)
    dump_svmlight_file(other.X, other.y, str(folder / "zeta.svm"))
    return folder


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    place = tmp_path_factory.mktemp("reproduce")
    folder = write_small_sets(place / "data")
    result = reproduce("--data-dir", folder, "--seconds", 0.01, "--threads", 1, "--out", place / "out")
    assert result.exit_code == 0, result.output
    assert result.stdout.strip().endswith("index.html")
    return place / "out"


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_page_tables_traces_and_pictures_are_written(out):
    made = {path.name for path in out.iterdir()}
    assert {"index.html", "config.json", "traces.csv", "findings.csv", "data.csv", "reuters.csv"} <= made
    assert {
        "block-density-reuters.png",
        "design-space-add-iterations.png",
        "figure-2-zeta-objective-wall.png",
    } <= made
    for path in out.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")


def test_page_names_both_sets_the_stand_in_and_both_clocks(out):
    html = (out / "index.html").read_text(encoding="utf-8")
    for words in (
        "zeta is not one of the paper&#x27;s sets.",
        "reuters stands in for the paper&#x27;s Reuters",
        "wall clock of this machine",
        "scan follows the blocks",
        "equal slices",
        "1,757,800",
    ):
        assert words in html
    assert "http" not in html.replace("http://www.w3.org", "").replace("http-equiv", "")


def test_data_table_counts_what_the_files_hold(out):
    found = {row["set"]: row for row in rows(out / "data.csv")}
    assert (found["reuters"]["samples"], found["reuters"]["features"]) == ("200", "400")
    assert found["reuters"]["features, paper"] == "47237"
    assert found["zeta"]["features, paper"] == ""


def test_traces_hold_every_part_with_its_settings(out):
    found = rows(out / "traces.csv")
    assert {row["part"] for row in found} == {"figure 2", "line search", "design space", "follow-up"}
    kinds = {row["blocks"] for row in found if row["part"] == "figure 2"}
    assert {"random", "clustered"} <= kinds
    assert {row["per_block"] for row in found if row["update"] == "joint"} == {"1", "4", "16"}


def test_design_space_has_the_known_algorithms_at_its_corners(out):
    cells = {(row["B"], row["P"]) for row in rows(out / "design-space.csv")}
    assert {("1", "1"), ("32", "32"), ("400", "1"), ("400", "8")} <= cells
    assert max(int(b) for b, _ in cells) == 400


def test_configuration_says_what_ran_and_names_no_place(out):
    config = json.loads((out / "config.json").read_text())
    assert (config["sets"], config["generated"], config["n_threads"]) == ("reuters, zeta", "none", 1)
    assert {"cpu", "versions", "seed", "seconds by part"} <= set(config)
    assert str(out.parent) not in (out / "config.json").read_text() + (out / "index.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--data-dir", "no/such/folder"), "must name an existing folder, got 'no/such/folder'"),
        (("--seconds", 0), "--seconds 0.0 must be a number above 0"),
        (("--seconds", "nan"), "--seconds nan must be a number above 0"),
        (("--sets", "moon"), "'moon' is no known set; accepted are"),
        (("--threads", 0), "--threads 0 must be"),
        (("--seed", -1), "--seed -1 must be a whole number"),
    ],
)
def test_wrong_use_exits_with_2_and_one_sentence(arguments, message, tmp_path):
    result = reproduce(*arguments, "--out", tmp_path / "out")
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_out_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "taken").write_text("")
    result = reproduce("--sets", "reuters", "--out", tmp_path / "taken")
    assert result.exit_code == 2
    assert "--out must name a folder" in result.stderr


def test_data_that_cannot_be_read_exits_with_1(tmp_path):
    (tmp_path / "broken.npz").write_bytes(b"no zip")
    result = reproduce("--data-dir", tmp_path, "--seconds", 0.01, "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "broken is left out" in result.stderr


def test_ctrl_c_writes_the_page_with_what_there_is(tmp_path):
    folder = write_small_sets(tmp_path / "data")
    command = [sys.executable, "-m", "blockgreedy.cli", "reproduce", "--data-dir", str(folder), "--seconds", "5"]
    process = subprocess.Popen(
        [*command, "--out", str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("figure 2"):
                break
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 3
    assert said.startswith("interrupted; the page of the finished runs: ")
    html = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "This run was interrupted" in html
    assert json.loads((tmp_path / "out" / "config.json").read_text())["interrupted"] is True
