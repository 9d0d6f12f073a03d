"""Ranks of MPI (mpi4py)."""

from __future__ import annotations

import os
import socket
import traceback
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn

import numpy as np

from blockgreedy.backends.tiles.communicator import Communicator, Reduction, Values
from blockgreedy.backends.tiles.watch import Watch, current, say, watching
from blockgreedy.base.threads import own_cores, share_of_cores

_CHECKED = (1, 1_000, 100_000)  # lengths of all-reduces whose bits are compared: libraries choose by length


class MpiRank:
    """A communicator of mpi4py. Where all-reduces do not give all ranks the same bits, rank 0's are sent round."""

    def __init__(self, communicator: Any, are_equal: bool | None = None) -> None:
        self._to = communicator
        self.rank, self.size = int(communicator.Get_rank()), int(communicator.Get_size())
        self._are_equal = self._gives_equal_bits() if are_equal is None else are_equal

    def watched(self) -> AbstractContextManager[Watch]:
        """While this is entered on all ranks, none of them waits for one that is gone."""
        return watching(self._to)

    def abort(self, error: BaseException) -> NoReturn:
        """Ends all ranks: this one failed where the others may be waiting for it."""
        watch = current()
        if not isinstance(error, (ValueError, MemoryError, OSError)):
            traceback.print_exception(error)
        where = f"rank {self.rank} (process {os.getpid()} on {socket.gethostname()})"
        sentence = f"Error: {where} failed, so that the fit ends: {type(error).__name__}: {error}."
        if watch is not None:
            watch.abort(f"{sentence} {watch.remedy}")
        say(sentence)
        self._to.Abort(1)
        os._exit(1)

    def threads(self) -> int:
        """What this rank may use: the cores of its machine, divided among the ranks that may use them."""
        from mpi4py import MPI

        beside = self._to.Split_type(MPI.COMM_TYPE_SHARED)
        masks = beside.allgather(own_cores())
        beside.Free()
        return share_of_cores(masks)

    def _gives_equal_bits(self) -> bool:
        random = np.random.default_rng(self.rank)
        for n in _CHECKED:
            for dtype in (np.float32, np.float64):
                found = self._all_reduce(random.standard_normal(n).astype(dtype), "sum")
                if self._to.bcast(found.tobytes()) != found.tobytes():
                    differs = True
                    break
            else:
                continue
            break
        else:
            differs = False
        return not any(self._to.allgather(differs))

    def _all_reduce(self, values: Values, how: Reduction) -> Values:
        from mpi4py import MPI

        operation = {"sum": MPI.SUM, "max": MPI.MAX, "min": MPI.MIN}[how]
        values = np.ascontiguousarray(values)
        total = np.empty_like(values)
        self._to.Allreduce(values, total, op=operation)
        return total

    def reduce(self, values: Values, how: Reduction = "sum") -> Values:
        total = self._all_reduce(values, how)
        if not self._are_equal:
            self._to.Bcast(total)
        return total

    def gather(self, values: Values) -> list[Values]:
        values = np.ascontiguousarray(values)
        sizes = self._to.allgather(len(values))
        found = np.empty(sum(sizes), dtype=values.dtype)
        self._to.Allgatherv(values, [found, sizes])
        return np.split(found, np.cumsum(sizes)[:-1])

    def exchange(self, parts: Sequence[Values]) -> list[Values]:
        dtype = parts[0].dtype
        sizes = np.array([len(part) for part in parts], dtype=np.int64)
        coming = np.empty_like(sizes)
        self._to.Alltoall(sizes, coming)
        found = np.empty(int(coming.sum()), dtype=dtype)
        self._to.Alltoallv([np.concatenate(parts), sizes], [found, coming])
        return np.split(found, np.cumsum(coming)[:-1])

    def broadcast(self, thing: Any) -> Any:
        return self._to.bcast(thing)

    def split(self, color: int) -> Communicator:
        return MpiRank(self._to.Split(color % (2 * self.size + 2), self.rank), self._are_equal)
