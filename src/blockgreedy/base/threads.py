"""How many threads to use."""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from blockgreedy.base.validate import count_of

MAX_THREADS = 1024  # more is a slip: each thread takes memory, and no solve has work for so many
_QUOTA_SECONDS = 1.0  # for which the container's quota is taken to stay what it was


def resolve_threads(n_threads: int | None = None) -> int:
    """The number of threads to use: what is asked for, or what this process may use (-1: all of that, as in joblib).

    The default is the least of the CPU affinity, the container's CPU quota, ``OMP_NUM_THREADS`` (which joblib sets in
    its worker processes) and what threadpoolctl allows; threads of a pool (joblib's threading backend) share that.
    """
    if n_threads is not None and count_of("n_threads", n_threads, 1, MAX_THREADS) == n_threads:
        return int(n_threads)
    limits = [len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1]
    quota = _known_quota()
    if quota is not None:
        limits.append(quota)
    asked_for = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if asked_for.isdigit() and int(asked_for) > 0:
        limits.append(int(asked_for))
    allowed = _allowed_by_threadpoolctl()
    if allowed is not None:
        limits.append(allowed)
    everything = max(1, min(limits) // _threads_of_this_pool())
    return everything if n_threads is None else count_of("n_threads", n_threads, everything, MAX_THREADS)


def own_cores() -> frozenset[int]:
    """Those that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def share_of_cores(masks: Sequence[frozenset[int]]) -> int:
    """Threads of this process beside others that work with it on this machine, of which these are the cores.

    A core that several of them may use is divided among them, and so is a container's quota.
    """
    share = sum(1 / sum(core in mask for mask in masks) for core in own_cores())
    quota = _known_quota()
    if quota is not None:
        share = min(share, quota / len(masks))
    return max(1, min(int(share + 1e-9), resolve_threads()))


def _threads_of_this_pool() -> int:
    """How many threads of pools as joblib's threading backend has them there are, if this is one of them; else 1."""
    pools = sys.modules.get("multiprocessing.dummy")
    if pools is None or not isinstance(threading.current_thread(), pools.DummyProcess):
        return 1
    return sum(isinstance(thread, pools.DummyProcess) for thread in threading.enumerate())


_controller: tuple[int, Any] = (0, None)  # modules loaded when it was made, threadpoolctl's list of libraries


def _allowed_by_threadpoolctl() -> int | None:
    """The most threads that a library which threadpoolctl knows may use now: that of ``threadpool_limits(limits=…)``.

    Limits of BLAS alone do not count beside a library with OpenMP. None where threadpoolctl is not in use.
    """
    libraries = _libraries()
    if libraries is None:
        return None
    counts = [library.num_threads for library in libraries.lib_controllers]
    return max((count for count in counts if count), default=None)


def _libraries() -> Any:
    """Those that threadpoolctl knows. None where it is not in use."""
    global _controller
    threadpoolctl = sys.modules.get("threadpoolctl")
    if threadpoolctl is None:
        return None
    if _controller[0] != len(sys.modules):  # looking for libraries takes milliseconds, asking them microseconds
        try:
            _controller = (len(sys.modules), threadpoolctl.ThreadpoolController())
        except (AttributeError, OSError, RuntimeError):  # still being imported, or a system that it does not know
            return None
    return _controller[1]


@contextmanager
def blas_limited(n_threads: int) -> Iterator[None]:
    """NumPy's BLAS uses at most so many threads in here.

    By itself it takes one for each core, which wait in a busy loop: several processes on a machine that work together
    and do so take the cores from each other.
    """
    importlib.import_module("threadpoolctl")
    libraries = _libraries()
    with nullcontext() if libraries is None else libraries.limit(limits=n_threads, user_api="blas"):
        yield


_quota: tuple[float, int | None] = (float("-inf"), None)  # when it was read, in time.monotonic's seconds


def _known_quota() -> int | None:
    """That of the last second: reading it takes as long as a tenth of a small fit, which asks several times."""
    global _quota
    now = time.monotonic()
    if now - _quota[0] > _QUOTA_SECONDS:
        _quota = now, _cgroup_quota()
    return _quota[1]


def _cgroup_quota() -> int | None:
    """CPUs granted by the container (cgroup v2, then v1), rounded up."""
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()
        return None if quota == "max" else -(-int(quota) // int(period))
    except (OSError, ValueError):
        pass
    try:
        with open("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") as file:
            micros = int(file.read())
        with open("/sys/fs/cgroup/cpu/cpu.cfs_period_us") as file:
            return None if micros <= 0 else -(-micros // int(file.read()))
    except (OSError, ValueError):
        return None
