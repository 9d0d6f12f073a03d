"""The command line: what it prints, where, and with which exit code."""

from __future__ import annotations

import dataclasses
import inspect
import json

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

import blockgreedy as bg
from blockgreedy.cli.fit import FitOptions
from blockgreedy.solvers.family_arguments import FamilyArguments
from command_line import fit, run

KEYS = {
    *("data", "n_samples", "n_features", "nonzeros_X", "loss", "alpha", "alpha_max", "method", "fit_intercept"),
    *("intercept", "status", "message", "objective", "f_null", "gap", "relative_gap"),
    *("nonzeros", "n_iter", "seconds", "check_seconds", "n_threads"),
}
FAMILY_KEYS = {
    *("n_blocks", "blocks_per_iter", "partition", "per_block", "update", "greedy_rule", "scan", "atomic", "seed")
}


@pytest.mark.parametrize("method", ["auto", "thread-greedy"])
def test_json_is_the_result_of_the_same_solve(text_data, text_npz, method):
    arguments = ["--method", method] if method != "auto" else []
    common = ["--loss", "logistic", "--alpha-ratio", 0.1, "--blocks", 8, "--tol", 1e-5, "--json"]
    result = fit(text_npz, *common, *arguments)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert set(found) >= KEYS
    assert found["method"] == method
    assert set(found) & FAMILY_KEYS == (FAMILY_KEYS if method != "auto" else set())
    # an intercept by default
    problem = bg.Problem(text_data.X, text_data.y, loss="logistic", alpha=0.0, fit_intercept=True)
    problem = problem.with_alpha(0.1 * problem.alpha_max)
    solution = bg.solve(problem, method, n_blocks=8, tol=1e-5)
    assert found["objective"] == pytest.approx(problem.objective(solution.coef, solution.intercept), rel=1e-14)
    assert found["gap"] == solution.gap
    assert found["n_iter"] == solution.n_iter
    assert found["nonzeros"] == solution.nonzeros
    assert found["alpha"] == problem.alpha
    assert found["relative_gap"] == solution.gap / problem.null_model.objective <= 1e-5
    assert (found["n_samples"], found["n_features"], found["nonzeros_X"]) == (300, 400, text_data.X.nnz)
    assert found["status"] == "converged"
    if method != "auto":
        assert (found["n_blocks"], found["blocks_per_iter"]) == (8, 8)


def test_npz_and_svmlight_of_the_same_data_give_the_same_objective(text_data, text_npz, tmp_path):
    text = tmp_path / "small.svm"
    # 1/2 instead of ±1: any two labels will do. All columns must appear in the text for p to agree.
    dump_svmlight_file(text_data.X.astype(np.float64), np.where(text_data.y > 0, 2, 1), str(text), zero_based=False)
    common = ("--loss", "squared_hinge", "--alpha-ratio", 0.2, "--tol", 1e-8, "--json")
    results = [fit(path, *common) for path in (text_npz, text)]
    assert [result.exit_code for result in results] == [0, 0], results[-1].output
    first, second = (json.loads(result.stdout) for result in results)
    assert first["objective"] == pytest.approx(second["objective"], abs=first["gap"] + second["gap"])
    assert first["nonzeros_X"] == second["nonzeros_X"]


def test_summary_shows_problem_method_and_result(text_npz):
    result = fit(
        text_npz, "--loss", "huber", "--huber-delta", 2, "--alpha-ratio", 0.3, "--method", "shotgun", "--l2", 0.5
    )
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
    assert ", intercept" in result.stdout
    assert result.stderr == ""


def test_summary_of_the_default_method_has_no_blocks_and_an_intercept_unless_refused(text_data, text_npz):
    plain = fit(text_npz, "--loss", "logistic", "--alpha-ratio", 0.1, "--no-intercept")
    asked = fit(text_npz, "--loss", "logistic", "--alpha-ratio", 0.1)
    assert (plain.exit_code, asked.exit_code) == (0, 0), plain.output + asked.output
    for result in (plain, asked):
        assert result.stderr == ""
        assert "auto" in result.stdout
        assert "update" not in result.stdout
        assert "blocks" not in result.stdout
    assert "intercept" not in plain.stdout
    problem = bg.Problem(text_data.X, text_data.y, loss="logistic", alpha=0.0, fit_intercept=True)
    solution = bg.solve(problem.with_alpha(0.1 * problem.alpha_max))
    assert solution.intercept != 0
    assert f"{solution.intercept:.10g}" in asked.stdout


def test_intercept_is_in_the_json(text_npz):
    found = [
        json.loads(fit(text_npz, "--alpha-ratio", 0.1, "--json", *extra).stdout)
        for extra in (("--no-intercept",), ())
    ]
    assert (found[0]["fit_intercept"], found[0]["intercept"]) == (False, 0.0)
    assert found[1]["fit_intercept"]
    assert found[1]["intercept"] != 0
    assert found[1]["f_null"] < found[0]["f_null"]


def test_file_names_with_brackets_are_shown_as_they_are(text_data, tmp_path):
    path = tmp_path / "a[bold]b.npz"
    bg.save(text_data, path)
    assert "a[bold]b.npz" in fit(path, "--alpha-ratio", 0.5).stdout


def test_trace_is_written_and_ends_with_the_result(text_npz, tmp_path):
    path = tmp_path / "run.csv"
    result = fit(
        *(text_npz, "--alpha-ratio", 0.2, "--method", "thread-greedy", "--trace", path, "--trace-iters", 3),
        *("--max-iter", 20, "--tol", 0, "--json"),
    )
    assert result.exit_code == 3
    trace = bg.Trace.from_csv(path)
    found = json.loads(result.stdout)
    assert trace["iteration"][:3].tolist() == [0, 3, 6]
    assert trace.records[-1].iteration == found["n_iter"] == 20
    assert trace["objective"].min() == pytest.approx(found["objective"], rel=1e-12)


def test_one_thread_and_two_give_the_same_json(text_npz):
    runs = [json.loads(fit(text_npz, "--alpha-ratio", 0.1, "--threads", n, "--json").stdout) for n in (1, 2)]
    assert runs[0]["objective"] == runs[1]["objective"]
    assert [run["n_threads"] for run in runs] == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("--tol", 0, "--max-iter", 7), "max_iter"),
        (("--method", "scd", "--tol", 0, "--max-seconds", 0.01, "--max-iter", 10**9), "max_seconds"),
    ],
)
def test_a_run_that_did_not_converge_exits_with_3(text_npz, arguments, status):
    result = fit(text_npz, "--loss", "logistic", "--alpha-ratio", 0.01, *arguments, "--json")
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


def test_numbers_that_json_cannot_hold_become_null(text_npz):
    result = fit(text_npz, "--alpha-ratio", 0.5, "--tol", "inf", "--json")
    found = json.loads(result.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert (result.exit_code, found["tol"]) == (0, None)


def test_the_loss_follows_the_labels_and_is_said(text_data, tmp_path):
    def fitted(name, y, *extra):
        bg.save(bg.Dataset(text_data.X, y), tmp_path / name)
        result = fit(tmp_path / name, "--alpha-ratio", 0.5, "--json", *extra)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)["loss"], result.stderr

    rng = np.random.default_rng(0)
    words = np.where(text_data.y > 0, "spam", "ham")
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
    assert fitted("two.npz", text_data.y, "--loss", "squared") == ("squared", "")
    bg.save(bg.Dataset(text_data.X, np.array(["a", "b", "c"])[np.arange(300) % 3]), tmp_path / "three.npz")
    result = fit(tmp_path / "three.npz", "--alpha", 1)
    assert result.exit_code == 2
    assert "text with 3 different values" in result.stderr


def test_a_mean_far_from_0_without_intercept_is_said(text_data, tmp_path):
    bg.save(bg.Dataset(text_data.X, 1e6 + np.random.default_rng(0).normal(size=300)), tmp_path / "far.npz")
    common = (tmp_path / "far.npz", "--loss", "squared", "--alpha-ratio", 0.5)
    assert fit(*common).stderr == ""
    assert "the model has no intercept" in fit(*common, "--no-intercept").stderr


def test_flags_show_no_type_in_the_help():
    for command in (["fit"], ["cv"], ["path"], ["predict"], ["partition"], ["data", "info"]):
        shown = run(*command, "--help").stdout
        assert "<bool>" not in shown
        assert "usual" not in shown


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


def test_help_is_wrapped_by_the_terminal_alone():
    lines = [line.strip() for line in fit("--help").stdout.splitlines()]
    assert any(line.startswith("If the labels have two values") and len(line) > 150 for line in lines)
