"""The arguments of ``solve`` that only the family has: what they are, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

import numpy as np

from blockgreedy.base.deadline import Deadline
from blockgreedy.base.names import ON_DIVERGENCE, GreedyRule, NamedScale, OnDivergence, ScanMode, Update
from blockgreedy.base.validate import flag, one_of, shown, whole
from blockgreedy.partitions.partition import KINDS, Partition, make_partition
from blockgreedy.problem.problem import Problem
from blockgreedy.solvers.options import FamilyOptions, checked_scale, resolve_blocks
from blockgreedy.solvers.recording import Recording
from blockgreedy.solvers.run import Limits
from blockgreedy.solvers.step_scale import with_step_scale


class FamilyArguments(TypedDict, total=False):
    """The keyword arguments of ``solve`` that only the paper's family of methods has.

    Attributes
    ----------
    blocks_per_iter : int, optional
        P, the number of blocks chosen per iteration (default: all; "shotgun": 8).
    per_block : int, default 1
        Accepted features per block; 1 is the case that the paper's theory covers.
    update : {"joint", "sweep", "add", "line-search"}, default "joint"
        How the accepted steps are combined. "joint": coordinate descent over the accepted features, best first, on a
        quadratic majoriser of the objective, ``max_sweeps`` (default 1) times. "sweep": one after the other on the
        true loss, up to ``max_sweeps`` (default 10) times. "add": all steps added at once (the paper's Algorithm 1;
        may diverge). "line-search": each step refined alone on the true loss, then all added (our reading of the
        paper's implementation; may cycle). "joint" and "sweep" never raise the objective.
    step_scale : float, "theory" or "paper", default 1.0
        For "add": steps are made with the curvature of their feature divided by this number: below 1 they are
        shorter. "theory": 1/(1+epsilon), with the least upper bound on epsilon that takes a few seconds; the
        objective is then expected to fall in every iteration, whatever P is. "paper": 1/n, the step of the paper's
        text, whose β has no 1/n. ``Solution.step_scale`` has the number that was used.
    greedy_rule : {"gain", "step"}, default "gain"
        The best proposal of a block has the largest guaranteed decrease of the objective, or the largest |step| (as
        in the paper).
    scan : {"slices", "blocks"}, default "slices"
        What a thread reads: an equal share of the nonzeros, or whole blocks, which shows their load imbalance.
    atomic : bool, default False
        Add steps with concurrent atomic operations, as the paper did ("add" and "line-search" only). Results are then
        not bitwise repeatable.
    asynchronous : bool, default False
        Threads do not wait for each other, one reading of the paper's implementation ("add" and "line-search" only):
        each scans a block while the others change the predictions, adds its steps with atomic operations and takes
        the next block. P block updates count as one iteration, and at most P threads work. Results are not bitwise
        repeatable, except with ``n_threads=1``, which takes one block after the other.
    inner_tol : float, default 1e-3
        "line-search", "sweep" and "joint" stop refining when a change is below inner_tol times the first change.
    max_sweeps : int, optional
        Of "joint" and "sweep", see ``update``.
    on_divergence : {"stop", "continue"}, default "stop"
        End the run and return the best weights seen, or go on and return the last ones.
    telemetry : bool, default False
        Record what every iteration selects, accepts, moves and gains, as ``Solution.telemetry``. Not with
        ``asynchronous=True``, where iterations are not apart.
    objective_iters, spectral_radius_iters : int, optional
        With ``telemetry``: also record the objective, and the spectral radius of the accepted columns, in every so
        many iterations. Their time is not counted.
    trace_spectral_radius : bool, default False
        Also record how correlated the features accepted in an iteration are: the largest eigenvalue of the matrix of
        inner products of their columns (rows multiplied by the roots of their weights), scaled to norm 1. Its time is
        not counted.
    """

    blocks_per_iter: int | None
    per_block: int
    update: Update
    step_scale: float | NamedScale
    greedy_rule: GreedyRule
    scan: ScanMode
    atomic: bool
    asynchronous: bool
    inner_tol: float
    max_sweeps: int | None
    on_divergence: OnDivergence
    telemetry: bool
    objective_iters: int | None
    spectral_radius_iters: int | None
    trace_spectral_radius: bool


# What does not concern the algorithm, or is known once the blocks are.
_NO_OPTIONS = {
    *("blocks_per_iter", "on_divergence", "per_block", "step_scale", "trace_spectral_radius"),
    *("telemetry", "objective_iters", "spectral_radius_iters"),
}


def recording_of(family: Mapping[str, Any]) -> Recording:
    """What of the iterations is recorded."""
    names = ("objective_iters", "spectral_radius_iters")
    recording = Recording.of(family.get("telemetry", False), *(family.get(name) for name in names))
    if recording.rows and family.get("asynchronous", False):
        raise ValueError(
            "telemetry=True needs asynchronous=False: threads that do not wait for each other make no iterations "
            "that could be told apart"
        )
    return recording


def family_settings(
    problem: Problem,
    method: str,
    n_blocks: int | None,
    partition: Partition | str | None,
    seed: int,
    family: FamilyArguments,
    n_threads: int,
) -> tuple[Partition, FamilyOptions]:
    """The blocks of a run, and its options."""
    options = _options(problem, method, n_blocks, partition, seed, family)
    blocks = _partition(problem, options, partition, n_threads)
    return blocks, with_step_scale(family.get("step_scale", 1.0), problem, blocks, options, n_threads)


def _options(
    problem: Problem,
    method: str,
    n_blocks: int | None,
    partition: Partition | str | None,
    seed: int,
    family: FamilyArguments,
) -> FamilyOptions:
    unknown = set(family) - set(FamilyArguments.__annotations__)
    if unknown:
        raise TypeError(f"solve() has no argument {', '.join(sorted(unknown))}")
    one_of("on_divergence", family.get("on_divergence", "stop"), ON_DIVERGENCE)
    flag("trace_spectral_radius", family.get("trace_spectral_radius", False))
    total, chosen = resolve_blocks(
        method,
        problem.n_features,
        n_blocks,
        family.get("blocks_per_iter"),
        partition.n_blocks if isinstance(partition, Partition) else None,
    )
    _refuse_unbounded_curvature(problem, method)
    recording_of(family)
    options = FamilyOptions(
        n_blocks=total,
        blocks_per_iter=chosen,
        per_block=min(whole("per_block", family.get("per_block", 1), 1), problem.n_features),
        seed=seed,
        **{name: value for name, value in family.items() if name not in _NO_OPTIONS},  # type: ignore[arg-type]
    )
    checked_scale(family.get("step_scale", 1.0), options.update)
    return options


def _partition(
    problem: Problem, options: FamilyOptions, partition: Partition | str | None, n_threads: int
) -> Partition:
    _check_kind(partition)
    if isinstance(partition, Partition):
        if partition.n_features != problem.n_features:
            raise ValueError(f"partition is of {partition.n_features} features, X has {problem.n_features}")
        return partition
    # Blocks of one feature are the same partition in any order; contiguous ones cost no memory.
    total = options.n_blocks
    kind = partition or ("contiguous" if total in (1, problem.n_features) else "random")
    return make_partition(problem, n_blocks=total, kind=kind, seed=options.seed, n_threads=n_threads)


def check_family_arguments(method: str, family: Mapping[str, Any], partition: Partition | str | None = None) -> None:
    """Refuses settings of the family that no problem could make right."""
    if method == "auto":
        refuse_family_options(family)
        check_partition_of_auto(partition)
        return
    _check_kind(partition)
    one_of("on_divergence", family.get("on_divergence", "stop"), ON_DIVERGENCE)
    recording_of(family)
    known = FamilyOptions.__dataclass_fields__.keys() - {"n_blocks", "blocks_per_iter", "step_scale"}
    options = FamilyOptions(1, 1, **{name: value for name, value in family.items() if name in known})
    checked_scale(family.get("step_scale", 1.0), options.update)


def _check_kind(partition: Partition | str | None) -> None:
    if isinstance(partition, Partition) or partition is None or (isinstance(partition, str) and partition in KINDS):
        return
    raise ValueError(
        f"partition={shown(partition)} is not known; use a Partition or one of {', '.join(map(repr, KINDS))}"
    )


def refuse_family_options(family: Mapping[str, Any]) -> None:
    for name, value in family.items():
        if name not in FamilyArguments.__annotations__:
            raise TypeError(f"solve() has no argument {name}")
        raise ValueError(
            f"{name}={shown(value)} is not for method='auto', the default; it needs one of the paper's methods, "
            "such as method='thread-greedy'"
        )


def _refuse_unbounded_curvature(problem: Problem, method: str) -> None:
    if not np.isfinite(problem.loss.curvature_bound):
        raise ValueError(
            f"method={method!r} needs a loss whose second derivative is bounded (its trait curvature_bound), which "
            f"its steps are made with; that of loss={problem.loss.name!r} is not; use method='auto'"
        )


def check_partition_of_auto(partition: Partition | str | None) -> Partition | None:
    if partition is not None and not isinstance(partition, Partition):
        raise ValueError(
            f"partition={shown(partition)} with method='auto' must be a Partition (make_partition makes one; "
            "on the command line, a file of blockgreedy partition)"
        )
    return partition


def family_limits(
    problem: Problem, options: FamilyOptions, max_iter: int | None, deadline: Deadline, n_threads: int
) -> Limits:
    """When a run ends; the null model, the scale of ``tol``, is fitted within its time."""
    null = problem.fit_null_model(deadline, n_threads)
    most = 10_000 * options.check_every if max_iter is None else max_iter
    return Limits(most, deadline, ended="" if null.status == "converged" else null.status)
