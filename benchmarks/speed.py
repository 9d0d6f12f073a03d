"""The picture and the table of the README: seconds of one fit, ours beside other packages a Python user might pick.

    python benchmarks/speed.py      # results/race-*.csv → docs/img/speed-light.svg, speed-dark.svg, README.md

Nothing is measured here; make bench does that.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.race.measure import time_to_target  # noqa: E402
from benchmarks.race.report import load_rows  # noqa: E402

LOSS, RATIO, TARGET = "logistic", 0.01, 1e-5
SETS = {
    "dorothea": "Dorothea (drug discovery)\n1,150 × 100,000",
    "reuters": "Reuters (news)\n13,476 × 21,074",
    "enron": "Enron (e-mail)\n33,197 × 24,328",
    "news20": "20 Newsgroups (phrases)\n19,953 × 1,350,639",
}
PACKAGES = {
    "liblinear": "LIBLINEAR", "liblinear-multicore": "LIBLINEAR", "celer": "celer", "celer-f32": "celer",
    "skglm-anderson": "skglm", "skglm-pn": "skglm", "snapml": "snapml", "adelie": "adelie",
}  # fmt: skip
INK = {"light": ("#1f2328", "#8a8f98", "#c9311f"), "dark": ("#e6e8eb", "#9aa0a9", "#ff7a66")}


@dataclass(frozen=True)
class Fit:
    ours: float
    peers: dict[str, float]  # seconds of each package's fastest way that reached the target

    @property
    def best(self) -> str:
        return min(self.peers, key=lambda name: self.peers[name])


def fits(folder: Path = ROOT / "benchmarks" / "results") -> dict[str, Fit]:
    """One for each set: two threads for all who can use them."""
    times = time_to_target(load_rows(folder), TARGET)
    found = {}
    for name in SETS:
        cell = times[name, LOSS, RATIO]
        peers: dict[str, float] = {}
        for solver, seconds in cell.items():
            package = PACKAGES.get(solver.rsplit("-", 1)[0])
            if package:
                peers[package] = min(seconds, peers.get(package, seconds))
        found[name] = Fit(cell["blockgreedy-2"], peers)
    return found


def in_words(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds >= 1 else f"{1e3 * seconds:.0f} ms"


def table(found: dict[str, Fit]) -> str:
    """Markdown."""
    lines = [
        "| data (rows × features) | blockgreedy | fastest other package | LIBLINEAR | speed-up over the fastest |"
    ]
    lines.append("|---|---|---|---|---|")
    for name, fit in found.items():
        title = SETS[name].replace("\n", ", ")
        liblinear = in_words(fit.peers["LIBLINEAR"]) if "LIBLINEAR" in fit.peers else "–"
        cells = [title, f"**{in_words(fit.ours)}**", f"{in_words(fit.peers[fit.best])} ({fit.best})", liblinear]
        lines.append(f"| {' | '.join(cells)} | {fit.peers[fit.best] / fit.ours:.1f}× |")
    return "\n".join(lines)


def draw(found: dict[str, Fit], shade: str) -> Any:
    """A line for each set, seconds from left to right; the fewer the better."""
    from matplotlib.figure import Figure

    ink, soft, ours = INK[shade]
    figure = Figure(figsize=(8.2, 3.9), layout="constrained")
    axis = figure.subplots()
    for row, fit in enumerate(found.values()):
        axis.hlines(row, fit.ours, max(fit.peers.values()), color=soft, lw=1, alpha=0.6)
        axis.plot(fit.ours, row, "o", ms=11, color=ours, label="blockgreedy" if row == 0 else None)
        label = in_words(fit.ours) if row < len(found) - 1 else f"blockgreedy {in_words(fit.ours)}"
        axis.annotate(label, (fit.ours, row), xytext=(0, 9), textcoords="offset points",
                      ha="center", color=ours, fontsize=9, weight="bold")  # fmt: skip
        for place, (name, seconds) in enumerate(sorted(fit.peers.items(), key=lambda item: item[1])):
            axis.plot(seconds, row, "o", ms=6, color=soft)
            axis.annotate(name, (seconds, row), xytext=(0, (7, -14, 16, -23)[place % 4]), textcoords="offset points",
                          ha="center", color=ink, fontsize=8)  # fmt: skip
    axis.set_yticks(range(len(found)), [SETS[name] for name in found])
    axis.set(xscale="log", ylim=(-0.6, len(found) - 0.4))
    ticks = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
    axis.set_xticks([], minor=True)
    axis.set_xlabel("seconds of one fit (logarithmic): further left is faster")
    axis.tick_params(colors=ink, which="both")
    axis.xaxis.label.set_color(ink)
    axis.grid(axis="x", color=soft, alpha=0.25)
    for side, spine in axis.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(soft)
    axis.tick_params(axis="y", length=0)
    return figure


def main() -> None:
    import matplotlib

    matplotlib.rcParams["svg.hashsalt"] = "blockgreedy"  # the same bytes from the same numbers
    found = fits()
    for shade in INK:
        place = ROOT / "docs" / "img" / f"speed-{shade}.svg"
        draw(found, shade).savefig(place, transparent=True, metadata={"Date": None, "Creator": None})
        print(place.relative_to(ROOT))
    readme = ROOT / "README.md"
    readme.write_text(with_table(readme.read_text(encoding="utf-8"), table(found)), encoding="utf-8")
    print(table(found))


def with_table(text: str, made: str) -> str:
    """The README with the table between its marks renewed."""
    before, rest = text.split("<!-- speed: benchmarks/speed.py writes this table -->\n")
    return (
        f"{before}<!-- speed: benchmarks/speed.py writes this table -->\n{made}\n<!-- /speed -->"
        + rest.split("<!-- /speed -->")[1]
    )


if __name__ == "__main__":
    main()
