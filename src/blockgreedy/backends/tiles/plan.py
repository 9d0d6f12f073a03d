"""The plan of a fit on a cluster: memory, messages and seconds of every grid, and the best one."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.tiles import tuning
from blockgreedy.backends.tiles.grid import cuts
from blockgreedy.backends.tiles.terms import Terms
from blockgreedy.backends.tiles.work import Work

_INDEX, _REAL, _SCALED = 4, 8, 4  # bytes of a row number, of a real number, of a value of Z
_GROUP_ROW_VECTORS = 3  # of the rows of a row group: θ, and what it is gathered in
_WHOLE_ROW_VECTORS = 3  # y, and the dual point that the fit returns, are whole on every rank
# Rounds of an iteration beside those of gradients and products. All ranks: what is best, bins, steps (the diagonal
# apart), and where there are column groups the working set with the keys of its columns. Beside: its columns. Above:
# keys, where there is one column group.
_ROUNDS_OF_ALL, _ROUNDS_BESIDE, _ROUNDS_ABOVE = 3, 1, 1
_WAITS_OF_LOOP = 3  # that are not the solver's: the loop's commands and counters
_ROUNDS_OF_PROOF = 5  # the dual point is moved onto the intercept's equality, scaled and judged
_UNEVEN = 1.1  # ranks that do the same work do not end at the same moment: every product waits for the slowest
_PASSES_OF_STEP = 2  # over the working set's entries, in units of a product: the diagonal, predictions along the step


@dataclass(frozen=True)
class Machines:
    """``n`` machines with so many cores, ranks and bytes of memory each; threads share the cores of a rank."""

    n: int
    cores: int
    gbit: float
    ranks_each: int = 1
    memory: int | None = None

    @property
    def n_ranks(self) -> int:
        return self.n * self.ranks_each

    @property
    def threads(self) -> int:
        return max(1, self.cores // self.ranks_each)

    @property
    def crowding(self) -> float:
        """Ranks that share a core, where there are more ranks than cores."""
        return max(1.0, self.ranks_each / self.cores)


@dataclass(frozen=True)
class Size:
    """Of a matrix. ``column_entries``, where known: of each column, in the order in which they are dealt out."""

    n_samples: int
    n_features: int
    n_entries: int
    value_bytes: int = 4
    column_entries: NDArray[np.int64] | None = None

    def largest_part(self, n_column_groups: int) -> float:
        """The part of the entries that the fullest column group has."""
        if self.column_entries is None or not self.n_entries:
            return 1 / n_column_groups
        groups = np.add.reduceat(
            np.append(self.column_entries, 0), cuts(self.n_features, n_column_groups)[:-1].clip(max=self.n_features)
        )
        return float(groups.max()) / self.n_entries


@dataclass
class GridPlan:
    """What a rank of this grid holds, sends and waits for. Where ranks differ, the one that has most."""

    grid: tuple[int, int]
    memory: dict[str, float]
    iterations: float
    rounds: float = 0.0
    n_bytes: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)  # by what they are spent on, of the whole fit
    fits: bool = True

    @property
    def total(self) -> float:
        return sum(self.seconds.values())

    @property
    def per_iteration(self) -> float:
        """Without the set-up and the check at the end."""
        return (self.total - self.seconds["set-up"]) / self.iterations

    @property
    def memory_in_all(self) -> float:
        return sum(self.memory.values())

    def spend(self, what: str, seconds: float) -> None:
        self.seconds[what] = self.seconds.get(what, 0.0) + seconds

    def as_dict(self) -> dict[str, Any]:
        return {
            "grid": list(self.grid),
            "fits": self.fits,
            "memory_bytes": round(self.memory_in_all),
            "memory": {name: round(value) for name, value in self.memory.items()},
            "rounds": round(self.rounds),
            "bytes": round(self.n_bytes),
            "rounds_per_iteration": round(self.rounds / self.iterations, 1),
            "bytes_per_iteration": round(self.n_bytes / self.iterations),
            "seconds_per_iteration": self.per_iteration,
            "seconds": self.total,
            "seconds_by_part": dict(self.seconds),
        }


class _Messages:
    """Rounds, bytes and seconds of messages among the ranks of a group."""

    def __init__(self, plan: GridPlan, machines: Machines, terms: Terms, size: int, stride: int) -> None:
        """``stride``: how far the ranks of the group are from each other; ranks of a machine are neighbours."""
        self._plan, self._size = plan, size
        is_local = machines.n == 1 or machines.ranks_each % (size * stride) == 0
        self._latency = terms.local_latency if is_local else terms.latency
        # ranks of a machine share its way out
        by_network = machines.ranks_each / (machines.gbit * 1e9 / 8)
        self._per_byte = 1 / terms.local_bandwidth if is_local else by_network

    def send(self, what: str, times: float, n_rounds: float, n_bytes: float, more_waits: float = 0) -> None:
        """``n_bytes``: of one time, sent or received by a rank; ``more_waits``: beside one for each round."""
        if self._size == 1:
            return
        waits = (n_rounds + more_waits) * ceil(log2(self._size))
        self._plan.rounds += times * n_rounds
        self._plan.n_bytes += times * n_bytes
        self._plan.spend(what, times * (waits * self._latency + n_bytes * self._per_byte))

    def reduce(self, what: str, times: float, n_bytes: float) -> None:
        self.send(what, times, 1, 2 * n_bytes * (self._size - 1) / self._size)

    def gather(self, what: str, times: float, n_bytes: float) -> None:
        """``n_bytes``: of what comes together. Ranks tell their sizes first."""
        self.send(what, times, 1, n_bytes * (self._size - 1) / self._size, more_waits=1)


def _memory(grid: tuple[int, int], size: Size, work: Work) -> dict[str, float]:
    rows, columns = grid
    n, p, entry = size.n_samples, size.n_features, _INDEX + size.value_bytes
    own_entries = size.n_entries * size.largest_part(columns) / rows
    kept = min(1.0, tuning.KEPT_ENTRIES * work.working_entries) * size.n_entries / (rows * columns)
    scaled = work.working_entries * size.n_entries / (rows * columns)
    return {
        "process": tuning.BASE_BYTES,
        "tile": own_entries * entry + _REAL * (p / columns + 1),
        "columns": tuning.NUMBERS_PER_COLUMN * _REAL * work.relevant * p / columns,
        "rows": _REAL * (tuning.NUMBERS_PER_ROW * n / (rows * columns) + _GROUP_ROW_VECTORS * n / rows),
        "whole": _REAL * (_WHOLE_ROW_VECTORS * n + tuning.NUMBERS_PER_FEATURE * p),
        "working set": kept * entry + scaled * (_SCALED + tuning.BYTES_OF_SUMS) + 30 * _REAL * work.working_set,
    }


def plan_grid(grid: tuple[int, int], size: Size, machines: Machines, terms: Terms, work: Work) -> GridPlan:
    rows, columns = grid
    n_ranks = rows * columns
    plan = GridPlan(grid, _memory(grid, size, work), work.iterations)
    plan.fits = machines.memory is None or plan.memory_in_all * machines.ranks_each <= machines.memory
    everyone = _Messages(plan, machines, terms, n_ranks, 1)
    beside = _Messages(plan, machines, terms, columns, 1)
    above = _Messages(plan, machines, terms, rows, columns)
    n_own, n_group = size.n_samples / n_ranks, size.n_samples / rows
    p_own = work.relevant * size.n_features / columns
    own_entries = size.n_entries * size.largest_part(columns) / rows
    working_entries, w = work.working_entries * size.n_entries / n_ranks, work.working_set
    entry, slow = _INDEX + size.value_bytes, machines.crowding
    by_memory = machines.ranks_each / terms.memory_bandwidth

    def entries(count: float, each: float, n_bytes: float) -> float:
        return max(count * each * slow / machines.threads, count * n_bytes * by_memory)

    def gradients(what: str, times: float, due: float) -> None:
        beside.gather(what if what == "set-up" else "messages of gradients", times, _REAL * n_group)
        plan.spend(what, times * entries(due * own_entries, terms.gradient, entry))
        plan.spend(what, times * slow * terms.column * p_own)
        above.reduce(what if what == "set-up" else "messages of gradients", times, _REAL * due * p_own)

    gradients("gradients", work.gradients, work.due)
    plan.spend("rows", work.gradients * slow * terms.row * n_own)
    plan.spend("rows", work.iterations * slow * terms.row_of_step * n_own / machines.threads)
    proofs = max(0.0, work.gradients - work.iterations)
    everyone.send("messages of steps", work.iterations, _ROUNDS_OF_ALL, 2 * _REAL * tuning.BINS, _WAITS_OF_LOOP)
    everyone.send("messages of steps", proofs, _ROUNDS_OF_PROOF, 0)
    if columns > 1:  # numbers of all columns and keys of the new ones, which are few
        everyone.gather("messages of steps", work.iterations, 3 * _REAL * w)
        beside.send("messages of steps", work.iterations, _ROUNDS_BESIDE, 0, _ROUNDS_BESIDE)
    else:
        above.send("messages of steps", work.iterations, _ROUNDS_ABOVE, 2 * _REAL * w)
    everyone.reduce("messages of steps", work.iterations, 2 * _REAL * w)

    passes = work.products * work.wanted + _PASSES_OF_STEP * work.iterations
    uneven = _UNEVEN if n_ranks > 1 else 1.0
    plan.spend("products", passes * uneven * entries(working_entries, terms.product, 2 * (_INDEX + _SCALED)))
    plan.spend("products", work.products * slow * (terms.call + terms.working * w))
    everyone.reduce("messages of products", work.products, _SCALED * work.wanted * w)

    copied = work.copied * own_entries
    plan.spend("working set", entries(copied, terms.copy, 2 * entry))
    if columns > 1:
        plan.spend("working set", copied * terms.cut * slow)
        beside.send("working set", 1, 0, copied * entry * (columns - 1) / columns)

    # what is known of a store's columns, divided among the ranks, and which of them are relevant
    plan.spend("set-up", slow * terms.column * size.n_features / n_ranks)
    everyone.send("set-up", 1, 1, 3 * _REAL * p_own, more_waits=1)
    beside.reduce("set-up", 2, _REAL * n_group)  # predictions, at the start and in the check
    gradients("set-up", 1, work.due)  # the check: the dual point against all columns
    plan.spend("set-up", entries(working_entries, terms.copy, 2 * entry))
    plan.spend("set-up", 3 * slow * terms.row * n_own)
    everyone.gather("set-up", 1, _REAL * size.n_samples)  # the dual point, whole
    return plan


@dataclass
class ClusterPlan:
    """Every grid of the ranks; ``best`` is the fastest that fits in memory, None where none does."""

    size: Size
    machines: Machines
    terms: Terms
    work: Work
    grids: list[GridPlan]

    @property
    def best(self) -> GridPlan | None:
        possible = [grid for grid in self.grids if grid.fits]
        return min(possible, key=lambda grid: grid.total) if possible else None

    def as_dict(self) -> dict[str, Any]:
        size, machines, best = self.size, self.machines, self.best
        return {
            "n_samples": size.n_samples,
            "n_features": size.n_features,
            "nonzeros": size.n_entries,
            "machines": machines.n,
            "cores": machines.cores,
            "gbit": machines.gbit,
            "ranks": machines.n_ranks,
            "threads": machines.threads,
            "memory_per_machine": machines.memory,
            "work": self.work.as_dict(),
            "terms": self.terms.as_dict(),
            "best": None if best is None else list(best.grid),
            "grids": [grid.as_dict() for grid in self.grids],
        }


def plan_grids(size: Size, machines: Machines, terms: Terms, work: Work) -> ClusterPlan:
    shapes = [(r, machines.n_ranks // r) for r in range(1, machines.n_ranks + 1) if machines.n_ranks % r == 0]
    possible = [(r, c) for r, c in shapes if r <= size.n_samples and c <= size.n_features] or shapes
    return ClusterPlan(
        size, machines, terms, work, [plan_grid(shape, size, machines, terms, work) for shape in possible]
    )
