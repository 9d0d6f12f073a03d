"""The family on problems with sample weights, intercept and offset: whole runs."""

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.backends.cpu import block_greedy
from blockgreedy.problem.core_problem import CoreProblem
from blockgreedy.problem.losses import Logistic
from blockgreedy.solvers.options import FamilyOptions
from blockgreedy.solvers.step_scale import moving_columns, radius_of
from conftest import LOSSES, UPDATES, press_ctrl_c_after, random_design, random_problem, random_targets

N = 120
METHODS = [("thread-greedy", {"n_blocks": 8}), ("scd", {}), ("block-greedy", {"n_blocks": 8, "blocks_per_iter": 3})]


def rows(rng, n=N):
    return {
        "weights": {"sample_weight": rng.integers(0, 4, n)},
        "intercept": {"fit_intercept": True},
        "offset": {"offset": rng.normal(0.5, 1.0, n)},
        "all": {"sample_weight": rng.uniform(0, 2, n), "fit_intercept": True, "offset": rng.normal(0.5, 1.0, n)},
    }


@pytest.mark.parametrize("kind", ["weights", "intercept", "offset", "all"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("method", "options"), METHODS, ids=[name for name, _ in METHODS])
def test_the_optimum_is_that_of_the_default_solver(rng, kind, loss, method, options):
    problem = random_problem(rng, loss, 0.1, n=N, **rows(rng)[kind])
    best = bg.solve(problem, tol=1e-9)
    found = bg.solve(problem, method, tol=1e-6, **options)
    allowed = 1e-6 * problem.null_model.objective
    assert found.status == "converged"
    assert found.objective <= best.objective + allowed
    assert problem.objective(found.coef, found.intercept) == pytest.approx(found.objective, rel=1e-12)
    assert problem.duality_gap(found.coef, found.intercept, found.dual) <= allowed * (1 + 1e-9)
    assert (found.intercept != 0) == problem.fit_intercept


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("update", UPDATES)
def test_integer_weights_are_repeated_rows(rng, loss, update):
    counts = rng.integers(0, 4, N)
    X, y = random_design(rng, N, 40, density=0.1), random_targets(rng, N, loss)
    settings = {"loss": loss, "alpha": 0.01, "fit_intercept": True}
    weighted = bg.Problem(X, y, sample_weight=counts, **settings)
    again = np.repeat(np.arange(N), counts)
    repeated = bg.Problem(sp.csc_array(sp.csr_array(X)[again]), y[again], **settings)
    # a tiny inner_tol: otherwise rounding may decide that a sweep was the last
    options = {"update": update, "n_blocks": 8, "blocks_per_iter": 2, "max_iter": 200, "tol": 0.0, "inner_tol": 1e-15}
    one, other = (bg.solve(problem, "block-greedy", **options) for problem in (weighted, repeated))
    np.testing.assert_allclose(one.coef, other.coef, rtol=1e-9, atol=1e-12)
    assert one.intercept == pytest.approx(other.intercept, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("update", UPDATES)
def test_rows_without_weight_do_not_matter(rng, update):
    """Whatever their entries, targets and offsets are; on the way there as well as at the end."""
    X, y = random_design(rng, N, 40, density=0.1).toarray(), random_targets(rng, N, "logistic")
    silent = np.arange(N) % 5 == 0
    weight, offset = np.where(silent, 0.0, rng.uniform(0.5, 2, N)), rng.normal(size=N)
    X[silent] *= 1e3
    whole = bg.Problem(X, y, loss="logistic", alpha=0.01, sample_weight=weight, offset=offset, fit_intercept=True)
    parts = (array[~silent] for array in (X, y, weight, offset))
    X, y, weight, offset = parts
    part = bg.Problem(X, y, loss="logistic", alpha=0.01, sample_weight=weight, offset=offset, fit_intercept=True)
    options = {"update": update, "n_blocks": 8, "blocks_per_iter": 2, "max_iter": 100, "tol": 0.0}
    one, other = (bg.solve(problem, "block-greedy", **options) for problem in (whole, part))
    assert one.status == other.status
    np.testing.assert_allclose(one.coef, other.coef, rtol=1e-9, atol=1e-12)
    assert one.intercept == pytest.approx(other.intercept, rel=1e-9)
    np.testing.assert_array_equal(one.dual[silent], 0)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_intercept_is_the_best_one_at_every_check(rng, loss):
    problem = random_problem(rng, loss, 0.1, n=N, **rows(rng)["all"])
    for max_iter in (1, 17, 40):  # with ⌈B/P⌉ = 4: not only where the iterations themselves fit it
        found = bg.solve(problem, "block-greedy", n_blocks=8, blocks_per_iter=2, max_iter=max_iter, tol=0.0)
        assert found.n_iter == max_iter
        assert found.intercept == pytest.approx(problem.best_intercept(found.coef), rel=1e-9, abs=1e-9)


def test_tracing_does_not_change_a_run(rng):
    problem = random_problem(rng, "logistic", 0.1, n=N, **rows(rng)["all"])
    options = {"n_blocks": 8, "blocks_per_iter": 3, "max_iter": 90, "tol": 0.0}
    plain, traced = (bg.solve(problem, "block-greedy", trace_iters=every, **options) for every in (None, 1))
    np.testing.assert_array_equal(plain.coef, traced.coef)
    assert plain.intercept == traced.intercept


@pytest.mark.parametrize("update", ["joint", "sweep"])
@pytest.mark.parametrize("loss", LOSSES)
def test_safe_updates_never_raise_the_objective(rng, update, loss):
    problem = random_problem(rng, loss, 0.02, n=N, **rows(rng)["all"])
    trace = bg.solve(problem, "thread-greedy", n_blocks=8, update=update, trace_iters=1, max_iter=60).trace
    assert np.all(np.diff(trace["objective"]) <= 1e-14)


def test_alpha_max_gives_the_null_model_without_an_iteration(rng):
    problem = random_problem(rng, "logistic", 1.0, n=N, **rows(rng)["all"])
    found = bg.solve(problem, "thread-greedy", coef_init=np.full(40, 0.1), intercept_init=3.0)
    assert (found.status, found.n_iter, np.count_nonzero(found.coef)) == ("converged", 0, 0)
    assert found.intercept == pytest.approx(problem.null_model.intercept, rel=1e-12)


def test_unpenalised_features_start_at_the_null_model(rng):
    weights = np.ones(40)
    weights[[3, 17]] = 0
    problem = random_problem(rng, "logistic", 1.0, n=N, penalty_weights=weights, fit_intercept=True)
    found = bg.solve(problem, "thread-greedy", n_blocks=8)
    assert found.status == "converged"
    np.testing.assert_array_equal(np.flatnonzero(found.coef), [3, 17])


def test_a_warm_start_at_the_solution_needs_no_iteration(rng):
    problem = random_problem(rng, "huber", 0.1, n=N, **rows(rng)["all"])
    first = bg.solve(problem, "thread-greedy", tol=1e-6)
    again = bg.solve(problem, "thread-greedy", tol=1e-5, coef_init=first.coef, intercept_init=first.intercept)
    assert again.n_iter == 0
    np.testing.assert_array_equal(again.coef, first.coef)


def test_an_intercept_that_is_as_good_as_any_stays(rng):
    """Where the classes are far apart, the squared hinge is 0 on a whole interval of intercepts."""
    y = np.repeat([-1.0, 1.0], 10)
    problem = bg.Problem(10 * y[:, None], y, loss="squared_hinge", alpha=1e-6, fit_intercept=True)
    engine = block_greedy(CoreProblem(problem, 1), bg.make_partition(problem, n_blocks=1), FamilyOptions(1, 1))
    engine.set_weights(np.ones(1), 2.5)
    assert engine.intercept == 2.5
    engine.set_weights(np.ones(1), 9.5)  # beyond the interval, whose end is 9
    assert engine.intercept <= 9


def test_one_class_is_explained_by_the_intercept(rng):
    X = random_design(rng, N, 5)
    for label in (-1.0, 1.0):
        y = np.r_[-label, np.full(N - 1, label)]
        weight = np.r_[0.0, np.ones(N - 1)]
        for loss in ("logistic", "squared_hinge"):
            problem = bg.Problem(X, y, loss=loss, alpha=0.01, sample_weight=weight, fit_intercept=True)
            found = bg.solve(problem, "thread-greedy")
            assert found.status == "converged"
            assert np.sign(found.intercept) == label


def test_divergence_returns_the_best_point_with_its_intercept(rng):
    column = rng.normal(size=(N, 1))
    problem = bg.Problem(
        np.repeat(column, 8, axis=1), column.ravel() + 3, alpha=0.01, fit_intercept=True, sample_weight=rng.random(N)
    )
    with pytest.warns(bg.ConvergenceRiskWarning):
        found = bg.solve(problem, "thread-greedy", n_blocks=8, update="add", max_iter=2000)
    assert found.status == "diverged"
    assert found.objective <= problem.null_model.objective * (1 + 1e-12)
    assert problem.objective(found.coef, found.intercept) == pytest.approx(found.objective, rel=1e-12)
    with pytest.warns(bg.ConvergenceRiskWarning):
        last = bg.solve(problem, "thread-greedy", n_blocks=8, update="add", max_iter=2000, on_divergence="continue")
    assert last.n_iter == 2000
    assert last.status == "max_iter"


@pytest.mark.parametrize("update", ["add", "line-search"])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_asynchronous_runs_fit_the_intercept_when_threads_meet(rng, update, n_threads):
    problem = random_problem(rng, "logistic", 0.1, n=N, density=0.05, **rows(rng)["all"])
    options = {"n_blocks": 8, "blocks_per_iter": 2, "asynchronous": True, "update": update, "n_threads": n_threads}
    best = bg.solve(problem, tol=1e-9)
    found = bg.solve(problem, "block-greedy", tol=1e-6, **options)
    assert found.status == "converged"
    assert found.objective <= best.objective + 1e-6 * problem.null_model.objective
    if n_threads == 1:
        traced = bg.solve(problem, "block-greedy", tol=1e-6, trace_iters=3, **options)
        np.testing.assert_array_equal(traced.coef, found.coef)


def test_predictions_and_derivatives_are_what_they_are_called(rng):
    problem = random_problem(rng, "squared", 0.1, n=N, **rows(rng)["all"])
    partition = bg.make_partition(problem.X, n_blocks=8)
    engine = block_greedy(CoreProblem(problem, 1), partition, FamilyOptions(8, 8))
    engine.run(7, np.inf)
    predictions = problem.decision(engine.coef, engine.intercept)
    np.testing.assert_allclose(engine.Xw, predictions, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(engine.derivs, problem.dual_at(predictions), rtol=1e-11, atol=1e-15)
    assert engine.objective() == pytest.approx(problem.objective(engine.coef, engine.intercept), rel=1e-13)


@pytest.mark.parametrize("dense", [False, True])
def test_the_theory_is_about_columns_weighted_by_the_roots(rng, dense):
    problem = random_problem(rng, "squared", 0.1, n=N, dense=dense, sample_weight=rng.integers(0, 4, N))
    dense_X = problem.X if dense else problem.X.toarray()
    A = np.sqrt(problem.row_weights)[:, None] * dense_X
    A = A / np.linalg.norm(A, axis=0)
    assert radius_of(problem, [3, 8, 30]) == pytest.approx(np.linalg.norm(A[:, [3, 8, 30]], 2) ** 2, rel=1e-10)
    np.testing.assert_allclose(moving_columns(problem, 1).gram(np.arange(40)), A.T @ A, atol=1e-12)


def test_rows_without_weight_can_be_copies_of_each_other(rng):
    """Two columns that agree only in rows without weight: the theory's step is the full one, and no risk is seen."""
    X = np.array([[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]])
    problem = bg.Problem(X, np.array([1.0, -1.0, 0.0]), alpha=1e-3, sample_weight=[1.0, 1.0, 0.0])
    found = bg.solve(problem, "shotgun", blocks_per_iter=2, update="add", step_scale="theory")
    assert found.step_scale == pytest.approx(1.0, rel=1e-8)
    assert found.status == "converged"


def test_a_loss_without_bound_on_its_curvature_is_refused(rng, monkeypatch):
    problem = random_problem(rng, "logistic", 0.1)
    monkeypatch.setattr(Logistic, "curvature_bound", np.inf)
    with pytest.raises(ValueError, match=r"needs a loss whose second derivative is bounded.*use method='auto'"):
        bg.solve(problem, "thread-greedy")


@pytest.mark.threads
def test_weighted_iterates_do_not_depend_on_threads():
    data = bg.data.text_like(3000, 4000, 60.0, seed=3)
    rng = np.random.default_rng(0)
    problem = bg.Problem(data.X, data.y, loss="logistic", alpha=1e-4, **rows(rng, 3000)["all"])
    partition = bg.make_partition(problem.X, n_blocks=32)
    for update in UPDATES:
        results = set()
        for n_threads in (1, 2, 3):
            engine = block_greedy(CoreProblem(problem, n_threads), partition, FamilyOptions(32, 32, 1, update))
            engine.run(12, np.inf)
            results.add(engine.coef.tobytes() + engine.Xw.tobytes() + np.float64(engine.intercept).tobytes())
        assert len(results) == 1, update


def test_ctrl_c_returns_the_best_iterate_with_its_intercept():
    data = bg.data.text_like(3000, 20_000, 60.0, seed=3)
    problem = bg.Problem(data.X, data.y, loss="logistic", alpha=1e-6, fit_intercept=True)
    press_ctrl_c_after(0.5)
    found = bg.solve(problem, "thread-greedy", tol=1e-14)
    assert found.status == "interrupted"
    assert problem.objective(found.coef, found.intercept) == pytest.approx(found.objective, rel=1e-12)
    assert found.objective < problem.null_model.objective


def test_max_seconds_ends_a_run_with_an_intercept():
    data = bg.data.text_like(3000, 20_000, 60.0, seed=3)
    problem = bg.Problem(data.X, data.y, loss="logistic", alpha=1e-6, fit_intercept=True)
    found = bg.solve(problem, "thread-greedy", tol=1e-14, max_seconds=0.3)
    assert found.status == "max_seconds"
    assert problem.objective(found.coef, found.intercept) == pytest.approx(found.objective, rel=1e-12)


def test_rules_in_python_make_the_same_iterations(rng):
    problem = random_problem(rng, "logistic", 0.1, n=N, **rows(rng)["all"])
    options = {"n_blocks": 8, "blocks_per_iter": 3, "max_iter": 60, "tol": 0.0}
    core, python = bg.solve(problem, "block-greedy", **options), bg.family.run(problem, "block-greedy", **options)
    np.testing.assert_allclose(python.coef, core.coef, rtol=1e-11, atol=1e-13)
    assert python.intercept == pytest.approx(core.intercept, rel=1e-11)
    start = bg.family.run(problem, n_blocks=8, tol=1e-5, coef_init=core.coef, intercept_init=core.intercept)
    assert start.status == "converged"
