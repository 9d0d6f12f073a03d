"""The tables of the page and of the CSV files: heads and rows of plain values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from blockgreedy.experiments import plan, readings
from blockgreedy.experiments.results import CLOCKS, DEFAULT, Results
from blockgreedy.experiments.sets import alpha_text
from blockgreedy.experiments.standing import trouble
from blockgreedy.experiments.table import Table
from blockgreedy.experiments.tables_reuters import load_table, readings_table, reuters_tables


def data_table(results: Results) -> Table:
    rows = []
    for facts in results.sets:
        own = facts.in_paper
        theirs = (own.n_features, own.n_samples, own.nonzeros, alpha_text(own.lambda_0)) if own else (None,) * 4
        rows.append(
            [
                facts.name,
                facts.origin,
                facts.n_features,
                theirs[0],
                facts.n_samples,
                theirs[1],
                facts.nonzeros,
                theirs[2],
                facts.empty_columns,
                f"{facts.alpha_max:.3g}",
                alpha_text(facts.lambda_0),
                theirs[3],
            ]
        )
    head = ["set", "origin", "features", "paper's", "samples", "paper's", "nonzeros", "paper's"]
    return Table(
        "data",
        "The data, beside the paper's dataset table",
        [*head, "empty columns", "alpha_max", "lambda_0", "paper's"],
        rows,
    )


def optimum_table(results: Results) -> Table:
    rows = []
    for r in results.references:
        run = results.one(plan.FOLLOW_UP, r.set_name, r.alpha, DEFAULT)
        last = run.trace.records[-1] if run is not None else None
        cells = (last.nonzeros, last.seconds) if last is not None else (None, None)
        rows.append([r.set_name, alpha_text(r.alpha), r.objective, f"{r.relative_gap:.1e}", r.status, *cells])
    head = ["set", "alpha", "objective", "proven gap, relative", "status", "nonzeros", "seconds (wall clock)"]
    return Table("optimum", "The default solver on every problem: f* of all errors below", head, rows)


def blocks_table(results: Results) -> Table:
    rows = [
        [b.set_name, b.kind, b.seconds, b.load_ratio, float(b.mass.max() * len(b.mass)), int(b.nonzeros.max())]
        for b in results.blocks
    ]
    head = [
        "set",
        "blocks",
        "seconds to make (wall clock)",
        "nonzeros: heaviest / mean",
        "gradient mass: most / mean",
    ]
    return Table("blocks", "The partitions into 32 blocks", [*head, "nonzeros of the heaviest"], rows)


def iterations_table(results: Results) -> Table:
    """Figure 2 in numbers: iterations to 10 % error, objectives at equal iterations."""
    rows = []
    for run in [run for reading in readings.ALL for run in results.find(reading.part)]:
        iterations = run.trace["iteration"]
        rows.append(
            [
                run.set_name,
                alpha_text(run.alpha),
                run.part,
                run.setting.kind,
                results.first_below(run, 0.1, iterations),
                results.first_below(run, 0.01, iterations),
                *(run.at_iteration(k) for k in (10, 100, 1000)),
                run.last_iteration,
                run.trace.records[-1].objective,
                run.trace.records[-1].nonzeros,
                run.trace.records[-1].active_blocks,
                f"{100 * run.rising_share:.0f} %",
                trouble(run, results.facts(run.set_name).f_zero) or run.status,
            ]
        )
    head = ["set", "alpha", "reading", "blocks", "iterations to error 0.1", "to 0.01", "objective at 10", "at 100"]
    head += ["at 1,000", "iterations", "last objective", "nonzeros", "active blocks", "records that rose", "status"]
    return Table("figure-2", "Concurrent steps, run by run", head, rows)


def design_table(results: Results) -> Table:
    rows = []
    for run in results.find(plan.DESIGN):
        ns = results.facts(run.set_name).ns_per_nonzero
        found = [results.first_below(run, plan.DESIGN_ERROR, run.clock(clock, ns)) for clock in CLOCKS]
        s = run.setting
        iterations = results.first_below(run, plan.DESIGN_ERROR, run.trace["iteration"])
        rows.append([s.update, s.n_blocks, s.blocks_per_iter, iterations, *found])
    head = ["update", "B", "P", "iterations", *(f"seconds, {words}" for words in CLOCKS.values())]
    return Table("design-space", f"To an error of {plan.DESIGN_ERROR:g} over the design space", head, rows)


def follow_up_table(results: Results) -> Table:
    rows = []
    for run in results.find(plan.FOLLOW_UP):
        s = run.setting
        times = [results.seconds_to(run, error) for error in (1e-2, 1e-3)]
        models = [math.nan, math.nan]
        if s.kind != DEFAULT:
            models = [results.seconds_to(run, 1e-2, clock) for clock in ("blocks", "slices")]
        last = run.trace.records[-1]
        rows.append(
            [
                run.set_name,
                alpha_text(run.alpha),
                s.kind,
                s.update,
                s.per_block,
                *times,
                *models,
                last.iteration,
                float(results.errors(run)[-1]),
                run.status,
            ]
        )
    head = ["set", "alpha", "blocks", "update", "per block", "to 1e-2: wall clock s", "to 1e-3: wall clock s"]
    head += ["to 1e-2: model s, scan follows blocks", "to 1e-2: model s, equal slices"]
    return Table(
        "follow-up", "Safe steps and the default solver", [*head, "iterations", "last error", "status"], rows
    )


def means_table(results: Results, error: float = 1e-2) -> Table:
    """How many times faster than random blocks, geometric mean over the cells that both reached."""
    rows = []
    others = [kind for kind in results.kinds() if kind != "random"]
    for update in plan.SAFE_UPDATES:
        for per_block in plan.PER_BLOCK:
            cells: list[Any] = [update, per_block]
            for kind in others:
                for clock in CLOCKS:
                    ratios = gains(results, kind, "random", update, per_block, error, clock)
                    cells.append(geometric_mean(ratios))
                cells.append(len(ratios))
            if any(cells[k] for k in range(len(cells)) if k >= 2 and isinstance(cells[k], int)):
                rows.append(cells)
    head = ["update", "per block"]
    for kind in others:
        head += [f"{kind}: wall clock", f"{kind}: model, scan follows blocks", f"{kind}: model, equal slices"]
        head.append(f"{kind}: cells")
    caption = f"Times faster than random blocks to an error of {alpha_text(error)} (geometric mean, one seed)"
    note = "Above 1 is faster than random. The wall clock includes making the blocks; the models do not."
    return Table(f"gains-{alpha_text(error)}", caption, head, rows, note)


def gains(
    results: Results, kind: str, base: str, update: str, per_block: int, error: float, clock: str = "wall"
) -> list[float]:
    """base's time over kind's time, one per set and alpha that both reached."""
    found = []
    for run in results.find(plan.FOLLOW_UP, kind=kind, update=update, per_block=per_block):
        other = results.one(plan.FOLLOW_UP, run.set_name, run.alpha, base, update=update, per_block=per_block)
        if other is not None:
            mine, theirs = results.seconds_to(run, error, clock), results.seconds_to(other, error, clock)
            found += [theirs / mine] if mine > 0 and theirs > 0 else []
    return found


def geometric_mean(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values)))) if values else math.nan


def all_tables(results: Results) -> list[Table]:
    return [
        data_table(results),
        optimum_table(results),
        blocks_table(results),
        load_table(results),
        *reuters_tables(results),
        readings_table(results, readings.ALL),
        iterations_table(results),
        design_table(results),
        follow_up_table(results),
        means_table(results, 1e-2),
        means_table(results, 1e-3),
    ]
