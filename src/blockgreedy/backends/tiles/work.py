"""What a fit is expected to do: iterations, passes and sizes, which depend on the data and hardly on the grid."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

# Of logistic fits with intercept to tol 1e-4 (reuters, enron, news20, dorothea, generated text and KDDA): medians at
# alpha_max / 1000, / 100 and / 10, by benchmarks/tiles/work.py. Iterations of single problems were between half and
# twice these, products up to three times.
_RATIOS = (1e-3, 1e-2, 1e-1)
_MEASURED = {
    "iterations": (9.5, 5, 3.5),
    "gradients": (13, 6.5, 4.5),
    "products": (326, 74.5, 49.5),
    "working_entries": (0.39, 0.28, 0.10),
    "due": (0.85, 0.67, 0.40),
    "relevant": (0.90, 0.41, 0.067),
}
_COLUMNS_PER_ROOT = 4.3  # columns of the working set, as a multiple of √n, at alpha_max / 100
_COLUMNS_POWER = 0.5  # and how they grow as alpha falls


@dataclass(frozen=True)
class Work:
    """``working_set`` and ``working_entries`` are means over the products."""

    iterations: float
    gradients: float  # passes Xᵀθ: one per iteration, and one per attempt at a proof
    products: float  # of the quadratic models, all together
    working_set: float  # columns
    working_entries: float  # the part of X's entries that these columns have
    due: float  # the part of the entries that a gradient reads: other columns keep their thresholds for sure
    relevant: float = 1.0  # the part of the columns that can have a weight at all
    wanted: float = 0.97  # of the working set: what a product is about, in the mean

    @property
    def copied(self) -> float:
        """The part of the entries that enters working sets in the course of the fit."""
        return min(1.0, 1.6 * self.working_entries)

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


def expected_work(n_samples: int, n_features: int, alpha_ratio: float, **known: float | None) -> Work:
    """What is usual at this alpha/alpha_max; ``known`` replaces what is known better."""
    at = np.log(min(max(alpha_ratio, 1e-5), 1.0))
    found: dict[str, float] = {}
    for name, values in _MEASURED.items():
        # a straight line in logarithms, continued beyond what was measured but never to less than one pass
        logs, places = np.log(values), np.log(_RATIOS)
        k = 0 if at < places[1] else 1
        slope = (logs[k + 1] - logs[k]) / (places[k + 1] - places[k])
        found[name] = float(np.exp(logs[k] + slope * (at - places[k])))
    for name in ("iterations", "gradients", "products"):
        found[name] = max(1.0, round(found[name]))
    for name in ("working_entries", "due", "relevant"):
        found[name] = min(1.0, found[name])
    columns = _COLUMNS_PER_ROOT * np.sqrt(n_samples) * (0.01 / np.exp(at)) ** _COLUMNS_POWER
    found["working_set"] = float(round(min(max(columns, 10), n_features)))
    return Work(**{**found, **{name: float(value) for name, value in known.items() if value is not None}})
