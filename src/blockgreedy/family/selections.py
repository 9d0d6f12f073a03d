"""select: which blocks an iteration looks at. A rule is a function of the state that returns blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blockgreedy.base.validate import one_of, shown
from blockgreedy.family.proposals import SCORES, Score

if TYPE_CHECKING:
    from blockgreedy.family.state import State

Select = Callable[["State"], ArrayLike]


def uniform(state: State) -> list[int]:
    """``select(state)``: P of the B blocks, each as likely as any other: the paper's rule."""
    return state.draw(state.blocks_per_iter)


def every_block(state: State) -> NDArray[np.intp]:
    """``select(state)``: all blocks, in every iteration."""
    return np.arange(state.n_blocks)


def cyclic(state: State) -> NDArray[np.intp]:
    """``select(state)``: the next P blocks, from the first one again after the last."""
    first = state.iteration * state.blocks_per_iter
    return (first + np.arange(state.blocks_per_iter)) % state.n_blocks


def importance(weights: ArrayLike | Callable[[State], ArrayLike] | None = None) -> Select:
    """P different blocks, drawn one after the other with probabilities proportional to their weights.

    Parameters
    ----------
    weights : array of shape (n_blocks,) or function of the state, optional
        At least 0; blocks of weight 0 are never selected. A function is asked in every iteration. Default: the sum of
        the curvatures of a block's features.
    """

    def select(state: State) -> NDArray[np.intp]:
        asked: Any = weights(state) if callable(weights) else weights
        found = state.block_sum(state.curvature) if asked is None else np.asarray(asked, dtype=np.float64)
        if found.shape != (state.n_blocks,) or not np.all(np.isfinite(found)) or np.any(found < 0):
            raise ValueError(
                f"weights={shown(asked)} of importance must be {state.n_blocks} finite numbers of at least 0, one "
                "for each block"
            )
        count = min(state.blocks_per_iter, int(np.count_nonzero(found)))
        # The largest of log(weight) + Gumbel noise: the same as drawing without replacement (Efraimidis, Spirakis)
        with np.errstate(divide="ignore"):
            keys = np.log(found) + state.random.gumbel(size=state.n_blocks)
        return np.sort(np.argpartition(-keys, count - 1)[:count]) if count else np.zeros(0, dtype=np.intp)

    select.__name__ = "importance()"
    return select


def gauss_southwell(by: Score) -> Select:
    """The P blocks whose best features have the largest scores.

    Parameters
    ----------
    by : {"gain", "step", "subgradient"}
        The score: the decrease of the quadratic model (GS-q), the length of the step (GS-r) or the distance of 0 from
        the subdifferential (GS-s), as in Nutini et al., "Coordinate Descent Converges Faster with the Gauss-Southwell
        Rule Than Random Selection" (ICML 2015). The rules proper have blocks of one feature and P = 1, or one block
        and ``accept=best(by)``.
    """
    one_of("by", by, SCORES)

    def select(state: State) -> NDArray[np.intp]:
        scores = state.block_max(state.proposals().score(by))
        return np.sort(np.argsort(-scores, kind="stable")[: state.blocks_per_iter])

    select.__name__ = f"gauss_southwell({by!r})"
    return select


SELECTIONS: dict[str, Select] = {
    "uniform": uniform,
    "all": every_block,
    "cyclic": cyclic,
    "importance": importance(),
    "gauss-southwell-s": gauss_southwell("subgradient"),
    "gauss-southwell-r": gauss_southwell("step"),
    "gauss-southwell-q": gauss_southwell("gain"),
}
