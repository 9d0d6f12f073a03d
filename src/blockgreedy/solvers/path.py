"""Solve a path: the solutions of one problem along a descending list of alphas.

    path = solve_path(problem, n_alphas=100)
    path.plot()
    path.coefs[:, path.index_of_nonzeros(50)]

Predictions, gradients, norms and what is known of the columns stay in the core from one alpha to the next.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blockgreedy.backends.cpu import CpuModel
from blockgreedy.base.reals import real_array
from blockgreedy.base.threads import resolve_threads
from blockgreedy.base.validate import check_grid, check_limits, check_ratio, flag, may_call, whole
from blockgreedy.problem.problem import Problem
from blockgreedy.solvers.guard import guard
from blockgreedy.solvers.solution_path import PathPoint, SolutionPath
from blockgreedy.solvers.working_set import MAX_ITER, final_status, rescale

if TYPE_CHECKING:
    from blockgreedy import _core

Array = NDArray[np.float64]

# The last alpha's weights often keep tol at the next one. A step makes them far better, which the alphas to come
# start from; only what is this much better than asked for does without.
_SURE = 1e-3
# glmnet's: nothing is left to explain, or a step down the path explains next to nothing more.
_ENOUGH_EXPLAINED, _LEAST_MORE, _FIRST_STOP = 0.999, 1e-5, 5


def solve_path(
    problem: Problem,
    alphas: ArrayLike | None = None,
    *,
    n_alphas: int = 100,
    eps: float = 1e-3,
    l1_ratio: float | None = None,
    max_nonzeros: int | None = None,
    early_stop: bool = False,
    tol: float = 1e-4,
    max_iter: int | None = None,
    max_seconds: float | None = None,
    n_threads: int | None = None,
    keep_duals: bool = False,
    callback: Callable[[PathPoint], bool | None] | None = None,
) -> SolutionPath:
    """Solves ``problem`` for a decreasing sequence of alphas, each with a duality gap as a proof of its accuracy.

    Parameters
    ----------
    problem : its own alpha is not used
    alphas : the alphas, in any order; None: ``n_alphas`` values from alpha_max down to eps·alpha_max, equally spaced
        on a log scale
    l1_ratio : for an elastic net as in scikit-learn, whose L1 and ridge parts shrink together: alpha·l1_ratio is the
        weight of the L1 norm, alpha·(1 − l1_ratio) is l2. None: alpha is the weight of the L1 norm, l2 is constant
    max_nonzeros : the path ends with the first point that has more nonzero weights
    early_stop : end the path as glmnet does: when 99.9 % of the null model's loss is explained, or a step down the
        path explains less than 1e-5 more of it
    tol : for each point, as in ``solve``
    max_iter : for each point (default 1000)
    max_seconds : for the whole path
    keep_duals : keep the dual point of each alpha (n numbers each), to check the gaps with ``problem.duality_gap``
    callback : called with each PathPoint; returning True ends the path

    Ctrl-C ends the path with status "interrupted". Its last point is then the best found for that alpha so far.
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a blockgreedy.Problem, got {type(problem).__name__}")
    threads = resolve_threads(n_threads)
    check_limits(tol, max_iter, max_seconds)
    early_stop, keep_duals = flag("early_stop", early_stop), flag("keep_duals", keep_duals)
    may_call("callback", callback)
    if max_nonzeros is not None:
        max_nonzeros = whole("max_nonzeros", max_nonzeros, 0)
    ratio = 1.0 if l1_ratio is None else check_ratio(l1_ratio, problem.l2, alphas)
    began = time.perf_counter()
    grid = _grid(problem, alphas, n_alphas, eps, ratio)
    limit = MAX_ITER if max_iter is None else max_iter
    until = began + (float("inf") if max_seconds is None else float(max_seconds))
    run = _Run(_at(problem, grid[0], ratio), ratio * grid[-1], float(tol), int(limit), threads, until)
    points: list[PathPoint] = []
    ended = ""
    for alpha in grid:
        point = run.point_at(float(alpha), _at(problem, alpha, ratio), keep_duals)
        points.append(point)
        if point.status in ("interrupted", "max_seconds"):
            ended = point.status
        elif (max_nonzeros is not None and len(point.values) > max_nonzeros) or (
            early_stop and _is_explained(points, run.null_loss)
        ):
            ended = "stopped"
        if callback is not None:
            try:
                ended = "stopped" if bool(callback(point)) and not ended else ended
            except KeyboardInterrupt:
                ended = "interrupted"
        if ended:
            break
    others = [point.status for point in points if point.status != "converged"]
    status = ended if ended == "interrupted" else others[0] if others else ended or "converged"
    return SolutionPath(
        problem, points, run.null_loss, status, _message(status, points, grid), time.perf_counter() - began
    )


class _Run:
    """The solver on its way down the path."""

    def __init__(
        self, problem: Problem, least_alpha: float, tol: float, max_iter: int, n_threads: int, until: float
    ) -> None:
        self.problem, self.max_iter, self.until = problem, max_iter, until
        null = problem.fit_null_model(until)
        self.ended = "" if null.status == "converged" else null.status
        self.null_loss = null.objective - problem.penalty_at(null.features).value(null.coef)
        self._made_of = null, least_alpha, tol, n_threads
        self.engine: _core.WorkingSet | None = None

    def _start(self) -> bool:
        """At the null model; True on Ctrl-C."""
        null, least_alpha, tol, n_threads = self._made_of
        while True:
            self.scaling = self.problem.scaling
            null = self.scaling.null_in(null)
            self.model = CpuModel(self.scaling.inner, n_threads)
            engine = self.model.working_set(
                0, None, tol, null.objective, null.floor, self.scaling.alpha_in(least_alpha)
            )
            self.coef = null.full_coef(self.problem.n_features)
            interrupted = engine.start(self.coef, null.intercept)
            if not engine.out_of_range:
                self.engine = engine
                return interrupted
            rescale(self.problem)
            null = self._made_of[0]

    def point_at(self, alpha: float, here: Problem, keep_dual: bool) -> PathPoint:
        began, before = time.perf_counter(), 0
        status = ""
        try:
            if self.engine is not None:
                before = self.engine.n_iter
                interrupted = self.engine.lower_alpha(*self._penalty_in(here))
            else:
                interrupted = self._start()
            status = "interrupted" if interrupted else self.ended
            status = self._descend(before, _SURE, status)
        except KeyboardInterrupt:
            status = "interrupted"
        assert self.engine is not None
        engine = self.engine
        scaling = self.scaling if here is self.problem else self.scaling.with_alpha(here)
        point = guard(
            scaling, self.model, engine, self.coef, engine.support(), status not in ("converged", "interrupted")
        )
        if status == "converged" and not point.is_proven:  # predictions have drifted from the weights, or the proof
            try:
                interrupted = engine.start(self.coef, point.inner_intercept)
                status = self._descend(before, 1.0, "interrupted" if interrupted else "")
            except KeyboardInterrupt:
                status = "interrupted"
            point = guard(scaling, self.model, engine, self.coef, engine.support(), status != "interrupted")
        dual = None
        if keep_dual:
            dual = scaling.dual_out(np.array(engine.dual) if point.other_dual is None else point.other_dual)
        return PathPoint(
            alpha, point.features, point.values, point.intercept, point.objective, point.gap,
            point.objective - point.penalty, engine.n_iter - before, time.perf_counter() - began,
            final_status(status, point), dual,
        )  # fmt: skip

    def _penalty_in(self, here: Problem) -> tuple[float, float]:
        return self.scaling.alpha_in(here.alpha), here.l2

    def _descend(self, before: int, sure: float, status: str) -> str:
        """Steps until something says stop; ``sure``: the part of what is asked for that does without a step."""
        engine = self.engine
        assert engine is not None
        while not status:
            status = self._status(before, sure)
            if not status:
                improved, interrupted = engine.step()
                sure = 1.0
                stuck = "" if improved else self._status(before, sure) or "stalled"
                status = "interrupted" if interrupted else stuck
        return status

    def _status(self, before: int, sure: float) -> str:
        engine = self.engine
        assert engine is not None
        if engine.objective - engine.dual_value <= sure * engine.enough:
            return "converged"
        if engine.n_iter - before >= self.max_iter:
            return "max_iter"
        return "max_seconds" if time.perf_counter() >= self.until else ""


def _at(problem: Problem, alpha: float, ratio: float) -> Problem:
    return problem.with_alpha(alpha * ratio, None if ratio == 1 else alpha * (1 - ratio))


def _grid(problem: Problem, alphas: ArrayLike | None, n_alphas: int, eps: float, ratio: float) -> Array:
    if alphas is not None:
        grid = real_array("alphas", alphas).astype(np.float64)
        if grid.ndim != 1 or len(grid) == 0 or not np.all(np.isfinite(grid)) or np.any(grid < 0):
            raise ValueError("alphas must be a non-empty list of finite numbers of at least 0")
        if ratio < 1 and not np.all(grid > 0):
            raise ValueError("alphas must be above 0 with l1_ratio below 1")
        return np.sort(grid)[::-1]
    n_alphas = check_grid(n_alphas, eps)
    largest = problem.alpha_max / ratio
    if not np.isfinite(largest):
        raise ValueError(f"l1_ratio={ratio!r} is too small: the first alpha, alpha_max/l1_ratio, is infinite")
    if largest == 0:  # nothing to explain: any alpha gives the null model
        return np.zeros(1)
    return np.asarray(largest * np.geomspace(1.0, float(eps), n_alphas))


def _is_explained(points: list[PathPoint], null_loss: float) -> bool:
    """glmnet's rule."""
    if not null_loss > 0:
        return True
    share = 1 - points[-1].loss / null_loss
    if share > _ENOUGH_EXPLAINED:
        return True
    if len(points) < _FIRST_STOP:
        return False
    return (points[-2].loss - points[-1].loss) / null_loss < _LEAST_MORE * share


def _message(status: str, points: list[PathPoint], grid: Array) -> str:
    got = f"{len(points)} of {len(grid)} alphas"
    if status == "converged":
        return f"converged at {got}"
    if status == "stopped":
        return f"ended after {got}, as asked for"
    where = next((point.alpha for point in points if point.status == status), grid[-1])
    advice = {
        "max_iter": "raise max_iter or tol",
        "max_seconds": "raise max_seconds or tol, or ask for fewer alphas",
        "stalled": "raise tol",
    }.get(status, "the points so far are returned")
    return f"{status} at alpha={where:.3g} ({got}): {advice}"
