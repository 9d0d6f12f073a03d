"""What is asked of a peer: a cross-validation over given alphas and folds, without intercept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..paths.cell import Array, PathCell
from ..race.problems import Loss

Fold = tuple[NDArray[np.int64], NDArray[np.int64]]


def make_folds(label: Array, n_folds: int = 5, seed: int = 0) -> NDArray[np.int64]:
    """The fold of each row: shuffled, classes in equal shares."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(label))
    order = order[np.argsort(label[order], kind="stable")]
    folds = np.empty(len(label), dtype=np.int64)
    folds[order] = np.arange(len(label)) % n_folds
    return folds


@dataclass(frozen=True)
class CvCell:
    X: Any
    y: Array
    loss: Loss
    alphas: Array
    folds: NDArray[np.int64]  # the fold of each row, from 0

    @property
    def splits(self) -> list[Fold]:
        """Rows to train on and rows held out, as scikit-learn takes them."""
        numbers = range(int(np.max(self.folds)) + 1)
        return [(np.flatnonzero(self.folds != k), np.flatnonzero(self.folds == k)) for k in numbers]

    def small(self) -> CvCell:
        """A corner of it, to compile what is compiled at first use."""
        corner = PathCell(self.X, self.y, self.loss, self.alphas).small()
        return CvCell(corner.X, corner.y, self.loss, corner.alphas, make_folds(np.sign(corner.y)))


def held_out_loss(loss: Loss, y: Array, predictions: Array) -> Array:
    """Mean over the rows, for each column of ``predictions``: squares without the half, or log loss."""
    if loss == "squared":
        return np.asarray(np.mean((y[:, None] - predictions) ** 2, axis=0))
    return np.asarray(np.mean(np.logaddexp(0.0, -y[:, None] * predictions), axis=0))


def curve_error(curve: Array, expected: Array) -> float:
    """Largest distance relative to the loss at the first alpha."""
    return float(np.max(np.abs(curve - expected)) / expected[0])
