"""python -m hunt --seconds 60 --seed 0: hunts, prints a table and a small script for everything found."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from multiprocessing.connection import wait
from pathlib import Path

# before NumPy: the workers are as many as the cores that may be used
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from hunt.checks import run
from hunt.outcome import Finding, Outcome
from hunt.problems import CLASSES, make
from hunt.script import script
from hunt.workers import Worker, shrink_outside

_LIMIT = 30.0  # seconds for one case, after which it hangs
_SHRINK = 6.0  # seconds to make a finding small
_OUTSIDE = 3.0  # seconds for one trial of shrinking a hang
_LEAST = 1e-4  # seconds that count for a case while it runs
_LOST = ("hang", "crash")  # what takes the process with it


class Tally:
    """What was seen, by class."""

    def __init__(self, kinds: list[str]) -> None:
        self.problems: Counter[str] = Counter()
        self.late: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()
        self.errors: dict[str, list[tuple[float, int]]] = {kind: [] for kind in kinds}  # of stalls, and their seeds
        self.findings: dict[tuple[str, str], list[int]] = {}  # seeds by class and check

    def add(self, kind: str, seed: int, outcome: Outcome) -> Finding | None:
        """Returns the finding if it is the first of its check in this class."""
        self.problems[kind] += 1
        self.statuses.update(outcome.statuses)
        self.late[kind] += any(finding.check == "late" for finding in outcome.findings)
        self.errors[kind] += [(error, seed) for error in outcome.errors]
        worst = outcome.worst
        if worst is None:
            return None
        seeds = self.findings.setdefault((kind, worst.check), [])
        seeds.append(seed)
        return worst if len(seeds) == 1 else None

    def table(self) -> str:
        form = "{:12} {:>8} {:>8} {:>6} {:>20} {:>4}  {}"
        lines = [
            form.format("class", "problems", "findings", "stalls", "largest error (seed)", "late", "what was found")
        ]
        for kind, errors in self.errors.items():
            counts = {check: len(seeds) for (k, check), seeds in self.findings.items() if k == kind}
            largest = "{:.2g} ({})".format(*max(errors)) if errors else ""
            found = ", ".join(f"{n} {check}" for check, n in counts.items())
            numbers = self.problems[kind], sum(counts.values()), len(errors), largest, self.late[kind]
            lines.append(form.format(kind, *numbers, found or "none"))
        lines += [
            "",
            "how the runs ended: " + ", ".join(f"{n} {status}" for status, n in self.statuses.most_common()),
        ]
        return "\n".join(lines)


def hunt(kinds: list[str], seed: int, seconds: float, jobs: int) -> tuple[Tally, dict[tuple[str, str], str]]:
    """Runs until the time is over, then makes findings small; (what was seen, scripts by class and check)."""
    tally, scripts = Tally(kinds), {}
    workers = [Worker(_LIMIT) for _ in range(jobs)]
    began, shown = time.perf_counter(), 0.0
    given: Counter[str] = Counter()
    spent = dict.fromkeys(kinds, 0.0)  # seconds, of which every class gets as many: some take 1,000 times others'
    to_shrink: list[tuple[str, int, str]] = []
    try:
        while True:
            now = time.perf_counter() - began
            for worker in workers:
                if worker.task is None and now < seconds:
                    kind = min(kinds, key=lambda kind: spent[kind])
                    worker.give("run", kind, seed * 1_000_000 + given[kind])
                    given[kind] += 1
                    spent[kind] += _LEAST
                elif worker.task is None and to_shrink:
                    worker.give("shrink", *to_shrink.pop(0), _SHRINK)
            busy = [worker for worker in workers if worker.task is not None]
            if not busy:
                break
            wait([worker.pipe for worker in busy], 0.2)
            for worker in busy:
                name, (kind, case_seed, *rest) = worker.task
                answer = worker.answer()
                if answer is None:
                    continue
                if name == "run":
                    spent[kind] += time.perf_counter() - worker.began
                    new = tally.add(kind, case_seed, answer)
                    if new is not None:
                        print(f"{now:6.1f} s  {kind}:{case_seed}  {new.check}: {new.detail}", flush=True)
                        to_shrink += [(kind, case_seed, new.check)] if new.check not in _LOST else []
                elif isinstance(answer, Outcome):  # the shrinker itself hung
                    scripts[kind, rest[0]] = script(make(kind, case_seed), Finding(rest[0], "not made smaller"))
                else:
                    scripts[kind, rest[0]] = answer
            if sys.stderr.isatty() and now > shown + 0.5:
                shown = now
                line = f"{given.total()} problems, {sum(map(len, tally.findings.values()))} findings, {now:.0f} s"
                print(line, end="\r", file=sys.stderr)
    finally:
        for worker in workers:
            worker.close()
    for (kind, check), seeds in tally.findings.items():
        if check in _LOST:
            small = shrink_outside(make(kind, seeds[0]), check, _OUTSIDE, 60.0)
            scripts[kind, check] = script(
                small, Finding(check, f"takes more than {_OUTSIDE:g} s or ends the process")
            )
    return tally, scripts


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m hunt", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, help="default: a random one, which is printed")
    parser.add_argument("--classes", help=f"some of {','.join(CLASSES)}")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, help="folder for the scripts of what is found")
    parser.add_argument("--case", help="one case, class:seed, in this process")
    given = parser.parse_args()
    if np.finfo(np.longdouble).nmant < 63:
        parser.error("np.longdouble is no wider than float64 on this machine; the oracle needs extended precision")
    if given.case:
        kind, number = given.case.split(":")
        outcome = run(make(kind, int(number)))
        for finding in outcome.findings:
            print(f"{finding.check}: {finding.detail}")
        print(", ".join(outcome.statuses))
        return 1 if outcome.findings else 0
    kinds = given.classes.split(",") if given.classes else list(CLASSES)
    unknown = set(kinds) - set(CLASSES)
    if unknown:
        parser.error(f"--classes: {', '.join(sorted(unknown))} not known; there are {', '.join(CLASSES)}")
    seed = int.from_bytes(os.urandom(3)) if given.seed is None else given.seed
    print(f"seed {seed}, {given.seconds:g} s, {given.jobs} processes: {', '.join(kinds)}", flush=True)
    tally, scripts = hunt(kinds, seed, given.seconds, given.jobs)
    for (kind, check), text in scripts.items():
        name = f"{kind}-{tally.findings[kind, check][0]}-{check.replace(' ', '-')}.py"
        print(f"\n--- {name}\n{text if len(text) < 6000 else text[:400] + ' …'}")
        if given.out is not None:
            given.out.mkdir(parents=True, exist_ok=True)
            (given.out / name).write_text(text)
    print("\n" + tally.table())
    print(
        f"\n{sum(tally.problems.values())} problems, {sum(map(len, tally.findings.values()))} findings, seed {seed}"
    )
    return 1 if tally.findings else 0


if __name__ == "__main__":
    sys.exit(main())
