"""The task of a rank on a worker of Dask: its share of the problem, and what it does until the fit ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.tiles.communicator import Communicator
from blockgreedy.backends.tiles.dask import NAME, DaskPost, PeerLostError, part_in
from blockgreedy.backends.tiles.grid import Grid
from blockgreedy.backends.tiles.held_tiles import HeldTiles
from blockgreedy.backends.tiles.needs import check_parcel
from blockgreedy.backends.tiles.parcel import Parcel
from blockgreedy.backends.tiles.worker import TileWorker


@dataclass(frozen=True)
class DualValue:
    value: float


@dataclass(frozen=True)
class Standing:
    """Where the solver stands after a command: what the client knows of it, and would go on from."""

    n_iter: int
    objective: float
    dual: DualValue
    enough: float
    intercept: float
    n_support: int
    nonzeros_touched: int
    features: NDArray[np.int64]  # those with a weight that is not 0
    values: NDArray[np.float64]

    @property
    def gap(self) -> float:
        return self.objective - self.dual.value


@dataclass(frozen=True)
class Left:
    """How the part of a rank ended: with the fit, or because of an error, its own or what became of another rank."""

    rank: int
    lost: str = ""
    error: Exception | None = None


_MOVES = ("start", "step", "lower_alpha")  # commands after which the weights, or what is known of them, are others


def take_part(
    gang: str,
    rank: int,
    addresses: Sequence[str],
    shape: tuple[int, int],
    parcel: Parcel,
    tol: float,
    places: Sequence[tuple[int, int]] = (),
    tiles: Sequence[Any] = (),
) -> Left:
    """The task. ``tiles``: of a matrix that lies in the memory of workers, those at these places."""
    from distributed import get_worker

    here = str(get_worker().address)
    if here != addresses[rank]:  # its worker is gone: elsewhere it is of no use to this gang
        return Left(rank, f"rank {rank} (worker {addresses[rank]}) is gone")
    if isinstance(parcel.matrix, HeldTiles):
        parcel = replace(parcel, matrix=parcel.matrix.holding(dict(zip(places, tiles, strict=True))))
    try:
        with part_in(gang, rank, addresses) as (ranks, post, worker):
            follow(ranks, post, worker, shape, parcel, tol)
    except PeerLostError as error:
        return Left(rank, str(error))
    except Exception as error:
        error.add_note(f"on rank {rank}, worker {here}")
        return Left(rank, error=error.with_traceback(None))
    return Left(rank)


def follow(
    ranks: Communicator, post: DaskPost, worker: Any, shape: tuple[int, int], parcel: Parcel, tol: float
) -> None:
    """Until the client says that the fit has ended."""
    n_threads = int(worker.state.nthreads)
    check_parcel(parcel, n_threads)
    tiles = TileWorker(parcel.shard(Grid(ranks, *shape), n_threads), tol)
    if ranks.rank > 0:
        tiles.follow()
        return
    standing: Standing | None = None
    while True:
        name, args, reply = post.next_command()
        if name == "end":
            tiles.end()
            post.reply(reply, (None, standing))
            return
        result = None if name == "ready" else tiles.together(name, *args)
        if name in _MOVES:
            standing = _standing(tiles)
            told = {"iteration": standing.n_iter, "objective": standing.objective, "gap": standing.gap}
            worker.log_event(NAME, {**told, "nonzeros": standing.n_support})
        elif standing is not None:  # a proof may have been found
            standing = replace(standing, dual=DualValue(float(tiles.solver.dual.value)))
        post.reply(reply, (result, standing))


def _standing(tiles: TileWorker) -> Standing:
    touched = int(tiles.together("totals")[0])
    features, values = tiles.together("support")
    solver = tiles.solver
    return Standing(
        solver.n_iter,
        float(solver.objective),
        DualValue(float(solver.dual.value)),
        float(solver.enough),
        float(solver.intercept),
        int(solver.n_support),
        touched,
        features,
        values,
    )
