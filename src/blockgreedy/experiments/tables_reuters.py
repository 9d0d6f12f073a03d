"""The tables that stand beside the paper's Table 2: its Reuters in detail, and the readings of its text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

from blockgreedy.experiments import matching, paper, plan
from blockgreedy.experiments.claims_blocks import best_rate, iterations_per_second, measured_ratio, model_ratio
from blockgreedy.experiments.matching import BOTH, By
from blockgreedy.experiments.readings import Reading
from blockgreedy.experiments.results import Results, Run
from blockgreedy.experiments.sets import SetFacts, alpha_text
from blockgreedy.experiments.standing import KINDS, trouble
from blockgreedy.experiments.table import Table


def reuters_tables(results: Results) -> list[Table]:
    """By rank, and by value where that is another table."""
    facts = results.detail_set
    return [] if facts is None else [reuters_table(results, facts, by) for by in matching.matchings(facts)]


def reuters_table(results: Results, facts: SetFacts, by: By) -> Table:
    """The paper's detailed table with ours beside it."""
    theirs_of = {match.ours: match.theirs for match in matching.matches(facts, by)}
    rows = []
    for alpha in facts.alphas:
        runs = results.find(plan.FIGURE_2, facts.name, alpha)
        theirs = theirs_of.get(alpha)
        when = min((_model_end(run, facts) for run in runs if run.status != "reached"), default=math.nan)
        for run in runs:
            row = None if theirs is None else paper.REUTERS.get((theirs, run.setting.kind))
            numbers: list[Any] = list(astuple(row)) if row is not None else [None] * 6
            own = _interleaved(_reuters_row(run, when, facts.ns_per_nonzero), numbers)
            shown = None if theirs is None else alpha_text(theirs)
            rows.append([alpha_text(alpha), shown, run.setting.kind, *own, trouble(run, facts.f_zero)])
    head = ["alpha", "paper's", "blocks", "active blocks", "paper's"]
    head += ["iterations/s, wall clock", "iterations/s, 32-thread model", "paper's"]
    head += ["nonzeros, equal time", "paper's", "objective, equal time", "paper's"]
    head += ["nonzeros, 10K iterations", "paper's", "objective, 10K iterations", "paper's", "state"]
    note = (
        "32-thread model: the scan follows the blocks. Equal time is time of that model, where the shortest of the "
        "runs at an alpha ends; the paper's is 1,000 s of its machine. A run that is within 1e-6 of the optimum has "
        "stopped there. – : not measured, or fewer than 10,000 iterations in the time allowed. State: diverged above "
        "f(0), cycles without getting on, or nothing to say."
    )
    words = "rank" if len(matching.matchings(facts)) > 1 else "rank and value"
    how = f"alphas matched by {words if by == 'rank' else by}"
    caption = f"The paper's Table 2, all steps added: {facts.name} here, the paper's beside it, {how}"
    return Table("reuters" if by == "rank" else "reuters-by-value", caption, head, rows, note)


def _model_end(run: Run, facts: SetFacts) -> float:
    return float(run.clock("blocks", facts.ns_per_nonzero)[-1])


def _reuters_row(run: Run, when: float, ns: float) -> list[Any]:
    clock = run.clock("blocks", ns)
    return [
        run.trace.records[-1].active_blocks,
        iterations_per_second(run, "wall", ns),
        iterations_per_second(run, "blocks", ns),
        _whole(run.when(clock, when, "nonzeros")),
        run.when(clock, when),
        _whole(run.at_iteration(paper.ITERATIONS, "nonzeros")),
        run.at_iteration(paper.ITERATIONS),
    ]


def _whole(value: float) -> float | int:
    return value if math.isnan(value) else round(value)


def _interleaved(ours: list[Any], theirs: list[Any]) -> list[Any]:
    active, wall, model, *rest = ours
    cells = [active, theirs[0], wall, model, theirs[1]]
    for own, other in zip(rest, theirs[2:], strict=True):
        cells += [own, other]
    return cells


def readings_table(results: Results, which: Sequence[Reading]) -> Table:
    """Nonzeros and objective after 10,000 iterations, and the paper's by both matchings of alphas."""
    alone = len(which) == 1  # then nobody needs its name in every row
    facts = results.detail_set
    rows = []
    for reading in which if facts is not None else ():
        assert facts is not None
        theirs_of = {by: {match.ours: match.theirs for match in matching.matches(facts, by)} for by in BOTH}
        for alpha in facts.alphas:
            for kind in KINDS:
                run = results.one(reading.part, facts.name, alpha, kind)
                if run is None:
                    continue
                known = [paper.REUTERS.get((theirs_of[by].get(alpha, 0.0), kind)) for by in BOTH]
                last = min(paper.ITERATIONS, run.last_iteration)
                nonzeros = [None if row is None else row.nonzeros_in_iterations for row in known]
                objectives = [None if row is None else row.objective_in_iterations for row in known]
                state = trouble(run, facts.f_zero) or ("at the optimum" if run.status == "reached" else "")
                own = [
                    reading.part,
                    alpha_text(alpha),
                    kind,
                    last,
                    int(run.at_iteration(last, "nonzeros")),
                    *nonzeros,
                ]
                rows.append([*own, run.at_iteration(last), *objectives, state])
    head = ["reading", "alpha", "blocks", "iterations", "nonzeros", "nonzeros, paper's by rank"]
    head += [
        "nonzeros, paper's by value",
        "objective",
        "objective, paper's by rank",
        "objective, paper's by value",
        "state",
    ]
    set_name = facts.name if facts is not None else "no set"
    what = f"{which[0].part}, " if alone else ""
    caption = f"{what}after 10,000 iterations on {set_name}, beside the last two rows of the paper's Table 2"
    if alone:
        head, rows = head[1:], [row[1:] for row in rows]
    note = (
        "By rank: the paper's lambda_0 is compared with lambda_0 of this set, its second alpha with the second, and "
        "so on. By value: equal numbers. – : the paper's table has no such alpha. A run ends before 10,000 "
        "iterations at the optimum (to 1e-6), at its time limit, or when its objective is ten times f(0)."
    )
    return Table("table-2-readings", f"{caption[0].upper()}{caption[1:]}", head, rows, note)


def load_table(results: Results) -> Table:
    """The load imbalance as it was measured on the threads that there are, beside the model."""
    rows = []
    threads = max((run.n_threads for run in results.find(plan.LOAD)), default=1)
    for blocks in results.blocks:
        name, kind = blocks.set_name, blocks.kind
        rates = [best_rate(results, name, kind, n) for n in (1, threads)]
        if not math.isnan(rates[1]):
            ratios = [measured_ratio(results, name, kind, n) for n in (1, threads)]
            models = [model_ratio(results, name, kind, n) for n in (threads, paper.N_BLOCKS)]
            rows.append([name, kind, *rates, *ratios, ratios[1] / ratios[0], *models, blocks.load_ratio])
    head = ["set", "blocks", "iterations/s, 1 thread", f"iterations/s, {threads} threads"]
    head += ["random over this, 1 thread", f"random over this, {threads} threads", "slower by waiting"]
    head += [f"model, {threads} threads", "model, 32 threads", "nonzeros: heaviest / mean"]
    note = (
        "scan='blocks': a thread scans whole blocks, one after the other; columns are stored in the order of the "
        f"blocks. Measured on the wall clock, the best of {plan.LOAD_ROUNDS} rounds. Models: nonzeros of the busiest "
        "thread, random blocks as 1. Slower by waiting: the ratio on several threads over that on one, which is what "
        "the model predicts."
    )
    return Table("load", "Threads that scan whole blocks: how much slower than with random blocks", head, rows, note)
