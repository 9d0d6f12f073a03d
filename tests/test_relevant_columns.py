"""Columns that no dual point can reach are left out by the tile solver, and no others."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.backends.tiles import relevant, tuning
from blockgreedy.backends.tiles.communicator import Alone
from blockgreedy.backends.tiles.grid import Grid
from blockgreedy.backends.tiles.relevant import RelevantColumns, handed_round, relevant_columns
from blockgreedy.backends.tiles.share import shard_of
from blockgreedy.backends.tiles.solver import TileSolver
from blockgreedy.backends.tiles.threads import run_in_threads
from blockgreedy.data import Dataset
from blockgreedy.data.conversion import convert
from blockgreedy.solvers import cluster
from blockgreedy.solvers.cluster import _told

BOUNDED = ["logistic", "huber"]


def problem_of(loss="logistic", seed=0, n=200, p=300, **options):
    """Columns of very different lengths, an empty one and one full of equal numbers far from 0."""
    random = np.random.default_rng(seed)
    X = sp.random_array((n, p), density=0.05, rng=random).multiply(10.0 ** random.uniform(-3, 0, p))
    X = sp.csc_array(sp.hstack([X, sp.csc_array((n, 1)), sp.csc_array(random.normal(1000, 1, (n, 1)))]))
    y = X[:, :20].sum(axis=1) + 0.1 * random.standard_normal(n)
    y = np.where(y > np.median(y), 1.0, -1.0) if loss == "logistic" else y
    problem = bg.Problem(X, y, loss=loss, alpha=1.0, fit_intercept=True, **options)
    return problem.with_alpha(0.05 * problem.alpha_max)


def options_of(name, n=200, p=302):
    random = np.random.default_rng(5)
    units = random.random(p) + 0.5
    units[:3] = 0, np.inf, 0
    return {
        "plain": {},
        "weights": {"sample_weight": random.integers(0, 4, n)},
        "units": {"penalty_weights": units},
        "standardize": {"standardize": True},
        "l2": {"l2": 0.01},
    }[name]


@pytest.mark.parametrize("loss", BOUNDED)
@pytest.mark.parametrize("options", ["plain", "weights", "units", "standardize", "l2"])
def test_no_dual_point_reaches_a_column_that_is_left_out(loss, options):
    problem = problem_of(loss, **options_of(options))
    inner = problem.scaling.inner
    kept = relevant_columns(inner, 1)
    out = np.setdiff1d(np.arange(inner.n_features), kept.places)
    assert (len(out) > 20) == (options != "standardize")  # else columns are about as long as each other
    penalty, X = inner.penalty, inner.X.toarray()
    weights = np.full(inner.n_samples, 1 / inner.n_samples) if inner.row_weights is None else inner.row_weights
    for j in out:  # the worst point of all: every derivative at its bound
        worst = inner.loss.derivative_bound * np.sum(weights * np.abs(X[:, j]))
        excluded = penalty.lower[j] == 0 == penalty.upper[j]
        assert worst <= penalty.l1[j] or excluded
    assert np.all(kept.norms >= np.linalg.norm(X[:, kept.places], axis=0))
    assert kept.norms == pytest.approx(np.linalg.norm(X[:, kept.places], axis=0), rel=1e-6)
    best = bg.solve(problem, tol=1e-9)
    assert set(np.flatnonzero(best.coef)) <= set(kept.places)


def test_losses_without_a_bound_keep_all_columns_but_empty_ones():
    problem = problem_of("squared")
    assert np.array_equal(relevant_columns(problem.scaling.inner, 1).places, np.delete(np.arange(302), 300))


def test_columns_whose_squares_underflow_are_kept():
    X = sp.csc_array(np.array([[1e-200, 1.0], [0.0, -1.0], [0.0, 0.5]]))
    problem = bg.Problem(X, [1.0, -1.0, 1.0], loss="logistic", alpha=1e-300)
    assert relevant_columns(problem, 1).places.tolist() == [0, 1]


@pytest.mark.parametrize("blocks", [None, "random"])
@pytest.mark.parametrize("options", ["plain", "units"])
def test_a_store_keeps_the_columns_of_its_matrix_and_ranks_divide_them(tmp_path, blocks, options, monkeypatch):
    given = options_of(options)
    problem = problem_of(**given)
    data = Dataset(problem.X, problem.y)
    partition = None if blocks is None else bg.make_partition(problem, n_blocks=3, kind="random", seed=2)
    store = convert(data, tmp_path / "made.store", row_groups=2, partition=partition)
    stored = bg.Problem(store, loss="logistic", alpha=problem.alpha, fit_intercept=True, **given).scaling.inner
    assert len(stored.design.moved) == 1
    whole, expected = relevant_columns(stored, 1), relevant_columns(problem.scaling.inner, 1)
    features = whole.places if store.features is None else store.features[whole.places]
    order = np.argsort(features)
    assert np.array_equal(features[order], expected.places)
    assert whole.norms[order] == pytest.approx(expected.norms, rel=1e-8)
    assert whole.entries[order] == pytest.approx(expected.entries)
    wanted = [slice(0, 302), slice(0, 100), slice(100, 302)]

    def divided(ranks):
        return handed_round(ranks, relevant_columns(stored, 1, None, (ranks.rank, ranks.size)), wanted)

    monkeypatch.setattr(relevant, "_CHUNK", 20)  # shares of all ranks
    for found, columns in zip(run_in_threads(3, divided), wanted, strict=True):
        assert np.array_equal(found.places, whole.inside(columns).places)
        assert np.array_equal(found.norms, whole.inside(columns).norms)
        assert np.array_equal(found.entries, whole.inside(columns).entries)


@pytest.mark.parametrize("grid", [(1, 1), (1, 3), (3, 1), (2, 2)])
def test_a_fit_without_them_is_the_fit_of_all(grid):
    problem = problem_of()
    best = bg.solve(problem, tol=1e-10)
    ranks = grid[0] * grid[1]
    for found in run_in_threads(ranks, lambda r: bg.solve(problem, cluster=r, grid=grid, tol=1e-9, n_threads=1)):
        assert found.status == "converged"
        assert found.objective - best.objective <= 1e-9 * problem.null_model.objective
        assert problem.duality_gap(found.coef, found.intercept, found.dual) <= 1e-9 * problem.null_model.objective
        assert found.grid == grid


def test_a_path_keeps_what_its_last_alpha_needs():
    problem = problem_of()
    alphas = problem.alpha_max * np.geomspace(0.5, 0.01, 6)
    expected = bg.solve_path(problem, alphas, tol=1e-9)
    for found in run_in_threads(2, lambda ranks: bg.solve_path(problem, alphas, cluster=ranks, tol=1e-9)):
        assert found.objectives == pytest.approx(expected.objectives, rel=1e-8)
        assert np.count_nonzero(found.coefs.toarray()[-1]) == np.count_nonzero(expected.coefs.toarray()[-1])


def test_an_alpha_below_the_one_announced_is_refused():
    problem = problem_of().scaling.inner
    solver = TileSolver(shard_of(problem, problem.null_model, Grid(Alone(), 1, 1), 1), 1e-4)
    solver.start(np.zeros(solver.shard.tile.n_features), problem.null_model.intercept)
    with pytest.raises(ValueError, match="below the least"):
        solver.lower_alpha(0.5 * problem.alpha, 0.0)


def test_damaged_statistics_are_refused(tmp_path):
    problem = problem_of()
    store = convert(Dataset(problem.X, problem.y), tmp_path / "made.store")
    (name,) = (tmp_path / "made.store").glob("*statistics*")
    content = bytearray(name.read_bytes())
    content[-3] ^= 1
    name.write_bytes(content)
    stored = bg.Problem(bg.data.Store(store.path), loss="logistic", alpha=problem.alpha, fit_intercept=True)
    with pytest.raises(ValueError, match="is damaged: its checksum"):
        bg.solve(stored)


@pytest.mark.parametrize("grid", [(2, 1), (1, 2)])
def test_ranks_that_round_in_other_ways_agree_on_the_relevant_columns(monkeypatch, grid):
    """Processors of different kinds: a column at the border is relevant for one rank alone, and norms differ."""
    problem, found_by = problem_of(), cluster._relevant_of_share

    def by_kind(problem, n_threads, least_alpha, ranks):
        found, least = found_by(problem, n_threads, least_alpha, ranks)
        found = RelevantColumns(found.places, found.norms * (1 + 1e-9 * ranks.rank), found.entries)
        return found.at(slice(ranks.rank, None)), least * (1 + 4e-16 * ranks.rank)

    monkeypatch.setattr(cluster, "_relevant_of_share", by_kind)
    first, second = run_in_threads(2, lambda ranks: bg.solve(problem, cluster=ranks, grid=grid, tol=1e-7))
    assert first.status == "converged"
    assert np.array_equal(first.coef, second.coef)


def test_a_limit_of_memory_is_the_same_for_ranks_with_many_and_with_few_columns(monkeypatch):
    monkeypatch.setattr(tuning, "BASE_BYTES", 0)
    monkeypatch.setattr(tuning, "LEAST_SET", 50)
    random = np.random.default_rng(0)
    n, p = 400, 600
    X = sp.random_array((n, p), density=0.2, rng=random).multiply(np.where(np.arange(p) < p // 2, 1.0, 1e-4))
    X = sp.csc_array(X)
    y = np.where(X[:, :40] @ random.standard_normal(40) + 0.5 * random.standard_normal(n) > 0, 1.0, -1.0)
    problem = bg.Problem(X, y, loss="logistic", alpha=1.0, fit_intercept=True)
    problem = problem.with_alpha(0.01 * problem.alpha_max)
    best = bg.solve(problem, tol=1e-9)

    def solved(ranks, memory):
        return bg.solve(problem, cluster=ranks, grid=(1, 2), tol=1e-7, memory=memory, n_threads=1)

    for memory in (40_000, 80_000, 150_000):
        first, second = run_in_threads(2, lambda ranks, memory=memory: solved(ranks, memory))
        assert first.status == "converged"
        assert first.objective - best.objective <= 1e-7 * problem.null_model.objective
        assert np.array_equal(first.coef, second.coef)


def test_stores_are_not_cut_in_more_groups_of_rows_than_they_have(tmp_path):
    problem = problem_of(n=4000, p=40)
    data = Dataset(problem.X, problem.y)
    grids = {}
    for n_groups in (1, 2, 4):
        store = convert(data, tmp_path / f"{n_groups}.store", row_groups=n_groups)
        stored = bg.Problem(store, loss="logistic", alpha=problem.alpha, fit_intercept=True)
        grids[n_groups] = run_in_threads(4, lambda ranks, X=stored: bg.solve(X, cluster=ranks, n_threads=1))[0].grid
    assert grids == {1: (1, 4), 2: (2, 2), 4: (4, 1)}


def test_ranks_hear_of_a_dual_point_that_was_given_up():
    problem = problem_of()
    solution = bg.solve(problem)
    engine = SimpleNamespace(
        problem=problem,
        here=problem.scaling,
        worker=SimpleNamespace(found_dual=problem.scaling.dual_in(solution.dual)),
    )
    kept, zeros = (_told(replace(solution, dual=dual)).whole(engine) for dual in (solution.dual, 0 * solution.dual))
    assert kept.dual == pytest.approx(solution.dual)
    assert np.array_equal(kept.coef, solution.coef)
    assert not np.any(zeros.dual)
