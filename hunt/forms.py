"""The same matrix in every form that the package takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp


def forms(X: np.ndarray) -> Iterator[tuple[str, str, Any]]:
    """(group, name, X): the results of a group are equal bit for bit."""
    csc = sp.csc_array(X)
    yield "sparse", "csc", csc
    yield "sparse", "csr", sp.csr_array(X)
    yield "sparse", "coo", sp.coo_array(X)
    wide = csc.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    yield "sparse", "csc with int64 indices", wide
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    yield "sparse", "csr with int64 indices", wide
    turned = csc.copy()
    for j in range(X.shape[1]):
        part = slice(turned.indptr[j], turned.indptr[j + 1])
        turned.indices[part], turned.data[part] = turned.indices[part][::-1].copy(), turned.data[part][::-1].copy()
    turned.has_sorted_indices = False
    yield "sparse", "csc with unsorted indices", turned
    coo = sp.coo_array(X)
    twice = (np.r_[coo.data / 2, coo.data / 2], (np.r_[coo.row, coo.row], np.r_[coo.col, coo.col]))
    yield "sparse", "coo with every entry in two halves", sp.coo_array(twice, shape=X.shape)
    yield "dense", "dense in C order", np.ascontiguousarray(X)
    yield "dense", "dense in Fortran order", np.asfortranarray(X)
    if np.all(np.round(X) == X) and np.max(np.abs(X), initial=0) < 1000:
        yield "dense", "dense int64", X.astype(np.int64)
        yield "sparse", "csc int32", csc.astype(np.int32)
        if np.all((X == 0) | (X == 1)):
            yield "dense", "dense bool", X.astype(bool)
    if np.all(X.astype(np.float32) == X):
        yield "sparse float32", "csc float32", csc.astype(np.float32)
        yield "sparse float32", "csr float32", sp.csr_array(X).astype(np.float32)
        yield "dense float32", "dense float32", np.asfortranarray(X.astype(np.float32))
