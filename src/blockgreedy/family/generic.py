"""run(problem, select=…, propose=…, accept=…, update=…) → Solution: GenCD with rules of your own."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from operator import index
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from blockgreedy.base.deadline import Deadline
from blockgreedy.base.names import UPDATES, FamilyMethod, NamedScale, OnDivergence, Status, Update
from blockgreedy.base.threads import resolve_threads
from blockgreedy.base.validate import check_limits, may_call, one_of, seed_of, shown
from blockgreedy.family.acceptances import ACCEPTANCES, Accept
from blockgreedy.family.iterations import Iterations, Propose, Rules, UpdateRule
from blockgreedy.family.presets import PRESETS
from blockgreedy.family.returned import name_of
from blockgreedy.family.selections import SELECTIONS, Select
from blockgreedy.partitions.partition import Partition
from blockgreedy.problem.problem import Problem
from blockgreedy.solvers.family import FamilyEngine
from blockgreedy.solvers.family_arguments import FamilyArguments, family_limits, family_settings
from blockgreedy.solvers.recording import Recording
from blockgreedy.solvers.risk import warn_of_risk
from blockgreedy.solvers.run import Recorder, run_to_solution
from blockgreedy.solvers.solution import Solution
from blockgreedy.solvers.start import given_start
from blockgreedy.solvers.telemetry import Telemetry
from blockgreedy.solvers.trace import Record

Rule = TypeVar("Rule", bound=Callable[..., Any])


class GenericEngine(FamilyEngine):
    """The engine of the family, whose iterations are made by rules in Python."""

    def __init__(self, *given: Any, rules: Rules, recording: Recording, **settings: Any) -> None:
        self.rules, self._rows = rules, recording
        super().__init__(*given, trace_spectral_radius=False, **settings)

    def _make_core(self) -> Iterations:
        core = super()._make_core()
        return Iterations(core, self.problem, self.partition, self.options, self.model, self.rules, self._rows)

    @property
    def telemetry(self) -> Telemetry | None:
        return self.core.telemetry if self._rows.rows else None

    def _run(self, n_iter: int, max_seconds: float) -> bool:
        aside = self.core.seconds_aside
        interrupted = super()._run(n_iter, max_seconds)
        self.seconds -= self.core.seconds_aside - aside
        return interrupted

    def remark(self, status: Status) -> str:
        said = super().remark(status)
        if not said or not callable(self.rules.update):
            return said
        return f"the run {self._kind} with update={name_of(self.rules.update)}, which may raise the objective"


def run(
    problem: Problem,
    method: FamilyMethod = "block-greedy",
    *,
    select: str | Select | None = None,
    propose: Propose | None = None,
    accept: str | Accept | None = None,
    update: Update | UpdateRule = "joint",
    n_blocks: int | None = None,
    blocks_per_iter: int | None = None,
    partition: Partition | str | None = None,
    step_scale: float | NamedScale = 1.0,
    inner_tol: float = 1e-3,
    max_sweeps: int | None = None,
    tol: float = 1e-4,
    max_iter: int | None = None,
    max_seconds: float | None = None,
    n_threads: int | None = None,
    coef_init: ArrayLike | None = None,
    intercept_init: float | None = None,
    trace_iters: int | None = None,
    trace_seconds: float | None = None,
    callback: Callable[[Record], bool | None] | None = None,
    seed: int = 0,
    on_divergence: OnDivergence = "stop",
    telemetry: bool = True,
    objective_iters: int | None = None,
    spectral_radius_iters: int | None = None,
) -> Solution:
    """Minimise a problem by coordinate descent whose four steps are yours to choose: select, propose, accept, update.

    Each of them is a name, or a function of a ``State``. The functions only look: the weights are changed by what
    ``update`` says, after which predictions and derivatives follow.

    Parameters
    ----------
    problem : Problem
        What to minimise.
    method : {"block-greedy", "scd", "shotgun", "greedy", "thread-greedy"}, default "block-greedy"
        The algorithm to start from: how many blocks there are and are selected, and what ``select`` and ``accept``
        are if they are not given (``bg.family.PRESETS``).
    select : str or callable, optional
        ``select(state)`` returns blocks. Names: "uniform" (P of the B blocks), "all", "cyclic", "importance" (by
        curvature), "gauss-southwell-s", "gauss-southwell-r" and "gauss-southwell-q" (the P blocks with the best
        features).
    propose : callable, optional
        ``propose(state, features)`` returns the step of each of the features of the selected blocks: an array, a pair
        of arrays (steps and gains), or the ``Proposals`` that ``state.proposals(features, curvature)`` makes.
        Default: the minimum of the quadratic model with the curvature bound, over ``step_scale``.
    accept : str or callable, optional
        ``accept(state, proposals)`` returns some of ``proposals.features``. Names: "best" (of each block, by gain),
        "best-step", "best-subgradient", "all".
    update : {"joint", "sweep", "add", "line-search"} or callable, default "joint"
        ``update(state, accepted)`` returns the step of each of ``accepted.features``, which is added to its weight.
        "add" adds the proposed steps. The other names choose their own steps for the accepted features, as in
        ``solve``; "joint" and "sweep" never raise the objective, whatever was selected and accepted.
    n_blocks, blocks_per_iter : int, optional
        B and P. P is what the rules for ``select`` with a name return, and what a rule of your own finds in
        ``state.blocks_per_iter``; 10·⌈B/P⌉ iterations pass between checks of the gap, and ⌈B/P⌉ between fits of the
        intercept.
    partition : Partition or str, optional
        The blocks: "random" (default), "contiguous", "clustered", "capped", "balanced".
    step_scale, inner_tol, max_sweeps, on_divergence, tol, max_iter, max_seconds, n_threads
        As in ``solve``.
    coef_init, intercept_init, trace_iters, trace_seconds, callback
        As in ``solve``.
    seed : int, default 0
        Of random partitions and of ``state.draw``, whose numbers are those of ``solve``, and ``state.random``.
    telemetry : bool, default True
        Record what every iteration selects, accepts, moves and gains, as ``Solution.telemetry``.
    objective_iters, spectral_radius_iters : int, optional
        Also record the objective, and the spectral radius of the accepted columns, in every so many iterations. Their
        time is not counted.

    Returns
    -------
    Solution
        As of ``solve``, with the telemetry.

    Notes
    -----
    A ``RuleError`` is raised if a rule returns what no iteration can be made of; it names the rule and the value.

    Examples
    --------
    >>> import blockgreedy as bg
    >>> data = bg.data.text_like(300, 400, 10.0)
    >>> problem = bg.Problem(data, loss="logistic", alpha=0.001)
    >>> def heaviest(state):
    ...     gains = state.block_max(state.proposals().gain)
    ...     return gains.argsort()[-state.blocks_per_iter :]
    >>> bg.family.run(problem, select=heaviest, n_blocks=8, blocks_per_iter=2).status
    'converged'
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a blockgreedy.Problem, got {type(problem).__name__}")
    check_limits(tol, max_iter, max_seconds, trace_iters, trace_seconds)
    may_call("callback", callback)
    rules = _rules(method, select, propose, accept, update)
    recording = Recording.of(telemetry, objective_iters, spectral_radius_iters)
    threads = resolve_threads(problem.n_threads if n_threads is None else n_threads)
    start = given_start(problem, coef_init, intercept_init)
    if callable(rules.update) and max_sweeps is not None:
        own = f"update={name_of(rules.update)} finds its own steps"
        raise ValueError(f"max_sweeps={shown(max_sweeps)} has no use: {own}")
    settings: FamilyArguments = {
        "blocks_per_iter": blocks_per_iter,
        "update": "add" if callable(rules.update) else rules.update,
        "step_scale": _scale(step_scale, propose),
        "inner_tol": inner_tol,
        "max_sweeps": max_sweeps,
        "on_divergence": on_divergence,
    }
    seed = seed_of("seed", seed)
    given, options = family_settings(problem, method, n_blocks, partition, seed, settings, threads)
    if rules == _rules(method, None, None, None, "add"):
        warn_of_risk(problem, given, options, threads, stacklevel=2)
    began = time.perf_counter()
    limits = family_limits(problem, options, max_iter, Deadline(max_seconds, began), threads)
    engine = GenericEngine(
        *(problem, given, options),
        rules=rules,
        recording=recording,
        tol=float(tol),
        n_threads=threads,
        max_iter=limits.max_iter,
        deadline=limits.deadline,
        start=start,
        stop_on_divergence=on_divergence == "stop",
    )
    recorder = Recorder(engine, None if trace_iters is None else index(trace_iters), trace_seconds, callback)
    solution = run_to_solution(problem, recorder, limits, tol=float(tol), began=began, partition=given)
    return replace(solution, step_scale=options.step_scale, telemetry=engine.telemetry)


def _rules(method: Any, select: Any, propose: Any, accept: Any, update: Any) -> Rules:
    """Those that were asked for; where none was, the preset's."""
    preset = PRESETS[one_of("method", method, PRESETS)]
    may_call("propose", propose)
    return Rules(
        preset.select if select is None else _rule("select", select, SELECTIONS),
        propose,
        preset.accept if accept is None else _rule("accept", accept, ACCEPTANCES),
        update if callable(update) else one_of("update", update, UPDATES),
    )


def _rule(name: str, asked: Any, known: dict[str, Rule]) -> Rule:
    """A rule by its name, or the rule itself."""
    if callable(asked):
        found: Rule = asked
        return found
    if not isinstance(asked, str) or asked not in known:
        raise ValueError(
            f"{name}={shown(asked)} is not known; use a function or one of {', '.join(map(repr, known))}"
        )
    return known[asked]


def _scale(step_scale: Any, propose: Any) -> Any:
    if propose is not None and not (isinstance(step_scale, Real) and step_scale == 1):
        raise ValueError(
            f"step_scale={shown(step_scale)} is for steps along the curvature bound; "
            f"propose={name_of(propose)} makes its own"
        )
    return step_scale
