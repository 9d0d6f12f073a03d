"""Dense columns that are fewer than the rows: sweeps go by tiles, straight from the matrix where they can."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import blockgreedy as bg
from blockgreedy.problem.design import Design, combined
from blockgreedy.problem.losses import LOSSES as LOSS_TYPES
from blockgreedy.problem.passes import copied_columns
from conftest import LOSSES


def problem_of(loss="squared", n=3000, p=400, ratio=0.01, dtype=np.float64, shift=0.0, **options):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = 0.6 * X[:, j - 1] + 0.8 * X[:, j]
    t = X[:, ::4] @ rng.choice([-1.0, 1.0], len(range(0, p, 4))) + 5 * rng.standard_normal(n)
    y = np.where(t > 0, 1.0, -1.0) if LOSS_TYPES[loss].is_classifier else t / np.std(t)
    if options.pop("weighted", False):
        options["sample_weight"] = rng.gamma(1.0, size=n)
    X = np.asfortranarray(X + shift, dtype=dtype)
    problem = bg.Problem(X, y, loss=loss, alpha=1.0, **options)
    return problem.with_alpha(ratio * problem.alpha_max)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "options",
    [{}, {"fit_intercept": True, "shift": 3.0}, {"weighted": True, "fit_intercept": True}, {"l2": 0.1}],
    ids=str,
)
def test_tiles_reach_the_minimum_that_blocks_reach(loss, dtype, options):
    problem = problem_of(loss, n=1200, p=150, dtype=dtype, **options)
    tiled = bg.solve(problem, tol=1e-8)
    plain = bg.solve(problem, tol=1e-8, n_blocks=1)
    f_null = problem.null_model.objective
    assert tiled.status == plain.status == "converged"
    assert problem.duality_gap(tiled.coef, tiled.intercept, dual=tiled.dual) <= 1.001e-8 * f_null
    assert tiled.objective == pytest.approx(plain.objective, abs=2e-8 * f_null)


@pytest.mark.parametrize("ratio", [0.01, 0.001])
def test_where_nearly_all_columns_matter_one_subproblem_of_the_squared_loss_is_the_problem(ratio):
    problem = problem_of(ratio=ratio, dtype=np.float32)
    solution = bg.solve(problem, tol=1e-2)
    assert solution.status == "converged"
    assert solution.n_iter == 1
    assert solution.trace.records[-1].nonzeros_touched < 30 * problem.design.size


def test_slowly_converging_sweeps_give_way_to_a_gram_matrix():
    """Columns that are all nearly the same: hundreds of sweeps would be needed."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((4000, 1)) + 0.05 * rng.standard_normal((4000, 300))
    y = X[:, :50] @ rng.standard_normal(50) + 0.1 * rng.standard_normal(4000)
    problem = bg.Problem(np.asfortranarray(X, dtype=np.float32), y, alpha=1.0)
    problem = problem.with_alpha(1e-4 * problem.alpha_max)
    solution = bg.solve(problem, tol=1e-6)
    assert solution.status == "converged"
    assert solution.trace.records[-1].nonzeros_touched < 150 * problem.design.size


@pytest.mark.threads
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_do_not_change_a_bit(loss, dtype):
    problem = problem_of(loss, n=9000, p=300, dtype=dtype, fit_intercept=True)
    first = bg.solve(problem, tol=1e-6, n_threads=1)
    for n_threads in (2, 3):
        assert np.array_equal(bg.solve(problem, tol=1e-6, n_threads=n_threads).coef, first.coef)


def test_copies_of_a_column_get_one_weight_though_none_of_them_violates_at_first():
    problem = problem_of(ratio=0.003, dtype=np.float32)
    X = np.asfortranarray(np.column_stack([problem.X, problem.X[:, :40], -problem.X[:, 40:80]]))
    doubled = bg.Problem(X, problem.y, alpha=problem.alpha)
    solution = bg.solve(doubled, tol=1e-6)
    assert solution.status == "converged"
    assert not np.any(solution.coef[400:])


@pytest.mark.threads
@pytest.mark.parametrize("shape", [(1, 1), (3, 500), (500, 3), (257, 131), (1000, 64)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_copied_to_columns(shape, dtype):
    rows = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    for n_threads in (1, 3):
        columns = copied_columns(rows, n_threads)
        assert columns.flags.f_contiguous
        assert np.array_equal(columns, rows)


def test_arrays_in_c_order_give_the_same_bits_and_are_not_changed():
    problem = problem_of(n=700, p=60)
    rows = np.ascontiguousarray(problem.X)
    before = rows.copy()
    ours = bg.solve(bg.Problem(rows, problem.y, alpha=problem.alpha))
    assert np.array_equal(ours.coef, bg.solve(problem).coef)
    assert np.array_equal(rows, before)
    for other in (rows[::2], rows[:, ::2], np.asarray(rows, dtype=">f8")):
        made = bg.Problem(other, problem.y[: len(other)], alpha=0.1).X
        assert made.flags.f_contiguous
        assert np.array_equal(made, other)


def test_predictions_by_parts_are_those_of_the_whole():
    rng = np.random.default_rng(0)
    X, w = np.asfortranarray(rng.standard_normal((300, 2000)).astype(np.float32)), rng.standard_normal(1000)
    features = np.arange(0, 2000, 2)
    own = X[:, features].astype(np.float64)
    assert combined(Design.of(X), features, w, 0.5) == pytest.approx(own @ w + 0.5, rel=1e-12, abs=1e-11)


def test_predictions_of_columns_that_cancel_keep_their_digits():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(300)
    X = np.asfortranarray(np.column_stack([x, x, rng.standard_normal(300)]))
    found = combined(Design.of(X), np.arange(3), np.array([1e12, -1e12, 1e-4]), 0.0)
    np.testing.assert_array_equal(found, 1e-4 * X[:, 2])


@pytest.mark.parametrize("far", [0.0, 1000.0])
def test_a_solved_problem_leaves_memory_at_once(far):
    """Not when Python next looks for circles: X may be most of the memory."""
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((200, 10)) + far)
    gc.collect()
    gc.disable()
    try:
        problem = bg.Problem(X, X[:, 0] + far, alpha=0.01, fit_intercept=True)
        bg.solve(problem)
        bg.solve(problem.with_alpha(0.005))
        alive = weakref.ref(problem), weakref.ref(problem.design)
        del problem
        assert [it() for it in alive] == [None, None]
    finally:
        gc.enable()


def test_the_inner_problem_judges_points_as_the_problem_does():
    """Columns of very different sizes are rescaled; penalty weights and bounds of the inner problem with them."""
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((50, 4)) * [1e9, 1.0, 1e-9, 1e3])
    problem = bg.Problem(X, rng.standard_normal(50), alpha=0.1, lower=-1.0)
    problem.rescale_columns()
    w = np.array([1e-10, 0.5, -0.5, 1e-4])
    inner = problem.scaling.inner
    assert inner is not problem
    assert inner.objective(problem.scaling.coef_in(w)) == pytest.approx(problem.objective(w), rel=1e-12)
