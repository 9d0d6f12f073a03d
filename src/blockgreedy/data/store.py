"""STORE: a matrix on disk in tiles that map into memory, with its labels and what is known of its columns.

big.store/
    meta.json                     what the store holds, and the size and checksum of every other file; written last
    y.npy                         labels, a number per row; sample_weight.npy, offset.npy where there are any
    tile-RRRR-CCCC.indptr.npy     row group R of column group C: where columns begin (int64), rows counted from the
    tile-RRRR-CCCC.indices.npy    first of the group (int32, ascending), values (float32 or float64, none 0)
    tile-RRRR-CCCC.data.npy
    statistics-CCCC.npy           of the columns of group C, over all rows
    features.npy                  which feature stands at each place, where columns are in another order
    names.npy, encoding.json, …   names of features
"""

from __future__ import annotations

import json
import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from blockgreedy.base.cached import cached_property
from blockgreedy.base.design import TiledDesign
from blockgreedy.base.memory import bytes_text, free
from blockgreedy.data.assembly import assembled
from blockgreedy.data.column_statistics import ColumnStatistics
from blockgreedy.data.dataset import Dataset
from blockgreedy.data.encoding import Encoding
from blockgreedy.data.feature_names import ENCODING, NAMES, read_encoding, read_names
from blockgreedy.data.store_files import (
    PARTS,
    TYPES,
    FileFacts,
    KnownFiles,
    check_file,
    leaves_tile,
    pointers_leave,
    rows_leave,
    statistics_file,
    tile_file,
)
from blockgreedy.data.store_meta import read_meta
from blockgreedy.problem.columns import assemble, chosen_columns
from blockgreedy.problem.passes import combine_some_columns, core_matrix

if TYPE_CHECKING:
    from numpy.typing import NDArray

STORE_SUFFIX = ".store"


class Store(TiledDesign):
    """A matrix on disk in tiles, which ``convert`` has made. Opening one reads ``meta.json`` alone.

    Parameters
    ----------
    path : str or Path
        The folder, ``NAME.store``.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.
    dtype : dtype
        float32 or float64: the type of the entries.
    n_entries : int
        Entries of all tiles; none of them is 0.
    row_cuts, column_cuts : ndarray of int64
        Row group r has the rows ``row_cuts[r]`` to ``row_cuts[r + 1] - 1``; column groups likewise.
    grid : tuple of int
        Row groups and column groups.
    labelled : bool
        False if what the store was made of had no labels; y is then all 0.
    index_base : int or None
        Of svmlight text: the index of its first feature, 0 or 1.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._meta = meta = read_meta(self.path)
        self._files: dict[str, FileFacts] = meta["files"]
        self._known = KnownFiles(self.path, self._files)
        self.shape: tuple[int, int] = tuple(meta["shape"])
        self.dtype = np.dtype(meta["dtype"])
        self.n_entries: int = meta["n_entries"]
        self.row_cuts = np.array(meta["row_cuts"], dtype=np.int64)
        self.column_cuts = np.array(meta["column_cuts"], dtype=np.int64)
        self._entries = np.array(meta["tile_entries"], dtype=np.int64).reshape(self.grid)
        self.name: str = meta["name"]
        self.labelled: bool = meta["labels"]["labelled"]
        self.target_name: str | None = meta["labels"]["name"]
        self.index_base: int | None = meta["index_base"]
        self.made_of: dict[str, Any] = meta["made_of"]

    def __repr__(self) -> str:
        (n, p), (rows, columns) = self.shape, self.grid
        size = f"{n:,} x {p:,}, {self.n_entries:,} entries, {self.dtype}"
        return f"Store({str(self.path)!r}, {size}, {rows} x {columns} tiles, {bytes_text(self.nbytes)})"

    @property
    def nbytes(self) -> int:
        """Of all files."""
        return sum(facts["bytes"] for facts in self._files.values())

    # ------------------------------------------------------------------------------------------- the matrix

    def tile(self, r: int, c: int) -> sparse.csc_array:
        """Row group r of column group c, mapped into memory: rows are read from disk when they are used.

        Columns are canonical: rows ascend, none occurs twice, no zero is stored. Rows count from the first of the
        group. Checksums are not compared: see ``sound_tile``.
        """
        r, c = self._place(r, c)
        n_rows, n_columns = self._tile_shape(r, c)
        n_entries = int(self._entries[r, c])
        lengths = {"indptr": n_columns + 1, "indices": n_entries, "data": n_entries}
        arrays = {
            part: self._known.array(tile_file(r, c, part), TYPES.get(part, self.dtype), (length,))
            for part, length in lengths.items()
        }
        made: sparse.csc_array = assemble(
            sparse.csc_array, arrays["data"], arrays["indices"], arrays["indptr"], (n_rows, n_columns)
        )
        made.has_sorted_indices = True
        made.has_canonical_format = True
        return made

    def some_columns(self, r: int, c: int, wanted: NDArray[np.integer[Any]]) -> Any:
        tile = self.tile(r, c)
        if not pointers_leave(tile, wanted):
            copy = chosen_columns(tile, wanted)
            if not rows_leave(copy.indices, tile.shape[0]):
                return copy
        raise self._damage(r, c)

    def _tile_for(self, r: int, c: int, wanted: NDArray[np.integer[Any]]) -> sparse.csc_array:
        """A tile of which these columns are read: refused where they name rows or entries that it does not have."""
        tile = self.tile(r, c)
        if leaves_tile(tile, wanted):
            raise self._damage(r, c)
        return tile

    def _damage(self, r: int, c: int) -> ValueError:
        self.check(r, c)
        return ValueError(f"{self.path} is damaged: columns of tile ({r}, {c}) have entries outside of it")

    def tile_entries(self, r: int, c: int) -> int:
        return int(self._entries[self._place(r, c)])

    def tile_bytes(self, r: int, c: int) -> int:
        """Of its three files, which is what it takes in memory."""
        r, c = self._place(r, c)
        return sum(self._known.facts_of(tile_file(r, c, part))["bytes"] for part in PARTS)

    def will_need(self, r: int, c: int) -> None:
        """Says that this tile is used soon: the system reads it from disk meanwhile."""
        r, c = self._place(r, c)
        if not hasattr(os, "posix_fadvise"):
            return
        for part in PARTS:
            # a file that is gone is an error of whoever reads it
            with suppress(OSError), (self.path / tile_file(r, c, part)).open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)

    @cached_property
    def features(self) -> NDArray[np.int32] | None:
        """The feature at each place of the columns; None where place j has feature j."""
        if "features.npy" not in self._files:
            return None
        return self._sound_array("features.npy", np.int32, (self.shape[1],))

    def statistics_of(self, c: int) -> ColumnStatistics:
        """Of the columns of group c, over all rows, mapped into memory."""
        _, c = self._place(0, c)
        width = int(self.column_cuts[c + 1] - self.column_cuts[c])
        shape = (width, len(ColumnStatistics._fields))
        return ColumnStatistics(*self._sound_array(statistics_file(c), np.float64, shape).T)

    @property
    def statistics(self) -> ColumnStatistics:
        """Of all columns, in the order in which they are stored: 48 bytes of memory for each."""
        groups = [self.statistics_of(c) for c in range(self.grid[1])]
        return ColumnStatistics(*(np.concatenate(parts) for parts in zip(*groups, strict=True)))

    def combine(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """X @ weights, a tile at a time; only columns whose weight is not 0 are read."""
        weights = np.asarray(weights, dtype=np.float64)
        if weights.shape != (self.shape[1],):
            raise ValueError(f"weights has shape {weights.shape}, expected ({self.shape[1]},): one for each feature")
        in_place = weights if self.features is None else weights[self.features]
        out = np.zeros(self.shape[0])
        for c in range(self.grid[1]):
            own = in_place[self.column_cuts[c] : self.column_cuts[c + 1]]
            used = np.flatnonzero(own)
            for r in range(self.grid[0] if len(used) else 0):
                rows = slice(self.row_cuts[r], self.row_cuts[r + 1])
                out[rows] += combine_some_columns(core_matrix(self._tile_for(r, c, used)), used, own[used])
        return out

    # ------------------------------------------------------------------------------------- rows and features

    @cached_property
    def y(self) -> NDArray[np.float64]:
        """A number per row, mapped into memory: the label, or its place among ``classes`` where these are text."""
        return self._sound_array("y.npy", np.float64, (self.shape[0],))

    @property
    def classes(self) -> NDArray[np.str_] | None:
        """The labels, ascending, if they are text."""
        classes = self._meta["labels"]["classes"]
        return None if classes is None else np.array(classes, dtype=np.str_)

    @property
    def labels(self) -> NDArray[Any]:
        """The labels as they were: numbers in their type, or text."""
        classes = self.classes
        if classes is not None:
            return np.asarray(classes[self.y.astype(np.int64)])
        return self.y.astype(self._meta["labels"]["dtype"])

    @cached_property
    def sample_weight(self) -> NDArray[np.float64] | None:
        return self._of_rows("sample_weight.npy")

    @cached_property
    def offset(self) -> NDArray[np.float64] | None:
        return self._of_rows("offset.npy")

    @cached_property
    def encoding(self) -> Encoding | None:
        """Of a table: how its columns became features."""
        return read_encoding(self.path, self._files) if ENCODING in self._files else None

    @property
    def feature_names(self) -> NDArray[np.str_] | None:
        """In the order of the features, whatever order they are stored in; made anew at every call."""
        if self.encoding is not None:
            return self.encoding.feature_names
        return read_names(self.path, self._files, self.shape[1]) if NAMES in self._files else None

    # ---------------------------------------------------------------------------------------------- as a whole

    def check(self, r: int | None = None, c: int | None = None) -> None:
        """Reads the files of a tile, or of the whole store, and compares their checksums.

        A damaged file is a ValueError that names it and says what to do.
        """
        if r is None and c is None:
            for name, facts in self._files.items():
                check_file(self.path / name, facts)
            return
        r, c = self._place(r, c)
        for part in PARTS:
            name = tile_file(r, c, part)
            check_file(self.path / name, self._known.facts_of(name))

    def check_once(self, r: int, c: int) -> None:
        for part in PARTS:
            self._known.compare_once(tile_file(*self._place(r, c), part))

    def check_statistics(self, c: int) -> None:
        self._known.compare_once(statistics_file(self._place(0, c)[1]))

    def check_unchanged(self) -> None:
        """Refuses a store of which a file has been written to, replaced or deleted since it was read."""
        self._known.check_unchanged()

    def checksum(self) -> int:
        """Of all files, from ``meta.json`` alone."""
        listed = sorted((name, facts["bytes"], facts["crc32"]) for name, facts in self._files.items())
        return zlib.crc32(json.dumps(listed).encode())

    def dataset(self) -> Dataset:
        """All of it in memory, the columns in the order of the features."""
        wanted = self.n_entries * (4 + self.dtype.itemsize) + 16 * self.shape[1]
        available = free()
        if available is not None and wanted > available:
            raise MemoryError(
                f"{self.path} takes {bytes_text(wanted)} in memory as one matrix, and {bytes_text(available)} are "
                "free; blockgreedy fit, solve and solve_path read it a tile at a time"
            )
        is_whole = self.grid == (1, 1) and self.features is None
        return Dataset(
            self.sound_tile(0, 0) if is_whole else assembled(self),
            self.labels,
            self.feature_names,
            name=self.name,
            index_base=self.index_base,
            encoding=self.encoding,
            labelled=self.labelled,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process, which may have another current folder, opens the store itself."""
        return Store, (self.path.absolute(),)

    def _place(self, r: Any, c: Any) -> tuple[int, int]:
        for name, value, end in (("r", r, self.grid[0]), ("c", c, self.grid[1])):
            if not isinstance(value, (int, np.integer)) or not 0 <= value < end:
                raise ValueError(f"{name}={value!r} must be a whole number from 0 to {end - 1}")
        return int(r), int(c)

    def _tile_shape(self, r: int, c: int) -> tuple[int, int]:
        rows, columns = self.row_cuts, self.column_cuts
        return int(rows[r + 1] - rows[r]), int(columns[c + 1] - columns[c])

    def _sound_array(self, name: str, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """Of a file whose checksum is compared when it is first asked for."""
        self._known.compare_once(name)
        return self._known.array(name, dtype, shape)

    def _of_rows(self, name: str) -> NDArray[np.float64] | None:
        return self._sound_array(name, np.float64, (self.shape[0],)) if name in self._files else None
