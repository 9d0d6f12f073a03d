"""Makes a failing case small: fewer options, rows, columns and digits, as long as the same check still fails."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from hunt.case import Case, Grid, dense
from hunt.checks import run
from hunt.oracle import CLASSIFIERS

_PER_ROW = ("sample_weight", "offset")
_PER_COLUMN = ("penalty_weights", "lower", "upper")
_MANY = 150  # numbers, beyond which plain random ones are tried instead


def still_fails(check: str) -> Callable[[Case], bool]:
    """Whether a case breaks this promise, in this process."""

    def fails(case: Case) -> bool:
        return any(finding.check == check for finding in run(case).findings)

    return fails


def shrink(case: Case, fails: Callable[[Case], bool], seconds: float = 6.0) -> Case:
    """The smallest case found in this time; ``case`` itself must fail."""
    if case.recipe or case.use:  # short as it is, or more than a matrix
        return case
    until = time.perf_counter() + seconds
    changed = True
    while changed and time.perf_counter() < until:
        changed = False
        for smaller in (_simpler_grids, _fewer_rows, _fewer_columns, _fewer_options, _rounder):
            case, hit = _descend(case, smaller, fails, until)
            changed = changed or hit
    if case.X.size > _MANY:
        case, _ = _descend(case, _seeded, fails, time.perf_counter() + seconds / 2)
    return case


def _descend(
    case: Case, candidates: Callable[[Case], Iterator[Case]], fails: Callable[[Case], bool], until: float
) -> tuple[Case, bool]:
    """Takes the first candidate that fails, and starts over from it, until none does."""
    hit, again = False, True
    while again:
        again = False
        for trial in candidates(case):
            if time.perf_counter() > until:
                return case, hit
            try:
                failed = fails(trial)
            except Exception:  # a case that cannot be run at all is no simpler one
                failed = False
            if failed:
                case, hit, again = trial, True, True
                break
    return case, hit


def take_rows(case: Case, rows: np.ndarray) -> Case:
    n = case.shape[0]
    problem = {k: v[rows] if k in _PER_ROW and np.shape(v) == (n,) else v for k, v in case.problem.items()}
    before = case.before
    if before is not None and before[0].shape[0] == n:
        before = _rows(before[0], rows), before[1][rows]
    case = replace(case, grid=_with_groups(case, len(rows), case.shape[1]))
    return replace(case, X=_rows(case.X, rows), y=case.y[rows], problem=problem, before=before)


def _rows(X: Any, rows: np.ndarray) -> Any:
    return _like(X, X.tocsr()[rows]) if sp.issparse(X) else X[rows]


def _like(X: Any, part: Any) -> Any:
    """A part in the format of the whole, with indices of the same type."""
    part = part.asformat(X.format)
    if X.format == "coo":
        part.coords = tuple(c.astype(X.coords[0].dtype) for c in part.coords)
    else:
        part.indices, part.indptr = part.indices.astype(X.indices.dtype), part.indptr.astype(X.indptr.dtype)
    return part


def _with_groups(case: Case, n: int, p: int) -> Grid | None:
    """A store has no more groups than rows and columns."""
    if case.grid is None or case.grid.groups is None:
        return case.grid
    rows, columns = case.grid.groups
    return replace(case.grid, groups=(min(rows, n), min(columns, p)))


def take_columns(case: Case, columns: np.ndarray) -> Case:
    p = case.shape[1]

    def part(value: Any) -> Any:
        return value[columns] if np.shape(value) == (p,) else value

    problem = {k: part(v) if k in _PER_COLUMN else v for k, v in case.problem.items()}
    options = {k: part(v) if k == "coef_init" else v for k, v in case.options.items()}
    for name in ("n_blocks", "blocks_per_iter"):
        if options.get(name):
            options[name] = min(options[name], len(columns))
    X = _like(case.X, case.X.tocsc()[:, columns]) if sp.issparse(case.X) else case.X[:, columns]
    before = case.before
    if before is not None:
        before = dense(before[0])[:, columns], before[1]
    case = replace(case, grid=_with_groups(case, case.shape[0], len(columns)))
    return replace(case, X=X, problem=problem, options=options, before=before)


def _parts(total: int) -> Iterator[np.ndarray]:
    """Subsets worth trying: without a half, a quarter, … and at last without one."""
    size = total // 2
    while size >= 1:
        for start in range(0, total, size):
            kept = np.r_[0:start, min(start + size, total) : total]
            if len(kept):
                yield kept
        size //= 2


def _fewer_rows(case: Case) -> Iterator[Case]:
    for rows in _parts(case.shape[0]):
        if case.problem.get("loss") in CLASSIFIERS and len(np.unique(case.y[rows])) < 2:
            continue
        yield take_rows(case, rows)


def _fewer_columns(case: Case) -> Iterator[Case]:
    for columns in _parts(case.shape[1]):
        yield take_columns(case, columns)


def _fewer_options(case: Case) -> Iterator[Case]:
    for name in case.problem:
        if name not in ("loss", "alpha", "huber_delta", "fit_intercept"):
            yield replace(case, problem={k: v for k, v in case.problem.items() if k != name})
    if case.problem.get("fit_intercept") and "intercept_init" not in case.options:
        yield replace(case, problem={**case.problem, "fit_intercept": False})
    needed = ("alphas", "n_alphas", "warm_start", "method", "cv", *(["l1_ratio"] if case.call == "fit" else []))
    for name in case.options:
        if name not in needed:
            yield replace(case, options={k: v for k, v in case.options.items() if k != name})
    if (case.call == "path" or case.estimator.endswith("CV")) and "alphas" not in case.options:
        for n_alphas in range(1, min(case.options.get("n_alphas", 100), 6)):
            yield replace(case, options={**case.options, "n_alphas": n_alphas})
    alphas = case.options.get("alphas")
    if alphas is not None and len(alphas) > 1:
        for k in range(len(alphas)):
            yield replace(case, options={**case.options, "alphas": alphas[:k] + alphas[k + 1 :]})
    if case.stop is not None and case.stop[1] > 0:
        yield replace(case, stop=(case.stop[0], case.stop[1] - 1))
    if sp.issparse(case.X) or (isinstance(case.X, np.ndarray) and not case.X.flags.c_contiguous):
        yield replace(case, X=np.ascontiguousarray(dense(case.X)))
    if case.X.dtype == np.float32:
        yield replace(case, X=case.X.astype(np.float64))
    if case.problem.get("loss") == "huber" and case.call != "fit":
        without = {k: v for k, v in case.problem.items() if k != "huber_delta"}
        yield replace(case, problem={**without, "loss": "squared"})


def _simpler_grids(case: Case) -> Iterator[Case]:
    """No ranks, fewer of them, no store, the tuning as it is."""
    if case.grid is None:
        return
    grid = case.grid
    if "memory" not in case.options:
        yield replace(case, grid=None)
    for shape in ((1, 1), (1, 2), (2, 1), (2, 2)):
        if math.prod(shape) < math.prod(grid.shape):
            yield replace(case, grid=replace(grid, shape=shape))
    if grid.groups is not None:
        for groups in (None, (1, 1), (1, 2), (2, 1)):
            if groups is None or math.prod(groups) < math.prod(grid.groups):
                yield replace(case, grid=replace(grid, groups=groups))
        if grid.shuffled:
            yield replace(case, grid=replace(grid, shuffled=False))
    if grid.small_sets:
        yield replace(case, grid=replace(grid, small_sets=False))


def _seeded(case: Case) -> Iterator[Case]:
    """The same with normal numbers that a line of Python makes."""
    if case.recipe:
        return
    n, p = case.shape
    target = "np.where(X[:, 0] > 0, 1.0, -1.0)" if case.problem["loss"] in CLASSIFIERS else "X[:, 0]"
    recipe = [f"X = np.random.default_rng(0).normal(size=({n}, {p}))", f"y = {target}"]
    X = np.random.default_rng(0).normal(size=(n, p))
    y = np.where(X[:, 0] > 0, 1.0, -1.0) if case.problem["loss"] in CLASSIFIERS else X[:, 0].copy()
    yield replace(case, X=X, y=y, recipe=recipe)


def _digits(values: Any, digits: int) -> Any:
    array = np.asarray(values)
    if array.dtype.kind != "f":
        return values
    # + 0.0 turns −0 into 0
    short = np.array([float(f"{v:.{digits}g}") + 0.0 for v in array.ravel().tolist()], dtype=array.dtype)
    return short.reshape(array.shape) if np.ndim(values) else float(short[0])


def _size(case: Case) -> int:
    """Characters that the numbers of a case take."""
    numbers = [dense(case.X), case.y, *case.problem.values(), *case.options.values()]
    return sum(len(str(v)) for n in numbers for v in np.ravel(np.asarray(n, dtype=object)).tolist())


def _rounder(case: Case) -> Iterator[Case]:
    before = _size(case)
    for trial in _rounded(case):
        if _size(trial) < before:
            yield trial


def _rounded(case: Case) -> Iterator[Case]:
    X = dense(case.X)
    for digits in (1, 2, 3, 4, 6):
        if not sp.issparse(case.X):
            yield replace(case, X=_digits(X, digits))
        yield replace(case, y=_digits(case.y, digits))
        for name, value in case.problem.items():
            if name not in ("loss",) and not isinstance(value, bool):
                yield replace(case, problem={**case.problem, name: _digits(value, digits)})
        for name in ("coef_init", "intercept_init", "tol", "huber_delta"):
            if name in case.options:
                yield replace(case, options={**case.options, name: _digits(case.options[name], digits)})
        if not sp.issparse(case.X) and X.shape[1] <= 30:
            for j in range(X.shape[1]):
                shorter = X.copy()
                shorter[:, j] = _digits(X[:, j], digits)
                yield replace(case, X=shorter)
    if case.tol not in (1e-4, 1e-6, 1e-8):
        for tol in (1e-4, 1e-6, 1e-8):
            yield replace(case, options={**case.options, "tol": tol})
