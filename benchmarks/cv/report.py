"""REPORT of the cross-validations: results/cv.csv → results/cv.md."""

from __future__ import annotations

import math
from typing import Any

from ..paths.report import seconds, write_summary
from ..race.report import setting
from .measure import Row

OURS = "blockgreedy"


def by_cell(rows: list[Row]) -> dict[tuple[str, str], list[Row]]:
    cells: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        cells.setdefault(row.cell, []).append(row)
    return cells


def factor(rows: list[Row]) -> tuple[str, float]:
    """The fastest peer of a cell, and how many times faster ours is; nan where either is missing."""
    done = {row.solver: row.seconds for row in rows if row.status == "ok"}
    ours = min((t for solver, t in done.items() if solver.startswith(OURS)), default=math.nan)
    peers = {solver: t for solver, t in done.items() if not solver.startswith(OURS)}
    best = min(peers, key=lambda solver: peers[solver], default="")
    return best, peers.get(best, math.nan) / ours


def headline(rows: list[Row]) -> list[str]:
    lines = ["| cross-validation | fastest peer | | ours | times faster | memory added, in matrices |"]
    lines.append("|---|---|---|---|---|---|")
    for (problem, loss), own in by_cell(rows).items():
        best, ratio = factor(own)
        done = {row.solver: row for row in own if row.status == "ok"}
        ours = next((row for solver, row in done.items() if solver.startswith(OURS)), None)
        shown = "–" if math.isnan(ratio) else f"{ratio:.1f}"
        peak = "–" if ours is None or math.isnan(ours.peak) else f"{ours.peak:.2f}"
        lines.append(
            f"| {problem}, {loss} | {best or 'none'} | {seconds(done[best].seconds if best else math.nan)} | "
            f"{seconds(ours.seconds if ours else math.nan)} | {shown} | {peak} |"
        )
    return [*lines, ""]


def everybody(rows: list[Row]) -> list[str]:
    lines = ["| cross-validation | solver | time | curve off by | alpha chosen / alpha_max | cores others used |"]
    lines.append("|---|---|---|---|---|---|")
    for (problem, loss), own in by_cell(rows).items():
        for row in sorted(own, key=lambda row: (not row.solver.startswith(OURS), row.solver)):
            shown = {"ok": seconds(row.seconds), "limit": f"cut off ({row.limit:.0f} s)"}.get(row.status, "failed")
            what = f"{row.curve_error:.1e} | {row.chosen:.3g}" if row.status == "ok" else "– | –"
            lines.append(f"| {problem}, {loss} | {row.solver} | {shown} | {what} | {row.others:.1f} |")
    return [*lines, ""]


def summary(rows: list[Row], about: dict[str, Any]) -> str:
    grids = {(row.n_folds, row.n_alphas, row.eps) for row in rows}
    what = " or ".join(f"{k} folds × {n} alphas to {eps:g} alpha_max" for k, n, eps in sorted(grids))
    lines = ["# Cross-validation", "", "Written by `python -m benchmarks.cv.report`; rows in `cv.csv`.", ""]
    lines += setting(about)
    lines += [
        f"{what}, no intercept, default tolerances. The number after a solver's name is its number of threads or "
        "processes. A curve is the mean loss on held-out rows at each alpha; it is off by its largest distance to an "
        "accurate one, relative to its first value. Memory: what the fit adds to a process that holds the matrix, "
        "divided by the size of the matrix in CSC.",
        "",
    ]
    return "\n".join([*lines, *headline(rows), *everybody(rows)])


if __name__ == "__main__":
    write_summary("cv", Row, summary, __doc__)
