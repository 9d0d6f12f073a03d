"""solve(problem, method=…) → Solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import index
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blockgreedy.backends.cpu import CpuModel
from blockgreedy.base.names import METHODS, ON_DIVERGENCE, GreedyRule, Method, OnDivergence, ScanMode, Status, Update
from blockgreedy.base.threads import resolve_threads
from blockgreedy.base.validate import check_limits, flag, may_call, number, one_of, seed_of, shown, whole
from blockgreedy.partitions.partition import KINDS, Partition, make_partition
from blockgreedy.problem.arguments import point
from blockgreedy.problem.problem import Problem
from blockgreedy.solvers.family import run_family
from blockgreedy.solvers.options import FamilyOptions, resolve_blocks
from blockgreedy.solvers.risk import warn_of_risk
from blockgreedy.solvers.trace import Record, Trace
from blockgreedy.solvers.working_set import run_working_set

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_MAX_AUTO_BLOCKS = 1024  # each has a private copy of the predictions


class FamilyArguments(TypedDict, total=False):
    """The arguments of solve that only the family has."""

    blocks_per_iter: int | None
    per_block: int
    update: Update
    greedy_rule: GreedyRule
    scan: ScanMode
    atomic: bool
    inner_tol: float
    max_sweeps: int | None
    on_divergence: OnDivergence
    trace_spectral_radius: bool


@dataclass
class Solution:
    """The result of ``solve``: weights and intercept, and the duality gap as a proof of their accuracy."""

    coef: NDArray[np.float64]
    intercept: float
    objective: float
    gap: float  # objective − dual value: the objective is at most this much above the true minimum
    dual: NDArray[np.float64]
    status: Status
    message: str  # one sentence on the status: what happened, and what to change if it did not converge
    n_iter: int
    seconds: float  # in iterations; for "auto" all but the certificate
    check_seconds: float  # in gap checks and recording; for "auto" in the certificate
    trace: Trace = field(repr=False)
    phase_seconds: dict[str, float] = field(default_factory=dict, repr=False)  # where the default solver spent them
    partition: Partition | None = field(default=None, repr=False)
    feature_names: NDArray[np.str_] | None = field(default=None, repr=False)  # those of the problem

    @property
    def nonzeros(self) -> int:
        return int(np.count_nonzero(self.coef))

    def top(self, k: int = 20) -> list[tuple[str, float]]:
        """The k features of largest |weight|, by name."""
        order = np.argsort(-np.abs(self.coef), kind="stable")[: min(whole("k", k, 0), self.nonzeros)]
        names = self.feature_names
        return [(f"feature {j}" if names is None else str(names[j]), float(self.coef[j])) for j in order]

    def __repr__(self) -> str:
        return (
            f"Solution({self.status}: objective {self.objective:.8g}, gap {self.gap:.2g}, {self.nonzeros} nonzeros, "
            f"{self.n_iter} iterations, {self.seconds:.3g} s)"
        )

    def plot(self, x: Literal["seconds", "iterations"] = "seconds") -> Figure:
        """Error, gap and nonzeros over the run, as a matplotlib figure.

        A notebook displays it. If matplotlib.pyplot is imported, it becomes pyplot's current figure, so that
        ``plt.show()`` and ``plt.gcf()`` work. This holds for all ``plot`` methods.
        """
        from blockgreedy.reports.plots import convergence_figure

        return convergence_figure(self.trace, self.objective, x)

    def _repr_html_(self) -> str:
        from blockgreedy.reports.plots import notebook_html

        facts = [
            ("status", self.message if self.message.startswith(self.status) else f"{self.status}: {self.message}"),
            ("objective", f"{self.objective:.10g}"),
            ("duality gap", f"{self.gap:.3g}: the objective is at most this far above the true minimum"),
            ("nonzeros", f"{self.nonzeros:,} of {len(self.coef):,}"),
            ("intercept", f"{self.intercept:.6g}"),
            ("iterations", f"{self.n_iter:,}"),
            ("seconds", f"{self.seconds:.3g} in iterations, {self.check_seconds:.3g} in checks of the duality gap"),
        ]
        draw = self.plot if len(self.trace) > 1 else None
        return notebook_html("Solution", facts, "Error, gap and nonzeros over the run", draw, self.top(10))


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
    **family: Unpack[FamilyArguments],
) -> Solution:
    """Minimises ``problem``, with a duality gap as a proof of accuracy.

    Parameters
    ----------
    method : "auto", or a member of the paper's family
        "auto" (default): proximal Newton steps on a working set of features; fast at any alpha, and the objective
        never rises. The others are settings of Algorithm 1 of the paper, which updates P (``blocks_per_iter``) of
        B (``n_blocks``) blocks of features in each iteration: "block-greedy": you choose B and P; "scd": every
        feature is a block, P = 1; "shotgun": every feature is a block, P > 1; "greedy": B = 1; "thread-greedy":
        P = B.
    tol : stop at a duality gap of tol·(objective of the null model).
    max_iter : default 1000 for "auto", 100,000·⌈B/P⌉ for the family.
    max_seconds : limit in wall-clock seconds, gap checks included.
    n_threads : default: all cores that the process may use. Results are bitwise the same for any number.
    n_blocks : "auto": blocks of columns that threads sweep over in parallel, each with its own copy of the residual
        (default: 1 to 8, by the size of the working set); the family: B (default 32).
    partition : Partition, or for the family also "random" (default), "contiguous", "clustered", "balanced"
    coef_init, intercept_init : where to start. Default: the null model, in which all penalised weights are 0. "auto"
        does not use a start whose objective is higher than that of the null model.
    trace_iters, trace_seconds : number of iterations and/or seconds between records of the trace (default: "auto"
        records every iteration, the family every check of the gap).
    callback : called with each Record; returning True stops the run.
    seed : for random partitions and the family's random selection of blocks.

    Other parameters, for the family only
    -------------------------------------
    blocks_per_iter : P, blocks chosen per iteration.
    per_block : accepted features per block (default 1, the case that the paper's theory covers).
    update : how the accepted steps are combined
        "joint" (default): coordinate descent over the accepted features, best first, on a quadratic majoriser of the
        objective, ``max_sweeps`` (default 1) times; "sweep": one after the other on the true loss, up to
        ``max_sweeps`` (default 10) times; "add": all steps added at once (the paper's Algorithm 1; may diverge);
        "line-search": each step refined alone on the true loss, then all added (our reading of the paper's
        implementation; may cycle). "joint" and "sweep" never raise the objective.
    inner_tol : "line-search", "sweep" and "joint" stop refining when a change is below inner_tol (default 1e-3) times
        the first change.
    greedy_rule : the best proposal of a block is the one with the largest guaranteed decrease of the objective
        ("gain", default), or the largest |step| ("step", as in the paper).
    scan : what a thread reads: "slices" (default), an equal share of the nonzeros, or "blocks", whole blocks, which
        shows their load imbalance.
    atomic : add steps with concurrent atomic operations, as the paper did ("add" and "line-search" only). Results
        are then not bitwise repeatable.
    on_divergence : "stop" (default) ends the run and returns the best weights seen; "continue" goes on and returns
        the last ones.
    trace_spectral_radius : also record how correlated the features accepted in an iteration are: the largest
        eigenvalue of the matrix of inner products of their columns, scaled to norm 1. Its time is not counted.

    Warns with a ConvergenceRiskWarning if the paper's theory does not cover the settings with ``update="add"``
    (epsilon is proven to be 1 or more, or ``per_block`` > 1), and says how many blocks per iteration are safe.
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a blockgreedy.Problem, got {type(problem).__name__}")
    threads = resolve_threads(n_threads)
    check_limits(tol, max_iter, max_seconds, trace_iters, trace_seconds)
    may_call("callback", callback)
    max_iter = None if max_iter is None else index(max_iter)
    seed = seed_of("seed", seed)
    one_of("method", method, METHODS)
    start = None if coef_init is None else (_start(coef_init, problem), _intercept(intercept_init, problem))
    if coef_init is None and intercept_init is not None:
        raise ValueError(f"intercept_init={shown(intercept_init)} needs coef_init=…, which is not given")
    common: dict[str, Any] = {
        "tol": float(tol),
        "max_seconds": float("inf") if max_seconds is None else float(max_seconds),
        "trace_iters": None if trace_iters is None else index(trace_iters),
        "trace_seconds": None if trace_seconds is None else float(trace_seconds),
        "callback": callback,
    }
    if method == "auto":
        _refuse_family_options(family)
        blocks = _blocks_of_auto(problem, n_blocks, partition)
        given = partition if isinstance(partition, Partition) else None
        outcome = run_working_set(
            problem,
            threads,
            n_blocks=blocks,
            partition=given,
            max_iter=max_iter,
            start=start,
            **common,
        )
        return Solution(partition=given, feature_names=problem.feature_names, **outcome)
    if start is not None:
        common["start"] = start[0]
    return _solve_by_family(problem, method, threads, n_blocks, partition, max_iter, seed, family, common)


def _solve_by_family(
    problem: Problem,
    method: str,
    threads: int,
    n_blocks: int | None,
    partition: Partition | str | None,
    max_iter: int | None,
    seed: int,
    family: FamilyArguments,
    common: dict[str, Any],
) -> Solution:
    unknown = set(family) - set(FamilyArguments.__annotations__)
    if unknown:
        raise TypeError(f"solve() has no argument {', '.join(sorted(unknown))}")
    on_divergence = family.get("on_divergence", "stop")
    one_of("on_divergence", on_divergence, ON_DIVERGENCE)
    radius = flag("trace_spectral_radius", family.get("trace_spectral_radius", False))
    given = partition if isinstance(partition, Partition) else None
    total, chosen = resolve_blocks(
        method,
        problem.n_features,
        n_blocks,
        family.get("blocks_per_iter"),
        given.n_blocks if given is not None else None,
    )
    _refuse_beyond_family(problem, method)
    apart = ("blocks_per_iter", "on_divergence", "per_block", "trace_spectral_radius")
    chosen_options = {name: value for name, value in family.items() if name not in apart}
    options = FamilyOptions(
        n_blocks=total,
        blocks_per_iter=chosen,
        per_block=min(whole("per_block", family.get("per_block", 1), 1), problem.n_features),
        seed=seed,
        **chosen_options,  # type: ignore[arg-type]
    )
    _check_kind(partition)
    if given is None:
        # Blocks of one feature are the same partition in any order; contiguous ones cost no memory.
        kind = "contiguous" if total in (1, problem.n_features) else "random"
        kind = partition if isinstance(partition, str) else kind
        given = make_partition(problem, n_blocks=total, kind=kind, seed=seed, n_threads=threads)
    elif given.n_features != problem.n_features:
        raise ValueError(f"partition is of {given.n_features} features, X has {problem.n_features}")
    warn_of_risk(problem, given, options, threads, stacklevel=3)
    outcome = run_family(
        problem,
        CpuModel(problem, threads),
        given,
        options,
        max_iter=max_iter if max_iter is not None else 10_000 * options.check_every,
        stop_on_divergence=on_divergence == "stop",
        trace_spectral_radius=radius,
        **{"start": None, **common},
    )
    return Solution(intercept=0.0, partition=given, feature_names=problem.feature_names, **outcome)


def check_family_arguments(method: str, family: Mapping[str, Any], partition: Partition | str | None = None) -> None:
    """Refuses settings of the family that no problem could make right."""
    if method == "auto":
        _refuse_family_options(family)
        _check_partition_of_auto(partition)
        return
    _check_kind(partition)
    one_of("on_divergence", family.get("on_divergence", "stop"), ON_DIVERGENCE)
    known = FamilyOptions.__dataclass_fields__.keys() - {"n_blocks", "blocks_per_iter"}
    FamilyOptions(1, 1, **{name: value for name, value in family.items() if name in known})


def _check_kind(partition: Partition | str | None) -> None:
    if isinstance(partition, Partition) or partition is None or (isinstance(partition, str) and partition in KINDS):
        return
    raise ValueError(
        f"partition={shown(partition)} is not known; use a Partition or one of {', '.join(map(repr, KINDS))}"
    )


def _refuse_family_options(family: Mapping[str, Any]) -> None:
    for name, value in family.items():
        if name not in FamilyArguments.__annotations__:
            raise TypeError(f"solve() has no argument {name}")
        raise ValueError(
            f"{name}={shown(value)} is not for method='auto', the default; it needs one of the paper's methods, "
            "such as method='thread-greedy'"
        )


def _refuse_beyond_family(problem: Problem, method: str) -> None:
    for name, used in (
        ("sample_weight", problem.row_weights is not None),
        ("fit_intercept", problem.fit_intercept),
        ("offset", problem.offset is not None),
    ):
        if used:
            raise NotImplementedError(f"method={method!r} does not support {name}; use method='auto'")


def _check_partition_of_auto(partition: Partition | str | None) -> Partition | None:
    if partition is not None and not isinstance(partition, Partition):
        raise ValueError(
            f"partition={shown(partition)} with method='auto' must be a Partition (make_partition makes one; "
            "on the command line, a file of blockgreedy partition)"
        )
    return partition


def _blocks_of_auto(problem: Problem, n_blocks: int | None, partition: Partition | str | None) -> int:
    """0 leaves the number to the core."""
    if partition is None:
        return 0 if n_blocks is None else whole("n_blocks", n_blocks, 1, _MAX_AUTO_BLOCKS)
    partition = _check_partition_of_auto(partition)
    assert partition is not None
    if partition.n_features != problem.n_features:
        raise ValueError(f"partition is of {partition.n_features} features, X has {problem.n_features}")
    if n_blocks is not None and whole("n_blocks", n_blocks, 1) != partition.n_blocks:
        raise ValueError(f"n_blocks={n_blocks} does not match the partition, which has {partition.n_blocks} blocks")
    return whole("the partition's n_blocks", partition.n_blocks, 1, _MAX_AUTO_BLOCKS)


def _intercept(intercept_init: float | None, problem: Problem) -> float:
    if intercept_init is None:
        return 0.0
    value = number("intercept_init", intercept_init)
    if not np.isfinite(value) or (value != 0 and not problem.fit_intercept):
        raise ValueError(f"intercept_init={shown(intercept_init)} must be finite, and 0 without fit_intercept=True")
    return value


def _start(coef_init: ArrayLike, problem: Problem) -> NDArray[np.float64]:
    w = point("coef_init", coef_init, problem.n_features).copy()
    if not np.all(np.isfinite(w)) or not np.isfinite(problem.penalty.value(w)):
        raise ValueError("coef_init must be finite and inside lower ≤ w ≤ upper (0 for excluded features)")
    return w
