"""Bitwise equal results for any number of threads, and again on every run."""

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.backends.cpu import block_greedy
from blockgreedy.problem.core_problem import CoreProblem
from blockgreedy.solvers.options import FamilyOptions
from conftest import LOSSES, UPDATES

pytestmark = pytest.mark.threads
THREADS = (1, 2, 3, 7)


@pytest.fixture(scope="module")
def data():
    return bg.data.text_like(3000, 4000, 60.0, seed=3)


def iterates(problem, options, n_threads, kind="random"):
    partition = bg.make_partition(problem.X, n_blocks=options.n_blocks, kind=kind, seed=1, n_threads=n_threads)
    engine = block_greedy(CoreProblem(problem, n_threads), partition, options)
    engine.run(15, np.inf)
    return engine.coef.tobytes() + engine.Xw.tobytes() + engine.derivs.tobytes()


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize(
    "size", [(32, 32, 1), (1, 1, 1), (32, 8, 1), (8, 8, 40), (4000, 700, 1), (4000, 1, 1), (3, 2, 5)], ids=str
)
@pytest.mark.parametrize("scan", ["slices", "blocks"])
def test_iterates_do_not_depend_on_threads(data, update, size, scan):
    problem = bg.Problem(data.X, data.y, loss="logistic", alpha=1e-4)
    options = FamilyOptions(*size, update, scan=scan)
    results = {n_threads: iterates(problem, options, n_threads) for n_threads in THREADS}
    assert len(set(results.values())) == 1
    assert iterates(problem, options, 2) == results[2]


@pytest.mark.parametrize("scan", ["slices", "blocks"])
def test_both_scans_give_the_same_iterates(data, scan):
    problem = bg.Problem(data.X, data.y, loss="logistic", alpha=1e-4)
    assert iterates(problem, FamilyOptions(32, 32, scan=scan), 3) == iterates(problem, FamilyOptions(32, 32), 1)


@pytest.mark.parametrize("method", ["auto", "thread-greedy"])
@pytest.mark.parametrize("loss", LOSSES)
def test_whole_solutions_do_not_depend_on_threads(data, loss, method):
    problem = bg.Problem(data.X, data.y, loss=loss, alpha=1e-3)
    found = [bg.solve(problem, method, n_threads=n, max_iter=60, tol=1e-9) for n in THREADS]
    for other in found[1:]:
        np.testing.assert_array_equal(other.coef, found[0].coef)
        np.testing.assert_array_equal(other.dual, found[0].dual)
        assert other.gap == found[0].gap
        assert list(other.trace["objective"]) == list(found[0].trace["objective"])


@pytest.mark.parametrize(("n_columns", "per_row"), [(4000, 30), (60, 6)], ids=["short columns", "long columns"])
def test_tall_results_do_not_depend_on_threads_and_are_proven(rng, n_columns, per_row):
    """From 2^18 rows on, products go by private sums (short columns) or by slabs of rows (long ones)."""
    n = 1 << 18
    columns = (n_columns * rng.random(n * per_row) ** 2).astype(np.int32)  # the first columns are the densest
    values = rng.normal(size=len(columns)).astype(np.float32)
    X = sp.csr_array((values, columns, np.arange(0, len(columns) + 1, per_row)), shape=(n, n_columns)).tocsc()
    X.sum_duplicates()
    w = np.where(rng.random(n_columns) < 0.7, rng.normal(size=n_columns), 0.0)
    y = np.where(X @ w + rng.normal(size=n) > 0, 1.0, -1.0)
    problem = bg.Problem(X, y, loss="logistic", alpha=1.0, fit_intercept=True)
    problem = problem.with_alpha(1e-3 * problem.alpha_max)
    found = [bg.solve(problem, tol=1e-7, n_threads=k) for k in (1, 2, 3)]
    assert found[0].status == "converged"
    margins = y * (X.astype(np.float64) @ found[0].coef + found[0].intercept)
    objective = np.mean(np.logaddexp(0.0, -margins)) + problem.alpha * np.abs(found[0].coef).sum()
    assert found[0].objective == pytest.approx(objective, rel=1e-12)
    gap = problem.duality_gap(found[0].coef, found[0].intercept, found[0].dual)
    assert gap <= 1e-7 * problem.null_model.objective
    for other in found[1:]:
        np.testing.assert_array_equal(other.coef, found[0].coef)
        np.testing.assert_array_equal(other.dual, found[0].dual)


def test_dense_results_do_not_depend_on_threads(rng):
    X, y = np.asfortranarray(rng.normal(size=(2500, 300))), np.where(rng.random(2500) < 0.5, 0, 1)
    problem = bg.Problem(X, y, loss="logistic", alpha=1e-3)
    assert len({iterates(problem, FamilyOptions(16, 16), n) for n in THREADS}) == 1


@pytest.mark.parametrize(("update", "atomic"), [("line-search", False), ("add", True), ("joint", False)])
def test_more_accepted_features_than_a_job_has_parts(update, atomic):
    p = 2**20 + 5
    X = sp.csc_array((np.ones(p, dtype=np.float32), np.arange(p, dtype=np.int32), np.arange(p + 1, dtype=np.int32)))
    problem = bg.Problem(X, np.ones(p), alpha=0.1 / p)
    options = FamilyOptions(p, p, 1, update, atomic=atomic)
    engine = block_greedy(CoreProblem(problem, 2), bg.make_partition(X, n_blocks=p, kind="contiguous"), options)
    engine.run(1, np.inf)
    np.testing.assert_allclose(engine.coef, 0.9, rtol=1e-6)


def test_mathematical_ties_are_broken_alike_by_any_number_of_threads():
    """Columns c·x with weight c all have the same gain, near the edge of the threshold."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        x, scales = rng.normal(size=200), rng.uniform(0.1, 10, size=3000)
        X = np.asfortranarray(np.outer(x, scales))
        problem = bg.Problem(X, x + 0.1 * rng.normal(size=200), alpha=1.0, penalty_weights=scales)
        problem = problem.with_alpha(problem.alpha_max * (1 - 10.0 ** rng.uniform(-12, -8)))
        partition = bg.make_partition(X, n_blocks=2, kind="contiguous")
        seen = []
        for n_threads in THREADS:
            engine = block_greedy(CoreProblem(problem, n_threads), partition, FamilyOptions(2, 2))
            engine.run(1, np.inf)
            seen.append(engine.accepted)
        assert all(s == seen[0] for s in seen)


def test_atomic_additions_agree_up_to_rounding(data):
    problem = bg.Problem(data.X, data.y, loss="logistic", alpha=1e-3)
    partition = bg.make_partition(problem.X, n_blocks=4, kind="random")
    for update in ("add", "line-search"):
        plain, atomic = (
            block_greedy(CoreProblem(problem, 3), partition, FamilyOptions(4, 4, 1, update, atomic=flag))
            for flag in (False, True)
        )
        plain.run(10, np.inf)
        atomic.run(10, np.inf)
        np.testing.assert_allclose(atomic.Xw, plain.Xw, atol=1e-12)
        np.testing.assert_allclose(atomic.coef, plain.coef, atol=1e-12)
