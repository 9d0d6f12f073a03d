"""Runs the paths; what has run before is kept (results/paths.csv) and not run again."""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from functools import partial
from pathlib import Path

from rich.console import Console

from ..quiet import wait_for_quiet
from ..race import problems
from ..race.__main__ import configuration, say_what_is_missing
from ..race.measure import Settings as RaceSettings
from ..race.peers import Peer, Solver, available
from ..race.worker import Worker, workers_until_done
from ..table import read_table, write_table
from .cell import grid
from .measure import Row, Settings, race_cell
from .options import shared_parser
from .peers import PEERS
from .reference import reference


def arguments() -> argparse.Namespace:
    parser = shared_parser("python -m benchmarks.paths", __doc__, "path", 900.0)
    parser.add_argument(
        "--patience",
        type=float,
        default=math.inf,
        help="limit also by this many times the cell's fastest peer so far",
    )
    return parser.parse_args()


def solvers_for(peers: list[Peer], data: problems.Data, loss: str, options: argparse.Namespace) -> list[Solver]:
    """Each with as many threads as it can use; those that may be better off with one thread run with one as well."""
    found = []
    for peer in peers:
        if peer.accepts(loss, data.storage, data.X.shape[1]):
            most = min(options.threads, peer.max_threads)
            alone = peer.name != "blockgreedy" and most > 1
            found += [Solver(peer, k) for k in ([1, most] if alone else [most])]
    wanted = options.solvers
    return [s for s in found if wanted is None or any(s.label.startswith(start) for start in wanted)]


def still_wanted(rows: list[Row], solver: str, limit: float) -> bool:
    """No rows yet, or a limit below today's was what stopped it."""
    own = [row for row in rows if row.solver == solver]
    return not own or (own[-1].status == "limit" and own[-1].limit < limit)


def main() -> None:
    options = arguments()
    console = Console(highlight=False, soft_wrap=True)
    peers, absent = available(PEERS)
    options.results.mkdir(parents=True, exist_ok=True)
    about = configuration(peers, absent, RaceSettings(options.limit, options.repeats, patience=options.patience))
    (options.results / "paths-configuration.json").write_text(json.dumps(about, indent=2) + "\n")
    gone = say_what_is_missing(console, absent, options.problems)
    with workers_until_done() as workers:
        for name in options.problems:
            if name not in gone:
                race_problem(name, peers, workers, options, console)


def race_problem(
    name: str, peers: list[Peer], workers: dict[str, Worker], options: argparse.Namespace, console: Console
) -> None:
    data = problems.load(name)
    path = options.results / "paths.csv"
    others = partial(wait_for_quiet, options.quiet, options.wait)
    settings = Settings(options.limit, options.repeats, options.patience)
    console.rule(str(data))
    with tempfile.TemporaryDirectory(prefix="paths-") as folder:
        problems.hand_over(data, Path(folder))
        for loss in options.losses:
            own = [row for row in read_table(path, Row) if row.cell == (name, loss)]
            racing = solvers_for(peers, data, loss, options)
            if not options.again:
                racing = [s for s in racing if still_wanted(own, s.label, settings.limit)]
            if not racing:
                continue
            console.print(f"[bold]{name} {loss}[/bold]: {len(racing)} solvers")
            alphas = grid(data, loss, options.n_alphas, options.eps)
            best, _ = reference(options.results / "paths-reference.csv", data, loss, alphas)
            for solver in racing:
                workers.setdefault(solver.label, Worker(solver, options.memory))
            chosen = {solver.label: workers[solver.label] for solver in racing}
            keep = partial(add_rows, path)
            race_cell(data, Path(folder), loss, alphas, best, chosen, settings, others, keep, console.print)


def add_rows(path: Path, new: list[Row]) -> None:
    """Into the file, in place of what these solvers showed in these cells before."""
    replaced = {(row.cell, row.solver) for row in new}
    kept = [row for row in read_table(path, Row) if (row.cell, row.solver) not in replaced]
    write_table(path, Row, sorted(kept + new, key=lambda row: (row.problem, row.loss, row.solver)))


if __name__ == "__main__":
    main()
