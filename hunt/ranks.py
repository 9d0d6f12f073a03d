"""Fits by ranks that are threads of this process, of a matrix in memory or of a store."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.backends.tiles import tuning
from blockgreedy.backends.tiles.threads import run_in_threads
from hunt.case import SMALL_SETS, Case


@contextmanager
def matrix_and_targets(case: Case) -> Iterator[tuple[Any, Any]]:
    """X and y of ``Problem``: of a store, which has y too, in a folder that is there as long as this is."""
    if case.grid is None or case.grid.groups is None:
        yield case.X, case.y
        return
    with tempfile.TemporaryDirectory() as folder:
        yield stored(case, Path(folder)), None


def stored(case: Case, folder: Path) -> bg.data.Store:
    assert case.grid is not None
    assert case.grid.groups is not None
    row_groups, n_blocks = case.grid.groups
    X: Any = case.X if sp.issparse(case.X) else sp.csc_array(case.X)
    columns: dict[str, Any] = {"column_groups": n_blocks}
    if case.grid.shuffled:
        columns = {"partition": bg.make_partition(X, n_blocks=n_blocks, kind="random")}
    return bg.data.convert(
        bg.Dataset(X, case.y), folder / "made.store", row_groups=row_groups, n_threads=1, **columns
    )


def by_ranks(case: Case, work: Callable[..., Any]) -> list[Any]:
    """What ``work``, called with ``cluster`` and ``grid``, returns on every rank; without a grid on the only one."""
    if case.grid is None:
        return [work()]
    rows, columns = case.grid.shape
    with patch.multiple(tuning, **SMALL_SETS) if case.grid.small_sets else nullcontext():
        return run_in_threads(rows * columns, lambda ranks: work(cluster=ranks, grid=(rows, columns)))
