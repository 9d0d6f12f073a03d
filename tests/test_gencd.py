"""GenCD: the presets in its vocabulary are the specification, and the rules are what their names say."""

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.backends import reference
from blockgreedy.backends.cpu import block_greedy
from blockgreedy.family.iterations import Iterations, Recording, Rules
from blockgreedy.problem.core_problem import CoreProblem
from blockgreedy.problem.penalties import Penalty
from blockgreedy.solvers.options import FamilyOptions
from conftest import LOSSES, UPDATES, random_problem
from test_agreement import PENALTIES, relative_difference

# (method, n_blocks, blocks_per_iter) on 40 features
SIZES = [("scd", 40, 1), ("shotgun", 40, 7), ("greedy", 1, 1), ("thread-greedy", 8, 8), ("block-greedy", 8, 3)]


def made(problem, partition, options, rules, n_threads=1):
    """The iterations by themselves, without a loop around them."""
    model = CoreProblem(problem, n_threads)
    core = block_greedy(model, partition, options)
    return Iterations(core, problem, partition, options, model, rules, Recording(True, 0, 0))


def assert_follows_reference(problem, options, rules, n_iter=30, n_threads=1):
    partition = bg.make_partition(problem.X, n_blocks=options.n_blocks, seed=1)
    iterations = made(problem, partition, options, rules, n_threads)
    specified = reference.block_greedy(problem, partition.block_of, options)
    for number in range(n_iter):
        w, intercept, accepted = next(specified)
        if np.max(np.abs(w)) > 1e6:
            break  # diverging
        iterations.run(1, np.inf)
        assert iterations.accepted == accepted, f"iteration {number}"
        assert relative_difference(w, iterations.coef) < 1e-12, f"iteration {number}"
        assert iterations.intercept == pytest.approx(intercept, rel=1e-12, abs=1e-12), f"iteration {number}"
    assert number >= 5
    return iterations


def preset(method, update="joint"):
    rules = bg.family.PRESETS[method]
    return Rules(rules.select, None, rules.accept, update)


def sparse_enough(rng, loss, update, **settings):
    """A problem on which concurrent steps converge."""
    return random_problem(rng, loss, 0.1, density=0.05 if update in ("add", "line-search") else 0.3, **settings)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("size", SIZES, ids=lambda size: size[0])
def test_presets_follow_the_reference(rng, size, loss, update):
    method, n_blocks, per_iter = size
    options = FamilyOptions(n_blocks, per_iter, 1, update, seed=5)
    assert_follows_reference(sparse_enough(rng, loss, update), options, preset(method, update))


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_presets_follow_the_reference_over_penalties(rng, penalty, update):
    problem = sparse_enough(rng, "logistic", update, **PENALTIES[penalty])
    assert_follows_reference(problem, FamilyOptions(8, 3, 1, update, seed=2), preset("block-greedy", update))


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("per_block", [1, 2])
@pytest.mark.parametrize("by", ["gain", "step"])
def test_rules_follow_the_reference_over_storage_and_acceptances(rng, dense, dtype, per_block, by):
    problem = random_problem(rng, "logistic", 0.1, dense=dense, dtype=dtype)
    rules = Rules(bg.family.uniform, None, bg.family.best(by, per_block), "joint")
    options = FamilyOptions(13, 5, per_block, "joint", by, seed=3)
    assert_follows_reference(problem, options, rules, n_threads=2)


@pytest.mark.parametrize("step_scale", [0.02, 0.5, 1.5])
def test_steps_are_scaled_as_in_the_reference(rng, step_scale):
    problem = random_problem(rng, "logistic", 0.1, density=0.1, **PENALTIES["everything"])
    options = FamilyOptions(8, 3, 1, "add", seed=2, step_scale=step_scale)
    assert_follows_reference(problem, options, preset("block-greedy", "add"))


@pytest.mark.parametrize("method", ["scd", "shotgun", "greedy", "thread-greedy", "block-greedy"])
def test_run_is_solve_but_for_the_language(text_data, method):
    problem = bg.Problem(text_data, loss="logistic", alpha=0.003)
    settings = {"n_blocks": 16, "blocks_per_iter": 5} if method == "block-greedy" else {}
    ours = bg.family.run(problem, method, max_iter=300, seed=4, **settings)
    core = bg.solve(problem, method, max_iter=300, seed=4, **settings)
    assert ours.status == core.status
    assert ours.n_iter == core.n_iter
    assert relative_difference(core.coef, ours.coef) < 1e-12
    assert ours.gap == pytest.approx(core.gap, rel=1e-6)
    for column in ("nonzeros_touched", "critical_nonzeros", "active_blocks"):
        np.testing.assert_array_equal(ours.trace[column], core.trace[column])


def scores(problem, w):
    """GS-s, GS-r and GS-q of an l1 problem, feature by feature, from their definitions."""
    X = problem.X.toarray()
    grad, alpha = problem.gradient(w), problem.alpha
    bound = problem.loss.curvature_bound * (X**2).mean(axis=0)
    s, r, q = np.zeros((3, len(w)))
    for j, g in enumerate(grad):
        s[j] = abs(g + alpha * np.sign(w[j])) if w[j] != 0 else max(abs(g) - alpha, 0)

        def model(z, j=j, g=g):
            return g * (z - w[j]) + bound[j] / 2 * (z - w[j]) ** 2 + alpha * (abs(z) - abs(w[j]))

        # the minimum is at a zero of one of the two smooth branches, or at the kink
        branches = [w[j] - (g + sign * alpha) / bound[j] for sign in (-1, 1)]
        z = min([0.0, *(z for z, sign in zip(branches, (-1, 1), strict=True) if z * sign > 0)], key=model)
        r[j], q[j] = abs(z - w[j]), -model(z)
    return {"subgradient": s, "step": r, "gain": q}


@pytest.mark.parametrize("by", ["subgradient", "step", "gain"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_gauss_southwell_rules_take_the_largest_score_by_definition(rng, by, loss):
    problem = random_problem(rng, loss, 0.05)
    one = bg.make_partition(problem.X, n_blocks=1)
    each = bg.make_partition(problem.X, n_blocks=40, kind="contiguous")
    by_accept = made(problem, one, FamilyOptions(1, 1), Rules(bg.family.every_block, None, bg.family.best(by), "add"))
    select = bg.family.gauss_southwell(by)
    by_select = made(problem, each, FamilyOptions(40, 1), Rules(select, None, bg.family.everything, "add"))
    chosen = set()
    for _ in range(40):
        expected = int(np.argmax(scores(problem, by_accept.coef)[by]))
        by_accept.run(1, np.inf)
        by_select.run(1, np.inf)
        assert by_accept.accepted == by_select.accepted == [expected]
        chosen.add(expected)
    assert len(chosen) > 5


def test_the_three_gauss_southwell_rules_differ(rng):
    problem = random_problem(rng, "squared", 0.02)
    taken = []
    for by in ("subgradient", "step", "gain"):
        run = bg.family.run(problem, "greedy", accept=bg.family.best(by), max_iter=30, tol=0, update="add")
        taken.append(np.concatenate(run.telemetry["accepted"]).tolist())
    assert taken[0] != taken[1] != taken[2] != taken[0]


def test_gauss_southwell_selects_the_blocks_of_the_best_features(rng):
    problem = random_problem(rng)
    solution = bg.family.run(
        problem, select="gauss-southwell-q", n_blocks=8, blocks_per_iter=3, max_iter=1, partition="contiguous"
    )
    best = scores(problem, np.zeros(40))["gain"].reshape(8, 5).max(axis=1)
    assert solution.telemetry["selected"][0].tolist() == sorted(np.argsort(-best)[:3].tolist())


def test_cyclic_selects_every_block_equally_often(rng):
    solution = bg.family.run(random_problem(rng), select="cyclic", n_blocks=8, blocks_per_iter=3, max_iter=8, tol=0)
    selected = solution.telemetry["selected"]
    assert selected[:3][2].tolist() == [6, 7, 0]
    assert np.bincount(np.concatenate(selected)).tolist() == [3] * 8


def test_importance_draws_in_proportion_to_weights(rng):
    problem = random_problem(rng)
    weights = np.array([0.0, 1, 2, 3, 4])
    rule = bg.family.importance(weights)
    solution = bg.family.run(problem, select=rule, n_blocks=5, blocks_per_iter=1, max_iter=4000, tol=0)
    shares = np.bincount(np.concatenate(solution.telemetry["selected"]), minlength=5) / 4000
    assert shares[0] == 0
    assert np.max(np.abs(shares - weights / 10)) < 4 * np.sqrt(0.25 / 4000)
    # two at once: the second is drawn from what is left
    pairs = bg.family.run(problem, select=rule, n_blocks=5, blocks_per_iter=2, max_iter=4000, tol=0)
    with_last = np.mean([4 in selected for selected in pairs.telemetry["selected"]])
    expected = 0.4 + sum(weights[b] / 10 * 0.4 / (1 - weights[b] / 10) for b in (1, 2, 3))
    assert abs(with_last - expected) < 4 * np.sqrt(0.25 / 4000)


def test_importance_goes_by_curvature_unless_told(rng):
    problem = random_problem(rng, density=0.1)
    heavy = problem.X.toarray()
    heavy[:, :4] *= 100  # the first of ten contiguous blocks
    problem = bg.Problem(heavy, problem.y, alpha=0.01)
    settings = {"n_blocks": 10, "blocks_per_iter": 1, "partition": "contiguous", "max_iter": 200, "tol": 0}
    solution = bg.family.run(problem, select="importance", **settings)
    assert np.mean(np.concatenate(solution.telemetry["selected"]) == 0) > 0.98
    adaptive = bg.family.importance(lambda state: np.arange(10) == state.iteration % 10)
    solution = bg.family.run(problem, select=adaptive, **settings)
    assert np.concatenate(solution.telemetry["selected"]).tolist() == [t % 10 for t in range(200)]


def test_best_overall_takes_the_best_of_all_selected_blocks(rng):
    problem = random_problem(rng)
    solution = bg.family.run(
        problem, "thread-greedy", n_blocks=8, accept=bg.family.best_overall(3), max_iter=1, partition="contiguous"
    )
    expected = np.argsort(-scores(problem, np.zeros(40))["gain"])[:3]
    assert solution.telemetry["accepted"][0].tolist() == sorted(expected.tolist())


def test_a_proposal_with_the_true_second_derivative_is_newtons(rng):
    problem = random_problem(rng, "logistic", 0.1, density=0.1)

    def newton(state, features):
        return state.proposals(features, curvature=state.second_derivative(features))

    def check(state, proposals):
        X, j = problem.X.toarray(), int(proposals.features[0])
        curvature = (problem.loss.curvature(problem.y, problem.decision(state.w)) * X[:, j] ** 2).mean()
        assert proposals.curvature[0] == pytest.approx(curvature, rel=1e-12)
        assert curvature <= (1 + 1e-12) * state.curvature[j]
        return bg.family.everything(state, proposals)

    settings = {"update": "add", "tol": 1e-6}
    longer = bg.family.run(problem, "scd", propose=newton, accept=check, **settings)
    bound = bg.family.run(problem, "scd", **settings)
    assert longer.status == bound.status == "converged"
    assert longer.n_iter < bound.n_iter


def test_steps_and_gains_of_a_rule_are_what_counts(rng):
    problem = random_problem(rng)

    def propose(state, features):
        return np.full(len(features), 0.25), -features.astype(float)  # gains fall with the number of the feature

    def accept(state, proposals):
        return proposals.features[[np.argmax(proposals.gain)]]

    solution = bg.family.run(
        problem, "greedy", propose=propose, accept=accept, update="add", max_iter=2, tol=0, on_divergence="continue"
    )
    assert solution.coef[0] == 0.5
    assert solution.telemetry.moves()["gain"].tolist() == [0.0, 0.0]
    assert solution.telemetry.moves()["feature"].tolist() == [0, 0]


def test_an_update_of_ones_own_moves_by_what_it_returns(rng):
    problem = random_problem(rng, "logistic", 0.1)

    def backtrack(state, accepted):
        """All steps together, halved until the objective falls."""
        step, before = accepted.step, state.objective()
        while len(step) and state.objective_after(accepted.features, step) > before:
            step = step / 2
        return step

    solution = bg.family.run(problem, "thread-greedy", update=backtrack, tol=1e-6, objective_iters=1)
    assert solution.status == "converged"
    assert np.all(np.diff(solution.telemetry["objective"]) <= 1e-15)
    moved = np.bincount(solution.telemetry.moves()["feature"], solution.telemetry.moves()["step"], minlength=40)
    np.testing.assert_allclose(moved, solution.coef, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_state_is_what_its_names_say(rng, dense, loss):
    problem = random_problem(rng, loss, 0.1, dense=dense, l2=0.1)
    X = problem.X if dense else problem.X.toarray()
    seen = []

    def select(state):
        w, some = state.w, np.array([3, 17, 20])
        derivs = problem.loss.deriv(problem.y, X @ w) / 60
        np.testing.assert_allclose(state.Xw, X @ w, atol=1e-12)
        np.testing.assert_allclose(state.derivs, derivs, atol=1e-12)
        np.testing.assert_allclose(state.gradient(some), X[:, some].T @ derivs, atol=1e-12)
        np.testing.assert_allclose(state.gradient(), X.T @ derivs, atol=1e-12)
        np.testing.assert_allclose(state.gradient(some), X[:, some].T @ derivs, atol=1e-12)
        second = X.T**2 @ problem.loss.curvature(problem.y, X @ w) / 60
        np.testing.assert_allclose(state.second_derivative(), second, atol=1e-12)
        np.testing.assert_allclose(state.second_derivative(some), second[some], atol=1e-12)
        bound = problem.loss.curvature_bound * (X**2).mean(axis=0)
        np.testing.assert_allclose(state.curvature, bound, rtol=1e-12)
        assert state.objective() == pytest.approx(problem.objective(w), rel=1e-12)
        moved = w.copy()
        moved[some] += [0.1, -0.2, 0.3]
        after = state.objective_after(some, [0.1, -0.2, 0.3])
        assert after == pytest.approx(problem.objective(moved), rel=1e-12)
        for b in range(4):
            members = state.partition.members(b)
            assert state.features_of([b]).tolist() == members.tolist()
            assert state.block_max(bound)[b] == bound[members].max()
            assert state.block_sum(bound)[b] == pytest.approx(bound[members].sum(), rel=1e-12)
        assert state.features_of([2, 0]).tolist() == [*state.partition.members(2), *state.partition.members(0)]
        assert state.iteration == len(seen)
        for array in (state.w, state.Xw, state.derivs, state.curvature, state.gradient(), state.proposals().gain):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1.0
        seen.append(w.copy())
        return [1, 3]

    bg.family.run(problem, select=select, n_blocks=4, max_iter=5, tol=0)
    assert len(seen) == 5
    assert np.any(seen[4] != seen[3])


@pytest.mark.parametrize("by", ["gain", "step", "subgradient"])
def test_proposals_of_all_features_serve_for_those_of_the_selected_blocks(rng, by, monkeypatch):
    """They are computed once in an iteration, and to the last bit what some features alone would have."""
    problem, calls = random_problem(rng, "logistic", 0.1), []
    prox = Penalty.prox
    monkeypatch.setattr(Penalty, "prox", lambda *given: calls.append(len(given[1])) or prox(*given))

    def afresh(state):
        blocks = selected(state)
        state.forget()
        return blocks

    selected = bg.family.gauss_southwell(by)
    settings = {"n_blocks": 8, "blocks_per_iter": 3, "max_iter": 30, "tol": 0.0, "update": "add"}
    kept = bg.family.run(problem, select=selected, **settings)
    assert calls == [problem.n_features] * 30
    other = bg.family.run(problem, select=afresh, **settings)
    np.testing.assert_array_equal(kept.coef, other.coef)
    for mine, theirs in zip(kept.telemetry["gains"], other.telemetry["gains"], strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_random_rules_repeat_with_their_seed(rng):
    problem = random_problem(rng)

    def select(state):
        return state.random.permutation(state.n_blocks)[:2]

    settings = {"select": select, "n_blocks": 8, "max_iter": 20, "tol": 0}
    first, again, other = (bg.family.run(problem, seed=seed, **settings) for seed in (1, 1, 2))
    assert np.array_equal(first.coef, again.coef)
    assert not np.array_equal(first.telemetry["selected"], other.telemetry["selected"])


def test_features_are_updated_in_the_order_of_the_selected_blocks(rng):
    problem = random_problem(rng)
    solution = bg.family.run(
        problem, select=lambda state: [5, 0, 3], n_blocks=8, partition="contiguous", max_iter=1, update="sweep"
    )
    assert [j // 5 for j in solution.telemetry["accepted"][0]] == [5, 0, 3]


def test_sparse_and_dense_columns_give_the_same_run(rng):
    problem = random_problem(rng, "logistic", 0.1)
    dense = bg.Problem(problem.X.toarray(), problem.y, loss="logistic", alpha=problem.alpha)
    sparse = bg.Problem(sp.csr_matrix(problem.X), problem.y, loss="logistic", alpha=problem.alpha)
    runs = [bg.family.run(one, n_blocks=8, blocks_per_iter=3, tol=1e-8) for one in (dense, sparse)]
    assert relative_difference(runs[0].coef, runs[1].coef) < 1e-10
    assert runs[0].n_iter == runs[1].n_iter
