"""What the experiments found, as plain data: everything the page, the CSV files and the verdicts are made from."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.experiments import paper
from blockgreedy.experiments.sets import SetFacts
from blockgreedy.solvers.trace import Trace

Array = NDArray[np.float64]
DEFAULT = "default solver"  # the kind of a run without blocks


@dataclass(frozen=True)
class Setting:
    """One way to run the family, or the default solver."""

    kind: str  # of partition
    update: str = "add"
    per_block: int = 1
    n_blocks: int = paper.N_BLOCKS
    blocks_per_iter: int = paper.N_BLOCKS
    greedy_rule: str = "gain"
    step_scale: float | str = 1.0
    scan: str = "slices"
    asynchronous: bool = False


@dataclass(frozen=True, eq=False)
class Run:
    part: str  # of the experiments: "figure 2", "follow-up", …
    set_name: str
    alpha: float
    setting: Setting
    trace: Trace
    status: str
    partition_seconds: float = 0.0
    rising_share: float = 0.0  # how often the objective rose from one record to the next
    n_threads: int = 1

    def clock(self, name: str, ns_per_nonzero: float) -> Array:
        """Seconds at each record by one of the CLOCKS."""
        if name == "wall":
            return self.trace["seconds"]
        touched = "critical_nonzeros" if name == "blocks" else "nonzeros_touched"
        threads = 1 if name == "blocks" else paper.N_BLOCKS
        return self.trace[touched] / threads * ns_per_nonzero * 1e-9

    def at_iteration(self, iteration: float, column: str = "objective") -> float:
        return self.when(self.trace["iteration"], iteration, column)

    def when(self, clock: Array, when: float, column: str = "objective") -> float:
        """A column when the clock showed ``when``. A run that had arrived stays where it was."""
        if self.status in ("reached", "converged") and when > clock[-1]:
            return float(self.trace[column][-1])
        return at(clock, self.trace[column], when)

    @property
    def last_iteration(self) -> int:
        return self.trace.records[-1].iteration

    @property
    def has_begun(self) -> bool:
        """Whether it made an iteration within its time; otherwise it measured nothing."""
        return self.last_iteration > 0


# Three clocks. They are never put on one axis.
CLOCKS = {
    "wall": "wall clock of this machine",
    "blocks": "model of 32 threads, scan follows the blocks",
    "slices": "model of 32 threads, equal slices",
}


@dataclass(frozen=True)
class Reference:
    """The default solver on one problem: f*, and how well it is proven."""

    set_name: str
    alpha: float
    objective: float
    relative_gap: float
    status: str


@dataclass(frozen=True, eq=False)
class Blocks:
    """A partition in numbers."""

    set_name: str
    kind: str
    seconds: float  # to make it
    nonzeros: Array  # of X per block
    mass: Array  # share of the first gradient per block

    @property
    def load_ratio(self) -> float:
        """Heaviest block over the mean: what threads that own blocks wait for."""
        return float(self.nonzeros.max() / self.nonzeros.mean())

    def busiest(self, n_threads: int) -> float:
        """Nonzeros of the busiest of these threads, which take one block after the other, as scan="blocks" does."""
        loads = np.zeros(max(1, min(n_threads, len(self.nonzeros))))
        for nonzeros in self.nonzeros:
            loads[int(np.argmin(loads))] += nonzeros
        return float(loads.max())


@dataclass
class Results:
    sets: list[SetFacts] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    blocks: list[Blocks] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    log: list[dict[str, Any]] = field(default_factory=list)  # of every run: each setting that decided it
    part_seconds: dict[str, float] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)  # what was skipped, and why
    interrupted: bool = False
    _best: dict[tuple[int, str, float], float] = field(default_factory=dict, repr=False)

    def facts(self, set_name: str) -> SetFacts:
        return next(facts for facts in self.sets if facts.name == set_name)

    def find(self, part: str, set_name: str | None = None, alpha: float | None = None, **setting: Any) -> list[Run]:
        """The runs of a part that made an iteration."""
        return [
            run
            for run in self.runs
            if run.part == part
            and run.has_begun
            and (set_name is None or run.set_name == set_name)
            and (alpha is None or run.alpha == alpha)
            and all(getattr(run.setting, name) == value for name, value in setting.items())
        ]

    def one(self, part: str, set_name: str, alpha: float, kind: str, **setting: Any) -> Run | None:
        found = self.find(part, set_name, alpha, kind=kind, **setting)
        return found[0] if found else None

    def kinds(self) -> list[str]:
        return list(dict.fromkeys(run.setting.kind for run in self.runs if run.setting.kind != DEFAULT))

    @property
    def detail_set(self) -> SetFacts | None:
        """The set that the paper looks at closely: its Reuters, or the first there is."""
        named = [facts for facts in self.sets if facts.name == "reuters"]
        return (named or self.sets)[0] if self.sets else None

    def best_known(self, set_name: str, alpha: float) -> float:
        """f*: the default solver's objective, or a better one if any run found it. nan if there is none."""
        key = (len(self.runs), set_name, alpha)
        if key not in self._best:
            found = [r.objective for r in self.references if (r.set_name, r.alpha) == (set_name, alpha)]
            same = [run for run in self.runs if (run.set_name, run.alpha) == (set_name, alpha)] if found else []
            self._best[key] = min(
                [*found, *(float(np.nanmin(run.trace["objective"])) for run in same)], default=math.nan
            )
        return self._best[key]

    def errors(self, run: Run) -> Array:
        """(f − f*)/(f(0) − f*) at each record."""
        best = self.best_known(run.set_name, run.alpha)
        scale = self.facts(run.set_name).f_zero - best
        return np.asarray((run.trace["objective"] - best) / scale if scale > 0 else run.trace["objective"] * math.nan)

    def first_below(self, run: Run, error: float, clock: Array) -> float:
        """What the clock showed when the error was first that small; nan if it never was."""
        hits = np.flatnonzero(self.errors(run) <= error)
        return float(clock[hits[0]]) if len(hits) else math.nan

    def seconds_to(self, run: Run, error: float, clock: str = "wall") -> float:
        """Making the blocks included where the clock is the wall's."""
        ns = self.facts(run.set_name).ns_per_nonzero
        own = self.first_below(run, error, run.clock(clock, ns))
        return own + (run.partition_seconds if clock == "wall" else 0.0)


def at(clock: Array, values: Array, when: float) -> float:
    """The last value observed up to ``when``; nan if the run began later or ended before (it is not extrapolated)."""
    if len(clock) == 0 or not clock[0] <= when <= clock[-1] * (1 + 1e-12):
        return math.nan
    return float(values[np.searchsorted(clock, when * (1 + 1e-12), side="right") - 1])


def overtaking(
    clock_a: Array, values_a: Array, clock_b: Array, values_b: Array, ceiling: float = math.inf
) -> float | None:
    """When a, behind b before, got and stayed below it for as long as both ran; None if that did not happen.

    Before both have done something nobody leads: time starts at the later of the first records after the start.
    Above the ceiling a has diverged, and is not behind anybody.
    """
    if len(clock_a) < 2 or len(clock_b) < 2:
        return None
    end = min(clock_a[-1], clock_b[-1])
    times = np.unique(np.concatenate([clock_a, clock_b]))
    times = times[(times <= end) & (times >= max(clock_a[1], clock_b[1]))]
    ahead = np.array([at(clock_a, values_a, t) < at(clock_b, values_b, t) for t in times])
    behind = np.array([at(clock_b, values_b, t) < at(clock_a, values_a, t) <= ceiling for t in times])
    if len(times) == 0 or not ahead[-1] or not behind.any():
        return None
    return float(times[np.flatnonzero(~ahead)[-1] + 1])
