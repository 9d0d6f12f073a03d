"""The figures of the page: the paper's, redrawn from the results, and ours."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from blockgreedy.experiments import plan
from blockgreedy.experiments.results import CLOCKS, DEFAULT, Results, Run
from blockgreedy.experiments.sets import SetFacts, alpha_text
from blockgreedy.experiments.standing import trouble
from blockgreedy.reports.figures import (
    AMBER,
    BLUE,
    GREEN,
    SOFT,
    STYLES,
    VIOLET,
    Axis,
    Line,
    bars,
    color_of,
    curves,
    heat_map,
)
from blockgreedy.reports.page import Picture

_COLOR_OF_PER_BLOCK = {1: SOFT, 4: BLUE, 16: GREEN}


def convergence(results: Results, facts: SetFacts, part: str, clock: str | None, column: str) -> Picture:
    """Figure 2 (and 3b, 3c): one colour per kind of blocks, one line style per alpha; clock None: iterations."""
    lines, axes = [], []
    for k, alpha in enumerate(facts.alphas):
        for run in results.find(part, facts.name, alpha):
            xs = run.trace["iteration"] if clock is None else run.clock(clock, facts.ns_per_nonzero)
            label = f"{run.setting.kind}, alpha {alpha_text(alpha)}"
            axes.append(xs)
            lines.append(Line(xs, run.trace[column], color_of(run.setting.kind), STYLES[k], 1.5, label))
    kinds = [kind for kind in results.kinds() if results.find(part, facts.name, kind=kind)]
    legend = [Line([], [], color_of(kind), label=kind) for kind in kinds]
    legend += [
        Line([], [], SOFT, STYLES[k], label=f"alpha {alpha_text(alpha)}") for k, alpha in enumerate(facts.alphas)
    ]
    x = Axis("iterations" if clock is None else f"seconds, {CLOCKS[clock]}", log=True)
    y = Axis("regularised expected loss" if column == "objective" else "nonzero weights", log=True)
    against = "iterations" if clock is None else CLOCKS[clock]
    own = [run for alpha in facts.alphas for run in results.find(part, facts.name, alpha)]
    if column == "objective" and any(trouble(run, facts.f_zero) == "diverged" for run in own):
        ends = [min(float(xs[xs > 0].min(initial=math.inf)) for xs in axes), max(float(xs[-1]) for xs in axes)]
        lines.append(Line(ends, [facts.f_zero] * 2, AMBER, "-", 0.9, "f(0)"))
        legend.append(Line([], [], AMBER, "-", 0.9, label="f(0)"))
    return curves(
        f"{part.replace(' ', '-')}-{facts.name}-{column}-{clock or 'iterations'}",
        lines,
        x,
        y,
        title=f"{facts.name}, {part}: {'objective' if column == 'objective' else 'nonzeros'}",
        entries=legend,
        by_point=True,
        alt=f"{y.label} against {against} on {facts.name}, {part}, {' and '.join(kinds)} blocks, "
        f"alphas {', '.join(alpha_text(a) for a in facts.alphas)}",
    )


def block_density(results: Results, set_name: str) -> Picture:
    """Figure 3a: nonzeros per block, heaviest first."""
    groups = {b.kind: np.sort(b.nonzeros)[::-1] for b in results.blocks if b.set_name == set_name}
    return bars(
        f"block-density-{set_name}",
        groups,
        Axis("block, heaviest first"),
        Axis("nonzeros of X in the block", log=True),
        title=f"{set_name}: block density",
        alt=f"Nonzeros per block on {set_name}, sorted, for {', '.join(groups)} blocks",
    )


def design_space(results: Results, update: str, clock: str | None) -> Picture | None:
    """Figure 1 with numbers: iterations or seconds to a given error over (B, P)."""
    runs = results.find(plan.DESIGN, update=update)
    if not runs:
        return None
    totals = sorted({run.setting.n_blocks for run in runs})
    chosen = sorted({run.setting.blocks_per_iter for run in runs}, reverse=True)
    values = np.full((len(chosen), len(totals)), math.nan)
    texts = [["" for _ in totals] for _ in chosen]
    corners = corner_names(runs)
    for run in runs:
        ns = results.facts(run.set_name).ns_per_nonzero
        axis = run.trace["iteration"] if clock is None else run.clock(clock, ns)
        i, j = chosen.index(run.setting.blocks_per_iter), totals.index(run.setting.n_blocks)
        values[i, j] = results.first_below(run, plan.DESIGN_ERROR, axis)
        number = "not\nreached" if math.isnan(values[i, j]) else short(values[i, j])
        name = corners.get((run.setting.n_blocks, run.setting.blocks_per_iter))
        texts[i][j] = f"{number}\n{name}" if name else number
    p = results.facts(runs[0].set_name).n_features
    unit = "iterations" if clock is None else f"seconds, {CLOCKS[clock]}"
    return heat_map(
        f"design-space-{update}-{clock or 'iterations'}",
        values,
        [f"{P:,}" for P in chosen],
        ["p" if p == B else f"{B:,}" for B in totals],
        texts=texts,
        x="B, blocks",
        y="P, blocks per iteration",
        title=f"{unit[0].upper()}{unit[1:]}\nupdate={update!r}",
        alt=f"Heat map of {unit} to an error of {plan.DESIGN_ERROR:g} over B and P with update {update}",
    )


def corner_names(runs: Sequence[Run]) -> dict[tuple[int, int], str]:
    """The known algorithms among the settings of (B, P)."""
    most = max(run.setting.n_blocks for run in runs)
    names = {}
    for run in runs:
        B, P = run.setting.n_blocks, run.setting.blocks_per_iter
        if B == 1:
            names[B, P] = "Greedy"
        elif most == B:
            names[B, P] = "SCD" if P == 1 else "Shotgun"
        elif B == P:
            names[B, P] = "Thr.-Gr."
    return names


def short(value: float) -> str:
    """A number in at most five characters."""
    if math.isnan(value):
        return "–"
    for unit, suffix in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g}{suffix}" if value < 100 * unit else f"{value / unit:.0f}{suffix}"
    if value >= 1 or value == 0:
        return f"{value:.3g}"
    return f"{value * 1e3:.3g}m" if value >= 1e-3 else f"{value * 1e6:.3g}µ"


def errors_over_time(results: Results, facts: SetFacts, alpha: float, per_block: int | None, kind: str) -> Picture:
    """Relative error against wall clock: the partitions (per_block given) or more work per scan (None)."""
    found = results.find(plan.FOLLOW_UP, facts.name, alpha)
    lines = []
    for run in found:
        s = run.setting
        if s.kind == DEFAULT:
            color, style, width, label = VIOLET, "-", 2.2, DEFAULT
        elif per_block is not None and s.per_block == per_block:
            color, style, width = color_of(s.kind), "-" if s.update == "joint" else "--", 1.6
            label = f"{s.kind}, {s.update}"
        elif per_block is None and s.kind == kind:
            color, style, width = _COLOR_OF_PER_BLOCK[s.per_block], "-" if s.update == "joint" else "--", 1.6
            label = f"{s.per_block} per block, {s.update}"
        else:
            continue
        seconds = run.clock("wall", 1.0) + run.partition_seconds
        lines.append(Line(seconds, results.errors(run), color, style, width, label))
    what = f"{per_block} per block" if per_block is not None else f"{kind} blocks"
    return curves(
        f"follow-up-{facts.name}-{alpha_text(alpha)}-{'kinds' if per_block is not None else 'per-block'}",
        lines,
        Axis(f"seconds, {CLOCKS['wall']}", log=True),
        Axis("(f − f*) / (f(0) − f*)", log=True, limits=(1e-4, 2.0)),
        title=f"{facts.name}, alpha {alpha_text(alpha)}",
        by_point=True,
        alt=f"Relative error against wall-clock seconds on {facts.name} at alpha {alpha_text(alpha)}: "
        f"safe updates with {what}, and the default solver",
    )


def follow_up_map(results: Results, per_block: int, error: float) -> Picture | None:
    """Wall-clock time of the family over that of the default solver, set by set."""
    columns = [(update, kind) for update in plan.SAFE_UPDATES for kind in results.kinds()]
    cells = [(facts.name, alpha) for facts in results.sets for alpha in facts.alphas]
    values = np.full((len(cells), len(columns)), math.nan)
    texts = [["–" for _ in columns] for _ in cells]
    for i, (name, alpha) in enumerate(cells):
        default = results.one(plan.FOLLOW_UP, name, alpha, DEFAULT)
        base = results.seconds_to(default, error) if default is not None else math.nan
        for j, (update, kind) in enumerate(columns):
            run = results.one(plan.FOLLOW_UP, name, alpha, kind, update=update, per_block=per_block)
            if run is not None:
                values[i, j] = results.seconds_to(run, error) / base if base > 0 else math.nan
                texts[i][j] = f"{values[i, j]:.3g}" if math.isfinite(values[i, j]) else "–"
    if not np.any(np.isfinite(values)):
        return None
    return heat_map(
        f"follow-up-map-{per_block}",
        values,
        [f"{name} {alpha_text(alpha)}" for name, alpha in cells],
        [f"{kind}\n{update}" for update, kind in columns],
        texts=texts,
        x="",
        y="",
        title=f"Time over the default solver's,\n{per_block} per block",
        alt=f"Heat map: wall-clock time to an error of {alpha_text(error)} over the default solver's, "
        f"{per_block} per block",
        center=1.0,
    )
