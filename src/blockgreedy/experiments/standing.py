"""How runs stand to each other: who is ahead, and who cannot be because it diverged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from blockgreedy.experiments.results import Array, Results, Run
from blockgreedy.reports.page import Outcome

UNMEASURED = "No run of this experiment was made."
MOST = 0.75  # of the cells, for a claim to hold
_LEVEL = 0.01  # of f(0) − f*: closer than that nobody is ahead
_LEAST_RECORDS, _LEAST_ITERATIONS = 10, 100  # before a run may be said to cycle
_RISING = 0.25  # of the records in the second half of a run that cycles
_SWING = 1e-3  # of f(0): what a run that cycles goes up and down by, and does not gain

KINDS = ("random", "clustered")  # what the paper compares
Pair = tuple[Run, Run]
UNKNOWN = "not known"  # who is ahead, where a number is missing


def pair_of(results: Results, part: str, set_name: str, alpha: float) -> Pair | None:
    """The runs with random and with clustered blocks."""
    random, clustered = (results.one(part, set_name, alpha, kind) for kind in KINDS)
    return None if random is None or clustered is None else (random, clustered)


def trouble(run: Run, f_zero: float, upto: float = math.inf) -> str:
    """ "diverged" above f(0), "cycles" if it goes up and down without getting on, else ""; by this iteration.

    A run that ended as diverged may have been sound before, and one that arrived did not cycle.
    """
    iterations, values = run.trace["iteration"], run.trace["objective"]
    seen = iterations <= upto
    if not seen.any():
        return ""
    ended = seen.all()
    iterations, values = iterations[seen], values[seen]
    if (ended and run.status == "diverged") or not values[-1] <= f_zero * (1 + 1e-9):
        return "diverged"
    if run.status in ("reached", "converged"):
        return ""
    late = iterations > iterations[-1] / 2
    if iterations[-1] < _LEAST_ITERATIONS or np.count_nonzero(late) < _LEAST_RECORDS:
        return ""
    swings = values[late].max() - values[late].min() > _SWING * f_zero
    stays = values[late].min() > values[~late].min() - _SWING * f_zero
    return "cycles" if swings and stays and np.mean(np.diff(values[late]) > 0) >= _RISING else ""


def leader(results: Results, pair: Pair, values: tuple[float, float], places: tuple[float, float]) -> str:
    """Who is ahead with these objectives at these iterations, or who diverged or cycles, which is nobody's lead.

    Level if the two differ by less than a hundredth of f(0) − f*.
    """
    run = pair[0]
    f_zero = results.facts(run.set_name).f_zero
    apart = apart_of(pair, f_zero, places)
    if apart:
        return apart
    if any(map(math.isnan, values)):
        return UNKNOWN
    reach = f_zero - results.best_known(run.set_name, run.alpha)
    if not math.isnan(reach) and abs(values[0] - values[1]) <= _LEVEL * reach:
        return "level"
    return "random ahead" if values[0] < values[1] else "clustered ahead"


def apart_of(pair: Pair, f_zero: float, places: tuple[float, float] = (math.inf, math.inf)) -> str:
    """Which of the two diverged or cycles by these iterations; "" if neither does."""
    troubles = [trouble(own, f_zero, place) for own, place in zip(pair, places, strict=True)]
    if all(troubles):
        return "both diverged"
    return next((f"{kind} {word}" for kind, word in zip(KINDS, troubles, strict=True) if word), "")


def is_apart(standing: str) -> bool:
    """Whether the comparison says nothing, because a run diverged or cycles or a number is missing."""
    return standing.endswith(("diverged", "cycles", UNKNOWN))


@dataclass(frozen=True)
class End:
    """Two runs where the shorter of them ends."""

    values: tuple[float, float]
    iterations: tuple[float, float]
    where: str

    @classmethod
    def of(cls, pair: Pair, clock: str | None, ns_per_nonzero: float, column: str = "objective") -> End:
        """By one of the clocks, or (None) by iteration; a run that arrived stays where it was."""
        axes, end = common_end(pair, clock, ns_per_nonzero)
        found = [
            (run.when(axis, end, column), run.when(axis, end, "iteration"))
            for run, axis in zip(pair, axes, strict=True)
        ]
        where = f"{end:,.0f} iterations" if clock is None else f"{end:.3g} s"
        return cls((found[0][0], found[1][0]), (found[0][1], found[1][1]), where)


def common_end(runs: Sequence[Run], clock: str | None, ns_per_nonzero: float) -> tuple[list[Array], float]:
    """The runs' axes, by a clock or (None) by iteration, and where the first of them ends that had not arrived."""
    axes = [run.trace["iteration"] if clock is None else run.clock(clock, ns_per_nonzero) for run in runs]
    going = [axis[-1] for axis, run in zip(axes, runs, strict=True) if run.status not in ("reached", "converged")]
    return axes, float(min(going) if going else max(axis[-1] for axis in axes))


def standing_at_end(results: Results, pair: Pair, clock: str | None) -> str:
    end = End.of(pair, clock, results.facts(pair[0].set_name).ns_per_nonzero)
    return leader(results, pair, end.values, end.iterations)


def tally(standings: Iterable[str]) -> str:
    """Clustered blocks against random ones, cell by cell; what diverged or cycles is named and counted apart."""
    held = list(standings)
    text = (
        f"clustered is ahead in {held.count('clustered ahead')}, level in {held.count('level')}, behind in "
        f"{held.count('random ahead')} of {len(held)} cells"
    )
    words = [f"{standing} in {held.count(standing)}" for standing in dict.fromkeys(held) if is_apart(standing)]
    return f"{text} ({', '.join(words)}, counted apart)" if words else text


APART = "A run above f(0) has diverged; cells in which one of the two diverged or cycles never count as agreement."


def share(held: int, total: int) -> Outcome:
    if total == 0:
        return "not measured"
    return "agrees" if held >= MOST * total else "in part" if held > total / 4 else "differs"
