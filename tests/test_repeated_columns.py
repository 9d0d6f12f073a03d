"""Columns that are multiples of each other: one of them gets the weight, and the proof covers all of them."""

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.solvers.working_set import WorkingSetEngine


def crosses(rng, n=400, codes=4, levels=6):
    """One-hot codes, all pairs and triples of them: half of the columns or more are copies."""
    table = rng.integers(0, levels, size=(n, codes))
    table[:, 1] = table[:, 0] // 2  # a code that follows from another one
    columns = []
    for a in range(codes):
        for b in range(a, codes):
            for c in range(b, codes):
                key = (table[:, a] * levels + table[:, b]) * levels + table[:, c]
                columns += [(key == value).astype(float) for value in np.unique(key)]
    X = np.column_stack(columns)
    score = X[:, ::7] @ rng.normal(size=X[:, ::7].shape[1])
    return X, np.where(score + rng.logistic(size=n) > np.median(score), 1.0, -1.0), score


def first_of(X):
    """For each column the first one that it is a multiple of."""
    seen, first = {}, []
    for j in range(X.shape[1]):
        column = X[:, j]
        pivot = column[np.flatnonzero(column)[0]]
        first.append(seen.setdefault((column / pivot).tobytes(), j))
    return np.array(first)


@pytest.mark.parametrize("loss", ["logistic", "squared", "squared_hinge", "huber"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("storage", ["csc", "csr", "dense"])
def test_copies_change_neither_objective_nor_proof(rng, loss, fit_intercept, storage):
    X, label, target = crosses(rng)
    y = target if loss in ("squared", "huber") else label
    first = first_of(X)
    assert np.count_nonzero(first != np.arange(len(first))) > X.shape[1] / 3
    given = {"csc": sp.csc_array, "csr": sp.csr_array, "dense": np.asfortranarray}[storage](X)
    top = bg.Problem(given, y, loss=loss, alpha=1.0, fit_intercept=fit_intercept).alpha_max
    for ratio in (0.3, 0.03, 0.003):
        problem = bg.Problem(given, y, loss=loss, alpha=ratio * top, fit_intercept=fit_intercept)
        solution = bg.solve(problem, tol=1e-7)
        alone = bg.solve(
            bg.Problem(X[:, np.unique(first)], y, loss=loss, alpha=ratio * top, fit_intercept=fit_intercept), tol=1e-7
        )
        assert solution.status == "converged"
        assert solution.objective == pytest.approx(alone.objective, rel=3e-7)
        assert (
            problem.duality_gap(solution.coef, solution.intercept, solution.dual)
            <= 1.1e-7 * problem.null_model.objective
        )
        support = np.flatnonzero(solution.coef)
        assert len(np.unique(first[support])) == len(support)  # one of each kind
        np.testing.assert_array_equal(first[support], support)  # the first


def test_scaled_copies_leave_the_weight_to_the_largest(rng):
    base = rng.normal(size=(80, 30))
    X = np.column_stack([base, -0.5 * base, 4.0 * base])
    y = base[:, 0] - base[:, 1] + 0.1 * rng.normal(size=80)
    solution = bg.solve(bg.Problem(X, y, alpha=0.05), tol=1e-9)
    assert solution.nonzeros > 2
    assert np.all(np.flatnonzero(solution.coef) >= 60)


def test_penalties_and_bounds_of_copies_are_respected(rng):
    base = rng.normal(size=(120, 8))
    y = base @ np.array([1.0, -1.0, 0.5, 0, 0, 0, 0, 0]) + 0.1 * rng.normal(size=120)
    X = np.column_stack([base, base, base])
    weights = np.concatenate([np.full(8, 1.0), np.full(8, 0.5), np.full(8, 2.0)])
    lower, upper = np.full(24, -np.inf), np.full(24, np.inf)
    upper[8:16], lower[8:16] = 0.1, -0.1  # the cheapest may only take a part
    problem = bg.Problem(X, y, alpha=0.01, penalty_weights=weights, lower=lower, upper=upper)
    solution = bg.solve(problem, tol=1e-9)
    assert solution.status == "converged"
    assert solution.coef[8] == pytest.approx(0.1)
    assert solution.coef[0] > 0.5
    assert not np.any(solution.coef[16:])
    assert (
        problem.duality_gap(solution.coef, solution.intercept, solution.dual) <= 1.1e-9 * problem.null_model.objective
    )


def test_an_elastic_net_spreads_weights_over_copies(rng):
    base = rng.normal(size=(80, 5))
    X = np.column_stack([base, base])
    solution = bg.solve(bg.Problem(X, base[:, 0], alpha=0.01, l2=0.1), tol=1e-10)
    np.testing.assert_allclose(solution.coef[:5], solution.coef[5:], atol=1e-4)
    assert solution.coef[0] > 0.1


def test_a_start_with_weights_on_copies_is_merged(rng):
    base = rng.normal(size=(80, 20))
    X = np.column_stack([base, base])
    y = base[:, 0] + 0.1 * rng.normal(size=80)
    problem = bg.Problem(X, y, alpha=0.05)
    solution = bg.solve(problem, coef_init=rng.normal(size=40), tol=1e-9)
    assert solution.status == "converged"
    assert not np.any(solution.coef[20:])


def test_copies_are_left_out_of_scans(rng):
    X, y, _ = crosses(rng, n=2000, levels=8)
    problem = bg.Problem(sp.csc_array(X), y, loss="logistic", alpha=2e-4, fit_intercept=True)
    engine = WorkingSetEngine(problem, tol=1e-6, n_threads=1, null=problem.null_model)
    engine.start()
    while not engine.is_enough():
        engine.step(1, 1.0)
    assert engine.core.n_aliases > 0.5 * np.count_nonzero(first_of(X) != np.arange(X.shape[1]))


@pytest.mark.threads
def test_bits_do_not_depend_on_threads(rng):
    X, y, _ = crosses(rng, n=3000, levels=10)
    problem = bg.Problem(sp.csc_array(X), y, loss="logistic", alpha=1e-4, fit_intercept=True)
    one, *others = (bg.solve(problem, tol=1e-6, n_threads=threads) for threads in (1, 2, 4))
    for other in others:
        np.testing.assert_array_equal(one.coef, other.coef)
        assert one.gap == other.gap


def test_a_path_merges_copies_too(rng):
    X, y, _ = crosses(rng)
    first = first_of(X)
    path = bg.solve_path(bg.Problem(sp.csc_array(X), y, loss="logistic", alpha=0), n_alphas=30, tol=1e-6)
    assert path.status == "converged"
    support = path.points[-1].features
    assert len(support) > 20
    assert len(np.unique(first[support])) == len(support)


@pytest.mark.parametrize("tiny", [5e-324, 1e-310, 1e-300])
@pytest.mark.parametrize("storage", ["csc", "csr", "dense"])
def test_columns_that_begin_with_a_denormal_number_are_no_multiples(rng, tiny, storage):
    """Products with such a number vanish, and with them all that tells the columns apart."""
    X = rng.uniform(0.6, 1.4, size=(60, 6))
    X[0] = tiny
    y = X[:, :4] @ [3.0, -3.0, 2.0, -2.0]
    given = {"csc": sp.csc_array, "csr": sp.csr_array, "dense": np.asfortranarray}[storage](X)
    problem = bg.Problem(given, y, alpha=1.0)
    problem = problem.with_alpha(0.01 * problem.alpha_max)
    solution = bg.solve(problem, tol=1e-8)
    truth = bg.solve(bg.Problem(X[1:], y[1:], alpha=problem.alpha * 60 / 59), tol=1e-10)  # that row says nothing
    assert solution.status == "converged"
    assert 60 * solution.objective == pytest.approx(59 * truth.objective, rel=1e-7)
    np.testing.assert_allclose(solution.coef, truth.coef, atol=1e-3)


@pytest.mark.parametrize("storage", ["csc", "dense"])
def test_the_guard_looks_at_columns_that_were_merged(rng, storage):
    """Whatever the reason: a column that is no multiple after all costs the status."""
    X = rng.normal(size=(50, 8))
    X[:, 7] = 2 * X[:, 0]
    y = X[:, 0] + 0.1 * rng.normal(size=50)
    given = sp.csc_array(X) if storage == "csc" else np.asfortranarray(X)
    problem = bg.Problem(given, y, alpha=0.05)
    engine = WorkingSetEngine(problem, tol=1e-6, n_threads=1, null=problem.null_model)
    engine.start()
    while not engine.is_enough():
        assert not engine.step(1, np.inf)
    assert engine.core.n_aliases == 1
    features = np.flatnonzero(engine.coef).astype(np.int32)
    alias = 0 if 7 in features else 7
    column = given.data[given.indptr[alias] : given.indptr[alias + 1]] if storage == "csc" else given[:, alias]
    before = column.copy()
    column[:] = 5 * np.array(engine.core.dual) / np.linalg.norm(engine.core.dual)  # now breaks its constraint
    assert engine.core.verify(features, engine.coef[features], 0.0)[2] == -np.inf
    column[:] = before
    objective, _, dual_value = engine.core.verify(features, engine.coef[features], 0.0)
    assert objective - dual_value <= engine.core.enough
