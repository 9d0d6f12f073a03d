"""What every rank of a fit does: rank 0 runs the loop and names what is next, the others do the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.tiles.shard import Shard
from blockgreedy.backends.tiles.solver import TileSolver
from blockgreedy.backends.tiles.time_left import TimeLeft
from blockgreedy.backends.tiles.watch import stop_was_asked

Array = NDArray[np.float64]
Features = NDArray[np.int64]


class TileWorker:
    """The tile solver on one rank, moved by commands that all ranks hear in the same order."""

    def __init__(self, shard: Shard, tol: float) -> None:
        self.shard = shard
        self.solver = TileSolver(shard, tol)
        self.is_busy = False  # on rank 0, while other ranks may be waiting for it
        self.found_dual = np.zeros(0)  # the whole of it, once it has come together
        self._by_feature = np.argsort(shard.features, kind="stable")  # columns may be stored in another order

    def together(self, name: str, *args: Any) -> Any:
        """On rank 0: calls a method of every rank's worker, and returns what its own says."""
        assert self.shard.grid.leads
        self.is_busy = True
        self.shard.grid.all.broadcast((name, args))
        found = getattr(self, name)(*args)
        self.is_busy = False
        return found

    def follow(self) -> None:
        """On the other ranks: does what rank 0 does, until that ends."""
        while True:
            name, args = self.shard.grid.all.broadcast(None)
            if name == "end":
                return
            getattr(self, name)(*args)

    def end(self) -> None:
        self.shard.grid.all.broadcast(("end", ()))

    # -- the commands

    def start(self, features: Features, values: Array, intercept: float) -> None:
        """From these weights, all others being 0."""
        self.solver.start(self._own(features, values), intercept)

    def step(self, seconds: float = math.inf) -> bool:
        """``seconds``, here and below: when to hurry to an end."""
        return self.solver.step(TimeLeft(seconds, self.shard.grid.leads))

    def lower_alpha(self, alpha: float, l2: float) -> None:
        self.solver.lower_alpha(alpha, l2)

    def certify(self, seconds: float = math.inf) -> None:
        self.solver.certify(TimeLeft(seconds, self.shard.grid.leads))

    def support(self) -> tuple[Features, Array]:
        """Features with a weight that is not 0, ascending, and their weights: on every rank."""
        own = np.flatnonzero(self.solver.weights)
        ids = self.shard.features[own]
        told = np.concatenate([ids.view(np.float64), self.solver.weights[own]])
        tables = [part.reshape(2, -1) for part in self.shard.grid.beside.gather(told, "result")]
        numbers = np.concatenate(tables, axis=1)
        features = np.ascontiguousarray(numbers[0]).view(np.int64)
        order = np.argsort(features)
        return features[order], numbers[1, order]

    def verify(self, features: Features, values: Array, intercept: float) -> tuple[float, float, float]:
        """Objective and penalty of these weights, and the value of the dual point, from the data alone.

        Which must be the data that were checked when the fit began: of others these numbers would say nothing.
        """
        found = self.solver.verify(self._own(features, values), intercept)
        self.shard.check_unchanged()
        return found

    def dual(self) -> Array:
        """The dual point, in the order of the rows: on every rank."""
        self.found_dual = np.concatenate(self.shard.grid.all.gather(self.solver.dual.theta, "result"))
        return self.found_dual

    def totals(self) -> Array:
        """Entries of X that all ranks have read, and how many ranks were told to stop."""
        return self.shard.over_rows(float(self.solver.nonzeros_touched), float(stop_was_asked()))

    def _own(self, features: Features, values: Array) -> Array:
        """Weights of this rank's columns."""
        known, order = self.shard.features, self._by_feature
        weights = np.zeros(len(known))
        if len(known):
            at = order[np.minimum(np.searchsorted(known, features, sorter=order), len(known) - 1)]
            mine = known[at] == features
            weights[at[mine]] = values[mine]
        return weights
