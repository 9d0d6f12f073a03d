"""What the models of the folds were: their weights, if they are to be kept, and how many iterations they took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockgreedy.estimators.folds import FoldPath
from blockgreedy.solvers.solution_path import PathPoint

Array = NDArray[np.float64]


def n_iter_of(paths: Sequence[FoldPath], n_ratios: int) -> Array:
    """Iterations of all models of a fold at an alpha, l1_ratios × alphas × folds; nan where it was not reached."""
    counts = np.full((len(paths), len(paths[0].alphas)), np.nan)
    for own, path in zip(counts, paths, strict=True):
        own[: len(path.models)] = [sum(point.n_iter for point in models) for models in path.models]
    return counts.reshape(n_ratios, len(paths) // n_ratios, -1).transpose(0, 2, 1)


def coefs_of(paths: Sequence[FoldPath], n_ratios: int, n_features: int) -> tuple[NDArray[Any], Array]:
    """Weights, alphas × features in CSR, and intercepts of each fold, l1_ratio and model (folds first)."""
    n_models, n_alphas = len(paths[0].judge.offsets), len(paths[0].alphas)
    shape = (n_ratios, len(paths) // n_ratios, n_models)
    coefs = np.empty((len(paths), n_models), dtype=object)
    intercepts = np.full((len(paths), n_models, n_alphas), np.nan)
    for p, path in enumerate(paths):
        for k in range(n_models):
            points = [models[k] for models in path.models]
            coefs[p, k] = _rows(points, n_alphas, n_features)
            intercepts[p, k, : len(points)] = [point.intercept for point in points]
    return coefs.reshape(shape).swapaxes(0, 1), intercepts.reshape(*shape, n_alphas).swapaxes(0, 1)


def _rows(points: Sequence[PathPoint], n_alphas: int, n_features: int) -> sp.csr_matrix:
    """A row for each alpha; those that were not reached are empty."""
    lengths = np.zeros(n_alphas, dtype=np.int64)
    lengths[: len(points)] = [len(point.values) for point in points]
    values = np.concatenate([np.zeros(0), *(point.values for point in points)])
    features = np.concatenate([np.zeros(0, dtype=np.int32), *(point.features for point in points)])
    return sp.csr_matrix((values, features, np.append(0, np.cumsum(lengths))), shape=(n_alphas, n_features))
