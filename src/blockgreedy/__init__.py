"""blockgreedy: L1-regularised models on large sparse data, by block-greedy coordinate descent."""

from blockgreedy import data
from blockgreedy.data import Dataset, load, save
from blockgreedy.partition import Partition, make_partition
from blockgreedy.problem import Problem
from blockgreedy.solve import Solution, solve
from blockgreedy.trace import Trace

__version__ = "0.1.0"

__all__ = [
    "Dataset",
    "Partition",
    "Problem",
    "Solution",
    "Trace",
    "data",
    "load",
    "make_partition",
    "save",
    "solve",
]
