"""blockgreedy reproduce: what it writes, and how it refuses."""

import csv
import hashlib
import json
import signal
import subprocess
import sys
import time
from dataclasses import fields
from xml.etree import ElementTree

import pytest
from sklearn.datasets import dump_svmlight_file

import blockgreedy as bg
from blockgreedy.experiments import readings
from blockgreedy.experiments.results import Setting
from blockgreedy.problem.columns import unit_columns
from blockgreedy.solvers.options import FamilyOptions
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
    assert {"load.csv", "reuters-by-value.csv", "table-2-readings.csv", "figures.pdf"} <= made
    for path in out.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")


def test_every_picture_is_there_as_vectors_that_stand_alone(out):
    names = {path.stem for path in out.glob("*.png")}
    assert {path.stem for path in out.glob("*.svg")} == names
    for path in out.glob("*.svg"):
        root = ElementTree.parse(path).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert root.attrib["width"].endswith("pt")
        assert "var(" not in path.read_text(encoding="utf-8")  # drawing programs know no style sheet of a page
    pdf = (out / "figures.pdf").read_bytes()
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page ") + pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page/") == len(names)


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
    read = {reading.part for reading in readings.ALL}
    assert {row["part"] for row in found} == read | {"load", "design space", "follow-up"}
    assert {row["step_scale"] for row in found if row["part"] == "printed step"} == {"paper"}
    assert {row["greedy_rule"] for row in found if row["part"] == "figure 2"} == {"step"}
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
    assert config["command"].startswith(
        "blockgreedy reproduce --sets reuters,zeta --seconds 0.01 --threads 1 --seed 0"
    )
    assert str(out.parent) not in (out / "config.json").read_text() + (out / "index.html").read_text()


def test_configuration_has_every_setting_of_every_run(out):
    config = json.loads((out / "config.json").read_text())
    family = [run for run in config["runs"] if run["method"] == "block-greedy"]
    assert {run["method"] for run in config["runs"]} == {"auto", "block-greedy"}
    for own in family:
        assert {field.name for field in fields(FamilyOptions)} <= set(own)
        assert {field.name for field in fields(Setting)} == set(own["setting"])
        assert {"part", "set", "alpha", "rank of alpha", "n_threads", "tol", "trace_iters"} <= set(own)
        assert {"max_iter", "max_seconds", "enough", "target objective", "on_divergence"} <= set(own)
        assert {"status", "iterations", "seconds"} <= set(own)
    printed = [run for run in family if run["part"] == "printed step"]
    assert {run["step_scale"] for run in printed} == {1 / 200}  # the number, not only its name
    assert {run["setting"]["step_scale"] for run in printed} == {"paper"}
    assert {run["scan"] for run in family if run["part"] == "load"} == {"blocks"}
    assert any(run["asynchronous"] for run in family)
    assert {run["greedy_rule"] for run in family} == {"gain", "step"}


def test_configuration_has_shape_checksum_and_both_matchings_of_the_data(out):
    config = json.loads((out / "config.json").read_text())
    data = {own["name"]: own for own in config["data"]}
    file = out.parent / "data" / "reuters.npz"
    assert data["reuters"]["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert (data["reuters"]["n_samples"], data["reuters"]["n_features"]) == (200, 400)
    assert [ours for _, ours in data["reuters"]["paper's alphas by rank"]] == data["reuters"]["alphas"][:3]
    assert all(theirs == ours for theirs, ours in data["reuters"]["paper's alphas by value"])
    assert "paper's alphas by rank" not in data["zeta"]  # which the paper does not have


def test_a_run_of_the_configuration_can_be_done_again(out):
    """Bit by bit, from what the file says alone."""
    config = json.loads((out / "config.json").read_text())
    run = next(run for run in config["runs"] if run["part"] == "printed step" and run["rank of alpha"] == 2)
    data = bg.load(out.parent / "data" / f"{run['set']}.npz")
    problem = bg.Problem(unit_columns(data.X), data.y, loss=config["loss"], alpha=run["alpha"])
    names = [field.name for field in fields(FamilyOptions) if field.name not in ("n_blocks", "seed")]
    solution = bg.solve(
        problem,
        run["method"],
        n_blocks=run["n_blocks"],
        partition=run["setting"]["kind"],
        seed=run["seed"],
        tol=run["tol"],
        n_threads=run["n_threads"],
        max_iter=run["iterations"],
        on_divergence=run["on_divergence"],
        **{name: run[name] for name in names},
    )
    wanted = {"part": run["part"], "set": run["set"], "alpha": repr(run["alpha"]), "blocks": run["setting"]["kind"]}
    records = [row for row in rows(out / "traces.csv") if all(row[name] == value for name, value in wanted.items())]
    last = solution.trace.records[-1]
    assert (int(records[-1]["iteration"]), int(records[-1]["nonzeros"])) == (last.iteration, last.nonzeros)
    assert float(records[-1]["objective"]) == last.objective


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--data-dir", "no/such/folder"), "must name an existing folder, got 'no/such/folder'"),
        (("--seconds", 0), "--seconds 0.0 must be a number above 0"),
        (("--seconds", "nan"), "--seconds nan must be a number above 0"),
        (("--sets", "moon"), "'moon' is no known set; accepted are"),
        (("--sets", ","), "--sets ',' names no set"),
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
    command = [sys.executable, "-m", "blockgreedy", "reproduce", "--data-dir", str(folder), "--seconds", "5"]
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
