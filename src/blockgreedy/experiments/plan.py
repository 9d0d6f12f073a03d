"""The list of runs and the seconds that each may take, known before the first one starts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from blockgreedy.base.names import PARTITION_KINDS
from blockgreedy.experiments import paper, readings
from blockgreedy.experiments.readings import Reading
from blockgreedy.experiments.results import DEFAULT, Setting
from blockgreedy.experiments.sets import N_ALPHAS
from blockgreedy.experiments.standing import KINDS

SECONDS, FULL_SECONDS = 4.0, 20.0  # the unit of all limits
LEAST_ITERATIONS = 300  # of Figure 2, so that on a large set or a busy machine it shows more than the start
PER_BLOCK = (1, 4, 16)
SAFE_UPDATES = ("joint", "sweep")
DESIGN_B, DESIGN_P = (1, 8, 32, 256, 2048), (1, 8, 32, 256)  # and B = p
DESIGN_ALPHA = 2  # which of the four alphas Figure 1 is drawn at
DESIGN_ERROR = 0.1
LOAD_ALPHA, LOAD_ROUNDS = 1, 3  # of the measured load: the best round counts

REFERENCE, TIMING, LOAD, DESIGN, FOLLOW_UP = "optimum", "timing", "load", "design space", "follow-up"
FIGURE_2, GREEDY_RULE = readings.ADDED.part, readings.GAIN.part
STOP_ERROR = {reading.part: 1e-6 for reading in readings.ALL} | {DESIGN: DESIGN_ERROR, FOLLOW_UP: 1e-4}


@dataclass(frozen=True)
class Job:
    part: str
    set_name: str
    alpha_index: int
    setting: Setting
    seconds: float  # at most
    max_iter: int | None = None
    enough: tuple[int, float] | None = None  # ends before its limit once it has so many iterations and seconds
    n_threads: int | None = None  # instead of all that the experiments may have

    @property
    def title(self) -> str:
        s = self.setting
        how = s.kind if s.kind == DEFAULT else f"{s.kind} blocks, {s.update}"
        size = f", B {s.n_blocks or 'p'}, P {s.blocks_per_iter}" if self.part == DESIGN else ""
        several = f", {s.per_block} per block" if s.per_block > 1 else ""
        return f"{self.part}: {self.set_name}, {how}{several}{size}"


def kinds() -> list[str]:
    """The partitions to compare; the features' own order says nothing, and capped ones have a benchmark of theirs."""
    return [kind for kind in PARTITION_KINDS if kind not in ("contiguous", "capped")]


def make_plan(set_names: list[str], seconds: float) -> list[Job]:
    """Part after part over all sets, so that an early end leaves whole parts. What Table 2 needs comes first."""
    detail = "reuters" if "reuters" in set_names else set_names[0]
    others = [name for name in set_names if name != detail]
    cells = [(name, k) for name in set_names for k in range(N_ALPHAS)]
    jobs = [Job(REFERENCE, name, k, Setting(DEFAULT, "auto"), seconds) for name, k in cells]
    jobs += [
        Job(TIMING, name, min(1, N_ALPHAS - 1), Setting("random"), seconds / 8, n_threads=1) for name in set_names
    ]
    jobs += _load(set_names, seconds)
    jobs += _closely(readings.ADDED, detail, kinds(), 2.5 * seconds)
    jobs += _closely(readings.PRINTED, detail, KINDS, 5 * seconds)
    jobs += [
        Job(FIGURE_2, name, k, readings.ADDED.of(kind), 0.8 * seconds, None, (LEAST_ITERATIONS, seconds / 2))
        for name in others
        for k in range(N_ALPHAS)
        for kind in kinds()
    ]
    jobs += _closely(readings.ALONE, detail, KINDS, 1.5 * seconds)
    jobs += _closely(readings.TOGETHER, detail, KINDS, seconds)
    jobs += _closely(readings.CONCURRENT, detail, KINDS, seconds)
    jobs += _closely(readings.GAIN, detail, KINDS, seconds / 2)
    jobs += [
        Job(reading.part, name, k, reading.of(kind), seconds / 4)
        for reading in (readings.ALONE, readings.TOGETHER)
        for name in others
        for k in range(N_ALPHAS)
        for kind in KINDS
    ]
    jobs += _design(detail, seconds / 8)
    jobs += [
        Job(FOLLOW_UP, name, k, Setting(kind, update, per_block), seconds / 8)
        for name, k in cells
        for update in SAFE_UPDATES
        for per_block in PER_BLOCK
        for kind in kinds()
    ]
    return jobs


def _closely(reading: Reading, set_name: str, kinds: list[str] | tuple[str, ...], seconds: float) -> list[Job]:
    """To the paper's 10,000 iterations."""
    return [
        Job(reading.part, set_name, k, reading.of(kind), seconds, paper.ITERATIONS)
        for k in range(N_ALPHAS)
        for kind in kinds
    ]


def _load(set_names: list[str], seconds: float) -> list[Job]:
    """The paper's load imbalance with the threads that there are, each of which scans whole blocks.

    On one thread too, where nobody waits: what differs there between kinds is not the imbalance.
    """
    return [
        Job(LOAD, name, LOAD_ALPHA, replace(readings.ADDED.of(kind), scan="blocks"), seconds / 16, n_threads=threads)
        for name in set_names
        for kind in kinds()
        for _ in range(LOAD_ROUNDS)
        for threads in (1, None)
    ]


def _design(set_name: str, seconds: float) -> list[Job]:
    return [
        Job(DESIGN, set_name, DESIGN_ALPHA, Setting("random", update, 1, B, P), seconds)
        for update in ("add", "joint")
        for B in (*DESIGN_B, 0)  # 0 stands for p, which only the data knows
        for P in DESIGN_P
        if P <= B or B == 0
    ]
