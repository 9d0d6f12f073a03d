"""What a rank needs before it starts: memory for what it holds, and stored tiles that are as they were written."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.tiles import tuning
from blockgreedy.backends.tiles.grid import Grid
from blockgreedy.backends.tiles.relevant import groups_of_share
from blockgreedy.backends.tiles.share import own_rows_and_columns
from blockgreedy.base import memory
from blockgreedy.base.design import TiledDesign
from blockgreedy.base.memory import bytes_text
from blockgreedy.base.threads import resolve_threads
from blockgreedy.problem.tiled_columns import TiledColumns

if TYPE_CHECKING:
    from blockgreedy.backends.tiles.communicator import Communicator
    from blockgreedy.backends.tiles.parcel import Parcel
    from blockgreedy.backends.tiles.relevant import RelevantColumns
    from blockgreedy.problem.problem import Problem

_PER_COLUMN = 20 * 8  # bytes for each column of the rank: weights, norms, products, penalties and their like
_PER_OWN_ROW = 10 * 8  # for each row that it owns: predictions, dual points, curvatures
# For every row and feature of the problem: targets, dual point, weights.
_PER_ROW, _PER_FEATURE = 3 * 8, tuning.NUMBERS_PER_FEATURE * 8


def bytes_needed(problem: Problem, grid: Grid, relevant: RelevantColumns) -> int:
    """What this rank holds beside mapped files, whose pages the system can take back at any time."""
    design = problem.design
    rows, columns = own_rows_and_columns(design, grid)
    n_rows, own = rows.stop - rows.start, relevant.inside(columns)
    needed: int = _PER_COLUMN * len(own) + _PER_OWN_ROW * (n_rows // grid.shape[1] + 1)
    needed += _PER_ROW * problem.n_samples + _PER_FEATURE * problem.n_features
    per_entry = design.dtype.itemsize + (4 if design.is_sparse else 0)
    if not isinstance(design, TiledColumns):
        if n_rows < design.shape[0]:  # a copy of relevant columns
            needed += int(per_entry * np.sum(own.entries) * n_rows / design.shape[0])
        return needed
    places = design.moved_places  # columns far from 0 are dense, and in memory
    needed += design.dtype.itemsize * n_rows * np.count_nonzero((places >= columns.start) & (places < columns.stop))
    for r, c in stored_tiles(design.tiles, rows, columns):
        top, bottom = (int(at) for at in design.tiles.row_cuts[r : r + 2])
        kept = min(bottom, rows.stop) - max(top, rows.start)
        if kept < bottom - top:  # the same of a stored tile
            of_tile = own.inside(slice(*(int(at) for at in design.tiles.column_cuts[c : c + 2])))
            needed += int(per_entry * np.sum(of_tile.entries) * kept / design.shape[0])
    return needed


def stored_tiles(tiles: TiledDesign, rows: slice, columns: slice) -> list[tuple[int, int]]:
    """The stored tiles that hold some of these rows and columns."""

    def groups(at: NDArray[np.int64], wanted: slice) -> list[int]:
        return [k for k in range(len(at) - 1) if at[k] < wanted.stop and at[k + 1] > wanted.start]

    return [(r, c) for r in groups(tiles.row_cuts, rows) for c in groups(tiles.column_cuts, columns)]


def check_memory(problem: Problem, grid: Grid, ranks: Communicator, relevant: RelevantColumns) -> None:
    """Refuses, on every rank alike, a grid of which some machine cannot hold its ranks."""
    free = memory.free()
    machine = socket.gethostname()
    own = np.array([bytes_needed(problem, grid, relevant), -1 if free is None else free], dtype=np.int64)
    numbers = ranks.gather(own)
    names = [part.tobytes().decode() for part in ranks.gather(np.frombuffer(machine.encode(), dtype=np.uint8))]
    for name in dict.fromkeys(names):
        there = [rank for rank, other in enumerate(names) if other == name]
        needed = sum(int(numbers[rank][0]) for rank in there)
        known = [int(numbers[rank][1]) for rank in there if numbers[rank][1] >= 0]
        if known and needed > min(known):
            most = max(there, key=lambda rank: int(numbers[rank][0]))
            beside = f", with the other {len(there) - 1} ranks there {bytes_text(needed)}" if len(there) > 1 else ""
            raise MemoryError(
                f"rank {most} on {name} needs about {bytes_text(int(numbers[most][0]))} of memory{beside}, and "
                f"{bytes_text(min(known))} are free ({min(known):,} of {needed:,} bytes); use more machines, or a "
                "store whose row groups suit the grid (data convert --row-groups)"
            )


def check_tiles(problem: Problem, grid: Grid, n_threads: int) -> None:
    """Reads this rank's stored tiles, which brings them into memory where there is room, and compares checksums."""
    design = problem.design
    if isinstance(design, TiledColumns):
        _check(design.tiles, stored_tiles(design.tiles, *own_rows_and_columns(design, grid)), n_threads)


def check_statistics(problem: Problem, share: tuple[int, int]) -> None:
    """Reads what a store knows of its columns, as far as they are in this share, and compares checksums.

    Proofs rest on it. Ranks may read copies of the store, each its own: nobody takes another's word for a file.
    """
    design = problem.design
    if isinstance(design, TiledColumns):
        for c in groups_of_share(design.tiles, share):
            design.tiles.check_statistics(c)


def check_parcel(parcel: Parcel, n_threads: int) -> None:
    """The same of the tiles of a parcel, where it is opened."""
    if isinstance(parcel.matrix, TiledDesign):
        _check(parcel.matrix, stored_tiles(parcel.matrix, parcel.rows, parcel.columns), n_threads)


def check_share_of_tiles(tiles: TiledDesign, ranks: Communicator, n_threads: int | None) -> None:
    """The same of the tiles that a rank reads where all ranks share the whole matrix (``shared_by``)."""
    every = [(r, c) for r in range(tiles.grid[0]) for c in range(tiles.grid[1])]
    _check(tiles, every[ranks.rank :: ranks.size], resolve_threads(n_threads))


def _check(tiles: TiledDesign, places: list[tuple[int, int]], n_threads: int) -> None:
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(lambda place: tiles.check_once(*place), places))
