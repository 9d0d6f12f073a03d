"""solve(problem, method=…) → Solution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blockgreedy.backends.cpu import CpuModel, resolve_threads
from blockgreedy.family import run_family
from blockgreedy.options import FamilyOptions, GreedyRule, ScanMode, Update, number, resolve_blocks, whole
from blockgreedy.partition import KINDS, Partition, make_partition
from blockgreedy.problem import Problem
from blockgreedy.trace import Record, Trace

Status = Literal["converged", "max_iter", "max_seconds", "interrupted", "diverged"]
Method = Literal["block-greedy", "scd", "shotgun", "greedy", "thread-greedy"]


@dataclass
class Solution:
    """A point, and the proof of how good it is."""

    coef: NDArray[np.float64]
    intercept: float
    objective: float
    gap: float  # objective − dual value: no point is better by more
    dual: NDArray[np.float64]
    status: Status
    message: str  # one sentence on the status: what happened, and what to change if it did not converge
    n_iter: int
    seconds: float  # in iterations
    check_seconds: float  # in gap checks and recording
    trace: Trace = field(repr=False)
    partition: Partition | None = field(default=None, repr=False)

    @property
    def nonzeros(self) -> int:
        return int(np.count_nonzero(self.coef))

    def __repr__(self) -> str:
        return (
            f"Solution({self.status}: objective {self.objective:.8g}, gap {self.gap:.2g}, {self.nonzeros} nonzeros, "
            f"{self.n_iter} iterations, {self.seconds:.3g} s)"
        )


def solve(
    problem: Problem,
    method: Method = "thread-greedy",
    *,
    n_blocks: int | None = None,
    blocks_per_iter: int | None = None,
    per_block: int = 1,
    partition: Partition | str | None = None,
    update: Update = "joint",
    greedy_rule: GreedyRule = "gain",
    scan: ScanMode = "slices",
    atomic: bool = False,
    inner_tol: float = 1e-3,
    max_sweeps: int | None = None,
    tol: float = 1e-4,
    max_iter: int | None = None,
    max_seconds: float | None = None,
    seed: int = 0,
    n_threads: int | None = None,
    coef_init: ArrayLike | None = None,
    on_divergence: Literal["stop", "continue"] = "stop",
    trace_iters: int | None = None,
    trace_seconds: float | None = None,
    callback: Callable[[Record], bool | None] | None = None,
) -> Solution:
    """Minimises ``problem`` by block-greedy coordinate descent (the paper's Algorithm 1).

    Each iteration selects ``blocks_per_iter`` of ``n_blocks`` blocks at random, proposes a step for every
    feature in them, accepts the ``per_block`` best of each block and updates those.

    Parameters
    ----------
    method : preset of (n_blocks, blocks_per_iter)
        "block-greedy": both free; "scd": every feature a block, 1 per iteration; "shotgun": every feature a
        block, several per iteration; "greedy": one block; "thread-greedy" (default): all blocks every iteration.
    partition : Partition, or "random" (default), "contiguous", "clustered"
    update : what becomes of the accepted steps
        "add": all added at once (the paper's Algorithm 1; may diverge); "line-search": each refined alone on the
        true loss, then all added (the paper's implementation; may cycle); "sweep": one after the other on the
        shared state, up to ``max_sweeps`` (10) times; "joint" (default): descent on the quadratic majoriser of
        the accepted set, best gain first, ``max_sweeps`` (1) times. The last two never raise the objective.
    inner_tol : "line-search", "sweep" and "joint" refine until a change is below this part of the first.
    per_block : accepted features per block; the paper's theory covers 1.
    greedy_rule : "gain" (default), the guaranteed descent, or "step", the largest |step| as the paper words it.
    scan : "slices" (default) of equal nonzeros, or "blocks": one block per thread, with its load imbalance.
    atomic : add with concurrent atomics as the paper did ("add" and "line-search"); not bitwise repeatable.
    tol : stop at a duality gap of tol·(objective of the null model), checked every 10·⌈B/P⌉ iterations.
    max_iter : default 100,000·⌈B/P⌉.
    max_seconds : wall clock, checks included.
    n_threads : default: what the process may use. Results do not depend on it, bit for bit.
    coef_init : weights to start from (default: the null model, which is 0 without unpenalised features).
    on_divergence : "stop" returns the best point seen; "continue" goes on and returns the last.
    trace_iters, trace_seconds : record every so many iterations and/or seconds (default: at every check).
    callback : called with each Record; returning True stops the run.
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a blockgreedy.Problem, got {type(problem).__name__}")
    threads = resolve_threads(n_threads)
    _check_limits(tol, max_iter, max_seconds, on_divergence, trace_iters, trace_seconds)
    given = partition if isinstance(partition, Partition) else None
    total, chosen = resolve_blocks(
        method, problem.n_features, n_blocks, blocks_per_iter, given.n_blocks if given is not None else None
    )
    options = FamilyOptions(
        n_blocks=total,
        blocks_per_iter=chosen,
        per_block=min(whole("per_block", per_block, 1), problem.n_features),
        update=update,
        greedy_rule=greedy_rule,
        scan=scan,
        atomic=atomic,
        inner_tol=inner_tol,
        max_sweeps=max_sweeps,
        seed=seed,
    )
    if given is None and partition is not None and not (isinstance(partition, str) and partition in KINDS):
        raise ValueError(
            f"partition={partition!r} is not known; use a Partition or one of {', '.join(map(repr, KINDS))}"
        )
    if given is None:
        # Blocks of one feature are the same partition in any order; contiguous ones cost no memory.
        kind = "contiguous" if total in (1, problem.n_features) else "random"
        kind = partition if isinstance(partition, str) else kind
        given = make_partition(problem.X, problem.y, n_blocks=total, kind=kind, seed=seed, n_threads=threads)
    elif given.n_features != problem.n_features:
        raise ValueError(f"partition is of {given.n_features} features, X has {problem.n_features}")
    start = None if coef_init is None else _start(coef_init, problem)
    model = CpuModel(problem, threads)
    outcome: dict[str, Any] = run_family(
        problem,
        model,
        given,
        options,
        tol=tol,
        max_iter=max_iter if max_iter is not None else 10_000 * options.check_every,
        max_seconds=float("inf") if max_seconds is None else float(max_seconds),
        start=start,
        stop_on_divergence=on_divergence == "stop",
        trace_iters=trace_iters,
        trace_seconds=trace_seconds,
        callback=callback,
    )
    return Solution(intercept=0.0, partition=given, **outcome)


def _check_limits(
    tol: float,
    max_iter: int | None,
    max_seconds: float | None,
    on_divergence: str,
    trace_iters: int | None,
    trace_seconds: float | None,
) -> None:
    if not number("tol", tol) >= 0:
        raise ValueError(f"tol={tol!r} must be a number of at least 0")
    for name, value in (("max_iter", max_iter), ("trace_iters", trace_iters)):
        if value is not None:
            whole(name, value, 1)
    for name, seconds in (("max_seconds", max_seconds), ("trace_seconds", trace_seconds)):
        if seconds is not None and not number(name, seconds) > 0:
            raise ValueError(f"{name}={seconds!r} must be above 0, or None")
    if on_divergence not in ("stop", "continue"):
        raise ValueError(f"on_divergence={on_divergence!r} is not known; use 'stop' or 'continue'")


def _start(coef_init: ArrayLike, problem: Problem) -> NDArray[np.float64]:
    w = np.ascontiguousarray(coef_init, dtype=np.float64)
    if w.shape != (problem.n_features,):
        raise ValueError(f"coef_init has shape {w.shape}, expected ({problem.n_features},)")
    if not np.all(np.isfinite(w)) or not np.isfinite(problem.penalty.value(w)):
        raise ValueError("coef_init must be finite and inside lower ≤ w ≤ upper (0 for excluded features)")
    return w
