"""A process per solver. It lives as long as its fits stay within the limit, so that compiling happens once.

The parent asks for one thing at a time and waits, so only one fit runs on the machine. The clock runs in the worker,
around ``fit`` alone; the coefficients travel back and are judged by the parent.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import resource
import time
import traceback
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from . import problems
from .peers import Solver, find_peer

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class FitFailed(Exception):
    """The peer raised, crashed or passed the limit; the message says which."""


class PassedLimit(FitFailed):
    pass


def serve(connection: Connection, peer_name: str, n_threads: int, memory_gb: float) -> None:
    """The worker's side: prepare, warm and fit until told to stop."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    warnings.filterwarnings("ignore")
    resource.setrlimit(resource.RLIMIT_DATA, (int(memory_gb * 2**30), resource.RLIM_INFINITY))
    peer = find_peer(peer_name)
    prepared: Any = None
    cell: Any = None
    while True:
        try:
            order, *arguments = connection.recv()
        except EOFError:
            return
        try:
            if order == "prepare":
                folder, loss, alpha = arguments
                prepared = None
                cell = problems.receive(Path(folder)).cell(loss, alpha)
                prepared = peer.prepare(cell, n_threads)
                answer: Any = peer.version()
            elif order == "warm":
                peer.fit(peer.prepare(cell.small(), n_threads), peer.tolerances[-3])
                answer = None
            else:
                gc.collect()
                peer.details = {}
                began = time.perf_counter()
                coef = peer.fit(prepared, *arguments)
                seconds = time.perf_counter() - began
                answer = seconds, np.array(coef, dtype=np.float64), peer.details
            connection.send(("done", answer))
        except BaseException as error:
            text = "".join(traceback.format_exception_only(error)).strip()
            connection.send(("failed", text[:500]))


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
        arguments = (theirs, self.solver.peer.name, self.solver.n_threads, self.memory_gb)
        self.process = context.Process(target=serve, args=arguments, daemon=True)
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
            self.process.kill()
            self.process.join()
            self.connection.close()
            self.process = None
