"""Whether a call heard its max_seconds: late by the clock and by processor time, three times in a row."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from hunt.case import Case
from hunt.outcome import Outcome

T = TypeVar("T")
_REPEATS = 2  # what was late is called again, because others use the machine too


def allowed(max_seconds: float) -> float:
    """Seconds after which a call is late."""
    return 2 * max_seconds + 0.5


def timed(call: Callable[[], T]) -> tuple[T, float]:
    """What it returns, and its seconds: processor time where the machine was busy with others."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    return result, min(time.perf_counter() - wall, time.process_time() - cpu)


def on_time(case: Case, outcome: Outcome, call: Callable[[], T]) -> T:
    """What the call returns; it is called again where it was late, and late three times is a finding."""
    result, seconds = timed(call)
    limit = case.options.get("max_seconds")
    if limit is None or seconds <= allowed(limit):
        return result
    repeats = [seconds] + [timed(call)[1] for _ in range(_REPEATS)]
    if min(repeats) > allowed(limit):
        times = ", ".join(f"{s:.2f}" for s in repeats)
        outcome.found("late", f"max_seconds={limit:.3g} took {times} s")
    return result
