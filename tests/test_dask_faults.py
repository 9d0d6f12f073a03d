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
from test_tiles import assert_same_optimum, made

distributed = pytest.importorskip("distributed", reason="Dask is not installed")

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
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="1GB", dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def workers_of(client):
    return sorted(client.scheduler_info(n_workers=-1)["workers"])


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("rank", [0, 1])
def test_a_worker_killed_in_any_phase_costs_at_most_an_iteration(client, phase, rank):
    problem = made("logistic", {"fit_intercept": True})
    undisturbed = bg.solve(problem, cluster=client, grid=(2, 1), tol=1e-9)
    client.run(set_trap, *PHASES[phase], signal.SIGKILL, workers=[workers_of(client)[rank]])
    began = time.perf_counter()
    with pytest.warns(RuntimeWarning, match="the fit goes on from iteration"):
        solution = bg.solve(problem, cluster=client, tol=1e-9)
    assert time.perf_counter() - began < 30
    assert_same_optimum(problem, solution, 1e-9)
    iterations = [record.iteration for record in solution.trace.records]
    assert iterations == sorted(set(iterations))
    if phase not in ("proof", "dual point"):  # where iterations find the proof again
        assert solution.n_iter <= undisturbed.n_iter + 3


@pytest.mark.parametrize("rank", [0, 1])
def test_a_stopped_worker_is_left_behind(client, rank):
    problem = made("logistic", {"fit_intercept": True})
    address = workers_of(client)[rank]
    pid = client.run(os.getpid, workers=[address])[address]
    client.run(set_trap, "solver", "TileSolver", "_minimise", 2, signal.SIGSTOP, workers=[address])
    began = time.perf_counter()
    try:
        solution = bg.solve(problem, cluster=client, tol=1e-9)
        assert time.perf_counter() - began < 30
        assert_same_optimum(problem, solution, 1e-9)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_dead_scheduler_ends_the_fit_with_a_sentence_and_its_weights(tmp_path):
    problem = made("logistic", {"fit_intercept": True})
    with scheduler_and_workers() as (process, address), distributed.Client(address, timeout=10) as client:
        client.wait_for_workers(2, timeout=20)

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


def scheduler_and_workers():
    """Processes of their own, as `dask scheduler` and `dask worker` start them."""
    import contextlib
    import subprocess
    import sys

    @contextlib.contextmanager
    def started():
        command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
        quiet = {"stdout": subprocess.DEVNULL}
        scheduler = subprocess.Popen([*command, "--host", "127.0.0.1"], stderr=subprocess.PIPE, text=True, **quiet)
        workers = []
        try:
            address = None
            for line in scheduler.stderr:
                found = re.search(r"Scheduler at:\s+(tcp://\S+)", line)
                if found:
                    address = found[1]
                    break
            threading.Thread(target=scheduler.stderr.read, daemon=True).start()
            command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard"]
            workers = [
                subprocess.Popen([*command, "--no-nanny"], stderr=subprocess.DEVNULL, **quiet) for _ in range(2)
            ]
            yield scheduler, address
        finally:
            for process in [*workers, scheduler]:
                process.kill()
                process.wait()

    return started()


def test_a_lost_peer_is_named_in_time():
    """The communicator alone, without a client that watches."""


def test_a_worker_without_enough_memory_is_refused_with_the_bytes():
    problem = bg.Problem(np.random.default_rng(0).standard_normal((4000, 4000)), np.ones(4000), alpha=0.1)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="180MB", dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
        pytest.raises(MemoryError, match=r"worker tcp://\S+ has too little memory for its part of X: it takes .* bytes"),
    ):
        bg.solve(problem, cluster=client)


def test_two_fits_at_once_take_turns_and_both_finish(client):
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

        TileSolver._minimise = fail

    client.run(install, workers=[workers_of(client)[1]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ZeroDivisionError, match="on purpose"):
            bg.solve(made("logistic", {}), cluster=client)
