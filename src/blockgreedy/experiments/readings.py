"""The readings of the paper's update: what its text leaves open, as settings that can be run.

Algorithm 1 adds the steps; the β of the text lacks the 1/n of its mean loss; and the sentence on the line search can
be read in two ways (docs/errata.md, points 8 and 25). Nobody knows which of them the paper's program had.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from blockgreedy.experiments import paper
from blockgreedy.experiments.results import Setting


@dataclass(frozen=True)
class Reading:
    part: str  # of the experiments, and its name on the page
    words: str  # what happens to the accepted steps
    setting: Setting  # the kind of blocks is set later

    def of(self, kind: str) -> Setting:
        return replace(self.setting, kind=kind)


_RULE = paper.GREEDY_RULE
ADDED = Reading(
    "figure 2",
    "all steps are added, made with the curvature of the mean loss (update='add')",
    Setting("", "add", greedy_rule=_RULE),
)
PRINTED = Reading(
    "printed step",
    "all steps are added, made with the β of the text, which lacks 1/n (step_scale='paper')",
    Setting("", "add", greedy_rule=_RULE, step_scale="paper"),
)
ALONE = Reading(
    "line search alone",
    "each step is refined by a line search of its own while all others stand still, then all are added "
    "(update='line-search')",
    Setting("", "line-search", greedy_rule=_RULE),
)
TOGETHER = Reading(
    "line search together",
    "the steps are refined against each other on shared predictions, one after the other, until they settle "
    "(update='sweep')",
    Setting("", "sweep", greedy_rule=_RULE),
)
CONCURRENT = Reading(
    "line search concurrent",
    "threads that do not wait refine their steps on predictions that the others are changing "
    "(update='line-search', asynchronous=True)",
    Setting("", "line-search", greedy_rule=_RULE, asynchronous=True),
)
GAIN = Reading(
    "greedy rule",
    "as in figure 2, but each block accepts the step of the largest guaranteed descent (greedy_rule='gain')",
    Setting("", "add", greedy_rule="gain"),
)
LINE_SEARCHES = (ALONE, TOGETHER, CONCURRENT)
ALL = (ADDED, PRINTED, *LINE_SEARCHES, GAIN)
