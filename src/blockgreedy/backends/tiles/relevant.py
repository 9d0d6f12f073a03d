"""Which columns can have a weight at all, and their lengths: the others are left out from the start.

A dual point lies in the domain of the loss, so that |θ_i| ≤ ω_i·b where derivatives of the loss are at most b. Then
|x_j·θ| ≤ b·max ω·‖x_j‖·√(entries of x_j), by Cauchy and Schwarz, and a column for which this is below its threshold
has the weight 0 and keeps its inequality, whatever the point. Of wide data most columns are of this kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from blockgreedy.problem.passes import core_matrix, weighted_squares
from blockgreedy.problem.tiled_columns import TiledColumns

if TYPE_CHECKING:
    from blockgreedy.backends.tiles.communicator import Communicator
    from blockgreedy.base.design import TiledDesign
    from blockgreedy.problem.design import Design
    from blockgreedy.problem.problem import Problem

Array = NDArray[np.float64]
Places = NDArray[np.int64]

_MARGIN = 1 + 1e-9  # for rounding, in squares and in bounds
_TINY = 1e-290  # squares below this may have lost entries to underflow
_RANGE = 1e-25, 1e25  # of the typical entry of a column: others are not what they were in float32
_MOST_RESIDUAL = 1e4  # of targets that are scaled to about 1
_CHUNK = 1 << 16  # columns at a time: what is known of them stays in the cache


@dataclass(frozen=True)
class RelevantColumns:
    """Over all rows of the matrix. ``places`` ascend; a store may keep features in another order."""

    places: Places
    norms: Array  # ‖x_j‖, or a little more
    entries: Array  # how many entries they have

    def __len__(self) -> int:
        return len(self.places)

    def at(self, chosen: slice | NDArray[np.intp]) -> RelevantColumns:
        return RelevantColumns(self.places[chosen], self.norms[chosen], self.entries[chosen])

    def inside(self, columns: slice) -> RelevantColumns:
        """Those at these places."""
        return self.at(slice(*np.searchsorted(self.places, [columns.start, columns.stop])))


def relevant_columns(
    problem: Problem, n_threads: int, least_alpha: float | None = None, share: tuple[int, int] = (0, 1)
) -> RelevantColumns:
    """``problem`` is in the units in which it is solved; ``least_alpha``: the smallest that will be asked for.

    ``share``: k of n; of a store only this part of the columns is looked at.
    """
    design, u = problem.design, problem.penalty_weights
    alpha = problem.alpha if least_alpha is None else least_alpha
    largest = 1 / problem.n_samples if problem.row_weights is None else float(np.max(problem.row_weights))
    reach = problem.loss.derivative_bound * largest * _MARGIN
    moved = design.moved_places if isinstance(design, TiledColumns) else np.zeros(0, dtype=np.int64)
    parts = []
    for places, squares, entries in _known(design, n_threads, share):
        with np.errstate(over="ignore", invalid="ignore"):
            is_short = reach * np.sqrt(squares * entries) <= alpha * _units(design, u, places)
        stays_at_zero = (is_short & (squares > _TINY)) | (entries == 0)
        if len(moved):  # dense, so they have to be looked at in any case
            stays_at_zero &= ~np.isin(places, moved)
        chosen = np.flatnonzero(~stays_at_zero)
        parts.append(RelevantColumns(places, np.sqrt(squares * _MARGIN), entries).at(chosen))
    return _joined(parts)


def relevant_in_units(
    problem: Problem, n_threads: int, least_alpha: float | None, share: tuple[int, int] = (0, 1)
) -> tuple[RelevantColumns, float]:
    """The same of a problem as it was given, and the least alpha, in the units in which it is solved from here on."""
    while True:
        scaling = problem.scaling
        least = scaling.inner.alpha if least_alpha is None else scaling.alpha_in(least_alpha)
        found = relevant_columns(scaling.inner, n_threads, least, share)
        if scaling.units.exponents is not None or not must_be_rescaled(scaling.inner, found, least):
            return found, least
        problem.rescale_columns()


def must_be_rescaled(problem: Problem, found: RelevantColumns, least_alpha: float) -> bool:
    """Whether some of them are too large or too small for a model in float32.

    Columns of a store cannot be rescaled: it is refused. Small ones are let pass there if alpha is far above what
    their products with targets of about 1 can come to: they have no weight.
    """
    typical = found.norms / np.sqrt(np.maximum(found.entries, 1.0))
    if isinstance(problem.design, TiledColumns):
        with np.errstate(invalid="ignore"):  # 0·inf of an excluded feature
            thresholds = least_alpha * _units(problem.design, problem.penalty_weights, found.places)
        is_small = (typical < _RANGE[0]) & (thresholds <= _MOST_RESIDUAL * typical)
        return bool(np.any((typical > _RANGE[1]) | is_small))
    far = found.at(np.flatnonzero((typical < _RANGE[0]) | (typical > _RANGE[1])))
    if np.any(far.norms > 0):
        return True
    columns = problem.design.take(far.places)  # of zeros, or of numbers whose squares are
    return bool(np.any((columns.data if problem.design.is_sparse else columns) != 0))


def handed_round(ranks: Communicator, found: RelevantColumns, wanted: Sequence[slice]) -> RelevantColumns:
    """Of what all ranks found in their shares, the columns that this one wants; ``wanted``: by every rank."""
    parts = [found.inside(columns) for columns in wanted]
    told = [np.concatenate([part.places.view(np.float64), part.norms, part.entries]) for part in parts]
    tables = [part.reshape(3, -1) for part in ranks.exchange(told)]
    return _joined([RelevantColumns(np.ascontiguousarray(t[0]).view(np.int64), t[1], t[2]) for t in tables])


def _units(design: Design | TiledColumns, u: Array | None, places: Places) -> Array | float:
    """u_j, inf for excluded features."""
    if u is None:
        return 1.0
    order = design.tiles.features if isinstance(design, TiledColumns) else None
    return u[places if order is None else order[places]]


def _joined(parts: list[RelevantColumns]) -> RelevantColumns:
    if not parts:
        return RelevantColumns(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))
    whole = RelevantColumns(
        np.concatenate([part.places for part in parts]),
        np.concatenate([part.norms for part in parts]),
        np.concatenate([part.entries for part in parts]),
    )
    return whole if np.all(np.diff(whole.places) > 0) else whole.at(np.argsort(whole.places))


def _known(
    design: Design | TiledColumns, n_threads: int, share: tuple[int, int]
) -> Iterator[tuple[Places, Array, Array]]:
    """Places, Σ x² and numbers of entries of some columns at a time."""
    if not isinstance(design, TiledColumns):
        columns = design.columns
        squares = weighted_squares(core_matrix(columns), None, n_threads)
        counts = np.diff(columns.indptr) if design.is_sparse else np.full(design.shape[1], design.shape[0])
        yield np.arange(design.shape[1], dtype=np.int64), squares, counts.astype(np.float64)
        return
    n, moved = design.shape[0], design.moved_places
    for c, begin, end in _chunks(design.tiles, share):
        known = design.tiles.statistics_of(c)
        mean, squares, entries = (
            np.array(numbers[begin:end]) for numbers in (known.mean, known.squares, known.entries)
        )
        places = np.arange(begin, end, dtype=np.int64) + int(design.tiles.column_cuts[c])
        if len(moved):  # dense columns, about nearly their means
            _, here, there = np.intersect1d(places, moved, return_indices=True)
            mean[here] -= design.shifts[there]
            entries[here] = n
        with np.errstate(over="ignore"):
            yield places, squares + n * mean * mean, entries


def _chunks(tiles: TiledDesign, share: tuple[int, int]) -> Iterator[tuple[int, int, int]]:
    """A column group, and the first and last of some of its columns, as places in the group."""
    widths = enumerate(np.diff(tiles.column_cuts).tolist())
    every = ((c, begin, min(begin + _CHUNK, width)) for c, width in widths for begin in range(0, width, _CHUNK))
    return islice(every, share[0], None, share[1])


def groups_of_share(tiles: TiledDesign, share: tuple[int, int]) -> list[int]:
    """The column groups that have columns in this share."""
    return sorted({c for c, _, _ in _chunks(tiles, share)})
