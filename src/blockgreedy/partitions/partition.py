"""PARTITION: which block each feature belongs to.

    blocks = make_partition(X, y, n_blocks=32, kind="balanced")

"balanced" blocks have equally many nonzeros (of a dense array equally many entries, since a scan reads them all) and
equal gradient mass, "capped" ones no more nonzeros than allowed. The other kinds have p/B features each: the first
p mod B blocks have ⌈p/B⌉, the rest ⌊p/B⌋.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from blockgreedy import _core
from blockgreedy.base.files import replacing
from blockgreedy.base.names import PARTITION_KINDS, PartitionKind
from blockgreedy.base.reading import archive_of, explained
from blockgreedy.base.reals import as_array, real_array
from blockgreedy.base.threads import resolve_threads
from blockgreedy.base.validate import at_least, one_of, seed_of, shown, whole
from blockgreedy.problem.arguments import labels
from blockgreedy.problem.columns import as_columns, column_norms, loads_of, without_stored_zeros
from blockgreedy.problem.passes import core_matrix
from blockgreedy.problem.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure
    from numpy.typing import NDArray

MAX_LOAD = 1.1  # of "capped" blocks, where nothing else is asked for


@dataclass(frozen=True, eq=False)
class Partition:
    """The features 0 … p-1 in blocks, none of them empty.

    A partition does not depend on alpha or the loss: make it once for a data set.

    Attributes
    ----------
    block_of : ndarray of shape (n_features,)
        The block of each feature; a read-only copy of what was given.
    n_blocks : int
        The number of blocks.
    kind : str
        How the partition was made.
    seed : int or None
        None if it is not random.

    Examples
    --------
    >>> import blockgreedy as bg
    >>> blocks = bg.Partition([0, 0, 1, 1, 1], n_blocks=2)
    >>> blocks.sizes.tolist()
    [2, 3]
    """

    block_of: NDArray[np.int32] = field(repr=False)
    n_blocks: int
    kind: str = "given"
    seed: int | None = None

    def __post_init__(self) -> None:
        given = np.asarray(self.block_of)
        if given.ndim != 1 or given.dtype.kind not in "iu":
            raise ValueError(
                f"block_of has shape {given.shape} and dtype {given.dtype}; it must hold one integer per feature"
            )
        n_blocks = _check_n_blocks(self.n_blocks, given.size)
        if given.dtype == np.int32 and not given.flags.writeable and _owns_memory(given):
            block_of = given  # nobody can change it: no copy
        else:
            block_of = self._check_range(given).astype(np.int32)  # the caller's own array stays writeable
            block_of.flags.writeable = False
        object.__setattr__(self, "block_of", block_of)
        object.__setattr__(self, "n_blocks", n_blocks)
        sizes = self.sizes
        if sizes.sum() < block_of.size:
            self._check_range(block_of)
        if not np.all(sizes):
            raise ValueError(
                f"block_of leaves block {int(np.argmin(sizes))} empty; "
                f"each of the n_blocks={self.n_blocks} blocks must have a feature"
            )

    def _check_range(self, block_of: NDArray[Any]) -> NDArray[Any]:
        if block_of.min() < 0 or block_of.max() >= self.n_blocks:
            j = int(np.flatnonzero((block_of < 0) | (block_of >= self.n_blocks))[0])
            raise ValueError(
                f"block_of[{j}]={block_of[j]} is no block; with n_blocks={self.n_blocks} "
                f"it must lie in 0..{self.n_blocks - 1}"
            )
        return block_of

    @property
    def n_features(self) -> int:
        return len(self.block_of)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Features per block."""
        return _core.block_sizes(self.block_of, self.n_blocks)

    @property
    def order(self) -> NDArray[np.intp]:
        """The features block after block, ascending within a block."""
        return np.argsort(self.block_of, kind="stable")

    def members(self, b: int) -> NDArray[np.intp]:
        """The features of block b, ascending."""
        if not 0 <= b < self.n_blocks:
            raise ValueError(f"b={b!r} is no block; it must lie in 0..{self.n_blocks - 1}")
        return np.flatnonzero(self.block_of == b)

    def nonzeros(self, X: Any) -> NDArray[np.int64]:
        """Nonzeros of X per block, the load that "capped" and "balanced" blocks share (dense X: rows × features).

        Zeros that a sparse X stores do not count, wherever loads are compared.
        """
        n_rows, n_features = self._check_shape(X)
        counts = loads_of(X.tocsc()) if hasattr(X, "tocsc") else np.full(n_features, n_rows)
        # bincount adds in float64, exact for fewer than 2**53 entries
        return np.bincount(self.block_of, weights=counts, minlength=self.n_blocks).astype(np.int64)

    def mass(self, X: Any, y: Any) -> NDArray[np.float64]:
        """Share of the gradient mass |x_j·y|/‖x_j‖ in each block, which suggests where nonzero weights will be."""
        self._check_shape(X)
        return np.asarray(np.bincount(self.block_of, weights=gradient_mass(X, y), minlength=self.n_blocks))

    def in_block_order(self, X: Any) -> tuple[Any, Partition]:
        """X with its columns sorted by block, so that each block is contiguous in memory, and the partition for it.

        Column k of the new matrix is feature ``order[k]`` of X; ``coef[order] = w`` converts weights w back.
        """
        self._check_shape(X)
        sorted_blocks = np.repeat(np.arange(self.n_blocks, dtype=np.int32), self.sizes)
        ordered = as_columns(X)[:, self.order]
        if not hasattr(ordered, "tocsc"):
            ordered = np.asfortranarray(ordered)
        return ordered, Partition(_frozen(sorted_blocks), self.n_blocks, self.kind, self.seed)

    def plot(self, X: Any = None, y: Any = None) -> Figure:
        """Loads of the blocks, the heaviest first: nonzeros of X, features, and with y shares of the gradient mass.

        A matplotlib figure, which notebooks show by themselves.
        """
        from blockgreedy.reports.plots import loads_figure

        if y is not None and X is None:
            raise ValueError("y goes with X, which is not given")
        loads: dict[str, NDArray[Any]] = {} if X is None else {"nonzeros": self.nonzeros(X)}
        loads |= {"features": self.sizes} | ({} if y is None else {"mass": self.mass(X, y)})
        return loads_figure(loads)

    def _repr_html_(self) -> str:
        from blockgreedy.reports.plots import notebook_html

        sizes = self.sizes
        facts = [
            ("kind", self.kind),
            ("blocks", f"{self.n_blocks:,}"),
            ("features", f"{self.n_features:,}"),
            ("features per block", f"{sizes.min():,} … {sizes.max():,}"),
        ]
        facts += [] if self.seed is None else [("seed", str(self.seed))]
        return notebook_html("Partition", facts, "Features of each block", self.plot)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes an ``.npz`` file that ``Partition.load`` reads, under a temporary name and then renamed."""
        seed = np.int64(-1) if self.seed is None else np.uint64(self.seed)
        with replacing(path, ".npz") as file:
            np.savez_compressed(
                file, block_of=self.block_of, n_blocks=np.int64(self.n_blocks), kind=np.str_(self.kind), seed=seed
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Partition:
        """Reads what ``save`` wrote."""
        if not Path(path).is_file():
            raise FileNotFoundError(f"path must name an existing file, got {str(path)!r}")
        with explained(f"{path} holds no partition as Partition.save writes it"):
            with archive_of(path) as archive:
                block_of, n_blocks, kind, seed = (archive[name] for name in ("block_of", "n_blocks", "kind", "seed"))
            return cls(block_of, int(n_blocks), str(kind), int(seed) if seed >= 0 else None)

    def _check_shape(self, X: Any) -> tuple[int, int]:
        n_rows, n_features = np.shape(X)
        if n_features != self.n_features:
            raise ValueError(f"X has {n_features} features, the partition has {self.n_features}")
        return n_rows, n_features


def gradient_mass(X: Any, y: Any) -> NDArray[np.float64]:
    """|x_j·y|/‖x_j‖ of each feature, adding up to 1: its first pull. Two-valued y counts as ±1."""
    columns = as_columns(X)
    target = as_target(y, columns.shape[0])
    norms = column_norms(columns)
    products = np.abs(np.asarray(columns.T @ target, dtype=np.float64))
    mass = np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)
    total = mass.sum()
    return np.asarray(mass / total if total > 0 else np.full(len(mass), 1 / len(mass)))


def as_target(y: Any, n_samples: int) -> NDArray[np.float64]:
    """y as the first gradient sees it: two values become -1 and +1, as for the classification losses."""
    given = labels(y, n_samples)
    if given.dtype.kind in "UST" or (given.dtype.kind == "O" and all(isinstance(label, str) for label in given)):
        given = np.unique(given, return_inverse=True)[1]
    target = np.asarray(real_array("y", given), dtype=np.float64)
    low, high = target.min(), target.max()
    two_valued = low < high and np.all((target == low) | (target == high))
    return np.where(target == high, 1.0, -1.0) if two_valued else target


def make_partition(
    X: Any,
    y: Any = None,
    *,
    n_blocks: int,
    kind: str = "random",
    max_load: float | None = None,
    seed: int = 0,
    n_threads: int | None = None,
) -> Partition:
    """Divide the columns of X into blocks.

    Parameters
    ----------
    X : sparse matrix or array of shape (n_samples, n_features), or Problem
        Whose columns are divided.
    y : array of shape (n_samples,), optional
        Targets, unless X is a Problem. Only "balanced" uses them; without y all features count as equally important.
    n_blocks : int
        From 1 to the number of features.
    kind : {"random", "contiguous", "clustered", "balanced", "capped"}, default "random"
        "random" divides a random permutation of the features into blocks, "contiguous" their given order.
        "clustered" is the paper's Algorithm 2: each block takes the remaining feature with the most nonzeros, and
        those with the largest inner products with it. "balanced" keeps features together that occur in the same rows
        (dense features: that are correlated), and gives all blocks equally many nonzeros and equal gradient mass
        |x_j·y|/‖x_j‖. "capped" is Algorithm 2 with a limit on the nonzeros of a block, see ``max_load``.
    max_load : float, optional
        For "capped" (default 1.1): no block has more than max_load times the mean nonzeros of a block (dense X:
        entries). A feature that does not fit waits for the seeds of later blocks. 1 asks for even blocks, inf is
        "clustered". The limit is kept if no column has more than max_load − 1 times the mean; otherwise no block
        exceeds the larger of the limit and the mean plus the heaviest column.
    seed : int, default 0
        For "random" and "balanced".
    n_threads : int, optional
        For "clustered", "balanced" and "capped"; the result does not depend on it.

    Returns
    -------
    Partition
        The blocks.

    Examples
    --------
    >>> import blockgreedy as bg
    >>> data = bg.data.text_like(200, 400, 10.0)
    >>> bg.make_partition(data.X, n_blocks=8, kind="contiguous").sizes.tolist()
    [50, 50, 50, 50, 50, 50, 50, 50]
    """
    make = KINDS[one_of("kind", kind, PARTITION_KINDS)]
    if max_load is not None:
        if kind != "capped":
            raise ValueError(f"max_load={shown(max_load)} goes with kind='capped', not with kind={kind!r}")
        make = partial(_capped, max_load=at_least("max_load", max_load, 1))
    if isinstance(X, Problem):
        if y is not None:
            raise ValueError("y must not be given with a Problem, which has its own")
        X, y = _Checked(X.X), X.y
    knows_shape: bool = isinstance(X, _Checked) or issparse(X)
    shape = X.shape if knows_shape else as_array("X", X).shape
    if len(shape) != 2:
        raise ValueError(f"X has {len(shape)} dimension(s), expected 2 (samples × features)")
    n_blocks = _check_n_blocks(n_blocks, shape[1])
    return make(X, y, n_blocks, seed_of("seed", seed), n_threads)


def _random(X: Any, y: Any, n_blocks: int, seed: int, n_threads: int | None) -> Partition:
    return Partition(_frozen(_core.random_blocks(np.shape(X)[1], n_blocks, seed)), n_blocks, "random", seed)


def _contiguous(X: Any, y: Any, n_blocks: int, seed: int, n_threads: int | None) -> Partition:
    return Partition(_frozen(_cut(np.shape(X)[1], n_blocks)), n_blocks, "contiguous")


def _clustered(X: Any, y: Any, n_blocks: int, seed: int, n_threads: int | None) -> Partition:
    threads = resolve_threads(n_threads)
    block_of = _core.cluster_features(core_matrix(_columns(X, threads)), n_blocks, math.inf, threads)
    return Partition(block_of, n_blocks, "clustered")


def _capped(X: Any, y: Any, n_blocks: int, seed: int, n_threads: int | None, max_load: float = MAX_LOAD) -> Partition:
    threads = resolve_threads(n_threads)
    block_of = _core.cluster_features(core_matrix(_columns(X, threads)), n_blocks, max_load, threads)
    return Partition(block_of, n_blocks, "capped")


def _balanced(X: Any, y: Any, n_blocks: int, seed: int, n_threads: int | None) -> Partition:
    threads = resolve_threads(n_threads)
    columns = without_stored_zeros(_columns(X, threads))
    target = None if y is None else _scaled(as_target(y, columns.shape[0]))
    block_of = _core.balance_features(core_matrix(columns), target, n_blocks, seed, threads)
    return Partition(block_of, n_blocks, "balanced", seed)


def _scaled(target: NDArray[np.float64]) -> NDArray[np.float32]:
    """In half the memory, which the core reads in no order; only shares of the mass count, not its size."""
    largest = np.abs(target).max()
    return np.asarray(target / largest if largest > 0 else target, dtype=np.float32)


@dataclass(frozen=True)
class _Checked:
    """Columns that as_columns has seen before."""

    columns: Any

    @property
    def shape(self) -> tuple[int, int]:
        n_rows, n_features = self.columns.shape
        return n_rows, n_features


def _columns(X: Any, n_threads: int) -> Any:
    return X.columns if isinstance(X, _Checked) else as_columns(X, n_threads)


KINDS: dict[PartitionKind, Callable[[Any, Any, int, int, int | None], Partition]] = {
    "random": _random,
    "contiguous": _contiguous,
    "clustered": _clustered,
    "balanced": _balanced,
    "capped": _capped,
}


def _owns_memory(array: NDArray[Any]) -> bool:
    """Whether no other array looks at the same memory (the core's arrays are based on a capsule)."""
    return array.base is None or not isinstance(array.base, np.ndarray)


def _frozen(block_of: NDArray[np.int32]) -> NDArray[np.int32]:
    """Read-only, so that Partition need not copy it."""
    block_of.flags.writeable = False
    return block_of


def _cut(n_features: int, n_blocks: int) -> NDArray[np.int32]:
    """0,…,0,1,…,1,…: the first n_features mod n_blocks blocks have one feature more than the rest."""
    size, extra = divmod(n_features, n_blocks)
    blocks = np.arange(n_blocks, dtype=np.int32)
    return np.repeat(blocks, size + (blocks < extra))


def _check_n_blocks(n_blocks: int, n_features: int) -> int:
    try:
        return whole("n_blocks", n_blocks, 1, n_features)
    except ValueError as error:
        raise ValueError(f"{error} (the number of features)") from None
