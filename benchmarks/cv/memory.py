"""The peak of a process's memory during a fit. Linux only (/proc); nan elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

STATUS = Path("/proc/self/status")


def with_peak(work: Callable[[], Any]) -> tuple[Any, float]:
    """What ``work`` returns, and the bytes by which memory rose meanwhile. Other processes are not counted."""
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        before = _bytes("VmRSS")
    except OSError:
        return work(), math.nan
    result = work()
    return result, float(_bytes("VmHWM") - before)


def _bytes(name: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


def matrix_bytes(X: Any) -> int:
    """One CSC matrix, as it lies in memory."""
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
