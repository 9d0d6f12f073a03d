"""When ranks that work together have to end: rank 0 looks at its clock, and the others take its word."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from blockgreedy.base.deadline import Deadline

Numbers = TypeVar("Numbers", bound=np.ndarray[Any, Any])


class TimeLeft:
    """Of one command. Sums over all ranks carry rank 0's word, so that all of them hear it in the same place."""

    def __init__(self, seconds: float = math.inf, leads: bool = True) -> None:
        """``seconds`` are the same on every rank; ``leads``: on rank 0, whose clock counts."""
        self._is_limited, self._deadline, self._leads = seconds < math.inf, Deadline(seconds), leads
        self.is_up = False

    def is_too_short_for(self, work: float, add_up: Callable[..., Numbers]) -> bool:
        """Whether rank 0 has no time for so much work of ``Deadline.has_time_for``, or had none before."""
        if self._is_limited:
            word = self._leads and not self._deadline.has_time_for(work)
            self.is_up = self.is_up or bool(add_up(float(word))[0] > 0)
        return self.is_up

    def told_with(self, values: Numbers) -> Numbers:
        """What this rank adds to a sum over all ranks, with its word. Nothing changes where there is no limit."""
        if not self._is_limited:
            return values
        word = self._leads and self._deadline.has_passed()
        return np.append(values, values.dtype.type(word))  # type: ignore[return-value]

    def heard_in(self, sums: Numbers) -> Numbers:
        """The sums that came of it, without the word."""
        if not self._is_limited:
            return sums
        self.is_up = self.is_up or bool(sums[-1] > 0)
        return sums[:-1]  # type: ignore[return-value]


NO_LIMIT = TimeLeft()
