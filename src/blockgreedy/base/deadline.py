"""When work has to end: what every loop asks that can take longer than a pass over the data.

The core has its own, which a call of it gets as the seconds that are left (``ThreadTeam`` in cpp/base/threads.hpp).
Python hears Ctrl-C by itself, so this is the clock alone.
"""

from __future__ import annotations

import math
import time

# What a result cannot do without, such as a look at its constraints, may take so much longer: seconds, and a part of
# the time that was allowed. With it a run ends within twice its time and half a second.
_GRACE, _GRACE_SHARE = 0.2, 0.25
_WORK_PER_SECOND = 1e8  # multiplications of a decomposition by LAPACK, on a machine that is busy


def now() -> float:
    """The clock of all limits, in seconds."""
    return time.perf_counter()


class Deadline:
    """``max_seconds`` after work began; never by default."""

    __slots__ = ("_allowed", "_at")

    def __init__(self, max_seconds: float | None = None, began: float | None = None) -> None:
        """``began``: when the work did, by ``now``; None: it does now."""
        self._allowed = math.inf if max_seconds is None else float(max_seconds)
        self._at = self._allowed + (now() if began is None else began)

    def __repr__(self) -> str:
        return f"Deadline({self.seconds_left():.3g} s left)"

    def seconds_left(self) -> float:
        """Below 0 when it has passed."""
        return self._at - now() if self._at < math.inf else math.inf

    def has_passed(self) -> bool:
        return self.seconds_left() <= 0

    def has_time_for(self, work: float) -> bool:
        """Whether so many multiplications of a decomposition, which cannot be stopped, are likely to end in time."""
        return self.seconds_left() > work / _WORK_PER_SECOND

    def for_the_end(self) -> Deadline:
        """The deadline of what a result cannot do without."""
        if self._at == math.inf:
            return self
        return Deadline(_GRACE + _GRACE_SHARE * self._allowed, max(self._at, now()))


NEVER = Deadline()
