"""Verdicts on the paper's statements: they follow the numbers, match alphas openly, and never count divergence."""

import math
from dataclasses import replace

import numpy as np
import pytest

import made_up
from blockgreedy.experiments import claims_blocks, claims_curves, claims_table, paper, plan, readings, verdicts
from blockgreedy.experiments.matching import heading, matches, matchings
from blockgreedy.experiments.page import make_page
from blockgreedy.experiments.results import Blocks, Results
from blockgreedy.experiments.sets import alpha_text
from blockgreedy.experiments.standing import leader, tally, trouble
from blockgreedy.experiments.table_2 import compare, judgement
from blockgreedy.experiments.tables_reuters import load_table, readings_table

AS_IN_PAPER = (1e-4, 1e-5, 1e-6, 1e-7)


def outcomes(made):
    return {finding.claim: finding.outcome for finding in verdicts.findings(made)}


def with_runs(made, part, values, alphas=made_up.ALPHAS, **how):
    """The results with these objectives, by kind, instead of the runs of a part."""
    made.runs = [run for run in made.runs if not (run.part == part and run.alpha in alphas)]
    for alpha in alphas:
        for kind, objectives in values.items():
            made.runs.append(made_up.run(part, kind, objectives, alpha=alpha, **how))
    return made


def test_verdicts_agree_when_the_numbers_do():
    found = outcomes(made_up.results(clustered_wins=True))
    held = [claim for claim, outcome in found.items() if outcome == "agrees"]
    wanted = ("few blocks", "ten times as many iterations", "badly balanced", "update='add'", "three seconds")
    for words in wanted:
        assert any(words in claim for claim in held), words


def test_verdicts_differ_when_the_numbers_do():
    found = outcomes(made_up.results(clustered_wins=False))
    wanted = ("few blocks", "ten times as many iterations", "badly balanced", "update='add'", "three seconds")
    for words in wanted:
        assert [outcome for claim, outcome in found.items() if words in claim] == ["differs"], words
    assert "agrees" not in {outcome for claim, outcome in found.items() if "smaller alphas" in claim}


def test_nothing_measured_is_said_for_every_claim():
    made = Results(sets=[made_up.facts("zeta")])
    assert set(outcomes(made).values()) == {"not measured"}
    html = make_page(made).html()
    assert "Not measured." in html


# --------------------------------------------------------------------------------------------- matching


def test_alphas_are_matched_by_rank_and_by_value():
    found = made_up.facts()  # its lambda_0 is 1e-3, the paper's 1e-4
    assert [(m.rank, m.theirs, m.ours) for m in matches(found, "rank")] == [
        (0, 1e-4, 1e-3),
        (1, 1e-5, 1e-4),
        (2, 1e-6, 1e-5),
    ]
    assert [(m.rank, m.theirs, m.ours) for m in matches(found, "value")] == [
        (0, 1e-4, 1e-4),
        (1, 1e-5, 1e-5),
        (2, 1e-6, 1e-6),
    ]
    assert "the paper's 1e-4 is 1e-3 here" in heading(found, "rank")
    same = made_up.facts(alphas=AS_IN_PAPER)
    assert matchings(same) == ("rank",)
    assert heading(same, "rank") == "By rank, which is also by value"
    assert matches(made_up.facts("kdda", alphas=(1e-6, 1e-7, 1e-8, 1e-9)), "rank", (1e-6,))[0].ours == 1e-6


@pytest.mark.parametrize(
    "claim",
    [
        claims_curves.crossover,
        claims_blocks.active_blocks,
        claims_table.in_time,
        claims_table.in_iterations,
        claims_table.nonzeros_of_random,
        *(lambda made, r=reading: claims_table.table_under(made, r) for reading in readings.ALL),
    ],
)
def test_statements_that_quote_an_alpha_name_their_matching_and_give_both(claim):
    made = made_up.results(clustered_wins=True)
    found = claim(made).found
    assert "By rank" in found
    assert "By value" in found
    made.sets = [replace(made.sets[0], alphas=AS_IN_PAPER)]
    for run in made.runs:
        object.__setattr__(run, "alpha", run.alpha / 10)
    assert "By value" not in claim(made).found


def test_rank_and_value_can_disagree_and_the_verdict_is_that_by_rank():
    made = made_up.results(clustered_wins=True)
    ahead, behind = made_up.falling(0.2), made_up.falling(0.4)
    with_runs(made, plan.FIGURE_2, {"random": ahead, "clustered": behind}, (1e-3,))  # as the paper's at its lambda_0
    with_runs(made, plan.FIGURE_2, {"random": behind, "clustered": ahead}, (1e-4, 1e-5, 1e-6))
    finding = claims_table.in_iterations(made)
    assert finding.outcome == "agrees"
    assert "As in the paper: 3 of 3. By value" in finding.found
    assert finding.found.endswith("As in the paper: 2 of 3.")
    assert "The verdict is that by rank" in finding.why


# ------------------------------------------------------------------------------------------- divergence


def test_a_run_above_f_zero_has_diverged_and_one_that_goes_to_and_fro_cycles():
    f_zero = 0.7
    assert trouble(made_up.run("", "random", made_up.falling(37.0)), f_zero) == "diverged"
    assert trouble(made_up.run("", "random", [0.7, math.nan]), f_zero) == "diverged"
    assert trouble(made_up.run("", "random", made_up.falling(0.3), status="diverged"), f_zero) == "diverged"
    assert trouble(made_up.run("", "random", made_up.swinging(0.5, 0.6)), f_zero) == "cycles"
    assert trouble(made_up.run("", "random", made_up.falling(0.3)), f_zero) == ""
    noise = 0.1 + 1e-9 * made_up.swinging(0, 1)
    assert trouble(made_up.run("", "random", noise), f_zero) == ""  # arrived: rounding goes to and fro too
    descending = made_up.falling(0.2) + 0.02 * (np.arange(41) % 2)
    assert trouble(made_up.run("", "random", descending), f_zero) == ""  # it rises every second time, and gets on
    later = np.concatenate([made_up.falling(0.3, 20), np.full(20, 5.0)])
    assert trouble(made_up.run("", "random", later), f_zero, upto=150) == ""
    assert trouble(made_up.run("", "random", later), f_zero) == "diverged"
    stopped = made_up.run("", "random", later, status="diverged")
    assert trouble(stopped, f_zero, upto=150) == ""  # the status is that of the end
    assert trouble(stopped, f_zero, upto=400) == "diverged"


def test_nobody_leads_a_run_that_diverged():
    made = made_up.results(clustered_wins=True)
    sound, high = made_up.run("", "clustered", made_up.falling(0.3)), made_up.run("", "random", made_up.falling(37.0))
    assert leader(made, (high, sound), (37.0, 0.3), (400, 400)) == "random diverged"
    low = made_up.run("", "random", made_up.falling(0.3))
    bad = made_up.run("", "clustered", made_up.swinging(0.6, 0.65))
    assert leader(made, (low, bad), (0.3, 0.6), (400, 400)) == "clustered cycles"
    assert leader(made, (high, bad), (37.0, 0.6), (400, 400)) == "both diverged"
    assert tally(["clustered ahead", "random diverged", "random diverged"]) == (
        "clustered is ahead in 1, level in 0, behind in 0 of 3 cells (random diverged in 2, counted apart)"
    )


def test_divergence_of_random_blocks_is_no_agreement():
    """Clustered falls while random stands at 37, where f(0) is 0.7: once called agreement."""
    made = made_up.results(clustered_wins=True)
    for reading in readings.ALL:
        for kind, end, active in (("random", 37.0, 32), ("clustered", 0.2, 6)):
            made.runs = [run for run in made.runs if (run.part, run.setting.kind) != (reading.part, kind)]
            made.runs += [
                made_up.run(reading.part, kind, made_up.falling(end), alpha=alpha, active=active)
                for alpha in made_up.ALPHAS
            ]
    claims = [claims_curves.per_iteration(made, reading) for reading in readings.ALL]
    claims += [claims_table.in_iterations(made), claims_table.in_time(made), claims_curves.across_sets(made)]
    claims += [claims_blocks.active_blocks(made)]
    for finding in claims:
        assert finding.outcome == "differs", finding.claim
        assert "random diverged" in finding.found, finding.claim
        assert "never count as agreement" in finding.why
    assert "random diverged" in claims_curves.crossover(made).found
    assert claims_curves.crossover(made).outcome == "differs"
    assert claims_table.nonzeros_of_random(made).outcome == "differs"
    assert "random blocks diverge" in claims_table.table_under(made, readings.ALONE).why


def test_active_blocks_are_compared_only_where_neither_run_diverged():
    made = made_up.results(clustered_wins=True)
    assert "reuters at 1e-3: clustered 6, random 32. By value" in claims_blocks.active_blocks(made).found
    with_runs(made, plan.FIGURE_2, {"random": made_up.swinging(0.5, 0.6)}, (1e-4,), active=32)
    with_runs(made, plan.FIGURE_2, {"random": made_up.falling(0.3)}, (1e-3,), active=32)
    clustered = {"part": plan.FIGURE_2, "kind": "clustered", "objectives": made_up.falling(0.2), "active": 6}
    made.runs += [made_up.run(**clustered, alpha=alpha) for alpha in (1e-3, 1e-4)]
    finding = claims_blocks.active_blocks(made)
    assert finding.outcome == "agrees"
    assert "reuters at 1e-3: clustered 6, random 32. By value" in finding.found
    assert "reuters at 1e-4: random cycles, not counted" in finding.found


def test_cycling_random_blocks_are_no_agreement_either():
    made = made_up.results(clustered_wins=True)
    values = {"random": made_up.swinging(0.5, 0.6), "clustered": made_up.falling(0.2)}
    with_runs(made, plan.FIGURE_2, values)
    finding = claims_table.in_iterations(made)
    assert finding.outcome == "differs"
    assert "random cycles" in finding.found


# ----------------------------------------------------------------------------------------------- curves


def test_order_of_the_curves_is_looked_at():
    made = made_up.results(clustered_wins=True)
    for alpha, end, nonzeros in zip(made_up.ALPHAS, (0.6, 0.5, 0.3, 0.2), (5, 50, 500, 5000), strict=True):
        values = {kind: made_up.falling(end) for kind in ("random", "clustered")}
        with_runs(made, plan.FIGURE_2, values, (alpha,), nonzeros=nonzeros)
    for claim in (claims_curves.order_of_objectives, claims_curves.order_of_nonzeros):
        assert claim(made).outcome == "agrees"
        assert "2 of 2 by iteration, 2 of 2 in time" in claim(made).found
    swapped = {kind: made_up.falling(0.1) for kind in ("random", "clustered")}
    with_runs(made, plan.FIGURE_2, swapped, (1e-4,), nonzeros=20_000)
    for claim in (claims_curves.order_of_objectives, claims_curves.order_of_nonzeros):
        assert claim(made).outcome == "differs"
        assert "Not in order" in claim(made).why


def test_a_diverged_curve_on_top_is_not_in_order():
    made = made_up.results(clustered_wins=True)
    for alpha, end in zip(made_up.ALPHAS, (37.0, 0.5, 0.3, 0.2), strict=True):
        with_runs(made, plan.FIGURE_2, {kind: made_up.falling(end) for kind in ("random", "clustered")}, (alpha,))
    finding = claims_curves.order_of_objectives(made)
    assert finding.outcome == "differs"
    assert "Counted apart" in finding.why


def test_solutions_of_larger_alphas_are_sparser_or_the_page_says_that_they_are_not():
    made = made_up.results(clustered_wins=True)  # the same optimum at every alpha
    assert claims_curves.solutions(made).outcome == "differs"


def test_crossover_is_found_where_random_overtakes():
    made = made_up.results(clustered_wins=True)
    random = [0.7, 0.65, 0.6, 0.3, 0.1]
    clustered = [0.7, 0.4, 0.35, 0.33, 0.32]
    with_runs(made, plan.FIGURE_2, {"random": random, "clustered": clustered}, (1e-4,), critical=1_000_000)
    finding = claims_curves.crossover(made)
    assert finding.outcome == "agrees"
    assert "By rank at 1e-4: overtaken at 0.03 s" in finding.found  # iteration 30 × 1e6 nonzeros × 1 ns
    assert "By value at 1e-5: not seen" in finding.found
    made.runs = [run for run in made.runs if run.part != plan.FIGURE_2]
    assert claims_curves.crossover(made).outcome == "not measured"


def test_who_comes_back_from_above_f_zero_overtook_nobody():
    made = made_up.results(clustered_wins=True)
    values = {"random": [0.7, 9.0, 5.0, 0.71, 0.1], "clustered": [0.7, 0.4, 0.35, 0.33, 0.32]}
    with_runs(made, plan.FIGURE_2, values, critical=1_000_000)
    finding = claims_curves.crossover(made)
    assert finding.outcome == "differs"
    assert "random stood above f(0) whenever it was behind" in finding.found
    assert "overtook clustered" not in claims_curves.per_iteration(made, readings.ADDED).why


def test_an_objective_of_nan_is_a_run_that_diverged():
    made = made_up.results(clustered_wins=True)
    clustered = made_up.falling(0.2)
    with_runs(made, plan.FIGURE_2, {"random": made_up.falling(0.4), "clustered": clustered}, (1e-6,))
    lost = np.concatenate([made_up.falling(0.4, 30), [math.nan] * 10])
    with_runs(made, plan.FIGURE_2, {"random": lost, "clustered": clustered}, (1e-5,))
    finding = claims_curves.per_iteration(made, readings.ADDED)
    end = finding.found.split("at the end of the shorter run ")[1]
    assert end.startswith("clustered is ahead in 1, level in 0, behind in 0 of 2 cells (random diverged in 1")
    assert finding.outcome != "agrees"


# ----------------------------------------------------------------------------------------------- blocks


def test_lambda_0_agrees_only_where_it_is_the_paper_s():
    made = Results(sets=[made_up.facts(alphas=AS_IN_PAPER)])
    assert claims_blocks.first_alpha(made).outcome == "agrees"
    assert claims_blocks.first_alpha(Results(sets=[made_up.facts()])).outcome == "differs"
    assert claims_blocks.first_alpha(Results(sets=[made_up.facts("zeta")])).outcome == "not measured"


def test_the_busiest_thread_takes_one_block_after_the_other():
    blocks = Blocks("reuters", "clustered", 0.0, np.array([10.0, 1, 1, 1, 5]), np.full(5, 0.2))
    assert blocks.busiest(1) == 18
    assert blocks.busiest(2) == 10
    assert Blocks("", "", 0.0, np.array([1.0, 1, 1, 1, 5]), np.full(5, 0.2)).busiest(2) == 7  # the largest comes last
    assert blocks.busiest(5) == blocks.busiest(100) == 10


def with_loads(loads, times):
    """Results of the part on loads: nonzeros of the blocks of each kind, and seconds on one and on two threads."""
    made = Results(sets=[made_up.facts()])
    for kind, load in loads.items():
        made.blocks.append(Blocks("reuters", kind, 0.0, np.array(load), np.full(4, 0.25)))
        for n_threads, spent in zip((1, 2), times[kind], strict=True):
            made.runs.append(made_up.run(plan.LOAD, kind, [0.7, 0.6], seconds=spent, n_threads=n_threads))
    return made


UNEVEN = {"random": [100.0] * 4, "clustered": [300.0, 40, 30, 30]}


@pytest.mark.parametrize(("seconds", "outcome"), [(1.5, "agrees"), (0.5, "differs")])
def test_measured_load_is_held_against_the_model_for_as_many_threads(seconds, outcome):
    made = with_loads(UNEVEN, {"random": (2.0, 1.0), "clustered": (1.0, seconds / 2)})  # half the time per nonzero
    finding = claims_blocks.measured_load(made)
    assert finding.outcome == outcome
    assert f"clustered blocks: reuters {seconds:.2f}× (model 1.50×, of 32 threads 3.0×)" in finding.found
    row = load_table(made).rows[1]
    assert row[6] == pytest.approx(seconds)  # what waiting costs
    assert row[7] == pytest.approx(1.5)


def test_blocks_that_nobody_waits_for_confirm_no_bottleneck():
    even = {"random": [100.0] * 4, "clustered": [104.0, 96, 100, 100]}
    finding = claims_blocks.measured_load(with_loads(even, dict.fromkeys(even, (2.0, 1.0))))
    assert "threads: 1 of 1, and 0 of the 0 where the model expects a difference" in finding.found
    assert finding.outcome == "not measured"


def test_load_measured_on_a_busy_machine_is_no_measurement():
    made = with_loads(UNEVEN, {"random": (2.0, 2.0), "clustered": (2.0, 3.0)})  # two threads that get one core
    finding = claims_blocks.measured_load(made)
    assert finding.outcome == "not measured"
    assert "2 threads are only 1.00 times as fast as one" in finding.why


# ---------------------------------------------------------------------------------------------- Table 2


def as_printed(made, part, by):
    """Runs that end at the numbers of the paper's table."""
    made.runs = [run for run in made.runs if run.part != part]
    for match in matches(made.sets[0], by):
        for kind in ("random", "clustered"):
            row = paper.REUTERS[match.theirs, kind]
            how = {"nonzeros": row.nonzeros_in_iterations, "every": 250}
            values = made_up.falling(row.objective_in_iterations)
            made.runs.append(made_up.run(part, kind, values, alpha=match.ours, **how))
    return made


@pytest.mark.parametrize("by", ["rank", "value"])
def test_table_2_agrees_with_runs_that_have_its_numbers(by):
    made = as_printed(made_up.results(clustered_wins=True), "printed step", by)
    comparison = compare(made, readings.PRINTED, by)
    assert (comparison.held, comparison.total) == (15, 15)
    assert judgement(comparison).startswith("Table 2 supports it: random blocks have 74, 82, 110 nonzeros")
    finding = claims_table.table_under(made, readings.PRINTED)
    assert (finding.outcome == "agrees") == (by == "rank")
    assert "15 of 15 comparisons hold" in finding.found
    table = readings_table(made, (readings.PRINTED,))
    rows = [dict(zip(table.head, row, strict=True)) for row in table.texts()]
    ours = alpha_text(matches(made.sets[0], by)[0].ours)
    row = next(row for row in rows if (row["alpha"], row["blocks"]) == (ours, "random"))
    assert row["iterations"] == "10,000"
    assert row["nonzeros"] == row[f"nonzeros, paper's by {by}"] == "74"
    assert row["objective"] == row[f"objective, paper's by {by}"] == "0.57"


def test_table_2_contradicts_runs_with_other_nonzeros_and_other_leaders():
    made = made_up.results(clustered_wins=False)  # 90 nonzeros for both kinds, random ahead
    text = judgement(compare(made, readings.PRINTED, "rank"))
    assert "clustered blocks have 90, 90, 90 nonzeros where the paper has 203, 8,812, 19,919" in text
    assert "at 1e-4 random ahead, 1e-5 random ahead, unlike there" in text
    assert "Table 2 supports it: random blocks have 90, 90, 90 nonzeros where the paper has 74, 82, 110" in text


def test_runs_that_were_cut_short_are_said_to_be():
    made = made_up.results(clustered_wins=True)
    assert (
        "ended before 10,000 iterations, the shortest after 400"
        in claims_table.table_under(made, readings.PRINTED).why
    )
    whole = as_printed(made, "printed step", "rank")
    assert "ended before" not in claims_table.table_under(whole, readings.PRINTED).why


def test_greedy_rules_are_compared_on_the_detailed_set():
    made = made_up.results(clustered_wins=True)
    assert claims_table.greedy_rule(made).outcome == "agrees"  # the same numbers
    with_runs(made, plan.GREEDY_RULE, {kind: made_up.falling(0.6) for kind in ("random", "clustered")})
    assert claims_table.greedy_rule(made).outcome == "differs"
    assert readings.ADDED.setting.greedy_rule == "step"


def test_page_shows_every_reading_and_claims_none_to_be_the_paper_s_program():
    html = make_page(made_up.results(clustered_wins=True)).html()
    for words in (
        "The step of the paper&#x27;s text",
        "The line search, read in two ways",
        "enters the line search phase",
        "(a) Line search alone",
        "(b) Line search together",
        "(b) Line search concurrent",
        "Load imbalance, measured",
        "docs/errata.md",
        "paper&#x27;s by rank",
        "paper&#x27;s by value",
        "counts as agreement",
    ):
        assert words in html, words
    assert "paper&#x27;s code" not in html
