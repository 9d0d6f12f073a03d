"""One file per peer. Each lists its ``PEERS``; nothing of a peer's package is imported before ``prepare``.

To add a peer: a file here with a subclass of ``Peer`` and a ``PEERS`` list, and its name in ``FILES``.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..problems import Data, Loss

FILES = (
    "blockgreedy",
    "sklearn_liblinear",
    "sklearn_saga",
    "sklearn_newton_cd",
    "sklearn_lasso",
    "liblinear",
    "celer",
    "skglm",
    "snapml",
    "adelie",
    "glum",
)


def decades(loosest: float, tightest: float) -> tuple[float, ...]:
    """Tolerances from loose to tight, a factor of ten apart."""
    return tuple(float(f"{loosest * 0.1**k:.6g}") for k in range(round(np.log10(loosest / tightest)) + 1))


class Peer:
    """How one mode of one package is asked to solve a cell."""

    registry: str = __name__  # the module whose find_peer knows it
    name: str
    package: str
    losses: tuple[str, ...] = ("logistic", "squared")
    storages: tuple[str, ...] = ("sparse", "dense")
    max_threads: int = 1
    tolerances: tuple[float, ...]  # its own, loose to tight
    default_tolerance: float | None  # what a user gets who sets none; None: not a default mode of the package
    relative_to_alpha: bool = (
        False  # the package's tolerance is absolute and the tolerances above are multiples of alpha
    )
    count_cpu: bool = False  # whether the seconds of all its threads are among the details
    max_features: int | None = None  # where a p × p matrix would be formed
    details: dict[str, Any]  # what the last fit said of itself

    def __init__(self) -> None:
        self.details = {}

    def version(self) -> str:
        """Raises where the package, or this mode in the installed version, is missing."""
        return importlib.metadata.version(self.package)

    def accepts(self, loss: str, storage: str, n_features: int) -> bool:
        small = self.max_features is None or n_features <= self.max_features
        return loss in self.losses and storage in self.storages and small

    def threads(self, storage: str) -> tuple[int, ...]:
        """The numbers of threads it is raced with."""
        return (1, 2) if self.max_threads > 1 else (1,)

    def cell(self, data: Data, loss: Loss, question: Any) -> Any:
        """What is asked of it: here one alpha; benchmarks/paths and benchmarks/cv ask other things."""
        return data.cell(loss, question)

    def prepare(self, cell: Any, n_threads: int) -> Any:
        """Imports and conversions to what the peer likes best, outside the timed section."""
        raise NotImplementedError

    def fit(self, prepared: Any, tolerance: float) -> Any:
        raise NotImplementedError

    def answer(self, found: Any) -> Any:
        """What ``fit`` returned, as it travels back; outside the timed section."""
        coef: NDArray[np.float64] = np.array(found, dtype=np.float64)
        return coef


@dataclass(frozen=True)
class Solver:
    """A peer with a number of threads: what has a column in the tables."""

    peer: Peer
    n_threads: int

    @property
    def label(self) -> str:
        return f"{self.peer.name}-{self.n_threads}"


def all_peers() -> Iterator[Peer]:
    for name in FILES:
        yield from importlib.import_module(f"{__name__}.{name}").PEERS


def find_peer(name: str) -> Peer:
    return next(peer for peer in all_peers() if peer.name == name)


def available(peers: Iterable[Peer] | None = None) -> tuple[list[Peer], dict[str, str]]:
    """Those that can run here, and why the others cannot."""
    found, absent = [], {}
    for peer in all_peers() if peers is None else peers:
        try:
            peer.version()
            found.append(peer)
        except Exception as error:
            absent[peer.name] = f"{type(error).__name__}: {error}"
    return found, absent
