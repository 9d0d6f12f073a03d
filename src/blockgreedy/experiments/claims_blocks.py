"""The paper's statements about its data and its blocks: lambda_0, active blocks, iterations per second, load."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from blockgreedy.experiments import matching, paper, plan
from blockgreedy.experiments.results import Results, Run
from blockgreedy.experiments.sets import SetFacts, alpha_text
from blockgreedy.experiments.standing import APART, UNMEASURED, apart_of, pair_of, share
from blockgreedy.reports.page import Finding, Outcome

_FEW = 0.5  # "few" active blocks: at most this part of what random blocks have
_LARGE = 10_000_000  # features
_RATE = 10.0  # "over ten times as many iterations per second"
_BUSY = 0.65  # of the threads: if random blocks gain less from them, the machine is busy with something else
_CLOSE = 0.2  # a measured ratio within this part of the modelled one confirms it
_EXPECTED = 0.1  # where the model expects less than this, there is no waiting to confirm


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
    if len(same) < len(named):
        why += " Where lambda_0 differs, alphas are compared by rank as well as by value."
    return Finding(claim, found, share(len(same), len(named)), why.strip())


def active_blocks(results: Results) -> Finding:
    claim = (
        "In the most regularised case clustering gathers the nonzero weights in few blocks (Reuters at its lambda_0 "
        "= 1e-4: 6 of 32 active, against 32 with random blocks)."
    )
    cells = [_active(results, facts, facts.lambda_0) for facts in results.sets]
    by_rank = [cell for cell in cells if cell is not None]
    if not by_rank:
        return Finding(claim, UNMEASURED, "not measured")
    cells = [_active(results, facts, own.lambda_0) for facts, own in _others_by_value(results)]
    by_value = [cell for cell in cells if cell is not None]
    found = f"By rank, at the lambda_0 of each set, active blocks at the end: {'; '.join(c.said for c in by_rank)}."
    found += f" By value: {'; '.join(c.said for c in by_value)}." if by_value else ""
    why = ""
    if any(cell.gathers is False for cell in by_rank):
        loads = {b.set_name: b.load_ratio for b in results.blocks if b.kind == "clustered"}
        shown = ", ".join(f"{name} {loads[name]:.1f}" for name in sorted(loads, key=lambda name: -loads[name]))
        why = f"Few where clusters are dense: heaviest clustered block over the mean, {shown}."
    why += f" {APART}" if any(cell.gathers is None for cell in by_rank) else ""
    return Finding(claim, found, share(sum(cell.gathers is True for cell in by_rank), len(by_rank)), why.strip())


@dataclass(frozen=True)
class _Active:
    """The active blocks of both kinds in words, and whether clustering leaves few of them.

    None if a run diverged or cycles: what it has in its blocks are no weights of a solution.
    """

    said: str
    gathers: bool | None


def _active(results: Results, facts: SetFacts, alpha: float) -> _Active | None:
    pair = pair_of(results, plan.FIGURE_2, facts.name, alpha)
    if pair is None:
        return None
    where, apart = f"{facts.name} at {alpha_text(alpha)}", apart_of(pair, facts.f_zero)
    if apart:
        return _Active(f"{where}: {apart}, not counted", None)
    random, clustered = (int(run.trace.records[-1].active_blocks) for run in pair)
    return _Active(f"{where}: clustered {clustered}, random {random}", clustered <= _FEW * random)


def _others_by_value(results: Results) -> list[tuple[SetFacts, paper.DataSet]]:
    """Sets of the paper whose lambda_0 is another one here."""
    named = [(facts, facts.in_paper) for facts in results.sets if len(matching.matchings(facts)) > 1]
    return [(facts, own) for facts, own in named if own is not None]


def iteration_rate(results: Results) -> Finding:
    claim = (
        "Random blocks get through over ten times as many iterations per second (153 against 12.9 at lambda_0, 136 "
        "against 12.3 at the third alpha)."
    )
    detail = results.detail_set
    ratios = {facts.name: rate_ratio(results, facts.name, "blocks") for facts in results.sets}
    ratios = {name: ratio for name, ratio in ratios.items() if not math.isnan(ratio)}
    if detail is None or detail.name not in ratios:
        return Finding(claim, UNMEASURED, "not measured")
    slices, wall = (rate_ratio(results, detail.name, clock) for clock in ("slices", "wall"))
    found = "Model of 32 threads whose scan follows the blocks, random over clustered, median over the alphas: "
    found += ", ".join(f"{name} {ratio:.1f}×" for name, ratio in ratios.items())
    found += (
        f". With equal slices {detail.name} has {slices:.2f}×, and on the wall clock of this machine, whose threads "
        f"scan equal slices, {wall:.2f}×."
    )
    own = ratios[detail.name]
    outcome: Outcome = "agrees" if own >= _RATE else "in part" if own >= _RATE / 3 else "differs"
    why = "The ratio is that of the heaviest blocks and does not depend on the alpha; it needs no stop watch."
    return Finding(claim, found, outcome, why)


def rate_ratio(results: Results, set_name: str, clock: str) -> float:
    """Iterations per second, random over clustered, median over the alphas."""
    facts = results.facts(set_name)
    ratios = []
    for alpha in facts.alphas:
        pair = pair_of(results, plan.FIGURE_2, set_name, alpha)
        if pair is not None:
            rates = [iterations_per_second(run, clock, facts.ns_per_nonzero) for run in pair]
            ratios += [rates[0] / rates[1]] if min(rates) > 0 else []
    return float(np.median(ratios)) if ratios else math.nan


def iterations_per_second(run: Run, clock: str, ns_per_nonzero: float) -> float:
    seconds = run.clock(clock, ns_per_nonzero)[-1]
    return run.last_iteration / seconds if seconds > 0 else math.nan


def measured_load(results: Results) -> Finding:
    claim = (
        "The work of a thread is linear in the nonzeros of its blocks, so the thread with the most of them is the "
        "bottleneck."
    )
    said, close, expected = [], [], []
    threads = max((run.n_threads for run in results.find(plan.LOAD)), default=0)
    for kind in [kind for kind in results.kinds() if kind != "random"]:
        own = []
        for facts in results.sets:
            measured, alone = (measured_ratio(results, facts.name, kind, n) for n in (threads, 1))
            model, wide = (model_ratio(results, facts.name, kind, n) for n in (threads, paper.N_BLOCKS))
            if not math.isnan(measured + alone + model):
                own.append(f"{facts.name} {measured / alone:.2f}× (model {model:.2f}×, of 32 threads {wide:.1f}×)")
                close.append(abs(measured / alone / model - 1) <= _CLOSE)
                if abs(model - 1) > _EXPECTED:  # elsewhere blocks that nobody waits for would be confirmed, too
                    expected.append(close[-1])
        said += [f"{kind} blocks: {', '.join(own)}"] if own else []
    if not said:
        return Finding(claim, UNMEASURED, "not measured")
    if threads == 1:
        return Finding(claim, "One thread has all blocks and waits for nobody.", "not measured")
    found = (
        f"Measured with scan='blocks' on {threads} threads: how many times slower than random blocks by waiting, "
        f"that is, more than on one thread. {'; '.join(said)}. Within {100 * _CLOSE:.0f} % of the model of {threads} "
        f"threads: {sum(close)} of {len(close)}, and {sum(expected)} of the {len(expected)} where the model expects "
        f"a difference of more than {100 * _EXPECTED:.0f} %; these decide."
    )
    why = (
        "On one thread nobody waits, and kinds differ by the time per nonzero only. Few threads share "
        f"{paper.N_BLOCKS} blocks, so most of the imbalance averages out: the factor for 32 threads is modelled, not "
        "measured."
    )
    speed_up = float(np.nanmedian([speed_up_of_random(results, facts.name, threads) for facts in results.sets]))
    if speed_up < _BUSY * threads:
        why = (
            f"With random blocks {threads} threads are only {speed_up:.2f} times as fast as one (median over sets): "
            f"other programs had part of this machine, and the measurement says little. {why}"
        )
        return Finding(claim, found, "not measured", why)
    if not expected:
        return Finding(claim, found, "not measured", why)
    return Finding(claim, found, share(sum(expected), len(expected)), why)


def speed_up_of_random(results: Results, set_name: str, n_threads: int) -> float:
    return best_rate(results, set_name, "random", n_threads) / best_rate(results, set_name, "random", 1)


def best_rate(results: Results, set_name: str, kind: str, n_threads: int) -> float:
    """Iterations per second on the wall clock, of the best round; nan if there is none."""
    runs = [run for run in results.find(plan.LOAD, set_name, kind=kind) if run.n_threads == n_threads]
    return max((iterations_per_second(run, "wall", 0.0) for run in runs), default=math.nan)


def measured_ratio(results: Results, set_name: str, kind: str, n_threads: int) -> float:
    """Iterations per second of random blocks over those of this kind."""
    random, own = (best_rate(results, set_name, name, n_threads) for name in ("random", kind))
    return random / own if own > 0 else math.nan


def model_ratio(results: Results, set_name: str, kind: str, n_threads: int) -> float:
    """The same by the nonzeros of the busiest thread."""
    own = {blocks.kind: blocks for blocks in results.blocks if blocks.set_name == set_name}
    if n_threads < 1 or "random" not in own or kind not in own:
        return math.nan
    return own[kind].busiest(n_threads) / own["random"].busiest(n_threads)


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
    return Finding(claim, f"Heaviest block over the mean: {found}.", share(worse, len(pairs)))


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
    outcome = share(quick, len(made))
    if outcome == "agrees" and largest < _LARGE:
        outcome = "in part"  # quick on what there is, but nothing of KDDA's size was tried
    return Finding(claim, f"Wall clock, {threads} threads: {found}.", outcome, why)
