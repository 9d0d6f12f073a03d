"""Runs of GenCD: how they end, what they record, and what they say of rules that return nonsense."""

import inspect
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import blockgreedy as bg
from blockgreedy.partitions.spectrum import spectral_radius
from conftest import SANITIZED, press_ctrl_c_after, random_problem

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import selection_rule


@pytest.fixture
def problem(rng):
    return random_problem(rng, "logistic", 0.1)


def run(problem, **settings):
    return bg.family.run(problem, **{"n_blocks": 8, "max_iter": 20, "tol": 0.0, **settings})


def test_telemetry_has_a_row_for_each_iteration(problem):
    solution = run(problem, blocks_per_iter=3, objective_iters=5, spectral_radius_iters=4)
    telemetry = solution.telemetry
    assert telemetry["iteration"].tolist() == list(range(1, 21))
    assert np.flatnonzero(~np.isnan(telemetry["objective"])).tolist() == [4, 9, 14, 19]
    assert telemetry["objective"][-1] == pytest.approx(solution.objective, rel=1e-12)
    assert np.flatnonzero(~np.isnan(telemetry["spectral_radius"])).tolist() == [3, 7, 11, 15, 19]
    assert telemetry["spectral_radius"][3] == spectral_radius(problem.X, telemetry["accepted"][3])
    for row in telemetry:
        assert len(row.selected) == 3
        blocks = solution.partition.block_of[row.accepted]
        assert set(blocks) <= set(row.selected)
    steps = np.bincount(telemetry.moves()["feature"], telemetry.moves()["step"], minlength=40)
    np.testing.assert_allclose(steps, solution.coef, atol=1e-14)


def test_gains_are_what_a_step_alone_is_sure_to_bring(problem):
    solution = run(problem, method="scd", n_blocks=None, update="add", objective_iters=1, max_iter=200)
    objective = np.r_[problem.objective(np.zeros(40)), solution.telemetry["objective"]]
    gains = [gains.sum() for gains in solution.telemetry["gains"]]
    assert max(gains) > 0
    assert np.all(objective[:-1] - objective[1:] >= np.array(gains) - 1e-14)


def test_telemetry_can_be_left_out(problem):
    assert run(problem, telemetry=False).telemetry is None
    assert bg.solve(problem).telemetry is None
    with pytest.raises(ValueError, match="objective_iters=5 needs telemetry=True"):
        run(problem, telemetry=False, objective_iters=5)


def test_a_run_converges_by_the_gap_and_proves_it(problem):
    solution = run(problem, tol=1e-8, max_iter=None, select="cyclic", blocks_per_iter=2)
    assert solution.status == "converged"
    checked = problem.duality_gap(solution.coef, dual=solution.dual)
    assert checked == pytest.approx(solution.gap, rel=1e-6, abs=1e-15)
    assert solution.gap <= 1e-8 * problem.null_model.objective
    assert len(solution.trace) >= 2


def test_limits_and_callback_end_a_run(problem):
    assert run(problem, max_iter=7).n_iter == 7
    assert run(problem, max_iter=7).status == "max_iter"

    def slow(state):
        time.sleep(0.01)
        return [0]

    assert run(problem, select=slow, max_seconds=0.1, max_iter=1000).status == "max_seconds"
    stopped = run(problem, callback=lambda record: record.iteration >= 10, trace_iters=5, max_iter=1000)
    assert (stopped.status, stopped.n_iter) == ("interrupted", 10)
    assert stopped.trace["iteration"].tolist() == [0, 5, 10]


def test_ctrl_c_in_a_rule_returns_what_there_is(problem):
    def slow(state):
        time.sleep(0.002)
        return state.draw(1)

    sent = press_ctrl_c_after(0.3)
    solution = run(problem, select=slow, max_iter=100_000)
    assert time.perf_counter() - sent[0] < 1
    assert solution.status == "interrupted"
    assert len(solution.telemetry) == solution.n_iter > 0
    assert np.any(solution.coef != 0)


def test_ctrl_c_never_parts_weights_and_telemetry(problem):
    """Half of the time of an iteration is after its update, so that some of these come in there."""
    for number in range(12):
        press_ctrl_c_after(0.05 + 0.003 * number)
        solution = run(problem, n_blocks=8, max_iter=1_000_000, tol=0.0)
        assert solution.status == "interrupted"
        assert len(solution.telemetry) == solution.n_iter


def copies(loss):
    """Copies of one column: added steps overshoot."""
    column = np.linspace(-1, 1, 40)[:, None]
    y = np.sign(column.ravel()) if loss == "logistic" else column.ravel() * 3
    return bg.Problem(np.tile(column, 8), y, loss=loss, alpha=0.001)


def test_a_run_that_blows_up_is_stopped_at_its_best_point():
    problem = copies("squared")
    solution = run(problem, update="add", select=bg.family.every_block, max_iter=500)
    assert solution.status == "diverged"
    assert "update='add' overshoot" in solution.message
    assert solution.objective == pytest.approx(problem.null_model.objective, rel=1e-12)


def test_the_message_of_a_rule_that_diverges_names_it():
    def twice(state, accepted):
        return 2 * accepted.step

    solution = run(copies("squared"), update=twice, max_iter=2000)
    assert solution.status == "diverged"
    assert "with update=twice, which may raise the objective" in solution.message


def test_going_on_after_a_blow_up_ends_without_an_error():
    with np.errstate(all="raise"):
        solution = run(
            copies("squared"), update="add", select=lambda state: range(8), max_iter=3000, on_divergence="continue"
        )
    assert solution.status == "max_iter"
    assert not solution.objective < 1e3


def test_a_preset_that_adds_warns_of_its_risk_and_a_rule_of_ones_own_does_not():
    with pytest.warns(bg.ConvergenceRiskWarning, match="epsilon"):
        run(copies("logistic"), method="thread-greedy", update="add")
    run(copies("logistic"), method="thread-greedy", update="add", select=lambda state: [0, 1])  # warnings are errors


def test_a_run_goes_on_from_where_it_was_told_to_start(problem):
    first = run(problem, max_iter=10)
    start = first.coef.copy()
    seen = []
    run(problem, coef_init=start, select=lambda state: seen.append(state.w.copy()) or [0], max_iter=1)
    np.testing.assert_array_equal(seen[0], start)


BAD_SELECTIONS = [
    ([3, 8], r"select=rule returned \[3, 8\]: 8 is no block; blocks are 0 to 7"),
    ([-1], r"returned \[-1\]: -1 is no block"),
    ([2, 5, 2], r"returned \[2, 5, 2\]: 2 is in it twice"),
    ([0.0, 1.0], "must be a list or flat array of blocks, as whole numbers"),
    (3, "returned 3: it must be a list or flat array"),
    (None, "returned None: it must be a list"),
    ({1, 2}, "it must be a list or flat array"),
    ([[1], [2]], "it must be a list or flat array"),
    ([[1], [2, 3]], "it must be a list or flat array"),
    (np.arange(8) > 5, "np.flatnonzero makes them of a mask"),
]


@pytest.mark.parametrize(("value", "said"), BAD_SELECTIONS, ids=lambda value: str(value)[:20])
def test_selections_that_are_none_are_refused(problem, value, said):
    def rule(state):
        return value

    with pytest.raises(bg.family.RuleError, match=said):
        run(problem, select=rule)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([40], r"accept=rule returned \[40\]: 40 is not among the proposed features"),
        ([-3], "-3 is not among the proposed features"),
        ([0], "0 is not among the proposed features"),
        ([11, 11], "11 is in it twice"),
        ([True], "as whole numbers"),
        ("best", "returned 'best': it must be a list or flat array of features"),
    ],
)
def test_acceptances_of_what_was_not_proposed_are_refused(problem, value, said):
    def rule(state, proposals):
        return value

    with pytest.raises(bg.family.RuleError, match=said):
        run(problem, select=lambda state: [2], accept=rule, partition="contiguous")


@pytest.mark.parametrize("step", ["propose", "update"])
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda n: np.full(n, np.nan), "the step nan for feature .*: steps must be finite"),
        (lambda n: np.full(n, np.inf), "the step inf for feature"),
        (lambda n: np.zeros(n + 1), r"of shape .* not \d+ steps, one number for each feature"),
        (lambda n: 0.5, "not .* steps, one number for each feature"),
        (lambda n: ["a"] * n, "not .* steps"),
        (lambda n: np.full(n, 9.0), "takes its weight from 0 to 9, outside of lower ≤ w ≤ upper"),
    ],
)
def test_steps_that_are_none_are_refused(rng, step, wrong, said):
    problem = random_problem(rng, "logistic", 0.1, upper=5.0)

    def rule(state, given):
        return wrong(len(given))

    with pytest.raises(bg.family.RuleError, match=f"{step}=rule returned .*{said}"):
        run(problem, **{"update": "add", step: rule})


def test_gains_that_are_none_are_refused(problem):
    def rule(state, features):
        return np.ones(len(features)), np.full(len(features), np.nan)

    with pytest.raises(bg.family.RuleError, match=r"propose=rule returned .*gains must not be nan"):
        run(problem, propose=rule)

    def others(state, features):
        return state.proposals(features[1:])

    with pytest.raises(bg.family.RuleError, match="its features are not those that it was asked about"):
        run(problem, propose=others)


def test_steps_to_a_bound_may_round(rng):
    problem = random_problem(rng, "squared", 0.01, lower=-0.1, upper=0.1)
    solution = run(problem, propose=lambda state, features: 0.1 - state.w[features], update="add", max_iter=3)
    assert solution.status == "diverged" or np.max(solution.coef) <= 0.1


@pytest.mark.parametrize("name", ["block_max", "block_sum"])
def test_values_by_block_are_one_for_each_feature(problem, name):
    with pytest.raises(ValueError, match=r"values must be one for each of the 40 features, got shape \(5,\)"):
        run(problem, select=lambda state: getattr(state, name)(state.w[:5]))
    found = []
    run(problem, select=lambda state: found.append(getattr(state, name)(list(range(40)))) or [0], max_iter=1)
    assert found[0].shape == (8,)


def test_errors_of_a_rule_are_not_swallowed(problem):
    def rule(state):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        run(problem, select=rule)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"select": "random"}, "select='random' is not known; use a function or one of 'uniform', 'all', 'cyclic'"),
        ({"select": 3}, "select=3 is not known; use a function or"),
        ({"accept": "greedy"}, "accept='greedy' is not known; use a function or one of 'best'"),
        ({"propose": "prox"}, "propose='prox' must be a function, or None"),
        ({"update": "newton"}, "update='newton' is not known; use one of 'add'"),
        ({"method": "auto"}, "method='auto' is not known"),
        ({"step_scale": 0.5}, "step_scale=0.5 needs update='add'"),
        ({"step_scale": 0.5, "update": "add", "propose": lambda s, f: f}, "is for steps along the curvature bound"),
        ({"max_sweeps": 3, "update": "add"}, "max_sweeps=3 needs update='joint' or 'sweep'"),
        ({"max_sweeps": 3, "update": lambda s, a: a.step}, "max_sweeps=3 has no use: update=<lambda> finds its own"),
        ({"spectral_radius_iters": 0}, "spectral_radius_iters=0 must be a whole number"),
        ({"telemetry": 1}, "telemetry=1 must be True or False"),
        ({"blocks_per_iter": 9}, "blocks_per_iter=9"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(problem, settings, said):
    with pytest.raises(ValueError, match=said):
        run(problem, **settings)


def test_a_step_scale_of_1_goes_with_a_propose_of_one_s_own_whatever_its_type(problem):
    for one in (1, 1.0, np.float64(1), np.float32(1), np.int64(1)):
        assert run(problem, step_scale=one, propose=lambda s, f: np.zeros(len(f))).n_iter == 20
    for other in (np.int64(2), "1", None, [1]):
        with pytest.raises(ValueError, match="is for steps along the curvature bound"):
            run(problem, step_scale=other, propose=lambda s, f: np.zeros(len(f)))


def test_a_problem_is_a_problem():
    with pytest.raises(TypeError, match=r"problem must be a blockgreedy.Problem, got list"):
        bg.family.run([])
    with pytest.raises(ValueError, match="by='size' is not known"):
        bg.family.best("size")
    with pytest.raises(ValueError, match=r"weights=.* of importance must be 8 finite numbers"):
        run(random_problem(np.random.default_rng(0)), select=bg.family.importance([1, 2]))


@pytest.mark.skipif(bool(SANITIZED), reason="a sanitized process is slow")
def test_a_rule_of_ten_lines_makes_200_iterations_a_second_on_text_of_the_size_of_reuters():
    """In seconds of the processor, since others may be at work; on Reuters itself: benchmarks/selection_rule.py."""
    data = bg.data.text_like(n_samples=13_476, n_features=21_074, mean_nonzeros=69, seed=0)
    problem = bg.Problem(data, loss="logistic", alpha=0.002)

    def select(state):
        """The blocks that promise most, and one by chance, so that none is forgotten."""
        promise = state.block_sum(np.maximum(state.proposals().gain, 0.0))
        best = np.argsort(-promise)[: state.blocks_per_iter - 1]
        other = state.random.integers(state.n_blocks)
        return np.union1d(best, other)

    began = time.process_time()
    solution = bg.family.run(problem, select=select, n_blocks=32, blocks_per_iter=8, max_iter=200, n_threads=1, tol=0)
    assert solution.n_iter == 200
    assert time.process_time() - began < 1.0


def test_the_rule_of_the_benchmark_has_at_most_ten_lines_and_is_gauss_southwell(problem):
    lines = inspect.getsource(selection_rule.southwell).splitlines()
    assert len(lines) <= 10
    settings = {"blocks_per_iter": 3, "max_iter": 100}
    ours, named = (run(problem, select=rule, **settings) for rule in (selection_rule.southwell, "gauss-southwell-s"))
    assert [sorted(blocks) for blocks in ours.telemetry["selected"]] == [
        blocks.tolist() for blocks in named.telemetry["selected"]
    ]
    np.testing.assert_allclose(ours.coef, named.coef, rtol=1e-10)


def test_the_benchmark_of_rules_measures_every_case(problem):
    blocks = bg.make_partition(problem, n_blocks=8)
    found = selection_rule.rates(selection_rule.cases(problem, 1, blocks, 3), seconds=0.001, rounds=2)
    assert len(found) == 5
    for wall, processor in found.values():
        assert wall.shape == processor.shape == (2,)
        assert min(wall.min(), processor.min()) > 0
