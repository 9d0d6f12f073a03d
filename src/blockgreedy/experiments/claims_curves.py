"""The paper's statements about the curves of Figures 2 and 3: their order, and who leads when."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from blockgreedy.experiments import matching, paper, plan
from blockgreedy.experiments.claims_blocks import rate_ratio
from blockgreedy.experiments.readings import Reading
from blockgreedy.experiments.results import DEFAULT, Results, Run, overtaking
from blockgreedy.experiments.sets import SetFacts, alpha_text
from blockgreedy.experiments.standing import (
    APART,
    KINDS,
    MOST,
    UNKNOWN,
    UNMEASURED,
    End,
    Pair,
    common_end,
    is_apart,
    leader,
    pair_of,
    share,
    standing_at_end,
    tally,
    trouble,
)
from blockgreedy.reports.page import Finding, Outcome

_ERROR = 0.1
_MODEL = "model of 32 threads, scan follows the blocks"


def solutions(results: Results) -> Finding:
    claim = "A larger alpha results in a greater objective and a sparser solution."
    held, total = 0, 0
    unproven = []
    for facts in results.sets:
        found = {alpha: _optimum(results, facts, alpha) for alpha in facts.alphas}
        known = [optimum for optimum in found.values() if optimum is not None]
        unproven += [f"{facts.name} {alpha_text(alpha)}" for alpha, optimum in found.items() if optimum is None]
        for larger, smaller in pairwise(known):
            total += 2
            held += (larger[0] > smaller[0]) + (larger[1] < smaller[1])
    if not total:
        return Finding(claim, UNMEASURED, "not measured")
    found_text = (
        f"Optimal objectives and nonzeros of neighbouring alphas in this order: {held} of {total} comparisons."
    )
    why = "By the default solver, whose optimum is proven."
    why += f" Left out, not proven in the time that there was: {', '.join(unproven)}." if unproven else ""
    return Finding(claim, found_text, share(held, total), why)


def _optimum(results: Results, facts: SetFacts, alpha: float) -> tuple[float, float] | None:
    """Objective and nonzeros of the solution; None if it is not proven to be one."""
    run = results.one(plan.FOLLOW_UP, facts.name, alpha, DEFAULT)
    if run is None or run.status != "converged":
        return None
    return run.trace.records[-1].objective, run.trace.records[-1].nonzeros


def order_of_objectives(results: Results) -> Finding:
    claim = (
        "Figure 2, upper plots: for each kind of blocks the four curves lie, top to bottom, in the order of "
        "decreasing alpha."
    )
    return _order(results, claim, "objective")


def order_of_nonzeros(results: Results) -> Finding:
    claim = "Figure 2, lower plots: the order of the curves is reversed, so that a smaller alpha has more nonzeros."
    return _order(results, claim, "nonzeros")


def _order(results: Results, claim: str, column: str) -> Finding:
    """Whether the four curves of a set and a kind are in order where the shortest of them ends."""
    whole: dict[str | None, list[bool]] = {None: [], "blocks": []}
    said, apart = [], []
    for facts in results.sets:
        for kind in KINDS:
            runs = [results.one(plan.FIGURE_2, facts.name, alpha, kind) for alpha in facts.alphas]
            four = [run for run in runs if run is not None]
            if len(four) < len(runs):
                continue
            troubled = [alpha_text(run.alpha) for run in four if trouble(run, facts.f_zero)]
            if troubled:
                apart.append(f"{facts.name} {kind} ({', '.join(troubled)})")
            for clock, held in whole.items():
                if clock is not None and math.isnan(facts.ns_per_nonzero):
                    continue
                values = _at_common_end(four, clock, facts.ns_per_nonzero, column)
                falls = np.diff(values) < 0 if column == "objective" else np.diff(values) > 0
                held.append(bool(falls.all()) and not troubled)
                if clock is None and not falls.all() and not troubled:
                    form = ".3g" if column == "objective" else ",.0f"
                    shown = ", ".join(format(value, form) for value in values)
                    said.append(f"{facts.name} {kind} ({shown})")
    if not whole[None]:
        return Finding(claim, UNMEASURED, "not measured")
    found = (
        f"Sets × kinds whose four curves are in this order where the shortest of them ends: {sum(whole[None])} of "
        f"{len(whole[None])} by iteration, {sum(whole['blocks'])} of {len(whole['blocks'])} in time ({_MODEL})."
    )
    why = f"Not in order by iteration, largest alpha first: {'; '.join(said)}. " if said else ""
    why += f"Counted apart, since curves among them diverged or cycle: {'; '.join(apart)}." if apart else ""
    cells = whole[None] + whole["blocks"]
    return Finding(claim, found, share(sum(cells), len(cells)), why.strip())


def _at_common_end(runs: list[Run], clock: str | None, ns_per_nonzero: float, column: str) -> list[float]:
    axes, end = common_end(runs, clock, ns_per_nonzero)
    return [run.when(axis, end, column) for run, axis in zip(runs, axes, strict=True)]


def across_sets(results: Results) -> Finding:
    claim = "On every set clustering converges slower in time at large alphas and faster at small ones (Figure 2)."
    by_rank: dict[int, list[str]] = {}
    for facts in results.sets:
        for k, alpha in enumerate(facts.alphas):
            pair = pair_of(results, plan.FIGURE_2, facts.name, alpha)
            standing = UNKNOWN if pair is None else standing_at_end(results, pair, "blocks")
            if standing != UNKNOWN:
                by_rank.setdefault(k, []).append(standing)
    if not by_rank:
        return Finding(claim, UNMEASURED, "not measured")
    found = f"At equal time ({_MODEL}), by rank: " + "; ".join(
        f"alpha {k + 1} of {len(results.sets[0].alphas)}: {tally(held)}" for k, held in by_rank.items()
    )
    large = [standing == "random ahead" for k in by_rank if k < 2 for standing in by_rank[k]]
    small = [standing == "clustered ahead" for k in by_rank if k >= 2 for standing in by_rank[k]]
    found += (
        f". As in the paper: {sum(large)} of {len(large)} cells at the two largest alphas, {sum(small)} of "
        f"{len(small)} at the two smallest."
    )
    cycling = _mean_rising(results, slice(0, 2))
    why = APART if any(is_apart(standing) for held in by_rank.values() for standing in held) else ""
    if cycling > 0.1:
        why += (
            f" Undamped steps with random blocks raised the objective in {100 * cycling:.0f} % of the recorded steps "
            f"at the two largest alphas and {100 * _mean_rising(results, slice(2, 4)):.0f} % at the two smallest: "
            "where they cycle, more iterations per second do not help."
        )
    return Finding(claim, found, share(sum(large) + sum(small), len(large) + len(small)), why.strip())


def per_iteration(results: Results, reading: Reading) -> Finding:
    claim = f"Per iteration clustering is ahead at the smaller alphas. Here: {reading.words}."
    places: dict[str, list[str]] = {"10 iterations": [], "30": [], "100": [], "the end of the shorter run": []}
    lost, kept, rising, sooner = [], [], [], []
    for facts in results.sets:
        for alpha in facts.alphas[2:]:
            pair = pair_of(results, reading.part, facts.name, alpha)
            if pair is None:
                continue
            end = min(run.last_iteration for run in pair)
            for name, iteration in zip(places, (10, 30, 100, end), strict=True):
                values = (pair[0].at_iteration(iteration), pair[1].at_iteration(iteration))
                if not any(math.isnan(run.at_iteration(iteration, "iteration")) for run in pair):  # both came there
                    places[name].append(leader(results, pair, values, (iteration, iteration)))
            cell = f"{facts.name} {alpha_text(alpha)}"
            kept += [cell] if places["the end of the shorter run"][-1:] == ["clustered ahead"] else []
            rising.append(pair[0].rising_share)
            needed = [results.first_below(run, _ERROR, run.trace["iteration"]) for run in pair]
            if not any(map(math.isnan, needed)):  # a run that never came there says nothing of who is sooner
                sooner.append(needed[1] < needed[0])
            when = overtaking(*_by_iteration(pair[0]), *_by_iteration(pair[1]), facts.f_zero)
            lost += [f"{cell} at iteration {when:,.0f}"] if when is not None else []
    if not rising:
        return Finding(claim, UNMEASURED, "not measured")
    found = "Sets × the two smallest alphas: " + "; ".join(
        f"at {name} {tally(held)}" for name, held in places.items() if held
    )
    found += "."
    if sooner:
        both = f"{len(sooner)} cells in which both reach an error of {_ERROR:g}"
        found += f" Of {both}, clustered is sooner in {sum(sooner)}."
    shares = [held.count("clustered ahead") / max(len(held), 1) for held in places.values()]
    outcome: Outcome = "agrees" if shares[-1] >= MOST else "in part" if max(shares) >= 0.5 else "differs"
    why = f"Ahead to the end: {', '.join(kept)}. " if kept else ""
    why += f"Random overtook clustered: {'; '.join(lost)}. " if lost else ""
    why += f"With random blocks the objective rose in {100 * float(np.mean(rising)):.0f} % of the recorded steps."
    if any(is_apart(standing) for held in places.values() for standing in held):
        why += f" {APART}"
    return Finding(claim, found, outcome, why)


def crossover(results: Results) -> Finding:
    claim = "On Reuters at 1e-5 clustering leads at first and is overtaken by random after about 250 s."
    detail = results.detail_set
    if detail is None:
        return Finding(claim, UNMEASURED, "not measured")
    said: list[str] = []
    outcomes: list[Outcome] = []
    for by in matching.matchings(detail):
        for match in matching.matches(detail, by, (paper.CROSSOVER_ALPHA,)):
            pair = pair_of(results, plan.FIGURE_2, detail.name, match.ours)
            if pair is not None:
                text, outcome = _crossing(results, detail, pair)
                said.append(f"By {by}{_also(detail)} at {alpha_text(match.ours)}: {text}")
                outcomes.append(outcome)
    if not said:
        return Finding(claim, "No run at this alpha was made.", "not measured")
    why = f"The paper's 250 s are those of its machine ({paper.MACHINE}); time here is that of the {_MODEL}."
    if len(outcomes) > 1:
        why += " The verdict is that by rank."
    return Finding(claim, " ".join(said), outcomes[0], why)


def _also(facts: SetFacts) -> str:
    return "" if len(matching.matchings(facts)) > 1 else " and value"


def _crossing(results: Results, facts: SetFacts, pair: Pair) -> tuple[str, Outcome]:
    """Whether random overtakes clustered, and whether that is what the paper saw."""
    end = End.of(pair, "blocks", facts.ns_per_nonzero)
    ahead = leader(results, pair, end.values, end.iterations)
    if ahead == UNKNOWN:
        return "the time per nonzero was not measured.", "not measured"
    numbers = f"random {end.values[0]:.4g}, clustered {end.values[1]:.4g}"
    if is_apart(ahead):
        return f"{ahead} by {end.where} ({numbers}), so nobody overtook anybody.", "differs"
    clocks = [run.clock("blocks", facts.ns_per_nonzero) for run in pair]
    curves = (clocks[0], pair[0].trace["objective"], clocks[1], pair[1].trace["objective"])
    when = overtaking(*curves, facts.f_zero)
    if when is not None:
        done = [np.searchsorted(clock, when, side="right") - 1 for clock in clocks]
        reached = [int(run.trace["iteration"][k]) for run, k in zip(pair, done, strict=True)]
        return f"overtaken at {when:.3g} s, random iteration {reached[0]:,}, clustered {reached[1]:,}.", "agrees"
    text = f"not seen, at {end.where} {ahead} ({numbers})"
    by_iteration = overtaking(*_by_iteration(pair[0]), *_by_iteration(pair[1]), facts.f_zero)
    if by_iteration is not None:
        return (
            f"{text}. Counted in iterations random overtakes clustered at iteration {by_iteration:,.0f}; in time "
            f"random does {rate_ratio(results, facts.name, 'blocks'):.0f} times the iterations.",
            "in part",
        )
    if overtaking(*curves) is not None:
        return (
            f"{text}; random stood above f(0) whenever it was behind: it came back, and overtook nobody.",
            "differs",
        )
    return f"{text}; the leader did not change while both ran.", "differs"


def _by_iteration(run: Run) -> tuple[np.ndarray, np.ndarray]:
    return run.trace["iteration"], run.trace["objective"]


def _mean_rising(results: Results, which: slice) -> float:
    shares = [
        run.rising_share
        for facts in results.sets
        for alpha in facts.alphas[which]
        for run in results.find(plan.FIGURE_2, facts.name, alpha, kind="random")
    ]
    return float(np.mean(shares)) if shares else math.nan
