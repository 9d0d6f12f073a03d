"""blockgreedy: L1-regularised models on large sparse data: a certified default solver and the block-greedy family."""

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
