"""What must hold of a process forked while threads fit: it fits, and finds the same."""

from __future__ import annotations

import faulthandler
import os
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import blockgreedy as bg
from hunt.case import Case
from hunt.outcome import Outcome
from hunt.stack import frames

_PATIENCE = 4.0  # seconds of a child whose fit takes milliseconds
_OTHER = 3  # exit code of a child that found something else


def check_forks(case: Case, outcome: Outcome) -> None:
    rng = np.random.default_rng(case.use["seed"])

    def fit() -> bytes:
        problem = bg.Problem(case.X, case.y, **case.problem)
        return bg.solve(problem, tol=case.tol, n_threads=1).coef.tobytes()

    expected = fit()
    with busy_threads(case.use["busy"]):
        for k in range(case.use["forks"]):
            time.sleep(rng.uniform(0, case.use["pause"]))
            code, where = fork(lambda: fit() == expected)
            if code is None:
                outcome.found("hang", f"child {k} forked beside {' and '.join(case.use['busy'])}: {where}")
                return
            if code == _OTHER:
                outcome.found("bits", f"child {k} found other weights than its parent")
            elif code != 0:
                outcome.found("crash", f"child {k} ended with {code}: {where}")
        outcome.statuses.append("converged")


def fork(work: Callable[[], bool], patience: float = _PATIENCE) -> tuple[int | None, str]:
    """The exit code of a child that does this work, None where it hangs; and its stack if it failed."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking a process with threads, which is the point
        stack = Path(folder) / "stack"
        pid = os.fork()
        if pid == 0:
            _work_in_child(work, stack)
        code = _wait(pid, patience)
        if code is None:
            os.kill(pid, signal.SIGUSR1)
            time.sleep(0.3)  # it writes its stack
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        return code, frames(stack.read_text()) if stack.exists() else ""


def _wait(pid: int, patience: float) -> int | None:
    until = time.monotonic() + patience
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    return None


def _work_in_child(work: Callable[[], bool], stack: Path) -> None:
    code = 4
    try:
        with open(stack, "w") as file:
            faulthandler.enable(file)
            faulthandler.register(signal.SIGUSR1, file, all_threads=False)
            code = 0 if work() else _OTHER
    finally:
        os._exit(code)


@contextmanager
def busy_threads(kinds: list[str]) -> Iterator[None]:
    """Threads that fit all the time."""
    stop = threading.Event()
    threads = [threading.Thread(target=_keep_busy, args=(BUSY[kind], stop), daemon=True) for kind in kinds]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _keep_busy(what: Callable[[Any, np.ndarray], Any], stop: threading.Event) -> None:
    rng = np.random.default_rng(0)
    X = sp.csr_array(sp.random(3000, 2000, 0.01, format="csr", random_state=rng))
    y = np.where(rng.random(3000) < 0.5, 1.0, -1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while not stop.is_set():
            what(X, y)


def _store(X: Any, y: np.ndarray) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bg.data.convert(bg.Dataset(X, y), Path(folder) / "made.store", row_groups=2, n_threads=2)


def _solved(X: Any, y: np.ndarray, method: Any = "auto", **options: Any) -> None:
    bg.solve(bg.Problem(X, y, loss="logistic", alpha=1e-3, fit_intercept=True), method, n_threads=2, **options)


BUSY: dict[str, Callable[[Any, np.ndarray], Any]] = {
    "convert": lambda X, y: bg.Problem(X, y, loss="logistic", alpha=0.01).X,
    "solve": _solved,
    "path": lambda X, y: bg.solve_path(bg.Problem(X, y, alpha=1.0), n_alphas=5, n_threads=2),
    "fit": lambda X, y: bg.LogisticRegression(C=1.0).fit(X, y).predict_proba(X[:10]),
    "cv": lambda X, y: bg.LassoCV(n_alphas=3, cv=2).fit(X, y),
    "family": lambda X, y: _solved(X, y, "thread-greedy", n_blocks=4, max_iter=20),
    "rescale": lambda X, y: bg.solve(bg.Problem(X * 1e-200, y * 1e-100, alpha=1e-310, standardize=True), max_iter=2),
    "store": _store,
}
