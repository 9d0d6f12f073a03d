"""The paper's algorithms in the vocabulary of GenCD: which select and accept each of them is made of.

How many blocks there are, and how many an iteration selects, is in ``PRESETS`` of ``solvers/options.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

from blockgreedy.base.names import FamilyMethod
from blockgreedy.family.acceptances import ACCEPTANCES, Accept, everything
from blockgreedy.family.selections import Select, every_block, uniform


@dataclass(frozen=True)
class Preset:
    """What one of the paper's algorithms selects and accepts; ``PRESETS`` has one for each.

    Attributes
    ----------
    select : callable
        ``select(state)`` returns blocks.
    accept : callable
        ``accept(state, proposals)`` returns features.
    """

    select: Select
    accept: Accept


PRESETS: dict[FamilyMethod, Preset] = {
    "scd": Preset(uniform, everything),  # one feature, which is a block of its own
    "shotgun": Preset(uniform, everything),  # P features, each a block of its own
    "greedy": Preset(every_block, ACCEPTANCES["best"]),  # all features, in one block: the best of all
    "thread-greedy": Preset(every_block, ACCEPTANCES["best"]),  # the best of each block
    "block-greedy": Preset(uniform, ACCEPTANCES["best"]),  # the best of each of P blocks
}
