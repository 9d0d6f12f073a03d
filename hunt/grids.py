"""Random grids: how ranks share a problem that another class has drawn."""

from __future__ import annotations

from dataclasses import replace

from hunt.case import PATIENCE, Case, Grid
from hunt.draws import Rng

# Powers of ten beyond which a fit may stall, and the least tol and alpha·n that it must meet: ranks have no last
# resort in float64 for separable classes with next to no penalty.
_FAR, _LEAST_TOL, _LEAST_ALPHA = 20, 1e-6, 1e-9
_SHAPES = ((1, 1), (1, 2), (2, 1), (2, 2), (4, 1), (1, 3), (3, 2))


def draw_grid(rng: Rng, case: Case) -> Grid:
    n, p = case.shape
    shape = _SHAPES[int(rng.integers(len(_SHAPES)))]
    groups = None
    if rng.random() < 0.25:
        groups = int(rng.integers(1, min(n, 4) + 1)), int(rng.integers(1, min(p, 4) + 1))
    return Grid(shape, groups, shuffled=bool(rng.random() < 0.5), small_sets=bool(rng.random() < 0.5))


def on_a_grid(rng: Rng, case: Case) -> Case:
    """The case, solved or followed along a path by ranks, whatever was to be done with it."""
    names = ("warm_start",) if case.call == "fit" else ()
    options = {name: value for name, value in case.options.items() if name not in names}
    call = "path" if case.call == "path" else "solve"
    if rng.random() < 0.15:
        options["max_iter"] = int(rng.integers(1, 6))
    grid = draw_grid(rng, case)
    if grid.small_sets and call == "solve" and rng.random() < 0.3:
        options["memory"] = int(10.0 ** rng.uniform(3, 5))
    options.setdefault("max_seconds", PATIENCE)
    penalty = float(case.problem.get("alpha", 1.0)) * case.shape[0]
    must = case.exponent <= _FAR and case.tol >= _LEAST_TOL and penalty >= _LEAST_ALPHA
    return replace(case, call=call, options=options, estimator="", before=None, must_converge=must, grid=grid)
