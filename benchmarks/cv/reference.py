"""The curve of a cross-validation, one fold and one alpha at a time. Kept in results/cv-reference.csv.

On Dorothea with the squared loss there is no single curve: three columns are equal on the training rows of the last
fold and not on those held out, so that exact solutions differ by 1e-3 in it.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from ..paths.cell import Array
from .cell import CvCell, held_out_loss

TOL = 1e-8
COLUMNS = ("problem", "loss", "alpha", "curve")


def reference(path: Path, name: str, cell: CvCell) -> Array:
    """Read from the file, or computed and added to it."""
    lines = _read(path)
    known = {line["alpha"]: line["curve"] for line in lines if (line["problem"], line["loss"]) == (name, cell.loss)}
    keys = [f"{alpha:.12g}" for alpha in cell.alphas]
    if not all(key in known for key in keys):
        curve = solve(cell)
        known = dict(zip(keys, map(repr, curve.tolist()), strict=True))
        lines = [line for line in lines if (line["problem"], line["loss"]) != (name, cell.loss)]
        lines += [{"problem": name, "loss": cell.loss, "alpha": key, "curve": known[key]} for key in keys]
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)
    return np.array([float(known[key]) for key in keys])


def solve(cell: CvCell) -> Array:
    import blockgreedy as bg

    curves = []
    for train, held_out in cell.splits:
        X = cell.X[train]
        X = sp.csc_matrix(X) if sp.issparse(X) else np.asfortranarray(X)
        X_out = cell.X[held_out]
        problem = bg.Problem(X, cell.y[train], loss=cell.loss, alpha=1.0)
        coef, predictions = None, np.empty((len(held_out), len(cell.alphas)))
        for k, alpha in enumerate(cell.alphas.tolist()):
            coef = bg.solve(problem.with_alpha(alpha), tol=TOL, coef_init=coef).coef
            predictions[:, k] = X_out @ coef
        curves.append(held_out_loss(cell.loss, cell.y[held_out], predictions))
    return np.asarray(np.mean(curves, axis=0))


def _read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
