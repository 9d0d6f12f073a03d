"""Does the planned runs, one after the other, and keeps what they found."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from blockgreedy.experiments import paper, plan
from blockgreedy.experiments.plan import Job
from blockgreedy.experiments.results import Blocks, Reference, Results, Run, Setting
from blockgreedy.experiments.sets import SetFacts, Source, prepare
from blockgreedy.partitions.partition import Partition, make_partition
from blockgreedy.problem.problem import Problem
from blockgreedy.solvers.solve import solve
from blockgreedy.solvers.trace import Record, Trace

_REFERENCE_TOL = 1e-7
_MOST_RECORDS = 400  # kept of a run
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
            self.results.runs.append(self._family(job, problem, self.n_threads))
        spent = self.results.part_seconds
        spent[job.part] = spent.get(job.part, 0.0) + time.perf_counter() - began

    def _reference(self, job: Job, problem: Problem) -> None:
        solution = solve(problem, tol=_REFERENCE_TOL, max_seconds=job.seconds, n_threads=self.n_threads)
        if solution.status == "interrupted":
            raise KeyboardInterrupt
        gap = solution.gap / problem.null_model.objective
        self.results.references.append(
            Reference(job.set_name, problem.alpha, solution.objective, gap, solution.status)
        )
        self.results.runs.append(
            Run(plan.FOLLOW_UP, job.set_name, problem.alpha, job.setting, solution.trace, solution.status)
        )

    def _timing(self, job: Job, problem: Problem, facts: SetFacts) -> None:
        """What an iteration costs per scanned nonzero on one thread: the unit of the 32-thread models."""
        last = self._family(job, problem, 1).trace.records[-1]
        measured = last.seconds / last.nonzeros_touched * 1e9 if last.nonzeros_touched else math.nan
        sets = self.results.sets
        sets[sets.index(facts)] = replace(facts, ns_per_nonzero=measured)

    def _family(self, job: Job, problem: Problem, n_threads: int) -> Run:
        setting = job.setting
        partition, seconds = self.blocks_of(job.set_name, setting.kind, setting.n_blocks)
        total = partition.n_blocks
        chosen = total if setting.n_blocks == setting.blocks_per_iter else min(setting.blocks_per_iter, total)
        per_block = setting.per_block
        every = {plan.FOLLOW_UP: 1, plan.DESIGN: math.ceil(total / chosen)}.get(job.part, _STRIDE)
        target = self._target(job, problem)
        reached = served = False
        began = time.perf_counter()

        def enough(record: Record) -> bool:
            nonlocal reached, served
            reached = record.objective <= target
            if job.enough is not None:
                served = record.iteration >= job.enough[0] and time.perf_counter() - began >= job.enough[1]
            return reached or served

        options: dict[str, Any] = {"update": setting.update, "per_block": per_block, "on_divergence": "continue"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # runs that may diverge are what is studied here
            solution = solve(
                problem,
                "block-greedy",
                partition=partition,
                blocks_per_iter=chosen,
                tol=0.0,
                max_seconds=job.seconds,
                max_iter=job.max_iter or 10**12,
                n_threads=n_threads,
                seed=self.seed,
                trace_iters=every,
                callback=enough,
                **options,
            )
        if solution.status == "interrupted" and not (reached or served):
            raise KeyboardInterrupt
        used = Setting(setting.kind, setting.update, per_block, total, chosen)
        status = "reached" if reached else "max_seconds" if served else solution.status
        rising = float(np.mean(np.diff(solution.trace["objective"]) > 0)) if len(solution.trace) > 1 else 0.0
        trace = _thinned(solution.trace)
        return Run(job.part, job.set_name, problem.alpha, used, trace, status, seconds, rising)

    def _target(self, job: Job, problem: Problem) -> float:
        """The objective at which the run has shown what it was to show."""
        error = plan.STOP_ERROR.get(job.part)
        optima = [
            r.objective for r in self.results.references if (r.set_name, r.alpha) == (job.set_name, problem.alpha)
        ]
        if error is None or not optima:
            return -math.inf
        return optima[0] + error * (self.results.facts(job.set_name).f_zero - optima[0])


def _thinned(trace: Trace) -> Trace:
    """At most some hundred records, evenly spread over the logarithm of their index, the ends among them."""
    n = len(trace)
    if n <= _MOST_RECORDS:
        return trace
    chosen = np.unique(np.concatenate([[0], np.geomspace(1, n - 1, _MOST_RECORDS).round().astype(int)]))
    return Trace([trace.records[k] for k in chosen])
