"""Faults of a cluster of Dask: the fit goes on, or ends with a sentence; nothing waits for ever."""

import os
import re
import signal
import threading
import time
import warnings

import numpy as np
import pytest

import blockgreedy as bg
from blockgreedy.backends.tiles import dask
from blockgreedy.data.conversion import convert
from blockgreedy.solvers import dask_gang, dask_solver
from dask_clusters import distributed, scheduler_and_workers, started
from test_tiles import assert_same_optimum, made

pytestmark = [pytest.mark.xdist_group("dask-faults"), pytest.mark.filterwarnings("ignore::RuntimeWarning")]

# where a worker is killed: a class of the worker's process, its method, and at which call
PHASES = {
    "loading": ("parcel", "Parcel", "shard", 1),
    "gradient": ("solver", "TileSolver", "_scan", 3),
    "model": ("solver", "TileSolver", "_minimise", 2),
    "line search": ("solver", "TileSolver", "_line_search", 3),
    "checkpoint": ("worker", "TileWorker", "support", 3),
    "proof": ("worker", "TileWorker", "verify", 1),
    "dual point": ("worker", "TileWorker", "dual", 1),
}


def set_trap(module, kind, method, call, signum):
    """In a worker: its process gets the signal when the method is called for the so-many-th time."""
    import importlib

    owner = getattr(importlib.import_module(f"blockgreedy.backends.tiles.{module}"), kind)
    real, calls = getattr(owner, method), []

    def trapped(self, *args, **kwargs):
        calls.append(1)
        if len(calls) == call:
            os.kill(os.getpid(), signum)
        return real(self, *args, **kwargs)

    setattr(owner, method, trapped)


@pytest.fixture
def client():
    """Of a cluster of its own: a nanny that dies while it starts a worker again would be missing in the next test."""
    with started() as cluster, distributed.Client(cluster) as client:
        yield client


def status_of(dask_worker):
    return dask_worker.status.name


def workers_of(client):
    """Both, once one that was killed is back, and what starts them again would do so once more."""
    client.wait_for_workers(2, timeout=60)
    deadline = time.perf_counter() + 60
    while set(client.run(status_of, nanny=True).values()) != {"running"}:
        assert time.perf_counter() < deadline
        time.sleep(0.05)
    return sorted(client.scheduler_info(n_workers=-1)["workers"])


@pytest.mark.parametrize(("rank", "phase"), [(k % 2, phase) for k, phase in enumerate(PHASES)] + [(0, "gradient")])
def test_a_worker_killed_in_any_phase_costs_at_most_an_iteration(client, rank, phase):
    problem = made("logistic", {"fit_intercept": True})
    addresses = workers_of(client)
    undisturbed = bg.solve(problem, cluster=client, tol=1e-9)
    client.run(set_trap, *PHASES[phase], signal.SIGKILL, workers=[addresses[rank]])
    began = time.perf_counter()
    with pytest.warns(RuntimeWarning, match=re.escape(addresses[rank]) + ".*: the fit goes on from iteration"):
        solution = bg.solve(problem, cluster=client, tol=1e-9)
    assert time.perf_counter() - began < 30
    assert_same_optimum(problem, solution, 1e-9)
    iterations = [record.iteration for record in solution.trace.records]
    assert iterations == list(range(len(iterations)))
    # a start anew knows less of the columns, and a lost proof takes iterations to find again
    assert solution.n_iter <= undisturbed.n_iter + 3


def test_waits_are_bounded():
    """A stopped worker, at worst: asked, not heard of, asked again before the next gang begins."""
    assert dask.PING_EVERY + dask.PATIENCE + dask_gang._TO_ANSWER + dask_solver._FOR_RESTART < 30
    assert dask_solver._FOR_ANY + dask_gang._TO_ANSWER < 30
    assert dask_gang._SCHEDULER_ANSWERS < 30


def be_impatient():
    """In a worker or here."""
    from blockgreedy.backends.tiles import dask
    from blockgreedy.solvers import dask_gang

    dask.PATIENCE = dask_gang.PATIENCE = 2.0


@pytest.mark.parametrize("rank", [0, 1])
def test_a_stopped_worker_is_left_behind(monkeypatch, rank):
    for name in ("PATIENCE", "_TO_ANSWER", "_ENDING"):
        monkeypatch.setattr(dask_gang, name, 2.0)
    problem = made("logistic", {"fit_intercept": True})
    with started() as cluster, distributed.Client(cluster) as client:
        address = workers_of(client)[rank]
        client.run(be_impatient)
        pid = client.run(os.getpid, workers=[address])[address]
        client.run(set_trap, "solver", "TileSolver", "_minimise", 2, signal.SIGSTOP, workers=[address])
        try:
            began = time.perf_counter()
            solution = bg.solve(problem, cluster=client, tol=1e-9)
            assert time.perf_counter() - began < 30
        finally:
            os.kill(pid, signal.SIGKILL)
    assert_same_optimum(problem, solution, 1e-9)


def test_a_path_goes_on_at_the_alpha_where_a_worker_was_killed(client):
    problem = made("logistic", {"fit_intercept": True})
    client.run(set_trap, "solver", "TileSolver", "_scan", 9, signal.SIGKILL, workers=[workers_of(client)[1]])
    with pytest.warns(RuntimeWarning, match="the fit goes on from iteration"):
        path = bg.solve_path(problem, n_alphas=5, tol=1e-7, cluster=client)
    assert [point.status for point in path.points] == ["converged"] * 5
    for point, best in zip(path.points, bg.solve_path(problem, n_alphas=5, tol=1e-7).points, strict=True):
        assert point.objective == pytest.approx(best.objective, abs=2e-7 * problem.null_model.objective)


def test_chunks_of_a_killed_worker_are_made_again(client):
    da = pytest.importorskip("dask.array")
    from blockgreedy.estimators.dask import DaskLasso

    X = np.random.default_rng(0).standard_normal((300, 20))
    y = X[:, 0] + X[:, 1]
    client.run(set_trap, "solver", "TileSolver", "_scan", 2, signal.SIGKILL, workers=[workers_of(client)[0]])
    with pytest.warns(RuntimeWarning, match="the fit goes on from iteration"):
        model = DaskLasso(alpha=0.05, tol=1e-9).fit(da.from_array(X, chunks=(60, 20)), y, client=client)
    assert model.coef_ == pytest.approx(bg.Lasso(alpha=0.05, tol=1e-9).fit(X, y).coef_, abs=1e-6)


def test_checkpoints_are_written_by_the_client(client, tmp_path):
    problem, file = made("logistic", {"fit_intercept": True}), tmp_path / "fit.checkpoint"
    workers_of(client)
    first = bg.solve(problem, cluster=client, tol=1e-9, max_iter=3, checkpoint=file)
    second = bg.solve(problem, cluster=client, grid=(1, 1), tol=1e-9, checkpoint=file, resume=True)
    assert first.status == "max_iter"
    assert second.trace.records[0].iteration == 3
    assert second.trace.records[0].objective == pytest.approx(first.objective)
    assert_same_optimum(problem, second, 1e-9)


def test_a_damaged_tile_is_named(client, tmp_path):
    data = bg.data.text_like(200, 300, 10.0, seed=2)
    convert(bg.data.Dataset(data.X, data.y), tmp_path / "text.store", row_groups=2)
    file = tmp_path / "text.store" / "tile-0001-0000.data.npy"
    damaged = bytearray(file.read_bytes())
    damaged[-5] ^= 64
    file.write_bytes(damaged)
    workers_of(client)
    problem = bg.Problem(bg.data.Store(tmp_path / "text.store"), loss="logistic", alpha=0.01)
    with pytest.raises(ValueError, match=r"tile-0001-0000\.data\.npy"):
        bg.solve(problem, cluster=client, grid=(2, 1))


def gathers(gang, rank, addresses):
    """A task: two ranks tell each other their process; the second then dies without a word."""
    with dask.part_in(gang, rank, addresses) as (ranks, _, _):
        ranks.gather(np.array([float(os.getpid())]))
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        began = time.perf_counter()
        try:
            ranks.reduce(np.ones(3))
        except dask.PeerLostError as error:
            return str(error), time.perf_counter() - began
    return "", 0.0


def test_a_lost_peer_is_named_in_time(client):
    """The communicator alone, without a client that watches."""
    addresses = workers_of(client)
    client.run(be_impatient)
    client.run(dask.open_office, "pair")
    tasks = [
        client.submit(gathers, "pair", rank, addresses, workers=[address], allow_other_workers=True, pure=False)
        for rank, address in enumerate(addresses)
    ]
    text, seconds = tasks[0].result(timeout=30)
    assert addresses[1] in text
    assert "rank 1" in text
    assert seconds < 15
    for task in tasks:
        task.cancel()


def test_a_dead_scheduler_ends_the_fit_with_a_sentence_and_its_weights():
    problem = made("logistic", {"fit_intercept": True})
    with scheduler_and_workers() as (process, address), distributed.Client(address, timeout=10) as client:
        client.wait_for_workers(2, timeout=60)

        def kill_the_scheduler(record):
            if record.iteration == 2:
                process.kill()

        began = time.perf_counter()
        with pytest.raises(RuntimeError, match="the fit on the cluster ended after iteration") as caught:
            bg.solve(problem, cluster=client, tol=1e-9, callback=kill_the_scheduler)
        assert time.perf_counter() - began < 30
        assert "scheduler" in str(caught.value)
        again = bg.solve(problem, tol=1e-9, coef_init=caught.value.coef, intercept_init=caught.value.intercept)
        assert_same_optimum(problem, again, 1e-9)


def test_a_worker_without_enough_memory_is_refused_with_the_bytes():
    problem = bg.Problem(np.random.default_rng(0).standard_normal((8000, 4000)), np.ones(8000), alpha=0.1)
    refused = r"worker tcp://\S+ has too little memory for its part of X: it takes .*bytes\)"
    with (
        started(memory_limit="250MB") as cluster,
        distributed.Client(cluster) as client,
        pytest.raises(MemoryError, match=refused),
    ):
        bg.solve(problem, cluster=client)


def test_two_fits_at_once_take_turns_and_both_finish(client):
    workers_of(client)
    problems = [made(loss, {"fit_intercept": True}) for loss in ("logistic", "squared")]
    solutions = [None, None]

    def fit(k):
        with distributed.Client(client.scheduler.address, set_as_default=False) as own:
            solutions[k] = bg.solve(problems[k], cluster=own, tol=1e-9)

    threads = [threading.Thread(target=fit, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for problem, solution in zip(problems, solutions, strict=True):
        assert_same_optimum(problem, solution, 1e-9)


def test_an_error_on_a_worker_is_the_error_of_the_fit(client):
    def fail(self, *args):
        raise ZeroDivisionError("on purpose")

    def install():
        from blockgreedy.backends.tiles.solver import TileSolver

        TileSolver.kept, TileSolver._minimise = TileSolver._minimise, fail

    def undo():
        from blockgreedy.backends.tiles.solver import TileSolver

        TileSolver._minimise = TileSolver.kept

    client.run(install, workers=[workers_of(client)[1]])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ZeroDivisionError, match="on purpose"):
                bg.solve(made("logistic", {}), cluster=client)
    finally:
        client.run(undo, workers=[workers_of(client)[1]])
