"""The list of runs and the seconds that each may take, known before the first one starts."""

from __future__ import annotations

from dataclasses import dataclass

from blockgreedy.base.names import PARTITION_KINDS
from blockgreedy.experiments import paper
from blockgreedy.experiments.results import DEFAULT, Setting
from blockgreedy.experiments.sets import N_ALPHAS

SECONDS, FULL_SECONDS = 4.0, 20.0  # of a run of Figure 2; all other limits are parts or multiples of it
LEAST_ITERATIONS = 300  # of Figure 2, so that on a large set or a busy machine it shows more than the start
PER_BLOCK = (1, 4, 16)
SAFE_UPDATES = ("joint", "sweep")
DESIGN_B, DESIGN_P = (1, 8, 32, 256, 2048), (1, 8, 32, 256)  # and B = p
DESIGN_ALPHA = 2  # which of the four alphas Figure 1 is drawn at
DESIGN_ERROR = 0.1

REFERENCE, TIMING, FIGURE_2, LINE_SEARCH, DESIGN, FOLLOW_UP = (
    "optimum",
    "timing",
    "figure 2",
    "line search",
    "design space",
    "follow-up",
)
STOP_ERROR = {FIGURE_2: 1e-6, LINE_SEARCH: 1e-6, DESIGN: DESIGN_ERROR, FOLLOW_UP: 1e-4}


@dataclass(frozen=True)
class Job:
    part: str
    set_name: str
    alpha_index: int
    setting: Setting
    seconds: float  # at most
    max_iter: int | None = None
    enough: tuple[int, float] | None = None  # ends before its limit once it has so many iterations and seconds

    @property
    def title(self) -> str:
        s = self.setting
        how = s.kind if s.kind == DEFAULT else f"{s.kind} blocks, {s.update}"
        size = f", B {s.n_blocks or 'p'}, P {s.blocks_per_iter}" if self.part == DESIGN else ""
        several = f", {s.per_block} per block" if s.per_block > 1 else ""
        return f"{self.part}: {self.set_name}, {how}{several}{size}"


def kinds() -> list[str]:
    """The partitions to compare; the features' own order says nothing about them."""
    return [kind for kind in PARTITION_KINDS if kind != "contiguous"]


def make_plan(set_names: list[str], seconds: float) -> list[Job]:
    """Part after part over all sets, so that an early end leaves whole parts."""
    detail = "reuters" if "reuters" in set_names else set_names[0]
    alphas = range(N_ALPHAS)
    cells = [(name, k) for name in set_names for k in alphas]
    jobs = [Job(REFERENCE, name, k, Setting(DEFAULT, "auto"), 2 * seconds) for name, k in cells]
    jobs += [Job(TIMING, name, min(1, N_ALPHAS - 1), Setting("random"), seconds / 8) for name in set_names]
    for name, k in cells:
        closely = name == detail  # to the paper's 10,000 iterations
        limit, iterations = (4 * seconds, paper.ITERATIONS) if closely else (2 * seconds, None)
        enough = None if closely else (LEAST_ITERATIONS, seconds)
        jobs += [Job(FIGURE_2, name, k, Setting(kind), limit, iterations, enough) for kind in kinds()]
    jobs += [
        Job(LINE_SEARCH, name, k, Setting(kind, "line-search"), seconds / 2) for name, k in cells for kind in kinds()
    ]
    jobs += [
        Job(DESIGN, detail, DESIGN_ALPHA, Setting("random", update, 1, B, P), seconds / 2)
        for update in ("add", "joint")
        for B in (*DESIGN_B, 0)  # 0 stands for p, which only the data knows
        for P in DESIGN_P
        if P <= B or B == 0
    ]
    jobs += [
        Job(FOLLOW_UP, name, k, Setting(kind, update, per_block), seconds / 4)
        for name, k in cells
        for update in SAFE_UPDATES
        for per_block in PER_BLOCK
        for kind in kinds()
    ]
    return jobs
