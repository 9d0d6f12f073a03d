"""What a rank computes by itself, done by the core: the only file of the tile solver that knows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockgreedy import _core
from blockgreedy.problem.passes import core_matrix

if TYPE_CHECKING:
    from blockgreedy.problem.losses import Loss

Array = NDArray[np.float64]


class Part(NamedTuple):
    """Some rows of columns that are gathered from several matrices."""

    matrix: Any  # CSC
    first_row: int  # where its rows begin in the result
    rows: tuple[int, int]  # of the matrix: the first, and the one after the last
    columns: NDArray[Any]  # the numbers that the columns have in it, −1 where they have no entries


Team = _core.Team  # threads that live as long as the object
WorkingColumns = _core.WorkingColumns


def working_columns(matrices: Sequence[Any], places: NDArray[np.int32], team: Team) -> WorkingColumns:
    """Columns of several CSC matrices; ``places``: of each its matrix, and its number there."""
    return WorkingColumns([core_matrix(matrix) for matrix in matrices], np.ascontiguousarray(places).ravel(), team)


def gathered(parts: Sequence[Part], team: Team) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]:
    """indptr, indices and data of columns whose rows lie in several matrices: see ``sparse_columns.gather``."""
    found: Any = _core.gather_columns(
        team,
        [core_matrix(part.matrix) for part in parts],
        [part.first_row for part in parts],
        [part.rows[0] for part in parts],
        [part.rows[1] for part in parts],
        [np.ascontiguousarray(part.columns, dtype=np.int32) for part in parts],
    )
    indptr, indices, data = found
    return indptr, indices, data


def column_keys(columns: Any, first_row: int) -> NDArray[np.uint64]:
    """A hash of each column of CSC: equal for equal columns, and keys of parts with different rows add up."""
    return _core.column_keys(core_matrix(columns), first_row)


def products_of(columns: Any, theta: Array, numbers: NDArray[np.int32], team: Team) -> tuple[Array, int]:
    """x_j·θ of the columns with these numbers; and how many entries were read."""
    found = np.empty(len(numbers))
    return found, _core.products_of(team, core_matrix(columns), np.ascontiguousarray(theta), numbers, found)


class LocalLoss:
    """The loss of some rows."""

    def __init__(self, loss: Loss, y: Array, weights: Array, team: Team) -> None:
        self._of = team, y, weights, loss.code, float(getattr(loss, "delta", 1.0))

    def evaluate(self, predictions: Array, margin: float, flat: float) -> tuple[float, Array, NDArray[np.float32]]:
        """The loss, θ and the roots of curvatures; ``margin`` and ``flat``: see the terms of the core's losses."""
        theta, root = np.empty(len(predictions)), np.empty(len(predictions), dtype=np.float32)
        return _core.evaluate_rows(*self._of, predictions, margin, flat, theta, root), theta, root

    def along(self, predictions: Array, direction: Array, steps: Array) -> Array:
        """The loss after each step along a direction of the predictions."""
        return _core.losses_along(*self._of, predictions, direction, steps)
