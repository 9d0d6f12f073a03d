"""Columns that are copies of each other up to sign and scale: found by hashing, then compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockgreedy.problem.columns import Columns, as_columns, column_norms, without_stored_zeros

Array = NDArray[np.float64]

_CHUNK = 1 << 22  # entries handled at a time


@dataclass(frozen=True)
class Duplicates:
    """``first_of[j]`` is the first column that column j is a multiple of: j itself where there is none before it."""

    first_of: NDArray[np.int64] = field(repr=False)

    @property
    def count(self) -> int:
        """Columns that repeat an earlier one: what could be dropped."""
        return int(np.count_nonzero(self.first_of != np.arange(len(self.first_of))))

    def examples(self, most: int = 3) -> list[tuple[int, int]]:
        """Some pairs (first, copy)."""
        copies = np.flatnonzero(self.first_of != np.arange(len(self.first_of)))[:most]
        return [(int(self.first_of[j]), int(j)) for j in copies]

    def most_spread(self, block_of: NDArray[np.int32], n_blocks: int, most: int) -> list[int]:
        """The first of the kinds whose copies lie in the largest numbers of blocks, at least two."""
        copied = np.flatnonzero(np.bincount(self.first_of, minlength=len(self.first_of))[self.first_of] > 1)
        places = np.unique(self.first_of[copied] * n_blocks + block_of[copied])  # (kind, block)
        kinds, blocks = np.unique(places // n_blocks, return_counts=True)
        order = np.argsort(-blocks, kind="stable")[:most]
        return [int(kinds[k]) for k in order if blocks[k] > 1]

    def split(self, block_of: NDArray[np.int32]) -> int:
        """Copies in another block than the first of their kind."""
        return int(np.count_nonzero(block_of != block_of[self.first_of]))


def find_duplicates(X: Any, n_threads: int | None = None) -> Duplicates:
    """Copies up to sign and scale (to rounding in X's own type); empty columns do not count. O(nonzeros + p log p).

    Copies have the same pattern of nonzeros and, at norm 1, the same |product| with any vector. Columns are sorted
    by a hash of the one and by the other, and neighbours that agree in both are compared entry by entry.
    """
    columns: Any = without_stored_zeros(as_columns(X, n_threads))
    norms = column_norms(columns)
    filled = np.flatnonzero(norms)
    tolerance = 16 * float(np.finfo(columns.dtype).eps)
    rng = np.random.default_rng(0x6475706C)  # not 0, which users' own random columns are made with
    pattern, projection = _hashes(columns, rng)
    key = np.zeros(len(norms))
    key[filled] = np.abs(projection[filled]) / norms[filled]
    order = filled[np.lexsort((key[filled], pattern[filled]))]
    before, after = order[:-1], order[1:]
    near = np.abs(key[before] - key[after]) <= 1e3 * tolerance * np.maximum(1.0, key[before])
    pairs = np.flatnonzero((pattern[before] == pattern[after]) & near)
    same = np.zeros(len(order), dtype=np.bool_)  # as its predecessor in the order
    for some in _runs(columns, before[pairs]):
        same[pairs[some] + 1] = _are_equal(columns, norms, before[pairs[some]], after[pairs[some]], tolerance)
    starts = np.flatnonzero(~same)
    first_of = np.arange(len(norms))
    if len(order):
        lowest = np.minimum.reduceat(order, starts)
        first_of[order] = np.repeat(lowest, np.diff(np.append(starts, len(order))))
    return Duplicates(first_of)


def copies_of(X: Any, features: NDArray[np.int64], n_threads: int | None = None) -> list[NDArray[np.int64]]:
    """The groups of columns that are multiples of each other, ascending, of which one is among these features.

    Groups are complete, over all columns of X; columns that are multiples of no other one are in none.
    """
    if len(features) == 0:
        return []
    columns: Any = without_stored_zeros(as_columns(X, n_threads))
    if _is_sparse(columns):
        candidates = _alike(columns, features)
        first_of = candidates[find_duplicates(columns[:, candidates], n_threads).first_of]
    else:
        candidates = np.arange(columns.shape[1])
        first_of = find_duplicates(columns, n_threads).first_of
    sizes = np.bincount(first_of, minlength=columns.shape[1])
    is_wanted = np.zeros(columns.shape[1], dtype=np.bool_)  # by the first of a group
    is_wanted[first_of[np.isin(candidates, features)]] = True
    chosen = np.flatnonzero((is_wanted & (sizes > 1))[first_of])
    chosen = chosen[np.argsort(first_of[chosen], kind="stable")]
    if len(chosen) == 0:
        return []
    return np.split(candidates[chosen], np.flatnonzero(np.diff(first_of[chosen])) + 1)


def _alike(columns: Any, features: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sparse columns with as many nonzeros as one of the features, and the same first row: few, but all copies."""
    counts = np.diff(columns.indptr).astype(np.int64)
    filled = np.flatnonzero(counts)
    key = np.zeros(len(counts), dtype=np.int64)
    key[filled] = counts[filled] * columns.shape[0] + columns.indices[columns.indptr[filled]]
    return np.flatnonzero(np.isin(key, key[features]))


def _is_sparse(columns: Columns) -> bool:
    return bool(sp.issparse(columns))


def _hashes(columns: Columns, rng: np.random.Generator) -> tuple[NDArray[np.uint64], Array]:
    """Of each column: a hash of its pattern, and its product with a random vector."""
    n, p = columns.shape
    direction = rng.standard_normal(n)
    words = rng.integers(0, 2**64, size=n, dtype=np.uint64)
    if not _is_sparse(columns):
        return np.zeros(p, dtype=np.uint64), np.asarray(direction @ columns, dtype=np.float64)
    pattern = np.zeros(p, dtype=np.uint64)
    indptr = columns.indptr
    for some in _runs(columns, np.arange(p)):
        first, last = int(indptr[some[0]]), int(indptr[some[-1] + 1])
        filled = some[np.diff(indptr)[some] > 0]
        if len(filled):
            pattern[filled] = np.add.reduceat(words[columns.indices[first:last]], indptr[filled] - first)
    return pattern, np.asarray(columns.T @ direction, dtype=np.float64)


def _runs(columns: Columns, features: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Positions of the features in runs of about _CHUNK entries."""
    counts = np.diff(columns.indptr)[features] if _is_sparse(columns) else np.full(len(features), columns.shape[0])
    if len(features) == 0:
        return
    cuts = np.flatnonzero(np.diff(np.cumsum(counts) // _CHUNK)) + 1
    yield from np.split(np.arange(len(features)), cuts)


def _are_equal(
    columns: Columns, norms: Array, left: NDArray[np.int64], right: NDArray[np.int64], tolerance: float
) -> NDArray[np.bool_]:
    """Whether each pair agrees in every entry at norm 1, the sign aside."""
    if not _is_sparse(columns):
        a, b = columns[:, left] / norms[left], columns[:, right] / norms[right]
        sign = np.where(np.einsum("ij,ij->j", a, b) < 0, -1.0, 1.0)
        return np.asarray(np.max(np.abs(a - sign * b), axis=0) <= tolerance)
    counts = (columns.indptr[left + 1] - columns.indptr[left]).astype(np.int64)
    equal = counts == columns.indptr[right + 1] - columns.indptr[right]
    if not np.all(equal):  # the hash is of 64 bits: this does not happen, but would be wrong below
        equal[equal] = _are_equal(columns, norms, left[equal], right[equal], tolerance)
        return np.asarray(equal)
    starts = np.cumsum(counts) - counts
    within = np.arange(int(counts.sum())) - np.repeat(starts, counts)
    at_left = np.repeat(columns.indptr[left].astype(np.int64), counts) + within
    at_right = np.repeat(columns.indptr[right].astype(np.int64), counts) + within
    a = columns.data[at_left] / np.repeat(norms[left], counts)
    b = columns.data[at_right] / np.repeat(norms[right], counts)
    sign = np.where(a[starts] * b[starts] < 0, -1.0, 1.0)
    wrong = (columns.indices[at_left] != columns.indices[at_right]) | (
        np.abs(a - np.repeat(sign, counts) * b) > tolerance
    )
    return np.asarray(np.add.reduceat(wrong, starts) == 0)
