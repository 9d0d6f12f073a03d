"""The iterations of GenCD: select → propose → accept → update, by rules in Python, on the core's weights."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blockgreedy.base.deadline import NEVER, Deadline
from blockgreedy.family.acceptances import Accept
from blockgreedy.family.proposals import Array, Features, Proposals
from blockgreedy.family.returned import checked_blocks, checked_features, checked_proposals, checked_steps
from blockgreedy.family.selections import Select
from blockgreedy.family.state import State
from blockgreedy.solvers.interrupt import Deferred
from blockgreedy.solvers.recording import Recording
from blockgreedy.solvers.step_scale import radius_of
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
        self._deadline = NEVER
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

    def fit_intercept(self, seconds: float = float("inf")) -> None:
        self._core.fit_intercept(seconds)
        self.state.forget()

    def run(self, n_iter: int, max_seconds: float, seconds: float = float("inf")) -> tuple[int, bool]:
        """Up to n_iter iterations, and whether Ctrl-C was pressed: rules only look, so it can come at any time.

        No iteration begins after ``max_seconds``; after ``seconds`` updates hurry to an end.
        """
        stretch, first, self._deadline = Deadline(max_seconds), self._core.n_iter, Deadline(seconds)
        try:
            while self._core.n_iter - first < n_iter:
                self._iterate()
                if stretch.has_passed():
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
        targets = self._targets(accepted)
        with Deferred() as waiting:  # Ctrl-C must not part the weights from what is known of them
            self._update(accepted.features.tolist(), targets)
            state.forget()
            touched = state.block_nonzeros[blocks]
            self.nonzeros_touched += int(touched.sum())
            self.critical_nonzeros += int(touched.max(initial=0))
            self.accepted = accepted.features.tolist()
            if gains is not None:
                self._record(blocks, accepted.features, state.w[accepted.features] - before, gains)
        if waiting.pressed:
            signal.raise_signal(signal.SIGINT)

    def _propose(self, features: Features) -> Proposals:
        state, rule = self.state, self.rules.propose
        model = state.proposals(features)
        return model if rule is None else checked_proposals(rule, rule(state, features), model, state.is_finite)

    def _targets(self, accepted: Proposals) -> Array | None:
        """The weights that the accepted features move to, where the core does not choose them."""
        update = self.rules.update
        if callable(update):
            return checked_steps(update, update(self.state, accepted), accepted, self.state.is_finite)
        return np.ascontiguousarray(accepted.target) if update == "add" else None

    def _update(self, features: list[int], targets: Array | None) -> None:
        """By the core: it keeps predictions, derivatives and intercept current, and has the rules with a name."""
        if targets is None:
            self._core.update_with(features, self._deadline.seconds_left())
        else:
            self._core.move_to(features, targets, self._deadline.seconds_left())

    def _places(self, features: Features) -> NDArray[np.intp]:
        """Of each feature its place among these."""
        if self._placed is not features:
            self._place_of[features] = np.arange(len(features))
            self._placed = features
        return self._place_of

    def _record(self, blocks: NDArray[np.intp], accepted: Features, steps: Array, gains: Array) -> None:
        began, number = time.perf_counter(), self._core.n_iter
        wants_objective = self.recording.wants_objective(number)
        wants_radius = self.recording.wants_radius(number)
        objective = self._core.objective() if wants_objective else np.nan
        radius = radius_of(self.state.problem, accepted.tolist()) if wants_radius else np.nan
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
