"""The paper's Table 2 cell by cell: a run of ours beside each of its numbers, under each reading of its text."""

from __future__ import annotations

import math
from dataclasses import dataclass

from blockgreedy.experiments import matching, paper
from blockgreedy.experiments.matching import By, Match
from blockgreedy.experiments.readings import Reading
from blockgreedy.experiments.results import Results
from blockgreedy.experiments.sets import alpha_text
from blockgreedy.experiments.standing import KINDS, End, is_apart, leader, pair_of, trouble

FACTOR = 2.0  # nonzeros within this factor of the paper's count as the same
NEAR = 0.05  # objectives that differ by no more; f(0) is 0.693 here and there


@dataclass(frozen=True)
class Cell:
    """One kind of blocks at one of the paper's alphas, after 10,000 iterations or at the end of the run."""

    match: Match
    kind: str
    iteration: float
    nonzeros: float
    objective: float
    trouble: str  # "diverged", "cycles" or ""
    cut_short: bool  # by its time limit

    @property
    def theirs(self) -> paper.Row:
        return paper.REUTERS[self.match.theirs, self.kind]

    @property
    def same_nonzeros(self) -> bool:
        theirs = self.theirs.nonzeros_in_iterations
        return not self.trouble and theirs / FACTOR <= self.nonzeros <= theirs * FACTOR

    @property
    def same_objective(self) -> bool:
        return not self.trouble and abs(self.objective - self.theirs.objective_in_iterations) <= NEAR


@dataclass(frozen=True)
class Comparison:
    """Table 2 under one reading and one matching of alphas."""

    reading: Reading
    by: By
    cells: tuple[Cell, ...]
    leads: tuple[tuple[Match, str, str], ...]  # who is ahead here, and there

    def of(self, kind: str) -> list[Cell]:
        return [cell for cell in self.cells if cell.kind == kind]

    @property
    def same_leads(self) -> int:
        return sum(ours == theirs for _, ours, theirs in self.leads)

    @property
    def held(self) -> int:
        same = sum(cell.same_nonzeros + cell.same_objective for cell in self.cells)
        return same + self.same_leads

    @property
    def total(self) -> int:
        return 2 * len(self.cells) + len(self.leads)


def compare(results: Results, reading: Reading, by: By) -> Comparison:
    """The runs of a reading on the detailed set beside the paper's rows of 10,000 iterations."""
    facts = results.detail_set
    cells, leads = [], []
    for match in [] if facts is None else matching.matches(facts, by):
        assert facts is not None
        for kind in KINDS:
            run = results.one(reading.part, facts.name, match.ours, kind)
            if run is None:
                continue
            last = min(paper.ITERATIONS, run.last_iteration)
            values = run.at_iteration(last, "nonzeros"), run.at_iteration(last)
            cut = last < paper.ITERATIONS and run.status == "max_seconds"
            cells.append(Cell(match, kind, last, *values, trouble(run, facts.f_zero), cut))
        pair = pair_of(results, reading.part, facts.name, match.ours)
        if pair is not None:
            end = End.of(pair, None, facts.ns_per_nonzero)
            leads.append(
                (match, leader(results, pair, end.values, end.iterations), lead_of_paper(match.theirs, False))
            )
    return Comparison(reading, by, tuple(cells), tuple(leads))


def lead_of_paper(alpha: float, in_time: bool) -> str:
    rows = [paper.REUTERS[alpha, kind] for kind in KINDS]
    random, clustered = (row.objective_in_time if in_time else row.objective_in_iterations for row in rows)
    return "random ahead" if random < clustered else "clustered ahead"


def numbers(comparison: Comparison) -> str:
    """Ours and the paper's, one kind of blocks after the other."""
    parts = []
    for kind in KINDS:
        cells = comparison.of(kind)
        if cells:
            parts.append(
                f"{kind} blocks have {_list(cell.nonzeros for cell in cells)} nonzeros (paper "
                f"{_list(cell.theirs.nonzeros_in_iterations for cell in cells)}) and objectives "
                f"{_list((cell.objective for cell in cells), '.3f')} (paper "
                f"{_list((cell.theirs.objective_in_iterations for cell in cells), '.3f')})"
            )
    return "; ".join(parts)


def counts(comparison: Comparison) -> str:
    """How much of the table that is."""
    said = [
        f"{kind} {sum(cell.same_nonzeros for cell in comparison.of(kind))} of {len(comparison.of(kind))}"
        for kind in KINDS
    ]
    same = sum(cell.same_objective for cell in comparison.cells)
    ahead = f"{comparison.same_leads} of {len(comparison.leads)}"
    return (
        f"nonzeros within a factor of {FACTOR:g} of the paper's: {', '.join(said)}; objectives within {NEAR:g}: "
        f"{same} of {len(comparison.cells)}; the same blocks ahead: {ahead}"
    )


def judgement(comparison: Comparison) -> str:
    """In words: where Table 2 supports the reading, and where it contradicts it."""
    against: list[str] = []
    for_it: list[str] = []
    for kind in KINDS:
        cells = comparison.of(kind)
        troubled = [cell for cell in cells if cell.trouble]
        if troubled:
            shown = ", ".join(f"{cell.objective:.3g} at {alpha_text(cell.match.ours)}" for cell in troubled)
            theirs = _list((cell.theirs.objective_in_iterations for cell in troubled), ".3f")
            word = "diverge" if any(cell.trouble == "diverged" for cell in troubled) else "cycle"
            against.append(f"{kind} blocks {word} (objective {shown}; the paper has {theirs})")
        sound = [cell for cell in cells if not cell.trouble]
        other = [cell for cell in sound if not cell.same_nonzeros]
        for group, said in ((other, against), ([cell for cell in sound if cell.same_nonzeros], for_it)):
            if group:
                said.append(
                    f"{kind} blocks have {_list(cell.nonzeros for cell in group)} nonzeros where the paper has "
                    f"{_list(cell.theirs.nonzeros_in_iterations for cell in group)}"
                )
    wrong = [(match, ours) for match, ours, theirs in comparison.leads if ours != theirs and not is_apart(ours)]
    if wrong:
        against.append(
            "at " + ", ".join(f"{alpha_text(match.ours)} {ours}" for match, ours in wrong) + ", unlike there"
        )
    if comparison.same_leads:
        for_it.append(f"the same blocks are ahead at {comparison.same_leads} of {len(comparison.leads)} alphas")
    text = f"Table 2 contradicts it: {'; '.join(against)}. " if against else ""
    return (text + (f"Table 2 supports it: {'; '.join(for_it)}." if for_it else "")).strip()


def _list(values: object, form: str = ",.0f") -> str:
    return ", ".join("–" if math.isnan(value) else format(value, form) for value in values)  # type: ignore[attr-defined]
