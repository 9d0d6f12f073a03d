"""accept: which proposals are taken. A rule is a function of the state and the proposals that returns features."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blockgreedy.base.validate import one_of, whole
from blockgreedy.family.proposals import SCORES, Array, Features, Proposals, Score

if TYPE_CHECKING:
    from blockgreedy.family.state import State

Accept = Callable[["State", Proposals], ArrayLike]


def best(by: Score = "gain", per_block: int = 1) -> Accept:
    """The best proposals of each selected block that move at all; ties go to the lowest feature.

    Parameters
    ----------
    by : {"gain", "step", "subgradient"}, default "gain"
        What is compared: the guaranteed decrease, the length of the step (the paper's words), or the distance of 0
        from the subdifferential. In one block these are the Gauss-Southwell rules -q, -r and -s.
    per_block : int, default 1
        How many of each block.
    """
    one_of("by", by, SCORES)
    count = whole("per_block", per_block, 1)

    def accept(state: State, proposals: Proposals) -> Features:
        places = _best_places(proposals.score(by), proposals.blocks, count)
        return proposals.features[places]

    accept.__name__ = f"best({by!r}{f', per_block={count}' * (count > 1)})"
    return accept


def best_overall(count: int, by: Score = "gain") -> Accept:
    """The best proposals of all selected blocks together, in the order of the proposals.

    Parameters
    ----------
    count : int
        How many; fewer where fewer move.
    by : {"gain", "step", "subgradient"}, default "gain"
        What is compared, as in ``best``.
    """
    one_of("by", by, SCORES)
    most = whole("count", count, 1)

    def accept(state: State, proposals: Proposals) -> Features:
        score = proposals.score(by)
        order = np.argsort(-score, kind="stable")[:most]
        return proposals.features[np.sort(order[score[order] > 0])]

    accept.__name__ = f"best_overall({most}, {by!r})"
    return accept


def everything(state: State, proposals: Proposals) -> Features:
    """``accept(state, proposals)``: all that move; with blocks of one feature, what SCD and Shotgun accept."""
    return proposals.features[proposals.moves]


def _best_places(score: Array, blocks: NDArray[np.int32], per_block: int) -> NDArray[np.intp]:
    """Of each run of equal blocks the places of its largest scores above 0, the best first."""
    if len(score) == 0:
        return np.zeros(0, dtype=np.intp)
    starts = np.concatenate([[0], np.flatnonzero(np.diff(blocks)) + 1])
    if len(starts) == len(score):
        return np.flatnonzero(score > 0)
    if per_block == 1:
        largest = np.maximum.reduceat(score, starts)
        sizes = np.diff(starts, append=len(score))
        winners = np.flatnonzero((score == np.repeat(largest, sizes)) & (score > 0))
        run_of_winner = np.searchsorted(starts, winners, side="right")
        firsts: NDArray[np.intp] = winners[np.diff(run_of_winner, prepend=0) > 0]  # of equals in a block
        return firsts
    moving = np.flatnonzero(score > 0)
    run = np.searchsorted(starts, moving, side="right")
    order = np.lexsort((-score[moving], run))  # stable: ties stay in the order of the features
    rank = np.arange(len(order)) - np.searchsorted(run[order], run[order], side="left")
    places: NDArray[np.intp] = moving[order[rank < per_block]]
    return places


ACCEPTANCES: dict[str, Accept] = {
    "best": best(),
    "best-step": best("step"),
    "best-subgradient": best("subgradient"),
    "all": everything,
}
