"""What the tile solver asks of an engine that carries messages: collective operations among numbered ranks.

Every rank calls the same operations in the same order. Results are the same bits on every rank: decisions that
follow from them need no message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from numpy.typing import NDArray

Values = NDArray[Any]
Reduction = Literal["sum", "max", "min"]


class Communicator(Protocol):
    """A group of ranks that can talk to each other."""

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def reduce(self, values: Values, how: Reduction = "sum") -> Values:
        """The values of all ranks, combined entry by entry; the type stays."""
        ...

    def gather(self, values: Values) -> list[Values]:
        """The one-dimensional arrays of all ranks, which may differ in length."""
        ...

    def exchange(self, parts: Sequence[Values]) -> list[Values]:
        """``parts[k]`` goes to rank k; what the others sent to this one, in order of ranks."""
        ...

    def broadcast(self, thing: Any) -> Any:
        """What rank 0 hands in."""
        ...

    def split(self, color: int) -> Communicator:
        """The group of the ranks that named the same color, in the same order."""
        ...


class Alone:
    """The only rank."""

    rank, size = 0, 1

    def reduce(self, values: Values, how: Reduction = "sum") -> Values:
        return values

    def gather(self, values: Values) -> list[Values]:
        return [values]

    def exchange(self, parts: Sequence[Values]) -> list[Values]:
        return list(parts)

    def broadcast(self, thing: Any) -> Any:
        return thing

    def split(self, color: int) -> Communicator:
        return self
