"""Information criteria: which model along a path to take, without held-out rows.

Each weighs how well a model fits its rows against how many weights it has; the lowest value is the choice. AIC takes
more features than BIC, BIC more than EBIC. Choose EBIC where there are more features than rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from blockgreedy.base.names import CRITERIA
from blockgreedy.problem.losses import Loss

Array = NDArray[np.float64]

_GAMMA = 0.5  # of EBIC, as Chen and Chen (2008) recommend for more features than rows
_MOST_FREEDOM = 0.5  # per row


@dataclass(frozen=True, eq=False)
class Criteria:
    """AIC, BIC and EBIC of models that were fitted to the same rows."""

    loss: Loss
    n_rows: float
    n_features: int
    losses: Array  # mean loss of each model
    nonzeros: NDArray[np.int64]
    degrees_of_freedom: NDArray[np.int64]

    def aic(self) -> Array:
        return self._minus_two_log_likelihood() + 2.0 * self.degrees_of_freedom

    def bic(self) -> Array:
        return np.asarray(self._minus_two_log_likelihood() + np.log(self.n_rows) * self.degrees_of_freedom)

    def ebic(self, gamma: float = _GAMMA) -> Array:
        p, k = self.n_features, self.nonzeros
        return np.asarray(self.bic() + 2 * gamma * (gammaln(p + 1) - gammaln(k + 1) - gammaln(p - k + 1)))

    def to_choose_by(self) -> dict[str, Array] | None:
        """All three by name; None where the loss belongs to no likelihood.

        nan where a least-squares model has more than half as many weights as there are rows: its residuals, and with
        them every criterion, fall without bound as it comes to fit each row exactly.
        """
        if self.loss.minus_two_log_likelihood(self.n_rows, self.losses) is None:
            return None
        saturated = self.degrees_of_freedom > _MOST_FREEDOM * self.n_rows
        leave_out = saturated if self.loss.is_quadratic else np.zeros_like(saturated)
        return {name: np.where(leave_out, np.nan, getattr(self, name)()) for name in CRITERIA}

    def _minus_two_log_likelihood(self) -> Array:
        found = self.loss.minus_two_log_likelihood(self.n_rows, self.losses)
        if found is None:
            raise ValueError(f"loss={self.loss.name!r} belongs to no likelihood; squared and logistic do")
        return found


def lowest(name: str, values: Array) -> int:
    """The position of the choice; nan does not count."""
    if np.all(np.isnan(values)):
        raise ValueError(f"no model of the path has few enough weights for {name.upper()}: it needs more rows")
    return int(np.nanargmin(values))
