"""How busy the machine is while we do nothing: what others use of it. Linux only (/proc); nan elsewhere."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from pathlib import Path

STAT = Path("/proc/stat")


def cores_in_use(seconds: float = 1.0) -> float:
    """Mean number of busy cores over the next ``seconds``, which this process sleeps through."""
    try:
        before = _busy_seconds()
    except OSError:
        return math.nan
    began = time.monotonic()
    time.sleep(seconds)
    return (_busy_seconds() - before) / (time.monotonic() - began)


def wait_for_quiet(most: float, patience: float, look: Callable[[], float] = cores_in_use) -> float:
    """Returns when others use at most ``most`` cores, or after ``patience`` seconds; and how many they use then."""
    began = time.monotonic()
    while (busy := look()) > most and time.monotonic() - began < patience:
        time.sleep(min(5.0, patience))
    return busy


def _busy_seconds() -> float:
    user, nice, system, _idle, _waiting, *more = STAT.read_text().split("\n", 1)[0].split()[1:]
    return sum(map(int, (user, nice, system, *more[:3]))) / os.sysconf("SC_CLK_TCK")
