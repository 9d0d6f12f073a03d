"""Collective operations made of messages between two ranks, for engines that carry nothing else."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from blockgreedy.backends.tiles.communicator import Communicator, Reduction, Values

_REDUCE = {"sum": np.add, "max": np.maximum, "min": np.minimum}
_SHORT = 1 << 16  # bytes of a vector that costs less to send whole, in one round, than in parts and back, in two
_FEW = 8  # ranks that send a short vector to all others at once; more of them double the groups that know a sum

Tag = tuple[Any, ...]


class Post(Protocol):
    """What carries messages. Ranks here are those of the whole gang."""

    def trade(self, tag: Tag, outgoing: Mapping[int, Values], incoming: Sequence[int]) -> dict[int, Values]:
        """Sends an array to each of some ranks and waits for what others send under the same tag.

        Ends in bounded time where one of them is lost, with an error that names it.
        """
        ...


class MessageRank:
    """A rank of a group. Sums are added up in an order that every rank knows, so they are the same bits on all."""

    def __init__(self, post: Post, members: Sequence[int], rank: int, group: Tag = ()) -> None:
        """``members``: the ranks of the whole gang that belong to the group; ``rank``: which of them this one is."""
        self._post, self._members, self._group = post, list(members), group
        self.rank, self.size = rank, len(self._members)
        self._n_rounds = 0

    def _trade(self, outgoing: Mapping[int, Values], incoming: Sequence[int]) -> dict[int, Values]:
        """A round among the ranks of this group, all of which count it, whether they have a part in it or not."""
        self._n_rounds += 1
        if not outgoing and not incoming:
            return {}
        members = self._members
        found = self._post.trade(
            (*self._group, self._n_rounds),
            {members[to]: np.ascontiguousarray(values) for to, values in outgoing.items()},
            [members[source] for source in incoming],
        )
        return {source: found[members[source]] for source in incoming}

    @property
    def _others(self) -> list[int]:
        return [rank for rank in range(self.size) if rank != self.rank]

    def reduce(self, values: Values, how: Reduction = "sum") -> Values:
        if self.size == 1:
            return values
        if values.nbytes > _SHORT and values.ndim == 1:
            return self._reduce_in_parts(values, how)
        return self._reduce_at_once(values, how) if self.size <= _FEW else self._reduce_by_doubling(values, how)

    def _reduce_at_once(self, values: Values, how: Reduction) -> Values:
        return self._combined(values, self._trade(dict.fromkeys(self._others, values), self._others), how)

    def _combined(self, own: Values, theirs: Mapping[int, Values], how: Reduction) -> Values:
        """In the order of the ranks."""
        total = np.array(own if self.rank == 0 else theirs[0])
        for rank in range(1, self.size):
            _REDUCE[how](total, own if rank == self.rank else theirs[rank], out=total)
        return total

    def _reduce_in_parts(self, values: Values, how: Reduction) -> Values:
        """Every rank adds up one part, which it then sends to all: two rounds, about twice the vector in bytes."""
        parts = np.array_split(values, self.size)
        theirs = self._trade({rank: parts[rank] for rank in self._others}, self._others)
        total = self._combined(parts[self.rank], theirs, how)
        return np.concatenate(self.gather(total))

    def _reduce_by_doubling(self, values: Values, how: Reduction) -> Values:
        """Pairs, then pairs of pairs. Both sides of a pair add the same two numbers, so groups agree to the bit."""
        even = 1 << (self.size.bit_length() - 1)  # ranks beyond it tell one of the others, and hear the result
        total, beyond = np.array(values), self.size - even
        if self.rank >= even:
            self._trade({self.rank - even: total}, [])
        else:
            for source, theirs in self._trade({}, [self.rank + even] if self.rank < beyond else []).items():
                assert source == self.rank + even
                _REDUCE[how](total, theirs, out=total)
        step = 1
        while step < even:
            partner = self.rank ^ step
            found = self._trade({partner: total}, [partner]) if self.rank < even else self._trade({}, [])
            if found:
                low, high = (total, found[partner]) if self.rank < partner else (found[partner], total)
                total = np.asarray(_REDUCE[how](low, high))
            step *= 2
        if self.rank >= even:
            return self._trade({}, [self.rank - even])[self.rank - even]
        self._trade({self.rank + even: total} if self.rank < beyond else {}, [])
        return total

    def gather(self, values: Values) -> list[Values]:
        found = self._trade(dict.fromkeys(self._others, values), self._others)
        return [values if rank == self.rank else found[rank] for rank in range(self.size)]

    def exchange(self, parts: Sequence[Values]) -> list[Values]:
        found = self._trade({rank: parts[rank] for rank in self._others}, self._others)
        return [parts[rank] if rank == self.rank else found[rank] for rank in range(self.size)]

    def broadcast(self, thing: Any) -> Any:
        """Down a tree: a rank hears from the one whose number lacks its highest bit."""
        if self.size == 1:
            return thing
        told = np.zeros(0, np.uint8)
        if self.rank == 0:
            told = np.frombuffer(pickle.dumps(thing, protocol=pickle.HIGHEST_PROTOCOL), dtype=np.uint8)
        n_levels = (self.size - 1).bit_length()
        for level in range(n_levels):
            half = 1 << level
            if self.rank < half:
                self._trade({self.rank + half: told} if self.rank + half < self.size else {}, [])
            elif self.rank < 2 * half:
                told = self._trade({}, [self.rank - half])[self.rank - half]
            else:
                self._trade({}, [])
        return thing if self.rank == 0 else pickle.loads(told.tobytes())

    def split(self, color: int) -> Communicator:
        colors = [int(part[0]) for part in self.gather(np.array([color], dtype=np.int64))]
        members = [rank for rank, other in enumerate(colors) if other == color]
        group = (*self._group, self._n_rounds, color)
        return MessageRank(self._post, [self._members[rank] for rank in members], members.index(self.rank), group)
