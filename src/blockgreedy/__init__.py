"""blockgreedy: L1-regularised models on large sparse data: a certified default solver and the block-greedy family."""

from blockgreedy import data, theory
from blockgreedy.data import Dataset, load, save
from blockgreedy.diagnose import Diagnosis, diagnose
from blockgreedy.partition import Partition, make_partition
from blockgreedy.path import Path, PathPoint, solve_path
from blockgreedy.problem import Problem
from blockgreedy.risk import ConvergenceRiskWarning
from blockgreedy.solve import Solution, solve
from blockgreedy.trace import Trace

__version__ = "0.1.0"

__all__ = [
    "ConvergenceRiskWarning",
    "Dataset",
    "Diagnosis",
    "Partition",
    "Path",
    "PathPoint",
    "Problem",
    "Solution",
    "Trace",
    "data",
    "diagnose",
    "load",
    "make_partition",
    "save",
    "solve",
    "solve_path",
    "theory",
]
