"""The lines of a script that are about data in use: cross-validations, forks, changes, damaged files, deadlines."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from hunt.case import Case


def curve_lines(case: Case) -> list[str]:
    given = {**case.options, "fit_intercept": case.problem["fit_intercept"]}
    text = ", ".join(f"{k}={v!r}" for k, v in given.items() if k != "cv")
    return [
        "from sklearn.model_selection import KFold",
        f"cv = KFold({case.options['cv']}, shuffle=True, random_state=0)",
        "for folds in ({}, {'fold_tol': 1e-7}):",
        f"    model = bg.{case.estimator}({text}, cv=list(cv.split(y)), **folds).fit(X, y)",
        '    print(model.status_, model.alpha_, model.cv_results_["mean_test_score"])',
    ]


def fork_lines(case: Case, problem: list[str]) -> list[str]:
    """Needs the hunt itself, for its busy threads."""
    return [
        "from hunt.forks import busy_threads, fork",
        "def fit():",
        *[f"    {line}" for line in problem],
        f"    return bg.solve(problem, tol={case.tol!r}, n_threads=1).coef.tobytes()",
        "expected = fit()",
        f"with busy_threads({case.use['busy']!r}):",
        "    for k in range(50):",
        "        code, where = fork(lambda: fit() == expected)",
        '        print(k, "hangs" if code is None else code, where)',
        "        if code != 0:",
        "            break",
    ]


def change_lines(case: Case) -> list[str]:
    """Needs the hunt itself, which knows how to change them."""
    return [
        "from hunt.checks import run",
        "from hunt.problems import make",
        f"# {case.use}",
        f"outcome = run(make({case.kind!r}, {case.seed}))",
        "print(outcome.statuses, *outcome.findings, sep='\\n')",
    ]


def damage_lines(case: Case) -> list[str]:
    from hunt.damage import damaged, sound_files

    name = case.use["file"]
    inside, content = damaged(case)
    files = {**sound_files(case)[name], inside: content}
    lines = ["import base64", "import tempfile", "from pathlib import Path", "folder = tempfile.TemporaryDirectory()"]
    lines += [f'path = Path(folder.name) / "{name}"', *(["path.mkdir()"] if inside else [])]
    for part, whole in files.items():
        target = f'(path / "{part}")' if part else "path"
        note = f"  # damaged: {case.use['damage']}" if part == inside else ""
        lines.append(f"{target}.write_bytes(base64.b85decode({base64.b85encode(whole).decode()!r})){note}")
    if name == "model.npz":
        return [*lines, f"print(bg.Model.load(path).predict(np.zeros(({1}, {case.shape[1]}))))"]
    if name == "made.store":
        lines.append('problem = bg.Problem(bg.data.Store(path), loss="logistic", alpha=0.01)')
        return [*lines, "print(bg.solve(problem))"]
    if name == "fit.checkpoint":
        lines += [
            "dataset = bg.Dataset(sp.csr_array(np.where(abs(X) < 0.3, 0.0, X)), y)",
            'store = bg.data.convert(dataset, folder.name + "/a.store")',
            'problem = bg.Problem(store, loss="logistic", alpha=0.01)',
        ]
        return [*lines, "print(bg.solve(problem, checkpoint=path, resume=True))"]
    target = ', target="y"' if name.endswith((".csv", ".feather", ".parquet")) else ""
    return [*lines, f"print(bg.load(path{target}))"]


def deadline_lines(case: Case, problem: list[str], options: str) -> list[str]:
    function = "bg.solve_path" if case.use["call"] == "path" else "bg.solve"
    return [
        "import time",
        "began = time.perf_counter()",
        *problem,
        f"print({function}(problem, n_threads=1, {options}))",
        'print("seconds", time.perf_counter() - began)',
    ]


def wide_lines(X: Any) -> list[str]:
    """SciPy narrows indices where it can: they are made int64 again."""
    if getattr(X, "format", "") == "coo" and X.coords[0].dtype == np.int64:
        return ["X.coords = tuple(c.astype(np.int64) for c in X.coords)"]
    if getattr(X, "format", "") in ("csc", "csr") and X.indices.dtype == np.int64:
        return ["X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)"]
    return []
