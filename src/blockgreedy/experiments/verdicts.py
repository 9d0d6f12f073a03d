"""What agrees with the paper and what does not: every sentence is computed from the results."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from blockgreedy.experiments import paper, plan
from blockgreedy.experiments.results import Results, Run, overtaking
from blockgreedy.experiments.sets import alpha_text
from blockgreedy.reports.page import Finding, Outcome

_FEW = 0.5  # "few" active blocks: at most this part of what random blocks have
_MOST = 0.75  # of the cells, for a claim to hold
_ERROR = 0.1
_LEVEL = 0.01  # of f(0) − f*: closer than that nobody is ahead
_LARGE = 10_000_000  # features
_RATE = 10.0  # "over ten times as many iterations per second"

UNMEASURED = "No run of this experiment was made."


def findings(results: Results) -> list[Finding]:
    """The paper's claims in the order of its text."""
    claims: tuple[Callable[[Results], Finding], ...] = (
        first_alpha,
        active_blocks,
        iteration_rate,
        load,
        lambda r: per_iteration(r, plan.FIGURE_2),
        lambda r: per_iteration(r, plan.LINE_SEARCH),
        table_in_iterations,
        table_in_time,
        across_sets,
        nonzeros_of_random,
        crossover,
        clustering_time,
    )
    return [claim(results) for claim in claims]


def first_alpha(results: Results) -> Finding:
    claim = "lambda_0 is 1e-4 on every set but KDDA (1e-6)."
    named = [facts for facts in results.sets if facts.in_paper is not None]
    if not named:
        return Finding(claim, "None of the paper's sets was run.", "not measured")
    same = [facts for facts in named if facts.in_paper is not None and facts.lambda_0 == facts.in_paper.lambda_0]
    ours = [f"{facts.name} {alpha_text(facts.lambda_0)} (alpha_max {facts.alpha_max:.2g})" for facts in results.sets]
    found = f"Here: {'; '.join(ours)}."
    others = [facts.name for facts in named if not facts.is_the_papers]
    why = f"Not the paper's own files, by their size: {', '.join(others)}." if others else ""
    return Finding(claim, found, _share(len(same), len(named)), why)


def active_blocks(results: Results) -> Finding:
    claim = (
        "At the largest alphas clustering gathers the nonzero weights in few blocks (Reuters at 1e-4: 6 of 32 "
        "active, against 32 with random blocks)."
    )
    said, few = [], []
    for facts in results.sets:
        pairs = [(alpha, _pair(results, plan.FIGURE_2, facts.name, alpha)) for alpha in facts.alphas]
        for alpha, pair in pairs:
            if pair is None:
                continue
            spread, gathered = (int(run.trace.records[-1].active_blocks) for run in pair)
            if spread >= pair[0].setting.n_blocks / 2:  # with fewer there is hardly any weight to gather
                said.append(f"{facts.name} at {alpha_text(alpha)}: clustered {gathered}, random {spread}")
                few.append(gathered <= _FEW * spread)
                break
    if not said:
        return Finding(claim, UNMEASURED, "not measured")
    why = ""
    if few and not all(few):
        loads = {b.set_name: b.load_ratio for b in results.blocks if b.kind == "clustered"}
        shown = ", ".join(f"{name} {loads[name]:.1f}" for name in sorted(loads, key=lambda name: -loads[name]))
        why = f"Few where clusters are dense: heaviest clustered block over the mean, {shown}."
    found = "Active blocks at the end, at the largest alpha where random fills half of them: "
    return Finding(claim, f"{found}{'; '.join(said)}.", _share(sum(few), len(few)), why)


def iteration_rate(results: Results) -> Finding:
    claim = "Random blocks get through over ten times as many iterations per second (153 against 12.9)."
    detail = results.detail_set
    ratios = {facts.name: rate_ratio(results, facts.name, "blocks") for facts in results.sets}
    ratios = {name: ratio for name, ratio in ratios.items() if not math.isnan(ratio)}
    if detail is None or detail.name not in ratios:
        return Finding(claim, UNMEASURED, "not measured")
    slices, wall = (rate_ratio(results, detail.name, clock) for clock in ("slices", "wall"))
    found = "Model of 32 threads whose scan follows the blocks, random over clustered: "
    found += ", ".join(f"{name} {ratio:.1f}×" for name, ratio in ratios.items())
    found += (
        f". With equal slices {detail.name} has {slices:.2f}×, and on the wall clock of this machine, whose threads "
        f"scan equal slices, {wall:.2f}×."
    )
    own = ratios[detail.name]
    outcome: Outcome = "agrees" if own >= _RATE else "in part" if own >= _RATE / 3 else "differs"
    return Finding(claim, found, outcome, "The ratio is that of the heaviest blocks; it needs no stop watch.")


def rate_ratio(results: Results, set_name: str, clock: str) -> float:
    """Iterations per second, random over clustered, median over the alphas."""
    facts = results.facts(set_name)
    ratios = []
    for alpha in facts.alphas:
        pair = _pair(results, plan.FIGURE_2, set_name, alpha)
        if pair is not None:
            rates = [iterations_per_second(run, clock, facts.ns_per_nonzero) for run in pair]
            ratios += [rates[0] / rates[1]] if min(rates) > 0 else []
    return float(np.median(ratios)) if ratios else math.nan


def iterations_per_second(run: Run, clock: str, ns_per_nonzero: float) -> float:
    seconds = run.clock(clock, ns_per_nonzero)[-1]
    return run.last_iteration / seconds if seconds > 0 else math.nan


def load(results: Results) -> Finding:
    claim = "Blocks of equally many features are badly balanced in nonzeros when they are clustered (Figure 3a)."
    pairs = {}
    for facts in results.sets:
        own = {blocks.kind: blocks.load_ratio for blocks in results.blocks if blocks.set_name == facts.name}
        if "random" in own and "clustered" in own:
            pairs[facts.name] = own
    if not pairs:
        return Finding(claim, UNMEASURED, "not measured")
    found = "; ".join(
        f"{name}: {', '.join(f'{kind} {ratio:.2f}' for kind, ratio in own.items())}" for name, own in pairs.items()
    )
    worse = sum(own["clustered"] >= 3 * own["random"] for own in pairs.values())
    return Finding(claim, f"Heaviest block over the mean: {found}.", _share(worse, len(pairs)))


def per_iteration(results: Results, part: str) -> Finding:
    rule = "add" if part == plan.FIGURE_2 else "line-search"
    words = (
        "all steps added (Algorithm 1)"
        if rule == "add"
        else "a line search of each, then all added (the paper's code)"
    )
    claim = f"Per iteration clustering is ahead at the smaller alphas; here with update={rule!r}: {words}."
    places: dict[str, list[str]] = {"10 iterations": [], "30": [], "100": [], "the end of the shorter run": []}
    lost, kept, rising, sooner = [], [], [], []
    for facts in results.sets:
        for alpha in facts.alphas[2:]:
            pair = _pair(results, part, facts.name, alpha)
            if pair is None:
                continue
            end = min(run.last_iteration for run in pair)
            for name, iteration in zip(places, (10, 30, 100, end), strict=True):
                values = (pair[0].at_iteration(iteration), pair[1].at_iteration(iteration))
                if not any(map(math.isnan, values)):
                    places[name].append(leader(results, pair, values))
            if places["the end of the shorter run"][-1:] == ["clustered ahead"]:
                kept.append(f"{facts.name} {alpha_text(alpha)}")
            rising.append(pair[0].rising_share)
            needed = [results.first_below(run, _ERROR, run.trace["iteration"]) for run in pair]
            if not all(map(math.isnan, needed)):
                sooner.append(math.isnan(needed[0]) or needed[1] < needed[0])
            when = overtaking(*_by_iteration(pair[0]), *_by_iteration(pair[1]))
            if when is not None:
                lost.append(f"{facts.name} {alpha_text(alpha)} at iteration {when:,.0f}")
    if not rising:
        return Finding(claim, UNMEASURED, "not measured")
    found = "Sets × the two smallest alphas: " + "; ".join(
        f"at {name} clustered is ahead in {held.count('clustered ahead')}, level in {held.count('level')}, behind "
        f"in {held.count('random ahead')} of {len(held)} cells"
        for name, held in places.items()
        if held
    )
    found += "."
    if sooner:
        found += f" It is sooner at an error of {_ERROR:g} in {sum(sooner)} of {len(sooner)}."
    shares = [held.count("clustered ahead") / max(len(held), 1) for held in places.values()]
    outcome: Outcome = "agrees" if shares[-1] >= _MOST else "in part" if max(shares) >= 0.5 else "differs"
    why = f"Ahead to the end: {', '.join(kept)}. " if kept else ""
    why += f"Random overtook clustered: {'; '.join(lost)}. " if lost else ""
    why += f"With random blocks the objective rose in {100 * float(np.mean(rising)):.0f} % of the recorded steps."
    return Finding(claim, found, outcome, why)


def table_in_iterations(results: Results) -> Finding:
    claim = "Reuters after 10,000 iterations: clustered is ahead at all alphas but the largest (1e-4)."
    return _leaders(results, claim, in_time=False)


def table_in_time(results: Results) -> Finding:
    claim = "Reuters at equal time (1,000 s): random is ahead at 1e-4 and 1e-5, clustered at 1e-6."
    return _leaders(results, claim, in_time=True)


def _leaders(results: Results, claim: str, in_time: bool) -> Finding:
    """Who is ahead at the paper's three alphas, here and there."""
    detail = results.detail_set
    said, matches, errors = [], [], []
    for alpha in sorted({alpha for alpha, _ in paper.REUTERS}, reverse=True):
        pair = None if detail is None else _pair(results, plan.FIGURE_2, detail.name, alpha)
        if detail is None or pair is None:
            continue
        theirs = [paper.REUTERS[alpha, kind] for kind in ("random", "clustered")]
        numbers = [row.objective_in_time if in_time else row.objective_in_iterations for row in theirs]
        ours, where = common_end(pair, "blocks" if in_time else None, detail.ns_per_nonzero)
        ahead = leader(results, pair, ours)
        said.append(f"{alpha_text(alpha)} ({where}): random {ours[0]:.3g}, clustered {ours[1]:.3g}, {ahead}")
        matches.append(ahead == ("random ahead" if numbers[0] < numbers[1] else "clustered ahead"))
        best = results.best_known(detail.name, alpha)
        errors.append(max(ours) / best - 1)
    if detail is None or not said:
        return Finding(claim, "No run at the paper's alphas was made.", "not measured")
    clock = "by the model of 32 threads, scan follows the blocks" if in_time else "by iteration"
    found = f"{detail.name}, {clock}: {'; '.join(said)}. As in the paper: {sum(matches)} of {len(matches)}."
    why = "" if detail.is_the_papers else f"{_stand_in(detail.name)}, so objectives are not the paper's. "
    arrived = sum(error < 0.2 for error in errors)
    if arrived:
        why += f"In {arrived} of {len(errors)} cells both runs are by then within 20 % of the optimal objective."
    return Finding(claim, found, _share(sum(matches), len(matches)), why)


def leader(results: Results, pair: tuple[Run, Run], values: tuple[float, float]) -> str:
    """Who is ahead; level if the two differ by less than a hundredth of f(0) − f*."""
    run = pair[0]
    best = results.best_known(run.set_name, run.alpha)
    reach = results.facts(run.set_name).f_zero - best
    if not math.isnan(reach) and abs(values[0] - values[1]) <= _LEVEL * reach:
        return "level"
    return "random ahead" if values[0] < values[1] else "clustered ahead"


def common_end(
    pair: tuple[Run, Run], clock: str | None, ns_per_nonzero: float, column: str = "objective"
) -> tuple[tuple[float, float], str]:
    """Both objectives (or another column) where the shorter of two runs ends, and where that is.

    By one of the clocks, or (None) by iteration; a run that arrived stays where it was.
    """
    if clock is None:
        axes = [run.trace["iteration"] for run in pair]
    else:
        axes = [run.clock(clock, ns_per_nonzero) for run in pair]
    going = [axis[-1] for axis, run in zip(axes, pair, strict=True) if run.status not in ("reached", "converged")]
    end = min(going) if going else max(axis[-1] for axis in axes)
    values = [run.when(axis, end, column) for run, axis in zip(pair, axes, strict=True)]
    where = f"{end:,.0f} iterations" if clock is None else f"{end:.3g} s"
    return (values[0], values[1]), where


def across_sets(results: Results) -> Finding:
    claim = "On every set clustering converges slower in time at large alphas and faster at small ones."
    large, small = [], []
    for facts in results.sets:
        for k, alpha in enumerate(facts.alphas):
            pair = _pair(results, plan.FIGURE_2, facts.name, alpha)
            if pair is None:
                continue
            ahead = leader(results, pair, common_end(pair, "blocks", facts.ns_per_nonzero)[0])
            if k < 2:
                large.append(ahead == "random ahead")
            else:
                small.append(ahead == "clustered ahead")
    if not large and not small:
        return Finding(claim, UNMEASURED, "not measured")
    found = (
        f"At equal time by the model of 32 threads whose scan follows the blocks: random is ahead in {sum(large)} "
        f"of {len(large)} cells at the two largest alphas, clustered in {sum(small)} of {len(small)} at the two "
        "smallest."
    )
    cycling = _mean_rising(results, slice(0, 2))
    why = ""
    if cycling > 0.1:
        why = (
            f"Undamped steps with random blocks raised the objective in {100 * cycling:.0f} % of the recorded steps "
            f"at the two largest alphas and {100 * _mean_rising(results, slice(2, 4)):.0f} % at the two smallest: "
            "where they cycle, more iterations per second do not help."
        )
    return Finding(claim, found, _share(sum(large) + sum(small), len(large) + len(small)), why)


def nonzeros_of_random(results: Results) -> Finding:
    claim = (
        "After 10,000 iterations random blocks have far fewer nonzeros than clustered ones (74 to 110 against 203 "
        "to 19,919)."
    )
    detail = results.detail_set
    said, fewer = [], []
    if detail is None:
        return Finding(claim, UNMEASURED, "not measured")
    for alpha in detail.alphas:
        pair = _pair(results, plan.FIGURE_2, detail.name, alpha)
        if pair is None:
            continue
        counts, where = common_end(pair, None, detail.ns_per_nonzero, "nonzeros")
        said.append(f"{alpha_text(alpha)} ({where}): random {counts[0]:,.0f}, clustered {counts[1]:,.0f}")
        fewer.append(counts[0] <= _FEW * counts[1])
    if not said:
        return Finding(claim, UNMEASURED, "not measured")
    return Finding(claim, f"{detail.name} at {'; '.join(said)}.", _share(sum(fewer), len(fewer)))


def crossover(results: Results) -> Finding:
    claim = "On Reuters at 1e-5 clustering leads at first and is overtaken by random after about 250 s."
    detail = results.detail_set
    pair = None if detail is None else _pair(results, plan.FIGURE_2, detail.name, paper.CROSSOVER_ALPHA)
    if detail is None or pair is None:
        return Finding(claim, "No run at 1e-5 was made.", "not measured")
    clocks = [run.clock("blocks", detail.ns_per_nonzero) for run in pair]
    values = [run.trace["objective"] for run in pair]
    when = overtaking(clocks[0], values[0], clocks[1], values[1])
    name = "model of 32 threads, scan follows the blocks"
    if when is not None:
        done = [np.searchsorted(clock, when, side="right") - 1 for clock in clocks]
        reached = [int(run.trace["iteration"][k]) for run, k in zip(pair, done, strict=True)]
        found = f"Overtaken at {when:.3g} s ({name}): random iteration {reached[0]:,}, clustered {reached[1]:,}."
        return Finding(claim, found, "agrees", f"The paper's 250 s are those of its machine ({paper.MACHINE}).")
    (random, clustered), where = common_end(pair, "blocks", detail.ns_per_nonzero)
    ahead = "random" if random < clustered else "clustered"
    found = f"Not seen: at {where} ({name}) {ahead} is ahead, {min(random, clustered):.4g} against "
    found += f"{max(random, clustered):.4g}"
    by_iteration = overtaking(*_by_iteration(pair[0]), *_by_iteration(pair[1]))
    if by_iteration is not None:
        return Finding(
            claim,
            f"{found}. Counted in iterations random overtakes clustered at iteration {by_iteration:,.0f}.",
            "in part",
            f"In time {ahead} leads where the shorter run ends, since random blocks do "
            f"{rate_ratio(results, detail.name, 'blocks'):.0f} times the iterations per second.",
        )
    return Finding(claim, f"{found}.", "differs", f"The leader did not change while both ran, and {ahead} led.")


def clustering_time(results: Results) -> Finding:
    claim = "Clustering takes less than three seconds even on KDDA (20 million features)."
    made = [blocks for blocks in results.blocks if blocks.kind == "clustered"]
    if not made:
        return Finding(claim, UNMEASURED, "not measured")
    found = ", ".join(f"{b.set_name} {b.seconds:.2f} s" for b in made)
    quick = sum(blocks.seconds < paper.CLUSTERING_SECONDS for blocks in made)
    largest = max(results.facts(blocks.set_name).n_features for blocks in made)
    why = f"The largest set of this run has {largest:,} features."
    threads = results.config.get("n_threads", "?")
    outcome = _share(quick, len(made))
    if outcome == "agrees" and largest < _LARGE:
        outcome = "in part"  # quick on what there is, but nothing of KDDA's size was tried
    return Finding(claim, f"Wall clock, {threads} threads: {found}.", outcome, why)


def _pair(results: Results, part: str, set_name: str, alpha: float) -> tuple[Run, Run] | None:
    """The runs with random and with clustered blocks."""
    random = results.one(part, set_name, alpha, "random")
    clustered = results.one(part, set_name, alpha, "clustered")
    return None if random is None or clustered is None else (random, clustered)


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


def _stand_in(name: str) -> str:
    return f"The set {name!r} here does not have the size of the paper's and stands in for it"


def _share(held: int, total: int) -> Outcome:
    if total == 0:
        return "not measured"
    return "agrees" if held >= _MOST * total else "in part" if held > total / 4 else "differs"
