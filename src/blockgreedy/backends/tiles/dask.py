"""Ranks that are tasks of Dask, and their messages over the connections that its workers have with each other.

A worker of Dask gets an ``Office``, where messages for its ranks arrive, on its event loop: loading and computing in
a task's thread do not keep them waiting. Everything travels by Dask's own calls from worker to worker, so TLS,
compression and firewalls are as for all else that it sends.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from blockgreedy.backends.tiles.communicator import Communicator, Values
from blockgreedy.backends.tiles.messages import MessageRank, Tag

NAME = "blockgreedy"  # of the office among a worker's extensions, and of its calls
PING_EVERY = 2.0  # seconds of waiting for a rank after which it is asked whether it is still there
PATIENCE = 12.0  # seconds that the answer may take: kernels leave the interpreter to others, some of scipy do not
LEFT = "has left the fit"  # what a rank is said to have done whose own reason is better known to itself
_LOOK_EVERY = 1.0  # seconds after which a waiting thread looks whether there is still something to wait for


class PeerLostError(RuntimeError):
    """A rank is gone: its worker ended or does not answer, or it has left the fit."""


class _Box:
    """What has come for the rank of a gang on this worker. All but the commands is used by the event loop alone."""

    def __init__(self) -> None:
        self.messages: dict[tuple[str, int], Values] = {}
        self.waiting: dict[tuple[str, int], asyncio.Future[Values]] = {}
        self.commands: queue.SimpleQueue[tuple[str, tuple[Any, ...], asyncio.Future[Any]]] = queue.SimpleQueue()
        self.asked: set[asyncio.Future[Any]] = set()
        self.closed = ""  # why, once it is


class Office:
    """Of one worker: the boxes of its ranks, and the calls by which others reach them."""

    def __init__(self, worker: Any) -> None:
        self.worker = worker
        self._boxes: dict[str, _Box] = {}
        worker.handlers[f"{NAME}_message"] = self._take
        worker.handlers[f"{NAME}_ping"] = self._answer

    @staticmethod
    def of(worker: Any) -> Office:
        if NAME not in worker.extensions:
            worker.extensions[NAME] = Office(worker)
        office: Office = worker.extensions[NAME]
        return office

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        loop: asyncio.AbstractEventLoop = self.worker.loop.asyncio_loop
        return loop

    def open(self, gang: str) -> None:
        """Messages for this gang are kept from now on, though its rank here may not have begun."""
        self._boxes.setdefault(gang, _Box())

    def box(self, gang: str) -> _Box | None:
        return self._boxes.get(gang)

    def close(self) -> None:
        """Called by Dask when the worker closes."""
        for gang in list(self._boxes):
            self.end(gang, f"worker {self.worker.address} is closing")

    def end(self, gang: str, why: str) -> None:
        """On the event loop: nothing more is expected of this gang, and who waits for it hears why."""
        box = self._boxes.pop(gang, None)
        if box is None:
            return
        box.closed = why
        for future in [*box.waiting.values(), *box.asked]:
            if not future.done():
                future.set_exception(PeerLostError(why))
                future.exception()  # nobody need have waited for it

    async def _take(self, gang: str, tag: str, sender: int, values: Values) -> bool:
        """A message; False where nobody waits for any of this gang."""
        box = self._boxes.get(gang)
        if box is None:
            return False
        waiting = box.waiting.pop((tag, sender), None)
        if waiting is None:
            box.messages[tag, sender] = values
        elif not waiting.done():
            waiting.set_result(values)
        return True

    async def _answer(self, gang: str) -> bool:
        """Whether the rank of this gang is here, or is about to begin."""
        return gang in self._boxes


class DaskPost:
    """Messages of one rank of a gang."""

    def __init__(self, office: Office, gang: str, rank: int, addresses: Sequence[str], key: str) -> None:
        box = office.box(gang)
        if box is None:
            raise PeerLostError("the fit has ended")
        self._office, self._box, self._gang = office, box, gang
        self._rank, self._addresses, self._key = rank, addresses, key

    def trade(self, tag: Tag, outgoing: Mapping[int, Values], incoming: Sequence[int]) -> dict[int, Values]:
        text = "/".join(map(str, tag))
        return self._wait(self._trade(text, outgoing, incoming))

    def _wait(self, work: Coroutine[Any, Any, dict[int, Values]]) -> dict[int, Values]:
        """For what the event loop does."""
        job = asyncio.run_coroutine_threadsafe(work, self._office.loop)
        while not concurrent.futures.wait([job], timeout=_LOOK_EVERY).done:
            try:
                self.check_wanted()
            except PeerLostError:
                job.cancel()
                raise
        return job.result()

    def check_wanted(self) -> None:
        """Raises if nobody wants this rank any more."""
        from distributed.core import Status

        worker = self._office.worker
        if self._box.closed:
            raise PeerLostError(self._box.closed)
        if worker.status not in (Status.running, Status.paused):
            raise PeerLostError(f"worker {worker.address} is closing")
        task = worker.state.tasks.get(self._key)
        if task is None or task.state in ("cancelled", "released", "forgotten"):
            raise PeerLostError("the fit was given up")

    async def _trade(self, tag: str, outgoing: Mapping[int, Values], incoming: Sequence[int]) -> dict[int, Values]:
        sends = [asyncio.ensure_future(self._send(to, tag, values)) for to, values in outgoing.items()]
        receives = [asyncio.ensure_future(self._receive(source, tag)) for source in incoming]
        try:
            await asyncio.gather(*receives, *sends)
        finally:
            for job in (*sends, *receives):
                job.cancel()
        return {source: job.result() for source, job in zip(incoming, receives, strict=True)}

    async def _send(self, to: int, tag: str, values: Values) -> None:
        from distributed.protocol import to_serialize

        call = getattr(self._office.worker.rpc(self._addresses[to]), f"{NAME}_message")
        message = call(gang=self._gang, tag=tag, sender=self._rank, values=to_serialize(values))
        if not await self._watched(asyncio.ensure_future(message), to):
            raise self._lost(to, LEFT)

    async def _receive(self, source: int, tag: str) -> Values:
        box, key = self._box, (tag, source)
        if key in box.messages:
            return box.messages.pop(key)
        if box.closed:
            raise PeerLostError(box.closed)
        future: asyncio.Future[Values] = self._office.loop.create_future()
        box.waiting[key] = future
        found: Values = await self._watched(future, source)
        return found

    async def _watched(self, job: asyncio.Future[Any], peer: int) -> Any:
        """What comes of ``job``, which needs this rank; every now and then the rank is asked whether it is there."""
        while True:
            await asyncio.wait([job], timeout=PING_EVERY)
            if not job.done():
                ping = asyncio.ensure_future(self._what_is_wrong_with(peer))
                await asyncio.wait([job, ping], return_when=asyncio.FIRST_COMPLETED)
                wrong = ping.result() if ping.done() else ""
                ping.cancel()
                if wrong and not job.done():
                    job.add_done_callback(lambda job: job.cancelled() or job.exception())  # nobody waits for it
                    job.cancel()
                    raise self._lost(peer, wrong)
            if job.done():
                try:
                    return job.result()
                except PeerLostError:
                    raise
                except Exception as error:  # Dask has many where a connection ends
                    raise self._lost(peer, f"cannot be reached ({type(error).__name__})") from error

    async def _what_is_wrong_with(self, peer: int) -> str:
        """ "" where it is there."""
        call = getattr(self._office.worker.rpc(self._addresses[peer]), f"{NAME}_ping")
        try:
            return "" if await asyncio.wait_for(call(gang=self._gang), PATIENCE) else LEFT
        except Exception as error:  # whatever it is, there is no answer
            return f"does not answer ({type(error).__name__})"

    def _lost(self, peer: int, what: str) -> PeerLostError:
        return PeerLostError(f"rank {peer} (worker {self._addresses[peer]}) {what}")

    def next_command(self) -> tuple[str, tuple[Any, ...], asyncio.Future[Any]]:
        """What the client wants next of this rank, which leads the others."""
        while True:
            try:
                return self._box.commands.get(timeout=_LOOK_EVERY)
            except queue.Empty:
                self.check_wanted()

    def reply(self, to: asyncio.Future[Any], result: Any) -> None:
        def tell() -> None:
            if not to.done():
                to.set_result(result)

        self._office.loop.call_soon_threadsafe(tell)


@contextmanager
def part_in(gang: str, rank: int, addresses: Sequence[str]) -> Iterator[tuple[Communicator, DaskPost, Any]]:
    """Inside of a task: the rank of a gang, its post and its worker. At the end its box is closed in any case."""
    from distributed import get_worker

    worker = get_worker()
    office, key = Office.of(worker), str(worker.get_current_task())
    try:
        post = DaskPost(office, gang, rank, addresses, key)
        yield MessageRank(post, range(len(addresses)), rank), post, worker
    finally:
        office.loop.call_soon_threadsafe(office.end, gang, f"rank {rank} (worker {worker.address}) {LEFT}")


# -- what the client runs on workers, beside their tasks


async def open_office(gang: str, dask_worker: Any) -> int:
    """On every worker of a gang before its tasks begin; the bytes of memory that its process holds."""
    import psutil  # which Dask needs, and by which it watches this memory

    Office.of(dask_worker).open(gang)
    return int(psutil.Process().memory_info().rss)


async def close_gang(gang: str, why: str, dask_worker: Any) -> None:
    Office.of(dask_worker).end(gang, why)


async def ping(dask_worker: Any) -> str:
    return str(dask_worker.address)


async def ask(gang: str, name: str, args: tuple[Any, ...], dask_worker: Any) -> Any:
    """On the worker of rank 0: what comes of a command there."""
    box = Office.of(dask_worker).box(gang)
    if box is None:
        raise PeerLostError(f"rank 0 (worker {dask_worker.address}) {LEFT}")
    reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    box.asked.add(reply)
    box.commands.put((name, args, reply))
    try:
        return await reply
    finally:
        box.asked.discard(reply)
