"""The C++ core as the rest of the package sees it."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockgreedy import _core
from blockgreedy.options import count_of

if TYPE_CHECKING:
    from blockgreedy.options import FamilyOptions
    from blockgreedy.partition import Partition
    from blockgreedy.problem import Problem

UPDATES = ("add", "line-search", "sweep", "joint")
GREEDY_RULES = ("gain", "step")
SCANS = ("slices", "blocks")
MAX_THREADS = 1024  # more is a slip: each thread takes memory, and no solve has work for so many


def resolve_threads(n_threads: int | None = None) -> int:
    """The number of threads to use: what is asked for, or what this process may use (-1: all of that, as in joblib).

    The default is the least of the CPU affinity, the container's CPU quota, ``OMP_NUM_THREADS`` (which joblib sets in
    its worker processes) and what threadpoolctl allows; threads of a pool (joblib's threading backend) share that.
    """
    if n_threads is not None and count_of("n_threads", n_threads, 1, MAX_THREADS) == n_threads:
        return int(n_threads)
    limits = [len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1]
    quota = _cgroup_quota()
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
    global _controller
    threadpoolctl = sys.modules.get("threadpoolctl")
    if threadpoolctl is None:
        return None
    if _controller[0] != len(sys.modules):  # looking for libraries takes milliseconds, asking them microseconds
        try:
            _controller = (len(sys.modules), threadpoolctl.ThreadpoolController())
        except (AttributeError, OSError, RuntimeError):  # still being imported, or a system that it does not know
            return None
    counts = [library.num_threads for library in _controller[1].lib_controllers]
    return max((count for count in counts if count), default=None)


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


def core_matrix(columns: Any) -> _core.Matrix:
    """A handle on canonical CSC or Fortran-ordered columns; no copy."""
    if not sp.issparse(columns):
        return _core.dense(columns)
    csc: Any = columns
    return _core.csc(csc.shape[0], csc.indptr, csc.indices, csc.data)


def find_fault(columns: Any, n_threads: int | None = None) -> str:
    """What is wrong with the columns: "" or one of indptr, range, unsorted, finite."""
    return _core.find_fault(core_matrix(columns), resolve_threads(n_threads))


def transpose_rows(csr: Any, n_threads: int | None = None) -> tuple[Any, Any, Any, str]:
    """(data, indices, indptr) of the columns of a CSR matrix, and what is wrong with it: see ``find_fault``.

    With "unsorted" an entry occurs twice; with another fault the arrays hold nothing of use.
    """
    n_nonzeros = int(csr.indptr[-1]) if len(csr.indptr) else 0
    if n_nonzeros < 0 or n_nonzeros > min(len(csr.indices), len(csr.data)):
        return csr.data, csr.indices, csr.indptr, "indptr"
    indptr = np.empty(csr.shape[1] + 1, dtype=np.int32 if n_nonzeros < 2**31 else np.int64)
    indices, data = np.empty(n_nonzeros, dtype=np.int32), np.empty(n_nonzeros, dtype=csr.data.dtype)
    rows = np.ascontiguousarray(csr.indptr, dtype=csr.indptr.dtype if csr.indices.dtype == np.int32 else np.int64)
    fault = _core.to_columns(
        csr.shape[1], rows, np.ascontiguousarray(csr.indices), np.ascontiguousarray(csr.data), indptr, indices, data,
        resolve_threads(n_threads),
    )  # fmt: skip
    return data, indices, indptr, fault


def column_products(matrix: _core.Matrix, r: NDArray[np.float64], n_threads: int) -> NDArray[np.float64]:
    """x_j·r of every column: one pass over the nonzeros."""
    return _core.column_products(matrix, np.ascontiguousarray(r, dtype=np.float64), n_threads)


def combine_columns(matrix: _core.Matrix, w: NDArray[np.float64]) -> NDArray[np.float64]:
    """Xw, without a copy of X in another type."""
    return _core.combine_columns(matrix, w)


def combine_some_columns(matrix: _core.Matrix, features: Any, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Xw of a w that is 0 but for these features: takes as long as their columns."""
    return _core.combine_some_columns(matrix, np.ascontiguousarray(features, dtype=np.int32), values)


def weighted_squares(
    matrix: _core.Matrix, weights: NDArray[np.float64] | None, n_threads: int
) -> NDArray[np.float64]:
    """Σ_i weights_i x_ij² of every column (weights None: all 1)."""
    return _core.weighted_squares(matrix, weights, n_threads)


def column_scales(
    matrix: _core.Matrix, row_weights: NDArray[np.float64] | None, centred: bool, n_threads: int
) -> NDArray[np.float64]:
    """Standard deviation of every column, or the root of its mean square; 0 for a column that does not vary."""
    return _core.column_scales(matrix, row_weights, centred, n_threads)


class CpuModel:
    """A problem on the core: its objective and the passes over the columns that a certificate needs."""

    def __init__(self, problem: Problem, n_threads: int) -> None:
        self.matrix, self._n_threads = core_matrix(problem.X), n_threads
        self.core = _core.Model(
            self.matrix,
            problem.y,
            problem.loss.code,
            getattr(problem.loss, "delta", 1.0),
            problem.alpha,
            problem.l2,
            problem.penalty_weights,
            problem.l2_weights,
            problem.lower,
            problem.upper,
            problem.row_weights,
            problem.offset,
            problem.fit_intercept,
            n_threads,
        )

    def predict(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.core.predict(w)

    def objective(self, w: NDArray[np.float64], Xw: NDArray[np.float64]) -> float:
        return self.core.objective(w, Xw)

    def products(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        return column_products(self.matrix, theta, self._n_threads)

    def alpha_needed(self, theta: NDArray[np.float64], at_null: bool = False, rounding: float = 0.0) -> float:
        return self.core.alpha_needed(np.ascontiguousarray(theta), at_null, rounding)

    def penalty_conjugate(self, theta: NDArray[np.float64], scale: float, rounding: float = 0.0) -> float:
        return self.core.penalty_conjugate(np.ascontiguousarray(theta), scale, rounding)

    def working_set(
        self,
        n_blocks: int,
        partition: Partition | None,
        tol: float,
        f_null: float,
        floor: float = 0.0,
        least_alpha: float = float("inf"),
    ) -> _core.WorkingSet:
        """The default solver; the numbers are those of ``WorkingSetOptions`` in the core."""
        block_of = None if partition is None else partition.block_of
        return _core.WorkingSet(self.core, n_blocks, block_of, tol, f_null, floor, least_alpha)

    def block_greedy(self, partition: Partition, options: FamilyOptions) -> _core.BlockGreedy:
        return _core.BlockGreedy(
            self.core,
            partition.block_of,
            partition.n_blocks,
            options.blocks_per_iter,
            options.per_block,
            UPDATES.index(options.update),
            GREEDY_RULES.index(options.greedy_rule),
            SCANS.index(options.scan),
            options.atomic,
            options.inner_tol,
            options.sweeps,
            options.seed,
        )
