"""What the paper reports, typed in once: Scherrer, Tewari, Halappanavar, Haglin, NIPS 2012.

Numbers are from its tables "Summary of input characteristics" and "The effect of feature clustering, for Reuters" and
from the text around them.
"""

from __future__ import annotations

from dataclasses import dataclass

N_BLOCKS = 32  # "our empirical results focus on thread-greedy coordinate descent with 32 blocks"
GREEDY_RULE = "step"  # "Accept {j : η_j has maximal absolute value in its block}"
ITERATIONS = 10_000  # of its last two rows
SECONDS = 1000.0  # of the two rows before
CROSSOVER_SECONDS, CROSSOVER_ALPHA = 250.0, 1e-5
CLUSTERING_SECONDS = 3.0  # "less than three seconds for even the large KDDA dataset"
MACHINE = "48 cores, four AMD Opteron (Magny-Cours)"


@dataclass(frozen=True)
class DataSet:
    title: str
    n_features: int
    n_samples: int
    nonzeros: int
    lambda_0: float


SETS = {
    "news20": DataSet("News20", 1_355_191, 19_996, 9_097_916, 1e-4),
    "reuters": DataSet("Reuters", 47_237, 23_865, 1_757_800, 1e-4),
    "realsim": DataSet("RealSim", 20_958, 72_309, 3_709_083, 1e-4),
    "kdda": DataSet("KDDA", 20_216_830, 8_407_752, 305_613_510, 1e-6),
}


@dataclass(frozen=True)
class Row:
    """One column of the paper's Reuters table."""

    active_blocks: int
    iterations_per_second: float
    nonzeros_in_time: int
    objective_in_time: float
    nonzeros_in_iterations: int
    objective_in_iterations: float


TABLE_ALPHAS = (1e-4, 1e-5, 1e-6)  # "the three largest values of λ"
REUTERS = {
    (1e-4, "random"): Row(32, 153, 184, 0.472, 74, 0.570),
    (1e-4, "clustered"): Row(6, 12.9, 215, 0.591, 203, 0.593),
    (1e-5, "random"): Row(32, 152, 797, 0.264, 82, 0.515),
    (1e-5, "clustered"): Row(32, 12.3, 8592, 0.321, 8812, 0.328),
    (1e-6, "random"): Row(32, 136, 1248, 0.206, 110, 0.472),
    (1e-6, "clustered"): Row(32, 12.3, 19473, 0.136, 19919, 0.141),
}

LINE_SEARCH = (
    "Once this is complete, the thread (without waiting) enters the line search phase, where it remains until all "
    "threads are being updated by less than the specified tolerance. Finally, all updates are performed concurrently."
)
