"""The engine of the default solver: the core's working-set Newton method, its start, its guard and its renewals."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.cpu import working_set
from blockgreedy.backends.engine import Counters, Ended, EngineBase, Point
from blockgreedy.base.deadline import NEVER, Deadline
from blockgreedy.problem.certificate import ROUNDING
from blockgreedy.problem.core_problem import CoreProblem
from blockgreedy.solvers.guard import Guarded, guard
from blockgreedy.solvers.polish import polish

if TYPE_CHECKING:
    from blockgreedy import _core
    from blockgreedy.base.names import Status
    from blockgreedy.partitions.partition import Partition
    from blockgreedy.problem.null_model import NullModel
    from blockgreedy.problem.problem import Problem
    from blockgreedy.problem.some_columns import SomeColumns

Array = NDArray[np.float64]

MAX_ITER = 1000
_SMALL = 20_000  # entries: no job is worth sharing, and starting a thread takes as long as a third of the fit
_MAX_RENEWALS = 3  # after that, what rounding leaves is what there is


class WorkingSetEngine(EngineBase):
    """The default solver on a problem; along a path, on the same problem at one alpha after the other."""

    def __init__(
        self,
        problem: Problem,
        *,
        tol: float,
        n_threads: int,
        null: NullModel | None,
        start: tuple[Array, float] | None = None,
        n_blocks: int = 0,
        partition: Partition | None = None,
        least_alpha: float | None = None,
        began: float | None = None,
        deadline: Deadline = NEVER,
    ) -> None:
        """``null`` may be None where it is the model of all zeros. ``least_alpha``: the last of a path.

        ``began``: when the run did, in seconds of time.perf_counter; the null model is part of it.
        """
        self.problem, self.null, self.given, self._deadline = problem, null, start, deadline
        self._began = time.perf_counter() if began is None else began
        n_threads = 1 if problem.design.size <= _SMALL else n_threads
        self._made_of = n_threads, n_blocks, partition, tol, least_alpha
        self._n_renewals = 0
        self._earlier = np.zeros(2, dtype=np.int64)  # iterations and nonzeros touched before columns were added
        self._earlier_seconds = np.zeros(0)
        self._guarded: tuple[tuple[str, int, int], Guarded] | None = None
        self._make()

    def _make(self) -> None:
        self.scaling = self.problem.scaling
        self.some = self._choose_columns()
        self._make_core()
        self.coef = np.zeros(self.problem.n_features)  # memory is only touched where a weight is set
        self.here = self.scaling  # of the problem at the current alpha

    def _make_core(self) -> None:
        n_threads, n_blocks, partition, tol, least_alpha = self._made_of
        f_null, floor = -1.0, 0.0
        if self.null is not None:
            null = self.scaling.null_in(self.null)
            f_null, floor, tol = null.objective, null.floor, null.tol(tol)
        least = float("inf") if least_alpha is None else self.scaling.alpha_in(least_alpha)
        self._proven_for_all: float | None = None  # the dual value whose point keeps the constraints of all columns
        columns = None if self.some is None else self.some.columns
        self.model = CoreProblem(self.scaling.inner, n_threads, columns)
        self.core: _core.WorkingSet = working_set(
            self.model, n_blocks=n_blocks, partition=partition, tol=tol, f_null=f_null, floor=floor, least_alpha=least
        )

    def _choose_columns(self) -> SomeColumns | None:
        """None: all of them, as a path needs them, and whoever solves several problems on one matrix."""
        inner = self.scaling.inner
        if self._is_on_a_path or self.problem.shares_design or not inner.design.is_of_rows:
            return None
        started = np.zeros(0, dtype=np.intp) if self.given is None else np.flatnonzero(self.given[0])
        if self.null is None:
            theta = inner.dual_at(np.zeros(inner.n_samples) if inner.offset is None else inner.offset)
        else:
            theta = self.scaling.null_in(self.null).dual
        return inner.design.near(inner, theta, started, self._made_of[0])

    @property
    def f_null(self) -> float:
        return self.scaling.value_out(self.core.f_null)

    def is_enough(self, share: float = 1.0) -> bool:
        return self._is_proven_for_all and self._core_is_at(share)

    def _core_is_at(self, share: float) -> bool:
        return bool(self.core.objective - self.core.dual_value <= share * self.core.enough)

    @property
    def _is_proven_for_all(self) -> bool:
        """Whether the dual point is known to keep the constraints of the columns that the core does not have."""
        return self.some is None or self.core.dual_value == self._proven_for_all

    @property
    def n_iter(self) -> int:
        return int(self._earlier[0]) + self.core.n_iter

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    @property
    def objective(self) -> float:
        return self.scaling.value_out(self.core.objective)

    @property
    def dual_value(self) -> float:
        return self.scaling.value_out(self._known_dual_value)

    @property
    def gap(self) -> float:
        return self.scaling.value_out(self.core.objective - self._known_dual_value)

    @property
    def _known_dual_value(self) -> float:
        return self.core.dual_value if self._is_proven_for_all else self.scaling.inner.lowest  # that of θ = 0

    def start(self) -> bool:
        """From the weights given, or from the null model, which is also taken where those are worse."""
        interrupted = self._start_somewhere()
        if not np.isfinite(self.objective):
            _ = self.problem.null_model  # says which values overflow
            raise ValueError("the objective is not finite where the solve starts; rescale X, y or the start")
        if not interrupted and self._core_is_at(1.0):
            self._look_at_other_columns()
        return interrupted

    def _start_somewhere(self) -> bool:
        for at in (self.given, None):
            if at is not None and not np.any(at[0]) and at[1] == 0:
                continue
            interrupted = self._start_at(at)
            if self.core.out_of_range:
                self._rescale()
                interrupted = self._start_at(at)
            if at is not None and self.problem.loss.has_plateau and not interrupted:
                interrupted = self._back_to_the_edge(at)
            if interrupted or at is None or self.core.objective <= self.core.f_null:
                return interrupted
            self.coef[:] = 0
        return False

    def _rescale(self) -> None:
        """Once; there are no other units to try."""
        if self.problem.column_units.exponents is not None:
            raise ValueError("X has columns whose values span more than float64 can scale; drop or transform them")
        self.problem.rescale_columns()
        self._make()

    def _back_to_the_edge(self, at: tuple[Array, float]) -> bool:
        """Halves a start as long as that lowers the objective; True on Ctrl-C.

        Deep inside a plateau of the loss a quadratic model knows no scale, and steps would stay tiny.
        """
        while not self._deadline.has_passed():
            before, half = self.core.objective, (at[0] / 2, at[1] / 2)
            if self._start_at(half):
                return True
            if not self.core.objective < before:
                return self._start_at(at)
            at = half
        return False

    def _start_at(self, at: tuple[Array, float] | None) -> bool:
        if at is None:
            if self.null is None:
                return self._core_starts(0.0)
            null = self.scaling.null_in(self.null)
            self.coef[null.features] = null.coef
            return self._core_starts(null.intercept)
        self.coef[:] = self.scaling.coef_in(at[0])
        return self._core_starts(self.scaling.intercept_in(at[1], slice(None), at[0]))

    def _core_starts(self, intercept: float) -> bool:
        """True if Ctrl-C was pressed."""
        return self.core.start(self.coef, intercept, self._deadline.seconds_left())

    def step(self, n_iter: int, seconds: float) -> Ended:
        """One outer iteration, which is not left half done."""
        improved, interrupted = self.core.step(self._deadline.seconds_left())
        if interrupted:
            return "interrupted"
        if not improved:
            theta = self.scaling.inner.dual_at(np.array(self.core.predictions))
            return "" if self._adds_columns(theta) else "stalled"
        if self._core_is_at(1.0):
            self._look_at_other_columns()
        return ""

    def _look_at_other_columns(self) -> None:
        """Where the core has a proof for its columns: goes on until the others have no objection, or it lacks one."""
        while not self._is_proven_for_all and self._core_is_at(1.0) and not self._deadline.has_passed():
            if not self._adds_columns(self.core.dual):
                self._proven_for_all = self.core.dual_value

    def _adds_columns(self, theta: Array) -> bool:
        """Whether columns were missing at θ; if so, a core that has them goes on from here."""
        if self.some is None or not self.some.add_missing(theta):
            return False
        self._earlier += self.core.n_iter, self.core.nonzeros_touched
        self._earlier_seconds = self._all_seconds()
        intercept = self.core.intercept
        del self.core, self.model  # and their columns: there need not be room for both
        if not self.some.are_few:
            self._earlier[1] += self.some.n_touched  # passes over the rows count as well
            self.some = None
        self._make_core()
        if self._core_starts(intercept):
            raise KeyboardInterrupt
        return True

    def move_to(self, problem: Problem) -> bool:
        self.here = self.scaling if problem is self.problem else self.scaling.with_alpha(problem)
        self._n_renewals, self._guarded = 0, None
        alpha = self.scaling.alpha_in(problem.alpha)
        return self.core.lower_alpha(alpha, problem.l2, self._deadline.seconds_left())

    def certify(self) -> None:
        self.core.certify()

    @property
    def _is_on_a_path(self) -> bool:
        return self._made_of[-1] is not None

    def renew(self, status: Status) -> bool:
        """Whether the solve is to go on from weights whose predictions were computed anew.

        Predictions that were carried along from a far start, or a quadratic model in float32, may have gone astray;
        the guard shows it. Small problems are then solved in float64 first, but for the alphas of a path, where the
        next one starts from weights that are nearly as good.
        """
        guarded = self._guard(status, goes_on=True)
        point = guarded.point
        if point.is_proven or self._n_renewals == _MAX_RENEWALS:
            return False
        before, b = self.core.objective, guarded.inner_intercept
        verified, _, _ = self.core.verify(point.features, self.coef[point.features], b)
        drifted = abs(before - verified) > ROUNDING * before
        better = None
        if status != "converged" and not self._is_on_a_path:
            better = polish(self.scaling.inner, self.coef, b, self._deadline)
        if better is not None and (
            self.scaling.inner.objective(*better) >= before * (1 - ROUNDING) or not self._has_columns_of(better[0])
        ):
            better = None
        # a point of a path that the guard does not confirm is solved again once, whatever the cause
        first_on_path = self._is_on_a_path and status == "converged" and self._n_renewals == 0
        if better is None and not drifted and not first_on_path:
            return False
        self._n_renewals += 1
        if better is not None:
            self.coef[:], b = better
        if self._core_starts(b):
            raise KeyboardInterrupt
        return True

    def _guard(self, status: Status, goes_on: bool = False) -> Guarded:
        """The guard's verdict on where the core stands, kept until it moves on.

        Where a limit ended the run, nobody repairs dual points; unless reaching it is a stall by another name, and
        the run ``goes_on`` if there is a way.
        """
        key = (status, self.n_iter, self._n_renewals)
        if self._guarded is None or self._guarded[0] != key:
            repairs = goes_on or status not in ("max_iter", "max_seconds")
            found = self._evaluated(status not in ("converged", "interrupted"), repairs)
            if status == "converged" and not found.point.is_proven:
                found = self._evaluated(True, repairs)
            self._guarded = key, found
        return self._guarded[1]

    def _evaluated(self, thorough: bool, repairs: bool) -> Guarded:
        # What is returned is the array of weights: whatever is in it counts, be it in the core's support or not.
        # A path starts at the null model, whose weights all are.
        on_path = self._is_on_a_path
        features = self.core.support() if on_path else np.flatnonzero(self.coef).astype(np.int32)
        model = self._whole_model if thorough else None
        return guard(
            *(self.here, self.core, self.coef, features, model, self._is_dual_proven), repairs, self._deadline
        )

    def _whole_model(self) -> CoreProblem:
        """The problem here with all columns, for dual points that the core knows nothing of."""
        return self.model if self.some is None else CoreProblem(self.here.inner, self._made_of[0])

    def _is_dual_proven(self) -> bool:
        """Whether the core's dual point keeps the constraints of all columns; looks if that is not known."""
        if not self._is_proven_for_all and self.some is not None and not self.some.misses(self.core.dual):
            self._proven_for_all = self.core.dual_value
        return self._is_proven_for_all

    def _has_columns_of(self, coef: Array) -> bool:
        return self.some is None or self.some.has(np.flatnonzero(coef))

    def point(self, status: Status, with_dual: bool = True) -> Point:
        found, dual = self._guard(status), None
        if with_dual:
            dual = found.other_dual
            if dual is None:  # a path goes on with its own
                dual = np.array(self.core.dual) if self._is_on_a_path else self.core.release_dual()
            dual = self.here.dual_out(dual)
        return replace(found.point, dual=dual)

    def support(self) -> NDArray[np.int32]:
        return self.core.support()

    def counters(self) -> Counters:
        by_rows = 0 if self.some is None else self.some.n_touched
        touched = int(self._earlier[1]) + by_rows + self.core.nonzeros_touched
        return Counters(self.core.n_support, touched, touched, self.core.n_blocks)

    def phase_seconds(self) -> dict[str, float]:
        return dict(zip(self.core.phases, self._all_seconds().tolist(), strict=True))

    def _all_seconds(self) -> Array:
        seconds = np.array(self.core.seconds)
        return seconds + self._earlier_seconds if len(self._earlier_seconds) else seconds
