"""When ranks that work together have to end: rank 0 looks at its clock and tells the others by a flag."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from blockgreedy.base.deadline import Deadline

Numbers = TypeVar("Numbers", bound=np.ndarray[Any, Any])


class TimeLeft:
    """Of one command. The flag is appended to sums over all ranks, so that all of them see it in the same place."""

    def __init__(self, seconds: float = math.inf, leads: bool = True) -> None:
        """``seconds`` are the same on every rank; ``leads``: on rank 0, whose clock counts."""
        self._is_limited, self._deadline, self._leads = seconds < math.inf, Deadline(seconds), leads
        self.is_up = False

    def is_too_short_for(self, work: float, add_up: Callable[..., Numbers]) -> bool:
        """Whether rank 0 has no time for so much work of ``Deadline.has_time_for``, or had none before."""
        if self._is_limited:
            flag = self._leads and not self._deadline.has_time_for(work)
            self.is_up = self.is_up or bool(add_up(float(flag))[0] > 0)
        return self.is_up

    def with_flag(self, values: Numbers) -> Numbers:
        """What this rank adds to a sum over all ranks, with the flag. Nothing changes where there is no limit."""
        if not self._is_limited:
            return values
        flag = self._leads and self._deadline.has_passed()
        return np.append(values, values.dtype.type(flag))  # type: ignore[return-value]

    def without_flag(self, sums: Numbers) -> Numbers:
        """The sums that came of it, without the flag."""
        if not self._is_limited:
            return sums
        self.is_up = self.is_up or bool(sums[-1] > 0)
        return sums[:-1]  # type: ignore[return-value]


NO_LIMIT = TimeLeft()
