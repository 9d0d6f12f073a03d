"""The section on what the paper did not have: safe steps and the default solver."""

from __future__ import annotations

import math

import numpy as np

from blockgreedy.experiments import plan
from blockgreedy.experiments.pictures import errors_over_time, follow_up_map
from blockgreedy.experiments.results import DEFAULT, Results
from blockgreedy.experiments.table import put
from blockgreedy.experiments.tables import follow_up_table, gains, geometric_mean, means_table
from blockgreedy.reports.page import Section


def follow_up(section: Section, results: Results) -> None:
    runs = [run for run in results.find(plan.FOLLOW_UP) if run.setting.kind != DEFAULT]
    if not runs:
        section.text("Not measured.")
        return
    section.text(
        "The same sets and alphas with steps that cannot raise the objective (update='joint' and 'sweep'), 1, 4 or "
        "16 coordinates per block, and the default solver. All times are wall-clock times of this machine and "
        "include making the blocks. Each run ends at an error of 1e-4 or at its time limit."
    )
    section.bullets(follow_up_sentences(results))
    for error in (1e-2, 1e-3):
        put(section, means_table(results, error))
    maps = [follow_up_map(results, per_block, 1e-2) for per_block in plan.PER_BLOCK]
    part = section.section("Against the default solver")
    part.text(
        "Wall-clock time to an error of 1e-2, divided by that of the default solver: above 1 (red) means slower than "
        "the default solver; – means that one of the two did not reach this error."
    )
    part.figures(*[picture for picture in maps if picture is not None])
    put(part, follow_up_table(results), folded=True)
    best = "balanced" if "balanced" in results.kinds() else "random"
    part = section.section("Partitions, one coordinate per block")
    done = {(run.set_name, run.alpha) for run in runs}
    cells = [(facts, alpha) for facts in results.sets for alpha in facts.alphas if (facts.name, alpha) in done]
    part.figures(*(errors_over_time(results, facts, alpha, 1, best) for facts, alpha in cells))
    part = section.section(f"Several coordinates per block, {best} blocks")
    part.figures(*(errors_over_time(results, facts, alpha, None, best) for facts, alpha in cells))


def follow_up_sentences(results: Results) -> list[str]:
    """What the safe steps show, in numbers."""
    lines = []
    pairs = [("balanced", "random"), ("balanced", "clustered"), ("random", "clustered")]
    for kind, base in pairs:
        for clock, words in (("wall", "on the wall clock"), ("blocks", "by the model, scan follows the blocks")):
            ratios = [
                ratio
                for update in plan.SAFE_UPDATES
                for per_block in plan.PER_BLOCK
                for ratio in gains(results, kind, base, update, per_block, 1e-2, clock)
            ]
            if ratios:
                lines.append(
                    f"{kind.capitalize()} blocks compared with {base} blocks {words}: {geometric_mean(ratios):.2f} "
                    f"times as fast to an error of 1e-2 (geometric mean of {len(ratios)} pairs of runs; worst "
                    f"{min(ratios):.2f}, best {max(ratios):.1f})."
                )
    scans = []
    for run in results.find(plan.FOLLOW_UP, per_block=16):
        s = run.setting
        one = results.one(plan.FOLLOW_UP, run.set_name, run.alpha, s.kind, update=s.update, per_block=1)
        if one is not None:
            counts = [results.first_below(r, 1e-2, r.trace["iteration"]) for r in (one, run)]
            scans += [counts[0] / counts[1]] if min(counts) > 0 else []
    if scans:
        lines.append(
            f"16 coordinates per block instead of 1 need {geometric_mean(scans):.1f} times fewer scans to reach "
            f"an error of 1e-2 (geometric mean of {len(scans)} pairs of runs)."
        )
    best = []
    for default in results.find(plan.FOLLOW_UP, kind=DEFAULT):
        own = results.seconds_to(default, 1e-3)
        family = [
            results.seconds_to(run, 1e-3)
            for run in results.find(plan.FOLLOW_UP, default.set_name, default.alpha)
            if run.setting.kind != DEFAULT
        ]
        reached = [seconds for seconds in family if not math.isnan(seconds)]
        best += [min(reached) / own] if reached and own > 0 else []
    if best:
        slower = int(np.sum(np.array(best) > 1))
        lines.append(
            f"The default solver reaches an error of 1e-3 before the fastest block-greedy setting in {slower} of the "
            f"{len(best)} combinations of data set and alpha in which both reach it; that setting takes "
            f"{geometric_mean(best):.1f} times as long as the default solver (geometric mean)."
        )
    return lines
