"""The page: the paper's numbers beside ours, in the order of the paper, then what it did not have."""

from __future__ import annotations

import math

import numpy as np

from blockgreedy.experiments import paper, plan
from blockgreedy.experiments.pictures import (
    block_density,
    convergence,
    design_space,
    errors_over_time,
    follow_up_map,
)
from blockgreedy.experiments.results import DEFAULT, Results
from blockgreedy.experiments.sets import alpha_text
from blockgreedy.experiments.tables import (
    Table,
    blocks_table,
    data_table,
    design_table,
    follow_up_table,
    gains,
    geometric_mean,
    iterations_table,
    means_table,
    optimum_table,
    reuters_table,
)
from blockgreedy.experiments.verdicts import findings
from blockgreedy.reports.page import Page, Section

_TITLE = "Feature clustering for block-greedy coordinate descent, rerun"


def make_page(results: Results) -> Page:
    page = Page(_TITLE, _lead(results))
    if results.interrupted:
        page.section("Interrupted").text(
            "This run was interrupted. The page shows what had been measured by then; missing parts are marked as "
            "not measured."
        )
    if not results.sets:
        page.section("Nothing was run").bullets(results.remarks or ["No data set could be read."])
        return page
    _verdicts(page.section("What agrees with the paper"), results)
    _clocks(page.section("Two clocks"), results)
    _data(page.section("Data"), results)
    _design(page.section("The design space (Figure 1)"), results)
    _figure_2(page.section("Convergence (Figure 2)"), results)
    _reuters(page.section("Reuters in detail (Table 2, Figure 3)"), results)
    _follow_up(page.section("After the paper: safe steps and the default solver"), results)
    _about(page.section("How this was run"), results)
    return page


def _lead(results: Results) -> str:
    names = ", ".join(facts.name for facts in results.sets) or "no data"
    outcomes = [finding.outcome for finding in findings(results)] if results.sets else []
    counts = ", ".join(
        f"{outcomes.count(outcome)} {word}"
        for outcome, word in (
            ("agrees", "agree"),
            ("in part", "agree in part"),
            ("differs", "differ"),
            ("not measured", "were not measured"),
        )
        if outcome in outcomes
    )
    judged = f" Of {len(outcomes)} statements of the paper {counts}." if outcomes else ""
    return (
        "The experiments of Scherrer, Tewari, Halappanavar and Haglin (NIPS 2012), run again by blockgreedy "
        f"reproduce on {names}.{judged}"
    )


def _put(section: Section, table: Table, *, folded: bool = False) -> None:
    if table.rows:
        section.table(table.head, table.texts(), table.caption, table.note, folded=folded)
    else:
        section.text(f"{table.caption}: not measured.")


def _verdicts(section: Section, results: Results) -> None:
    section.text(
        "For each statement of the paper: what this run found, and whether the two agree. All verdicts are computed "
        "from the numbers of this run."
    )
    section.findings(findings(results))


def _clocks(section: Section, results: Results) -> None:
    threads = results.config.get("n_threads", "?")
    section.text(
        "This page has two kinds of time, and they are never mixed in one picture. Wall clock: measured on this "
        f"machine with {threads} threads, which scan equal parts of the nonzeros, whatever the blocks are. Model: "
        "the estimated time on 32 threads, one per block, as in the paper. It is the number of nonzeros that the "
        "busiest thread scans in each iteration, times the time per nonzero, measured here on one thread. The model "
        "leaves out memory bandwidth and synchronisation.",
        "The model has two variants. 'Scan follows the blocks': every thread scans its own block, and the iteration "
        "takes as long as the block with the most nonzeros, as in the paper's code. 'Equal slices': every thread "
        "scans 1/32 of the nonzeros.",
    )
    rows = [[facts.name, _or_dash(facts.ns_per_nonzero)] for facts in results.sets]
    section.table(["set", "ns per nonzero"], rows, "Time to scan one nonzero on one thread, measured in this run")


def _or_dash(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3g}"


def _data(section: Section, results: Results) -> None:
    how = "as they are in the files" if results.config.get("raw") else "scaled to unit norm (empty columns stay zero)"
    section.text(
        f"Logistic loss, columns {how}. lambda_0 is the largest power of ten below alpha_max, that is, the largest "
        "power of ten at which some weight is nonzero. It and the next three smaller powers of ten are the alphas, "
        "as in the paper."
    )
    _put(section, data_table(results))
    lines = []
    for facts in results.sets:
        own = facts.in_paper
        if facts.generated:
            lines.append(f"{facts.name} is generated: only its size and sparsity resemble the real set.")
        elif own is not None and not facts.is_the_papers:
            parts = [
                f"{ours / theirs:.2f} of its {word}"
                for ours, theirs, word in (
                    (facts.n_features, own.n_features, "features"),
                    (facts.n_samples, own.n_samples, "samples"),
                    (facts.nonzeros, own.nonzeros, "nonzeros"),
                )
            ]
            lines.append(f"{facts.name} stands in for the paper's {own.title}: it has {', '.join(parts)}.")
        elif own is None:
            lines.append(f"{facts.name} is not one of the paper's sets.")
    section.bullets(lines + results.remarks)
    _put(section, optimum_table(results))


def _design(section: Section, results: Results) -> None:
    runs = results.find(plan.DESIGN)
    if not runs:
        section.text("Not measured.")
        return
    facts = results.facts(runs[0].set_name)
    section.text(
        f"B blocks, of which P are updated in each iteration: {facts.name} at alpha {alpha_text(runs[0].alpha)}, "
        f"random blocks, until (f − f*)/(f(0) − f*) ≤ {plan.DESIGN_ERROR:g}. B = 1 is Greedy, B = p is SCD (P = 1) "
        "or Shotgun, P = B is Thread-Greedy (Thr.-Gr.). In the cells, k means thousands, m thousandths and µ "
        "millionths; darker cells have larger values."
    )
    for update in ("add", "joint"):
        made = [design_space(results, update, clock) for clock in (None, "wall", "blocks")]
        section.figures(*[picture for picture in made if picture is not None])
    reached = {
        update: sum(
            not math.isnan(results.first_below(run, plan.DESIGN_ERROR, run.trace["iteration"]))
            for run in results.find(plan.DESIGN, update=update)
        )
        for update in ("add", "joint")
    }
    section.text(
        "; ".join(
            f"update={update!r} reached this error in {n} of {len(results.find(plan.DESIGN, update=update))} settings"
            for update, n in reached.items()
        )
        + "."
    )
    _put(section, design_table(results), folded=True)


def _figure_2(section: Section, results: Results) -> None:
    if not results.find(plan.FIGURE_2):
        section.text("Not measured.")
        return
    own = "; balanced ones, ours, are teal" if "balanced" in results.kinds() else ""
    section.text(
        "Thread-greedy with 32 blocks, one coordinate per block, all steps added (update='add'). As in the paper "
        f"random blocks are black (white on a dark page) and clustered ones (Algorithm 2) red{own}. Steps that "
        "are added without damping may overshoot: the curve then stays level or goes up and down."
    )
    for clock, title in ((None, "By iteration"), ("blocks", "Model of 32 threads, scan follows the blocks")):
        part = section.section(title)
        _grid(part, results, plan.FIGURE_2, clock)
    part = section.section("Model of 32 threads, equal slices")
    part.text("The same runs if threads scan equal slices: every partition costs the same per iteration.")
    _grid(part, results, plan.FIGURE_2, "slices", ("objective",))
    part = section.section("Wall clock of this machine")
    part.text(f"{results.config.get('n_threads', '?')} threads.")
    _grid(part, results, plan.FIGURE_2, "wall")
    if results.find(plan.LINE_SEARCH):
        part = section.section("With a line search before the steps are added")
        part.text(
            "The paper's code refines each step by a line search of its own before all steps are added "
            "(update='line-search')."
        )
        _grid(part, results, plan.LINE_SEARCH, None, ("objective",))
    _put(section.section("Run by run"), iterations_table(results), folded=True)


def _grid(
    section: Section,
    results: Results,
    part: str,
    clock: str | None,
    columns: tuple[str, ...] = ("objective", "nonzeros"),
) -> None:
    shown = [facts for facts in results.sets if results.find(part, facts.name)]
    section.figures(*(convergence(results, facts, part, clock, column) for facts in shown for column in columns))


def _reuters(section: Section, results: Results) -> None:
    facts = results.detail_set
    assert facts is not None
    if not facts.is_the_papers:
        section.text(
            f"The paper's Reuters is RCV1; {facts.name} here has {facts.n_samples:,} samples and "
            f"{facts.n_features:,} features ({facts.origin}) and stands in for it. Differences between partitions "
            "can be compared with the paper's, objective values cannot."
        )
    _put(section, reuters_table(results))
    section.figures(
        *([block_density(results, facts.name)] if results.blocks else []),
        *(
            convergence(results, facts, plan.FIGURE_2, None, column)
            for column in ("objective", "nonzeros")
            if results.find(plan.FIGURE_2, facts.name)
        ),
    )
    _put(section, blocks_table(results))


def _follow_up(section: Section, results: Results) -> None:
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
        _put(section, means_table(results, error))
    maps = [follow_up_map(results, per_block, 1e-2) for per_block in plan.PER_BLOCK]
    part = section.section("Against the default solver")
    part.text(
        "Wall-clock time to an error of 1e-2, divided by that of the default solver: above 1 (red) means slower than "
        "the default solver; – means that one of the two did not reach this error."
    )
    part.figures(*[picture for picture in maps if picture is not None])
    _put(part, follow_up_table(results), folded=True)
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


def _about(section: Section, results: Results) -> None:
    config = results.config
    section.table(
        ["setting", "value"],
        [[name, str(value)] for name, value in config.items() if not isinstance(value, dict)],
        "Settings and machine (config.json has all)",
    )
    rows = [[part, f"{seconds:.1f} s"] for part, seconds in results.part_seconds.items()]
    if rows:
        section.table(["part", "wall clock"], rows, "Where the time of this run went")
    section.text(
        "Every run has a time limit; a curve that ends early reached that limit or the required accuracy. The "
        f"paper's machine had {paper.MACHINE}; its numbers are quoted from its tables."
    )
