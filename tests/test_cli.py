"""The command line: what it prints, where, and with which exit code."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file
from typer.testing import CliRunner

import blockgreedy as bg
from blockgreedy.cli import app, shell
from blockgreedy.cli.fit import FitOptions
from blockgreedy.data import text_like
from blockgreedy.problem.losses import LOSSES
from blockgreedy.solvers.options import PRESETS
from blockgreedy.solvers.solve import FamilyArguments
from terminals import read_to_the_end

FAMILY = ("--method", "thread-greedy")
ENVIRONMENT = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
# CPU seconds until a process surely iterates: imports take about one, much longer under a sanitizer.
CPU_SECONDS_TO_START = 30 if "BLOCKGREEDY_SANITIZED" in os.environ else 3
KEYS = {
    *("data", "n_samples", "n_features", "nonzeros_X", "loss", "alpha", "alpha_max", "method", "fit_intercept"),
    *("intercept", "status", "message", "objective", "f_null", "gap", "relative_gap"),
    *("nonzeros", "n_iter", "seconds", "check_seconds", "n_threads"),
}
FAMILY_KEYS = {
    *("n_blocks", "blocks_per_iter", "partition", "per_block", "update", "greedy_rule", "scan", "atomic", "seed")
}


@pytest.fixture(scope="module")
def dataset():
    return text_like(n_samples=300, n_features=400, mean_nonzeros=15, n_topics=5, seed=1)


@pytest.fixture(scope="module")
def npz(dataset, tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "small.npz"
    bg.save(dataset, path)
    return path


def fit(*arguments):
    return CliRunner(env=ENVIRONMENT).invoke(app, ["fit", *map(str, arguments)])


def start(*arguments, stderr=subprocess.PIPE, **environment):
    """The command line in a process of its own, with Ctrl-C working whatever started the tests."""
    return subprocess.Popen(
        [sys.executable, "-m", "blockgreedy.cli", *map(str, arguments)],
        env={**os.environ, **ENVIRONMENT, **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=stderr,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


@pytest.mark.parametrize("method", ["auto", "thread-greedy"])
def test_json_is_the_result_of_the_same_solve(dataset, npz, method):
    arguments = ["--method", method] if method != "auto" else []
    common = ["--loss", "logistic", "--alpha-ratio", 0.1, "--blocks", 8, "--tol", 1e-5, "--json"]
    result = fit(npz, *common, *arguments)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert set(found) >= KEYS
    assert found["method"] == method
    assert set(found) & FAMILY_KEYS == (FAMILY_KEYS if method != "auto" else set())
    # an intercept by default, where the method has one
    problem = bg.Problem(dataset.X, dataset.y, loss="logistic", alpha=0.0, fit_intercept=method == "auto")
    problem = problem.with_alpha(0.1 * problem.alpha_max)
    solution = bg.solve(problem, method, n_blocks=8, tol=1e-5)
    assert found["objective"] == pytest.approx(problem.objective(solution.coef, solution.intercept), rel=1e-14)
    assert found["gap"] == solution.gap
    assert found["n_iter"] == solution.n_iter
    assert found["nonzeros"] == solution.nonzeros
    assert found["alpha"] == problem.alpha
    assert found["relative_gap"] == solution.gap / problem.null_model.objective <= 1e-5
    assert (found["n_samples"], found["n_features"], found["nonzeros_X"]) == (300, 400, dataset.X.nnz)
    assert found["status"] == "converged"
    if method != "auto":
        assert (found["n_blocks"], found["blocks_per_iter"]) == (8, 8)


def test_npz_and_svmlight_of_the_same_data_give_the_same_objective(dataset, npz, tmp_path):
    text = tmp_path / "small.svm"
    # 1/2 instead of ±1: any two labels will do. All columns must appear in the text for p to agree.
    dump_svmlight_file(dataset.X.astype(np.float64), np.where(dataset.y > 0, 2, 1), str(text), zero_based=False)
    common = ("--loss", "squared_hinge", "--alpha-ratio", 0.2, "--tol", 1e-8, "--json")
    results = [fit(path, *common) for path in (npz, text)]
    assert [result.exit_code for result in results] == [0, 0], results[-1].output
    first, second = (json.loads(result.stdout) for result in results)
    assert first["objective"] == pytest.approx(second["objective"], abs=first["gap"] + second["gap"])
    assert first["nonzeros_X"] == second["nonzeros_X"]


def test_summary_shows_problem_method_and_result(npz):
    result = fit(npz, "--loss", "huber", "--huber-delta", 2, "--alpha-ratio", 0.3, "--method", "shotgun", "--l2", 0.5)
    assert result.exit_code == 0, result.output
    for shown in (
        "300 × 400",
        "huber",
        "0.3 of alpha_max",
        "l2 0.5",
        "shotgun: 8 of 400",
        "converged",
        "null model",
    ):
        assert shown in result.stdout
    assert result.stderr == "Note: --method shotgun cannot fit an intercept; the default method (auto) fits one\n"


def test_summary_of_the_default_method_has_no_blocks_and_an_intercept_unless_refused(dataset, npz):
    plain = fit(npz, "--loss", "logistic", "--alpha-ratio", 0.1, "--no-intercept")
    asked = fit(npz, "--loss", "logistic", "--alpha-ratio", 0.1)
    assert (plain.exit_code, asked.exit_code) == (0, 0), plain.output + asked.output
    for result in (plain, asked):
        assert result.stderr == ""
        assert "auto" in result.stdout
        assert "update" not in result.stdout
        assert "blocks" not in result.stdout
    assert "intercept" not in plain.stdout
    problem = bg.Problem(dataset.X, dataset.y, loss="logistic", alpha=0.0, fit_intercept=True)
    solution = bg.solve(problem.with_alpha(0.1 * problem.alpha_max))
    assert solution.intercept != 0
    assert f"{solution.intercept:.10g}" in asked.stdout


def test_intercept_is_in_the_json(npz):
    found = [
        json.loads(fit(npz, "--alpha-ratio", 0.1, "--json", *extra).stdout) for extra in (("--no-intercept",), ())
    ]
    assert (found[0]["fit_intercept"], found[0]["intercept"]) == (False, 0.0)
    assert found[1]["fit_intercept"]
    assert found[1]["intercept"] != 0
    assert found[1]["f_null"] < found[0]["f_null"]


def test_file_names_with_brackets_are_shown_as_they_are(dataset, tmp_path):
    path = tmp_path / "a[bold]b.npz"
    bg.save(dataset, path)
    assert "a[bold]b.npz" in fit(path, "--alpha-ratio", 0.5).stdout


def test_trace_is_written_and_ends_with_the_result(npz, tmp_path):
    path = tmp_path / "run.csv"
    result = fit(
        *(npz, "--alpha-ratio", 0.2, "--method", "thread-greedy", "--trace", path, "--trace-iters", 3),
        *("--max-iter", 20, "--tol", 0, "--json"),
    )
    assert result.exit_code == 3
    trace = bg.Trace.from_csv(path)
    found = json.loads(result.stdout)
    assert trace["iteration"][:3].tolist() == [0, 3, 6]
    assert trace.records[-1].iteration == found["n_iter"] == 20
    assert trace["objective"].min() == pytest.approx(found["objective"], rel=1e-12)


def test_one_thread_and_two_give_the_same_json(npz):
    runs = [json.loads(fit(npz, "--alpha-ratio", 0.1, "--threads", n, "--json").stdout) for n in (1, 2)]
    assert runs[0]["objective"] == runs[1]["objective"]
    assert [run["n_threads"] for run in runs] == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("--tol", 0, "--max-iter", 7), "max_iter"),
        (("--method", "scd", "--tol", 0, "--max-seconds", 0.01, "--max-iter", 10**9), "max_seconds"),
    ],
)
def test_a_run_that_did_not_converge_exits_with_3(npz, arguments, status):
    result = fit(npz, "--loss", "logistic", "--alpha-ratio", 0.01, *arguments, "--json")
    assert (result.exit_code, json.loads(result.stdout)["status"]) == (3, status)


def test_a_diverged_run_exits_with_3_and_says_what_to_change(tmp_path):
    path = tmp_path / "twins.npz"
    column = np.linspace(-1, 1, 50)[:, None]
    bg.save(bg.Dataset(np.repeat(column, 8, axis=1), column.ravel()), path)
    result = fit(path, "--alpha-ratio", 0.01, "--method", "thread-greedy", "--blocks", 8, "--update", "add", "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["status"]) == (3, "diverged")
    assert "joint" in found["message"]
    assert np.isfinite(found["objective"])


def test_numbers_that_json_cannot_hold_become_null(npz):
    result = fit(npz, "--alpha-ratio", 0.5, "--tol", "inf", "--json")
    found = json.loads(result.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert (result.exit_code, found["tol"]) == (0, None)


@pytest.mark.parametrize("alphas", [(), ("--alpha", 1, "--alpha-ratio", 0.1)], ids=["neither", "both"])
def test_exactly_one_alpha_is_needed(npz, alphas):
    result = fit(npz, *alphas)
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
        ((*FAMILY, "--blocks", 0), "--blocks 0 must be a whole number from 1 to 400"),
        ((*FAMILY, "--intercept"), "--method thread-greedy does not support fit_intercept; use --method auto"),
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
def test_a_wrong_value_exits_with_2_and_a_sentence_in_options(npz, arguments, message):
    result = fit(npz, "--alpha", 0.01, "--quiet", *arguments)
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
    result = CliRunner(env=ENVIRONMENT).invoke(app, [command, "no-such-file.npz", *map(str, arguments)])
    assert result.exit_code == 2, result.output
    assert "no-such-file" not in result.stderr


def test_the_loss_follows_the_labels_and_is_said(dataset, tmp_path):
    def fitted(name, y, *extra):
        bg.save(bg.Dataset(dataset.X, y), tmp_path / name)
        result = fit(tmp_path / name, "--alpha-ratio", 0.5, "--json", *extra)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)["loss"], result.stderr

    rng = np.random.default_rng(0)
    words = np.where(dataset.y > 0, "spam", "ham")
    assert fitted("words.npz", words) == (
        "logistic",
        "Note: the labels have two values, ham and spam, so a logistic regression is fitted (--loss squared fits a "
        "regression)\n",
    )
    assert fitted("numbers.npz", rng.normal(size=300))[0] == "squared"
    loss, said = fitted("five.npz", np.arange(300) % 5)
    assert (loss, said.count("\n")) == ("squared", 1)
    assert "5 different values" in said
    assert "If they are classes, fit one model per class" in said
    assert fitted("five.npz", np.arange(300) % 5, "--quiet")[1] == ""
    assert fitted("two.npz", dataset.y, "--loss", "squared") == ("squared", "")
    bg.save(bg.Dataset(dataset.X, np.array(["a", "b", "c"])[np.arange(300) % 3]), tmp_path / "three.npz")
    result = fit(tmp_path / "three.npz", "--alpha", 1)
    assert result.exit_code == 2
    assert "text with 3 different values" in result.stderr


def test_a_mean_far_from_0_without_intercept_is_said(dataset, tmp_path):
    bg.save(bg.Dataset(dataset.X, 1e6 + np.random.default_rng(0).normal(size=300)), tmp_path / "far.npz")
    common = (tmp_path / "far.npz", "--loss", "squared", "--alpha-ratio", 0.5)
    assert fit(*common).stderr == ""
    assert "the model has no intercept" in fit(*common, "--no-intercept").stderr


def test_flags_show_no_type_in_the_help():
    for command in (["fit"], ["cv"], ["path"], ["predict"], ["partition"], ["data", "info"]):
        shown = CliRunner(env=ENVIRONMENT).invoke(app, [*command, "--help"]).stdout
        assert "<bool>" not in shown
        assert "usual" not in shown


@pytest.mark.parametrize("arguments", [("--alpha-ratio", -0.1), ("--alpha", -1), ("--alpha", "nan")])
def test_a_negative_or_nan_alpha_exits_with_2(npz, arguments):
    result = fit(npz, *arguments)
    assert result.exit_code == 2
    assert "must be a finite number of at least 0" in result.stderr


def test_labels_of_three_values_exit_with_2_for_a_classifier(dataset, tmp_path):
    path = tmp_path / "three.npz"
    bg.save(bg.Dataset(dataset.X, np.arange(300) % 3), path)
    result = fit(path, "--loss", "logistic", "--alpha", 0.1)
    assert result.exit_code == 2
    assert "needs exactly two" in result.stderr


@pytest.mark.parametrize("arguments", [("--no-such-option",), ("--alpha", "many"), ("--max-iter", 1.5)])
def test_options_that_cannot_be_parsed_exit_with_2(npz, arguments):
    result = fit(npz, *arguments)
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
def test_a_trace_that_cannot_be_written_exits_with_1_after_the_result(npz):
    result = fit(npz, "--alpha-ratio", 0.5, "--trace", "/dev/full", "--json")
    assert result.exit_code == 1
    assert "the trace cannot be written" in result.stderr
    assert json.loads(result.stdout)["status"] == "converged"


def test_help_has_examples_groups_and_every_loss():
    result = fit("--help")
    assert result.exit_code == 0
    for shown in (
        "Examples",
        "blockgreedy fit",
        "Problem",
        "Method",
        "Stopping",
        "Output",
        "squared_hinge",
        "--alpha-ratio",
    ):
        assert shown in result.stdout


def test_defaults_are_those_of_the_library():
    library = {**inspect.signature(bg.Problem).parameters, **inspect.signature(bg.solve).parameters}
    chosen = {"alpha", "loss", "fit_intercept"}  # the command line chooses by the labels, and fits an intercept
    shared = [field for field in dataclasses.fields(FitOptions) if field.name in library and field.name not in chosen]
    assert len(shared) >= 14
    for field in shared:
        assert field.default.default == library[field.name].default, field.name
    # those of the family are left to the library unless given: the default method refuses them
    family = [field for field in dataclasses.fields(FitOptions) if field.name in FamilyArguments.__annotations__]
    assert len(family) >= 7
    for field in family:
        assert field.default.default in (None, False), field.name


def test_module_and_console_script_print_the_version():
    script = Path(sys.executable).with_name("blockgreedy")
    for command in ([sys.executable, "-m", "blockgreedy.cli"], [str(script)] if script.exists() else []):
        if command:
            done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
            assert done.stdout == f"blockgreedy {bg.__version__}\n"


def test_quiet_prints_nothing_on_stderr_and_a_pipe_gets_no_progress(npz):
    for extra in (["--quiet"], []):
        process = start(
            *("fit", npz, "--method", "scd", "--alpha-ratio", 0.01, "--max-seconds", 0.5, "--tol", 0),
            *("--loss", "logistic", "--no-intercept", *extra),
        )
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (3, "")
        assert "max_seconds" in out


@pytest.mark.parametrize("quiet", [False, True])
def test_progress_is_drawn_on_a_terminal_unless_quiet_and_stdout_stays_json(npz, quiet):
    terminal, stderr = pty.openpty()
    arguments = ["--method", "scd", "--alpha-ratio", 0.01, "--max-seconds", 0.5, "--tol", 0, "--json"]
    process = start("fit", npz, *arguments, *["--quiet"] * quiet, stderr=stderr, TERM="xterm")
    os.close(stderr)
    shown = read_to_the_end(terminal)
    out, _ = process.communicate(timeout=60)
    assert json.loads(out)["status"] == "max_seconds"
    assert (b"relative gap" in shown) is not quiet
    assert shown.count(b"relative gap") < 20  # ten times a second, for half a second
    if quiet:
        assert shown == b""


@pytest.mark.parametrize("how", ["json", "summary"])
def test_ctrl_c_stops_within_two_seconds_and_reports_the_best_point(npz, tmp_path, how):
    trace = tmp_path / "run.csv"
    # alpha near 0 and tol=0: it would run for hours.
    arguments = [
        "--method",
        "scd",
        "--loss",
        "logistic",
        "--no-intercept",
        "--alpha-ratio",
        1e-6,
        "--tol",
        0,
        "--max-iter",
        10**9,
        "--trace",
        trace,
    ]
    model = trace.with_name("model.npz")
    process = start("fit", npz, *arguments, "--model", model, *(["--json"] if how == "json" else []))
    try:
        _wait_until_it_iterates(process)
        process.send_signal(signal.SIGINT)
        sent = time.perf_counter()
        out, err = process.communicate(timeout=30)
        waited = time.perf_counter() - sent
    finally:
        process.kill()
    assert (process.returncode, err) == (3, "")
    assert waited < 2
    if how == "json":
        found = json.loads(out)
        assert found["status"] == "interrupted"
        assert found["objective"] < found["f_null"]
    else:
        assert "interrupted" in out
    assert len(bg.Trace.from_csv(trace)) > 1
    saved = bg.Model.load(model)
    assert saved.statuses == ("interrupted",)
    assert saved.objectives[0] < saved.f_null


def _wait_until_it_iterates(process):
    deadline = time.monotonic() + 20 * CPU_SECONDS_TO_START
    while time.monotonic() < deadline and process.poll() is None:
        ticks = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        if sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK") > CPU_SECONDS_TO_START:
            return
        time.sleep(0.05)
    raise AssertionError(f"the process did not get going: {process.communicate()}")


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


def test_help_is_wrapped_by_the_terminal_alone():
    lines = [line.strip() for line in fit("--help").stdout.splitlines()]
    assert any(line.startswith("If the labels have two values") and len(line) > 150 for line in lines)
