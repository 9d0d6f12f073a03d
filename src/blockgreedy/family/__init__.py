"""The paper's family with rules of your own: ``run(problem, select=…, propose=…, accept=…, update=…)``."""

from blockgreedy.family.acceptances import best, best_overall, everything
from blockgreedy.family.generic import run
from blockgreedy.family.presets import PRESETS, Preset
from blockgreedy.family.proposals import Proposals
from blockgreedy.family.returned import RuleError
from blockgreedy.family.selections import cyclic, every_block, gauss_southwell, importance, uniform
from blockgreedy.family.state import State
from blockgreedy.solvers.telemetry import Telemetry

__all__ = [
    "PRESETS",
    "Preset",
    "Proposals",
    "RuleError",
    "State",
    "Telemetry",
    "best",
    "best_overall",
    "cyclic",
    "every_block",
    "everything",
    "gauss_southwell",
    "importance",
    "run",
    "uniform",
]
