"""Threads: forked children, joblib workers, limits, concurrent solves."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from multiprocessing.dummy import DummyProcess
from pathlib import Path

import joblib
import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.backends.tiles import watch
from blockgreedy.base.cached import cached_property
from blockgreedy.base.threads import resolve_threads
from conftest import SANITIZED

pytestmark = pytest.mark.threads
both = pytest.mark.parametrize("method", ["auto", "thread-greedy"])


def make_problem():
    data = bg.data.text_like(2000, 3000, 60.0, seed=3)
    return bg.Problem(data.X, data.y, loss="logistic", alpha=1e-4)


def fit(method="auto"):
    return bg.solve(make_problem(), method, n_threads=2, max_iter=20).coef


def count_threads(method):
    """(threads asked for by default, most threads alive during a fit)"""
    peak = []

    def look(_record):
        peak.append(len(os.listdir("/proc/self/task")))

    before = len(os.listdir("/proc/self/task"))
    bg.solve(make_problem(), method, max_iter=50, callback=look)
    return resolve_threads(), max(peak) - before


@both
def test_a_forked_child_fits_after_its_parent_did(method):
    if SANITIZED == "thread" and len(os.listdir("/proc/self/task")) > 1:  # of what other tests imported
        pytest.skip("ThreadSanitizer cannot start threads after a multi-threaded fork")
    expected = fit(method)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        results = pool.map_async(fit, [method] * 4).get(timeout=120)
    for coef in results:
        np.testing.assert_array_equal(coef, expected)


@pytest.mark.skipif(SANITIZED == "thread", reason="ThreadSanitizer cannot start threads after a multi-threaded fork")
@both
def test_a_child_forked_from_inside_a_fit_can_fit(method):
    outcome = []

    def fork_once(record):
        if record.iteration > 0 and not outcome:
            child = multiprocessing.get_context("fork").Process(target=fit, args=(method,))
            child.start()
            child.join(60)
            outcome.append(child.exitcode)

    bg.solve(make_problem(), method, n_threads=2, max_iter=30, tol=0, callback=fork_once)
    assert outcome == [0]


@both
def test_joblib_workers_do_not_oversubscribe(method):
    n_jobs = 2
    allowed = max(1, joblib.cpu_count() // n_jobs)
    results = joblib.Parallel(n_jobs=n_jobs)(joblib.delayed(count_threads)(method) for _ in range(2))
    for asked, extra in results:
        assert asked <= allowed
        assert extra <= allowed - 1


@both
def test_no_thread_outlives_a_solve(method):
    before = len(os.listdir("/proc/self/task"))
    fit(method)
    until = time.monotonic() + 5  # the system may list a thread that was joined for a moment
    while len(os.listdir("/proc/self/task")) > before and time.monotonic() < until:
        time.sleep(0.01)
    assert len(os.listdir("/proc/self/task")) <= before


@both
def test_solves_in_several_python_threads_do_not_disturb_each_other(method):
    expected, results = fit(method), {}
    workers = [threading.Thread(target=lambda k=k: results.update({k: fit(method)})) for k in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(results) == 3
    for coef in results.values():
        np.testing.assert_array_equal(coef, expected)


def test_default_follows_affinity_and_environment(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert 1 <= resolve_threads() <= len(os.sched_getaffinity(0))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert resolve_threads() == 1
    assert resolve_threads(5) == 5
    monkeypatch.setenv("OMP_NUM_THREADS", "nonsense")
    assert resolve_threads() >= 1


def test_negative_numbers_count_from_all_as_in_joblib():
    everything = resolve_threads()
    assert resolve_threads(-1) == everything
    assert resolve_threads(-2) == max(1, everything - 1)
    assert resolve_threads(-1000) == 1
    for wrong in (0, True, 1.0, "2", 10**12):
        with pytest.raises(ValueError, match=f"n_threads={wrong!r} must be a whole number from 1 to 1024"):
            resolve_threads(wrong)


def in_a_pool_of_four(count, *args):
    """What ``resolve_threads`` says there; threads of an earlier pool, which nobody waits for, have to end first."""
    deadline = time.monotonic() + 20
    while any(isinstance(thread, DummyProcess) for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return joblib.Parallel(n_jobs=4, backend="threading")(
        joblib.delayed(resolve_threads)(*args) for _ in range(count)
    )


def test_threads_of_joblibs_threading_backend_share_what_there_is(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8), raising=False)
    monkeypatch.setattr("blockgreedy.base.threads._known_quota", lambda: None)
    monkeypatch.setattr("blockgreedy.base.threads._allowed_by_threadpoolctl", lambda: None)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert resolve_threads() == 8
    assert in_a_pool_of_four(8) == [2] * 8
    assert in_a_pool_of_four(4, -1) == [2] * 4
    assert in_a_pool_of_four(4, 5) == [5] * 4
    assert resolve_threads() == 8


def test_threadpool_limits_are_kept(monkeypatch):
    import sklearn.linear_model  # noqa: F401  (has OpenMP)
    from threadpoolctl import threadpool_limits

    before = resolve_threads()
    with threadpool_limits(limits=1):
        assert resolve_threads() == 1
        assert resolve_threads(2) == 2
    with threadpool_limits(limits=1, user_api="blas"):
        assert resolve_threads() == before
    assert resolve_threads() == before


def test_asking_for_the_number_of_threads_is_cheap():
    import threadpoolctl  # noqa: F401

    resolve_threads()
    times = []
    for _ in range(200):
        began = time.perf_counter()
        resolve_threads()
        times.append(time.perf_counter() - began)
    assert np.median(times) < 2e-4


def test_a_containers_quota_is_read_once_a_second(monkeypatch):
    from blockgreedy.base import threads

    n_read, now = [0], [100.0]

    def read():
        n_read[0] += 1
        return 1

    monkeypatch.setattr(threads, "_cgroup_quota", read)
    monkeypatch.setattr(threads, "_quota", (float("-inf"), None))
    monkeypatch.setattr(threads.time, "monotonic", lambda: now[0])
    assert [resolve_threads() for _ in range(5)] == [1] * 5
    assert n_read[0] == 1
    now[0] += 1.5
    assert resolve_threads() == 1
    assert n_read[0] == 2


def test_nobody_asks_for_more_threads_than_were_given(monkeypatch, rng):
    """How many there are is only looked up where no number was given."""

    def looked_up():
        raise AssertionError("the number of threads was given")

    monkeypatch.setattr("blockgreedy.base.threads._known_quota", looked_up)
    X = sp.csr_array(np.where(rng.random((200, 30)) < 0.3, rng.normal(size=(200, 30)), 0.0))
    y = X @ rng.normal(size=30) + rng.normal(size=200)
    u = np.where(np.arange(30) < 2, 0.0, 1.0)  # a null model with weights
    problem = bg.Problem(X, y, alpha=1.0, fit_intercept=True, standardize=True, penalty_weights=u, n_threads=1)
    here = problem.with_alpha(0.1 * problem.alpha_max)
    assert bg.solve(here).status == "converged"
    assert bg.solve_path(problem, n_alphas=3).status == "converged"
    assert bg.Lasso(alpha=here.alpha, standardize=True, n_threads=1).fit(X, y).status_ == "converged"


WHILE = ["conversion", "null model", "standardize", "rescaling", "cross-validation", "store", "estimators"]


@pytest.mark.skipif(SANITIZED == "thread", reason="ThreadSanitizer cannot start threads after a multi-threaded fork")
@pytest.mark.parametrize("what", WHILE)
def test_a_child_forked_while_another_thread_fits_can_fit(what):
    script = Path(__file__).with_name("forks_while_busy.py")
    found = subprocess.run([sys.executable, script, what, "6"], capture_output=True, text=True, timeout=240)
    assert found.returncode == 0, found.stderr


def in_child(do):
    """The exit code of a child of fork(): 0 if ``do`` returns something true there."""
    process = os.fork()
    if process == 0:
        code = 2
        try:
            code = 0 if do() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def test_a_signal_to_a_forked_child_does_not_stop_the_fit_of_its_parent():
    def ended_by_signal():
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10)

    before = signal.getsignal(signal.SIGTERM)
    with watch.watching(None) as own:
        assert in_child(lambda: watch.current() is None and signal.getsignal(signal.SIGTERM) == before) == 0
        assert in_child(ended_by_signal) == -signal.SIGTERM
        time.sleep(0.2)
        assert not own.asked


def test_cached_properties_of_different_objects_do_not_wait_for_each_other():
    started, go_on = threading.Event(), threading.Event()

    class Slow:
        def __init__(self, waits):
            self.waits = waits

        @cached_property
        def value(self):
            """What it is."""
            started.set()
            assert not self.waits or go_on.wait(60)
            return object()

    other = threading.Thread(target=lambda: Slow(True).value)
    other.start()
    assert started.wait(60)
    quick = Slow(False)
    assert quick.value is quick.value
    assert Slow.value.__doc__ == "What it is."
    go_on.set()
    other.join()
