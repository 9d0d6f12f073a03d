"""Concurrent steps on correlated features blow up or cycle; that is reported, and safe updates never rise."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import blockgreedy as bg
from blockgreedy.problem.losses import LOSSES as LOSS_TYPES
from conftest import LOSSES, random_design

# The settings that are studied here are those that solve warns of.
unsafe = pytest.mark.filterwarnings("ignore::blockgreedy.ConvergenceRiskWarning")
ROUNDING = 1e-12  # the same point, its loss summed in another order


def copies_in_different_blocks(rng, loss, n_copies=4):
    """The same column in every block, under each loss."""
    base = random_design(rng, 200, 6, dense=True)
    X = np.tile(base, (1, n_copies))
    # A weak signal: margins stay small, where the curvature of the logistic loss is close to its bound.
    y = np.where(0.3 * base[:, 0] + rng.normal(size=200) > 0, 1.0, -1.0)
    partition = bg.Partition(
        block_of=np.repeat(np.arange(n_copies), 6).astype(np.int32), n_blocks=n_copies, kind="copies", seed=None
    )
    return bg.Problem(sp.csc_array(X), y, loss=loss, alpha=1e-3), partition


@pytest.mark.parametrize(
    ("loss", "n_copies", "kind"),
    [
        ("squared", 3, "blew up"),
        ("squared", 8, "blew up"),
        ("logistic", 3, "cycles"),
        ("logistic", 4, "cycles"),
        ("logistic", 8, "blew up"),  # past twice the null model's objective, though it stays finite
    ],
)
@unsafe
def test_copies_of_a_column_make_concurrent_addition_diverge(rng, loss, kind, n_copies):
    problem, partition = copies_in_different_blocks(rng, loss, n_copies)
    solution = bg.solve(problem, "thread-greedy", partition=partition, update="add", tol=1e-8, max_iter=20_000)
    assert solution.status == "diverged"
    assert kind in solution.message
    for remedy in ("update='joint'", f"now {n_copies} of n_blocks={n_copies}", "partition='clustered'"):
        assert remedy in solution.message
    assert solution.objective <= problem.objective(np.zeros(problem.n_features)) * (1 + ROUNDING)
    assert problem.objective(solution.coef) == pytest.approx(solution.objective, rel=1e-12)


@unsafe
def test_two_copies_cycle_exactly_under_squared_loss(rng):
    problem, partition = copies_in_different_blocks(rng, "squared", 2)
    solution = bg.solve(problem, "thread-greedy", partition=partition, update="add", tol=1e-10, max_iter=20_000)
    assert solution.status == "diverged"
    assert "cycles" in solution.message


@unsafe
def test_continue_goes_on_and_returns_the_last_iterate(rng):
    problem, partition = copies_in_different_blocks(rng, "logistic", 16)
    options = {"partition": partition, "update": "add", "tol": 1e-8, "max_iter": 1000}
    stopped = bg.solve(problem, "thread-greedy", on_divergence="stop", **options)
    went_on = bg.solve(problem, "thread-greedy", on_divergence="continue", **options)
    assert stopped.status == "diverged"
    assert (went_on.status, went_on.n_iter) == ("max_iter", 1000)
    assert went_on.objective == pytest.approx(went_on.trace["objective"][-1], rel=1e-9)
    assert went_on.objective >= stopped.objective
    assert "on_divergence" in went_on.message


@unsafe
def test_diverging_from_a_warm_start_returns_nothing_worse(rng):
    problem, partition = copies_in_different_blocks(rng, "squared", 4)
    start = bg.solve(problem, tol=1e-3).coef
    solution = bg.solve(
        problem, "thread-greedy", partition=partition, update="add", coef_init=start, tol=1e-12, max_iter=5000
    )
    assert solution.objective <= problem.objective(start) * (1 + ROUNDING)


@pytest.mark.parametrize("update", ["joint", "sweep"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_copies", [4, 16])
def test_safe_updates_never_raise_the_objective_on_copies(rng, update, loss, n_copies):
    problem, partition = copies_in_different_blocks(rng, loss, n_copies)
    solution = bg.solve(
        problem, "thread-greedy", partition=partition, update=update, tol=1e-7, max_iter=3000, trace_iters=1
    )
    objective = solution.trace["objective"]
    assert np.all(np.diff(objective) <= 1e-14 * objective[:-1])
    assert solution.status == "converged"


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    loss=st.sampled_from(LOSSES),
    update=st.sampled_from(["joint", "sweep"]),
    blocks=st.integers(1, 30),
    per_block=st.integers(1, 6),
    penalty=st.sampled_from([{}, {"l2": 0.1}, {"positive": True}, {"upper": 0.3, "lower": -0.01}]),
    correlation=st.sampled_from([0.0, 0.9, 0.999]),
)
def test_safe_updates_never_raise_the_objective(seed, loss, update, blocks, per_block, penalty, correlation):
    rng = np.random.default_rng(seed)
    X = np.sqrt(1 - correlation) * rng.normal(size=(25, 30)) + np.sqrt(correlation) * rng.normal(size=(25, 1))
    y = np.where(rng.random(25) < 0.5, -1.0, 1.0) * (1 if LOSS_TYPES[loss].is_classifier else 3)
    problem = bg.Problem(X, y, loss=loss, alpha=10.0 ** rng.integers(-5, 0), **penalty)
    start = np.clip(rng.normal(size=30) * rng.integers(0, 3), problem.penalty.lower, problem.penalty.upper)
    objective = bg.solve(
        problem,
        "thread-greedy",
        n_blocks=blocks,
        per_block=per_block,
        update=update,
        coef_init=start,
        tol=0,
        max_iter=25,
        trace_iters=1,
    ).trace["objective"]
    assert np.all(np.diff(objective) <= 1e-13 * np.abs(objective[:-1]))


def test_line_search_is_reported_when_it_cycles(rng):
    problem, partition = copies_in_different_blocks(rng, "logistic", 8)
    solution = bg.solve(problem, "thread-greedy", partition=partition, update="line-search", tol=1e-8, max_iter=5000)
    assert solution.status == "diverged"
    assert solution.objective <= problem.objective(np.zeros(problem.n_features)) * (1 + ROUNDING)


@unsafe
def test_a_run_that_goes_on_after_blowing_up_warns_of_no_overflow_and_is_reported():
    problem = bg.Problem(np.ones((20, 8)), np.arange(20.0), alpha=0.1)
    solution = bg.solve(problem, "thread-greedy", n_blocks=8, update="add", on_divergence="continue", max_iter=3000)
    assert solution.status == "max_iter"
    assert solution.gap == np.inf
    assert "blew up" in solution.message
