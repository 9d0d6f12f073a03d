"""A process per solver. It lives as long as its fits stay within the limit, so that compiling happens once.

The parent asks for one thing at a time and waits, so only one fit runs on the machine. The clock runs in the worker,
around ``fit`` alone; the coefficients travel back and are judged by the parent.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import multiprocessing
import os
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from . import problems
from .peers import Solver

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class FitFailed(Exception):
    """The peer raised, crashed or passed the limit; the message says which."""


class PassedLimit(FitFailed):
    pass


def serve(connection: Connection, registry: str, peer_name: str, n_threads: int, memory_gb: float) -> None:
    """The worker's side: prepare, warm and fit until told to stop."""
    os.setsid()  # what the peer starts ends with it
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    warnings.filterwarnings("ignore")
    resource.setrlimit(resource.RLIMIT_DATA, (int(memory_gb * 2**30), resource.RLIM_INFINITY))
    peer = importlib.import_module(registry).find_peer(peer_name)
    prepared: Any = None
    cell: Any = None
    while True:
        try:
            order, *arguments = connection.recv()
        except EOFError:
            return
        try:
            if order == "prepare":
                folder, *question = arguments
                prepared = None
                cell = peer.cell(problems.receive(Path(folder)), *question)
                prepared = peer.prepare(cell, n_threads)
                answer: Any = peer.version()
            elif order == "warm":
                peer.fit(peer.prepare(cell.small(), n_threads), peer.tolerances[-3:][0])
                answer = None
            else:
                gc.collect()
                peer.details = {}
                began, began_cpu = time.perf_counter(), time.process_time()
                found = peer.fit(prepared, *arguments)
                seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - began_cpu
                if peer.count_cpu:
                    peer.details.setdefault("cpu_seconds", cpu_seconds)
                # a peer in a process of its own has its own clock
                answer = peer.details.pop("seconds", seconds), peer.answer(found), peer.details
            connection.send(("done", answer))
        except BaseException as error:
            text = "".join(traceback.format_exception_only(error)).strip()
            connection.send(("failed", text[:500]))


@contextlib.contextmanager
def workers_until_done() -> Iterator[dict[str, Worker]]:
    """Workers by solver, made by whoever needs one, stopped at the end; Ctrl-C ends with what is finished."""
    workers: dict[str, Worker] = {}
    try:
        yield workers
    except KeyboardInterrupt:
        sys.exit("interrupted; what is finished is kept")
    finally:
        for worker in workers.values():
            worker.stop()


class Worker:
    """The parent's side."""

    def __init__(self, solver: Solver, memory_gb: float = 12.0) -> None:
        self.solver = solver
        self.memory_gb = memory_gb
        self.process: Any = None
        self.warmed: set[tuple[str, str]] = set()  # (loss, storage) fitted by this very process

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        peer = self.solver.peer
        arguments = (theirs, peer.registry, peer.name, self.solver.n_threads, self.memory_gb)
        # no daemon, which joblib would not give processes to
        self.process = context.Process(target=serve, args=arguments)
        atexit.register(self.stop)
        before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
        os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(self.solver.n_threads)))
        try:
            self.process.start()
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
        theirs.close()
        self.warmed = set()

    def ask(self, limit: float, *order: Any) -> Any:
        if self.process is None:
            self.start()
        try:
            self.connection.send(order)
            if not self.connection.poll(limit):
                raise PassedLimit(f"{order[0]} passed {limit:g} s")
            outcome, answer = self.connection.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self.process.join(5)
            code = self.process.exitcode
            self.stop()
            raise FitFailed(f"the process died (exit code {code})") from None
        except (PassedLimit, KeyboardInterrupt):
            self.stop()
            raise
        if outcome == "failed":
            raise FitFailed(answer)
        return answer

    def stop(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.kill()
            self.process.join()
            atexit.unregister(self.stop)
            self.connection.close()
            self.process = None
