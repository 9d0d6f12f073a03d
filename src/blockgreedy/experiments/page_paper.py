"""The sections on the paper's own experiments: its figures, its Reuters table, the readings of its text."""

from __future__ import annotations

import math

from blockgreedy.experiments import paper, plan, readings
from blockgreedy.experiments.matching import heading, matchings
from blockgreedy.experiments.pictures import block_density, convergence, design_space
from blockgreedy.experiments.results import Results
from blockgreedy.experiments.sets import alpha_text
from blockgreedy.experiments.table import put
from blockgreedy.experiments.table_2 import compare, counts, judgement
from blockgreedy.experiments.tables import blocks_table, design_table, iterations_table
from blockgreedy.experiments.tables_reuters import load_table, readings_table, reuters_tables
from blockgreedy.reports.page import Section


def design(section: Section, results: Results) -> None:
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
    put(section, design_table(results), folded=True)


def figure_2(section: Section, results: Results) -> None:
    if not results.find(plan.FIGURE_2):
        section.text("Not measured.")
        return
    own = "; balanced ones, ours, are teal" if "balanced" in results.kinds() else ""
    section.text(
        "Thread-greedy with 32 blocks; each accepts the largest step (greedy_rule='step', the paper's words), and "
        "all steps are added (update='add'). As in the paper random blocks are black (white on a dark page) and "
        f"clustered ones (Algorithm 2) red{own}. Steps that are added without damping may overshoot: the curve then "
        "stays level, goes up and down, or rises above f(0)."
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
    put(section.section("Run by run"), iterations_table(results), folded=True)


def _grid(
    section: Section,
    results: Results,
    part: str,
    clock: str | None,
    columns: tuple[str, ...] = ("objective", "nonzeros"),
) -> None:
    shown = [facts for facts in results.sets if results.find(part, facts.name)]
    section.figures(*(convergence(results, facts, part, clock, column) for facts in shown for column in columns))


def reuters(section: Section, results: Results) -> None:
    facts = results.detail_set
    assert facts is not None
    if not facts.is_the_papers:
        section.text(
            f"The paper's Reuters is RCV1; {facts.name} here has {facts.n_samples:,} samples and "
            f"{facts.n_features:,} features ({facts.origin}) and stands in for it. Differences between partitions "
            "can be compared with the paper's; objective values only roughly, although f(0) is the same."
        )
    ranked = len(matchings(facts)) > 1
    section.text(
        "The paper chose its alphas by rank: lambda_0, the largest power of ten with any nonzero weight, and the "
        f"next three. On {facts.name} lambda_0 is {alpha_text(facts.lambda_0)}"
        + (
            f", on the paper's Reuters {alpha_text(paper.SETS['reuters'].lambda_0)}; so its numbers are shown beside "
            "ours twice, matched by rank and by value."
            if ranked
            else ", as in the paper, so that rank and value are the same."
        )
    )
    for table in reuters_tables(results):
        put(section, table)
    section.figures(
        *([block_density(results, facts.name)] if results.blocks else []),
        *(
            convergence(results, facts, plan.FIGURE_2, None, column)
            for column in ("objective", "nonzeros")
            if results.find(plan.FIGURE_2, facts.name)
        ),
    )
    put(section, blocks_table(results))
    if results.find(plan.LOAD):
        part = section.section("Load imbalance, measured")
        part.text(
            "The paper's threads own blocks and wait for the heaviest one. The model of 32 threads says what that "
            "costs; here the threads of this machine scan whole blocks too (scan='blocks'), and the measured ratios "
            "stand beside what the model says for as many threads."
        )
        put(part, load_table(results))


def step_scale(section: Section, results: Results) -> None:
    """Table 2 with the step of the paper's text."""
    if not results.find(readings.PRINTED.part):
        section.text("Not measured.")
        return
    section.text(
        "The paper's objective has a mean loss (Equation 1), but the β of its bound lacks the 1/n. Taken literally, "
        "on columns of norm 1, its steps are n times shorter than those of Figure 2 above (step_scale='paper')."
    )
    section.bullets(_judged(results, readings.PRINTED))
    put(section, readings_table(results, (readings.PRINTED,)))
    _grid(section, results, readings.PRINTED.part, None)


def line_search(section: Section, results: Results) -> None:
    """The sentence on the line search, read in two ways."""
    if not any(results.find(reading.part) for reading in readings.LINE_SEARCHES):
        section.text("Not measured.")
        return
    section.text(
        f"The paper says of its implementation: “{paper.LINE_SEARCH}” This can be read in two ways, and no line "
        "search occurs in Algorithm 1 or in the theory. (a) Every step is refined alone, while the others stand "
        "still, and then all are added. (b) The steps are refined on shared predictions that already contain those "
        "of the others; it is run one step after the other, and concurrently by the threads of this machine."
    )
    for reading, letter in zip(readings.LINE_SEARCHES, ("a", "b", "b"), strict=True):
        if results.find(reading.part):
            part = section.section(f"({letter}) {reading.part[0].upper()}{reading.part[1:]}")
            part.text(f"{reading.words[0].upper()}{reading.words[1:]}.")
            part.bullets(_judged(results, reading))
            put(part, readings_table(results, (reading,)))
            _grid(part, results, reading.part, None, ("objective",))
    put(section.section("All readings"), readings_table(results, readings.ALL), folded=True)


def _judged(results: Results, reading: readings.Reading) -> list[str]:
    """What the reading gives in the cells of Table 2, and what Table 2 says to that."""
    facts = results.detail_set
    assert facts is not None
    lines = []
    for by in matchings(facts):
        made = compare(results, reading, by)
        if made.cells:
            lines.append(f"{heading(facts, by)}: {counts(made)}. {judgement(made)}")
    return lines
