"""Workers: processes that run cases, so that a hang or a crash is a finding and not the end of the hunt."""

from __future__ import annotations

import faulthandler
import multiprocessing
import tempfile
import time
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from hunt.case import Case
from hunt.checks import run
from hunt.outcome import Finding, Outcome
from hunt.problems import make
from hunt.script import script
from hunt.shrink import shrink, still_fails
from hunt.stack import frames

_CONTEXT = multiprocessing.get_context("spawn")


def _work(pipe: Connection, stack: str, limit: float) -> None:
    """Answers tasks until the pipe is closed. Before it is killed, or as it dies, its stack goes to a file."""
    pipe.send("ready")
    file = open(stack, "w")  # noqa: SIM115 for as long as the process lives
    faulthandler.enable(file)
    while True:
        try:
            name, arguments = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        faulthandler.dump_traceback_later(0.9 * limit, file=file)
        answer = _TASKS[name](*arguments)
        faulthandler.cancel_dump_traceback_later()
        pipe.send(answer)


def _run_seed(kind: str, seed: int) -> Outcome:
    return run(make(kind, seed))


def _shrink_and_write(kind: str, seed: int, check: str, seconds: float) -> str:
    """The script of the smallest case that breaks the same promise."""
    fails = still_fails(check)
    case = make(kind, seed)
    if not fails(case):
        return script(case, Finding(check, "could not be repeated"))
    small = shrink(case, fails, seconds)
    return script(small, next(finding for finding in run(small).findings if finding.check == check))


_TASKS: dict[str, Any] = {"run": _run_seed, "case": run, "shrink": _shrink_and_write}


class Worker:
    """One process and what it is busy with."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.task: tuple[str, tuple[Any, ...]] | None = None
        self._folder = tempfile.TemporaryDirectory()
        self._stack = Path(self._folder.name) / "stack"
        self._start()

    def _start(self) -> None:
        self.pipe, theirs = _CONTEXT.Pipe()
        self.process = _CONTEXT.Process(target=_work, args=(theirs, str(self._stack), self.limit), daemon=True)
        self.process.start()
        theirs.close()
        self.pipe.recv()  # imports are done: the time limit is for the case alone

    def give(self, name: str, *arguments: Any) -> None:
        self.task, self.began = (name, arguments), time.perf_counter()
        self.pipe.send((name, arguments))

    def answer(self) -> Any:
        """What came back; None while there is nothing. A worker that is late or dead is replaced."""
        if self.pipe.poll():
            try:
                result = self.pipe.recv()
            except (EOFError, OSError):
                self.process.join(5)
                return self._failed("crash", f"the process ended with code {self.process.exitcode}")
            self.task = None
            return result
        if time.perf_counter() - self.began > self.limit:
            self.process.kill()
            return self._failed("hang", f"no answer after {self.limit:g} s")
        return None

    def _failed(self, check: str, detail: str) -> Outcome:
        self.task = None
        self.pipe.close()
        self.process.join()
        stack = frames(self._stack.read_text()) if self._stack.exists() else ""
        detail = f"{detail}: {stack}" if stack else detail
        self._start()
        return Outcome(findings=[Finding(check, detail)], statuses=[check], seconds=self.limit)

    def ask(self, name: str, *arguments: Any) -> Any:
        """Gives a task and waits for the answer."""
        self.give(name, *arguments)
        while (result := self.answer()) is None:
            wait([self.pipe], 0.05)
        return result

    def close(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()
        self._folder.cleanup()


def shrink_outside(case: Case, check: str, limit: float, seconds: float) -> Case:
    """Shrinks what hangs or crashes: every trial runs in a process that may be lost."""
    worker = Worker(limit)

    def fails(trial: Case) -> bool:
        return any(finding.check == check for finding in worker.ask("case", trial).findings)

    try:
        return shrink(case, fails, seconds)
    finally:
        worker.close()
