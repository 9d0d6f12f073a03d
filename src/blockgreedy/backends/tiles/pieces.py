"""The parts of stored tiles that make up the tile of a rank."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from blockgreedy.backends.tiles.sparse_columns import cut_rows, make_columns
from blockgreedy.backends.tiles.tile import Piece

if TYPE_CHECKING:
    from blockgreedy.base.design import TiledDesign


def stored_pieces(tiles: TiledDesign, rows: slice, columns: slice) -> list[Piece]:
    """The parts of stored tiles that lie in these rows and columns."""
    pieces = []
    for r, (top, bottom) in enumerate(zip(tiles.row_cuts[:-1].tolist(), tiles.row_cuts[1:].tolist(), strict=True)):
        first, last = max(top, rows.start), min(bottom, rows.stop)
        for c, (left, right) in enumerate(
            zip(tiles.column_cuts[:-1].tolist(), tiles.column_cuts[1:].tolist(), strict=True)
        ):
            begin, end = max(left, columns.start), min(right, columns.stop)
            if first >= last or begin >= end:
                continue
            of_rows = None if (first, last) == (top, bottom) else (first - top, last - top)
            cut = partial(_part_of, tiles, r, c, of_rows, (begin - left, end - left))
            if of_rows is not None:  # a copy of some rows: made once
                copied = cut()
                cut = partial(_same, copied)
            pieces.append(
                Piece(
                    slice(first - rows.start, last - rows.start),
                    slice(begin - columns.start, end - columns.start),
                    cut,
                    partial(tiles.will_need, r, c),
                )
            )
    return pieces


def _same(matrix: Any) -> Any:
    return matrix


def _part_of(tiles: TiledDesign, r: int, c: int, rows: tuple[int, int] | None, columns: tuple[int, int]) -> Any:
    tile = tiles.tile(r, c)
    begin, end = columns
    if (begin, end) != (0, tile.shape[1]):
        pointers = tile.indptr[begin : end + 1]
        entries = slice(int(pointers[0]), int(pointers[-1]))
        counts = np.diff(pointers)
        tile = make_columns(tile.shape[0], counts, tile.indices[entries], tile.data[entries])
    if rows is None:
        return tile
    every = np.unique(np.array([0, *rows, tile.shape[0]], dtype=np.int64))
    return cut_rows(tile, every)[int(np.searchsorted(every, rows[0]))]
