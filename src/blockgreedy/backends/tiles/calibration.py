"""Calibration: the terms of the plan's model, measured by doing what ranks do, on data or on generated ones."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockgreedy.backends.tiles.agreement import agreed
from blockgreedy.backends.tiles.communicator import Alone, Communicator
from blockgreedy.backends.tiles.grid import Grid, cuts
from blockgreedy.backends.tiles.local import Team
from blockgreedy.backends.tiles.model import Model, WorkingPenalty
from blockgreedy.backends.tiles.plan import Size
from blockgreedy.backends.tiles.recut import Entrants, Recut
from blockgreedy.backends.tiles.shard import Shard
from blockgreedy.backends.tiles.share import shard_of
from blockgreedy.backends.tiles.solver import TileSolver
from blockgreedy.backends.tiles.sparse_columns import as_csc, cut_rows, make_columns, packed, some_rows, unpacked
from blockgreedy.backends.tiles.terms import Terms
from blockgreedy.backends.tiles.tuning import STEPS
from blockgreedy.backends.tiles.work import Work
from blockgreedy.base.design import TiledDesign
from blockgreedy.problem.problem import Problem

_MOST_ROWS, _MOST_ENTRIES = 2_000_000, 8_000_000  # of the generated tile: some seconds in all
_TALL, _WIDE = (300_000, 10), (1_000, 300_000)
_LEAST_ROWS = 10_000
_WORKING = (500, 20_000)  # columns of the models whose arithmetic is timed
_LONG = 1_000_000  # doubles of a message whose bytes count
_RATIO, _STEPS, _REPEATS = 0.01, 4, 3


def _seconds(work: Callable[[], Any], times: int = 5) -> float:
    """The median, after once in vain: memory is fresh then."""
    work()
    found = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return statistics.median(found)


def _columns(n: int, p: int, n_entries: int) -> Any:
    """Columns whose numbers of entries follow Zipf's law, at random places: canonical CSC, float32."""
    random = np.random.default_rng(0)
    lengths = 1 / np.arange(1, p + 1)
    lengths = np.minimum(lengths * n_entries / lengths.sum(), n / 2)
    lengths = np.maximum(lengths * n_entries / lengths.sum(), 1).astype(np.int64)
    column = np.repeat(np.arange(p), np.minimum(lengths, n))
    key = np.unique(column * n + random.integers(0, n, len(column)))
    row, pointers = (key % n).astype(np.int32), np.searchsorted(key, np.arange(p + 1) * n)
    return sp.csc_array((random.random(len(row), dtype=np.float32), row, pointers), shape=(n, p))


def first_rows(tiles: TiledDesign) -> Any:
    """Of a store: so many as can be measured with, as canonical CSC in memory."""
    part = min(1.0, _MOST_ENTRIES / max(tiles.n_entries, 1), _MOST_ROWS / tiles.shape[0])
    n = max(1, min(int(part * tiles.shape[0]), int(tiles.row_cuts[1])))
    pieces = [some_rows(Team(1), as_csc(tiles.tile(0, c)), 0, n) for c in range(tiles.grid[1])]
    return pieces[0] if len(pieces) == 1 else canonical(sp.hstack(pieces, format="csc"))


def canonical(X: Any) -> Any:
    """Row numbers in 32 bits, as the core has them."""
    return make_columns(X.shape[0], np.diff(X.indptr), X.indices.astype(np.int32), X.data)


def _longest(X: Any, part: float) -> Any:
    """This part of the columns, which are like those that can have a weight."""
    if part >= 1:
        return X
    longest = np.argsort(-np.diff(X.indptr), kind="stable")[: max(1, round(part * X.shape[1]))]
    return some_rows(Team(1), X, 0, X.shape[0], np.sort(longest))


def _like_working_sets(X: Any, work: Work) -> Any:
    """As many columns as a working set has, about as long: evenly spaced among the longest, as many as are needed."""
    lengths = np.diff(X.indptr)
    longest = np.argsort(-lengths, kind="stable")
    each = work.working_entries * X.nnz / work.working_set
    means = np.cumsum(lengths[longest]) / np.arange(1, len(lengths) + 1)
    n_wanted = min(round(work.working_set), X.shape[1])
    n_among = max(n_wanted, int(np.searchsorted(-means, -each, side="right")))
    chosen = longest[np.arange(n_wanted) * n_among // n_wanted]
    return some_rows(Team(1), X, 0, X.shape[0], np.sort(chosen))


def _shard(X: Any, n_threads: int) -> Shard:
    n, p = X.shape
    truth = np.zeros(p)
    truth[: min(p, 50)] = np.random.default_rng(1).standard_normal(min(p, 50))
    margins = X @ truth + np.random.default_rng(2).standard_normal(n)
    y = np.where(margins > np.median(margins), 1.0, -1.0)
    problem = Problem(X, y, loss="logistic", alpha=1.0, fit_intercept=True)
    problem = problem.with_alpha(_RATIO * problem.alpha_max)
    scaling, every = problem.scaling, 0.0  # columns are relevant at this alpha
    return shard_of(
        scaling.inner, scaling.null_in(problem.null_model), Grid(Alone(), 1, 1), n_threads, least_alpha=every
    )


def _started(shard: Shard) -> TileSolver:
    solver = TileSolver(shard, 1e-12)
    solver.start(np.zeros(shard.tile.n_features), 0.0)
    return solver


def _scaled(size: Size) -> tuple[int, int, int]:
    """Rows, columns and entries of a tile of the same kind that is small enough to be measured with."""
    part = min(1.0, _MOST_ROWS / size.n_samples, _MOST_ENTRIES / max(size.n_entries, 1))
    n, n_entries = max(1000, round(part * size.n_samples)), max(100_000, round(part * size.n_entries))
    return n, max(100, min(round(part * size.n_features), n_entries // 2)), n_entries


def _of_tiles(X: Any, n_threads: int) -> dict[str, float]:
    """Gradients and rows. By all threads at once, since they share the memory."""
    shard, n = _shard(X, n_threads), X.shape[0]
    tile, rows = shard.tile, shard.rows
    theta, due = np.random.default_rng(3).standard_normal(n), np.ones(tile.n_features, dtype=np.bool_)
    before = tile.nonzeros_touched
    tile.products(theta, due, shard.team)
    count = tile.nonzeros_touched - before
    gradient = _seconds(lambda: tile.products(theta, due, shard.team)) / count * n_threads
    steps = np.array(STEPS)

    def step() -> None:
        rows.losses_along(theta, steps)
        rows.move_to(theta, -1.0, 0.0)

    return {"gradient": gradient, "row_of_step": _seconds(step) / n * n_threads}


def _made_up(size: Size, work: Work, n_ranks: int) -> Any:
    """A working set in the rows of a rank."""
    n = max(100, min(size.n_samples // n_ranks, _MOST_ROWS))
    density = min(0.5, work.working_entries * size.n_entries / (work.working_set * size.n_samples))
    each = max(1.0, density * n)
    p = max(10, min(round(work.working_set), round(_MOST_ENTRIES / each)))
    return _columns(n, p, round(p * each))


def _of_working_sets(X: Any, n_threads: int) -> dict[str, float]:
    """Copies of columns, and products: these are fast where columns are long, and where they stay in the cache."""
    shard, n = _shard(X, n_threads), X.shape[0]
    tile = shard.tile
    p = tile.n_features
    own = np.arange(p)
    chosen, at = tile.take(own, shard.team), cuts(n, 2)

    def cut() -> None:
        for piece, n_rows in zip(cut_rows(shard.team, chosen, at), np.diff(at), strict=True):
            unpacked(packed(piece), int(n_rows), chosen.dtype)

    ones, nothing = np.ones(p), np.zeros(p, np.uint64)
    entries = np.diff(chosen.indptr).astype(np.float64)
    facts = Entrants(own.astype(np.int64), ones, ones, -np.inf * ones, np.inf * ones, entries, nothing)

    def enter() -> tuple[Recut, NDArray[np.intp]]:
        recut = Recut(shard.grid, tile, shard.row_cuts, 0, n, shard.team)
        return recut, recut.enter(own, facts, np.zeros((2, p)), merges=False)[0]

    recut, places = enter()
    working, _ = recut.chosen(places)
    shard.rows.move_to(np.zeros(n), -1.0, 0.0)
    working.bend(shard.rows.root)
    step, wanted = np.random.default_rng(5).standard_normal(p), np.arange(p, dtype=np.int32)
    product = _seconds(lambda: working.gram_product(step, wanted))
    found = {"copy": _seconds(enter, 3) * n_threads, "cut": _seconds(cut, 3), "product": product * n_threads}
    return {name: seconds / chosen.nnz for name, seconds in found.items()}


def _of_vectors(shape: tuple[int, int], terms: Terms) -> float:
    """Seconds of a gradient's vectors, for each row or column, whichever are many: iterations on few entries."""
    n, p = shape
    shard, found = _shard(_columns(n, p, p + n // 10), 1), []
    for _ in range(_REPEATS):
        solver = _started(shard)
        began = time.perf_counter()
        for _ in range(_STEPS):
            solver.step()
        seconds = time.perf_counter() - began
        seconds -= solver.nonzeros_touched * terms.gradient + solver.n_products * terms.call
        seconds -= solver.n_iter * n * terms.row_of_step
        found.append(seconds / max(solver.n_gradients, 1) / max(shape))
    return max(0.0, min(found))


def _of_models() -> tuple[float, float]:
    """Seconds of a product's arithmetic: for each column of the working set, and for the calls."""
    each = []
    for w in _WORKING:
        random = np.random.default_rng(6)
        diagonal, slope = 1 + random.random(w), random.standard_normal(w)
        free = WorkingPenalty(np.full(w, 0.5), np.zeros(w), np.full(w, -np.inf), np.full(w, np.inf))

        def product(p: NDArray[np.float64], wanted: NDArray[np.int32], by: Any = diagonal) -> NDArray[np.float64]:
            bent: NDArray[np.float64] = by * p
            return bent[wanted]

        found = []
        for _ in range(_REPEATS):
            model = Model(np.zeros(w), slope, diagonal + 0.1, free, product, 2.0)
            began = time.perf_counter()
            for _ in range(5):
                model.cycle(truncated=False, goal=1e-9)
            found.append((time.perf_counter() - began) / max(model.n_products, 1))
        each.append(min(found))
    working = max(0.0, (each[1] - each[0]) / (_WORKING[1] - _WORKING[0]))
    return working, max(1e-6, each[0] - working * _WORKING[0])


def _of_messages(ranks: Communicator) -> tuple[float, float]:
    """Seconds of a round between two ranks, and bytes per second, of all-reduces among these ranks."""
    short, long = np.zeros(1), np.zeros(_LONG)
    hops = max(1.0, np.ceil(np.log2(ranks.size)))
    latency = _seconds(lambda: [ranks.reduce(short) for _ in range(100)]) / 100
    seconds = _seconds(lambda: ranks.reduce(long))
    sent = 2 * long.nbytes * (ranks.size - 1) / ranks.size
    return float(latency / hops), float(sent / max(seconds - latency, 1e-9))


def _of_this_machine(size: Size, work: Work, n_threads: int, n_ranks: int, sample: Any) -> Terms:
    tile = working_set = None
    if sample is not None:
        own = max(1, min(sample.shape[0], size.n_samples // n_ranks))
        tile = _longest(sample, work.relevant)
        working_set = _like_working_sets(some_rows(Team(1), sample, 0, own), work)
    if tile is None or not tile.nnz:  # nothing to measure with, as where the first rows of a store are empty
        tile = _columns(*_scaled(size))
    if working_set is None or not working_set.nnz:
        working_set = _made_up(size, work, n_ranks)
    terms = replace(Terms(), **_of_tiles(tile, n_threads), **_of_working_sets(working_set, n_threads))
    terms = replace(terms, **dict(zip(("working", "call"), _of_models(), strict=True)))
    n_own = min(max(size.n_samples // n_ranks, _LEAST_ROWS), _TALL[0])  # short vectors stay in the cache
    return replace(terms, row=_of_vectors((n_own, _TALL[1]), terms), column=_of_vectors(_WIDE, terms))


def calibrate(
    size: Size,
    work: Work,
    n_threads: int,
    n_ranks: int,
    ranks: Communicator | None = None,
    is_local: bool = True,
    sample: Any = None,
) -> Terms:
    """Measures this machine, and where there are ranks what messages among them take: all of them call this.

    ``n_ranks``: of the fit that is planned. ``is_local``: whether ``ranks`` are on one machine. All of them get the
    terms of the slowest. ``sample``: some rows of the data, if there are any entries in them; how these lie decides how
    fast products are.
    """
    ranks = Alone() if ranks is None else ranks
    terms = agreed(ranks, lambda: _of_this_machine(size, work, n_threads, n_ranks, sample))
    names = [*Terms.__dataclass_fields__]
    slowest = ranks.reduce(np.array([getattr(terms, name) for name in names]), "max")
    terms = Terms(**dict(zip(names, slowest.tolist(), strict=True)))
    if ranks.size == 1:
        return terms
    latency, bandwidth = _of_messages(ranks)
    latency, slowness = ranks.reduce(np.array([latency, 1 / bandwidth]), "max").tolist()
    if is_local:
        return replace(terms, local_latency=latency, local_bandwidth=1 / slowness)
    return replace(terms, latency=latency)
