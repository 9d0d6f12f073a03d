"""blockgreedy: L1-regularised models on large sparse data: a certified default solver and the block-greedy family."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from blockgreedy import data
from blockgreedy.data import Dataset, load, save
from blockgreedy.models.model import Model
from blockgreedy.partitions import theory
from blockgreedy.partitions.diagnose import Diagnosis, diagnose
from blockgreedy.partitions.partition import Partition, make_partition
from blockgreedy.problem.problem import Problem
from blockgreedy.solvers.checkpoint import CheckpointWarning
from blockgreedy.solvers.cluster_plan import plan_cluster
from blockgreedy.solvers.path import solve_path
from blockgreedy.solvers.risk import ConvergenceRiskWarning
from blockgreedy.solvers.solution import Solution
from blockgreedy.solvers.solution_path import PathPoint, SolutionPath
from blockgreedy.solvers.solve import solve
from blockgreedy.solvers.trace import Trace

if TYPE_CHECKING:  # at run time they are loaded when one is asked for, see __getattr__
    from blockgreedy import family
    from blockgreedy.estimators.classifiers import LogisticRegression, SquaredHingeClassifier
    from blockgreedy.estimators.cv_models import ElasticNetCV, LassoCV, LogisticRegressionCV
    from blockgreedy.estimators.encoder import TableEncoder
    from blockgreedy.estimators.regressors import ElasticNet, HuberLasso, Lasso

__version__ = "0.1.0"

__all__ = [
    "CheckpointWarning",
    "ConvergenceRiskWarning",
    "Dataset",
    "Diagnosis",
    "ElasticNet",
    "ElasticNetCV",
    "HuberLasso",
    "Lasso",
    "LassoCV",
    "LogisticRegression",
    "LogisticRegressionCV",
    "Model",
    "Partition",
    "PathPoint",
    "Problem",
    "Solution",
    "SolutionPath",
    "SquaredHingeClassifier",
    "TableEncoder",
    "Trace",
    "data",
    "diagnose",
    "family",
    "load",
    "make_partition",
    "plan_cluster",
    "save",
    "solve",
    "solve_path",
    "theory",
]


def __getattr__(name: str) -> Any:
    """What __all__ promises and is not here: ``family`` and, since scikit-learn loads slowly, the estimators."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "family":
        return import_module("blockgreedy.family")
    from blockgreedy import estimators

    return getattr(estimators, name)


def __dir__() -> list[str]:
    """The public names, without the packages that importing them loads."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
