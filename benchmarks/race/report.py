"""REPORT of the race: results/race-*.csv → race-summary.md and figures."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.shades import save_both
from benchmarks.table import read_table

from . import from_rows
from .measure import REFERENCE, TARGETS, Row, read_rows, time_to_target, with_suboptimality

RESULTS = Path(__file__).parents[1] / "results"
OURS = "blockgreedy"
Cell = tuple[str, str, float]


def threads_of(solver: str) -> int:
    return int(solver.rsplit("-", 1)[1])


@dataclass(frozen=True)
class Comparison:
    """One cell at one number of threads: ours against the fastest peer that uses at most as many."""

    cell: Cell
    n_threads: int
    ours: float  # nan: missed the target
    peer: str  # "" if no peer reached it
    peer_seconds: float

    @property
    def ratio(self) -> float:
        """How many times faster ours is; below 1 is a loss, nan where either side missed."""
        return self.peer_seconds / self.ours


def compare(times: dict[Cell, dict[str, float]], n_threads: int) -> list[Comparison]:
    """Cells that ours ran in (``times`` has every cell with rows; see time_to_target)."""
    found = []
    for cell, solvers in times.items():
        peers = {s: t for s, t in solvers.items() if not s.startswith(OURS) and threads_of(s) <= n_threads}
        best = min(peers, key=lambda s: peers[s], default="")
        ours = solvers.get(f"{OURS}-{n_threads}", math.nan)
        found.append(Comparison(cell, n_threads, ours, best, peers.get(best, math.nan)))
    return found


def seconds(value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{value * 1e3:.1f} ms" if value < 1 else f"{value:.2f} s"


def factor(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"


def verdict(comparisons: list[Comparison]) -> list[str]:
    """Median and worst over sparse and over dense cells; every loss by name."""
    k = comparisons[0].n_threads
    lines = []
    for kind in ("sparse", "dense"):
        both = [c for c in comparisons if not math.isnan(c.ratio) and storage_of(c.cell) == kind]
        if not both:
            continue
        worst = min(both, key=lambda c: c.ratio)
        lost = [c for c in both if c.ratio < 1]
        lines.append(
            f"- {k} thread(s), {kind}: median {factor(median(c.ratio for c in both))} over {len(both)} cells, "
            f"worst {factor(worst.ratio)} ({name_of(worst.cell)}), best {factor(max(c.ratio for c in both))}; "
            f"lost {len(lost)}"
        )
        lines += [
            f"    - lost: {name_of(c.cell)}: {c.peer} {seconds(c.peer_seconds)}, ours {seconds(c.ours)} "
            f"({factor(c.ratio)})"
            for c in sorted(lost, key=lambda c: c.ratio)
        ]
    lines += [
        f"    - ours missed it: {name_of(c.cell)}" + (f" ({c.peer} {seconds(c.peer_seconds)})" if c.peer else "")
        for c in comparisons
        if math.isnan(c.ours)
    ]
    lines += [f"    - no peer reached it: {name_of(c.cell)}" for c in comparisons if not c.peer]
    return lines


def storage_of(cell: Cell) -> str:
    return "dense" if cell[0].startswith("dense") else "sparse"


def overview(rows: list[Row]) -> list[str]:
    """A line per problem and loss: times faster than the best peer of each cell, least … most over alphas."""

    def span(comparisons: list[Comparison]) -> str:
        ratios = sorted(c.ratio for c in comparisons if not math.isnan(c.ratio))
        return f"{ratios[0]:.1f} … {ratios[-1]:.1f}" if ratios else "–"

    columns = [(k, target) for k in (1, 2) for target in TARGETS[1:]]
    found = {column: compare(time_to_target(rows, column[1]), column[0]) for column in columns}
    kinds = list(dict.fromkeys(row.cell[:2] for row in rows))
    head = [f"{k} thread{'s' if k > 1 else ''}, to {target:g}" for k, target in columns]
    lines = [f"| problem | {' | '.join(head)} |", f"|---|{'---|' * len(columns)}"]
    for problem, loss in kinds:
        own = [span([c for c in found[column] if c.cell[:2] == (problem, loss)]) for column in columns]
        lines.append(f"| {problem}, {loss} | {' | '.join(own)} |")
    medians = [
        factor(median([c.ratio for c in found[column] if not math.isnan(c.ratio)] or [math.nan]))
        for column in columns
    ]
    lines.append(f"| **median of all cells** | {' | '.join(medians)} |")
    return [*lines, ""]


def name_of(cell: Cell) -> str:
    return f"{cell[0]} {cell[1]} {cell[2]:g}"


def target_section(rows: list[Row], target: float) -> list[str]:
    times = time_to_target(rows, target)
    one, two = compare(times, 1), compare(times, 2)
    lines = [f"## Suboptimality {target:g}", "", "Ratio: best peer / ours; above 1 ours is faster.", ""]
    lines += [*verdict(one), *verdict(two), ""]
    lines.append("| cell | best peer, 1 thread | | ours, 1 | ratio | best peer, ≤ 2 threads | | ours, 2 | ratio |")
    lines.append("|---|---|---|---|---|---|---|---|---|")
    for a, b in zip(one, two, strict=True):
        cells = [name_of(a.cell)]
        for c in (a, b):
            cells += [c.peer or "none", seconds(c.peer_seconds), seconds(c.ours), factor(c.ratio)]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def by_peer(rows: list[Row], target: float) -> list[str]:
    """Every solver on its own: how often it reached the target, and how it compares with ours at as many threads."""
    times = time_to_target(rows, target)
    ran: dict[str, set[Cell]] = {}
    for row in rows:
        if row.solver != REFERENCE:
            ran.setdefault(row.solver, set()).add(row.cell)
    lines = [f"## Each solver, suboptimality {target:g}", "", "| solver | reached | median of its time / ours |"]
    lines.append("|---|---|---|")
    for solver, cells in sorted(ran.items()):
        ours = f"{OURS}-{2 if threads_of(solver) > 1 else 1}"
        pairs = [times[c][solver] / times[c][ours] for c in cells if solver in times[c] and ours in times[c]]
        reached = sum(solver in times[c] for c in cells)
        lines.append(f"| {solver} | {reached} of {len(cells)} | {factor(median(pairs) if pairs else math.nan)} |")
    return [*lines, ""]


def failures(rows: list[Row]) -> list[str]:
    stopped = [row for row in rows if row.status != "ok"]
    lines = [
        "## Stopped",
        "",
        "Fits that passed the limit or failed; the solver's looser runs of the cell count.",
        "",
    ]
    lines.append("| solver | passed the limit | failed | what it said |")
    lines.append("|---|---|---|---|")
    for solver in sorted({row.solver for row in stopped}):
        own = [row for row in stopped if row.solver == solver]
        said = sorted({row.message[:100].replace("|", "/") for row in own if row.status == "failed"})
        limits = sum(row.status == "limit" for row in own)
        lines.append(f"| {solver} | {limits} | {len(own) - limits} | {'; '.join(said[:2])} |")
    return [*lines, ""]


def setting(about: dict[str, Any]) -> list[str]:
    lines = [f"{about['cpu']}, {about['cores']} cores, {about['system']}, Python {about['python']}, commit "]
    lines[0] += f"{about['commit']}; limit {about['limit']:g} s a fit. " + ", ".join(
        f"{name} {version}" for name, version in about["versions"].items()
    )
    if about["not raced"]:
        lines += [
            "",
            "Not raced: "
            + "; ".join(f"{n} ({' '.join(why.split())[:200]})" for n, why in about["not raced"].items()),
        ]
    return [*lines, ""]


# ------------------------------------------------------------------------------------------------ figures


def profile(rows: list[Row], target: float, axis: Any) -> None:
    """Share of cells that a solver wins within a factor of the fastest (Dolan and Moré)."""
    times = time_to_target(rows, target)
    solvers = sorted({row.solver for row in rows if row.solver != REFERENCE})
    for solver in solvers:
        cells = {row.cell for row in rows if row.solver == solver}
        factors = sorted(times[c][solver] / min(times[c].values()) for c in cells if solver in times[c])
        if factors:
            share = [(k + 1) / len(cells) for k in range(len(factors))]
            ours = solver.startswith(OURS)
            style = {"lw": 2.5, "color": "black"} if ours else {"lw": 1}
            axis.step(
                factors, share, where="post", label=solver, ls="-" if threads_of(solver) == 1 else "--", **style
            )
    axis.set(
        xscale="log", xlabel="within this factor of the fastest", title=f"suboptimality {target:g}", ylim=(0, 1.02)
    )


def times_by_ratio(rows: list[Row], problem: str, loss: str, target: float, axis: Any) -> None:
    times = {c: t for c, t in time_to_target(rows, target).items() if c[:2] == (problem, loss)}
    for solver in sorted({s for t in times.values() for s in t}):
        points = sorted((cell[2], t[solver]) for cell, t in times.items() if solver in t)
        style = {"lw": 2.5, "color": "black"} if solver.startswith(OURS) else {"lw": 1}
        axis.plot(
            *zip(*points, strict=True), marker=".", label=solver, ls="-" if threads_of(solver) == 1 else "--", **style
        )
    axis.set(
        xscale="log", yscale="log", xlabel="alpha / alpha_max", title=f"{problem}, {loss}: seconds to {target:g}"
    )
    axis.invert_xaxis()
    axis.legend(fontsize=6)


def draw(rows: list[Row], folder: Path) -> list[Path]:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    made = []
    figure, axes = pyplot.subplots(1, len(TARGETS), figsize=(6 * len(TARGETS), 5), sharey=True)
    for target, axis in zip(TARGETS, axes, strict=True):
        profile(rows, target, axis)
    axes[0].set_ylabel("share of cells")
    axes[-1].legend(fontsize=6, loc="lower right")
    figure.tight_layout()
    profiles = save_both(figure, folder / "race-profile.png")
    for problem in dict.fromkeys(row.problem for row in rows):
        losses = list(dict.fromkeys(row.loss for row in rows if row.problem == problem))
        figure, axes = pyplot.subplots(1, len(losses), figsize=(7 * len(losses), 5), squeeze=False)
        for loss, axis in zip(losses, axes[0], strict=True):
            times_by_ratio(rows, problem, loss, 1e-5, axis)
        made.append((figure, f"race-{problem}.png"))
    for figure, name in made:
        figure.tight_layout()
        figure.savefig(folder / name, dpi=110)
        pyplot.close(figure)
    return [*profiles, *(folder / name for _, name in made)]


def load_rows(folder: Path) -> list[Row]:
    from .problems import NAMES

    rows = [row for name in NAMES for row in read_rows(folder / f"race-{name}.csv")]
    return with_suboptimality(rows)


def summary(rows: Iterable[Row], about: dict[str, Any], other: list[from_rows.Row]) -> str:
    rows = list(rows)
    lines = ["# The race", "", "Written by `make bench-report`; rows in `race-*.csv`.", "", *setting(about)]
    lines += ["How many times faster ours is than the best peer of each cell:", "", *overview(rows)]
    for target in TARGETS:
        lines += target_section(rows, target)
    return "\n".join(lines + by_peer(rows, 1e-5) + failures(rows) + from_csr(other))


def from_csr(rows: list[from_rows.Row]) -> list[str]:
    if not rows:
        return []
    text = (
        "Whole fits of estimators with an intercept, conversions included (`make bench-users`). Ours is certified to "
    )
    text += f"1e-4 at its default settings, peers reach a true {from_rows.ERROR:g}."
    return ["## From CSR, the estimator's fit included", "", text, "", *from_rows.table(rows)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.race.report", description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    folder = parser.parse_args().results
    rows = load_rows(folder)
    if not rows:
        raise SystemExit(f"no rows in {folder}: run make bench first")
    about = json.loads((folder / "race-configuration.json").read_text())
    text = summary(rows, about, read_table(folder / from_rows.FILE, from_rows.Row))
    (folder / "race-summary.md").write_text(text)
    for path in draw(rows, folder):
        print(path)
    print(text)


if __name__ == "__main__":
    main()
