"""Verdicts where numbers are missing: what was not measured, or not proven, supports no statement."""

import math
from dataclasses import replace

import made_up
from blockgreedy.experiments import claims_curves, claims_table, plan, verdicts
from blockgreedy.experiments.standing import leader


def test_runs_that_made_no_iteration_support_no_statement():
    made = made_up.results(clustered_wins=True)
    made.runs = [
        replace(run, trace=made_up.trace([0.7], nonzeros=0, active=0), status="max_seconds") for run in made.runs
    ]
    outcomes = {finding.claim: finding.outcome for finding in verdicts.findings(made)}
    found = {claim: outcome for claim, outcome in outcomes.items() if outcome != "not measured"}
    assert [claim[:20] for claim in found] == ["Clustering takes les", "lambda_0 is 1e-4 on ", "Blocks of equally ma"]
    assert "Left out" not in claims_curves.solutions(made).why


def test_without_the_time_per_nonzero_nobody_is_ahead_in_time():
    made = made_up.results(clustered_wins=True)
    by_iteration = claims_table.in_iterations(made)
    made.sets = [replace(made.sets[0], ns_per_nonzero=math.nan)]
    pair = tuple(made.one(plan.FIGURE_2, "reuters", 1e-4, kind) for kind in ("random", "clustered"))
    assert leader(made, pair, (math.nan, math.nan), (10.0, 10.0)) == "not known"
    for claim in (claims_curves.across_sets, claims_curves.crossover, claims_table.in_time):
        assert claim(made).outcome == "not measured", claim(made)
    assert claims_table.in_iterations(made) == by_iteration
    assert "0 of 0 in time" in claims_curves.order_of_objectives(made).found


def test_an_optimum_without_a_proof_is_not_called_one():
    made = made_up.results(clustered_wins=True)
    for k, run in enumerate(made.runs):
        if run.setting.kind == "default solver" and run.alpha == 1e-6:
            made.runs[k] = replace(run, status="max_seconds")
    finding = claims_curves.solutions(made)
    assert "of 4 comparisons" in finding.found
    assert "not proven in the time that there was: reuters 1e-6." in finding.why
