"""``plan_cluster``: what a fit on a cluster would take, without one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from blockgreedy.backends.tiles.agreement import agreed
from blockgreedy.backends.tiles.calibration import calibrate, first_rows
from blockgreedy.backends.tiles.communicator import Alone, Communicator
from blockgreedy.backends.tiles.plan import ClusterPlan, Machines, Size, plan_grids
from blockgreedy.backends.tiles.terms import Terms
from blockgreedy.backends.tiles.work import expected_work
from blockgreedy.base.design import TiledDesign
from blockgreedy.base.memory import bytes_of
from blockgreedy.base.threads import resolve_threads
from blockgreedy.base.validate import above_zero, shown, whole


@dataclass(frozen=True)
class Ranks:
    """Processes that measure together what messages among them take."""

    communicator: Communicator
    are_near: bool  # on one machine


def size_of(data: Any) -> Size:
    """Of a store, or of (rows, columns, entries)."""
    if isinstance(data, TiledDesign):
        counts = [np.asarray(data.statistics_of(c).entries) for c in range(data.grid[1])]
        entries = np.concatenate(counts).astype(np.int64)
        return Size(*data.shape, data.n_entries, data.dtype.itemsize, entries)
    try:
        n, p, n_entries = data
    except (TypeError, ValueError):
        raise TypeError(
            f"data={shown(data)} must be a store (bg.data.Store), or three numbers: rows, columns and entries"
        ) from None
    n, p, n_entries = whole("rows", n, 1), whole("columns", p, 1), whole("entries", n_entries, 1)
    if n_entries > n * p:
        raise ValueError(f"entries={n_entries} are more than {n} × {p}")
    return Size(n, p, n_entries)


def _share(name: str, value: float) -> float:
    found = above_zero(name, value)
    if found > 1:
        raise ValueError(f"{name}={shown(value)} must be above 0 and at most 1")
    return found


def plan_cluster(
    data: Any,
    *,
    machines: int,
    cores: int,
    gbit: float = 10.0,
    ranks_per_machine: int = 1,
    memory: int | str | None = None,
    alpha_ratio: float = 0.01,
    iterations: float | None = None,
    products: float | None = None,
    working_set: int | None = None,
    relevant: float | None = None,
    terms: Terms | Ranks | Literal["calibrate"] | None = None,
) -> ClusterPlan:
    """Predict memory, messages and seconds of a fit on every grid of a cluster's ranks.

    Parameters
    ----------
    data : Store, or tuple of three int
        The data, of which only sizes are looked at; or rows, columns and entries that are not 0.
    machines, cores : int
        Machines of the cluster, and cores of each.
    gbit : float
        Gigabits per second of a machine's network.
    ranks_per_machine : int
        Processes on each machine, which share its cores as threads.
    memory : int or str, optional
        Of a machine, such as "64G": grids that need more are not chosen.
    alpha_ratio : float
        alpha / alpha_max: the smaller, the larger the model and the longer the fit.
    iterations, products, working_set, relevant : optional
        What is known of such fits: outer iterations, products of the quadratic models in all, columns of the working
        set, the part of all columns that can have a weight (default: what was usual at this alpha_ratio on the data
        sets that were measured). Of wide data whose columns have few entries ``relevant`` is far smaller.
    terms : Terms, Ranks or "calibrate", optional
        What parts of the work take on one core, and messages (default: those of an ordinary server). "calibrate"
        measures this machine, in some 10 seconds, on rows of the store; ``Ranks``, in all processes of a
        communicator, also its messages.

    Returns
    -------
    ClusterPlan
        ``best`` and ``grids``, each with ``grid``, ``memory``, ``rounds``, ``n_bytes``, ``per_iteration``, ``total``
        and ``seconds`` (by what they are spent on); ``as_dict()``.
    """
    measuring = terms if isinstance(terms, Ranks) else Ranks(Alone(), True)
    size = agreed(measuring.communicator, lambda: size_of(data))  # a file may be unreadable for one rank alone
    cluster = Machines(
        whole("machines", machines, 1),
        whole("cores", cores, 1),
        above_zero("gbit", gbit),
        whole("ranks_per_machine", ranks_per_machine, 1),
        None if memory is None else bytes_of("memory", memory),
    )
    alpha_ratio = _share("alpha_ratio", alpha_ratio)
    known = {
        "iterations": None if iterations is None else above_zero("iterations", iterations),
        "products": None if products is None else above_zero("products", products),
        "relevant": None if relevant is None else _share("relevant", relevant),
        "working_set": None if working_set is None else float(whole("working_set", working_set, 1, size.n_features)),
    }
    work = expected_work(size.n_samples, size.n_features, alpha_ratio, **known)
    if terms == "calibrate" or isinstance(terms, Ranks):
        threads = 1 if isinstance(terms, Ranks) else resolve_threads(None)
        ranks, is_near = measuring.communicator, measuring.are_near
        sample = agreed(ranks, lambda: first_rows(data) if isinstance(data, TiledDesign) else None)
        terms = calibrate(size, work, threads, cluster.n_ranks, ranks, is_near, sample)
    elif not isinstance(terms, Terms | None):
        raise TypeError(f"terms={shown(terms)} must be Terms, Ranks or 'calibrate'")
    return plan_grids(size, cluster, Terms() if terms is None else terms, work)
