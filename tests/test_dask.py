"""Fits on a cluster of Dask: the single-machine solver's optimum on every grid; Ctrl-C, limits, paths, estimators."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
import command_line
from blockgreedy.backends.tiles.messages import MessageRank
from blockgreedy.backends.tiles.threads import run_in_threads
from blockgreedy.data.conversion import convert
from dask_clusters import distributed, started
from test_tiles import GRIDS, LOSSES, OPTIONS, assert_same_optimum, made

da = pytest.importorskip("dask.array", reason="Dask is not installed")

pytestmark = pytest.mark.xdist_group("dask")


@pytest.fixture(scope="module")
def client():
    with started(n_workers=4) as cluster, distributed.Client(cluster) as client:
        yield client


class Pipes:
    """Messages between threads, for the collective operations alone."""

    def __init__(self):
        self.arrived, self.changed = {}, threading.Condition()

    def of(self, rank):
        pipes = self

        class Post:
            def trade(self, tag, outgoing, incoming):
                with pipes.changed:
                    for to, values in outgoing.items():
                        pipes.arrived[tag, rank, to] = values.copy()
                    pipes.changed.notify_all()
                    found = {}
                    for source in incoming:
                        assert pipes.changed.wait_for(lambda: (tag, source, rank) in pipes.arrived, 10)  # noqa: B023
                        found[source] = pipes.arrived.pop((tag, source, rank))
                    return found

        return Post()


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 9, 12])
def test_collective_operations_of_messages(size):
    pipes = Pipes()

    def work(ranks):
        own = MessageRank(pipes.of(ranks.rank), range(size), ranks.rank)
        random = np.random.default_rng(ranks.rank)
        short, long = random.standard_normal(5).astype(np.float32), random.standard_normal(20_000)
        found = [own.reduce(short), own.reduce(long), own.reduce(short, "max"), own.reduce(long, "min")]
        found.append(np.concatenate(own.gather(np.full(ranks.rank, 1.0))))
        found.append(np.array(own.broadcast({"a": 3} if own.rank == 0 else None)["a"]))
        parts = own.exchange([np.array([10.0 * own.rank + to]) for to in range(size)])
        assert [float(part[0]) for part in parts] == [10.0 * source + own.rank for source in range(size)]
        half = own.split(own.rank % 2)
        total = half.reduce(np.array([float(own.rank)]))
        assert total == sum(range(own.rank % 2, size, 2))
        return [values.tobytes() for values in found], found

    results = run_in_threads(size, work)
    assert all(bits == results[0][0] for bits, _ in results)
    expected = sum(np.random.default_rng(rank).standard_normal(5).astype(np.float32) for rank in range(size))
    assert results[0][1][0] == pytest.approx(expected, rel=1e-4)
    assert not pipes.arrived


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_and_option_has_the_same_optimum_on_every_grid(client, loss):
    for name, options in OPTIONS.items():
        problem = made(loss, options, seed=len(name))
        for grid in GRIDS:
            assert_same_optimum(problem, bg.solve(problem, cluster=client, grid=grid, tol=1e-9), 1e-9)


def test_ranks_of_dask_give_the_bits_that_threads_give(client):
    problem = made("logistic", {"fit_intercept": True})
    ours = bg.solve(problem, cluster=client, grid=(2, 2))
    theirs = run_in_threads(4, lambda ranks: bg.solve(problem, cluster=ranks, grid=(2, 2), n_threads=1))[0]
    assert np.array_equal(ours.coef, theirs.coef)
    assert ours.intercept == theirs.intercept


def test_a_store_is_opened_by_the_workers(client, tmp_path):
    data = bg.data.text_like(2000, 1500, 20.0, seed=2)
    convert(bg.data.Dataset(data.X, data.y), tmp_path / "text.store", row_groups=3)
    problem = bg.Problem(bg.data.Store(tmp_path / "text.store"), loss="logistic", alpha=1.0, fit_intercept=True)
    problem = problem.with_alpha(0.02 * problem.alpha_max)
    solution = bg.solve(problem, cluster=client, grid=(2, 2), tol=1e-6)
    plain = bg.Problem(data, loss="logistic", alpha=problem.alpha, fit_intercept=True)
    assert_same_optimum(plain, bg.solve(problem, cluster=client, tol=1e-9), 1e-9)
    assert (
        plain.duality_gap(solution.coef, solution.intercept, solution.dual) <= 1.001e-6 * plain.null_model.objective
    )


def test_the_command_fits_on_a_scheduler(client, tmp_path):
    data = bg.data.text_like(500, 400, 10.0, seed=2)
    convert(bg.data.Dataset(data.X, data.y), tmp_path / "text.store", row_groups=2)
    settings = ["--loss", "logistic", "--alpha", "0.001", "--tol", "1e-8", "--model", tmp_path / "model.npz"]
    asked = [tmp_path / "text.store", *settings, "--cluster"]
    address = client.scheduler.address.removeprefix("tcp://")
    done = command_line.fit(*asked, f"dask://{address}")
    assert done.exit_code == 0, done.output
    problem = bg.Problem(data, loss="logistic", alpha=0.001, fit_intercept=True)
    model = bg.Model.load(tmp_path / "model.npz")
    best = bg.solve(problem, tol=1e-9).objective
    assert problem.objective(model.coef, model.intercept) <= best + 2e-8 * problem.null_model.objective
    refused = command_line.fit(*asked, "dusk")
    assert "accepted: mpi, local, dask://HOST:PORT" in refused.output


def test_paths(client):
    problem = made("squared", {"fit_intercept": True})
    ours, best = (bg.solve_path(problem, n_alphas=5, tol=1e-7, cluster=cluster) for cluster in (client, None))
    assert [point.status for point in ours.points] == ["converged"] * 5
    for here, there in zip(ours.points, best.points, strict=True):
        assert here.objective == pytest.approx(there.objective, abs=2e-7 * problem.null_model.objective)


def test_callback_trace_and_limits(client):
    problem, records = made("logistic", {"fit_intercept": True}), []

    def stop_at_two(record):
        records.append(record)
        return record.iteration == 2

    stopped = bg.solve(problem, cluster=client, tol=1e-9, callback=stop_at_two)
    assert (stopped.status, stopped.n_iter) == ("interrupted", 2)
    assert [record.iteration for record in records] == [0, 1, 2]
    assert stopped.trace.records == records
    assert bg.solve(problem, cluster=client, tol=1e-9, max_iter=1).status == "max_iter"
    assert bg.solve(problem, cluster=client, tol=1e-9, max_seconds=1e-9).status == "max_seconds"
    events = [event for _, event in client.get_events("blockgreedy")]
    assert any(event["iteration"] == 2 for event in events)


def test_ctrl_c_returns_the_best_so_far(client):
    problem = made("logistic", {"fit_intercept": True})

    def press(record):
        if record.iteration == 1:  # it comes while workers are busy with the next iteration
            threading.Timer(0.0, os.kill, (os.getpid(), signal.SIGINT)).start()

    solution = bg.solve(problem, cluster=client, tol=1e-13, callback=press)
    assert solution.status == "interrupted"
    assert solution.objective < problem.null_model.objective
    objective, gap = problem.objective_and_gap(solution.coef, solution.intercept, solution.dual)
    assert objective == pytest.approx(solution.objective)
    assert gap <= solution.gap * (1 + 1e-9)


def test_what_is_refused(client):
    problem = made("squared", {})
    with pytest.raises(ValueError, match=r"grid=3 × 2 needs 6 workers; 4 of the cluster answer"):
        bg.solve(problem, cluster=client, grid=(3, 2))
    with pytest.raises(TypeError, match="a Client of Dask"):
        bg.solve(problem, cluster="dask")
    with distributed.Client(client.scheduler.address, set_as_default=False) as closed:
        pass
    with pytest.raises(ValueError, match="is not connected"):
        bg.solve(problem, cluster=closed)


# -- estimators


def classes(n=400, p=60, seed=0, dense=False):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, p)) if dense else sp.random(n, p, density=0.2, random_state=seed, format="csr")
    y = np.where(np.asarray(X[:, :3].sum(axis=1)).ravel() + 0.3 * random.standard_normal(n) > 0, "yes", "no")
    return X, y


def chunked(X, rows, columns):
    """A Dask array of scipy's sparse matrices."""
    blocks = [
        [
            da.from_array(X[i : i + rows, j : j + columns].toarray(), chunks=-1).map_blocks(sp.csr_matrix)
            for j in range(0, X.shape[1], columns)
        ]
        for i in range(0, X.shape[0], rows)
    ]
    return da.block(blocks)


def assert_like(model, local, tol=1e-6):
    assert model.status_ == "converged"
    assert model.coef_ == pytest.approx(local.coef_, abs=tol)
    assert model.intercept_ == pytest.approx(local.intercept_, abs=tol)


@pytest.mark.parametrize(
    ("kind", "chunks"), [("dense", (90, 60)), ("dense", (400, 15)), ("sparse", (400, 15)), ("sparse", (100, 30))]
)
def test_estimators_take_arrays_in_chunks(client, kind, chunks):
    from blockgreedy.estimators.dask import DaskLasso, DaskLogisticRegression

    X, y = classes(dense=kind == "dense")
    lazy = da.from_array(X, chunks=chunks) if kind == "dense" else chunked(X, *chunks)
    model = DaskLogisticRegression(alpha=0.01, tol=1e-9).fit(lazy, da.from_array(y, chunks=50), client=client)
    local = bg.LogisticRegression(alpha=0.01, tol=1e-9).fit(X, y)
    assert_like(model, local)
    assert list(model.classes_) == ["no", "yes"]
    predicted = model.predict(lazy)
    assert isinstance(predicted, da.Array)
    assert np.array_equal(predicted.compute(), local.predict(X))
    assert model.predict_proba(lazy).compute() == pytest.approx(local.predict_proba(X), abs=1e-6)
    assert model.decision_function(lazy).compute() == pytest.approx(local.decision_function(X), abs=1e-5)
    plain = model.to_local()
    assert type(plain) is bg.LogisticRegression
    assert np.array_equal(plain.predict(X), local.predict(X))
    t = np.asarray(X[:, :4].sum(axis=1)).ravel()
    lasso = DaskLasso(alpha=0.01, tol=1e-9, standardize=False).fit(lazy, t)  # the current client
    assert_like(lasso, bg.Lasso(alpha=0.01, tol=1e-9).fit(X, t))
    assert lasso.predict(lazy).compute() == pytest.approx(lasso.to_local().predict(X))


def test_estimators_take_tables_partitions_and_stores(client, tmp_path):
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    import dask

    from blockgreedy.estimators.dask import DaskLasso, DaskLogisticRegression

    X, y = classes(dense=True, p=12)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)])
    weights = np.random.default_rng(1).random(400)
    local = bg.LogisticRegression(C=0.1, tol=1e-9).fit(frame, y, weights)
    table = dd.from_pandas(frame, npartitions=5)
    labels = dd.from_pandas(pd.Series(y), npartitions=5)
    model = DaskLogisticRegression(C=0.1, tol=1e-9).fit(table, labels, da.from_array(weights, chunks=80))
    assert_like(model, local)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert np.array_equal(model.predict(table).compute(), local.predict(frame))

    parts = [dask.delayed(sp.csr_matrix)(X[k : k + 100]) for k in range(0, 400, 100)]
    targets = [dask.delayed(np.asarray)(X[k : k + 100, 0]) for k in range(0, 400, 100)]
    free = np.append(0.0, np.ones(11))
    settings = {"alpha": 0.05, "tol": 1e-9, "penalty_weights": free}
    lasso = DaskLasso(**settings).fit(parts, targets)
    assert_like(lasso, bg.Lasso(**settings).fit(X, X[:, 0]))
    assert lasso.predict(parts).compute() == pytest.approx(lasso.to_local().predict(X))

    convert(bg.data.Dataset(sp.csc_array(X), (y == "yes").astype(float)), tmp_path / "x.store")
    stored = DaskLogisticRegression(C=0.1, tol=1e-9).fit(bg.data.Store(tmp_path / "x.store"))
    assert_like(stored, bg.LogisticRegression(C=0.1, tol=1e-9).fit(X, (y == "yes").astype(float)))


def test_several_classes_far_columns_and_clones(client):
    from sklearn.base import clone

    from blockgreedy.estimators.dask import DaskLasso, DaskLogisticRegression

    X, _ = classes(dense=True, p=8)
    y = np.argmax(X[:, :3], axis=1)
    model = DaskLogisticRegression(alpha=0.01, tol=1e-9)
    lazy = da.from_array(X, chunks=(100, 8))
    assert_like(model.fit(lazy, y), bg.LogisticRegression(alpha=0.01, tol=1e-9).fit(X, y))
    assert model.predict_proba(lazy).shape == (400, 3)
    assert np.array_equal(model.predict(lazy).compute(), model.to_local().predict(X))
    assert clone(model).get_params() == model.get_params()
    far = X + 2000.0
    assert_like(
        DaskLasso(alpha=0.01, tol=1e-9).fit(da.from_array(far, chunks=(130, 8)), X[:, 0]),
        bg.Lasso(alpha=0.01, tol=1e-9).fit(far, X[:, 0]),
    )


def test_estimators_refuse_what_they_cannot_use(client):
    from blockgreedy.estimators.dask import DaskLasso

    X, _ = classes(dense=True, p=8)
    lazy = da.from_array(X, chunks=(100, 8))
    with pytest.raises(ValueError, match="y has 399 rows, and X has 400"):
        DaskLasso().fit(lazy, np.ones(399))
    with pytest.raises(TypeError, match="a Dask array, a Dask DataFrame, a list of delayed partitions or a Store"):
        DaskLasso().fit(X, np.ones(400))
    with pytest.raises(ValueError, match="NaN"):
        DaskLasso().fit(da.from_array(np.where(X > 3, np.nan, X), chunks=(100, 8)), np.ones(400))
    with pytest.raises(TypeError, match="y is missing"):
        DaskLasso().fit(lazy)


def test_a_table_is_predicted_by_the_names_of_its_columns(client):
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    from blockgreedy.estimators.dask import DaskLasso

    X, _ = classes(dense=True, p=4)
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = DaskLasso(alpha=0.01).fit(dd.from_pandas(frame, npartitions=3), X[:, 0])
    for other in (frame[list("dcba")], frame.rename(columns={"a": "e"})):
        with pytest.raises(ValueError, match="The feature names should match those that were passed during fit"):
            model.predict(dd.from_pandas(other, npartitions=3))


def test_futures_are_predicted_as_they_are_fitted(client):
    from blockgreedy.estimators.dask import DaskLasso

    X, _ = classes(dense=True, p=4)
    parts = client.scatter([X[k : k + 100] for k in range(0, 400, 100)])
    model = DaskLasso(alpha=0.01).fit(parts, X[:, 0])
    assert model.predict(parts).compute() == pytest.approx(model.to_local().predict(X))


def test_what_is_no_matrix_and_no_client_is_named(client):
    import dask

    from blockgreedy.estimators.dask import DaskLasso

    with pytest.raises(TypeError, match=r"a part of X is a list; it must be a NumPy array, a scipy\.sparse matrix"):
        DaskLasso().fit([dask.delayed([[1.0], [2.0]])], np.ones(2))
    with pytest.raises(ValueError, match=r"X has 3 dimension\(s\), expected 2"):
        DaskLasso().fit(da.ones((4, 3, 2)), np.ones(4))
    with pytest.raises(TypeError, match="client='here' must be a Client of Dask"):
        DaskLasso().fit(da.ones((4, 3)), np.ones(4), client="here")


def test_nobody_else_needs_dask():
    code = "import sys, blockgreedy, blockgreedy.estimators; assert not {'dask', 'distributed'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, cwd=Path(__file__).parent)
