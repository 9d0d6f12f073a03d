"""The telemetry that the core keeps is that of rules in Python, and of the specification."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import blockgreedy as bg
from blockgreedy.backends import reference
from blockgreedy.base.random import Random
from blockgreedy.cli import app
from blockgreedy.solvers.options import FamilyOptions
from conftest import LOSSES, UPDATES, press_ctrl_c_after, random_problem
from test_family_rows import rows

SIZES = [("scd", 40, 1), ("shotgun", 40, 7), ("greedy", 1, 1), ("thread-greedy", 8, 8), ("block-greedy", 8, 3)]


def assert_same(one, other, rounding=1e-12):
    """Equal blocks and features; steps and gains equal but for rounding."""
    for name in ("iteration", "selected", "accepted"):
        assert len(one[name]) == len(other[name])
        for a, b in zip(one[name], other[name], strict=True):
            np.testing.assert_array_equal(a, b)
    for name in ("steps", "gains", "objective", "spectral_radius"):
        for a, b in zip(one[name], other[name], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=rounding)


@pytest.mark.filterwarnings("ignore::blockgreedy.ConvergenceRiskWarning")
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize(("method", "n_blocks", "per_iter"), SIZES, ids=[size[0] for size in SIZES])
def test_it_is_that_of_rules_in_python(rng, method, n_blocks, per_iter, update):
    density = 0.05 if update in ("add", "line-search") else 0.3
    problem = random_problem(rng, "logistic", 0.1, n=120, density=density, **rows(rng)["all"])
    options = {"n_blocks": n_blocks, "blocks_per_iter": per_iter, "update": update, "max_iter": 30, "tol": 0.0}
    options |= {"objective_iters": 4, "spectral_radius_iters": 3, "telemetry": True, "seed": 3}
    core, python = bg.solve(problem, method, **options), bg.family.run(problem, method, **options)
    assert len(core.telemetry) == core.n_iter == 30
    assert_same(core.telemetry, python.telemetry)
    number, any_accepted = (
        core.telemetry["iteration"],
        np.array([len(some) > 0 for some in core.telemetry["accepted"]]),
    )
    np.testing.assert_array_equal(np.isfinite(core.telemetry["objective"]), number % 4 == 0)
    np.testing.assert_array_equal(np.isfinite(core.telemetry["spectral_radius"]), (number % 3 == 0) & any_accepted)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("greedy_rule", ["gain", "step"])
@pytest.mark.parametrize("per_block", [1, 3])
def test_it_is_that_of_the_reference(rng, loss, greedy_rule, per_block):
    problem = random_problem(rng, loss, 0.1, n=120, **rows(rng)["all"])
    settings = {"per_block": per_block, "greedy_rule": greedy_rule, "seed": 5}
    options = FamilyOptions(8, 3, **settings)
    partition = bg.make_partition(problem, n_blocks=8, seed=1)
    solution = bg.solve(
        problem,
        "block-greedy",
        partition=partition,
        blocks_per_iter=3,
        max_iter=20,
        tol=0.0,
        telemetry=True,
        **settings,
    )
    random, w, b = Random(5), np.zeros(40), reference.fitted_intercept(problem, np.zeros(40), 0.0)
    specified = reference.block_greedy(problem, partition.block_of, options)
    for row in solution.telemetry:
        after, intercept, accepted = next(specified)
        assert row.selected.tolist() == random.draw_subset(8, 3)
        assert row.accepted.tolist() == accepted
        np.testing.assert_allclose(row.steps, (after - w)[accepted], rtol=1e-9, atol=1e-13)
        penalty, grad = problem.penalty.at(accepted), problem.gradient(w, b)[accepted]
        bound = reference.curvature(problem, accepted)
        gain = penalty.gain(w[accepted], penalty.prox(w[accepted], grad, bound), grad, bound)
        np.testing.assert_allclose(row.gains, gain, rtol=1e-9, atol=1e-15)
        w, b = after, intercept


@pytest.mark.parametrize("max_iter", [7, 23, 40])
@pytest.mark.parametrize("run", [bg.solve, bg.family.run], ids=["solve", "run"])
def test_the_last_objective_is_that_of_the_trace(rng, run, max_iter):
    """The last iteration ends no round of ⌈B/P⌉, and the intercept is fitted for the check of the gap alone."""
    problem = random_problem(rng, "logistic", 0.1, n=120, **rows(rng)["all"])
    options = {"n_blocks": 32, "blocks_per_iter": 3, "max_iter": max_iter, "tol": 0.0, "trace_iters": 1}
    found = run(problem, "block-greedy", telemetry=True, objective_iters=1, **options)
    np.testing.assert_array_equal(found.telemetry["objective"], found.trace["objective"][1:])
    assert found.telemetry["objective"][-1] == pytest.approx(found.objective, rel=1e-12)
    sparse = run(problem, "block-greedy", telemetry=True, objective_iters=5, **options)
    number = sparse.telemetry["iteration"]
    np.testing.assert_array_equal(np.isfinite(sparse.telemetry["objective"]), number % 5 == 0)


@pytest.mark.parametrize("every", [None, 1, 7])
def test_recording_changes_nothing(rng, every):
    problem = random_problem(rng, "logistic", 0.1, n=120, **rows(rng)["all"])
    options = {"n_blocks": 8, "blocks_per_iter": 3, "tol": 1e-5}
    plain = bg.solve(problem, "block-greedy", **options)
    kept = bg.solve(problem, "block-greedy", telemetry=True, objective_iters=every, **options)
    assert plain.telemetry is None
    assert (kept.n_iter, kept.status) == (plain.n_iter, "converged")
    np.testing.assert_array_equal(kept.coef, plain.coef)
    assert len(kept.telemetry) == kept.n_iter


def test_steps_add_up_to_the_weights(rng):
    problem = random_problem(rng, "squared", 0.1, n=120, **rows(rng)["all"])
    solution = bg.solve(problem, "thread-greedy", n_blocks=8, max_iter=40, tol=0.0, telemetry=True)
    moves = solution.telemetry.moves()
    np.testing.assert_allclose(np.bincount(moves["feature"], moves["step"], 40), solution.coef, atol=1e-12)
    last = bg.solve(problem, "thread-greedy", n_blocks=8, max_iter=40, tol=0.0, telemetry=True, objective_iters=40)
    assert last.telemetry["objective"][-1] == pytest.approx(last.objective, rel=1e-12)


def test_a_diverging_run_keeps_all_of_its_iterations(rng):
    column = rng.normal(size=(50, 1))
    problem = bg.Problem(np.repeat(column, 8, axis=1), column.ravel(), alpha=0.01)
    with pytest.warns(bg.ConvergenceRiskWarning):
        found = bg.solve(problem, "thread-greedy", n_blocks=8, update="add", max_iter=5000, telemetry=True)
    assert found.status == "diverged"
    assert len(found.telemetry) == found.n_iter


def test_ctrl_c_loses_no_iteration():
    data = bg.data.text_like(300, 400, 15.0, seed=1)
    problem = bg.Problem(data, loss="logistic", alpha=1e-3, fit_intercept=True)
    for number in range(8):
        press_ctrl_c_after(0.05 + 0.007 * number)
        found = bg.solve(problem, "scd", tol=0.0, max_iter=10**9, telemetry=True, objective_iters=50)
        assert found.status == "interrupted"
        assert len(found.telemetry) == found.n_iter > 0


def test_it_is_refused_where_it_cannot_be_had(rng):
    problem = random_problem(rng)
    with pytest.raises(ValueError, match="telemetry=True is not for method='auto'"):
        bg.solve(problem, telemetry=True)
    with pytest.raises(ValueError, match="telemetry=True needs asynchronous=False: threads"):
        bg.solve(problem, "thread-greedy", update="add", asynchronous=True, telemetry=True)
    with pytest.raises(ValueError, match="objective_iters=5 needs telemetry=True"):
        bg.solve(problem, "thread-greedy", objective_iters=5)
    with pytest.raises(ValueError, match="spectral_radius_iters=0 must be a whole number of at least 1"):
        bg.solve(problem, "thread-greedy", telemetry=True, spectral_radius_iters=0)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_command_line_writes_it(tmp_path, suffix):
    data = bg.data.text_like(200, 400, 8.0)
    bg.save(data, tmp_path / "data.npz")
    path = tmp_path / f"rows.{suffix}"
    arguments = ["fit", str(tmp_path / "data.npz"), "--alpha", "0.01", "--loss", "logistic"]
    family = ["--method", "thread-greedy", "--blocks", "4"]
    result = CliRunner().invoke(app, [*arguments, *family, "--telemetry", str(path), "--json"])
    assert result.exit_code == 0, result.output
    read = bg.family.Telemetry.from_csv if suffix == "csv" else bg.family.Telemetry.from_parquet
    problem = bg.Problem(data, loss="logistic", alpha=0.01, fit_intercept=True)
    assert_same(read(path), bg.solve(problem, "thread-greedy", n_blocks=4, telemetry=True).telemetry, 0.0)
    assert len(read(path)) == json.loads(result.stdout)["n_iter"]
    refused = CliRunner().invoke(app, [*arguments, "--telemetry", str(path)])
    assert refused.exit_code == 2
    assert "--telemetry is not for --method auto" in " ".join(refused.output.split())
