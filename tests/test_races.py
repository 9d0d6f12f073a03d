"""Every loop of the core that threads share, once and small: what `make races` runs under ThreadSanitizer.

Work of less than 30,000 nonzeros stays on one thread, so these problems have somewhat more.
"""

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy import _core
from blockgreedy.problem.columns import as_columns
from blockgreedy.problem.passes import core_matrix
from blockgreedy.solvers import fold_group
from conftest import UPDATES

pytestmark = [pytest.mark.threads, pytest.mark.races]
THREADS = (1, 3)


@pytest.fixture(scope="module")
def text():
    return bg.data.text_like(1500, 1000, 60.0, seed=3, n_threads=2)


@pytest.fixture(scope="module")
def dense():
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.normal(size=(2500, 40)))
    return X, X[:, :5] @ np.ones(5) + rng.normal(size=2500)


def same_matrix(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("data", "indices", "indptr"))


@pytest.mark.parametrize("make", [bg.data.text_like, bg.data.kdda_like])
def test_generated_data(make):
    one, other = (make(3000, 4000, 40.0 if make is bg.data.text_like else 120_000, n_threads=k) for k in THREADS)
    assert same_matrix(one.X, other.X)
    assert np.array_equal(one.y, other.y)


def test_transposition(text):
    one, other = (as_columns(text.X, n_threads) for n_threads in THREADS)
    assert same_matrix(one, other)
    assert same_matrix(other, sp.csc_array(text.X))


def test_svmlight_text(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{k % 2} " + " ".join(f"{j}:{x:.6f}" for j, x in enumerate(rng.random(20), 1)) for k in range(12_000)]
    (tmp_path / "a.svm").write_text("\n".join(lines) + "\n")
    one, other = (bg.load(tmp_path / "a.svm", n_threads=k, cache=False) for k in THREADS)
    assert same_matrix(one.X, other.X)
    assert one.X.shape == (12_000, 20)


def test_rows_of_a_table_and_crosses():
    rng = np.random.default_rng(0)
    table = {f"c{k}": rng.integers(0, 20, 20_000).astype(str) for k in range(3)} | {"x": rng.normal(size=20_000)}
    one, other = (
        bg.TableEncoder(["c0", "c1", "c2"], cross=["c0,c1", "c0,c2"], min_count=2, n_threads=k).fit_transform(table)
        for k in THREADS
    )
    assert same_matrix(one, other)


@pytest.mark.parametrize("kind", ["clustered", "balanced"])
def test_partitions(text, dense, kind):
    for X, y in ((text.X, text.y), dense):
        one, other = (bg.make_partition(X, y, n_blocks=8, kind=kind, seed=1, n_threads=k) for k in THREADS)
        assert np.array_equal(one.block_of, other.block_of)


def test_products_across_blocks(text):
    X = as_columns(text.X.astype(np.float64))
    rows = sp.csr_array(X)
    block_of = bg.make_partition(X, n_blocks=8, seed=1).block_of
    by_rows = _core.csc(rows.shape[1], rows.indptr, rows.indices, rows.data)
    seeds = np.arange(200, dtype=np.int32)
    products, touched, squares = (
        [_core.cross_products(core_matrix(X), by_rows, None, block_of, 8, seeds, k) for k in THREADS],
        [_core.blocks_touched(core_matrix(X), block_of, 8, k) for k in THREADS],
        [_core.weighted_squares(core_matrix(X), np.ones(X.shape[0]), k) for k in THREADS],
    )
    for one, other in zip(*products, strict=True):
        assert np.array_equal(one, other)
    assert np.array_equal(*touched)
    assert np.array_equal(*squares)


def solved(X, y, method="auto", *, options=None, **problem):
    found = []
    for n_threads in THREADS:
        own = bg.Problem(X, y, **{"loss": "logistic", "alpha": 1e-4, **problem})
        found.append(bg.solve(own, method, n_threads=n_threads, **{"max_iter": 4, "tol": 1e-8, **(options or {})}))
    for name in ("coef", "dual"):
        assert np.array_equal(getattr(found[0], name), getattr(found[1], name))
    assert found[0].nonzeros > 0
    return found[1]


@pytest.mark.filterwarnings("ignore::blockgreedy.ConvergenceRiskWarning")
@pytest.mark.parametrize("per_block", [1, 1000])  # 1000: so many steps that threads share the updates as well
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("scan", ["slices", "blocks"])
def test_the_family(text, update, scan, per_block):
    options = {
        "update": update,
        "scan": scan,
        "n_blocks": 16,
        "per_block": per_block,
        "on_divergence": "continue",
    }  # added steps overshoot
    solved(text.X, text.y, "thread-greedy", options=options)


@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_the_family_with_weights_and_an_intercept(loss):
    """So many rows that threads share the sums and shifts of the intercept."""
    data, rng = bg.data.text_like(16_000, 300, 12.0, seed=3), np.random.default_rng(0)
    y = data.y if loss == "logistic" else data.y + rng.normal(size=16_000)
    rows = {"sample_weight": rng.uniform(0, 2, 16_000), "offset": rng.normal(size=16_000), "fit_intercept": True}
    found = solved(data.X, y, "thread-greedy", loss=loss, options={"n_blocks": 16}, **rows)
    assert found.intercept != 0


@pytest.mark.filterwarnings("ignore::blockgreedy.ConvergenceRiskWarning")
def test_atomic_updates(text):
    """Their order is the threads' own, so only the objective can be compared."""
    problem = bg.Problem(text.X, text.y, loss="logistic", alpha=1e-4)
    options = {"update": "add", "atomic": True, "n_blocks": 16, "max_iter": 4, "per_block": 1000, "tol": 0}
    found = [bg.solve(problem, "thread-greedy", n_threads=k, **options).objective for k in THREADS]
    assert found[0] == pytest.approx(found[1], rel=1e-9)


@pytest.mark.parametrize("blocks", [None, 4])
def test_the_working_set(text, blocks):
    found = solved(text.X, text.y, options={"n_blocks": blocks}, alpha=1e-5, standardize=True, fit_intercept=True)
    assert found.nonzeros > 100


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_the_working_set_of_dense_columns(dense, loss):
    found = solved(*dense, options={"max_iter": 50}, loss=loss, alpha=1e-3, fit_intercept=True)
    assert found.status == "converged"


def test_the_working_set_of_columns_so_long_that_threads_share_their_rows():
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.normal(size=(1 << 18, 3)).astype(np.float32))
    y = X @ np.array([1.0, 2.0, 0.0]) + rng.normal(size=len(X))
    solved(X, y, loss="squared", alpha=0.1, fit_intercept=True, penalty_weights=[0.0, 1.0, 1.0])


def test_a_path_with_kept_products(text):
    problem = bg.Problem(text.X, text.y.astype(float), alpha=1.0)
    one, other = (bg.solve_path(problem, n_alphas=4, eps=0.03, n_threads=k) for k in THREADS)
    assert same_matrix(one.coefs, other.coefs)


def test_folds_side_by_side(text):
    one, other = (
        bg.LogisticRegressionCV(n_alphas=4, eps=0.1, cv=3, n_jobs=k, n_threads=k).fit(text.X, text.y) for k in THREADS
    )
    assert np.array_equal(one.score_path_, other.score_path_)


def test_folds_in_lanes(text, monkeypatch):
    monkeypatch.setattr(fold_group, "_LEAST_ROWS", 1000)
    one, other = (bg.LassoCV(n_alphas=5, eps=0.1, cv=3, n_threads=k).fit(text.X, text.y) for k in THREADS)
    assert np.array_equal(one.score_path_, other.score_path_)
    assert np.array_equal(one.coef_, other.coef_)
