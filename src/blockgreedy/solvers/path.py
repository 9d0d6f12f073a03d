"""Solve a path: the solutions of one problem along a descending list of alphas.

path = solve_path(problem, n_alphas=100)
path.plot()
path.coefs[:, path.index_of_nonzeros(50)]
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blockgreedy.backends.tiles.communicator import Alone
from blockgreedy.base.deadline import Deadline
from blockgreedy.base.reals import real_array
from blockgreedy.base.threads import resolve_threads
from blockgreedy.base.validate import check_grid, check_limits, check_ratio, flag, may_call, shown, whole
from blockgreedy.problem.core_problem import alpha_at_null
from blockgreedy.problem.problem import Problem
from blockgreedy.solvers.cluster import gang_of, threads_beside
from blockgreedy.solvers.solution_path import PathPoint, SolutionPath, path_message
from blockgreedy.solvers.solve import ENGINES
from blockgreedy.solvers.walk import Walk

if TYPE_CHECKING:
    from blockgreedy.solvers.tile_engine import TileEngine

Array = NDArray[np.float64]

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
    cluster: Any = None,
    grid: tuple[int, int] | None = None,
) -> SolutionPath:
    """Solve a problem for a decreasing sequence of alphas, each with a duality gap as a proof of its accuracy.

    Parameters
    ----------
    problem : Problem
        Its own alpha is not used.
    alphas : array, optional
        The alphas, in any order. Default: ``n_alphas`` values from alpha_max down to eps·alpha_max, equally spaced on
        a log scale.
    n_alphas, eps : int and float, default 100 and 1e-3
        The number of alphas, and the smallest one as a fraction of alpha_max.
    l1_ratio : float, optional
        For an elastic net as in scikit-learn, whose L1 and ridge parts shrink together: alpha·l1_ratio is the weight
        of the L1 norm, alpha·(1 − l1_ratio) is l2. Default: alpha is the weight of the L1 norm, l2 is constant.
    max_nonzeros : int, optional
        The path ends with the first point that has more nonzero weights.
    early_stop : bool, default False
        End the path as glmnet does: when 99.9 % of the null model's loss is explained, or a step down the path
        explains less than 1e-5 more of it.
    tol, max_iter : float and int, optional
        For each point, as in ``solve``.
    max_seconds : float, optional
        For the whole path; heard as in ``solve``. The last point is then the best found for its alpha so far.
    n_threads : int, optional
        As in ``solve``.
    keep_duals : bool, default False
        Keep the dual point of each alpha, to check the gaps with ``problem.duality_gap``.
    callback : callable, optional
        Called with each PathPoint; returning True ends the path.
    cluster, grid : optional
        Who solves it together, as in ``solve``.

    Returns
    -------
    SolutionPath
        A point for each alpha. Ctrl-C ends the path with status "interrupted"; its last point is then the best found
        for that alpha so far.
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a blockgreedy.Problem, got {type(problem).__name__}")
    asked = problem.n_threads if n_threads is None else n_threads
    threads = resolve_threads(asked) if cluster is None or asked is not None else threads_beside(cluster)
    if cluster is None and grid is not None:
        raise ValueError(f"grid={shown(grid)} needs cluster=…, whose ranks it arranges")
    check_limits(tol, max_iter, max_seconds)
    early_stop, keep_duals = flag("early_stop", early_stop), flag("keep_duals", keep_duals)
    may_call("callback", callback)
    if max_nonzeros is not None:
        max_nonzeros = whole("max_nonzeros", max_nonzeros, 0)
    ratio = 1.0 if l1_ratio is None else check_ratio(l1_ratio, problem.l2, alphas)
    began = time.perf_counter()
    deadline = Deadline(max_seconds, began)
    descending = _grid(problem, alphas, n_alphas, eps, ratio, deadline, threads)
    is_shared = cluster is not None or problem.design.is_tiled
    gang = gang_of(Alone() if cluster is None else cluster, grid) if is_shared else None
    make = ENGINES["auto"] if gang is None else gang.engine
    walk = Walk(
        problem, descending, ratio, make, tol=float(tol), max_iter=max_iter, deadline=deadline, n_threads=threads
    )

    def is_last(points: list[PathPoint]) -> bool:
        is_large = max_nonzeros is not None and len(points[-1].values) > max_nonzeros
        return is_large or (early_stop and _is_explained(points, walk.null_loss))

    def follow() -> tuple[list[PathPoint], str]:
        return _points(walk, descending, keep_duals, is_last, callback)

    points, ended = follow() if gang is None else gang.run(cast("TileEngine", walk.engine), follow)
    others = [point.status for point in points if point.status != "converged"]
    status = ended if ended == "interrupted" else others[0] if others else ended or "converged"
    text = path_message(status, points, len(descending))
    return SolutionPath(problem, points, walk.null_loss, status, text, time.perf_counter() - began)


def _points(
    walk: Walk,
    alphas: Array,
    keep_duals: bool,
    is_last: Callable[[list[PathPoint]], bool],
    callback: Callable[[PathPoint], bool | None] | None,
) -> tuple[list[PathPoint], str]:
    """The points of the path, and why it ended before its last alpha, if it did."""
    points: list[PathPoint] = []
    ended = ""
    for alpha in alphas:
        point = walk.to(float(alpha), keep_duals)
        points.append(point)
        if point.status in ("interrupted", "max_seconds"):
            ended = point.status
        elif is_last(points):
            ended = "stopped"
        elif walk.is_late and alpha != alphas[-1]:  # though all points so far are proven
            ended = "max_seconds"
        if callback is not None:
            try:
                ended = "stopped" if bool(callback(point)) and not ended else ended
            except KeyboardInterrupt:
                ended = "interrupted"
        if ended:
            break
    return points, ended


def _grid(
    problem: Problem,
    alphas: ArrayLike | None,
    n_alphas: int,
    eps: float,
    ratio: float,
    deadline: Deadline,
    n_threads: int,
) -> Array:
    if alphas is not None:
        grid = real_array("alphas", alphas).astype(np.float64)
        if grid.ndim != 1 or len(grid) == 0 or not np.all(np.isfinite(grid)) or np.any(grid < 0):
            raise ValueError("alphas must be a non-empty list of finite numbers of at least 0")
        if ratio < 1 and not np.all(grid > 0):
            raise ValueError("alphas must be above 0 with l1_ratio below 1")
        return np.sort(grid)[::-1]
    n_alphas = check_grid(n_alphas, eps)
    null = problem.fit_null_model(deadline, n_threads)
    if null.status == "interrupted":
        raise KeyboardInterrupt
    largest = (problem.alpha_max if null.status == "converged" else alpha_at_null(problem, null)) / ratio
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
