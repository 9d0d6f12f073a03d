"""What agrees with the paper and what does not: every sentence is computed from the results."""

from __future__ import annotations

from blockgreedy.experiments import claims_blocks, claims_curves, claims_table, readings
from blockgreedy.experiments.results import Results
from blockgreedy.reports.page import Finding


def statements(results: Results) -> list[Finding]:
    """The paper's statements in the order of its text, under Algorithm 1 as it stands: all steps added."""
    return [
        claims_table.greedy_rule(results),
        claims_blocks.clustering_time(results),
        claims_blocks.first_alpha(results),
        claims_curves.solutions(results),
        claims_curves.order_of_objectives(results),
        claims_curves.order_of_nonzeros(results),
        claims_curves.across_sets(results),
        claims_curves.crossover(results),
        claims_blocks.active_blocks(results),
        claims_blocks.iteration_rate(results),
        claims_blocks.load(results),
        claims_blocks.measured_load(results),
        claims_table.in_time(results),
        claims_table.in_iterations(results),
        claims_table.nonzeros_of_random(results),
        claims_curves.per_iteration(results, readings.ADDED),
    ]


def under_other_readings(results: Results) -> list[Finding]:
    """Two of them once more, for every other reading of what happens to the accepted steps."""
    others = (readings.PRINTED, *readings.LINE_SEARCHES)
    found = [claims_table.table_under(results, reading) for reading in others]
    return found + [claims_curves.per_iteration(results, reading) for reading in others]


def findings(results: Results) -> list[Finding]:
    return statements(results) + under_other_readings(results)
