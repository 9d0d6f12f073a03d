"""The parts of stored tiles that make up the tile of a rank."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.tiles.sparse_columns import some_rows
from blockgreedy.backends.tiles.tile import Piece

if TYPE_CHECKING:
    from blockgreedy.backends.tiles.local import Team
    from blockgreedy.base.design import TiledDesign


def stored_pieces(tiles: TiledDesign, rows: slice, places: NDArray[np.int64], team: Team) -> list[Piece]:
    """The parts of stored tiles that lie in these rows and hold these columns."""
    pieces = []
    at = np.searchsorted(places, tiles.column_cuts).tolist()
    for r, (top, bottom) in enumerate(zip(tiles.row_cuts[:-1].tolist(), tiles.row_cuts[1:].tolist(), strict=True)):
        first, last = max(top, rows.start), min(bottom, rows.stop)
        for c, (begin, end) in enumerate(pairwise(at)):
            if first >= last or begin == end:
                continue
            numbers = (places[begin:end] - tiles.column_cuts[c]).astype(np.int32)
            matrix = partial(tiles.tile, r, c)
            if (first, last) != (top, bottom):  # a copy of some rows: made once
                matrix = partial(_same, some_rows(team, tiles.tile(r, c), first - top, last - top, numbers))
                numbers = np.arange(end - begin, dtype=np.int32)
            within = slice(first - rows.start, last - rows.start)
            pieces.append(Piece(within, slice(begin, end), numbers, matrix, partial(tiles.will_need, r, c)))
    return pieces


def _same(matrix: Any) -> Any:
    return matrix
