"""What rules ask a state, and what they may do with its answers."""

import numpy as np
import pytest

import blockgreedy as bg
from conftest import random_problem

P_FEATURES, N_BLOCKS = 40, 8


@pytest.fixture
def problem(rng):
    return random_problem(rng, "logistic", 0.1)


def asked(problem, question):
    """The answer of the state in the first iteration, before anything is computed."""
    answers = []

    def select(state):
        answers.append(question(state))
        return [0]

    bg.family.run(problem, select=select, n_blocks=N_BLOCKS, max_iter=1, tol=0.0)
    return answers[0]


MASK = np.arange(P_FEATURES) == 5
QUESTIONS = {
    "gradient": lambda state, features: state.gradient(features),
    "second_derivative": lambda state, features: state.second_derivative(features),
    "proposals": lambda state, features: state.proposals(features),
    "columns": lambda state, features: state.columns(features),
    "objective_after": lambda state, features: state.objective_after(features, [0.5]),
    "features_of": lambda state, features: state.features_of(features),
}
WRONG = {
    "mask": (MASK, "np.flatnonzero makes them of a mask"),
    "fractions": ([1.7], "whole numbers"),
    "below": ([-1], r"\[-1\] must be"),
    "beyond": ([P_FEATURES], rf"\[{P_FEATURES}\] must be"),
    "no list": (3, "=3 must be a list"),
    "table": ([[1, 2]], "flat array"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("question", QUESTIONS)
def test_what_is_no_number_of_a_feature_or_block_is_refused(problem, question, wrong):
    value, said = WRONG[wrong]
    name = "blocks" if question == "features_of" else "features"
    with pytest.raises(ValueError, match=said) as refused:
        asked(problem, lambda state: QUESTIONS[question](state, value))
    assert str(refused.value).startswith(f"{name}=")


@pytest.mark.parametrize("question", sorted(set(QUESTIONS) - {"objective_after"}))
def test_no_features_are_no_error(problem, question):
    asked(problem, lambda state: QUESTIONS[question](state, []))


def test_steps_of_a_feature_named_twice_add_up(problem):
    twice = asked(problem, lambda state: state.objective_after([1, 1], [0.25, 0.5]))
    assert twice == pytest.approx(asked(problem, lambda state: state.objective_after([1], [0.75])), rel=1e-14)
    w = np.zeros(P_FEATURES)
    w[1] = 0.75
    assert twice == pytest.approx(problem.objective(w), rel=1e-14)
    for steps in ([1.0], 1.0, ["a", "b"]):
        with pytest.raises(ValueError, match=r"steps=.* must be 2 numbers"):
            asked(problem, lambda state, steps=steps: state.objective_after([1, 2], steps))


@pytest.mark.parametrize("count", [-1, N_BLOCKS + 1, 1.5])
def test_draws_are_of_blocks_that_there_are(problem, count):
    with pytest.raises(ValueError, match=f"count={count} must be a whole number from 0 to {N_BLOCKS}"):
        asked(problem, lambda state: state.draw(count))


@pytest.mark.parametrize("curvature", [1.0, "big", [1.0], np.nan, -1.0])
def test_curvatures_are_numbers_of_at_least_0(problem, curvature):
    of_all = np.full(5, curvature) if isinstance(curvature, float) and not curvature >= 1 else curvature
    with pytest.raises(ValueError, match="curvature="):
        asked(problem, lambda state: state.proposals(np.arange(5), curvature=of_all))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda p: p.with_steps(np.zeros((len(p), 1))), "step=.* must be"),
        (lambda p: p.with_steps([0.0]), "step=.* must be"),
        (lambda p: p.with_steps(np.zeros(len(p)), [0.0]), "gain=.* must be"),
        (lambda p: p.with_steps(np.full(len(p), np.nan)), "steps must be finite"),
        (lambda p: p.with_steps(np.full(len(p), 0.01), np.full(len(p), np.nan)), "gains must not be nan"),
    ],
)
def test_proposals_with_other_steps_are_looked_at_like_arrays(problem, change, said):
    with pytest.raises(ValueError, match=said):
        bg.family.run(problem, propose=lambda state, features: change(state.proposals(features)), n_blocks=N_BLOCKS)


@pytest.mark.parametrize("update", ["add", "joint"])
def test_a_proof_holds_for_proposals_that_leave_a_bound_by_rounding(rng, update):
    problem = random_problem(rng, "logistic", 0.05, upper=0.1)

    def propose(state, features):
        found = state.proposals(features)
        target = np.where(found.target >= 0.1, 0.1 + 4e-10, found.target)
        return found.with_steps(target - found.w)

    solution = bg.family.run(
        problem, propose=propose, update=update, n_blocks=N_BLOCKS, blocks_per_iter=1, tol=1e-4, max_iter=20_000
    )
    assert solution.status == "converged"
    assert solution.coef.max() == 0.1
    assert problem.objective(solution.coef) == pytest.approx(solution.objective, rel=1e-12)
    again = problem.duality_gap(solution.coef, solution.intercept, solution.dual)
    assert again <= 1e-4 * problem.null_model.objective


NAMES = ("features", "blocks", "w", "grad", "curvature", "step", "target", "gain", "subgradient", "moves")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("of", ["some", "all", "other steps"])
def test_nothing_in_proposals_can_be_written_to(problem, name, of):
    def question(state):
        found = state.proposals(None if of == "all" else np.arange(5))
        return found.with_steps(np.zeros(5)) if of == "other steps" else found

    values = getattr(asked(problem, question), name)
    with pytest.raises(ValueError, match="read-only"):
        values[0] = 1


def test_the_features_that_propose_is_asked_about_cannot_be_written_to(problem):
    def propose(state, features):
        features[0] = 3
        return np.zeros(len(features))

    with pytest.raises(ValueError, match="read-only"):
        bg.family.run(problem, propose=propose, n_blocks=N_BLOCKS, blocks_per_iter=2)


def test_an_array_of_a_rule_stays_writeable(problem):
    mine = np.ones(5)
    asked(problem, lambda state: state.proposals(np.arange(5), curvature=mine))
    mine[0] = 2.0


def test_a_number_too_large_for_an_index_is_named_as_it_is(problem):
    for select in ([2**63], np.array([2**64 - 1], dtype=np.uint64)):
        with pytest.raises(bg.family.RuleError, match=f"{int(select[0])} is no block"):
            bg.family.run(problem, select=lambda state, select=select: select, n_blocks=N_BLOCKS)
