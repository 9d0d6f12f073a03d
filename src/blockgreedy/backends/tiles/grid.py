"""The grid of ranks: R row groups × C column groups, rank (r, c) holding the tile X_rc."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from blockgreedy.backends.tiles.communicator import Communicator, Reduction, Values


@dataclass
class Traffic:
    """What a rank has sent and received so far. A round is one operation that waits for others."""

    n_rounds: int = 0
    n_bytes: int = 0
    by_purpose: dict[str, list[int]] = field(default_factory=dict)  # rounds and bytes

    def add(self, purpose: str, n_bytes: int) -> None:
        self.n_rounds += 1
        self.n_bytes += n_bytes
        entry = self.by_purpose.setdefault(purpose, [0, 0])
        entry[0] += 1
        entry[1] += n_bytes


class Group:
    """Some ranks of the grid, and what this one's messages among them amount to."""

    def __init__(self, communicator: Communicator, traffic: Traffic) -> None:
        self._to, self._traffic = communicator, traffic
        self.rank, self.size = communicator.rank, communicator.size

    def _count(self, purpose: str, n_bytes: int) -> None:
        if self.size > 1:
            self._traffic.add(purpose, int(n_bytes))

    def reduce(self, values: Values, purpose: str, how: Reduction = "sum") -> Values:
        # an all-reduce sends and receives about twice the vector, whatever the number of ranks
        self._count(purpose, 2 * values.nbytes * (self.size - 1) // self.size)
        return self._to.reduce(values, how)

    def gather(self, values: Values, purpose: str) -> list[Values]:
        found = self._to.gather(values)
        self._count(purpose, sum(part.nbytes for part in found) - values.nbytes)
        return found

    def exchange(self, parts: Sequence[Values], purpose: str) -> list[Values]:
        found = self._to.exchange(parts)
        self._count(purpose, sum(part.nbytes for k, part in enumerate(found) if k != self.rank))
        return found

    def broadcast(self, thing: Any) -> Any:
        return self._to.broadcast(thing)


class Grid:
    """Ranks in row-major order: rank r·C + c is (r, c)."""

    def __init__(self, communicator: Communicator, n_row_groups: int, n_column_groups: int) -> None:
        if n_row_groups * n_column_groups != communicator.size:
            raise ValueError(
                f"a grid of {n_row_groups} × {n_column_groups} needs {n_row_groups * n_column_groups} ranks; "
                f"there are {communicator.size}"
            )
        self.shape = n_row_groups, n_column_groups
        self.row, self.column = divmod(communicator.rank, n_column_groups)
        self.traffic = Traffic()
        self.all = Group(communicator, self.traffic)
        self.beside = Group(communicator.split(self.row), self.traffic)  # the same rows, other columns
        self.above = Group(communicator.split(-1 - self.column), self.traffic)  # the same columns, other rows

    @property
    def leads(self) -> bool:
        return self.all.rank == 0


def cuts(n: int, parts: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Where to cut n things into even runs."""
    return np.arange(parts + 1, dtype=np.int64) * n // parts
