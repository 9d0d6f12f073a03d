"""Case: one problem and what is done with it, as plain data. The class name and the seed say all of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

# Numbers of the tile solver's tuning with which working sets of small problems are chosen and limited as those of
# large ones are: with its own, every column would be in them.
SMALL_SETS = {"LEAST_SET": 3, "KEPT_AT_LEAST": 0, "BASE_BYTES": 0}


PATIENCE = (
    10.0  # max_seconds of a fit that is to end by itself: where ranks share a core, an iteration may take seconds
)


@dataclass(frozen=True)
class Grid:
    """How ranks share a case."""

    shape: tuple[int, int]  # groups of rows and of columns, a rank for each pair of them
    groups: tuple[int, int] | None = None  # the same of a store; None: X stays in memory
    shuffled: bool = False  # the columns of the store
    small_sets: bool = False


@dataclass
class Case:
    kind: str  # the class of problems
    seed: int
    X: Any  # as handed over: dense or sparse, any dtype
    y: np.ndarray
    call: str = "solve"  # what is done with it: a name in CALLS of checks.py
    problem: dict[str, Any] = field(default_factory=dict)  # arguments of Problem
    options: dict[str, Any] = field(default_factory=dict)  # arguments of solve, solve_path or the estimator
    estimator: str = ""
    before: tuple[Any, np.ndarray] | None = None  # what the estimator was fitted to first, with warm_start=True
    stop: tuple[str, int] | None = None  # a callback: ("return" or "raise", at which record)
    grid: Grid | None = None  # of ranks, which solve it together
    exponent: int = 0  # the largest power of ten that the data was scaled by
    must_converge: bool = False  # a stall far from the optimum is a finding
    must_prove: bool = False  # a stall anywhere is
    use: dict[str, Any] = field(default_factory=dict)  # what happens beside the call: changes, forks, damage
    recipe: list[str] = field(default_factory=list)  # lines of Python that make X and y, where they are that simple

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    @property
    def tol(self) -> float:
        return float(self.options.get("tol", 1e-4))

    @property
    def has_budget(self) -> bool:
        """Whether the run may end early because it was told to."""
        seconds = self.options.get("max_seconds")
        in_a_hurry = seconds is not None and seconds < PATIENCE
        return self.stop is not None or bool(self.options.get("max_iter")) or in_a_hurry


def dense(X: Any) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else np.asarray(X)
