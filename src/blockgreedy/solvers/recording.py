"""What goes into the telemetry of a run, and how it comes there from the core."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from blockgreedy.base.validate import flag, shown, whole
from blockgreedy.solvers.interrupt import Deferred
from blockgreedy.solvers.step_scale import radius_of
from blockgreedy.solvers.telemetry import Telemetry

if TYPE_CHECKING:
    from blockgreedy.problem.problem import Problem


@dataclass(frozen=True)
class Recording:
    """What goes into the telemetry, and in every how many iterations (0: never)."""

    rows: bool = False
    objective: int = 0
    spectral_radius: int = 0

    @classmethod
    def of(cls, telemetry: Any, objective_iters: Any, spectral_radius_iters: Any) -> Recording:
        """What was asked for, checked."""
        wanted = {"objective_iters": objective_iters, "spectral_radius_iters": spectral_radius_iters}
        rows, every = flag("telemetry", telemetry), {}
        for name, value in wanted.items():
            every[name] = 0 if value is None else whole(name, value, 1)
            if every[name] and not rows:
                raise ValueError(f"{name}={shown(value)} needs telemetry=True, which keeps it")
        return cls(rows, *every.values())

    def wants_objective(self, iteration: int) -> bool:
        return self.objective > 0 and iteration % self.objective == 0

    def wants_radius(self, iteration: int) -> bool:
        return self.spectral_radius > 0 and iteration % self.spectral_radius == 0

    def until_due(self, iteration: int) -> float:
        """How many iterations may be made before something has to be computed."""
        strides = [every for every in (self.objective, self.spectral_radius) if every > 0]
        return min((every - iteration % every for every in strides), default=float("inf"))


NOTHING = Recording()


class CoreTelemetry:
    """The telemetry of a run whose iterations the core makes: it keeps them until they are fetched."""

    def __init__(self, core: Any, problem: Problem, recording: Recording) -> None:
        self.recording, self.telemetry = recording, Telemetry()
        self._core, self._problem = core, problem
        core.record()

    def fetch(self) -> None:
        """Called after iterations, before the weights change otherwise."""
        with Deferred() as waiting:  # Ctrl-C must not lose rows on their way
            self._fetch()
        if waiting.pressed:
            signal.raise_signal(signal.SIGINT)

    def _fetch(self) -> None:
        rows, selected, selected_counts, accepted, accepted_counts, steps, gains = self._core.take_record()
        if len(rows) == 0:
            return
        objective, radius = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
        if self.recording.wants_objective(int(rows[-1])):
            objective[-1] = self._core.objective()
        if self.recording.wants_radius(int(rows[-1])):
            radius[-1] = radius_of(self._problem, self._core.accepted)
        self.telemetry.extend(
            rows,
            selected=selected,
            selected_counts=selected_counts,
            accepted=accepted,
            accepted_counts=accepted_counts,
            steps=steps,
            gains=gains,
            objective=objective,
            spectral_radius=radius,
        )
