"""Runs the race; what has run before is kept (results/race-*.csv) and not run again."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import tempfile
from importlib import metadata
from pathlib import Path

from rich.console import Console

from . import problems
from .install import FAILED
from .measure import Settings, hopeless, race_cell, read_rows, still_wanted, with_suboptimality, write_rows
from .peers import Peer, Solver, available
from .worker import Worker, workers_until_done

RESULTS = Path(__file__).parents[1] / "results"
PACKAGES = ("numpy", "scipy", "numba", "tabmat", "threadpoolctl")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.race", description=__doc__)
    parser.add_argument("--problems", nargs="+", default=problems.NAMES, choices=problems.NAMES, metavar="NAME")
    parser.add_argument("--losses", nargs="+", default=problems.LOSSES, choices=problems.LOSSES)
    parser.add_argument("--ratios", nargs="+", type=float, default=problems.RATIOS, help="alpha / alpha_max")
    parser.add_argument("--solvers", nargs="+", help="beginnings of solver names, such as celer or blockgreedy-1")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--limit", type=float, help="seconds for one fit (default 60, with --quick 10)")
    parser.add_argument("--repeats", type=int, help="timed runs of a short fit (default 5, with --quick 3)")
    parser.add_argument(
        "--patience",
        type=float,
        default=math.inf,
        help="no tighter tolerances after a fit that took this many times what the cell's fastest took to 1e-7",
    )
    parser.add_argument("--memory", type=float, default=12.0, help="GB that one solver may allocate")
    parser.add_argument("--quick", action="store_true", help="short limit, fewer repeats")
    parser.add_argument("--again", action="store_true", help="run also what has run before, and replace it")
    parser.add_argument(
        "--hopeless",
        action="store_true",
        help="race also where a solver's loosest tolerance failed at a larger ratio",
    )
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def versions(peers: list[Peer]) -> dict[str, str]:
    found = {peer.package: peer.version() for peer in peers}
    return found | {name: metadata.version(name) for name in PACKAGES if _installed(name)}


def _installed(name: str) -> bool:
    try:
        return bool(metadata.version(name))
    except metadata.PackageNotFoundError:
        return False


def configuration(peers: list[Peer], absent: dict[str, str], settings: Settings) -> dict[str, object]:
    cpu = next((line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    return {
        "cpu": cpu or platform.processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "commit": commit,
        "versions": versions(peers),
        "not raced": absent,
        "limit": settings.limit,
        "repeats": settings.most_repeats,
        "patience": str(settings.patience),
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def solvers_for(peers: list[Peer], data: problems.Data, loss: str, options: argparse.Namespace) -> list[Solver]:
    found = []
    for peer in peers:
        if peer.accepts(loss, data.storage, data.X.shape[1]):
            found += [Solver(peer, k) for k in peer.threads(data.storage) if k in options.threads]
    wanted = options.solvers
    return [s for s in found if wanted is None or any(s.label.startswith(start) for start in wanted)]


def say_what_is_missing(console: Console, absent: dict[str, str], wanted: list[str]) -> dict[str, str]:
    """Peers that cannot run here, and problems without data; returns these, with the reasons."""
    for name, reason in absent.items():
        console.print(f"[yellow]not raced:[/yellow] {name}: {reason}")
    gone = problems.missing(tuple(wanted))
    for name, reason in gone.items():
        console.print(f"[yellow]left out:[/yellow] {name}: {reason}")
    return gone


def main() -> None:
    options = arguments()
    console = Console(highlight=False, soft_wrap=True)
    limit = options.limit or (10.0 if options.quick else 60.0)
    settings = Settings(limit, options.repeats or (3 if options.quick else 5), patience=options.patience)
    peers, absent = available()
    failed = json.loads(FAILED.read_text()) if FAILED.exists() else {}
    absent |= failed
    about = configuration(peers, absent, settings)
    options.results.mkdir(parents=True, exist_ok=True)
    (options.results / "race-configuration.json").write_text(json.dumps(about, indent=2) + "\n")
    console.print(f"{about['cpu']}, {about['cores']} cores; commit {about['commit']}; limit {limit:g} s a fit")
    console.print("  ".join(f"{name} {version}" for name, version in about["versions"].items()))  # type: ignore[attr-defined]
    if hasattr(os, "getloadavg") and os.getloadavg()[0] > 0.5:
        console.print(
            f"[yellow]the machine is busy[/yellow] (load {os.getloadavg()[0]:.1f}): times will be worth little"
        )
    gone = say_what_is_missing(console, absent, options.problems)
    with workers_until_done() as workers:
        for name in options.problems:
            if name not in gone:
                race_problem(name, peers, workers, options, settings, console)


def race_problem(
    name: str,
    peers: list[Peer],
    workers: dict[str, Worker],
    options: argparse.Namespace,
    settings: Settings,
    console: Console,
) -> None:
    data = problems.load(name)
    console.rule(str(data))
    path = options.results / f"race-{name}.csv"
    with tempfile.TemporaryDirectory(prefix="race-") as folder:
        problems.hand_over(data, Path(folder))
        for loss in options.losses:
            for ratio in options.ratios:
                rows = read_rows(path)
                own = [row for row in rows if row.cell == (name, loss, ratio)]
                racing = solvers_for(peers, data, loss, options)
                if not options.again:
                    racing = [s for s in racing if still_wanted(own, s.label, settings.limit)]
                given_up = hopeless(rows, name, loss, ratio, settings.limit)
                for solver in [s for s in racing if s.label in given_up and not options.hopeless]:
                    racing.remove(solver)
                    console.print(
                        f"  {solver.label}: not raced, passed the limit at {given_up[solver.label]:g} already"
                    )
                if not racing:
                    continue
                console.print(f"[bold]{name} {loss}, alpha = {ratio:g} alpha_max[/bold]: {len(racing)} solvers")
                for solver in racing:
                    workers.setdefault(solver.label, Worker(solver, options.memory))
                chosen = {solver.label: workers[solver.label] for solver in racing}
                new = race_cell(data, Path(folder), loss, ratio, chosen, settings, console.print)
                replaced = {row.solver for row in new}
                kept = [
                    row for row in read_rows(path) if row.cell != (name, loss, ratio) or row.solver not in replaced
                ]
                write_rows(path, with_suboptimality(sorted(kept + new, key=lambda r: (r.loss, -r.ratio))))


if __name__ == "__main__":
    main()
