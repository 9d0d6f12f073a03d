"""The warning before runs that the theory does not cover, and the spectral radius in the trace."""

from __future__ import annotations

import csv
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

import blockgreedy as bg
from blockgreedy.cli import app
from blockgreedy.partitions.theory import spectral_radius
from conftest import random_problem


def copies(n_copies, **penalty):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(30, 1)), n_copies, axis=1) * np.arange(1, n_copies + 1)
    return bg.Problem(X, rng.normal(size=30), alpha=1e-3, **penalty)


def run(problem, **settings):
    return bg.solve(problem, "block-greedy", update="add", max_iter=5, **settings)


def warnings_of(problem, **settings):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(problem, **settings)
    return [str(warning.message) for warning in caught if warning.category is bg.ConvergenceRiskWarning]


def test_epsilon_of_1_or_more_is_warned_of_with_the_p_that_is_safe():
    """Eight copies of a column: rho_block is 8 and epsilon P − 1. The norms of X do not matter."""
    (message,) = warnings_of(copies(8), n_blocks=8, blocks_per_iter=4)
    assert message.startswith("epsilon is at least 3 (it must be below 1)")
    assert "rho_block is at least 8" in message
    assert "Surely safe: blocks_per_iter=1;" in message
    assert warnings_of(copies(8), n_blocks=8, blocks_per_iter=1) == []


def test_two_copies_in_two_blocks_are_warned_of_though_epsilon_is_just_1():
    assert len(warnings_of(copies(2), n_blocks=2)) == 1
    assert warnings_of(copies(2), n_blocks=1) == []


def test_the_safe_p_follows_from_the_blocks_that_meet_in_a_row():
    """Pairs of copies: each row touches 2 of 8 blocks, so rho_block is 2 and all but one block are safe."""
    X = np.kron(np.eye(4), np.ones((5, 2)))
    (message,) = warnings_of(bg.Problem(X, np.ones(20), alpha=1e-3), n_blocks=8, partition="contiguous")
    assert "Surely safe: blocks_per_iter=7 or less;" in message


def test_orthogonal_columns_and_safe_updates_are_not_warned_of():
    problem = bg.Problem(np.eye(12), np.arange(12.0), alpha=1e-3)
    assert warnings_of(problem, n_blocks=4) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for update in ("joint", "sweep", "line-search"):
            bg.solve(copies(4), "thread-greedy", n_blocks=4, update=update, per_block=1, max_iter=5)
        bg.solve(copies(4))


def test_excluded_copies_do_not_count():
    weights = np.array([1.0, np.inf, np.inf, np.inf])
    assert warnings_of(copies(4, penalty_weights=weights), n_blocks=4) == []
    assert warnings_of(copies(4, lower=np.zeros(4), upper=np.array([1.0, 0, 0, 0])), n_blocks=4) == []


def test_several_added_steps_per_block_are_warned_of():
    problem = bg.Problem(np.eye(12), np.arange(12.0), alpha=1e-3)
    (message,) = warnings_of(problem, n_blocks=4, per_block=2)
    assert message.startswith("per_block=2 with update='add' is not covered by the theory")
    assert len(warnings_of(problem, n_blocks=4, blocks_per_iter=1, per_block=2)) == 1


def test_the_scale_of_the_steps_decides_what_is_warned_of():
    """Eight copies in eight blocks: epsilon is 7, and scales below 2/(1 + 7) are safe."""
    assert warnings_of(copies(8), n_blocks=8, step_scale=0.249) == []
    (message,) = warnings_of(copies(8), n_blocks=8, step_scale=0.251)
    assert message.startswith("epsilon is at least 7 (it must be below 6.97)")
    assert "with update='add' and step_scale=0.251" in message
    assert "Surely safe: blocks_per_iter=7 or less; or step_scale='theory'" in message
    assert warnings_of(copies(8), n_blocks=8, blocks_per_iter=7, step_scale=0.251) == []


def test_the_step_scale_of_the_theory_is_not_warned_of_but_several_features_per_block_are():
    assert warnings_of(copies(8), n_blocks=8, step_scale="theory") == []
    (message,) = warnings_of(copies(8), n_blocks=4, per_block=2, step_scale="theory")
    assert message.startswith("per_block=2 with update='add' is not covered by the theory")


def test_steps_that_overshoot_alone_are_warned_of():
    (message,) = warnings_of(bg.Problem(np.eye(4), np.ones(4), alpha=1e-3), n_blocks=1, step_scale=2)
    assert message.startswith("step_scale=2 is not below 2: even a single step may raise the objective")
    assert warnings_of(bg.Problem(np.eye(4), np.ones(4), alpha=1e-3), n_blocks=1, step_scale=1.9) == []


def test_the_warning_points_at_the_call_of_solve():
    with pytest.warns(bg.ConvergenceRiskWarning) as caught:
        bg.solve(copies(3), "thread-greedy", n_blocks=3, update="add", per_block=2, max_iter=5)
    assert [warning.filename for warning in caught] == [__file__] * 2


@pytest.mark.parametrize("seed", range(5))
def test_what_is_claimed_is_never_more_than_the_truth(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 9)) + rng.normal(size=(12, 1))
    problem = bg.Problem(X, rng.normal(size=12), alpha=1e-3)
    partition = bg.make_partition(X, n_blocks=3, seed=seed)
    exact = bg.theory.rho_block(X, partition).exact.value
    said = warnings_of(problem, partition=partition)
    assert bool(said) <= (exact >= 2)
    for message in said:
        claimed = float(message.split("rho_block is at least ")[1].split(")")[0])
        assert claimed <= exact * 1.005  # three digits are printed


def test_the_command_line_prints_the_risk_as_one_line_on_stderr(tmp_path):
    problem = copies(4)
    bg.save(bg.Dataset(problem.X, problem.y), tmp_path / "copies.npz")
    arguments = ["fit", str(tmp_path / "copies.npz"), "--alpha", "1e-3", "--method", "thread-greedy", "--blocks", "4"]
    arguments += ["--loss", "squared", "--no-intercept"]
    result = CliRunner().invoke(app, [*arguments, "--update", "add", "--max-iter", "5", "--json"])
    lines = result.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("Warning: epsilon is at least 3 (it must be below 1)")
    assert result.stdout.startswith("{")
    assert CliRunner().invoke(app, [*arguments, "--json"]).stderr == ""


def test_trace_holds_the_spectral_radius_of_the_accepted_features(rng):
    problem = random_problem(rng, "logistic", 0.01)
    settings = {"n_blocks": 6, "max_iter": 12, "tol": 0}
    trace = bg.solve(problem, "thread-greedy", trace_iters=1, trace_spectral_radius=True, **settings).trace
    from blockgreedy.backends.cpu import block_greedy
    from blockgreedy.problem.core_problem import CoreProblem
    from blockgreedy.solvers.options import FamilyOptions

    partition = bg.make_partition(problem.X, n_blocks=6)
    engine = block_greedy(CoreProblem(problem, 1), partition, FamilyOptions(6, 6))
    expected = [np.nan]
    for _ in range(12):
        engine.run(1, 10.0)
        columns = problem.X[:, list(engine.accepted)].toarray()
        expected.append(np.linalg.norm(columns / np.linalg.norm(columns, axis=0), 2) ** 2)
    np.testing.assert_allclose(trace["spectral_radius"], expected, rtol=1e-12)
    assert np.all(trace["spectral_radius"][1:] >= 1)
    without = bg.solve(problem, "thread-greedy", trace_iters=1, **settings).trace
    assert np.all(np.isnan(without["spectral_radius"]))
    np.testing.assert_array_equal(without["objective"], trace["objective"])


def test_the_spectral_radius_survives_csv(rng, tmp_path):
    problem = random_problem(rng)
    trace = bg.solve(problem, "thread-greedy", n_blocks=4, trace_spectral_radius=True).trace
    trace.to_csv(tmp_path / "run.csv")
    np.testing.assert_array_equal(
        bg.Trace.from_csv(tmp_path / "run.csv")["spectral_radius"], trace["spectral_radius"]
    )


def test_the_command_line_can_ask_for_the_spectral_radius(tmp_path):
    data = bg.data.text_like(100, 120, 10.0, n_topics=5)
    bg.save(data, tmp_path / "data.npz")
    arguments = [
        "fit",
        str(tmp_path / "data.npz"),
        "--alpha-ratio",
        "0.1",
        "--method",
        "thread-greedy",
        "--blocks",
        "4",
    ]
    arguments += ["--trace", str(tmp_path / "run.csv"), "--trace-spectral-radius", "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    with open(tmp_path / "run.csv", newline="") as file:
        radii = [float(row["spectral_radius"]) for row in csv.DictReader(file)]
    assert np.isnan(radii[0])
    assert np.all(np.array(radii[1:]) >= 1)


def test_wrong_settings_of_the_trace_are_refused():
    with pytest.raises(ValueError, match="trace_spectral_radius=1 must be True or False"):
        bg.solve(copies(2), "thread-greedy", trace_spectral_radius=1)
    with pytest.raises(ValueError, match="trace_spectral_radius=True is not for method='auto', the default"):
        bg.solve(copies(2), trace_spectral_radius=True)


def test_one_accepted_feature_has_radius_1():
    X = np.random.default_rng(1).normal(size=(10, 4))
    assert spectral_radius(X, [2]) == 1.0
