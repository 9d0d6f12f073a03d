"""Do the tests of the theorem notice a wrong theory? Breaks it in one way after the other and runs them on each.

    python tools/mutate_theorem.py              every mutation, and which tests fail for it
    python tools/mutate_theorem.py --quick      ends each run at the first failure

Each run is a process of its own, in which one function is replaced before the tests are imported; no file changes.
The exit code is 1 if the tests fail without a mutation or pass with one.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import blockgreedy.backends.reference as reference
import blockgreedy.partitions.theory as theory

ROOT = Path(__file__).parent.parent
TESTS = ("test_theorem.py", "test_theorem_norms.py")


def divide_rate_bound() -> None:
    whole = theory.rate_bound
    theory.rate_bound = lambda *args, **named: whole(*args, **named) / 20


def halve_epsilon() -> None:
    whole = theory.epsilon
    theory.epsilon = lambda *args: whole(*args) / 2


def accept_anything() -> None:
    chance = random.Random(0)
    reference.accept = lambda problem, w, block, options: [int(chance.choice(list(block)))]


MUTATIONS: dict[str, Callable[[], None]] = {
    "none": lambda: None,
    "rate_bound divided by 20": divide_rate_bound,
    "epsilon halved": halve_epsilon,
    "accept takes a random feature of the block": accept_anything,
}


class Failures:
    """A plugin of pytest that counts what failed, by the name of the test without its parameters."""

    def __init__(self) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.n_tests = 0

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.n_tests += report.when == "call"
        if report.failed:
            self.counts[report.nodeid.split("::")[1].split("[")[0]] += 1


def run_mutated(name: str, quick: bool) -> None:
    """In a process of its own: prints what failed, and exits with the number of pytest."""
    MUTATIONS[name]()
    found = Failures()
    options = ["-p", "no:cacheprovider", *(["-x"] if quick else [])]
    with contextlib.redirect_stdout(io.StringIO()):
        code = pytest.main([*options, *(str(ROOT / "tests" / name) for name in TESTS)], plugins=[found])
    so_far = " before the first failure ended the run" if quick and found.counts else ""
    print(f"{name}: {found.counts.total()} of {found.n_tests} tests fail{so_far}")
    for test, count in sorted(found.counts.items()):
        print(f"    {count:3d}  {test}")
    sys.exit(code)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="end each run at the first failure")
    parser.add_argument("--only", choices=MUTATIONS, help="this mutation alone, in this process")
    asked = parser.parse_args()
    if asked.only:
        run_mutated(asked.only, asked.quick)
    is_right = True
    for name in MUTATIONS:
        command = [sys.executable, __file__, "--only", name, *(["--quick"] if asked.quick else [])]
        sys.stdout.flush()
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        expected = pytest.ExitCode.OK if name == "none" else pytest.ExitCode.TESTS_FAILED
        is_right &= code == expected
        if code != expected:
            print(f"{name}: pytest ended with {code}, expected {int(expected)}", file=sys.stderr)
    print("every mutation was noticed" if is_right else "NOT every mutation was noticed")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
