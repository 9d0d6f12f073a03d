"""REPORT of the paths: results/paths.csv → results/paths.md."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from ..race.report import RESULTS, setting
from ..table import read_table
from .measure import OURS, TARGET, Row, times

AnyRow = TypeVar("AnyRow")

Cell = tuple[str, str]


def seconds(value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:.3g} s" if value < 1000 else f"{value:.0f} s"


def by_cell(rows: Iterable[Row]) -> dict[Cell, list[Row]]:
    cells: dict[Cell, list[Row]] = {}
    for row in rows:
        cells.setdefault(row.cell, []).append(row)
    return cells


def outcome(rows: list[Row]) -> str:
    """What a solver showed in a cell: its time, or why there is none."""
    reached = times(rows)
    if reached:
        return seconds(next(iter(reached.values())))
    last = rows[-1]
    if last.status == "limit":
        return f"cut off ({last.limit:.0f} s)"
    return "failed" if last.status == "failed" else f"missed ({last.error:.0e})"


def factor(rows: list[Row]) -> tuple[str, float]:
    """The best peer of a cell, and how many times faster ours is; nan where either is missing."""
    reached = times(rows)
    ours = min((t for solver, t in reached.items() if solver.startswith(OURS)), default=math.nan)
    peers = {solver: t for solver, t in reached.items() if not solver.startswith(OURS)}
    best = min(peers, key=lambda solver: peers[solver], default="")
    return best, peers.get(best, math.nan) / ours


def headline(rows: list[Row]) -> list[str]:
    cells = by_cell(rows)
    lines = [f"| path | best peer to {TARGET:g} | | ours | times faster |", "|---|---|---|---|---|"]
    factors = []
    for (problem, loss), own in cells.items():
        best, ratio = factor(own)
        reached = times(own)
        ours = min((t for solver, t in reached.items() if solver.startswith(OURS)), default=math.nan)
        shown = "–" if math.isnan(ratio) else f"{ratio:.1f}"
        lines.append(
            f"| {problem}, {loss} | {best or 'none'} | {seconds(reached.get(best, math.nan))} | "
            f"{seconds(ours)} | {shown} |"
        )
        factors += [] if math.isnan(ratio) else [ratio]
    if factors:
        lines += ["", f"Median {median(factors):.1f}, worst {min(factors):.1f} over {len(factors)} paths."]
    return [*lines, ""]


def everybody(rows: list[Row]) -> list[str]:
    """All solvers, a column per cell."""
    cells = by_cell(rows)
    solvers = sorted({row.solver for row in rows}, key=lambda name: (not name.startswith(OURS), name))
    lines = [f"| solver | {' | '.join(f'{p}, {loss}' for p, loss in cells)} |", f"|---|{'---|' * len(cells)}"]
    for solver in solvers:
        shown = []
        for own in cells.values():
            mine = [row for row in own if row.solver == solver]
            shown.append(outcome(mine) if mine else "")
        lines.append(f"| {solver} | {' | '.join(shown)} |")
    return [*lines, ""]


def summary(rows: list[Row], about: dict[str, Any]) -> str:
    grids = {(row.n_alphas, row.eps) for row in rows}
    what = " or ".join(f"{n} alphas to {eps:g} alpha_max" for n, eps in sorted(grids))
    lines = [
        "# Paths",
        "",
        "Written by `python -m benchmarks.paths.report`; rows in `paths.csv`.",
        "",
        *setting(about),
    ]
    lines += [
        f"{what}, no intercept. Seconds of the loosest tolerance of each solver whose worst point along the path is "
        f"within {TARGET:g}·f(0) of the optimum. The number after a solver's name is its number of threads.",
        "",
    ]
    busy = [row.others for row in rows if not math.isnan(row.others)]
    if busy:
        lines += [f"Cores that others used when a path began: median {median(busy):.1f}, most {max(busy):.1f}.", ""]
    return "\n".join([*lines, *headline(rows), *everybody(rows)])


def write_summary(
    name: str, kind: type[AnyRow], summarise: Callable[[list[AnyRow], dict[str, Any]], str], description: str | None
) -> None:
    """The report ``name``.md of the rows in ``name``.csv, in a folder that the command line may name; printed too."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}.report", description=description)
    parser.add_argument("--results", type=Path, default=RESULTS)
    folder = parser.parse_args().results
    rows = read_table(folder / f"{name}.csv", kind)
    if not rows:
        raise SystemExit(f"no rows in {folder}: run python -m benchmarks.{name} first")
    text = summarise(rows, json.loads((folder / f"{name}-configuration.json").read_text()))
    (folder / f"{name}.md").write_text(text)
    print(text)


if __name__ == "__main__":
    write_summary("paths", Row, summary, __doc__)
