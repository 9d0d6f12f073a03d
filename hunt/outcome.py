"""What became of a case: its findings, the worst first."""

from __future__ import annotations

from dataclasses import dataclass, field

# Every check, the worst first, but what is about another problem (scales) before what follows from it.
SEVERITY = (
    "crash", "hang", "scales", "false certificate", "false gap", "negative gap", "infeasible dual", "false objective",
    "outside bounds", "stale", "late", "stall", "unproved", "curve", "choice", "cross-validation", "refit", "bits",
    "modified", "null model", "rise", "exception", "drift", "recheck", "status", "message", "trace",
    "warning", "unnamed",
)  # fmt: skip


@dataclass
class Finding:
    check: str  # which promise was broken
    detail: str


@dataclass
class Outcome:
    """What became of a case."""

    statuses: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)  # true relative errors of stalls
    seconds: float = 0.0

    def found(self, check: str, detail: str) -> None:
        self.findings.append(Finding(check, detail))

    @property
    def worst(self) -> Finding | None:
        """One defect breaks several promises; this is the one to name it by."""
        return min(self.findings, key=lambda finding: SEVERITY.index(finding.check), default=None)
