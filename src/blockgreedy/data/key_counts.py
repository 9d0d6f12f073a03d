"""How often keys occur, for more keys than memory holds: sorted runs of them go to disk and are merged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from blockgreedy.data.store_files import HEADER, read_part, write_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PER_KEY = 64  # bytes in memory: key and count, and once more while they are sorted


class KeyCounts:
    """``name``: of the files, in ``folder``, which ``frequent`` removes."""

    def __init__(self, folder: Path, name: str, n_bytes: int) -> None:
        self.folder, self.name, self.most = folder, name, max(1, n_bytes // _PER_KEY)
        self._parts: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._held, self._merged_size, self._spilled = 0, 0, 0
        for left in folder.glob(f"{name}-*.npy"):  # of a process that was killed
            left.unlink()

    def add(self, keys: NDArray[np.int64]) -> None:
        found, counts = np.unique(keys, return_counts=True)
        self._parts.append((found, counts.astype(np.int64)))
        self._held += len(found)
        # merging when what is held has doubled keeps the work per key small
        if self._held > max(2 * self._merged_size, 1 << 16) or self._held > self.most:
            self._parts = [_added_up(self._parts)]
            self._held = self._merged_size = len(self._parts[0][0])
        if self._held > self.most // 2:
            self._spill()

    def _file(self, k: int, part: str) -> Path:
        return self.folder / f"{self.name}-{k:04}-{part}.npy"

    def _spill(self) -> None:
        keys, counts = _added_up(self._parts)
        write_array(self._file(self._spilled, "keys"), keys)
        write_array(self._file(self._spilled, "counts"), counts)
        self._spilled += 1
        self._parts, self._held, self._merged_size = [], 0, 0

    def frequent(self, least: int) -> NDArray[np.int64]:
        """The keys that occur so often, ascending."""
        if self._spilled and self._parts:
            self._spill()
        parts = self._runs() if self._spilled else iter([_added_up(self._parts)] if self._parts else [])
        kept = [keys[counts >= least] for keys, counts in parts]
        for k in range(self._spilled):
            self._file(k, "keys").unlink(missing_ok=True)
            self._file(k, "counts").unlink(missing_ok=True)
        return np.concatenate(kept) if kept else np.empty(0, dtype=np.int64)

    def _runs(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """All keys in ascending pieces: of each run what is not above the end of the shortest piece read."""
        sizes = [(self._file(k, "keys").stat().st_size - HEADER) // 8 for k in range(self._spilled)]
        at = [0] * self._spilled
        step = max(1, self.most // (2 * self._spilled))
        while any(done < size for done, size in zip(at, sizes, strict=True)):
            pieces = {}
            for k, (done, size) in enumerate(zip(at, sizes, strict=True)):
                if done < size:
                    end = min(done + step, size)
                    pieces[k] = [read_part(self._file(k, part), np.int64, done, end) for part in ("keys", "counts")]
            bound = min(int(keys[-1]) for keys, _ in pieces.values())
            taken = []
            for k, (keys, counts) in pieces.items():
                fit = int(np.searchsorted(keys, bound, side="right"))
                at[k] += fit
                taken.append((keys[:fit], counts[:fit]))
            yield _added_up(taken)


def _added_up(
    parts: list[tuple[NDArray[np.int64], NDArray[np.int64]]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    keys = np.concatenate([keys for keys, _ in parts])
    counts = np.concatenate([counts for _, counts in parts])
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.empty(0, np.intp)
    return keys[first], np.add.reduceat(counts, first) if len(first) else counts
