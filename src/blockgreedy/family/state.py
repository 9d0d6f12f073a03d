"""What a rule sees of a run: weights, predictions, derivatives, blocks. Nothing in it can be changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.base.random import Random
from blockgreedy.base.validate import whole
from blockgreedy.family.asked import curvatures, numbers, places
from blockgreedy.family.proposals import Array, Features, Proposals
from blockgreedy.problem.passes import combine_some_columns, some_column_products, weighted_squares

if TYPE_CHECKING:
    from blockgreedy.partitions.partition import Partition
    from blockgreedy.problem.core_problem import CoreProblem
    from blockgreedy.problem.problem import Problem
    from blockgreedy.solvers.options import FamilyOptions


class State:
    """Where a run stands: what select, propose, accept and update may look at.

    Arrays are read-only, and those that change from one iteration to the next (``w``, ``Xw``) are no copies: a rule
    that remembers one across iterations must copy it.

    Attributes
    ----------
    problem : Problem
        What is minimised.
    partition : Partition
        The blocks: ``block_of``, ``sizes``, ``members(b)``.
    n_blocks, blocks_per_iter : int
        B, and the P that ``run`` was called with.
    iteration : int
        Iterations done so far: 0 in the first one.
    random : numpy.random.Generator
        For rules of your own; the same numbers for the same ``seed``.
    w : ndarray of shape (n_features,)
        Weights.
    intercept : float
        Intercept, 0 if none is fitted.
    Xw : ndarray of shape (n_samples,)
        Predictions, with intercept and offset.
    derivs : ndarray of shape (n_samples,)
        Loss derivatives at them, times ω_i (1/n without sample weights): ``X.T @ derivs`` is the gradient.
    curvature : ndarray of shape (n_features,)
        Upper bound on the second derivative of the loss along each feature, β Σ_i ω_i x_ij².
    """

    def __init__(
        self, problem: Problem, partition: Partition, options: FamilyOptions, model: CoreProblem, core: Any
    ) -> None:
        self.problem, self.partition = problem, partition
        self.n_blocks, self.blocks_per_iter = options.n_blocks, options.blocks_per_iter
        self.random = np.random.default_rng(options.seed)
        self._draws = Random(options.seed)
        self._step_scale, self._core, self._model = options.step_scale, core, model
        self.curvature: Array = problem.loss.curvature_bound * self._mean_squares(None)
        self._bound = self.curvature / self._step_scale
        self._order, self._every = partition.order, np.arange(problem.n_features)
        sizes = partition.sizes
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        self._n_entries = problem.X.size
        X: Any = problem.X
        counts = np.diff(X.indptr) if hasattr(X, "indptr") else np.full(problem.n_features, problem.n_samples)
        self.block_nonzeros: NDArray[np.int64] = np.add.reduceat(counts[self._order], self._starts[:-1])
        for fixed in (self.curvature, self._order, self._every, self.block_nonzeros):
            fixed.flags.writeable = False
        self.forget()

    def forget(self) -> None:
        """Called by the loop after every change of the weights."""
        self.w: Array = self._core.coef
        self.Xw: Array = self._core.Xw
        self._derivs: Array | None = None
        self._gradient: Array | None = None
        self._proposals: Proposals | None = None

    @property
    def iteration(self) -> int:
        return int(self._core.n_iter)

    @property
    def intercept(self) -> float:
        return float(self._core.intercept)

    @property
    def derivs(self) -> Array:
        if self._derivs is None:
            raw = self._core.derivs
            self._derivs = raw / self.problem.n_samples if self.problem.row_weights is None else raw
            self._derivs.flags.writeable = False
        return self._derivs

    def draw(self, count: int) -> list[int]:
        """``count`` of the blocks, each as likely as any other, ascending: the same draws as those of ``solve``."""
        return self._draws.draw_subset(self.n_blocks, whole("count", count, 0, self.n_blocks))

    def features_of(self, blocks: Any) -> Features:
        """The features of some blocks, block after block."""
        chosen = places("blocks", blocks, self.n_blocks)
        if len(chosen) == self.n_blocks and np.array_equal(chosen, np.arange(self.n_blocks)):
            return self._order
        parts = [self._order[self._starts[b] : self._starts[b + 1]] for b in chosen]
        if len(parts) == 1:
            return parts[0]
        found = np.concatenate([np.zeros(0, dtype=np.intp), *parts])
        found.flags.writeable = False
        return found

    def gradient(self, features: Any = None) -> Array:
        """The derivative of the loss along all features, or along some."""
        return self._gradient_of(None if features is None else self._places(features))

    def _gradient_of(self, features: Features | None) -> Array:
        if self._gradient is None and features is not None:
            blocks_worth = len(features) * self._n_entries // max(self.problem.n_features, 1)
            if self._model.n_threads * blocks_worth < self._n_entries:
                return some_column_products(self._model.matrix, features, self.derivs)
        if self._gradient is None:
            self._gradient = np.empty(self.problem.n_features)
            self._model.core.column_products(self.derivs, self._gradient)  # by threads that wait for the next time
            self._gradient.flags.writeable = False
        return self._gradient if features is None else self._gradient[features]

    def second_derivative(self, features: Any = None) -> Array:
        """The true second derivative of the loss along all features, or along some; ``curvature`` bounds it."""
        chosen = None if features is None else self._places(features)
        return self._mean_squares(chosen, self.problem.loss.curvature(self.problem.y, self.Xw))

    def proposals(self, features: Any = None, curvature: Any = None) -> Proposals:
        """The steps that minimise the quadratic model along each of all features, or of some.

        ``curvature``: that of the model, one number of at least 0 for each feature, by default the bound
        ``state.curvature``, over the step scale of the run.
        """
        if features is None and curvature is None:
            if self._proposals is None:
                self._proposals = self._made(self._every, self._bound)
            return self._proposals
        chosen = self._every if features is None else self._places(features)
        if curvature is None and self._proposals is not None:  # what a rule has computed is not computed again
            return self._proposals.at(chosen)
        if curvature is None:
            return self._made(chosen, self._bound[chosen])
        return self._made(chosen, curvatures(curvature, len(chosen), self.is_finite))

    def is_finite(self) -> bool:
        """Whether the run still is; of one that blew up no rule can make steps."""
        return bool(np.all(np.isfinite(self.derivs)))

    def block_max(self, values: Array) -> Array:
        """The largest of the features' values in each block."""
        return np.asarray(np.maximum.reduceat(self._in_block_order(values), self._starts[:-1]))

    def block_sum(self, values: Array) -> Array:
        """The sum of the features' values in each block."""
        return np.asarray(np.add.reduceat(self._in_block_order(values), self._starts[:-1]))

    def _in_block_order(self, values: Any) -> Any:
        found = np.asarray(values)
        if found.shape != self._order.shape:
            n_features = len(self._order)
            raise ValueError(f"values must be one for each of the {n_features} features, got shape {found.shape}")
        return found[self._order]

    def objective(self) -> float:
        """The objective here."""
        return float(self._core.objective())

    def objective_after(self, features: Any, steps: Any) -> float:
        """The objective if these steps were added to the weights of these features, one after the other."""
        chosen = self._places(features)
        moved = numbers("steps", steps, len(chosen))
        w = self.w.copy()
        np.add.at(w, chosen, moved)
        predictions = self.Xw + combine_some_columns(self._model.matrix, chosen, moved)
        problem = self.problem
        return problem.mean(problem.loss.value(problem.y, predictions)) + problem.penalty.value(w)

    def columns(self, features: Any) -> Any:
        """The columns of some features: a CSC matrix, or an array if X is one."""
        return self._columns_of(self._places(features))

    def _places(self, features: Any) -> Features:
        return places("features", features, len(self._order))

    def _columns_of(self, features: Features) -> Any:
        return self.problem.X[:, features]

    def _made(self, features: Features, curvature: Array) -> Proposals:
        problem = self.problem
        everything = features is self._every
        penalty = problem.penalty if everything else problem.penalty.at(features)
        return Proposals(
            features,
            self.partition.block_of[features],
            self.w[features],
            self._gradient_of(None if everything else features),
            curvature,
            penalty,
        )

    def _mean_squares(self, features: Features | None, factors: Array | None = None) -> Array:
        """Σ_i ω_i factors_i x_ij² of all features, or of some."""
        problem = self.problem
        weights = problem.weigh(np.ones(problem.n_samples) if factors is None else factors)
        if features is None:
            return weighted_squares(self._model.matrix, weights, self._model.n_threads)
        columns = self._columns_of(features)
        squares = columns.multiply(columns) if hasattr(columns, "multiply") else columns * columns
        return np.asarray(squares.T @ weights, dtype=np.float64)
