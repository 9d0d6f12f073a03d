"""solve(problem, method=…) → Solution."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from operator import index
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blockgreedy.backends.tiles.communicator import Alone
from blockgreedy.base.deadline import Deadline
from blockgreedy.base.memory import bytes_of
from blockgreedy.base.names import METHODS, Method
from blockgreedy.base.threads import resolve_threads
from blockgreedy.base.validate import check_limits, flag, may_call, one_of, seed_of, shown, whole
from blockgreedy.partitions.partition import Partition
from blockgreedy.problem.problem import Problem
from blockgreedy.solvers.cluster import solve_together, threads_beside
from blockgreedy.solvers.family import FamilyEngine
from blockgreedy.solvers.family_arguments import (
    FamilyArguments,
    check_partition_of_auto,
    family_limits,
    family_settings,
    recording_of,
    refuse_family_options,
)
from blockgreedy.solvers.options import PRESETS, FamilyOptions
from blockgreedy.solvers.risk import warn_of_risk
from blockgreedy.solvers.run import Limits, Recorder, run_to_solution
from blockgreedy.solvers.solution import Solution
from blockgreedy.solvers.start import given_start
from blockgreedy.solvers.trace import Record
from blockgreedy.solvers.working_set import MAX_ITER, WorkingSetEngine

if TYPE_CHECKING:
    from blockgreedy.backends.engine import Engine

_MAX_AUTO_BLOCKS = 1024  # each has a private copy of the predictions


# The engines that runs can be made of, by method; all methods of the family are settings of one.
ENGINES: dict[str, Callable[..., Engine]] = {"auto": WorkingSetEngine, "family": FamilyEngine}


def solve(
    problem: Problem,
    method: Method = "auto",
    *,
    tol: float = 1e-4,
    max_iter: int | None = None,
    max_seconds: float | None = None,
    n_threads: int | None = None,
    n_blocks: int | None = None,
    partition: Partition | str | None = None,
    coef_init: ArrayLike | None = None,
    intercept_init: float | None = None,
    trace_iters: int | None = None,
    trace_seconds: float | None = None,
    callback: Callable[[Record], bool | None] | None = None,
    seed: int = 0,
    cluster: Any = None,
    grid: tuple[int, int] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    memory: int | str | None = None,
    **family: Unpack[FamilyArguments],
) -> Solution:
    """Minimise a problem, with a duality gap as a proof of accuracy.

    Parameters
    ----------
    problem : Problem
        What to minimise.
    method : {"auto", "block-greedy", "scd", "shotgun", "greedy", "thread-greedy"}, default "auto"
        "auto": proximal Newton steps on a working set of features; fast at any alpha, and the objective never rises.
        The others are settings of Algorithm 1 of the paper, which updates P (``blocks_per_iter``) of B (``n_blocks``)
        blocks of features in each iteration: "block-greedy": you choose B and P; "scd": every feature is a block,
        P = 1; "shotgun": every feature is a block, P > 1; "greedy": B = 1; "thread-greedy": P = B.
    tol : float, default 1e-4
        Stop at a duality gap of tol·(objective of the null model).
    max_iter : int, optional
        Default 1000 for "auto", 100,000·⌈B/P⌉ for the family.
    max_seconds : float, optional
        Limit in wall-clock seconds, null model and gap checks included. It is heard inside of iterations too: the
        call ends within twice the time and half a second, with the best weights so far and the gap that a quick look
        for a proof finds. (Of the family, partition and theory come first and do not count; where a few passes over
        the data take longer than that, those are waited for.)
    n_threads : int, optional
        Default: the problem's, or all cores that the process may use. Results are bitwise the same for any number.
    n_blocks : int, optional
        "auto": blocks of columns that threads sweep over in parallel, each with its own copy of the residual
        (default: 1 to 8, by the size of the working set); the family: B (default 32).
    partition : Partition or str, optional
        The blocks; for the family also "random" (default), "contiguous", "clustered", "balanced"
        or "capped".
    coef_init, intercept_init : array of shape (n_features,) and float, optional
        Where to start. Default: the null model, in which all penalised weights are 0. "auto" does not use a start
        whose objective is higher than that of the null model.
    trace_iters, trace_seconds : int and float, optional
        Iterations and/or seconds between records of the trace (default: "auto" records every iteration, the family
        every check of the gap).
    callback : callable, optional
        Called with each Record; returning True stops the run.
    seed : int, default 0
        For random partitions and the family's random selection of blocks.
    cluster : optional
        Who solves the problem together: a communicator of mpi4py, such as ``MPI.COMM_WORLD``, all of whose ranks
        call ``solve`` with the same problem, and all of which get the solution; or a ``distributed.Client`` of Dask,
        whose workers are the ranks. For method "auto".
    grid : tuple of two ints, optional
        With ``cluster``: how many groups of rows and of columns X is cut into, one tile for each rank (default: the
        grid with the shortest messages).
    checkpoint : str or Path, optional
        With ``cluster`` or a store: the file that weights, intercept and counters are written to after every
        iteration. If it cannot be written, a ``CheckpointWarning`` says so and the fit goes on.
    resume : bool, default False
        Go on from the checkpoint, whatever number of ranks wrote it, if the file exists. Without this, a file that
        exists is an error; so is the checkpoint of another problem.
    memory : int or str, optional
        With ``cluster`` or a store: what a process may take, in bytes or as text such as "2G". Working sets are kept
        so small that they fit beside the rest, if that is possible at all. Default: no limit.
    **family
        Settings that only the family has; ``FamilyArguments`` describes them.

    Returns
    -------
    Solution
        Weights, gap and trace.

    Warns
    -----
    ConvergenceRiskWarning
        If the paper's theory does not cover the settings with ``update="add"`` (epsilon is proven to be 1 or more, or
        ``per_block`` > 1); it says how many blocks per iteration are safe. With ``step_scale`` = s the theory asks
        for epsilon < 2/s − 1.

    Examples
    --------
    >>> import blockgreedy as bg
    >>> data = bg.data.text_like(300, 400, 10.0)
    >>> bg.solve(bg.Problem(data, loss="logistic", alpha=0.001), tol=1e-6).status
    'converged'
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a blockgreedy.Problem, got {type(problem).__name__}")
    asked = problem.n_threads if n_threads is None else n_threads
    threads = resolve_threads(asked) if cluster is None or asked is not None else threads_beside(cluster)
    check_limits(tol, max_iter, max_seconds, trace_iters, trace_seconds)
    may_call("callback", callback)
    max_iter = None if max_iter is None else index(max_iter)
    seed = seed_of("seed", seed)
    one_of("method", method, METHODS)
    _check_cluster(problem, method, cluster, grid, checkpoint, flag("resume", resume), memory)
    began = time.perf_counter()
    start = given_start(problem, coef_init, intercept_init)
    if method not in PRESETS:
        refuse_family_options(family)
        blocks = _blocks_of_auto(problem, n_blocks, partition)
        given = partition if isinstance(partition, Partition) else None
        deadline = Deadline(max_seconds, began)
        limits = Limits(MAX_ITER if max_iter is None else max_iter, deadline, may_extend=max_iter is None)
        null = None
        if start is not None or problem.fit_intercept or problem.has_unpenalised:
            null = problem.fit_null_model(deadline, threads)
            limits = replace(limits, ended="" if null.status == "converged" else null.status)
        common: dict[str, Any] = {"tol": float(tol), "n_threads": threads, "start": start, "began": began}
        if cluster is not None or problem.design.is_tiled:
            ranks = Alone() if cluster is None else cluster
            trace = None if trace_iters is None else index(trace_iters), trace_seconds
            common |= {
                "limits": limits,
                "trace": trace,
                "callback": callback,
                "memory": None if memory is None else bytes_of("memory", memory),
            }
            return solve_together(problem, ranks, grid, checkpoint=checkpoint, resume=resume, **common)
        engine = ENGINES[method](problem, null=null, n_blocks=blocks, partition=given, deadline=deadline, **common)
    else:
        given, options = family_settings(problem, method, n_blocks, partition, seed, family, threads)
        warn_of_risk(problem, given, options, threads, stacklevel=2)
        began = time.perf_counter()  # neither the partition nor the theory counts
        limits = family_limits(problem, options, max_iter, Deadline(max_seconds, began), threads)
        engine = _family_engine(problem, given, options, family, float(tol), threads, limits, start)
    every_iters = None if trace_iters is None else index(trace_iters)
    recorder = Recorder(engine, every_iters, None if trace_seconds is None else float(trace_seconds), callback)
    solution = run_to_solution(problem, recorder, limits, tol=float(tol), began=began, partition=given)
    if not isinstance(engine, FamilyEngine):
        return solution
    return replace(solution, step_scale=options.step_scale, telemetry=engine.telemetry)


def _check_cluster(
    problem: Problem,
    method: str,
    cluster: Any,
    grid: tuple[int, int] | None,
    checkpoint: str | os.PathLike[str] | None,
    resume: bool,
    memory: int | str | None,
) -> None:
    if cluster is not None and method != "auto":
        raise ValueError(f"cluster=… needs method='auto'; method={method!r} runs on one machine")
    if cluster is None and grid is not None:
        raise ValueError(f"grid={shown(grid)} needs cluster=…, whose ranks it arranges")
    if checkpoint is not None and (method != "auto" or (cluster is None and not problem.design.is_tiled)):
        raise ValueError(
            f"checkpoint={shown(checkpoint)} needs a store or cluster=…, and method='auto'; other fits write none"
        )
    if memory is not None and cluster is None and not problem.design.is_tiled:
        raise ValueError(f"memory={shown(memory)} needs a store or cluster=…; other fits hold X in memory")
    if resume and checkpoint is None:
        raise ValueError("resume=True needs checkpoint=…, the file to go on from")


def _family_engine(
    problem: Problem,
    partition: Partition,
    options: FamilyOptions,
    family: FamilyArguments,
    tol: float,
    n_threads: int,
    limits: Limits,
    start: tuple[NDArray[np.float64], float] | None,
) -> Engine:
    return ENGINES["family"](
        problem,
        partition,
        options,
        tol=tol,
        n_threads=n_threads,
        max_iter=limits.max_iter,
        deadline=limits.deadline,
        start=start,
        stop_on_divergence=family.get("on_divergence", "stop") == "stop",
        trace_spectral_radius=family.get("trace_spectral_radius", False),
        recording=recording_of(family),
    )


def _blocks_of_auto(problem: Problem, n_blocks: int | None, partition: Partition | str | None) -> int:
    """0 leaves the number to the core."""
    if partition is None:
        return 0 if n_blocks is None else whole("n_blocks", n_blocks, 1, _MAX_AUTO_BLOCKS)
    partition = check_partition_of_auto(partition)
    assert partition is not None
    if partition.n_features != problem.n_features:
        raise ValueError(f"partition is of {partition.n_features} features, X has {problem.n_features}")
    if n_blocks is not None and whole("n_blocks", n_blocks, 1) != partition.n_blocks:
        raise ValueError(f"n_blocks={n_blocks} does not match the partition, which has {partition.n_blocks} blocks")
    return whole("the partition's n_blocks", partition.n_blocks, 1, _MAX_AUTO_BLOCKS)
