"""Generated data of the paper's shapes, for when the real sets are not at hand; always named as generated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from blockgreedy import _core
from blockgreedy.base.names import GeneratedSet
from blockgreedy.base.threads import resolve_threads
from blockgreedy.base.validate import MAX_SEED
from blockgreedy.data.dataset import Dataset

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_INT32_MAX = 2**31 - 1


def text_like(
    n_samples: int = 20_000,
    n_features: int = 50_000,
    mean_nonzeros: float = 75.0,
    n_topics: int = 50,
    seed: int = 0,
    n_threads: int | None = None,
) -> Dataset:
    """Generate documents: tf-idf rows of unit norm in CSR float32, labels -1 and +1.

    Terms follow Zipf's law; a document mixes a background with one or two of ``n_topics`` topics that have
    terms of their own, so terms of a topic occur together. Labels come from a sparse linear model over terms
    of medium frequency, and 5 % of them are flipped. ``mean_nonzeros`` is the mean number of distinct terms
    per document. The result depends on the arguments and not on ``n_threads``.
    """
    _check_integer("n_samples", n_samples, 10, _INT32_MAX)
    _check_integer("n_features", n_features, 100, _INT32_MAX)
    _check_integer("n_topics", n_topics, 1, n_features // 4)
    _check_integer("seed", seed, 0, MAX_SEED)
    if not 1 <= mean_nonzeros <= n_features / 8:
        raise ValueError(
            f"mean_nonzeros must lie between 1 and n_features / 8 = {n_features / 8:g}, got {mean_nonzeros}"
        )
    shape = (n_samples, n_features, float(mean_nonzeros), n_topics, seed)
    indptr, indices, data, y = _generate(_core.text_pointers, _core.text_fill, shape, n_samples, n_samples, n_threads)
    X = sparse.csr_array((data, indices, indptr), shape=(n_samples, n_features))
    return Dataset(_mark_canonical(X), y, name="text-like (generated)")


def kdda_like(
    n_samples: int = 8_407_752,
    n_features: int = 20_216_830,
    n_nonzeros: int = 300_000_000,
    seed: int = 0,
    n_threads: int | None = None,
) -> Dataset:
    """Generate data shaped like KDD Cup 2010 (algebra): CSC float32, labels -1 and +1.

    Column counts follow Zipf's law: one or two columns touch most rows, and most columns have one to three
    nonzeros. Most of a column's nonzeros lie in the rows of a group (a student's run of rows, or a problem
    that recurs), so columns of a group are correlated. Rows have unit norm, except rows without nonzeros,
    which can occur in small data. Labels come from a logistic model over at most a few thousand columns.
    The number of nonzeros is ``n_nonzeros`` to within 1 %. The result depends on the arguments and not on
    ``n_threads``.
    """
    _check_integer("n_samples", n_samples, 100, _INT32_MAX)
    _check_integer("n_features", n_features, 100, _INT32_MAX)
    _check_integer("n_nonzeros", n_nonzeros, n_features, n_samples * n_features // 4)
    _check_integer("seed", seed, 0, MAX_SEED)
    shape = (n_samples, n_features, n_nonzeros, seed)
    indptr, indices, data, y = _generate(
        _core.kdda_pointers, _core.kdda_fill, shape, n_features, n_samples, n_threads
    )
    X = sparse.csc_array((data, indices, indptr), shape=(n_samples, n_features))
    return Dataset(_mark_canonical(X), y, name="KDDA-like (generated)")


# Table 1 of the paper.
_SHAPES: dict[GeneratedSet, tuple[int, int, int]] = {
    "news20": (19_996, 1_355_191, 9_097_916),
    "reuters": (23_865, 47_237, 1_757_800),
    "realsim": (72_309, 20_958, 3_709_083),
    "kdda": (8_407_752, 20_216_830, 305_613_510),
}


def shaped(
    name: GeneratedSet,
    seed: int = 0,
    scale: float = 1.0,
    n_threads: int | None = None,
) -> Dataset:
    """Generate data with the samples, features and nonzeros of one of the paper's four sets (its Table 1).

    ``scale`` multiplies the numbers of samples and of features and keeps the mean number of nonzeros per row,
    as far as the generator's limits allow. It is generated data: only the shape is that of the real set.
    """
    if name not in _SHAPES:
        raise ValueError(f"name must be one of {', '.join(sorted(_SHAPES))}, got {name!r}")
    if not 0 < scale <= 10:
        raise ValueError(f"scale must be positive and at most 10, got {scale}")
    n_samples, n_features, n_nonzeros = _SHAPES[name]
    per_row = n_nonzeros / n_samples
    n_samples, n_features = max(100, round(n_samples * scale)), max(100, round(n_features * scale))
    if name == "kdda":
        wanted = max(round(n_samples * per_row), n_features)
        made = kdda_like(n_samples, n_features, min(wanted, n_samples * n_features // 4), seed, n_threads)
    else:
        n_topics = min(100, n_features // 40)
        made = text_like(n_samples, n_features, min(per_row, n_features / 8), n_topics, seed, n_threads)
    size = "" if scale == 1 else f", scale {scale:g}"
    return Dataset(made.X, made.y, name=f"{name}-shaped (generated{size})")


def _generate(
    pointers: Callable[..., None],
    fill: Callable[..., None],
    shape: tuple[float, ...],
    n_compressed: int,
    n_samples: int,
    n_threads: int | None,
) -> tuple[NDArray[np.integer[Any]], NDArray[np.int32], NDArray[np.float32], NDArray[np.int8]]:
    """Let the core fill arrays that NumPy owns: sizes first, then contents, so nothing is ever copied."""
    threads = resolve_threads(n_threads)
    indptr = np.empty(n_compressed + 1, dtype=np.int64)
    pointers(*shape, indptr, threads)
    n_nonzeros = int(indptr[-1])
    indices = np.empty(n_nonzeros, dtype=np.int32)
    data = np.empty(n_nonzeros, dtype=np.float32)
    y = np.empty(n_samples, dtype=np.int8)
    fill(*shape, indptr, indices, data, y, threads)
    # scipy keeps indices and indptr in one type: int64 pointers would make it copy and widen all the indices.
    narrow = indptr.astype(np.int32) if n_nonzeros <= _INT32_MAX else indptr
    return narrow, indices, data, y


def _mark_canonical(X: Any) -> Any:
    """Tell scipy what the generators guarantee; it would find out by a pass over all nonzeros."""
    X.has_sorted_indices = True
    X.has_canonical_format = True
    return X


def _check_integer(name: str, value: int, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not low <= value <= high:
        raise ValueError(f"{name} must be an integer between {low:,} and {high:,}, got {value!r}")
