"""The iterations of GenCD: select → propose → accept → update, by rules in Python, on the core's weights."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blockgreedy.family.acceptances import Accept
from blockgreedy.family.proposals import Array, Features, Proposals
from blockgreedy.family.returned import checked_blocks, checked_features, checked_proposals, checked_steps
from blockgreedy.family.selections import Select
from blockgreedy.family.state import State
from blockgreedy.partitions.spectrum import spectral_radius
from blockgreedy.solvers.telemetry import Telemetry

if TYPE_CHECKING:
    from blockgreedy.base.names import Update
    from blockgreedy.partitions.partition import Partition
    from blockgreedy.problem.core_problem import CoreProblem
    from blockgreedy.problem.problem import Problem
    from blockgreedy.solvers.options import FamilyOptions

Propose = Callable[[State, Features], "Proposals | ArrayLike | tuple[ArrayLike, ArrayLike]"]
UpdateRule = Callable[[State, Proposals], ArrayLike]


@dataclass(frozen=True)
class Rules:
    """What an iteration is made of. ``propose=None``: steps along the curvature bound."""

    select: Select
    propose: Propose | None
    accept: Accept
    update: Update | UpdateRule


@dataclass(frozen=True)
class Recording:
    """What goes into the telemetry, and in every how many iterations (0: never)."""

    rows: bool
    objective: int
    spectral_radius: int


class Iterations:
    """In ``FamilyEngine`` it stands for the core's ``BlockGreedy``, which holds the weights: this makes the steps."""

    def __init__(
        self,
        core: Any,
        problem: Problem,
        partition: Partition,
        options: FamilyOptions,
        model: CoreProblem,
        rules: Rules,
        recording: Recording,
    ) -> None:
        self._core, self.rules, self.recording, self.telemetry = core, rules, recording, Telemetry()
        self.state = State(problem, partition, options, model, core)
        self.nonzeros_touched = self.critical_nonzeros = 0
        self.accepted: list[int] = []
        self.seconds_aside = 0.0  # spent on the objective and the spectral radius of the telemetry
        self._place_of = np.zeros(problem.n_features, dtype=np.intp)
        self._placed: Features | None = None  # the features whose places it holds

    def __getattr__(self, name: str) -> Any:
        """What the core's object answers by itself: weights, predictions, objective."""
        return getattr(self.__dict__["_core"], name)

    def set_weights(self, *weights: Any) -> None:
        self._core.set_weights(*weights)
        self.state.forget()

    def set_sparse_weights(self, *weights: Any) -> None:
        self._core.set_sparse_weights(*weights)
        self.state.forget()

    def fit_intercept(self) -> None:
        self._core.fit_intercept()
        self.state.forget()

    def run(self, n_iter: int, max_seconds: float) -> tuple[int, bool]:
        """Up to n_iter iterations, and whether Ctrl-C was pressed: rules only look, so it can come at any time."""
        deadline, first = time.perf_counter() + max_seconds, self._core.n_iter
        try:
            while self._core.n_iter - first < n_iter:
                self._iterate()
                if time.perf_counter() >= deadline:
                    break
        except KeyboardInterrupt:
            self.state.forget()
            return self._core.n_iter - first, True
        return self._core.n_iter - first, False

    def _iterate(self) -> None:
        state, rules = self.state, self.rules
        blocks = checked_blocks(rules.select, rules.select(state), state.n_blocks)
        proposals = self._propose(state.features_of(blocks))
        chosen = rules.accept(state, proposals)
        accepted = proposals.at(checked_features(rules.accept, chosen, proposals, self._places(proposals.features)))
        before, gains = accepted.w, accepted.gain if self.recording.rows else None
        self._update(accepted)
        state.forget()
        touched = state.block_nonzeros[blocks]
        self.nonzeros_touched += int(touched.sum())
        self.critical_nonzeros += int(touched.max(initial=0))
        self.accepted = accepted.features.tolist()
        if gains is not None:
            self._record(blocks, accepted.features, state.w[accepted.features] - before, gains)

    def _propose(self, features: Features) -> Proposals:
        state, rule = self.state, self.rules.propose
        model = state.proposals(features)
        return model if rule is None else checked_proposals(rule, rule(state, features), model, self._is_finite)

    def _update(self, accepted: Proposals) -> None:
        """By the core: it keeps predictions, derivatives and intercept current, and has the rules with a name."""
        update, features = self.rules.update, accepted.features.tolist()
        if callable(update):
            value = update(self.state, accepted)
            self._core.move_to(features, checked_steps(update, value, accepted, self._is_finite))
        elif update == "add":
            self._core.move_to(features, np.ascontiguousarray(accepted.target))
        else:
            self._core.update_with(features)

    def _places(self, features: Features) -> NDArray[np.intp]:
        """Of each feature its place among these."""
        if self._placed is not features:
            self._place_of[features] = np.arange(len(features))
            self._placed = features
        return self._place_of

    def _is_finite(self) -> bool:
        return bool(np.all(np.isfinite(self.state.derivs)))

    def _record(self, blocks: NDArray[np.intp], accepted: Features, steps: Array, gains: Array) -> None:
        began, number, every = time.perf_counter(), self._core.n_iter, self.recording
        wants_objective = every.objective and number % every.objective == 0
        wants_radius = every.spectral_radius and number % every.spectral_radius == 0
        objective = self._core.objective() if wants_objective else np.nan
        radius = spectral_radius(self.state.problem.X, accepted) if wants_radius else np.nan
        if wants_objective or wants_radius:
            self.seconds_aside += time.perf_counter() - began
        self.telemetry.append(
            number,
            selected=blocks,
            accepted=accepted,
            steps=steps,
            gains=gains,
            objective=objective,
            spectral_radius=radius,
        )
