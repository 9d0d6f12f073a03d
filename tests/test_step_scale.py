"""update="add" with a step scale: what the names stand for, what it does to a run, and what is refused."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

import blockgreedy as bg
from blockgreedy.cli import app
from conftest import LOSSES, random_problem

unsafe = pytest.mark.filterwarnings("ignore::blockgreedy.ConvergenceRiskWarning")


def copies(n_copies, loss="squared", **penalty):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(30, 1)), n_copies, axis=1) * np.arange(1, n_copies + 1)
    return bg.Problem(X, np.sign(rng.normal(size=30)), loss=loss, alpha=1e-3, **penalty)


def correlated(loss, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 24)) + 2 * rng.normal(size=(60, 1))
    return bg.Problem(X, np.sign(rng.normal(size=60)), loss=loss, alpha=1e-3)


def test_theory_is_one_over_one_plus_epsilon():
    """Eight copies: rho_block is 8, so that epsilon is P − 1."""
    for P in (1, 2, 4, 8):
        solution = bg.solve(
            copies(8), "block-greedy", n_blocks=8, blocks_per_iter=P, update="add", step_scale="theory", max_iter=3
        )
        assert solution.step_scale == pytest.approx(1 / P, rel=1e-6)


def test_theory_takes_the_least_bound_that_is_known():
    """Few enough selections to look at all: rho_block is then exact, and the bounds by rows say 3."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(50, 9))
    partition = bg.make_partition(X, n_blocks=3, seed=0)
    exact = bg.theory.rho_block(X, partition).exact.value
    assert exact < 2.5
    solution = bg.solve(
        bg.Problem(X, rng.normal(size=50), alpha=0.01),
        "thread-greedy",
        partition=partition,
        update="add",
        step_scale="theory",
    )
    assert solution.step_scale == pytest.approx(1 / exact)
    assert solution.status == "converged"


def test_theory_leaves_out_features_that_cannot_move():
    weights = np.where(np.arange(8) < 2, 1.0, np.inf)
    solution = bg.solve(
        copies(8, penalty_weights=weights), "thread-greedy", n_blocks=8, update="add", step_scale="theory", max_iter=3
    )
    assert solution.step_scale == pytest.approx(0.5, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_with_the_scale_of_the_theory_added_steps_of_all_blocks_never_raise_the_objective(loss):
    """With P = B nothing is random, so that expected descent is descent; without the scale the same run diverges."""
    settings = {"n_blocks": 24, "update": "add", "tol": 1e-2, "trace_iters": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = bg.solve(correlated(loss), "thread-greedy", step_scale="theory", **settings)
    assert solution.status == "converged"
    objective = solution.trace["objective"]
    assert np.all(np.diff(objective) <= 1e-14 * objective[:-1])
    with pytest.warns(bg.ConvergenceRiskWarning):
        assert bg.solve(correlated(loss), "thread-greedy", **settings).status == "diverged"


def test_the_limit_of_the_theory_is_attained_by_copies():
    """Copies of one column make the bound an equality: twice the scale of the theory is where descent ends."""
    settings = {"n_blocks": 8, "update": "add", "tol": 1e-4}
    assert bg.solve(copies(8), "thread-greedy", step_scale=0.24, **settings).status == "converged"
    with pytest.warns(bg.ConvergenceRiskWarning):
        assert bg.solve(copies(8), "thread-greedy", step_scale=0.26, **settings).status == "diverged"


def test_the_scale_of_the_paper_is_its_printed_beta(rng):
    """Columns of norm 1 and β without 1/n: the first steps of all blocks."""
    X = rng.normal(size=(20, 4))
    X /= np.linalg.norm(X, axis=0)
    y = np.sign(rng.normal(size=20))
    problem = bg.Problem(X, y, loss="logistic", alpha=1e-3)
    solution = bg.solve(problem, "thread-greedy", n_blocks=4, update="add", step_scale="paper", max_iter=1, tol=0)
    assert solution.step_scale == 1 / 20
    gradient = -X.T @ y / (2 * 20)
    expected = -np.sign(gradient) * np.maximum(np.abs(gradient) - 1e-3, 0) / (1 / 4)
    np.testing.assert_allclose(solution.coef, expected, rtol=1e-12)


def test_weights_that_are_0_at_the_minimum_become_exactly_0(rng):
    """The scale is in the curvature, not in the step: a scaled step would leave weights that shrink for ever."""
    problem = random_problem(rng, "squared", 0.3)
    best = bg.solve(problem, tol=1e-12)
    assert 0 < best.nonzeros < problem.n_features
    coef = np.where(best.coef == 0, 1e-3, best.coef)
    found = bg.solve(problem, "thread-greedy", n_blocks=4, update="add", step_scale=0.1, coef_init=coef, tol=1e-10)
    assert found.status == "converged"
    np.testing.assert_array_equal(found.coef == 0, best.coef == 0)


@unsafe
def test_messages_say_the_scale():
    settings = {"n_blocks": 8, "update": "add", "tol": 1e-9}
    solution = bg.solve(copies(8), "thread-greedy", step_scale="theory", max_iter=2, **settings)
    assert solution.message.endswith("step_scale was 0.125")
    solution = bg.solve(copies(8), "thread-greedy", step_scale=0.5, **settings)
    assert solution.status == "diverged"
    assert "a smaller step_scale, such as 'theory' (now 0.5)" in solution.message
    assert "such as 'theory';" in bg.solve(copies(8), "thread-greedy", **settings).message
    assert bg.solve(copies(2)).step_scale == 1


@pytest.mark.parametrize("wrong", [0, -1, np.inf, np.nan, 1e-13, 1e13, "best", True, None, [0.5], 1j])
def test_wrong_scales_are_refused(wrong):
    with pytest.raises(ValueError, match=r"step_scale=.* must be 'theory', 'paper' or a number from 1e-12 to 1e\+12"):
        bg.solve(copies(2), "thread-greedy", n_blocks=2, update="add", step_scale=wrong)


@pytest.mark.parametrize("update", ["joint", "sweep", "line-search"])
@pytest.mark.parametrize("scale", [0.5, "theory", "paper"])
def test_other_updates_take_no_scale(update, scale):
    with pytest.raises(ValueError, match=f"step_scale={scale!r} needs update='add', not '{update}'"):
        bg.solve(copies(2), "thread-greedy", n_blocks=2, update=update, step_scale=scale)
    assert bg.solve(copies(2), "thread-greedy", n_blocks=2, update=update, step_scale=1).status == "converged"


def test_the_default_solver_takes_no_scale():
    with pytest.raises(ValueError, match=r"step_scale=0\.5 is not for method='auto', the default"):
        bg.solve(copies(2), step_scale=0.5)


@pytest.fixture
def fit(tmp_path):
    problem = copies(4)
    bg.save(bg.Dataset(problem.X, problem.y), tmp_path / "copies.npz")
    common = ["fit", str(tmp_path / "copies.npz"), "--alpha", "1e-3", "--method", "thread-greedy", "--blocks", "4"]
    return lambda *more: CliRunner().invoke(app, [*common, "--no-intercept", *more])


@pytest.mark.parametrize(("asked", "used"), [("theory", 0.25), ("paper", 1 / 30), ("0.125", 0.125), (None, 1.0)])
@unsafe
def test_the_command_line_takes_scales(fit, asked, used):
    more = [] if asked is None else ["--step-scale", asked]
    result = fit("--update", "add", "--max-iter", "20", "--json", *more)
    assert json.loads(result.stdout)["step_scale"] == pytest.approx(used)
    shown = " ".join(fit("--update", "add", "--max-iter", "20", *more).stdout.split())
    assert (f"add with step_scale {used:.6g}" in shown) == (asked is not None)


def test_the_command_line_refuses_wrong_scales(fit):
    result = fit("--update", "add", "--step-scale", "best")
    assert result.exit_code == 2
    assert "must be 'theory', 'paper' or a number" in " ".join(result.stderr.split())
    result = fit("--step-scale", "theory")
    assert result.exit_code == 2
    assert "needs --update add" in " ".join(result.stderr.split())
