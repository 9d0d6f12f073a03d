"""When, with which versions and on what kind of machine something was computed; nothing that names its user."""

from __future__ import annotations

import os
import platform
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy


def surroundings() -> dict[str, Any]:
    """date (ISO 8601, with the zone), versions by name, machine (cpu, cores)."""
    import blockgreedy

    return {
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "versions": {
            "python": platform.python_version(),
            "blockgreedy": blockgreedy.__version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
        },
        "machine": {"cpu": cpu_name(), "cores": os.cpu_count()},
    }


@cache
def cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or "unknown"
