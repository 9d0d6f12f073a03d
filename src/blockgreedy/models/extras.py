"""What a model says of the data beside its weights: it takes memory after the fit, and can be done without."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from blockgreedy.base.memory import bytes_of
from blockgreedy.models.aliases import Aliases
from blockgreedy.partitions.duplicates import copies_of
from blockgreedy.problem.columns import without_stored_zeros
from blockgreedy.problem.problem import Problem
from blockgreedy.problem.tiled_columns import TiledColumns

Extra = TypeVar("Extra")

_MOST_COMPARED = 50_000_000  # entries of a store that are taken into memory to find copies of columns
_PER_COMPARED = 64  # bytes of memory for each of them, copies and their order included


class LeftOutWarning(RuntimeWarning):
    """There was too little memory for a part of a model that it can do without."""


def unless_memory_ends(what: str, make: Callable[[], Extra]) -> Extra | None:
    try:
        return make()
    except MemoryError as error:
        warnings.warn(f"not enough memory for {what}, which are left out: {error}", LeftOutWarning, stacklevel=2)
        return None


def aliases_of(problem: Problem, with_weight: NDArray[np.int64], memory: int | str | None) -> Aliases | None:
    """None for a store of which too many columns would have to be looked at, or more than this memory holds."""
    design = problem.design
    if not isinstance(design, TiledColumns):
        return Aliases(copies_of(problem.X, with_weight, problem.n_threads), with_weight)
    most = _MOST_COMPARED if memory is None else min(_MOST_COMPARED, bytes_of("memory", memory) // _PER_COMPARED)
    alike = design.alike(with_weight)
    if int(np.sum(design.entries()[alike])) > most:
        return None
    found = copies_of(design.take(alike), np.searchsorted(alike, with_weight), problem.n_threads)
    return Aliases([alike[group] for group in found], with_weight)


def support_of(problem: Problem) -> NDArray[np.int64]:
    """In how many rows each feature is not 0. Rows of weight 0 do not count."""
    counted = None if problem.row_weights is None or np.all(problem.row_weights) else problem.row_weights > 0
    if isinstance(problem.design, TiledColumns):
        return problem.design.entries(counted)
    columns: Any = without_stored_zeros(problem.X)
    if isinstance(columns, np.ndarray):
        return np.asarray(np.count_nonzero(columns if counted is None else columns[counted], axis=0), dtype=np.int64)
    if counted is None:
        return np.asarray(np.diff(columns.indptr), dtype=np.int64)
    before = np.append(0, np.cumsum(counted[columns.indices]))
    return np.asarray(np.diff(before[columns.indptr]), dtype=np.int64)
