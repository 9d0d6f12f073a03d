"""What a machine takes for the parts of a fit on a grid: the terms of the plan's model."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Terms:
    """Seconds, on one core where nothing else is said. ``calibrate`` measures all but those of the network."""

    # Entries of X: a gradient reads each once, a product of the quadratic model twice (Zp, then Zᵀ of it).
    gradient: float = 0.7e-9
    product: float = 1.2e-9
    copy: float = 1.5e-9  # of a column that enters the working set
    cut: float = 8e-9  # and is cut by rows for other ranks, packed and unpacked
    # Rows: losses and derivatives (of an iteration, by all cores), and vectors of NumPy (of a gradient, by one).
    row_of_step: float = 15e-9
    row: float = 9e-9
    column: float = 30e-9  # of a gradient: thresholds, scores, masks; by one core
    # Products of the model: vectors as long as the working set, and calls.
    working: float = 9e-9
    call: float = 25e-6
    memory_bandwidth: float = 60e9  # bytes per second of a machine, which its cores share
    # Messages between machines (seconds of a round between two; bytes per second come from gbit), and inside of one.
    latency: float = 30e-6
    local_latency: float = 1.5e-6
    local_bandwidth: float = 5e9

    def as_dict(self) -> dict[str, float]:
        return asdict(self)
