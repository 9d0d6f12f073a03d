"""What the races of paths and of cross-validations share on their command lines."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..race import problems
from ..race.__main__ import RESULTS


def shared_parser(program: str, description: str | None, what: str, limit: float) -> argparse.ArgumentParser:
    """``what`` is one unit of work, such as a path; ``limit`` the seconds that it may take."""
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("--problems", nargs="+", default=problems.REAL, choices=problems.NAMES, metavar="NAME")
    parser.add_argument("--losses", nargs="+", default=problems.LOSSES, choices=problems.LOSSES)
    parser.add_argument("--n-alphas", type=int, default=100)
    parser.add_argument("--eps", type=float, default=1e-3, help="smallest alpha / alpha_max")
    parser.add_argument("--solvers", nargs="+", help="beginnings of solver names, such as celer or blockgreedy")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit", type=float, default=limit, help=f"seconds for one {what}")
    parser.add_argument("--repeats", type=int, default=3, help=f"timed runs of a {what} below 10 s")
    parser.add_argument("--memory", type=float, default=12.0, help="GB that one solver may allocate")
    parser.add_argument("--quiet", type=float, default=0.3, help=f"cores that others may use when a {what} begins …")
    parser.add_argument("--wait", type=float, default=0.0, help="… or it waits, but not longer than this (seconds)")
    parser.add_argument("--again", action="store_true", help="run also what has run before, and replace it")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser
