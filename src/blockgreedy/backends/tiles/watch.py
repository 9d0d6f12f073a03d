"""Watches over ranks of MPI while they work together: who is gone is not waited for, who is slow is.

A thread beside the work sends beats to rank 0 and hears beats of rank 0, whatever the work is doing meanwhile: a rank
that computes, or reads from a slow disk, goes on beating, one that was stopped or whose machine is gone does not. The
same thread hears signals at once, which Python's own handlers do not while the main thread waits inside of MPI.
"""

from __future__ import annotations

import math
import os
import select
import shlex
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

from blockgreedy.base.forks import in_child

BEAT = 1.0  # seconds between beats
LOST = 20.0  # seconds without a beat after which a rank counts as gone
_NAP = 0.25  # part of LOST; a beat that took so long: this process itself was stopped, as whole jobs are
_GRACE = 0.1  # seconds in which a step may end that was under way; mpirun kills 0.5 s after it has sent SIGTERM
_LAST_WORD = b"\1"  # in place of a beat: this rank has said why it ends all
_STOPS = ("SIGINT", "SIGTERM", "SIGUSR1")


class Watch:
    """Of this rank: ``asked`` once somebody wants the fit to end."""

    def __init__(self, communicator: Any | None) -> None:
        """None: the process is alone; signals are heard, nobody is watched."""
        self.asked = False
        self.checkpoint = ""  # the file that the fit writes, if any
        self.command = ""  # that goes on from it
        self._to, self.rank, self.size = None, 0, 1
        self._ranks: list[tuple[str, int]] = []  # machine and process
        self._arrival: Any = None
        self._is_told = False  # another rank has said why all of them end
        self._woke = 0.0  # when the thread last looked around
        self._napped = -math.inf  # when it last found that this process had been stopped
        self._thread: threading.Thread | None = None
        self._pipe: tuple[int, int] | None = None
        self._before: dict[int, Any] = {}
        self._fd_before = -1
        if communicator is not None and communicator.Get_size() > 1:
            self._join(communicator)

    def _join(self, communicator: Any) -> None:
        from mpi4py import MPI

        self.rank, self.size = communicator.Get_rank(), communicator.Get_size()
        self._ranks = communicator.allgather((socket.gethostname(), os.getpid()))
        if communicator.allreduce(MPI.Query_thread(), op=MPI.MIN) == MPI.THREAD_MULTIPLE:
            self._to = _own_channel(communicator)

    def begin(self) -> None:
        self._hear_signals()
        if self._to is not None or self._pipe is not None:
            self._thread = threading.Thread(target=self._run, name="blockgreedy watch", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Once all ranks have come here: until then they are watched."""
        if self._to is not None:
            self._arrival = self._to.Ibarrier()
        if self._pipe is not None:
            os.write(self._pipe[1], b"\0")
        if self._thread is not None:
            self._thread.join()
        if self._pipe is not None:
            signal.set_wakeup_fd(self._fd_before)
            for number, handler in self._before.items():
                signal.signal(number, handler)
            for end in self._pipe:
                os.close(end)

    def abandon(self) -> None:
        """In a child of fork(): its signals are not the parent's, and nobody beats for it."""
        self._to = self._thread = None
        if self._pipe is None:
            return
        signal.set_wakeup_fd(-1)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        for end in self._pipe:
            os.close(end)
        self._pipe = None

    # -- signals

    def _hear_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._pipe = os.pipe()
        os.set_blocking(self._pipe[1], False)
        self._fd_before = signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False)
        for name in _STOPS:
            if hasattr(signal, name):
                number = getattr(signal, name)
                self._before[number] = signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.asked = True

    def _heard(self, signals: bytes) -> None:
        """From the pipe; ``_note`` comes when the main thread next runs Python."""
        stops = {getattr(signal, name) for name in _STOPS if hasattr(signal, name)}
        self.asked = self.asked or not stops.isdisjoint(signals)
        if signal.SIGTERM in signals and self.size > 1:
            self._say_why()

    def _say_why(self) -> None:
        """What SIGTERM means: mpirun sends it where a rank has died, batch systems where time is up."""
        here = [k for k, (machine, _) in enumerate(self._ranks) if machine == self._ranks[self.rank][0]]
        dead = [k for k in here if not _is_alive(self._ranks[k][1])]
        speaks = min([k for k in here if k not in dead], default=0) if 0 in dead else 0
        if self._to is not None:
            self._take_beats({})
        # after a nap it was this rank that the others gave up on, and have spoken of
        if self.rank != speaks or self._is_told or self._has_napped(time.monotonic()):
            return
        if dead:
            machine, process = self._ranks[dead[0]]
            say(f"Error: rank {dead[0]} (process {process} on {machine}) died, so that the fit ends. {self.remedy}")
            return
        time.sleep(_GRACE)
        if self._arrival is None:
            say(
                "Note: the fit was told to end (SIGTERM), as it is when a rank on another machine dies. The model "
                f"follows if the iteration under way can end. If it does not: {self.remedy}"
            )

    # -- beats

    def _run(self) -> None:
        others: list[int] = [] if self._to is None else [0] if self.rank else list(range(1, self.size))
        heard, self._woke = dict.fromkeys(others, time.monotonic()), time.monotonic()
        sent: dict[int, Any] = {}
        while not self._has_ended():
            self._wait()
            now = time.monotonic()
            if self._has_napped(now):
                heard = dict.fromkeys(others, now)  # it could hear nobody
            if self._to is None:
                continue
            self._take_beats(heard)
            for other in others:
                if other not in sent or sent[other].Test():
                    sent[other] = self._to.Isend(bytearray(1), dest=other)
            # rank 0 speaks first; where it is the one that is gone, rank 1 does
            lost = [k for k, last in heard.items() if now - last > LOST + min(self.rank, 2)]
            if lost and not self._has_ended():
                self._give_up(lost)

    def _has_napped(self, now: float) -> bool:
        """Whether this process itself was stopped until just now."""
        if now - self._woke > _NAP * LOST:
            self._napped = now
        self._woke = now
        return now - self._napped < BEAT

    def _has_ended(self) -> bool:
        return self._arrival is not None and (self._to is None or self._arrival.Test())

    def _wait(self) -> None:
        seconds = BEAT if self._arrival is None else 0.01
        if self._pipe is None:
            time.sleep(min(seconds, 0.05))
            return
        if select.select([self._pipe[0]], [], [], seconds)[0]:
            signals = os.read(self._pipe[0], 64)
            if b"\0" in signals and self._to is None:
                self._arrival = True
            self._heard(signals)

    def _take_beats(self, heard: dict[int, float]) -> None:
        from mpi4py import MPI

        assert self._to is not None
        state = MPI.Status()
        while self._to.Iprobe(source=MPI.ANY_SOURCE, status=state):
            source = state.Get_source()
            beat = bytearray(1)
            self._to.Recv(beat, source=source)
            self._is_told = self._is_told or beat == _LAST_WORD
            if source in heard:
                heard[source] = time.monotonic()

    def _give_up(self, lost: list[int]) -> NoReturn:
        names = [f"rank {k} (process {self._ranks[k][1]} on {self._ranks[k][0]})" for k in lost[:3]]
        more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
        gone = f"{', '.join(names)}{more} has not been heard of for {LOST:g} seconds"
        self.abort(f"Error: {gone}: it was stopped, or its machine or link is gone. The fit ends. {self.remedy}")

    def abort(self, sentence: str) -> NoReturn:
        """Ends all ranks."""
        from mpi4py import MPI

        say(sentence)
        if self._to is not None:
            for other in set(range(self.size)) - {self.rank}:
                self._to.Isend(bytearray(_LAST_WORD), dest=other)
        MPI.COMM_WORLD.Abort(1)
        os._exit(1)

    @property
    def remedy(self) -> str:
        if not self.checkpoint:
            return "Nothing was kept; with a checkpoint (--checkpoint FILE, checkpoint=…) a fit can go on."
        if not os.path.exists(self.checkpoint):
            return f"No iteration had ended, so that there is no checkpoint yet. Run again: {self.command}"
        return f"Go on from the last iteration that ended: {self.command}"


_channel_key: int | None = None


def _own_channel(communicator: Any) -> Any:
    """The same ranks for beats alone. It stays for the next watch: a beat may arrive after this one has ended."""
    from mpi4py import MPI

    global _channel_key
    if _channel_key is None:
        _channel_key = MPI.Comm.Create_keyval()
    channel = communicator.Get_attr(_channel_key)
    if channel is None:
        channel = communicator.Dup()
        communicator.Set_attr(_channel_key, channel)
    return channel


def say(sentence: str) -> None:
    """At once, from whatever thread, past what is buffered."""
    sys.stderr.flush()
    os.write(2, f"{sentence}\n".encode())


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


_current: Watch | None = None


def current() -> Watch | None:
    return _current


def stop_was_asked() -> bool:
    return _current is not None and _current.asked


@contextmanager
def watching(communicator: Any | None) -> Iterator[Watch]:
    """On every rank, around what they do together. Inside of another watch nothing changes: that one goes on."""
    global _current
    if _current is not None:
        yield _current
        return
    _current = watch = Watch(communicator)
    watch.begin()
    try:
        yield watch
    finally:
        try:
            watch.end()
        finally:
            _current = None


@in_child
def _watch_no_more() -> None:
    global _current
    if _current is not None:
        _current.abandon()
        _current = None


def resuming_command(size: int) -> str:
    """The command line of this process, with --resume, as it is started on all ranks."""
    words = ["blockgreedy", *sys.argv[1:]]
    if "--resume" not in words:
        words.append("--resume")
    launcher = [] if size == 1 else ["srun"] if _is_of_slurm() else ["mpirun", "-n", str(size)]
    return shlex.join([*launcher, *words])


def _is_of_slurm() -> bool:
    return "SLURM_PROCID" in os.environ and "PRTE_LAUNCHED" not in os.environ
