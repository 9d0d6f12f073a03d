"""``blockgreedy partition``: what it prints and writes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import blockgreedy as bg
from blockgreedy.cli import app
from blockgreedy.data import text_like


@pytest.fixture
def data(tmp_path):
    dataset = text_like(300, 400, 20.0)
    bg.save(dataset, tmp_path / "data.npz")
    return dataset


def run(tmp_path, *arguments):
    return CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1"}).invoke(
        app, ["partition", str(tmp_path / "data.npz"), *map(str, arguments)]
    )


def test_written_blocks_are_those_of_the_library_and_fit_takes_them(data, tmp_path):
    file = tmp_path / "blocks.npz"
    result = run(tmp_path, "--blocks", 8, "--kind", "balanced", "--seed", 3, "--out", file)
    assert result.exit_code == 0, result.output
    made = bg.make_partition(data.X, data.y, n_blocks=8, kind="balanced", seed=3)
    np.testing.assert_array_equal(bg.Partition.load(file).block_of, made.block_of)
    fitting = ["fit", str(tmp_path / "data.npz"), "--loss", "logistic", "--alpha-ratio", "0.3", "--json"]
    fitted = CliRunner().invoke(app, [*fitting, "--method", "thread-greedy", "--partition", str(file)])
    assert fitted.exit_code == 0, fitted.output
    facts = json.loads(fitted.stdout)
    assert (facts["n_blocks"], facts["blocks_per_iter"], facts["partition"]) == (8, 8, "balanced")


def test_the_table_has_a_row_per_block_and_fits_80_columns(data, tmp_path):
    lines = run(tmp_path, "--blocks", 8).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    rows = [line.split() for line in lines if line and line.split()[0].isdigit()]
    blocks = bg.make_partition(data.X, data.y, n_blocks=8, kind="balanced")
    assert [int(row[2].replace(",", "")) for row in rows] == blocks.nonzeros(data.X).tolist()
    assert "8 balanced blocks" in " ".join(lines)


def test_many_blocks_are_summed_up_without_a_table(data, tmp_path):
    output = run(tmp_path, "--blocks", 100, "--kind", "random").stdout
    assert "100 random blocks of 4 to 4 features" in output
    assert "█" not in output


def test_json_holds_the_loads_of_every_block(data, tmp_path):
    facts = json.loads(run(tmp_path, "--blocks", 4, "--kind", "clustered", "--json").stdout)
    blocks = bg.make_partition(data.X, n_blocks=4, kind="clustered")
    assert facts["nonzeros"] == blocks.nonzeros(data.X).tolist()
    assert facts["mass"] == pytest.approx(blocks.mass(data.X, data.y).tolist())
    assert facts["nonzeros_max_over_mean"] == pytest.approx(max(facts["nonzeros"]) / np.mean(facts["nonzeros"]))
    assert (facts["kind"], facts["seed"], facts["features"]) == ("clustered", None, [100] * 4)


def test_the_picture_is_a_png(data, tmp_path):
    result = run(tmp_path, "--blocks", 4, "--picture", tmp_path / "blocks.png")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "blocks.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("--kind", "sorted"), 2, "Invalid value for '--kind'"),
        (("--blocks", 0), 2, "--blocks 0 must be a whole number"),
        (("--blocks", 401), 2, "--blocks 401 must be a whole number"),
        (("--blocks", 4, "--out", "blocks.txt"), 2, "--out must end in .npz"),
        (("--blocks", 4, "--out", "nowhere/blocks.npz"), 2, "existing folder"),
        (("--blocks", 4, "--picture", "blocks.jpg"), 2, "--picture must end in .png"),
    ],
)
def test_wrong_use_is_told(data, tmp_path, arguments, code, sentence):
    result = run(tmp_path, *arguments)
    assert result.exit_code == code
    assert sentence in result.output


def test_fit_refuses_a_file_that_holds_no_partition(data, tmp_path):
    fitting = ["fit", str(tmp_path / "data.npz"), "--alpha", "0.1", "--method", "thread-greedy"]
    result = CliRunner().invoke(app, [*fitting, "--partition", str(tmp_path / "data.npz")])
    assert result.exit_code == 2
    assert "holds no partition" in result.output


def test_capped_blocks_keep_the_limit_of_the_command(data, tmp_path):
    for limit in (1.1, 1.5):
        result = run(tmp_path, "--kind", "capped", "--max-load", limit, "--blocks", 8, "--json")
        assert result.exit_code == 0, result.output
        described = json.loads(result.stdout)
        assert (described["kind"], described["n_blocks"]) == ("capped", 8)
        assert described["nonzeros_max_over_mean"] <= limit + 1e-2
    clustered = json.loads(run(tmp_path, "--kind", "clustered", "--blocks", 8, "--json").stdout)
    without = run(tmp_path, "--kind", "capped", "--max-load", "inf", "--blocks", 8, "--json")
    assert json.loads(without.stdout)["nonzeros"] == clustered["nonzeros"]


def test_a_limit_that_nothing_asks_for_is_refused(data, tmp_path):
    result = run(tmp_path, "--kind", "balanced", "--max-load", 2, "--blocks", 8)
    assert result.exit_code == 2
    assert "--max-load 2.0 goes with --kind capped, not with --kind balanced" in " ".join(result.output.split())
