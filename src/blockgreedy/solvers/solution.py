"""Solution: what ``solve`` returns, and the one sentence that goes with each status."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from blockgreedy.base.names import Status
from blockgreedy.base.validate import whole
from blockgreedy.problem.certificate import ROUNDING
from blockgreedy.solvers.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from blockgreedy.partitions.partition import Partition
    from blockgreedy.problem.problem import Problem
    from blockgreedy.solvers.telemetry import Telemetry

REMEDIES: dict[str, str] = {
    "max_iter": "raise max_iter or tol",
    "max_seconds": "raise max_seconds or tol",
    "stalled": "rounding hides the rest: raise tol, or use standardize=True where columns differ much in scale",
    "interrupted": "the best point so far is returned",
    "diverged": "the best point seen is returned",
}

_SAME = 1e-6  # part by which objectives of one null model may differ: engines compute them in units of their own


@dataclass(frozen=True)
class Solution:
    """The result of ``solve``: weights and intercept, and the duality gap as a proof of their accuracy.

    Attributes
    ----------
    coef : ndarray of shape (n_features,)
        Weights.
    intercept : float
        Intercept, 0 if none is fitted.
    objective : float
        Mean loss plus penalty.
    gap : float
        Objective − dual value: the objective is at most this much above the true minimum.
    dual : ndarray of shape (n_samples,)
        The dual point that proves the gap.
    status : {"converged", "max_iter", "max_seconds", "interrupted", "diverged", "stalled"}
        How the run ended.
    message : str
        One sentence on the status: what happened, and what to change if it did not converge.
    n_iter : int
        Iterations.
    seconds : float
        Time in iterations; for "auto" all but the certificate.
    check_seconds : float
        Time in gap checks and recording; for "auto" in the certificate.
    trace : Trace
        The course of the run.
    phase_seconds : dict of str to float
        Where the default solver spent its time.
    partition : Partition or None
        The blocks of features that were used.
    feature_names : ndarray of shape (n_features,) or None
        Those of the problem.
    step_scale : float
        Of the family with ``update="add"``: the scale of its steps, also where it was asked for by name.
    telemetry : Telemetry or None
        What every iteration did, where it was recorded: ``solve(…, telemetry=True)`` and ``family.run``.
    grid : tuple of two ints, or None
        Of fits by several processes, or of a store: groups of rows and groups of columns, a rank for each pair.
    alpha, l2 : float
        Those of the problem that was solved.
    f_null : float
        Objective of its null model, the scale of ``tol``.

    Examples
    --------
    >>> import blockgreedy as bg
    >>> data = bg.data.text_like(300, 400, 10.0)
    >>> solution = bg.solve(bg.Problem(data, loss="logistic", alpha=0.001))
    >>> solution.status, len(solution.top(3))
    ('converged', 3)
    """

    coef: NDArray[np.float64]
    intercept: float
    objective: float
    gap: float
    dual: NDArray[np.float64]
    status: Status
    message: str
    n_iter: int
    seconds: float
    check_seconds: float
    trace: Trace = field(repr=False)
    phase_seconds: dict[str, float] = field(default_factory=dict, repr=False)
    partition: Partition | None = field(default=None, repr=False)
    feature_names: NDArray[np.str_] | None = field(default=None, repr=False)
    step_scale: float = field(default=1.0, repr=False)
    telemetry: Telemetry | None = field(default=None, repr=False)
    grid: tuple[int, int] | None = field(default=None, repr=False)
    alpha: float = field(default=float("nan"), repr=False)
    l2: float = field(default=float("nan"), repr=False)
    f_null: float = field(default=float("nan"), repr=False)

    @property
    def nonzeros(self) -> int:
        return int(np.count_nonzero(self.coef))

    def checked_for(self, problem: Problem) -> Solution:
        """This, or an error where it is known not to be a solution of the problem.

        The null model tells other targets, row weights, offsets and losses apart, without a look at X.
        """
        asked = "give the problem that was solved"
        if len(self.coef) != problem.n_features:
            raise ValueError(
                f"solution has {len(self.coef):,} weights, and the problem {problem.n_features:,} features; {asked}"
            )
        for name in ("alpha", "l2"):
            own, other = getattr(self, name), float(getattr(problem, name))
            if own != other and not np.isnan(own):
                way = ": problem.with_alpha(alpha, l2) is a problem of its own"
                raise ValueError(
                    f"solution is of {name}={own:.10g}, and the problem has {name}={other:.10g}; {asked}{way}"
                )
        known = problem.null_model.objective
        if not problem.has_unpenalised and abs(self.f_null - known) > _SAME * known:
            raise ValueError(
                f"solution is of another problem: its null model has the objective {self.f_null:.10g}, that of this "
                f"problem {known:.10g}; {asked}"
            )
        return self

    def top(self, k: int = 20) -> list[tuple[str, float]]:
        """The k features of largest |weight|, by name."""
        order = np.argsort(-np.abs(self.coef), kind="stable")[: min(whole("k", k, 0), self.nonzeros)]
        names = self.feature_names
        return [(f"feature {j}" if names is None else str(names[j]), float(self.coef[j])) for j in order]

    def __repr__(self) -> str:
        return (
            f"Solution({self.status}: objective {self.objective:.8g}, gap {self.gap:.2g}, {self.nonzeros} nonzeros, "
            f"{self.n_iter} iterations, {self.seconds:.3g} s)"
        )

    def plot(self, x: Literal["seconds", "iterations"] = "seconds") -> Figure:
        """Error, gap and nonzeros over the run, as a matplotlib figure.

        A notebook displays it. If matplotlib.pyplot is imported, it becomes pyplot's current figure, so that
        ``plt.show()`` and ``plt.gcf()`` work. This holds for all ``plot`` methods.
        """
        from blockgreedy.reports.plots import convergence_figure

        return convergence_figure(self.trace, self.objective, x)

    def _repr_html_(self) -> str:
        from blockgreedy.reports.plots import notebook_html

        facts = [
            ("status", self.message if self.message.startswith(self.status) else f"{self.status}: {self.message}"),
            ("objective", f"{self.objective:.10g}"),
            ("duality gap", f"{self.gap:.3g}: the objective is at most this far above the true minimum"),
            ("nonzeros", f"{self.nonzeros:,} of {len(self.coef):,}"),
            ("intercept", f"{self.intercept:.6g}"),
            ("iterations", f"{self.n_iter:,}"),
            ("seconds", f"{self.seconds:.3g} in iterations, {self.check_seconds:.3g} in checks of the duality gap"),
        ]
        draw = self.plot if len(self.trace) > 1 else None
        return notebook_html("Solution", facts, "Error, gap and nonzeros over the run", draw, self.top(10))


def message(status: Status, gap: float, f_null: float, tol: float, n_iter: int, remark: str = "") -> str:
    """What happened, how far it got, and what to change. ``remark`` is the engine's own (``Engine.remark``)."""
    reached = f"relative gap {gap / f_null:.2g}, asked for {tol:.2g}" if f_null > 0 else f"gap {gap:.2g}"
    if status == "converged":
        if f_null > 0 and gap > tol * f_null:  # NullModel.floor
            reached += f"; {ROUNDING:g} of what the intercept leaves to explain is rounding, and enough for any tol"
        return f"converged: {reached}"
    happened = {
        "max_iter": f"stopped at max_iter={n_iter}",
        "max_seconds": "stopped at max_seconds",
        "stalled": "no step lowers the objective in floating point any more",
        "interrupted": "interrupted",
        "diverged": "diverged",
    }[status]
    return f"{happened}: {reached}; {REMEDIES[status]}{f'; {remark}' if remark else ''}"
