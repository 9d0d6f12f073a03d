"""A gang on a cluster of Dask, as the client sees it: one task for each worker, watched while it is waited for."""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from blockgreedy.backends.tiles.dask import LEFT, NAME, PATIENCE, ask, close_gang, open_office, ping
from blockgreedy.backends.tiles.dask_rank import Left, Standing, take_part
from blockgreedy.backends.tiles.parcel import Parcel
from blockgreedy.base.memory import bytes_text

_LOOK_EVERY = 1.0  # seconds between looks at the workers
_TO_ANSWER = 4.0  # seconds that a worker has to answer before a gang begins
_SCHEDULER_ANSWERS = 20.0  # seconds
_USABLE = 0.8  # of a worker's memory limit: Dask pauses it there
_ENDING = 3.0  # seconds that the other ranks have to say why they left


class GangLostError(Exception):
    """A rank of the gang is lost: what happened."""


class SchedulerLostError(Exception):
    """Nothing can be done on this cluster any more."""


@dataclass(frozen=True)
class Member:
    """A worker of the cluster that can take part."""

    address: str
    memory_limit: int  # 0: none
    memory_used: int

    def refuse_if_small(self, parcel: Parcel, held: int) -> None:
        """``held``: bytes of the parcel's tiles that are counted as used already."""
        wanted = max(parcel.nbytes - held, 0)
        if not self.memory_limit or self.memory_used + wanted <= _USABLE * self.memory_limit:
            return
        raise MemoryError(
            f"worker {self.address} has too little memory for its part of X: it takes {bytes_text(wanted)} "
            f"({wanted:,} bytes), and of the worker's limit of {bytes_text(self.memory_limit)}, of which Dask lets "
            f"{_USABLE:.0%} be used, {bytes_text(self.memory_used)} are in use; give workers more memory, or use "
            "more of them"
        )


class Cluster:
    """What a client of Dask can say and do; every wait has a bound."""

    def __init__(self, client: Any) -> None:
        if client.asynchronous:
            raise TypeError(
                "cluster must be a synchronous client of Dask: Client(…), not Client(…, asynchronous=True)"
            )
        self.client = client
        self._turn: Any = None

    def do(
        self, work: Coroutine[Any, Any, Any], seconds: float = float("inf"), watch: Callable[[], None] | None = None
    ) -> Any:
        """What comes of work on the client's event loop; ``watch`` is called meanwhile and may raise."""
        job = asyncio.run_coroutine_threadsafe(work, self.client.loop.asyncio_loop)
        deadline = time.perf_counter() + seconds
        try:
            while not concurrent.futures.wait([job], timeout=min(0.1, seconds)).done:
                if watch is not None:
                    watch()
                self.check()
                if time.perf_counter() > deadline:
                    raise SchedulerLostError(f"the scheduler has not answered for {seconds:.0f} s")
            return job.result()
        finally:
            job.cancel()

    def check(self) -> None:
        """Raises if the scheduler is gone."""
        if self.client.status != "running":
            raise SchedulerLostError("the connection to the scheduler is lost")

    def members(self, gang: str) -> tuple[list[Member], int]:
        """Workers that answer, in order of their addresses, which expect the gang then; how many there are in all."""
        found: tuple[list[Member], int] = self.do(self._members(gang), _SCHEDULER_ANSWERS)
        return found

    async def _members(self, gang: str) -> tuple[list[Member], int]:
        workers = (await self.client.scheduler.identity(n_workers=-1))["workers"]
        found = []
        for address, used in zip(workers, await self._answers(list(workers), open_office, gang), strict=True):
            if isinstance(used, int) and workers[address].get("status", "running") == "running":
                found.append(Member(address, int(workers[address].get("memory_limit") or 0), used))
        return sorted(found, key=lambda member: member.address), len(workers)

    async def _answers(self, addresses: Sequence[str], function: Any, *args: Any) -> list[Any]:
        async def one(address: str) -> Any:
            try:
                return await asyncio.wait_for(self.run_on(address, function, *args), _TO_ANSWER)
            except Exception as error:  # it does not answer, whatever the reason
                return error

        return await asyncio.gather(*map(one, addresses))

    async def run_on(self, address: str, function: Any, *args: Any) -> Any:
        """Beside the tasks of a worker."""
        return (await self.client.run(function, *args, workers=[address]))[address]

    def tell(self, addresses: Sequence[str], function: Any, *args: Any) -> None:
        """Without waiting for an answer."""
        with suppress(RuntimeError):  # the client is closed
            asyncio.run_coroutine_threadsafe(self._answers(addresses, function, *args), self.client.loop.asyncio_loop)

    # -- fits take turns: two gangs, each with half of the workers, would wait for each other for ever

    def take_turn(self) -> None:
        """Waits for other fits. What holds the turn is a lease, which ends by itself where its client dies."""
        from distributed import Semaphore

        turn = Semaphore(max_leases=1, name=NAME, scheduler_rpc=self.client.scheduler, loop=self.client.loop)
        self._turn = turn
        while not turn.acquire(timeout=1.0):
            self.check()

    def end_turn(self) -> None:
        turn, self._turn = self._turn, None
        if turn is None:
            return
        if self.client.status == "running":  # without a scheduler there is no lease either
            with suppress(Exception):
                turn.release()
        with suppress(Exception):
            self.client.loop.add_callback(turn.refresh_callback.stop)


class DaskGang:
    """The tasks of a gang, and the commands that its rank 0 gets."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster, self.name = cluster, f"{name}-{uuid.uuid4().hex[:12]}"
        self.members: list[Member] = []
        self._tasks: list[Any] = []
        self._look: concurrent.futures.Future[str] | None = None
        self._looked = 0.0

    def begin(
        self,
        members: Sequence[Member],
        shape: tuple[int, int],
        parcels: Iterator[tuple[Parcel, Sequence[tuple[int, int]], Sequence[Any]]],
        tol: float,
    ) -> None:
        """Sends the parcels, one after the other, and starts the ranks; ends when all are ready."""
        client, self.members = self.cluster.client, list(members)
        addresses = [member.address for member in members]
        sent = []
        for address, (parcel, places, tiles) in zip(addresses, parcels, strict=True):
            sending = client.scatter(parcel, workers=[address], hash=False, asynchronous=True)
            sent.append((self.cluster.do(sending, watch=self._watch), places, tiles))
        for rank, (address, (parcel, places, tiles)) in enumerate(zip(addresses, sent, strict=True)):
            self._tasks.append(
                client.submit(
                    take_part,
                    self.name,
                    rank,
                    addresses,
                    shape,
                    parcel,
                    tol,
                    places,
                    list(tiles),
                    key=f"{NAME}-{self.name}-{rank}",
                    workers=[address],
                    allow_other_workers=True,
                    pure=False,
                    retries=0,
                    priority=10,
                )
            )
        self.ask("ready")

    def ask(self, name: str, *args: Any) -> tuple[Any, Standing | None]:
        """What a command returns on rank 0, and where the solver stands then. Raises GangLostError."""
        leader = self.members[0].address
        try:
            found: tuple[Any, Standing | None] = self.cluster.do(
                self.cluster.run_on(leader, ask, self.name, name, args), watch=self._watch
            )
        except (GangLostError, SchedulerLostError, KeyboardInterrupt):
            raise
        except Exception as error:
            self._raise_why(f"rank 0 (worker {leader}) cannot be reached ({type(error).__name__})")
        return found

    def _watch(self) -> None:
        if any(task.done() for task in self._tasks):
            self._raise_why(f"a rank {LEFT}")
        now = time.perf_counter()
        if self._look is None and now - self._looked > _LOOK_EVERY:
            loop = self.cluster.client.loop.asyncio_loop
            self._look, self._looked = asyncio.run_coroutine_threadsafe(self._looked_at(), loop), now
        elif self._look is not None and self._look.done():
            look, self._look = self._look, None
            if look.result():
                self._raise_why(look.result())
        elif self._look is not None and now - self._looked > PATIENCE + _SCHEDULER_ANSWERS / 4:
            raise SchedulerLostError("the scheduler does not answer")

    async def _looked_at(self) -> str:
        """What is wrong; "" where nothing is."""
        client, leader = self.cluster.client, self.members[0].address
        known = await client.nthreads()
        for member in self.members:
            if member.address not in known:
                return f"worker {member.address} is gone"
        try:
            await asyncio.wait_for(self.cluster.run_on(leader, ping), PATIENCE)
        except Exception as error:
            return f"worker {leader} does not answer ({type(error).__name__})"
        return ""

    def _raise_why(self, what: str) -> None:
        """Raises the error of a rank, if one has failed by itself; else says that the gang is lost."""
        self.tell_to_end(what)
        deadline = time.perf_counter() + _ENDING
        while time.perf_counter() < deadline and not all(task.done() for task in self._tasks):
            self.cluster.check()
            if any(self._error_of(task) for task in self._tasks):
                break
            time.sleep(0.05)
        self.cluster.check()
        for task in self._tasks:
            error = self._error_of(task)
            if error is not None:
                raise error
        raise GangLostError(
            next((found for found in self._reasons() if found != what and not found.endswith(LEFT)), what)
        )

    def _reasons(self) -> Iterator[str]:
        """What is known of ranks whose task ended: Dask took it back where data went with a worker."""
        for rank, task in enumerate(self._tasks):
            left = self._left(task)
            if left is not None and left.lost:
                yield left.lost
            elif task.done() and left is None:
                yield f"rank {rank} (worker {self.members[rank].address}) is gone"

    def _left(self, task: Any) -> Left | None:
        if not task.done() or task.status != "finished":
            return None

        async def fetched() -> Any:
            return await task

        try:
            found: Left = self.cluster.do(fetched(), 2.0)
        except Exception:  # its result went with its worker
            return None
        return found

    def _error_of(self, task: Any) -> Exception | None:
        left = self._left(task)
        return None if left is None else left.error

    def tell_to_end(self, why: str) -> None:
        self.cluster.tell([member.address for member in self.members], close_gang, self.name, why)

    def end(self, in_order: bool) -> None:
        """``in_order``: the ranks are told by rank 0; else they are to leave wherever they are."""
        if in_order and self._tasks:
            with suppress(GangLostError, SchedulerLostError):
                self.ask("end")
        self.tell_to_end("the fit has ended")
        self._tasks = []  # Dask takes tasks back that nobody refers to
