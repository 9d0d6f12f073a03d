"""What is solved. A cell is (problem, loss, alpha/alpha_max); there is no intercept anywhere.

::

    min over w   (1/n) Σ_i loss(y_i, (Xw)_i) + alpha ‖w‖₁

Losses: logistic log(1 + exp(−yt)) with y = ±1, squared ½(y − t)².

Objectives are computed here in plain NumPy float64, not by the package under test.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Loss = Literal["logistic", "squared"]
LOSSES: tuple[Loss, ...] = ("logistic", "squared")
RATIOS = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
REAL = ("reuters", "news20", "enron", "dorothea")
GENERATED = ("reuters-shaped", "realsim-shaped", "news20-shaped")
DENSE = {"dense-tall": (10_000, 1_000), "dense-wide": (1_000, 20_000)}
NAMES = (*REAL, *GENERATED, *DENSE)


@dataclass(frozen=True)
class Data:
    """X is CSR or a C-ordered array; squared loss is fitted to ``target``, logistic to ``label`` (±1)."""

    name: str
    X: Any
    label: NDArray[np.float64]
    target: NDArray[np.float64]

    @property
    def is_sparse(self) -> bool:
        return sp.issparse(self.X)

    @property
    def storage(self) -> str:
        return "sparse" if self.is_sparse else "dense"

    def __str__(self) -> str:
        size = f"{self.X.nnz:,} nonzeros, {self.X.dtype}" if self.is_sparse else f"dense {self.X.dtype}"
        return f"{self.name}: {self.X.shape[0]:,} × {self.X.shape[1]:,}, {size}"

    def y(self, loss: Loss) -> NDArray[np.float64]:
        return self.label if loss == "logistic" else self.target

    @cached_property
    def X64(self) -> Any:
        return self.X.astype(np.float64)

    def alpha_max(self, loss: Loss) -> float:
        slope = self.y(loss) / (2 if loss == "logistic" else 1)
        return float(np.max(np.abs(self.X64.T @ slope))) / self.X.shape[0]

    def cell(self, loss: Loss, alpha: float) -> Cell:
        return Cell(self.X, self.y(loss), loss, alpha)

    def objective(self, w: NDArray[np.float64], loss: Loss, alpha: float) -> float:
        t, y = self.X64 @ w, self.y(loss)
        values = np.logaddexp(0.0, -y * t) if loss == "logistic" else 0.5 * (y - t) ** 2
        return float(np.mean(values)) + alpha * float(np.sum(np.abs(w)))

    def f_null(self, loss: Loss) -> float:
        return float(np.log(2.0)) if loss == "logistic" else 0.5 * float(np.mean(self.target**2))


@dataclass(frozen=True)
class Cell:
    """One problem as a peer gets it, to convert as it likes before the clock runs."""

    X: Any
    y: NDArray[np.float64]
    loss: Loss
    alpha: float

    def small(self) -> Cell:
        """A corner of it, to compile what is compiled at first use."""
        rows, columns = min(300, self.X.shape[0]), min(200, self.X.shape[1])
        X = self.X[:rows]
        heavy = np.argsort(-np.asarray(abs(X).sum(axis=0)).ravel(), kind="stable")[:columns]
        X = X[:, heavy]
        y = self.y[:rows].copy()
        y[: rows // 2] = np.abs(y[: rows // 2])  # two classes at least
        y[rows // 2 :] = -np.abs(y[rows // 2 :])
        slope = y / (2 if self.loss == "logistic" else 1)
        alpha = 0.1 * float(np.max(np.abs(X.T @ slope))) / rows
        return Cell(X if sp.issparse(X) else np.ascontiguousarray(X), y, self.loss, alpha)


def missing(names: tuple[str, ...] = NAMES) -> dict[str, str]:
    """Real sets that are not there, and why."""
    folder = os.environ.get("BLOCKGREEDY_DATA")
    if not folder:
        return {
            name: "BLOCKGREEDY_DATA does not name the folder with the real sets" for name in names if name in REAL
        }
    gone = [name for name in names if name in REAL and not (Path(folder) / f"{name}.npz").exists()]
    return {name: f"{name}.npz is not in the folder that BLOCKGREEDY_DATA names" for name in gone}


def load(name: str) -> Data:
    import blockgreedy as bg

    if name in DENSE:
        return correlated_gaussian(name, *DENSE[name])
    if name in REAL:
        made = bg.load(Path(os.environ["BLOCKGREEDY_DATA"]) / f"{name}.npz")
    elif name == "crosses-like":
        made = bg.data.crosses_like()
    elif name in GENERATED:
        made = bg.data.shaped(name.removesuffix("-shaped"))
    else:
        raise ValueError(f"{name!r} is not a problem of the race; there are {', '.join(NAMES)}, crosses-like")
    dtype = made.X.dtype if made.X.dtype.kind == "f" else np.float32  # dorothea is 0/1 in int8
    X = sp.csr_matrix(made.X, dtype=dtype)  # not csr_array: liblinear and tabmat know only the matrix classes
    X.sort_indices()
    y = np.asarray(made.y, dtype=np.float64)
    return Data(name, X, y, y)


def correlated_gaussian(name: str, n_samples: int, n_features: int, seed: int = 0) -> Data:
    """Columns of an AR(1) process with correlation 0.6, a truth of n/50 to 100 nonzeros, signal-to-noise 3."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    for j in range(1, n_features):
        X[:, j] = 0.6 * X[:, j - 1] + 0.8 * X[:, j]
    w = np.zeros(n_features)
    support = rng.choice(n_features, min(100, n_samples // 50), replace=False)
    w[support] = rng.choice([-1.0, 1.0], support.size)
    X = X.astype(np.float32)  # as the sparse sets: the same numbers for who reads float32 and who reads float64
    signal = X.astype(np.float64) @ w
    target = signal + rng.standard_normal(n_samples) * np.std(signal) / np.sqrt(3.0)
    return Data(name, X, np.where(target > 0, 1.0, -1.0), target / np.std(target))


# ------------------------------------------------------------------------- handing data to other processes


def hand_over(data: Data, folder: Path) -> None:
    """Writes arrays that ``receive`` maps into memory."""
    parts: dict[str, Any] = {"label": data.label, "target": data.target}
    if data.is_sparse:
        parts |= {"data": data.X.data, "indices": data.X.indices, "indptr": data.X.indptr}
    else:
        parts["X"] = data.X
    for key, array in parts.items():
        np.save(folder / f"{key}.npy", array)
    (folder / "data.json").write_text(json.dumps({"name": data.name, "shape": data.X.shape}))


def receive(folder: Path) -> Data:
    about = json.loads((folder / "data.json").read_text())
    read: Callable[[str], Any] = lambda key: np.load(folder / f"{key}.npy", mmap_mode="r")  # noqa: E731
    if (folder / "X.npy").exists():
        X: Any = read("X")
    else:
        X = sp.csr_matrix((read("data"), read("indices"), read("indptr")), shape=about["shape"], copy=False)
        X.has_sorted_indices = X.has_canonical_format = True
    return Data(about["name"], X, np.array(read("label")), np.array(read("target")))
