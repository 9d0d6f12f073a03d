"""Several problems on one matrix, solved one after the other under one progress line and one callback."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.base.deadline import Deadline
from blockgreedy.base.names import Status
from blockgreedy.base.validate import check_limits, number
from blockgreedy.estimators.progress import Progress
from blockgreedy.problem.null_model import null_so_far
from blockgreedy.problem.problem import Problem
from blockgreedy.problem.rounding import round_weights
from blockgreedy.solvers.polish import is_small, polished
from blockgreedy.solvers.solution import Solution, message
from blockgreedy.solvers.solve import solve
from blockgreedy.solvers.trace import Record

Array = NDArray[np.float64]
Callback = Callable[[Record], bool | None]


_LEAST_SECONDS = 1e-9  # when time is up, the other problems get their null model
_FINE = 1e-10  # finds the right features almost always; polish does the rest


@dataclass
class Outcome:
    """What became of the problems. After an interruption the last solutions are missing."""

    problems: Sequence[Problem]
    names: Sequence[str]  # of each in messages; "" where there is one
    solutions: list[Solution]
    by_callback: bool  # who interrupted

    @property
    def status(self) -> str:
        return next((s.status for s in self.solutions if s.status != "converged"), "converged")

    @property
    def by_keyboard(self) -> bool:
        return self.status == "interrupted" and not self.by_callback

    def weights(self) -> tuple[Array, Array]:
        """(coefficients, intercepts), a row for each problem; the null model's where the solve did not begin."""
        nulls = [null_so_far(problem) for problem in self.problems[len(self.solutions) :]]
        n_features = self.problems[0].n_features
        coefs = [s.coef for s in self.solutions] + [null.full_coef(n_features) for null in nulls]
        intercepts = [s.intercept for s in self.solutions] + [null.intercept for null in nulls]
        return np.asarray(coefs), np.asarray(intercepts)

    def round_to(self, dtype: np.dtype[Any], tol: float) -> np.dtype[Any]:
        """Rounds weights to the type of X, which the user expects them in; what is proven is proven of these.

        Intercepts stay in float64, where they make up for what rounding does to columns far from 0. Weights that
        would lose the accuracy asked for (large ones that cancel, of columns that are nearly collinear) stay in
        float64 too, as do those of tiles, all of which a look at rounded weights would have to read. Returns the type
        that all weights have now.
        """
        if dtype == np.float64 or self.problems[0].design.is_tiled:
            return np.dtype(np.float64)
        rounded: list[dict[str, Any]] = []
        for problem, solution in zip(self.problems, self.solutions, strict=False):
            coef, intercept, objective = round_weights(problem, solution.coef, solution.intercept, dtype)
            gap = max(objective - (solution.objective - solution.gap), 0.0)
            null = null_so_far(problem)
            # what has converged must stay so; what has not may lose as much again
            spare = 0.0 if solution.status == "converged" else 2 * solution.gap
            if gap > max(null.enough(tol), spare):
                return np.dtype(np.float64)
            rounded.append({"coef": coef, "intercept": intercept, "objective": objective, "gap": gap})
        pairs = zip(self.solutions, rounded, strict=True)
        self.solutions = [replace(solution, **values) for solution, values in pairs]
        return dtype

    def complaints(self) -> list[str]:
        """A sentence for each solution that ended early for a reason that nobody asked for."""
        return [
            f"{name}{solution.message}"
            for name, solution in zip(self.names, self.solutions, strict=False)
            if solution.status not in ("converged", "interrupted")
        ]


def solve_all(
    problems: Sequence[Problem],
    names: Sequence[str],
    starts: Sequence[tuple[Array, float]] | None,
    *,
    title: str,
    verbose: bool,
    callback: Callback | None,
    tol: float,
    max_seconds: float | None,
    **options: Any,
) -> Outcome:
    """Until all are solved, Ctrl-C is pressed or the callback says so. ``max_seconds``: of all of them together."""
    check_limits(tol, None, max_seconds)
    deadline = Deadline(max_seconds)
    solutions: list[Solution] = []
    by_callback = False
    with Progress(title) if verbose else nullcontext() as progress:
        for k, problem in enumerate(problems):

            def watch(record: Record, name: str = names[k]) -> bool:
                nonlocal by_callback
                if progress is not None:
                    progress.observe(record, name)
                by_callback = callback is not None and bool(callback(record))
                return by_callback

            start: dict[str, Any] = (
                {} if starts is None else {"coef_init": starts[k][0], "intercept_init": starts[k][1]}
            )
            watched = watch if progress is not None or callback is not None else None
            small = is_small(problem)
            asked = min(number("tol", tol), _FINE) if small else tol
            left = None if max_seconds is None else max(deadline.seconds_left(), _LEAST_SECONDS)
            solution = solve(problem, tol=asked, callback=watched, max_seconds=left, **start, **options)
            if small:
                solution = _held_to(problem, solution, tol)
                solution = polished(problem, solution, deadline) if solution.status == "converged" else solution
            solutions.append(solution)
            if solutions[-1].status == "interrupted":
                break
            by_callback = False  # it wanted to stop where the solve had ended anyway
    return Outcome(problems, names, solutions, by_callback)


def _held_to(problem: Problem, solution: Solution, tol: float) -> Solution:
    """The solution of a run that was asked for more than ``tol``, as one that was asked for that."""
    if solution.status in ("converged", "interrupted", "diverged"):
        return solution
    null = null_so_far(problem)
    is_enough = null.objective > 0 and solution.gap / null.objective <= null.tol(tol)
    status: Status = "converged" if is_enough else solution.status
    text = message(status, solution.gap, null.objective, tol, solution.n_iter)
    return replace(solution, status=status, message=text)
