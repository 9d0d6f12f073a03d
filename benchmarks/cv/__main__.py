"""Runs the cross-validations; what has run before is kept (results/cv.csv) and not run again."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from functools import partial
from pathlib import Path

from rich.console import Console

from ..paths.cell import grid
from ..paths.options import shared_parser
from ..quiet import wait_for_quiet
from ..race import problems
from ..race.__main__ import configuration, say_what_is_missing
from ..race.measure import Settings as RaceSettings
from ..race.peers import Peer, Solver, available
from ..race.worker import Worker
from ..table import read_table, write_table
from .cell import CvCell, make_folds
from .measure import Row, race_cell
from .peers import PEERS, CvGlmnet
from .reference import reference


def arguments() -> argparse.Namespace:
    parser = shared_parser("python -m benchmarks.cv", __doc__, "cross-validation", 1800.0)
    parser.add_argument("--folds", type=int, default=5)
    return parser.parse_args()


def solvers_for(peers: list[Peer], data: problems.Data, loss: str, options: argparse.Namespace) -> list[Solver]:
    """All with every thread; cv.glmnet, whose processes each get a copy of X, also with one."""
    found = []
    for peer in peers:
        if peer.accepts(loss, data.storage, data.X.shape[1]):
            found += [Solver(peer, k) for k in {options.threads} | ({1} if isinstance(peer, CvGlmnet) else set())]
    wanted = options.solvers
    return [s for s in found if wanted is None or any(s.label.startswith(start) for start in wanted)]


def main() -> None:
    options = arguments()
    console = Console(highlight=False, soft_wrap=True)
    peers, absent = available(PEERS)
    options.results.mkdir(parents=True, exist_ok=True)
    about = configuration(peers, absent, RaceSettings(options.limit, options.repeats))
    (options.results / "cv-configuration.json").write_text(json.dumps(about, indent=2) + "\n")
    gone = say_what_is_missing(console, absent, options.problems)
    try:
        for name in options.problems:
            if name not in gone:
                race_problem(name, peers, options, console)
    except KeyboardInterrupt:
        sys.exit("interrupted; what is finished is kept")


def race_problem(name: str, peers: list[Peer], options: argparse.Namespace, console: Console) -> None:
    data = problems.load(name)
    path = options.results / "cv.csv"
    others = partial(wait_for_quiet, options.quiet, options.wait)
    folds = make_folds(data.label, options.folds)
    console.rule(str(data))
    with tempfile.TemporaryDirectory(prefix="cv-") as folder:
        problems.hand_over(data, Path(folder))
        for loss in options.losses:
            own = {row.solver for row in read_table(path, Row) if row.cell == (name, loss)}
            racing = [s for s in solvers_for(peers, data, loss, options) if options.again or s.label not in own]
            if not racing:
                continue
            console.print(f"[bold]{name} {loss}[/bold]: {len(racing)} solvers")
            cell = CvCell(data.X, data.y(loss), loss, grid(data, loss, options.n_alphas, options.eps), folds)
            expected = reference(options.results / "cv-reference.csv", name, cell)
            workers = {solver.label: Worker(solver, options.memory) for solver in racing}
            try:
                new = race_cell(
                    name, Path(folder), cell, expected, workers, options.limit, options.repeats, others,
                    console.print,
                )  # fmt: skip
            finally:
                for worker in workers.values():
                    worker.stop()
            replaced = {row.solver for row in new}
            kept = [row for row in read_table(path, Row) if row.cell != (name, loss) or row.solver not in replaced]
            write_table(path, Row, sorted(kept + new, key=lambda row: (row.problem, row.loss)))


if __name__ == "__main__":
    main()
