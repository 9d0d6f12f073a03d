"""The iterations of the core, on the threads of this machine: the default solver and the family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from blockgreedy import _core
from blockgreedy.base.names import GREEDY_RULES, SCAN_MODES, UPDATES

if TYPE_CHECKING:
    from blockgreedy.partitions.partition import Partition
    from blockgreedy.problem.core_problem import CoreProblem
    from blockgreedy.solvers.options import FamilyOptions


def working_set(
    problem: CoreProblem,
    *,
    n_blocks: int = 0,
    partition: Partition | None = None,
    tol: float,
    f_null: float,
    floor: float = 0.0,
    least_alpha: float = float("inf"),
) -> _core.WorkingSet:
    """The default solver; the numbers are those of ``WorkingSetOptions`` in the core."""
    block_of = None if partition is None else partition.block_of
    return _core.WorkingSet(problem.core, n_blocks, block_of, tol, f_null, floor, least_alpha)


def fold_paths(problems: Sequence[CoreProblem], f_null: Sequence[float]) -> _core.FoldPaths:
    """Problems on one sparse matrix, side by side; with the objectives of their null models."""
    return _core.FoldPaths([problem.core for problem in problems], list(f_null))


def block_greedy(
    problem: CoreProblem, partition: Partition, options: FamilyOptions, seconds: float = float("inf")
) -> _core.BlockGreedy:
    """Algorithm 1. ``seconds``: how long its first intercept may take."""
    return _core.BlockGreedy(
        problem.core,
        partition.block_of,
        partition.n_blocks,
        options.blocks_per_iter,
        options.per_block,
        UPDATES.index(options.update),
        GREEDY_RULES.index(options.greedy_rule),
        SCAN_MODES.index(options.scan),
        options.atomic,
        options.inner_tol,
        options.sweeps,
        options.seed,
        options.step_scale,
        options.asynchronous,
        problem.constants(),
        seconds,
    )
