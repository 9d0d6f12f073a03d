"""Results that nobody measured: what the verdicts and the page must follow."""

from __future__ import annotations

import numpy as np

from blockgreedy.experiments import plan, readings
from blockgreedy.experiments.results import DEFAULT, Blocks, Reference, Results, Run, Setting
from blockgreedy.experiments.sets import SetFacts
from blockgreedy.solvers.trace import Record, Trace

ALPHAS = (1e-3, 1e-4, 1e-5, 1e-6)


def facts(name="reuters", **changes):
    own = {
        "name": name,
        "origin": "file",
        "generated": False,
        "n_features": 1000,
        "n_samples": 100,
        "nonzeros": 32_000,
        "empty_columns": 0,
        "alpha_max": 2e-3,
        "alphas": ALPHAS,
        "f_zero": 0.7,
        "ns_per_nonzero": 1.0,
    }
    return SetFacts(**{**own, **changes})


def trace(objectives, *, critical=1000, touched=32_000, nonzeros=50, active=32, every=10, seconds=0.01):
    return Trace(
        [
            Record(k * every, k * seconds, value, nonzeros, k * every * touched, k * every * critical, active, np.nan)
            for k, value in enumerate(objectives)
        ]
    )


def run(
    part, kind, objectives, *, alpha=1e-4, name="reuters", update="add", per_block=1, status="max_seconds", **how
):
    n_threads = how.pop("n_threads", 2)
    own = trace(objectives, **how)
    return Run(part, name, alpha, Setting(kind, update, per_block), own, status, n_threads=n_threads)


def swinging(low, high, n=40, start=0.7):
    """A run that goes up and down and does not get on."""
    return np.concatenate([[start], np.where(np.arange(n) % 2 == 0, low, high)])


def falling(end, n=40, start=0.7):
    return np.concatenate([[start], np.linspace(start * 0.9, end, n)])


def results(clustered_wins: bool) -> Results:
    """A whole study in which clustering does all that the paper says, or nothing of it."""
    made = Results(sets=[facts(n_features=20_000_000)], config={"n_threads": 2})
    critical = {"random": 1000, "clustered": 15_000 if clustered_wins else 1000}
    for k, alpha in enumerate(ALPHAS):
        made.references.append(Reference("reuters", alpha, 0.1, 1e-8, "converged"))
        made.runs.append(
            run(plan.FOLLOW_UP, DEFAULT, falling(0.1, 5), alpha=alpha, update="auto", status="converged")
        )
        small = k >= 2
        ends = {"random": 0.3, "clustered": 0.2 if clustered_wins and small else 0.4}
        for kind, end in ends.items():
            active = 6 if clustered_wins and kind == "clustered" and not small else 32
            nonzeros = 9000 if clustered_wins and kind == "clustered" else 90
            how = {"critical": critical[kind], "active": active, "nonzeros": nonzeros}
            for reading in readings.ALL:
                made.runs.append(
                    run(reading.part, kind, falling(end), alpha=alpha, update=reading.setting.update, **how)
                )
            for update in plan.SAFE_UPDATES:
                for per_block in plan.PER_BLOCK:
                    found = falling(0.1, 40 // per_block + 2)
                    made.runs.append(
                        run(plan.FOLLOW_UP, kind, found, alpha=alpha, update=update, per_block=per_block, **how)
                    )
    for kind in critical:
        for n_threads, seconds in ((1, 2e-6 * 32_000), (2, 2e-6 * max(16_000, critical[kind]))):
            own = {"n_threads": n_threads, "seconds": seconds, "alpha": ALPHAS[plan.LOAD_ALPHA]}
            made.runs.append(run(plan.LOAD, kind, falling(0.3), **own))
    loads = {"random": np.full(32, 1000.0), "clustered": np.full(32, 1000.0)}
    if clustered_wins:
        loads["clustered"] = np.array([15_000.0] + [17_000 / 31] * 31)
    for kind, load in loads.items():
        seconds = 0.1 if clustered_wins else 10.0
        made.blocks.append(Blocks("reuters", kind, seconds, load, np.full(32, 1 / 32)))
    return made
