"""What config.json says: every setting that decided a run, so that it can be done again."""

from __future__ import annotations

import math
import os
import platform
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from blockgreedy.base.surroundings import cpu_name
from blockgreedy.experiments import matching, paper, plan
from blockgreedy.experiments.results import Results
from blockgreedy.experiments.sets import SetFacts

_PACKAGES = ("blockgreedy", "numpy", "scipy", "scikit-learn", "matplotlib")


def about_machine() -> dict[str, Any]:
    """What a reader needs to judge the times; nothing that names the machine or its user."""
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in _PACKAGES},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def config_of(results: Results) -> dict[str, Any]:
    """Settings of the command, machine, data, blocks, and every run that was made."""
    return {
        **results.config,
        "interrupted": results.interrupted,
        "remarks": results.remarks,
        "loss": "logistic",
        "n_blocks": paper.N_BLOCKS,
        "greedy_rule of figure 2": paper.GREEDY_RULE,
        "least iterations of figure 2": plan.LEAST_ITERATIONS,
        "stop errors": plan.STOP_ERROR,
        "seconds by part": {part: round(seconds, 2) for part, seconds in results.part_seconds.items()},
        "data": [_data(facts, facts.in_paper is not None or facts is results.detail_set) for facts in results.sets],
        "blocks": [
            {"set": b.set_name, "kind": b.kind, "seconds": b.seconds, "heaviest over mean": b.load_ratio}
            for b in results.blocks
        ],
        "runs": results.log,
    }


def _data(facts: SetFacts, is_compared: bool) -> dict[str, Any]:
    """A set with its size, checksum and alphas; the paper's beside ours, by both matchings, where it is compared."""
    own = {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in asdict(facts).items()
    }
    matched = {
        f"paper's alphas by {by}": [[match.theirs, match.ours] for match in matching.matches(facts, by)]
        for by in matching.BOTH
        if is_compared
    }
    return own | matched
