"""Tables, verdicts and pictures of what benchmarks/frontier.py measured."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

Row = dict[str, Any]

UPDATES = {
    "add": "add",
    "add, step scale of the theory": "add, theory's step",
    "line-search": "line-search",
    "joint": "joint",
    "sweep": "sweep",
}
INK = {"light": ("#1f2328", "#8a8f98", "#c9311f", "#127a72"), "dark": ("#e6e8eb", "#9aa0a9", "#ff7a66", "#4fc4b8")}
MOST = 20  # a cell where both ends need fewer iterations than this says little about their ratio


def unique(rows: list[Row], key: str) -> list[Any]:
    return list(dict.fromkeys(row[key] for row in rows))


def those(rows: list[Row], **wanted: Any) -> list[Row]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def count_text(row: Row, error: str) -> str:
    """Iterations to an error; where it was not reached, whether the run diverged or how long it was."""
    if math.isfinite(row[error]):
        return f"{row[error]:.0f}"
    return "diverged" if row["status"] == "diverged" else f"> {row['max_iter']:.0f}"


def table(rows: list[Row]) -> list[str]:
    """One set: its blocks by rows; iterations to 0.1 and to 0.01 for each update and alpha."""
    alphas = unique(rows, "alpha")
    runs = [(update, alpha) for alpha in alphas for update in UPDATES]
    head = ["blocks", "load", "mass", "rho_block", "any partition", *(f"active, {alpha}" for alpha in alphas)]
    head += [f"{UPDATES[update]}, {alpha}" for update, alpha in runs]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for blocks in unique(rows, "blocks"):
        mine = those(rows, blocks=blocks)
        first = mine[0]
        cells = [
            blocks,
            f"{first['load']:.2f}",
            f"{first['mass']:.2f}",
            rho_text(first),
            f"{first['any partition']:.2f}",
        ]
        cells += [f"{those(mine, alpha=alpha)[0]['active']:.0f}" for alpha in alphas]
        for update, alpha in runs:
            (run,) = those(mine, update=update, alpha=alpha)
            texts = [count_text(run, error) for error in ("0.1", "0.01")]
            cells.append(texts[1] if texts[0] == texts[1] else " / ".join(texts))
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def rho_text(row: Row) -> str:
    likely = "" if math.isnan(row["rho estimate"]) else f" (~ {row['rho estimate']:.1f})"
    return f"{row['rho lower']:.1f} … {row['rho upper']:.1f}{likely}"


def spent(row: Row) -> float:
    """Iterations to 0.01; what the run was given where it did not get there, a lower bound."""
    return float(row["0.01"] if math.isfinite(row["0.01"]) else row["max_iter"])


def compare(rows: list[Row], update: str, one: str, other: str) -> tuple[float, float, int]:
    """Geometric means of other/one in iterations and in iterations × load, and over how many cells.

    Cells where a run diverged are left out, as are those that neither reached and those that are over at once.
    """
    logs = []
    for row in those(rows, update=update, blocks=one):
        (rival,) = those(rows, update=update, blocks=other, set=row["set"], alpha=row["alpha"])
        reached = [math.isfinite(run["0.01"]) for run in (row, rival)]
        diverged = any(missed(run) == "diverged" for run in (row, rival))
        if any(reached) and not diverged and max(spent(row), spent(rival)) >= MOST:
            ratio = spent(rival) / spent(row)
            logs.append((math.log(ratio), math.log(ratio * rival["load"] / row["load"])))
    if not logs:
        return math.nan, math.nan, 0
    means = [math.exp(sum(pair[k] for pair in logs) / len(logs)) for k in (0, 1)]
    return means[0], means[1], len(logs)


def missed(row: Row) -> str:
    """Why a run did not reach 0.01: "diverged" or "slow"; empty if it did."""
    return "" if math.isfinite(row["0.01"]) else "diverged" if row["status"] == "diverged" else "slow"


def verdicts(rows: list[Row]) -> list[str]:
    """For each update: what blocks do not reach, and capped ones against both ends of the knob in numbers."""
    real = [row for row in rows if row["set"] != "grouped"]
    lines = [
        "| update | blocks | reached | diverged | clustered / these | with load | balanced / these | with load |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for update, title in UPDATES.items():
        for blocks in unique(rows, "blocks"):
            mine = those(real, update=update, blocks=blocks)
            whys = [missed(row) for row in mine]
            texts = [f"{whys.count('')} of {len(mine)}", f"{whys.count('diverged')}"]
            for rival in ("clustered", "balanced"):
                iterations, loaded, cells = compare(real, update, blocks, rival)
                same = blocks == rival or cells == 0
                texts += ["–", "–"] if same else [f"{iterations:.2f} ({cells})", f"{loaded:.2f}"]
            lines.append(f"| {title} | {blocks} | {' | '.join(texts)} |")
    return lines


def dominance(rows: list[Row]) -> list[str]:
    """Sentences on rho_block and load: does a value of the knob beat both ends, and what is left to gain?"""
    said = []
    for name in unique(rows, "set"):
        mine = {row["blocks"]: row for row in those(rows, set=name)}
        ends, middle = mine["clustered"], [row for blocks, row in mine.items() if blocks.startswith("capped")]
        best = min(middle, key=lambda row: upper_of(row))
        even = min(middle, key=lambda row: row["load"])
        bounds = (even["rho lower"] < ends["rho lower"], upper_of(even) < upper_of(ends))
        verb = "with both bounds below" if all(bounds) else "beside"
        verb = "below" if even["rho upper"] < ends["rho lower"] else verb
        said.append(
            f"{name}: at load {even['load']:.2f} rho_block of capped blocks is {rho_text(even)}, {verb} that of "
            f"clustered ones ({rho_text(ends)} at load {ends['load']:.1f}); balanced ones "
            f"{rho_text(mine['balanced'])} at {mine['balanced']['load']:.2f}. The least upper bound or estimate is "
            f"that of {best['blocks']}, {rho_text(best)}. No partition of load {even['load']:.2f} is below "
            f"{even['any partition']:.2f}."
        )
    return said


def upper_of(row: Row) -> float:
    return float(row["rho upper"] if math.isnan(row["rho estimate"]) else row["rho estimate"])


def short_table(rows: list[Row]) -> str:
    """Both ends and the default of the knob, for the documentation: iterations to 0.01."""
    head = ["set", "blocks", "load", "mass", "rho_block", "any partition", "active", "add, λ₀"]
    head += [f"{title}, λ₀/100" for title in UPDATES.values()]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for name in unique(rows, "set"):
        large, small = unique(those(rows, set=name), "alpha")
        for blocks in ("random", "balanced", "capped 1.1", "clustered"):
            mine = those(rows, set=name, blocks=blocks)
            first, active = mine[0], [those(mine, alpha=alpha)[0]["active"] for alpha in (large, small)]
            cells = [name, blocks, f"{first['load']:.2f}", f"{first['mass']:.2f}", rho_text(first)]
            cells += [f"{first['any partition']:.2f}", f"{active[0]:.0f}, {active[1]:.0f}"]
            runs = [("add", large), *((update, small) for update in UPDATES)]
            cells += [count_text(those(mine, update=update, alpha=alpha)[0], "0.01") for update, alpha in runs]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def with_table(text: str, made: str) -> str:
    """The page with the table between its marks renewed."""
    begin, end = "<!-- frontier: benchmarks/frontier.py writes this table -->\n\n", "\n\n<!-- /frontier -->"
    before, rest = text.split(begin)
    return before + begin + made + end + rest.split(end)[1]


def markdown(rows: list[Row]) -> str:
    lines = [
        "Iterations to an error of 0.1 / 0.01; *load* and *mass*: the heaviest block over the mean, in nonzeros and",
        "in gradient mass; *any partition*: no partition of the same load has a smaller rho_block; *active*: blocks",
        "that hold a weight of the solution.",
        "",
    ]
    for name in unique(rows, "set"):
        lines += [f"## {name}", "", *table(those(rows, set=name)), ""]
    lines += ["## Rho_block and load", "", *(f"- {line}" for line in dominance(rows)), ""]
    lines += [
        "## Against both ends of the knob",
        "",
        "Over the real sets and both alphas. *Reached*: runs that came to an error of 0.01; some diverged before.",
        "*Clustered / these*: geometric mean of the ratio of iterations to that error, above 1 where these blocks",
        "need fewer; in parentheses over how many cells: those that one of the two reached, where neither diverged",
        f"and where one of them needed {MOST} iterations or more. A run that did not get there counts with the",
        "iterations it was given, so that ratios are then bounds. *With load*: iterations × heaviest block, what",
        "threads that own blocks wait for.",
        "",
        *verdicts(rows),
    ]
    return "\n".join(lines) + "\n"


def draw(rows: list[Row], folder: Path) -> None:
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = "blockgreedy"  # the same bytes from the same numbers
    names = [name for name in unique(rows, "set") if name != "grouped"]
    for shade, (ink, soft, red, teal) in INK.items():
        figure = Figure(figsize=(8.4, 2.9 * math.ceil(len(names) / 2) + 0.4), layout="constrained")
        axes = figure.subplots(math.ceil(len(names) / 2), 2, squeeze=False)
        for axis, name in zip(axes.ravel(), names, strict=False):
            _panel(axis, those(rows, set=name), ink, soft, red, teal)
            axis.set_title(name, color=ink, fontsize=11)
        for axis in axes[-1]:
            axis.set_xlabel("heaviest block / mean, nonzeros", color=ink, fontsize=9)
        for axis in axes[:, 0]:
            axis.set_ylabel("rho_block", color=ink, fontsize=9)
        for axis in axes.ravel()[len(names) :]:
            axis.set_visible(False)
        place = folder / f"frontier-{shade}.svg"
        figure.savefig(place, transparent=True, metadata={"Date": None, "Creator": None})


def _panel(axis: Any, rows: list[Row], ink: str, soft: str, red: str, teal: str) -> None:
    found = {row["blocks"]: row for row in rows}
    capped = [row for blocks, row in found.items() if blocks.startswith("capped")]
    for blocks, row in found.items():
        color = teal if row in capped else red if blocks == "clustered" else ink
        axis.vlines(row["load"], row["rho lower"], row["rho upper"], color=color, lw=1.5, alpha=0.35)
        axis.plot(row["load"], row["rho lower"], "o", ms=5, color=color)
        if not math.isnan(row["rho estimate"]):
            axis.plot(row["load"], row["rho estimate"], "_", ms=8, color=color)
        if row not in capped:
            below = row["rho lower"] > 1.6 * capped[0]["rho lower"]  # there is room between balanced and capped
            places = {"random": ((6, -3), "left"), "balanced": ((4, -12 if below else 5), "left")}
            side, align = places.get(blocks, ((0, -13), "center"))
            axis.annotate(blocks, (row["load"], row["rho lower"]), xytext=side, textcoords="offset points",
                          color=color, fontsize=8.5, ha=align)  # fmt: skip
    axis.plot([row["load"] for row in capped], [row["rho lower"] for row in capped], color=teal, lw=1.2)
    middle = capped[len(capped) // 2]
    axis.annotate("capped", (middle["load"], middle["rho lower"]), xytext=(0, -14), textcoords="offset points",
                  color=teal, fontsize=8.5, ha="center")  # fmt: skip
    line = sorted((row["load"], row["any partition"]) for row in rows)
    axis.plot([x for x, _ in line], [y for _, y in line], "--", color=soft, lw=1.2)
    axis.text(0.02, 0.02, "no partition is below the dashed line", transform=axis.transAxes, color=soft, fontsize=8)
    axis.set(xscale="log", yscale="log", ylim=(0.75, 48), xlim=(0.93, 32))
    for set_ticks, ticks in ((axis.set_xticks, (1, 2, 4, 8, 16)), (axis.set_yticks, (1, 2, 4, 8, 16, 32))):
        set_ticks(ticks, [str(tick) for tick in ticks], minor=False)
        set_ticks([], minor=True)
    axis.tick_params(colors=ink, which="both", labelsize=8)
    axis.grid(color=soft, alpha=0.2)
    for side, spine in axis.spines.items():
        spine.set_visible(side in ("bottom", "left"))
        spine.set_color(soft)
