"""The engine: where the iterations of a run happen.

An engine holds a point of one problem and improves it. It never decides when to stop, what to record or what to say:
the loop in ``solvers/run.py`` does, the same for every engine. All values are in the units of the user's problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from blockgreedy.base.names import Status
    from blockgreedy.problem.problem import Problem

Array = NDArray[np.float64]
Ended = Literal["", "stalled", "interrupted", "diverged"]  # what can end a run inside of an engine; "": nothing


@dataclass(frozen=True)
class Counters:
    """What an engine has done so far: operations, which do not depend on the machine."""

    nonzeros: int  # weights that are not 0
    nonzeros_touched: int  # entries of X that were read
    critical_nonzeros: int  # entries on the longest chain of work, had every block a thread of its own
    active_blocks: int
    spectral_radius: float = float("nan")


@dataclass(frozen=True)
class Point:
    """What a run returns. Objective, gap and ``is_proven`` are recomputed from these weights and the dual point."""

    features: NDArray[np.int32]  # those with a weight that is not 0, ascending
    values: Array  # their weights
    intercept: float
    objective: float
    loss: float  # the mean loss: the objective without penalty
    gap: float
    is_proven: bool  # the gap is as small as was asked for
    dual: Array | None  # None where it was not asked for
    is_last: bool = True  # it is where the engine stands, not an earlier, better point


class Steps(Protocol):
    """What the loop needs to run anything: where it stands, and a way to go on."""

    @property
    def n_iter(self) -> int: ...

    @property
    def gap(self) -> float:
        """objective − dual value; nan where the dual point is older than the iterate."""
        ...

    def is_enough(self, share: float = 1.0) -> bool:
        """Whether the gap is at most this share of the one asked for; False where it is not known.

        An engine that works in other units than the user's compares in its own: the user's may underflow.
        """
        ...

    def step(self, n_iter: int, seconds: float) -> Ended:
        """At least one iteration, at most so many, ending soon after so many seconds."""
        ...

    def renew(self, status: Status) -> bool:
        """Whether a run that is about to end with this status can go on from a better start after all."""
        ...


class Engine(Steps, Protocol):
    """What a run from its start to a Solution needs."""

    @property
    def f_null(self) -> float:
        """The objective of the null model: the scale of ``tol``."""
        ...

    @property
    def seconds(self) -> float:
        """The clock of the trace."""
        ...

    @property
    def objective(self) -> float: ...

    @property
    def dual_value(self) -> float:
        """Of the best dual point so far: a lower bound on the minimum."""
        ...

    def start(self) -> bool:
        """Goes to where the run begins; True if Ctrl-C was pressed."""
        ...

    def move_to(self, problem: Problem) -> bool:
        """Goes on with the same data at a lower alpha, for a path; True if Ctrl-C was pressed."""
        ...

    def certify(self) -> None:
        """Looks for a better dual point, however long that takes."""
        ...

    def point(self, status: Status, with_dual: bool = True) -> Point:
        """What is returned if the run ends here with this status."""
        ...

    def support(self) -> NDArray[np.int32]:
        """Features with a weight that is not 0."""
        ...

    def counters(self) -> Counters: ...

    def remark(self, status: Status) -> str:
        """What else there is to say about a run that ended so: a cause, a remedy."""
        ...

    def phase_seconds(self) -> dict[str, float]:
        """Where the time went."""
        ...

    def check_seconds(self) -> float:
        """Of the run's time, what went into checks of the gap."""
        ...


class _WithGap(Protocol):
    @property
    def gap(self) -> float: ...

    @property
    def enough(self) -> float:
        """The gap asked for, in the same units."""
        ...


class EngineBase:
    """What most engines answer to the questions that concern few of them."""

    def is_enough(self: _WithGap, share: float = 1.0) -> bool:
        return bool(self.gap <= share * self.enough)

    def move_to(self, problem: Problem) -> bool:
        raise TypeError(f"{type(self).__name__} follows no path")

    def renew(self, status: Status) -> bool:
        return False

    def remark(self, status: Status) -> str:
        return ""

    def phase_seconds(self) -> dict[str, float]:
        return {}

    def check_seconds(self) -> float:
        phases = self.phase_seconds()
        return phases.get("certificate", 0.0) + phases.get("guard", 0.0)
