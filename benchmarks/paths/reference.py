"""f* of every alpha of a path: ours at tol = 1e-7, with its gap as proof. Kept in results/paths-reference.csv."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from ..race.problems import Data, Loss
from .cell import Array
from .peers import columns

TOL = 1e-7
COLUMNS = ("problem", "loss", "alpha", "objective", "gap")


def reference(path: Path, data: Data, loss: Loss, alphas: Array) -> tuple[Array, Array]:
    """Objectives and gaps, read from the file or computed and added to it."""
    lines = _read(path)
    known = {float(line["alpha"]): line for line in lines if (line["problem"], line["loss"]) == (data.name, loss)}
    own = [known.get(float(f"{alpha:.12g}")) for alpha in alphas]
    if not all(own):
        best, gaps = solve(data, loss, alphas)
        own = [
            {"problem": data.name, "loss": loss, "alpha": f"{alpha:.12g}", "objective": repr(f), "gap": f"{gap:.3g}"}
            for alpha, f, gap in zip(alphas, best.tolist(), gaps.tolist(), strict=True)
        ]
        replaced = {line["alpha"] for line in own if line}
        others = [line for line in lines if (line["problem"], line["loss"]) != (data.name, loss)]
        others += [line for line in known.values() if line["alpha"] not in replaced]
        _write(path, others + own)
    found = np.array([[float(line["objective"]), float(line["gap"])] for line in own if line])
    return found[:, 0], found[:, 1]


def solve(data: Data, loss: Loss, alphas: Array) -> tuple[Array, Array]:
    """One alpha after the other: not by the path that is measured."""
    import blockgreedy as bg

    problem = bg.Problem(columns(data.X, data.X.dtype), data.y(loss), loss=loss, alpha=float(alphas[0]))
    best, gaps, coef = np.empty(len(alphas)), np.empty(len(alphas)), None
    for k, alpha in enumerate(alphas.tolist()):
        solution = bg.solve(problem.with_alpha(alpha), tol=TOL, coef_init=coef)
        coef, gaps[k] = solution.coef, solution.gap
        best[k] = data.objective(solution.coef, loss, alpha)
    return best, gaps


def _read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _write(path: Path, lines: list[Any]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
