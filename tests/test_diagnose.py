"""diagnose: its numbers, copies of columns, advice, and the command line around it."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.partitions.duplicates import find_duplicates
from blockgreedy.partitions.partition import KINDS
from blockgreedy.partitions.theory import epsilon, max_safe_blocks_per_iter, safe_step_scale
from command_line import run


def copies_by_comparison(X):
    """first_of by comparing every pair of columns."""
    X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    norms = np.linalg.norm(X, axis=0)
    unit = X / np.where(norms > 0, norms, 1)
    first_of = np.arange(X.shape[1])
    for j in range(X.shape[1]):
        for i in range(j):
            near = min(np.abs(unit[:, i] - unit[:, j]).max(), np.abs(unit[:, i] + unit[:, j]).max())
            if norms[i] > 0 and norms[j] > 0 and near < 1e-6 and first_of[i] == i:
                first_of[j] = i
                break
    return first_of


@pytest.mark.parametrize("make", [np.asarray, sp.csc_array, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(4))
def test_copies_up_to_sign_and_scale_are_those_of_a_comparison_of_all_pairs(seed, dtype, make):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, size=(seed + 1, 60)) * (rng.random(60) < 0.9)
    X = X * rng.choice([0.3, -1.7, 1e-3, 1.0], size=60)
    duplicates = find_duplicates(make(X.astype(dtype)))
    expected = copies_by_comparison(X)
    np.testing.assert_array_equal(duplicates.first_of, expected)
    assert duplicates.count == np.count_nonzero(expected != np.arange(60)) > 0
    i, j = duplicates.examples()[0]
    assert expected[j] == i < j


def test_columns_that_share_a_pattern_or_nearly_everything_are_no_copies():
    rng = np.random.default_rng(0)
    x = rng.normal(size=50)
    X = np.stack([x, x * (1 + 1e-9 * rng.normal(size=50)), -2 * x, np.abs(x)], axis=1)
    for same in (X, sp.csc_array(X)):
        assert find_duplicates(same).first_of.tolist() == [0, 1, 0, 3]


def test_stored_zeros_do_not_hide_a_copy():
    X = sp.csc_array((np.array([1.0, 0.0, 2.0]), np.array([0, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    assert find_duplicates(X).count == 1
    assert X.nnz == 3


def test_stored_zeros_are_not_counted_as_nonzeros():
    X = sp.csc_array(np.array([[1.0, 2.0], [3.0, 4.0]]))
    X.data[1] = 0
    partition = bg.Partition(np.arange(2), 2)
    assert bg.diagnose(X, partition).n_nonzeros == bg.diagnose(X.toarray(), partition).n_nonzeros == 3


def test_copies_are_found_in_runs_of_entries_as_in_one(monkeypatch):
    data = bg.data.text_like(60, 500, 20.0, seed=3)
    X = sp.hstack([data.X, data.X[:, ::7] * -3.0], format="csc")
    whole = find_duplicates(X).first_of
    monkeypatch.setattr("blockgreedy.partitions.duplicates._CHUNK", 10)
    np.testing.assert_array_equal(find_duplicates(X).first_of, whole)
    assert find_duplicates(X).count >= len(range(0, 500, 7)) - np.count_nonzero(np.diff(data.X.tocsc().indptr) == 0)


def test_diagnosis_holds_what_its_parts_say(text_data):
    blocks = {kind: bg.make_partition(text_data.X, n_blocks=8, kind=kind) for kind in ("random", "clustered")}
    found = bg.diagnose(text_data.X, blocks, text_data.y, blocks_per_iter=4)
    assert list(found.partitions) == ["random", "clustered"]
    for name, partition in blocks.items():
        one = found[name]
        rho = bg.theory.rho_block(text_data.X, partition, y=text_data.y)
        assert one.rho.bounds == rho.bounds
        assert one.epsilon_lower.value == epsilon(4, 8, rho.lower.value)
        assert one.epsilon_upper.value == epsilon(4, 8, rho.upper.value)
        assert one.safe_blocks_per_iter.value == max_safe_blocks_per_iter(8, rho.upper.value)
        assert one.most_blocks_per_iter.value == max_safe_blocks_per_iter(8, rho.lower.value)
        assert one.safe_step_scale.value == safe_step_scale(4, 8, rho.upper.value)
        loads, mass = partition.nonzeros(text_data.X), partition.mass(text_data.X, text_data.y)
        assert one.load_balance.value == pytest.approx(loads.max() / loads.mean())
        assert one.mass_balance.value == pytest.approx(mass.max() / mass.mean())
        assert {one.epsilon_lower.kind, one.epsilon_upper.kind, one.load_balance.kind} == {"certified"}
    assert json.loads(json.dumps(found.to_dict()))["partitions"]["random"]["n_blocks"] == 8
    assert "rho_block search: ≥" in str(found)


def test_one_partition_goes_by_its_kind_and_needs_no_targets(text_data):
    found = bg.diagnose(text_data.X, bg.make_partition(text_data.X, n_blocks=4))
    assert found["random"].mass_balance is None
    assert found.to_dict()["partitions"]["random"]["mass_balance"] is None


def test_sampled_bounds_give_a_likely_safe_number_besides_the_proven_one(text_data):
    partition = bg.make_partition(text_data.X, n_blocks=8)
    one = bg.diagnose(text_data.X, partition, budget=2e4)["random"]
    assert one.likely_safe_blocks_per_iter.kind == "estimate"
    assert one.safe_blocks_per_iter.kind == "certified"
    assert one.likely_safe_step_scale.kind == "estimate"
    assert one.likely_safe_step_scale.value >= one.safe_step_scale.value
    assert one.safe_step_scale.kind == "certified"
    assert bg.diagnose(text_data.X, partition)["random"].likely_safe_blocks_per_iter is None


def test_advice_tells_safe_from_unsafe_settings():
    copies = np.repeat(np.random.default_rng(0).normal(size=(20, 1)), 4, axis=1)
    advice = " ".join(bg.diagnose(copies, bg.Partition(np.arange(4), 4)).advice)
    assert "epsilon is at least 3" in advice
    assert "Proven safe: 1; beyond 1 nothing is promised" in advice
    assert "step_scale=0.25 is safe with 4" in advice
    assert "3 columns repeat an earlier one up to sign and scale (e.g. 0 and 1, 0 and 2, 0 and 3)" in advice
    advice = bg.diagnose(np.eye(4), bg.Partition(np.arange(4), 4)).advice
    assert advice == ("given: update='add' is safe with 4 blocks per iteration (epsilon at most 0).",)
    alone = bg.diagnose(copies, bg.Partition(np.arange(4), 4), blocks_per_iter=1).advice
    assert alone[0] == "given: one block per iteration is safe with any update."


def test_advice_names_uneven_loads_masses_and_empty_columns():
    rng = np.random.default_rng(1)
    X = np.zeros((60, 12))
    X[:, :3] = rng.normal(size=(60, 3))
    X[np.arange(6), np.arange(3, 9)] = 1
    found = bg.diagnose(sp.csc_array(X), bg.Partition(np.repeat(np.arange(4), 3), 4), X[:, :3].sum(axis=1))
    advice = " ".join(found.advice)
    assert "the heaviest block has 3.87 times the mean number of nonzeros" in advice
    assert "times its share of the first gradient" in advice
    assert "3 columns are empty" in advice


def test_diagnose_refuses_what_is_no_partition(text_data):
    for wrong in ({}, {"random": 3}, "random"):
        with pytest.raises((TypeError, ValueError)):
            bg.diagnose(text_data.X, wrong)
    with pytest.raises(ValueError, match="blocks_per_iter=9 must be a whole number from 1 to 8"):
        bg.diagnose(text_data.X, bg.make_partition(text_data.X, n_blocks=8), blocks_per_iter=9)


def diagnose(*arguments, **environment):
    return run("diagnose", *arguments, **environment)


def test_json_is_the_diagnosis_of_the_same_partitions(text_data, text_npz):
    result = diagnose(
        text_npz, "--blocks", 8, "--blocks-per-iter", 3, "--kinds", "random,clustered", "--seed", 5, "--json"
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    seconds = found.pop("seconds")
    assert found.pop("data") == str(text_npz)
    kinds = ("random", "clustered")
    blocks = {kind: bg.make_partition(text_data.X, text_data.y, n_blocks=8, kind=kind, seed=5) for kind in kinds}
    loaded = bg.load(text_npz)
    expected = bg.diagnose(loaded.X, blocks, loaded.y, blocks_per_iter=3, seed=5).to_dict()
    assert found == json.loads(json.dumps(expected))
    assert set(seconds) == {"partition random", "partition clustered", "diagnosis"}


def test_several_files_give_one_json_object_each(text_npz):
    result = diagnose(text_npz, text_npz, "--blocks", 4, "--kinds", "contiguous", "--json")
    assert [json.loads(line)["data"] for line in result.stdout.splitlines()] == [str(text_npz)] * 2


@pytest.mark.parametrize("width", [80, 120])
def test_table_has_all_kinds_side_by_side_and_fits(text_npz, width):
    result = diagnose(text_npz, "--blocks", 8, COLUMNS=str(width))
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    header = next(line for line in lines if "random" in line)
    assert header.split() == [kind for kind in KINDS if kind != "contiguous"]
    assert all(len(line) <= width for line in lines[1:])
    for name in ("search", "rows", "proposition 3", "row sum", "eigenvalue"):
        assert any(line.startswith(f"rho_block, {name}") for line in lines)
    assert any(line.startswith("safe P, proven") for line in lines)
    scale, limit = (
        next(line.split()[-1] for line in lines if line.startswith(name))
        for name in ("best step scale, proven", "safe step scales, proven")
    )
    assert float(limit) == pytest.approx(2 * float(scale), rel=1e-3)
    assert "…" in next(line for line in lines if line.startswith("epsilon"))


def test_no_number_is_cut_off_where_the_terminal_is_narrow(text_npz):
    wide, narrow = (diagnose(text_npz, "--blocks", 8, COLUMNS=str(width)).stdout for width in (200, 80))
    numbers = re.findall(r"\d+\.\d+", next(line for line in wide.splitlines() if line.startswith("epsilon")))
    assert len(numbers) == 8  # a range for each kind
    assert set(numbers) <= set(re.findall(r"\d+\.\d+", narrow))
    assert "duplicates in different blocks" in narrow


def test_estimates_are_marked_in_the_table(text_npz):
    output = diagnose(text_npz, "--blocks", 8, "--kinds", "random", "--budget", 2e4).stdout
    assert "~ ≤" in next(line for line in output.splitlines() if line.startswith("rho_block, row sum"))
    assert any(line.startswith("safe P, by estimate") for line in output.splitlines())
    assert any(line.startswith("best step scale, by estimate") for line in output.splitlines())


def test_centred_columns_have_no_bound_by_rows(text_npz):
    output = diagnose(text_npz, "--blocks", 4, "--center").stdout
    assert "columns centred" in output
    assert "rho_block, rows" not in output
    assert "rho_block, weighted rows" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--kinds", "random,sorted"), "--kinds has 'sorted'; accepted are random"),
        (("--blocks", 0), "--blocks 0 must be a whole number from 1 to 400"),
        (("--blocks", 4, "--blocks-per-iter", 5), "--blocks-per-iter 5 must be a whole number from 1 to 4"),
        (("--threads", 0), "--threads 0 must be a whole number from 1 to 1024"),
        (("--budget", -1), "--budget -1.0 must be a number of at least 0"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(text_npz, arguments, message):
    result = diagnose(text_npz, *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert message in result.stderr
    assert result.stdout == ""


def test_a_missing_file_is_exit_code_1(tmp_path):
    result = diagnose(tmp_path / "none.npz")
    assert result.exit_code == 1
    assert "none.npz" in result.stderr


def test_the_limit_of_capped_blocks_is_an_option(text_data, text_npz):
    result = diagnose(text_npz, "--blocks", 8, "--kinds", "capped", "--max-load", 1.5, "--json")
    assert result.exit_code == 0, result.output
    load = json.loads(result.stdout)["partitions"]["capped"]["load_balance"]["value"]
    made = bg.make_partition(text_data.X, n_blocks=8, kind="capped", max_load=1.5).nonzeros(text_data.X)
    assert load == pytest.approx(made.max() / made.mean())
    refused = diagnose(text_npz, "--blocks", 8, "--kinds", "random", "--max-load", 1.5)
    assert refused.exit_code == 2
    assert "--max-load goes with capped blocks" in " ".join(refused.output.split())
