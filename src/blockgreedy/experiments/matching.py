"""Which alpha of ours an alpha of the paper is compared with: the one of its rank, or the one of its value.

The paper chooses its alphas by rank: lambda_0 is the largest power of ten with any nonzero weight, and the next three
follow. On other data lambda_0 is another number, so 1e-4 there may be the first alpha and here the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from blockgreedy.experiments import paper
from blockgreedy.experiments.sets import SetFacts, alpha_text

By = Literal["rank", "value"]
BOTH: tuple[By, ...] = ("rank", "value")


@dataclass(frozen=True)
class Match:
    rank: int  # of the paper's alpha: 0 is lambda_0
    theirs: float
    ours: float


def rank_of(facts: SetFacts, theirs: float) -> int:
    """Which of the paper's alphas of this set it is; a set that the paper does not have stands in for its Reuters."""
    own = facts.in_paper or paper.SETS["reuters"]
    return _exponent(own.lambda_0) - _exponent(theirs)


def matches(facts: SetFacts, by: By, theirs: Sequence[float] = paper.TABLE_ALPHAS) -> list[Match]:
    """Those of the paper's alphas that have one of ours."""
    found = []
    for alpha in theirs:
        rank = rank_of(facts, alpha)
        if by == "rank" and 0 <= rank < len(facts.alphas):
            found.append(Match(rank, alpha, facts.alphas[rank]))
        elif by == "value" and alpha in facts.alphas:
            found.append(Match(rank, alpha, alpha))
    return found


def matchings(facts: SetFacts) -> tuple[By, ...]:
    """Both, or only the first where they are the same."""
    return BOTH[:1] if matches(facts, "rank") == matches(facts, "value") else BOTH


def heading(facts: SetFacts, by: By) -> str:
    """How a sentence about this matching begins."""
    if len(matchings(facts)) == 1:
        return "By rank, which is also by value"
    if by == "value":
        return "By value"
    first = rank_of(facts, paper.TABLE_ALPHAS[0])
    ours = facts.alphas[first] if 0 <= first < len(facts.alphas) else facts.lambda_0
    return f"By rank (the paper's {alpha_text(paper.TABLE_ALPHAS[0])} is {alpha_text(ours)} here)"


def _exponent(alpha: float) -> int:
    return int(alpha_text(alpha).partition("e")[2])
