"""The project's one random generator, twin of ``cpp/base/random.hpp``.

SplitMix64: ``state += 0x9e3779b97f4a7c15`` and a mix of it is the next 64-bit word. ``below(m)`` is Lemire's
multiply-shift with rejection, exactly uniform. ``draw_subset`` is Floyd's algorithm. A seed gives the same
selections in both languages.
"""

from __future__ import annotations

_MASK = (1 << 64) - 1


class Random:
    def __init__(self, seed: int) -> None:
        self.state = seed & _MASK

    def next(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & _MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def below(self, m: int) -> int:
        """Uniform on 0 .. m-1."""
        product = self.next() * m
        while (product & _MASK) < ((1 << 64) - m) % m:
            product = self.next() * m
        return product >> 64

    def draw_subset(self, m: int, k: int) -> list[int]:
        """A uniform k-subset of 0 .. m-1, ascending. All of them costs no draw."""
        if k == m:
            return list(range(m))
        chosen: set[int] = set()
        for last in range(m - k, m):
            pick = self.below(last + 1)
            chosen.add(last if pick in chosen else pick)
        return sorted(chosen)
