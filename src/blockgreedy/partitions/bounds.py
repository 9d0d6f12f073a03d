"""Bounds on numbers that the theory asks for: which side, proven or estimated, and where they come from."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Bound:
    """A bound on a number: at most (upper), at least (lower) or equal to (exact) ``value``.

    Attributes
    ----------
    name : str
        What is bounded, or by which argument.
    value : float
        The bound.
    side : {"upper", "lower", "exact"}
        On which side of the true number it lies.
    kind : {"certified", "estimate"}
        Whether it is proven, or made of a sample of the columns.
    how : str
        Where it comes from, in words.
    """

    name: str
    value: float
    side: Literal["upper", "lower", "exact"]
    kind: Literal["certified", "estimate"]
    how: str

    def __str__(self) -> str:
        sign = {"upper": "≤", "lower": "≥", "exact": "="}[self.side]
        return f"{sign} {self.value:.4g} ({self.kind}: {self.how})"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class RhoBlock:
    """What is known about rho_block; ``lower`` and ``upper`` are the best certified bounds.

    Attributes
    ----------
    n_blocks : int
        The number of blocks.
    bounds : tuple of Bound
        Everything that was computed.
    """

    n_blocks: int
    bounds: tuple[Bound, ...] = field(repr=False)

    @property
    def lower(self) -> Bound:
        return max(self._certified("lower", "exact"), key=lambda bound: bound.value)

    @property
    def upper(self) -> Bound:
        return min(self._certified("upper", "exact"), key=lambda bound: bound.value)

    @property
    def exact(self) -> Bound | None:
        return next((bound for bound in self.bounds if bound.side == "exact"), None)

    @property
    def estimate(self) -> Bound | None:
        """The least of the upper bounds that were only estimated, if there are any."""
        found = [bound for bound in self.bounds if bound.kind == "estimate"]
        return min(found, key=lambda bound: bound.value, default=None)

    def __getitem__(self, name: str) -> Bound:
        for bound in self.bounds:
            if bound.name == name:
                return bound
        raise KeyError(f"{name!r} is not among the bounds; there are {', '.join(b.name for b in self.bounds)}")

    def __str__(self) -> str:
        return "\n".join(f"rho_block {bound.name}: {bound}" for bound in self.bounds)

    def _certified(self, *sides: str) -> list[Bound]:
        return [bound for bound in self.bounds if bound.kind == "certified" and bound.side in sides]
