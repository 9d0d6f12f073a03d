"""The choice of alpha: scores of all folds, and which of them have to be known better before the choice is sure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from blockgreedy.estimators.folds import FoldPath

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Other scores may be this many times as far from exact ones as those that were solved again turned out to be.
_CAUTION = 3.0


class ScoreTable:
    """l1_ratios × alphas × folds. Greater is better; nan where a fold did not get to."""

    def __init__(self, paths: Sequence[FoldPath], n_ratios: int) -> None:
        n_folds = len(paths) // n_ratios
        shape = (n_ratios, n_folds, -1)
        self.scores, self.nonzeros, self.gaps = (
            np.array([getattr(path, name) for path in paths]).reshape(shape).transpose(0, 2, 1)
            for name in ("scores", "nonzeros", "gaps")
        )
        # Folds count by the weight of the rows that they predict, as if all rows were scored together.
        totals = np.array([path.fold.total for path in paths[:n_folds]])
        self.shares: Array = totals / np.sum(totals)
        self.mean: Array = self.scores @ self.shares
        spread = (self.scores - self.mean[..., None]) ** 2 @ self.shares
        self.error: Array = np.sqrt(spread / max(1, n_folds - 1))
        self.finished: Mask = np.isfinite(self.mean)
        self._ranked = np.where(self.finished, self.mean, -np.inf)

    @property
    def best(self) -> tuple[int, int]:
        """(l1_ratio, alpha) of the greatest mean."""
        ratio, alpha = np.unravel_index(int(np.argmax(self._ranked)), self.mean.shape)
        return int(ratio), int(alpha)

    @property
    def sparsest(self) -> tuple[int, int]:
        """(l1_ratio, alpha): the largest alpha within one standard error of the best."""
        ratio, alpha = self.best
        within = self._ranked[ratio] >= self.mean[ratio, alpha] - self.error[ratio, alpha]
        return ratio, int(np.argmax(within))

    def in_doubt(self, slack: Array) -> Mask:
        """Where changes of the means by up to ``slack`` could change the best, or the sparsest within its error."""
        slack = np.where(self.finished, slack, 0.0)
        doubt: Mask = self._ranked + slack >= np.max(self._ranked - slack)
        if np.sum(doubt) == 1:
            doubt[self.best] = False
        ratio, alpha = self.best
        above = self._ranked[ratio] - (self.mean[ratio, alpha] - self.error[ratio, alpha])
        reach = slack[ratio] + 2 * slack[ratio, alpha]  # the best score may change, and its error
        first = int(np.argmax(above >= reach)) if np.any(above >= reach) else len(above)
        doubt[ratio, :first] |= (above >= -reach)[:first]
        return doubt


def best_so_far(paths: Sequence[FoldPath], n_ratios: int) -> tuple[float, float] | None:
    """(score, alpha) of the greatest mean over the folds that have a score there; others are still under way."""
    n_folds = len(paths) // n_ratios
    found = None
    for k in range(0, len(paths), n_folds):
        scores = np.array([path.scores for path in paths[k : k + n_folds]])
        counts = np.sum(np.isfinite(scores), axis=0)
        if not np.any(counts):
            continue
        finished = int(np.sum(np.isfinite(scores[:, -1])))  # folds whose path has come to its end
        sums = np.nansum(scores, axis=0)
        means = np.divide(sums, counts, out=np.full(len(sums), -np.inf), where=counts >= max(1, finished))
        at = int(np.argmax(means))
        if found is None or means[at] > found[0]:
            found = float(means[at]), float(paths[k].alphas[at])
    return found


class Doubts:
    """Which alphas to solve again, by what solving again has changed so far.

    A gap g leaves predictions, and so scores, an error in proportion to √g; the factor is the largest seen.
    """

    def __init__(self, table: ScoreTable, selection: str) -> None:
        self.selection = selection
        self.times = np.zeros(table.mean.shape, dtype=int)  # that each was solved again
        self.factor = 0.0
        self._table = table

    def next(self) -> Mask:
        """Where to look closer: at what would be chosen now, and at what else may have to be."""
        wanted = self._table.in_doubt(_CAUTION * self.factor * self._roots())
        for chosen in (self._table.best, *([self._table.sparsest] if self.selection == "1se" else [])):
            wanted[chosen] |= self.times[chosen] == 0
        return wanted

    def of_each_path(self, wanted: Mask) -> list[tuple[Mask, NDArray[np.int_]]]:
        """What is wanted of each fold at each l1_ratio, and how often it was solved again before."""
        n_folds = len(self._table.shares)
        return [pair for pair in zip(wanted, self.times, strict=True) for _ in range(n_folds)]

    def learn(self, again: Mask, table: ScoreTable) -> None:
        change = np.abs(table.scores - self._table.scores)[again] @ table.shares
        roots = self._roots()[again]
        self.factor = max(self.factor, float(np.max(change[roots > 0] / roots[roots > 0], initial=0.0)))
        self.times += again
        self._table = table

    def _roots(self) -> Array:
        return np.asarray(np.sqrt(np.maximum(self._table.gaps, 0.0)) @ self._table.shares)
