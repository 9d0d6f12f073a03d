"""Does the planned runs, one after the other, and keeps what they found."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, cast

import numpy as np

from blockgreedy.base.names import GreedyRule, ScanMode, Update
from blockgreedy.experiments import paper, plan
from blockgreedy.experiments.plan import Job
from blockgreedy.experiments.results import Blocks, Reference, Results, Run, Setting
from blockgreedy.experiments.sets import SetFacts, Source, alpha_text, prepare
from blockgreedy.partitions.partition import Partition, make_partition
from blockgreedy.problem.problem import Problem
from blockgreedy.solvers.options import FamilyOptions
from blockgreedy.solvers.solve import solve
from blockgreedy.solvers.trace import Record, Trace

_REFERENCE_TOL = 1e-7
_MOST_RECORDS = 400  # kept of a run
_NO_LIMIT = 10**12  # iterations
_BLOWN = 10.0  # times f(0): a run beyond has shown what there is to see, and iterations become slow
_STRIDE = 3  # iterations between records: odd, since a run that jumps to and fro looks still at every second one


@dataclass
class Experiments:
    """``load`` the sets, then ``do`` each job of the plan; ``results`` grows on the way."""

    sources: list[Source]
    raw: bool
    seed: int
    n_threads: int
    results: Results = field(default_factory=Results)
    problems: dict[str, Problem] = field(default_factory=dict)
    partitions: dict[tuple[str, str, int], tuple[Partition, float]] = field(default_factory=dict)
    _ordered: tuple[tuple[str, str], Problem, Partition] | None = field(default=None, repr=False)

    def load(self, tell: Callable[[str], None]) -> None:
        """Reads every set and makes its blocks. One that cannot be read is left out, and the page says so."""
        for source in self.sources:
            tell(source.name)
            began = time.perf_counter()
            try:
                problem, facts = prepare(source, raw=self.raw, seed=self.seed, n_threads=self.n_threads)
            except (ValueError, OSError) as error:
                self.results.remarks.append(f"{source.name} is left out: {error}")
                continue
            self.problems[source.name] = problem
            self.results.sets.append(replace(facts, read_seconds=time.perf_counter() - began))
            for kind in plan.kinds():
                partition, seconds = self.blocks_of(source.name, kind, paper.N_BLOCKS)
                self.results.blocks.append(
                    Blocks(
                        source.name,
                        kind,
                        seconds,
                        np.asarray(partition.nonzeros(problem.X), dtype=np.float64),
                        partition.mass(problem.X, problem.y),
                    )
                )

    def blocks_of(self, set_name: str, kind: str, n_blocks: int) -> tuple[Partition, float]:
        """The partition and the seconds it took; made once. n_blocks 0: every feature a block."""
        key = (set_name, kind, n_blocks)
        if key not in self.partitions:
            problem = self.problems[set_name]
            total = min(n_blocks, problem.n_features) or problem.n_features
            kind = "contiguous" if total in (1, problem.n_features) else kind  # the same blocks, for nothing
            began = time.perf_counter()
            made = make_partition(problem, n_blocks=total, kind=kind, seed=self.seed, n_threads=self.n_threads)
            self.partitions[key] = made, time.perf_counter() - began
        return self.partitions[key]

    def do(self, job: Job) -> None:
        """Runs the job. KeyboardInterrupt passes through, also when it hit inside a solve."""
        if job.set_name not in self.problems:
            return
        widest = max(job.setting.n_blocks, job.setting.blocks_per_iter)
        if job.part == plan.DESIGN and widest >= self.problems[job.set_name].n_features:
            return  # p blocks are a column of the grid anyway
        began = time.perf_counter()
        facts = self.results.facts(job.set_name)
        problem = self.problems[job.set_name].with_alpha(facts.alphas[job.alpha_index])
        if job.part == plan.REFERENCE:
            self._reference(job, problem)
        elif job.part == plan.TIMING:
            self._timing(job, problem, facts)
        else:
            self.results.runs.append(self._family(job, problem))
        spent = self.results.part_seconds
        took = time.perf_counter() - began
        spent[job.part] = spent.get(job.part, 0.0) + took
        self.results.log[-1]["seconds"] = round(took, 3)
        self._remark(job)

    def _remark(self, job: Job) -> None:
        """What the page must say of the run that was just made, for the verdicts cannot."""
        last, remarks = self.results.log[-1], self.results.remarks
        said = f"{job.set_name}, {job.part}: runs made no iteration within their time and count as not made."
        if last["iterations"] == 0 and said not in remarks:
            remarks.append(said)
        if job.part == plan.REFERENCE and last["status"] != "converged":
            where, gap = f"{job.set_name} at {alpha_text(last['alpha'])}", self.results.references[-1].relative_gap
            remarks.append(
                f"{where}: the optimum is proven to a relative gap of {gap:.1e} only; f* is the best objective that "
                "any run found."
            )

    def _reference(self, job: Job, problem: Problem) -> None:
        solution = solve(problem, tol=_REFERENCE_TOL, max_seconds=job.seconds, n_threads=self.n_threads)
        if solution.status == "interrupted":
            raise KeyboardInterrupt
        gap = solution.gap / problem.null_model.objective
        self.results.references.append(
            Reference(job.set_name, problem.alpha, solution.objective, gap, solution.status)
        )
        run = Run(plan.FOLLOW_UP, job.set_name, problem.alpha, job.setting, solution.trace, solution.status)
        self.results.runs.append(run)
        limits = {"tol": _REFERENCE_TOL, "max_iter": None}
        self._log(job, run, {"method": "auto", "n_threads": self.n_threads, **limits})

    def _timing(self, job: Job, problem: Problem, facts: SetFacts) -> None:
        """What an iteration costs per scanned nonzero on one thread: the unit of the 32-thread models."""
        last = self._family(job, problem).trace.records[-1]
        measured = last.seconds / last.nonzeros_touched * 1e9 if last.nonzeros_touched else math.nan
        sets = self.results.sets
        sets[sets.index(facts)] = replace(facts, ns_per_nonzero=measured)

    def _family(self, job: Job, problem: Problem) -> Run:
        setting, n_threads = job.setting, job.n_threads or self.n_threads
        partition, seconds = self.blocks_of(job.set_name, setting.kind, setting.n_blocks)
        if job.part == plan.LOAD:
            problem, partition = self._in_block_order(job, problem, partition)
        options = family_options(setting, partition.n_blocks, self.seed)
        every = {plan.FOLLOW_UP: 1, plan.DESIGN: math.ceil(options.n_blocks / options.blocks_per_iter)}
        target = self._target(job, problem)
        reached = served = blown = False
        began = time.perf_counter()
        too_far = _BLOWN * self.results.facts(job.set_name).f_zero

        def enough(record: Record) -> bool:
            nonlocal reached, served, blown
            reached = record.objective <= target
            blown = record.iteration >= plan.LEAST_ITERATIONS and not record.objective <= too_far
            if job.enough is not None:
                served = record.iteration >= job.enough[0] and time.perf_counter() - began >= job.enough[1]
            return reached or served or blown

        family = {f.name: getattr(options, f.name) for f in fields(options) if f.name not in ("n_blocks", "seed")}
        family |= {"step_scale": setting.step_scale, "on_divergence": "continue"}
        max_iter = job.max_iter or _NO_LIMIT
        limits: dict[str, Any] = {"max_iter": max_iter, "tol": 0.0, "trace_iters": every.get(job.part, _STRIDE)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # runs that may diverge are what is studied here
            solution = solve(
                problem,
                "block-greedy",
                partition=partition,
                max_seconds=job.seconds,
                n_threads=n_threads,
                seed=self.seed,
                callback=enough,
                **limits,
                **family,
            )
        if solution.status == "interrupted" and not (reached or served or blown):
            raise KeyboardInterrupt
        used = replace(setting, n_blocks=options.n_blocks, blocks_per_iter=options.blocks_per_iter)
        status = "reached" if reached else "diverged" if blown else "max_seconds" if served else solution.status
        rising = float(np.mean(np.diff(solution.trace["objective"]) > 0)) if len(solution.trace) > 1 else 0.0
        trace = _thinned(solution.trace)
        run = Run(job.part, job.set_name, problem.alpha, used, trace, status, seconds, rising, n_threads)
        said = {"target objective": target if math.isfinite(target) else None, "on_divergence": "continue"}
        scaled = asdict(replace(options, step_scale=solution.step_scale))
        self._log(job, run, {"method": "block-greedy", "n_threads": n_threads, **limits, **said, **scaled})
        return run

    def _in_block_order(self, job: Job, problem: Problem, partition: Partition) -> tuple[Problem, Partition]:
        """The problem with the columns of a block side by side, as in the paper, whose features were permuted."""
        key = (job.set_name, job.setting.kind)
        if self._ordered is None or self._ordered[0] != key:
            self._ordered = None  # one copy of the matrix at a time
            X, blocks = partition.in_block_order(problem.X)
            self._ordered = key, Problem(X, problem.y, loss="logistic", alpha=problem.alpha), blocks
        return self._ordered[1:]

    def _log(self, job: Job, run: Run, options: dict[str, Any]) -> None:
        """Every setting that decided the run: what it takes to do it again."""
        self.results.log.append(
            {
                "part": job.part,
                "set": job.set_name,
                "alpha": run.alpha,
                "rank of alpha": job.alpha_index,
                **options,
                "setting": asdict(job.setting),
                "max_seconds": job.seconds,
                "enough": job.enough,
                "status": run.status,
                "iterations": run.last_iteration,
            }
        )

    def _target(self, job: Job, problem: Problem) -> float:
        """The objective at which the run has shown what it was to show. Only a proven optimum can tell."""
        error = plan.STOP_ERROR.get(job.part)
        optima = [
            r.objective
            for r in self.results.references
            if (r.set_name, r.alpha, r.status) == (job.set_name, problem.alpha, "converged")
        ]
        if error is None or not optima:
            return -math.inf
        return optima[0] + error * (self.results.facts(job.set_name).f_zero - optima[0])


def family_options(setting: Setting, n_blocks: int, seed: int) -> FamilyOptions:
    """All settings of a run; a step scale by name becomes a number in ``solve``."""
    together = setting.n_blocks == setting.blocks_per_iter
    return FamilyOptions(
        n_blocks=n_blocks,
        blocks_per_iter=n_blocks if together else min(setting.blocks_per_iter, n_blocks),
        per_block=setting.per_block,
        update=cast(Update, setting.update),
        greedy_rule=cast(GreedyRule, setting.greedy_rule),
        scan=cast(ScanMode, setting.scan),
        asynchronous=setting.asynchronous,
        seed=seed,
    )


def _thinned(trace: Trace) -> Trace:
    """At most some hundred records, evenly spread over the logarithm of their index, the ends among them."""
    n = len(trace)
    if n <= _MOST_RECORDS:
        return trace
    chosen = np.unique(np.concatenate([[0], np.geomspace(1, n - 1, _MOST_RECORDS).round().astype(int)]))
    return Trace([trace.records[k] for k in chosen])
