"""The paper's statements about its Reuters table (Table 2), under each reading of its text."""

from __future__ import annotations

from blockgreedy.experiments import matching, plan, readings
from blockgreedy.experiments.readings import Reading
from blockgreedy.experiments.results import Results
from blockgreedy.experiments.sets import SetFacts, alpha_text
from blockgreedy.experiments.standing import (
    APART,
    KINDS,
    UNKNOWN,
    UNMEASURED,
    End,
    is_apart,
    leader,
    pair_of,
    share,
    trouble,
)
from blockgreedy.experiments.table_2 import Comparison, compare, counts, judgement, lead_of_paper, numbers
from blockgreedy.reports.page import Finding

_FEW = 0.5  # "far fewer" nonzeros: at most this part
_ARRIVED = 0.2  # of the optimal objective: closer than that both runs have nearly arrived
_BY_RANK = "The verdict is that by rank, as the paper chose its alphas."


def in_iterations(results: Results) -> Finding:
    claim = "Reuters after 10,000 iterations: clustered is ahead at all alphas but the largest (1e-4)."
    return _leaders(results, claim, in_time=False)


def in_time(results: Results) -> Finding:
    claim = "Reuters at equal time (1,000 s): random is ahead at 1e-4 and 1e-5, clustered at 1e-6."
    return _leaders(results, claim, in_time=True)


def _leaders(results: Results, claim: str, in_time: bool) -> Finding:
    """Who is ahead at the paper's three alphas, here and there, by rank and by value."""
    detail = results.detail_set
    if detail is None:
        return Finding(claim, UNMEASURED, "not measured")
    texts, shares, apart, arrived = [], [], False, []
    for by in matching.matchings(detail):
        said, same = [], []
        for match in matching.matches(detail, by):
            pair = pair_of(results, plan.FIGURE_2, detail.name, match.ours)
            if pair is None:
                continue
            end = End.of(pair, "blocks" if in_time else None, detail.ns_per_nonzero)
            ahead = leader(results, pair, end.values, end.iterations)
            if ahead == UNKNOWN:  # no time per nonzero was measured
                continue
            random, clustered = end.values
            said.append(
                f"{alpha_text(match.ours)} ({end.where}): random {random:.3g}, clustered {clustered:.3g}, {ahead}"
            )
            same.append(ahead == lead_of_paper(match.theirs, in_time))
            apart = apart or is_apart(ahead)
            arrived.append(max(end.values) <= (1 + _ARRIVED) * results.best_known(detail.name, match.ours))
        if said:
            texts.append(
                f"{matching.heading(detail, by)}: {'; '.join(said)}. As in the paper: {sum(same)} of {len(same)}."
            )
            shares.append((sum(same), len(same)))
    if not texts:
        return Finding(claim, "Nothing was measured at the paper's alphas.", "not measured")
    clock = "by the model of 32 threads, scan follows the blocks" if in_time else "by iteration"
    why = [] if detail.is_the_papers else [f"{_stand_in(detail.name)}, so objectives are not the paper's."]
    why += [_BY_RANK] if len(texts) > 1 else []
    why += [APART] if apart else []
    if any(arrived):
        why.append(f"In {sum(arrived)} of {len(arrived)} cells both runs are within 20 % of the optimal objective.")
    return Finding(claim, f"{detail.name}, {clock}. {' '.join(texts)}", share(*shares[0]), " ".join(why))


def nonzeros_of_random(results: Results) -> Finding:
    claim = (
        "After 10,000 iterations random blocks have far fewer nonzeros than clustered ones (74 to 110 against 203 "
        "to 19,919)."
    )
    detail = results.detail_set
    if detail is None:
        return Finding(claim, UNMEASURED, "not measured")
    texts, shares = [], []
    for by in matching.matchings(detail):
        said, fewer = [], []
        for match in matching.matches(detail, by):
            pair = pair_of(results, plan.FIGURE_2, detail.name, match.ours)
            if pair is None:
                continue
            end = End.of(pair, None, detail.ns_per_nonzero, "nonzeros")
            values = (pair[0].at_iteration(end.iterations[0]), pair[1].at_iteration(end.iterations[1]))
            standing = leader(results, pair, values, end.iterations)
            word = f", {standing}" if is_apart(standing) else ""
            said.append(
                f"{alpha_text(match.ours)} ({end.where}): random {end.values[0]:,.0f}, clustered "
                f"{end.values[1]:,.0f}{word}"
            )
            fewer.append(end.values[0] <= _FEW * end.values[1] and not is_apart(standing))
        if said:
            texts.append(
                f"{matching.heading(detail, by)}: {'; '.join(said)}. Far fewer: {sum(fewer)} of {len(fewer)}."
            )
            shares.append((sum(fewer), len(fewer)))
    if not texts:
        return Finding(claim, UNMEASURED, "not measured")
    why = f"{_BY_RANK} {APART}" if len(texts) > 1 else APART
    return Finding(claim, f"{detail.name}. {' '.join(texts)}", share(*shares[0]), why)


def table_under(results: Results, reading: Reading) -> Finding:
    """Objectives, nonzeros and leaders of the last two rows of Table 2, as one reading of the text gives them."""
    claim = f"Table 2 after 10,000 iterations. Here ({reading.part}): {reading.words}."
    detail = results.detail_set
    made = _comparisons(results, detail, reading)
    if detail is None or not made:
        return Finding(claim, UNMEASURED, "not measured")
    with_numbers = reading == readings.PRINTED  # of the others, a section of the page and a table have them
    texts = [
        f"{matching.heading(detail, c.by)}: {numbers(c) + '; ' if with_numbers else ''}{counts(c)}; in all "
        f"{c.held} of {c.total} comparisons hold."
        for c in made
    ]
    why = [judgement(made[0])]
    why += [_BY_RANK] if len(made) > 1 else []
    short = [cell for c in made for cell in c.cells if cell.cut_short and not cell.trouble]
    if short:
        least = min(cell.iteration for cell in short)
        why.append(f"Some runs ended before 10,000 iterations, the shortest after {least:,.0f}.")
    return Finding(claim, f"{detail.name}. {' '.join(texts)}", share(made[0].held, made[0].total), " ".join(why))


def _comparisons(results: Results, detail: SetFacts | None, reading: Reading) -> list[Comparison]:
    if detail is None:
        return []
    made = [compare(results, reading, by) for by in matching.matchings(detail)]
    return [comparison for comparison in made if comparison.cells]


def greedy_rule(results: Results) -> Finding:
    claim = "The largest |η| of a block stands for the largest guaranteed descent."
    detail = results.detail_set
    said, same = [], []
    for alpha in detail.alphas if detail is not None else ():
        for kind in KINDS:
            assert detail is not None
            runs = [results.one(part, detail.name, alpha, kind) for part in (plan.FIGURE_2, plan.GREEDY_RULE)]
            step, gain = runs
            if step is None or gain is None:
                continue
            place = min(step.last_iteration, gain.last_iteration)
            values = step.at_iteration(place), gain.at_iteration(place)
            bad = [
                word for word in (trouble(step, detail.f_zero, place), trouble(gain, detail.f_zero, place)) if word
            ]
            word = f" ({' and '.join(dict.fromkeys(bad))})" if bad else ""
            said.append(f"{alpha_text(alpha)} {kind} {values[0]:.4g} and {values[1]:.4g}{word}")
            reach = detail.f_zero - results.best_known(detail.name, alpha)
            same.append(abs(values[0] - values[1]) <= 0.01 * reach and not bad)
    if detail is None or not said:
        return Finding(claim, UNMEASURED, "not measured")
    found = (
        f"{detail.name}, objective at equal iterations with greedy_rule='step', the paper's, and 'gain': "
        f"{'; '.join(said)}. Level in {sum(same)} of {len(same)} cells."
    )
    why = (
        "With columns of norm 1 the two differ only where a step removes a weight or changes its sign. Figure 2 and "
        "all readings of the line search are run with 'step'; design space and follow-up with 'gain'."
    )
    return Finding(claim, found, share(sum(same), len(same)), why)


def _stand_in(name: str) -> str:
    return f"The set {name!r} here does not have the size of the paper's and stands in for it"
