"""Columns of norm 1, and the spectral radius of products of a few of them: what rho_block is made of.

rho_block is the largest eigenvalue of A_SᵀA_S over all selections S of one column per block. Exchanging the two
maxima gives what the search below climbs:

    rho_block = max over unit vectors z of Σ_b max over j in b of (a_j·z)²

For a given z the best column of every block is found in one pass over the nonzeros.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import islice, product
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockgreedy.base.cached import cached_property
from blockgreedy.base.threads import resolve_threads
from blockgreedy.base.validate import flag
from blockgreedy.partitions.duplicates import Duplicates, find_duplicates
from blockgreedy.problem.columns import Columns, as_columns, loads_of
from blockgreedy.problem.passes import column_products, combine_columns, core_matrix, weighted_squares

if TYPE_CHECKING:
    from blockgreedy.partitions.partition import Partition

Array = NDArray[np.float64]

_EPSILON = float(np.finfo(np.float64).eps)
_CONSTANT = 1e-12  # what is below this part of its norm once it is centred is rounding: it was constant
_LEAST_SQUARE, _MOST_SQUARE = 2.0**-900, 2.0**900  # ‖x_j‖² of which no digit is lost
_EXCHANGES = 3  # climbs whose ends are improved block by block
_MAX_EXCHANGE = 5e7  # entries of X up to which they are: it copies the columns
MAX_DENSE_BLOCKS = 512  # up to here a selection's products are held as a matrix and its eigenvector is exact


class UnitColumns:
    """The columns a_j = (x_j − mean)/‖x_j − mean‖ of X, or x_j/‖x_j‖ without centring; X itself is left as it is.

    Sparse columns are centred implicitly: a_i·a_j = scale_i·scale_j·x_i·x_j − tilt_i·tilt_j. Empty columns (and,
    centred, constant ones) are zero.
    """

    def __init__(self, X: Any, *, center: bool = False, n_threads: int | None = None) -> None:
        self.n_threads, self.center = resolve_threads(n_threads), flag("center", center)
        self.columns: Columns = as_columns(X, self.n_threads)
        self.is_sparse = sp.issparse(self.columns)
        self._given = self.columns if self.is_sparse else None
        self.n_samples, self.n_features = (int(size) for size in self.columns.shape)
        self.tilt = np.zeros(self.n_features)
        self.matrix = core_matrix(self.columns)
        squares = weighted_squares(self.matrix, None, self.n_threads)
        self.columns, is_other = _within_range(self.columns, squares)
        if is_other:
            self.matrix = core_matrix(self.columns)
            squares = weighted_squares(self.matrix, None, self.n_threads)
        least = _CONSTANT**2 * squares if center else np.zeros(self.n_features)
        if center:
            self._subtract_means()
            self.matrix = core_matrix(self.columns)
            squares = weighted_squares(self.matrix, None, self.n_threads)
        self.raw_squares = squares
        if center and self.is_sparse:
            means = column_products(self.matrix, np.ones(self.n_samples), self.n_threads) / self.n_samples
            means[self._shifted] = 0
            squares = squares - self.n_samples * means**2
            self.tilt = math.sqrt(self.n_samples) * means
        filled = squares > least
        self.scale = np.zeros(self.n_features)
        self.scale[filled] = 1 / np.sqrt(squares[filled])
        self.tilt *= self.scale

    def _subtract_means(self) -> None:
        """Dense columns as a whole; of sparse ones those without a zero, where the implicit way loses its digits.

        Any other sparse column keeps at least 1/n of its squared norm (Cauchy-Schwarz), so that little is lost.
        """
        if not self.is_sparse:
            self.columns = np.asfortranarray(self.columns - self.columns.mean(axis=0, dtype=np.float64))
            return
        csc: Any = self.columns
        self._shifted = np.flatnonzero(np.diff(csc.indptr) == self.n_samples)
        if len(self._shifted):
            self.columns = csc.astype(np.float64)
            self.columns.indices, self.columns.indptr = csc.indices, csc.indptr  # astype may change their types
            for j in self._shifted:
                entries = self.columns.data[csc.indptr[j] : csc.indptr[j + 1]]
                entries -= entries.mean()

    @cached_property
    def rounding(self) -> float:
        """What an inner product of two columns may be off by."""
        lost = self.raw_squares * self.scale**2  # ‖x_j‖²/‖x_j − mean‖²: digits that centring costs
        return 4 * self.n_samples * _EPSILON * max(1.0, float(lost.max()))

    @cached_property
    def loads(self) -> NDArray[np.int64]:
        """Nonzeros of each column of X as it was given: centring moves its zeros. Of dense columns all entries."""
        return loads_of(self._given if self.is_sparse else self.columns)

    @cached_property
    def copies(self) -> Duplicates:
        """Columns that repeat others."""
        return find_duplicates(self.columns, self.n_threads)

    @cached_property
    def explicit(self) -> tuple[Columns, Columns]:
        """The scaled columns in float64, and the same by rows (sparse only). tilt is still to be subtracted."""
        if not self.is_sparse:
            dense = np.asfortranarray(self.columns * self.scale, dtype=np.float64)
            return dense, dense
        csc: Any = self.columns
        unit: Any = sp.csc_array(csc.shape, dtype=np.float64)
        unit.data = csc.data * np.repeat(self.scale, np.diff(csc.indptr))
        unit.indices, unit.indptr = csc.indices, csc.indptr
        rows: Any = unit.tocsr()
        rows.indices = rows.indices.astype(np.int32, copy=False)  # tocsr gives indices the type of indptr
        return unit, rows

    def products(self, z: Array) -> Array:
        """a_j·z of every column; with centring z must add up to 0, as ``combine`` and ``centred`` return it."""
        return column_products(self.matrix, z, self.n_threads) * self.scale

    def combine(self, features: NDArray[np.intp], v: Array) -> Array:
        """Σ v_k a_k over the features."""
        weights = v * self.scale[features]
        if len(features) == self.n_features:
            ordered = np.empty(self.n_features)
            ordered[features] = weights
            z = combine_columns(self.matrix, ordered)
        else:
            z = np.asarray(self.columns[:, features] @ weights, dtype=np.float64)
        return self.centred(z)

    def centred(self, z: Array) -> Array:
        """z without its mean, if columns are centred; 0 where nothing but rounding would be left.

        Twice: where z is nearly constant, one subtraction leaves a mean that is not small beside the rest, and
        ``products`` of what is then scaled to norm 1 would not be those of centred columns.
        """
        if not self.center:
            return z
        rest = z - z.mean()
        rest -= rest.mean()
        return rest if np.linalg.norm(rest) > _CONSTANT * np.linalg.norm(z) else np.zeros_like(rest)

    def gram(self, features: NDArray[np.intp]) -> Array:
        """Inner products of some columns. The diagonal is 1, for empty columns too: as if orthogonal to the rest."""
        chosen: Any = self.columns[:, features]
        if self.is_sparse:
            chosen = chosen.astype(np.float64) * self.scale[features]
            gram = np.asarray((chosen.T @ chosen).toarray())
        else:
            chosen = np.asarray(chosen, dtype=np.float64) * self.scale[features]
            gram = chosen.T @ chosen
        gram -= np.outer(self.tilt[features], self.tilt[features])
        np.fill_diagonal(gram, 1.0)
        return np.asarray(gram)


def _within_range(columns: Columns, squares: Array) -> tuple[Columns, bool]:
    """Columns whose squares overflow or vanish times powers of two, which leaves directions as they are.

    And whether there are any; the given columns stay as they are.
    """
    given: Any = columns
    is_sparse = sp.issparse(columns)
    odd = ~((squares >= _LEAST_SQUARE) & (squares <= _MOST_SQUARE))
    if odd.any():  # empty columns are none of them
        odd &= np.diff(given.indptr) > 0 if is_sparse else np.any(columns, axis=0)
    if not odd.any():
        return columns, False
    found = given.astype(np.float64)  # a copy
    if is_sparse:
        found.indices, found.indptr = given.indices, given.indptr  # astype may change their types
    for j in np.flatnonzero(odd):
        entries = found.data[given.indptr[j] : given.indptr[j + 1]] if is_sparse else found[:, j]
        largest = np.abs(entries).max()
        if largest > 0:
            np.ldexp(entries, -int(np.frexp(largest)[1]), out=entries)
    return found, True


def spectral_radius(X: Any, features: Iterable[int]) -> float:
    """Largest eigenvalue of the inner products of some columns of X, scaled to norm 1; nan for no feature.

    1 when they are orthogonal, their number when they are copies of each other.
    """
    chosen = np.fromiter(features, dtype=np.intp)
    if len(chosen) == 0:
        return math.nan
    unit = UnitColumns(as_columns(X, 1)[:, chosen], n_threads=1)
    everything = np.arange(len(chosen))
    if len(chosen) <= 2 * MAX_DENSE_BLOCKS:
        return float(np.linalg.eigvalsh(unit.gram(everything))[-1])
    from scipy.sparse.linalg import LinearOperator, eigsh

    def multiply(v: Array) -> Array:
        return unit.products(unit.combine(everything, v.ravel()))

    operator = LinearOperator((len(chosen), len(chosen)), matvec=multiply, dtype=np.float64)
    return max(1.0, float(eigsh(operator, k=1, v0=np.ones(len(chosen)), return_eigenvectors=False, tol=1e-8)[0]))


def best_of_blocks(products: Array, partition: Partition) -> NDArray[np.intp]:
    """The feature of the largest |product| in each block, the lowest of equals."""
    selection = np.zeros(partition.n_blocks, dtype=np.intp)
    if partition.n_blocks == partition.n_features:
        selection[partition.block_of] = np.arange(partition.n_features)
        return selection
    size = np.abs(products)
    largest = np.zeros(partition.n_blocks)
    np.maximum.at(largest, partition.block_of, size)
    winners = np.flatnonzero(size == largest[partition.block_of])[::-1]
    selection[partition.block_of[winners]] = winners  # of equals the last one written stays: the lowest
    return selection


def climb(
    unit: UnitColumns, partition: Partition, z: Array, max_passes: int, enough: float = math.inf
) -> tuple[float, NDArray[np.intp]]:
    """(a value that rho_block is not below, the selection that has it), from direction z uphill.

    Takes at most ``max_passes`` over the nonzeros; stops early once the value is ``enough``.
    """
    best, best_selection = 1.0, np.zeros(0, dtype=np.intp)  # one column alone has 1
    for _ in range(max_passes):
        z = unit.centred(z)
        norm = float(np.linalg.norm(z))
        if not norm > 0:
            break
        products = unit.products(z / norm)
        selection = best_of_blocks(products, partition)
        if partition.n_blocks <= MAX_DENSE_BLOCKS:
            value, v = _top(unit.gram(selection))
        else:
            v = products[selection]  # a step of the power method; ‖v‖² is its Rayleigh quotient
            value = float(v @ v)
        rises = value > best * (1 + 1e-6)
        if rises:
            best, best_selection = value, selection
        if not rises or best >= enough:
            break
        z = unit.combine(selection, v)
    return best, best_selection


def exchange(
    unit: UnitColumns, partition: Partition, selection: NDArray[np.intp], max_rounds: int
) -> tuple[float, NDArray[np.intp]]:
    """Better selections by changing one block at a time: to the column closest to what the other blocks add up to."""
    value, v = _top(unit.gram(selection))
    blocks = [partition.members(b) for b in range(partition.n_blocks)]
    columns = [unit.columns[:, members] for members in blocks]
    for _ in range(max_rounds):
        changed = False
        for b, members in enumerate(blocks):
            weights = v.copy()
            weights[b] = 0.0
            rest = unit.combine(selection, weights)
            size = np.abs(np.asarray(columns[b].T @ rest) * unit.scale[members])
            trial = selection.copy()
            trial[b] = members[int(np.argmax(size))]
            if trial[b] == selection[b]:
                continue
            trial_value, trial_v = _top(unit.gram(trial))
            if trial_value > value * (1 + 1e-9):
                value, v, selection, changed = trial_value, trial_v, trial, True
        if not changed:
            break
    return value, selection


def _top(gram: Array) -> tuple[float, Array]:
    values, vectors = np.linalg.eigh(gram)
    return float(values[-1]), vectors[:, -1]


def search(unit: UnitColumns, partition: Partition, starts: list[Array]) -> float:
    """The largest value that climbs from the starts reach, the best of them improved block by block at their ends."""
    B, is_shotgun = partition.n_blocks, partition.n_blocks == partition.n_features
    found = []
    for z in starts:
        found.append(climb(unit, partition, z, 100 if is_shotgun else 30))
        if found[-1][0] >= B * (1 - 1e-9):
            return found[-1][0]  # there is no more
    found.sort(key=lambda one: one[0])
    value = max([1.0, *(reached for reached, _ in found)])
    if not is_shotgun and B <= MAX_DENSE_BLOCKS and unit.columns.size <= _MAX_EXCHANGE:
        ends = list({tuple(selection): selection for _, selection in found if len(selection)}.values())
        value = max([value, *(exchange(unit, partition, selection, 10)[0] for selection in ends[-_EXCHANGES:])])
    return value


def starting_points(
    unit: UnitColumns, partition: Partition, target: Array | None, crowded_row: int, rng: np.random.Generator
) -> list[Array]:
    """Directions that columns of many blocks may be close to."""
    every = np.flatnonzero(unit.scale)
    if len(every) == 0:
        return []
    copied = unit.copies.most_spread(partition.block_of, partition.n_blocks, 2)
    starts = [unit.combine(np.array([j]), np.ones(1)) for j in copied]
    starts.append(unit.combine(every, np.ones(len(every))))
    starts.append(np.eye(1, unit.n_samples, crowded_row).ravel())
    if target is not None:  # selects the largest gradients
        starts.append(target)
    order = np.argsort(unit.loads, kind="stable")
    densest = np.zeros(partition.n_blocks, dtype=np.intp)
    densest[partition.block_of[order]] = order  # the last one written stays: the densest
    starts.append(unit.combine(densest, np.ones(len(densest))))
    return starts + [rng.standard_normal(unit.n_samples) for _ in range(2)]


def n_selections(partition: Partition) -> float:
    """How many there are; inf for more than anyone would enumerate."""
    sizes = partition.sizes
    return math.inf if np.log(sizes).sum() > 40 else math.prod(int(size) for size in sizes)


def enumerate_selections(unit: UnitColumns, partition: Partition) -> float:
    """rho_block by looking at every selection."""
    gram = unit.gram(np.arange(unit.n_features))
    members = [partition.members(b) for b in range(partition.n_blocks)]
    largest = 1.0
    for some in _batches(product(*members), max(1, 2_000_000 // partition.n_blocks**2)):
        matrices = gram[some[:, :, None], some[:, None, :]]
        largest = max(largest, float(np.linalg.eigvalsh(matrices)[:, -1].max()))
    return largest


def _batches(selections: Iterator[tuple[np.intp, ...]], size: int) -> Iterator[NDArray[np.intp]]:
    while some := list(islice(selections, size)):
        yield np.array(some)
