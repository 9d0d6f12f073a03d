"""What is known of every column over all rows: how many entries, mean, spread, range. Zeros count."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from blockgreedy.base.threads import resolve_threads

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK = 1 << 18  # entries at a time: four arrays of them stay in the cache, and memory stays small


class ColumnStatistics(NamedTuple):
    """One number per column and field.

    ``squares`` is the sum of squared deviations from ``mean``: the variance times the number of rows.
    """

    entries: NDArray[np.float64]  # how many are not 0
    mean: NDArray[np.float64]
    squares: NDArray[np.float64]
    largest: NDArray[np.float64]  # |x|
    least: NDArray[np.float64]
    most: NDArray[np.float64]

    @np.errstate(over="ignore", invalid="ignore")  # as in _fill
    def merged(self, n_rows: int, other: ColumnStatistics, n_other: int) -> ColumnStatistics:
        """Of the rows of both (Chan, Golub and LeVeque 1983)."""
        away = other.mean - self.mean
        share = n_other / (n_rows + n_other)
        return ColumnStatistics(
            self.entries + other.entries,
            self.mean + away * share,
            self.squares + other.squares + away * away * (n_rows * share),
            np.maximum(self.largest, other.largest),
            np.minimum(self.least, other.least),
            np.maximum(self.most, other.most),
        )


def statistics_of(ends: NDArray[np.int64], data: Any, n_rows: int, n_threads: int | None = None) -> ColumnStatistics:
    """Of columns that begin at ``ends`` in ``data``, which holds no zeros. Results do not depend on the threads."""
    out = np.zeros((len(ColumnStatistics._fields), len(ends) - 1))
    # columns in runs of about _BLOCK entries
    steps = np.arange(ends[0], ends[-1], _BLOCK)
    cuts = np.unique(np.concatenate([[0], np.searchsorted(ends, steps, side="right") - 1, [len(ends) - 1]]))

    def fill(begin: int, end: int) -> None:
        if ends[begin + 1] - ends[begin] > _BLOCK:  # such a column holds a step, so that a run begins with it
            out[:, begin] = _of_long_column(data[ends[begin] : ends[begin + 1]], n_rows)
            begin += 1
        _fill(ends[begin : end + 1], data, n_rows, out[:, begin:end])

    with ThreadPoolExecutor(resolve_threads(n_threads)) as pool:
        list(pool.map(fill, cuts[:-1].tolist(), cuts[1:].tolist()))
    return ColumnStatistics(*out)


def _of_long_column(values: Any, n_rows: int) -> list[float]:
    """A piece at a time, so that its size does not matter."""
    made, n_made = ColumnStatistics(*np.zeros((len(ColumnStatistics._fields), 1))), n_rows - len(values)
    for start in range(0, len(values), _BLOCK):
        piece = values[start : start + _BLOCK]
        out = np.zeros((len(ColumnStatistics._fields), 1))
        _fill(np.array([0, len(piece)]), piece, len(piece), out)
        own = ColumnStatistics(*out)
        made, n_made = (own if n_made == 0 else made.merged(n_made, own, len(piece))), n_made + len(piece)
    return [float(field[0]) for field in made]


@np.errstate(over="ignore", invalid="ignore")  # values of 1e200 have no sum of squares, and solvers refuse them
def _fill(ends: NDArray[np.int64], data: Any, n_rows: int, out: NDArray[np.float64]) -> None:
    counts = np.diff(ends)
    own = np.flatnonzero(counts)
    out[0] = counts
    if not len(own):
        return
    values = data[ends[0] : ends[-1]].astype(np.float64)
    starts, counts = ends[own] - ends[0], counts[own]
    zeros = n_rows - counts
    mean = np.add.reduceat(values, starts) / n_rows
    away = values - np.repeat(mean, counts)
    # what rounding left of the sum: a long column of equal numbers would seem to vary otherwise
    correction = (np.add.reduceat(away, starts) - zeros * mean) / n_rows
    away -= np.repeat(correction, counts)
    mean += correction
    np.multiply(away, away, out=away)
    least, most = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    out[1, own] = mean
    out[2, own] = np.add.reduceat(away, starts) + zeros * mean * mean
    out[3, own] = np.maximum(-least, most)
    out[4, own] = np.where(zeros > 0, np.minimum(least, 0), least)
    out[5, own] = np.where(zeros > 0, np.maximum(most, 0), most)
