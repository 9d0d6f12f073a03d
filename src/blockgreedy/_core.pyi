"""The compiled core of blockgreedy."""

from collections.abc import Sequence
from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


class Matrix:
    """A design matrix, used by the core without a copy."""

    @property
    def n_rows(self) -> int: ...

    @property
    def n_cols(self) -> int: ...

    @property
    def n_nonzeros(self) -> int: ...

@overload
def csc(n_rows: int, indptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Matrix: ...

@overload
def csc(n_rows: int, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Matrix: ...

@overload
def csc(n_rows: int, indptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Matrix: ...

@overload
def csc(n_rows: int, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Matrix: ...

@overload
def dense(x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='F', device='cpu', writable=False)]) -> Matrix: ...

@overload
def dense(x: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='F', device='cpu', writable=False)]) -> Matrix: ...

@overload
def copy_dense(rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], columns: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='F', device='cpu')], n_threads: int) -> None: ...

@overload
def copy_dense(rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], columns: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='F', device='cpu')], n_threads: int) -> None:
    """
    Copies an array that stands row after row into one that stands column after column.
    """

def find_fault(matrix: Matrix, n_threads: int) -> str:
    """"" for a sound matrix, else one of indptr, range, unsorted, finite."""

class CoreProblem:
    """Objective and certificate passes over one matrix."""

    def __init__(self, matrix: object, y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: int, delta: float, alpha: float, l2: float, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, l2_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, lower: float | Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: float | Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], row_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, offset: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, fit_intercept: bool, n_threads: int) -> None: ...

    def objective(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Xw: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> float: ...

    def predict(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

    def column_products(self, r: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """out_j = x_j·r"""

    def alpha_needed(self, theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], at_null: bool, rounding: float) -> float: ...

    def penalty_conjugate(self, theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: float, rounding: float, most: float) -> float: ...

    def kkt_residual(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> float: ...

    def settled(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], intercept: float) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], float, float] | None:
        """
        Weights, intercept and objective of the minimum near this point; None where its signs are others.
        """

class BlockGreedy:
    """Algorithm 1; see cpp/family/block_greedy.hpp."""

    def __init__(self, problem: object, block_of: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_blocks: int, blocks_per_iter: int, per_block: int, update: int, greedy_rule: int, scan: int, atomic: bool, inner_tol: float, max_sweeps: int, seed: int, step_scale: float, asynchronous: bool, constants: tuple[float, float, int] | None, seconds: float = float('inf')) -> None: ...

    def run(self, n_iter: int, max_seconds: float, seconds: float = float('inf')) -> tuple[int, bool]: ...

    def set_weights(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], intercept: float = 0.0, seconds: float = float('inf')) -> None: ...

    def set_sparse_weights(self, features: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], intercept: float = 0.0, seconds: float = float('inf')) -> None: ...

    def fit_intercept(self, seconds: float = float('inf')) -> None:
        """
        Where weights have moved since; runs do so after every ⌈B/P⌉ iterations.
        """

    def release_weights(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Hands the weights over; the solver is done after it."""

    def update_with(self, features: Sequence[int], seconds: float = float('inf')) -> None: ...

    def move_to(self, features: Sequence[int], targets: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], seconds: float = float('inf')) -> None: ...

    def objective(self) -> float: ...

    @property
    def coef(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]: ...

    @property
    def Xw(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]: ...

    @property
    def derivs(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]: ...

    def record(self) -> None:
        """From now on runs keep what each iteration did, for take_record."""

    def take_record(self) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """
        Iterations, selected blocks and their counts, accepted features and their counts, steps, gains.
        """

    @property
    def intercept(self) -> float: ...

    @property
    def accepted(self) -> list[int]: ...

    @property
    def update_order(self) -> list[int]: ...

    @property
    def n_iter(self) -> int: ...

    @property
    def nonzeros_touched(self) -> int: ...

    @property
    def critical_nonzeros(self) -> int: ...

    @property
    def moves(self) -> int: ...

    @property
    def staleness(self) -> int: ...

    @property
    def most_stale(self) -> int: ...

class FoldPaths:
    """Folds side by side; see cpp/folds/fold_paths.hpp."""

    def __init__(self, problems: Sequence[object], f_null: Sequence[float]) -> None: ...

    def start(self, fold: int, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], features: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], intercept: float) -> None: ...

    def move_to(self, alpha: float, l2: float, coming: float) -> bool: ...

    def return_to(self, alpha: float, l2: float) -> bool: ...

    def step(self, share: float, seconds: float = float('inf')) -> tuple[float, bool]:
        """(largest decrease as a part of f_null, interrupted by Ctrl-C)"""

    def support(self, arg: int, /) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]: ...

    def intercept(self, arg: int, /) -> float: ...

    def objective(self, arg: int, /) -> float: ...

    def penalty(self, arg: int, /) -> float: ...

    def gap(self, arg: int, /) -> float: ...

    def drift(self, arg: int, /) -> float: ...

    def predictions(self, arg: int, /) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]: ...

    @property
    def out_of_range(self) -> bool: ...

    @property
    def n_steps(self) -> int: ...

    @property
    def n_cg(self) -> int: ...

    @property
    def nonzeros_touched(self) -> int: ...

    @property
    def seconds(self) -> list[float]: ...

class WorkingSet:
    """The default solver; see cpp/working_set/working_set.hpp."""

    def __init__(self, problem: object, n_blocks: int, block_of: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, tol: float, f_null: float, floor: float, least_alpha: float) -> None: ...

    def start(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], intercept: float, seconds: float = float('inf')) -> bool: ...

    def lower_alpha(self, alpha: float, l2: float, seconds: float = float('inf')) -> bool: ...

    def step(self, seconds: float = float('inf')) -> tuple[bool, bool]: ...

    def certify(self, repairs: bool = True, seconds: float = float('inf')) -> None: ...

    def verify(self, features: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], intercept: float) -> tuple[float, float, float]:
        """
        (objective, penalty, dual value) of these weights and the dual point, recomputed.
        """

    def release_dual(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Hands the dual point over; certificates end with it."""

    @property
    def dual(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]: ...

    @property
    def predictions(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]: ...

    @property
    def phases(self) -> list[str]: ...

    @property
    def seconds(self) -> list[float]: ...

    @property
    def intercept(self) -> float: ...

    @property
    def objective(self) -> float: ...

    @property
    def penalty(self) -> float: ...

    @property
    def dual_value(self) -> float: ...

    @property
    def f_null(self) -> float: ...

    @property
    def enough(self) -> float: ...

    @property
    def out_of_range(self) -> bool: ...

    @property
    def step_size(self) -> float: ...

    @property
    def n_iter(self) -> int: ...

    @property
    def n_blocks(self) -> int: ...

    @property
    def n_support(self) -> int: ...

    def support(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]: ...

    @property
    def n_violators(self) -> int: ...

    @property
    def n_candidates(self) -> int: ...

    @property
    def n_aliases(self) -> int: ...

    @property
    def working_set_size(self) -> int: ...

    @property
    def n_cg(self) -> int: ...

    @property
    def n_subproblems_by_products(self) -> int: ...

    @property
    def nonzeros_touched(self) -> int: ...

class Rows:
    """Rows whose columns are wanted: see cpp/base/transpose.hpp."""

    @overload
    def __init__(self, n_rows: int, n_cols: int, indptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> None: ...

    @overload
    def __init__(self, n_rows: int, n_cols: int, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> None: ...

    @overload
    def __init__(self, n_rows: int, n_cols: int, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> None: ...

    @overload
    def __init__(self, n_rows: int, n_cols: int, indptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> None: ...

    @overload
    def __init__(self, n_rows: int, n_cols: int, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> None: ...

    @overload
    def __init__(self, n_rows: int, n_cols: int, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> None: ...

    @property
    def fault(self) -> str:
        """"" for sound rows, else one of indptr, range, finite."""

    def n_entries(self, kept: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)] | None) -> int:
        """Of the columns that are kept (None: all)."""

    def mark_near(self, products: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], share: float, alpha: float, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, lower: float | Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: float | Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], kept: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """Keeps columns whose product exceeds this share of their threshold too."""

    def mark_reachable(self, most: float, alpha: float, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, lower: float | Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: float | Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], kept: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """
        Keeps columns that points with entries of at most this size could bring so far too.
        """

    def mark_reaching(self, reaches: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], alpha: float, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, lower: float | Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: float | Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], kept: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """The same, judged by what ``reaches`` has returned."""

    def count_missing(self, products: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], size: float, alpha: float, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, lower: float | Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: float | Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], kept: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> int:
        """
        Columns that are not kept and may break their threshold at a point whose largest entry is this.
        """

    def write(self, kept: NDArray[numpy.uint8] | None, n_threads: int) -> tuple[object, object, object, str]:
        """
        (data, indices, indptr, fault) of the columns that are kept, all others empty.
        """

    def products(self, theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], every: int, n_threads: int) -> object:
        """
        x_j·theta of every column, or an estimate from rows 0, every, 2·every, …; None if the rows have changed.
        """

    def reaches(self, most: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> object:
        """Σ_i |x_ij| most_i of every column; None if the rows have changed."""

    def long_columns(self, least: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Those with at least so many entries."""

def release_spare_memory() -> None:
    """Gives memory that is kept for the next fit back to the system."""

class Team:
    """Threads that live as long as this object."""

    def __init__(self, n_threads: int) -> None: ...

class WorkingColumns:
    """Columns of a working set, and products with them."""

    def __init__(self, matrices: Sequence[object], places: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], team: object) -> None:
        """places: of each column its matrix, and its number there."""

    def bend(self, root: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """The diagonal of ZᵀZ, then Σ root²·x of each column."""

    def gram_product(self, p: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], wanted: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float32], dict(shape=(None,))]: ...

    def combine(self, d: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

    @property
    def nonzeros_touched(self) -> int: ...

def evaluate_rows(team: Team, y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: int, delta: float, predictions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], margin: float, flat: float, theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], root: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> float:
    """Fills theta and root; returns the loss."""

def losses_along(team: Team, y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: int, delta: float, predictions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], direction: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], steps: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

def gather_columns(team: Team, matrices: Sequence[object], first_rows: Sequence[int], begins: Sequence[int], ends: Sequence[int], columns: Sequence[Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]]) -> tuple[object, object, object]:
    """
    (indptr, indices, data) of columns whose rows lie in several matrices, of which rows begin … end - 1 are taken; columns: their numbers in each, or -1.
    """

def column_keys(matrix: Matrix, first_row: int) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,))]:
    """A hash of each column, which adds up over rows."""

def products_of(team: Team, matrix: Matrix, r: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """
    Fills out with x_j·r of these columns; returns the number of entries read.
    """

def block_sizes(block_of: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_blocks: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
    """
    Features per block; those whose block is none of 0 … n_blocks-1 are not counted.
    """

def random_blocks(n_features: int, n_blocks: int, seed: int) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]: ...

def cluster_features(matrix: Matrix, n_blocks: int, max_load: float, n_threads: int) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]: ...

def balance_features(matrix: Matrix, target: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_blocks: int, seed: int, n_threads: int) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]: ...

def kdda_pointers(n_samples: int, n_features: int, n_nonzeros: int, seed: int, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> None: ...

def kdda_fill(n_samples: int, n_features: int, n_nonzeros: int, seed: int, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], labels: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> None: ...

def text_pointers(n_samples: int, n_features: int, mean_nonzeros: float, n_topics: int, seed: int, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> None: ...

def text_fill(n_samples: int, n_features: int, mean_nonzeros: float, n_topics: int, seed: int, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], labels: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> None: ...

class SvmlightText:
    def __init__(self, text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> None: ...

    @property
    def max_rows(self) -> int: ...

    @property
    def max_entries(self) -> int: ...

    @property
    def lines(self) -> int: ...

    @property
    def rows(self) -> int: ...

    @property
    def entries(self) -> int: ...

    @property
    def smallest(self) -> int: ...

    @property
    def largest(self) -> int: ...

    @overload
    def parse(self, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], base: int, strict: bool, n_threads: int) -> object: ...

    @overload
    def parse(self, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], base: int, strict: bool, n_threads: int) -> object:
        """
        Once. None, or the first fault: (line, column, what was expected, what was found).
        """

def find_crosses(n_rows: int, codes: Sequence[object], widths: Sequence[int], crosses: Sequence[Sequence[int]], min_count: int, n_threads: int) -> list[Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
    """
    For each cross the keys, ascending, of the combinations that at least min_count rows have.
    """

class TableRows:
    def __init__(self, n_rows: int, columns: Sequence[object], widths: Sequence[int], crosses: Sequence[Sequence[int]], keys: Sequence[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]]) -> None:
        """
        Columns are float64 numbers or int32 codes; widths count the features of each.
        """

    def take(self, n_rows: int, columns: Sequence[object]) -> None:
        """Other rows of the same columns."""

    @property
    def n_features(self) -> int: ...

    def count(self, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], single: bool, n_threads: int) -> None:
        """Where rows begin; single: entries will be float32."""

    @overload
    def fill(self, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> object: ...

    @overload
    def fill(self, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> object:
        """For each cross the rows whose combination has no feature."""

def cross_products(columns: Matrix, rows: Matrix, tilt: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, block_of: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_blocks: int, seeds: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]: ...

def blocks_touched(matrix: Matrix, block_of: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_blocks: int, n_threads: int) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]: ...

def weighted_squares(matrix: Matrix, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

def column_scales(matrix: Matrix, row_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, centred: bool, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

def column_products(matrix: Matrix, r: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

def combine_columns(matrix: Matrix, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

def combine_some_columns(matrix: Matrix, features: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """Σ over the features of values_k x_j."""

def some_column_products(matrix: Matrix, features: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], r: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """x_j·r of these features."""

def squared_norms(matrix: Matrix, features: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """‖x_j‖² of these features."""

def isa() -> str:
    """The instruction set the hot loops run on."""

def evaluate_loss(loss: int, what: str, y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], t: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], delta: float) -> list[float]: ...

def evaluate_penalty(what: str, l1: float, l2: float, lower: float, upper: float, a: float, b: float = 0.0, c: float = 0.0, d: float = 0.0) -> float: ...

def draw_subset(seed: int, m: int, k: int, repeats: int) -> list[list[int]]: ...
