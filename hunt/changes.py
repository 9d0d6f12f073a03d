"""What must hold where data change in use: an answer is right for what they were or for what they are, or refused."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import blockgreedy as bg
from hunt.case import Case, dense
from hunt.certificates import check_point
from hunt.lateness import on_time
from hunt.oracle import Exact
from hunt.outcome import Outcome

Version = tuple[np.ndarray, np.ndarray]  # X and y


def check_change(case: Case, outcome: Outcome) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (_check_rows if case.use["what"] == "rows" else _check_store)(case, outcome)


def _judge(case: Case, versions: list[Version], points: list[Any], outcome: Outcome) -> None:
    """Each point must hold for one of the versions of the data."""
    for alpha, w, b, point in points:
        outcome.statuses.append(point.status)
        complaints = []
        for X, y in versions:
            judged = Outcome()
            exact = Exact(X, y, **{**case.problem, "alpha": alpha})
            f_null = exact.null_objective()
            status = point.status if point.status == "converged" else "max_seconds"  # a stall is none of this
            check_point(case, exact, f_null, w, b, point.objective, point.gap, point.dual, status, judged)
            complaints.append(judged.worst)
        if all(complaints):
            text = "; ".join(f"{c.check}: {c.detail}" for c in complaints if c is not None)
            outcome.found("stale", f"{case.use['change']}: of the data before, and after: {text}")
            return


# Rows in memory.


def _check_rows(case: Case, outcome: Outcome) -> None:
    X, y = case.X.copy(), case.y.copy()
    problem = bg.Problem(X, y, **case.problem)
    FIRST[case.use["first"]](problem)
    if case.use["change"] == "target":
        y[:] = -y
    else:
        ROWS[case.use["change"]](np.random.default_rng(case.use["seed"]), X)
    versions = [(dense(case.X), case.y), (dense(case.X), y)]
    with contextlib.suppress(ValueError, IndexError):
        now = _plain(X)
        versions.append((now, y))
    try:
        points = on_time(case, outcome, lambda: _used(case, problem))
    except ValueError as error:
        outcome.statuses.append("refused")
        if not str(error):
            outcome.found("unnamed", "refused without a word")
        return
    if case.use["then"] != "objective":
        _judge(case, versions, points, outcome)
        return
    w, value = np.ones(X.shape[1]), points
    if not any(_is_objective(case, X, y, w, value) for X, y in versions):
        outcome.found("stale", f"{case.use['change']}: objective {value!r} is that of no version of X")


def _plain(X: Any) -> np.ndarray:
    """The matrix that these arrays say; ValueError or IndexError where they say none."""
    if not sp.issparse(X):
        full = np.array(X)
    else:
        major = X.shape[0] if X.format == "csr" else X.shape[1]
        if np.any(np.diff(X.indptr) < 0) or X.indptr[0] != 0 or X.indptr[-1] > len(X.data) or np.any(X.indices < 0):
            raise ValueError("no matrix")
        lines = np.repeat(np.arange(major), np.diff(X.indptr))
        places = (lines, X.indices[: len(lines)]) if X.format == "csr" else (X.indices[: len(lines)], lines)
        full = np.zeros(X.shape)
        np.add.at(full, places, X.data[: len(lines)])
    if not np.all(np.isfinite(full)):
        raise ValueError("not finite")
    return full


def _is_objective(case: Case, X: np.ndarray, y: np.ndarray, w: np.ndarray, value: float) -> bool:
    exact = Exact(X, y, **case.problem)
    return bool(abs(exact.primal(w) - value) <= 10 * exact.floor(w))


def _used(case: Case, problem: bg.Problem) -> Any:
    then, options = case.use["then"], {"tol": case.tol, "max_seconds": case.options["max_seconds"], "n_threads": 1}
    if then == "objective":
        return problem.objective(np.ones(problem.n_features))
    if then == "path":
        path = bg.solve_path(problem, n_alphas=3, keep_duals=True, **options)
        return [(point.alpha, path.coef(k), point.intercept, point) for k, point in enumerate(path.points)]
    solution = bg.solve(problem, "scd" if then == "family" else "auto", **options)
    return [(problem.alpha, solution.coef, solution.intercept, solution)]


FIRST: dict[str, Callable[[bg.Problem], Any]] = {
    "nothing": lambda problem: None,
    "null model": lambda problem: problem.null_model,
    "solve": lambda problem: bg.solve(problem, n_threads=1),
    "alpha_max": lambda problem: problem.alpha_max,
    "X": lambda problem: problem.X,
}


def _numbers(X: Any) -> np.ndarray:
    return X.data if sp.issparse(X) else X.reshape(-1, order="A")


def _put(X: Any, name: str, where: Any, what: Any) -> None:
    array = getattr(X, name)
    if len(array):
        array[where] = what


def _swap(rng: np.random.Generator, X: Any) -> None:
    numbers = _numbers(X)
    a, b = rng.integers(0, len(numbers), 2)
    numbers[[a, b]] = numbers[[b, a]]


def _some(rng: np.random.Generator, X: Any) -> int:
    return int(rng.integers(len(_numbers(X))))


def _add(numbers: np.ndarray, where: Any, value: float) -> None:
    numbers[where] += value


def _turn(numbers: np.ndarray) -> None:
    numbers[:] = numbers[::-1].copy()


def _scale(numbers: np.ndarray) -> None:
    numbers *= 1.001


ROWS: dict[str, Callable[[np.random.Generator, Any], None]] = {
    "number": lambda rng, X: _add(_numbers(X), _some(rng, X), 1.0),
    "reversed": lambda rng, X: _turn(_numbers(X)),
    "swapped": _swap,
    "scaled": lambda rng, X: _scale(_numbers(X)),
    "infinite": lambda rng, X: _add(_numbers(X), _some(rng, X), np.inf),
    "permuted indices": lambda rng, X: _put(X, "indices", slice(None), rng.permutation(X.indices)),
    "moved indices": lambda rng, X: _put(
        X, "indices", slice(None), (X.indices + 1) % X.shape[1 if X.format == "csr" else 0]
    ),
    "moved pointer": lambda rng, X: _put(X, "indptr", 1, X.indptr[2]),
    "moved pointers": lambda rng, X: _put(X, "indptr", slice(1, -1), np.minimum(X.indptr[1:-1] + 1, X.indptr[-1])),
    "index too large": lambda rng, X: _put(X, "indices", _some(rng, X), 10**6),
    "negative index": lambda rng, X: _put(X, "indices", _some(rng, X), -1),
    "last pointer too large": lambda rng, X: _put(X, "indptr", -1, 2**31 - 1),
    "negative pointer": lambda rng, X: _put(X, "indptr", 2, -5),
}


# Stores on disk.


def _check_store(case: Case, outcome: Outcome) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.store"
        rows, columns = case.use["groups"]
        before = bg.data.convert(bg.Dataset(case.X, case.y), path, row_groups=rows, column_groups=columns)
        problem = bg.Problem(bg.data.Store(path), **case.problem)
        seen = 0

        def change(record: Any) -> None:
            nonlocal seen
            if seen == case.use["at"]:
                STORES[case.use["change"]](path)
            seen += 1

        options: dict[str, Any] = {"memory": "1M"} if case.use["memory"] else {}
        limit = case.options["max_seconds"]
        try:
            solution = bg.solve(problem, tol=case.tol, callback=change, n_threads=1, max_seconds=limit, **options)
        except (ValueError, OSError) as error:
            outcome.statuses.append("refused")
            if path.name not in str(error) and "tile" not in str(error) and "store" not in str(error):
                outcome.found("unnamed", f"{type(error).__name__} does not name the store: {str(error)[:200]}")
            return
        versions = [(dense(case.X), case.y)]
        with contextlib.suppress(ValueError, IndexError, OSError):
            X, y = _stored(path, before)
            versions += [(X, y), (X, case.y), (dense(case.X), y)]
        _judge(case, versions, [(case.problem["alpha"], solution.coef, solution.intercept, solution)], outcome)


def _stored(path: Path, store: bg.data.Store) -> Version:
    """What the files hold now, read by their description alone."""
    X = np.zeros(store.shape)
    for r in range(len(store.row_cuts) - 1):
        for c in range(len(store.column_cuts) - 1):
            indptr, rows, data = (
                np.load(path / f"tile-{r:04}-{c:04}.{part}.npy") for part in ("indptr", "indices", "data")
            )
            columns = store.column_cuts[c] + np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
            np.add.at(X, (store.row_cuts[r] + rows, columns), data)
    y = np.load(path / "y.npy")
    if not np.all(np.isfinite(X)):
        raise ValueError("not finite")
    return X, y


def _edit(path: Path, pattern: str, change: Callable[[np.ndarray], Any]) -> None:
    for file in sorted(path.glob(pattern)):
        if np.load(file).size:
            array = np.lib.format.open_memmap(file, mode="r+")
            change(array)
            array.flush()


def _replaced(path: Path, pattern: str, change: Callable[[np.ndarray], np.ndarray]) -> None:
    for file in sorted(path.glob(pattern)):
        np.save(path / "other.npy", change(np.load(file)))
        os.replace(path / "other.npy", file)


def _set(array: np.ndarray, where: Any, value: Any) -> None:
    array[where] = value


def _truncate(path: Path) -> None:
    for file in path.glob("tile*data.npy"):
        os.truncate(file, 130)


STORES: dict[str, Callable[[Path], None]] = {
    "indices": lambda path: _edit(path, "*indices.npy", lambda a: _set(a, slice(None), 2**30)),
    "some indices": lambda path: _edit(path, "*indices.npy", lambda a: _set(a, slice(0, 1), a[-1])),
    "pointers": lambda path: _edit(path, "*indptr.npy", lambda a: _set(a, slice(None), 2**40)),
    "values": lambda path: _edit(path, "*data.npy", lambda a: _set(a, slice(None), a[::-1].copy())),
    "some values": lambda path: _edit(path, "*data.npy", lambda a: _set(a, slice(None, None, 3), 1.001 * a[::3])),
    "nan": lambda path: _edit(path, "*data.npy", lambda a: _set(a, slice(None), np.nan)),
    "swapped values": lambda path: _replaced(path, "*data.npy", lambda a: a[::-1].copy()),
    "targets": lambda path: _edit(path, "y.npy", lambda a: _set(a, slice(None), -a)),
    "swapped targets": lambda path: _replaced(path, "y.npy", lambda a: -a),
    "statistics": lambda path: _edit(path, "statistics*.npy", lambda a: _set(a, slice(None), 0)),
    "truncated": _truncate,
    "gone": shutil.rmtree,
}
