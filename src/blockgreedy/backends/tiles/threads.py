"""Ranks that are threads of this process: for tests, and to try a grid on one machine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from blockgreedy.backends.tiles.communicator import Communicator, Reduction, Values

_REDUCE = {"sum": np.add, "max": np.maximum, "min": np.minimum}


class _Meeting:
    """Where the threads of a group leave what they bring, and find what the others brought."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.barrier = threading.Barrier(size)
        self.brought: list[Any] = [None] * size
        self.groups: dict[Any, _Meeting] = {}
        self.lock = threading.Lock()


class ThreadRank:
    """A rank that is a thread."""

    def __init__(self, meeting: _Meeting, rank: int) -> None:
        self._meeting, self.rank, self.size = meeting, rank, meeting.size

    def _meet(self, thing: Any) -> list[Any]:
        meeting = self._meeting
        meeting.brought[self.rank] = thing
        meeting.barrier.wait()
        found = list(meeting.brought)
        meeting.barrier.wait()
        return found

    def reduce(self, values: Values, how: Reduction = "sum") -> Values:
        found = self._meet(values)
        total = np.array(found[0])
        for other in found[1:]:
            _REDUCE[how](total, other, out=total)
        return total

    def gather(self, values: Values) -> list[Values]:
        return self._meet(values)

    def exchange(self, parts: Sequence[Values]) -> list[Values]:
        return [theirs[self.rank] for theirs in self._meet(list(parts))]

    def broadcast(self, thing: Any) -> Any:
        return self._meet(thing)[0]

    def split(self, color: int) -> Communicator:
        colors = self._meet(color)
        members = [rank for rank, other in enumerate(colors) if other == color]
        with self._meeting.lock:
            key = (tuple(members),)
            group = self._meeting.groups.setdefault(key, _Meeting(len(members)))
        self._meet(None)
        return ThreadRank(group, members.index(self.rank))


def run_in_threads(size: int, work: Callable[[Communicator], Any]) -> list[Any]:
    """``work`` on every rank of a group of threads; what each returned."""
    meeting = _Meeting(size)
    results: list[Any] = [None] * size
    errors: list[BaseException | None] = [None] * size

    def run(rank: int) -> None:
        try:
            results[rank] = work(ThreadRank(meeting, rank))
        except BaseException as error:  # raised again below, in the caller's thread
            errors[rank] = error
            for group in (meeting, *meeting.groups.values()):
                group.barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    real = [error for error in errors if error is not None and not isinstance(error, threading.BrokenBarrierError)]
    if real:
        raise real[0]
    return results
