"""The tile solver: every loss, option and grid against the single-machine solver, by ranks that are threads."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.backends.tiles.communicator import Alone
from blockgreedy.backends.tiles.grid import Grid
from blockgreedy.backends.tiles.share import shard_of
from blockgreedy.backends.tiles.solver import TileSolver
from blockgreedy.backends.tiles.threads import run_in_threads
from blockgreedy.data import Dataset
from blockgreedy.data.conversion import convert

GRIDS = [(1, 1), (1, 2), (2, 1), (2, 2), (4, 1)]
LOSSES = ["squared", "logistic", "squared_hinge", "huber"]
OPTIONS = {
    "plain": {},
    "intercept": {"fit_intercept": True},
    "weights": {"fit_intercept": True, "sample_weight": "some"},
    "offset": {"offset": "some"},
    "units": {"penalty_weights": "some", "fit_intercept": True},
    "l2": {"l2": 1e-2},
    "positive": {"positive": True, "fit_intercept": True},
    "bounds": {"lower": -0.05, "upper": 0.1},
    "standardize": {"standardize": True, "fit_intercept": True},
}


def made(loss, options, seed=0, n=120, p=90):
    random = np.random.default_rng(seed)
    X = sp.random(n, p, density=0.15, random_state=seed, format="csc")
    # columns that repeat others, and some too small to have a weight
    X = sp.csc_array(sp.hstack([X, 1e-3 * X[:, 10:15], X[:, :5]]))
    y = random.standard_normal(n) + X[:, :3].sum(axis=1)
    if loss in ("logistic", "squared_hinge"):
        y = np.where(y > np.median(y), 1, 0)
    options = dict(options)
    if options.get("sample_weight") == "some":
        options["sample_weight"] = random.integers(0, 3, n)
    if options.get("offset") == "some":
        options["offset"] = 0.3 * random.standard_normal(n)
    if options.get("penalty_weights") == "some":
        u = random.random(X.shape[1]) + 0.2
        u[3], u[7] = 0, np.inf
        options["penalty_weights"] = u
    problem = bg.Problem(X, y, loss=loss, alpha=1.0, **options)
    return problem.with_alpha(0.05 * problem.alpha_max)


def solve_on(grid, problem, **settings):
    size = grid[0] * grid[1]
    return run_in_threads(size, lambda ranks: bg.solve(problem, cluster=ranks, grid=grid, n_threads=1, **settings))


def assert_same_optimum(problem, solution, tol, close=1e-8):
    best = bg.solve(problem, tol=1e-10)
    scale = problem.null_model.objective
    objective, gap = problem.objective_and_gap(solution.coef, solution.intercept, solution.dual)
    assert solution.status == "converged"
    assert abs(solution.objective - best.objective) <= close * scale
    assert abs(objective - solution.objective) <= 1e-12 * scale
    assert gap <= solution.gap + 1e-12 * scale
    assert gap <= (1 + 1e-6) * tol * scale + 1e-12 * scale


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("options", OPTIONS)
def test_every_loss_and_option_has_the_same_optimum_on_every_grid(loss, options):
    problem = made(loss, OPTIONS[options], seed=len(options))
    for grid in GRIDS:
        for solution in solve_on(grid, problem, tol=1e-9):
            assert_same_optimum(problem, solution, 1e-9)


def test_dense_and_float32_columns():
    random = np.random.default_rng(3)
    for X in (random.standard_normal((60, 25)), sp.random(80, 40, density=0.3, random_state=1).astype(np.float32)):
        problem = bg.Problem(X, random.standard_normal(X.shape[0]), alpha=1.0, fit_intercept=True)
        problem = problem.with_alpha(0.03 * problem.alpha_max)
        for grid in ((1, 1), (2, 2)):
            assert_same_optimum(problem, solve_on(grid, problem, tol=1e-9)[0], 1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_bounded_sides_of_unpenalised_features_cost_a_dual_point_once(loss):
    random = np.random.default_rng(0)
    X = random.standard_normal((80, 12))
    y = X @ random.standard_normal(12) + random.standard_normal(80)
    y = np.sign(y) if loss in ("logistic", "squared_hinge") else y
    u = np.where(np.arange(12) < 4, 0.0, 1.0)
    problem = bg.Problem(X, y, loss=loss, alpha=1.0, penalty_weights=u, upper=0.1, fit_intercept=True)
    problem = problem.with_alpha(0.3 * problem.alpha_max)
    for grid in ((1, 1), (2, 2)):
        assert_same_optimum(problem, solve_on(grid, problem, tol=1e-7)[0], 1e-7)


@pytest.mark.parametrize("exponent", [-150, -40, 40, 150])
def test_columns_beyond_the_range_of_float32_are_solved_in_other_units(exponent, tmp_path):
    random = np.random.default_rng(0)
    X = random.standard_normal((50, 3))
    y = X[:, 0] + random.standard_normal(50)
    near = bg.Problem(X, y, alpha=1.0, fit_intercept=True)
    far = bg.Problem(X * 10.0**exponent, y, alpha=1.0, fit_intercept=True)
    best = bg.solve(near.with_alpha(0.01 * near.alpha_max), tol=1e-9)
    far = far.with_alpha(0.01 * far.alpha_max)
    for grid in ((1, 1), (2, 2)):
        for solution in solve_on(grid, far, tol=1e-6):
            assert solution.status == "converged"
            assert solution.objective == pytest.approx(best.objective, rel=1e-6)


@pytest.mark.parametrize("exponent", [-40, 40])
def test_a_store_with_values_beyond_the_range_of_float32_is_refused(exponent, tmp_path):
    random = np.random.default_rng(0)
    X, y = random.standard_normal((50, 3)), random.standard_normal(50)
    X[:, 2] *= 10.0**exponent
    store = convert(Dataset(sp.csc_array(X), y), tmp_path / "far.store", column_groups=2)
    with pytest.raises(ValueError, match="too large or too small for float32; rescale them"):
        solve_on((1, 2), bg.Problem(store, alpha=10.0 ** (exponent - 2)))
    if exponent < 0:  # a column that can have no weight is none to be refused for
        assert solve_on((1, 2), bg.Problem(store, alpha=0.01))[0].status == "converged"


def test_a_run_that_gains_nothing_any_more_ends():
    random = np.random.default_rng(1)
    X = random.poisson(300.0, 300)[:, None].astype(float)
    y = np.where(X[:, 0] + 5 * random.standard_normal(300) > X[:, 0].mean(), 1, -1)
    problem = bg.Problem(X, y, loss="logistic", alpha=1.0, fit_intercept=True)
    for ratio in (1e-16, 1e-18):  # nobody can prove an optimum with products below the last digit
        solution = solve_on((1, 1), problem.with_alpha(ratio * problem.alpha_max), tol=1e-9)[0]
        assert solution.status == "stalled"
        assert solution.n_iter < 100


@pytest.mark.parametrize("kind", ["0 and 1", "1 to 4", "opposite"])
def test_columns_that_look_alike_are_not_taken_for_copies(kind):
    random = np.random.default_rng(1)
    loss, options = "squared", {"fit_intercept": True}
    if kind == "opposite":
        half = sp.random_array((150, 400), density=0.1, rng=random, format="csc")
        X, options = sp.csc_array(sp.hstack([half, -half])), {"positive": True, "fit_intercept": True}
    else:
        low, high = (0, 2) if kind == "0 and 1" else (1, 5)
        X = random.integers(low, high, (200, 300)).astype(np.float64)
    truth = random.standard_normal(X.shape[1]) * (random.random(X.shape[1]) < 0.1)
    y = X @ truth + 0.3 * random.standard_normal(X.shape[0])
    if kind == "0 and 1":
        loss, y = "logistic", np.where(y > np.median(y), 1.0, -1.0)
    problem = bg.Problem(X, y, loss=loss, alpha=1.0, **options)
    problem = problem.with_alpha(0.02 * problem.alpha_max)
    for grid in ((1, 1), (2, 2)):
        assert_same_optimum(problem, solve_on(grid, problem, tol=1e-8, max_iter=100)[0], 1e-8)


@pytest.mark.parametrize("seed", [4, 9])
def test_steps_that_rounding_decides_come_to_an_end(seed):
    """Targets that differ in their last digits only: no gap of 1e-6 can be shown."""
    random = np.random.default_rng(seed)
    X = sp.random_array((82, 64), density=0.02, rng=random, format="csc")
    y = 1e4 + 1e-5 * random.standard_normal(82)
    problem = bg.Problem(X, y, loss="huber", huber_delta=3e-6, alpha=1.0, offset=random.standard_normal(82))
    problem = problem.with_alpha(0.015 * problem.alpha_max)
    assert solve_on((1, 1), problem, tol=1e-6, max_iter=1000)[0].status in ("stalled", "converged")


@pytest.mark.parametrize("grid", [(1, 1), (2, 2)])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("ratio", [1e-6, 1e-8])
def test_a_proof_at_a_small_alpha_is_not_lost_to_rounding(loss, ratio, grid):
    """Products are then sums that cancel to a millionth of their terms."""
    for seed in range(4):
        random = np.random.default_rng(seed)
        X = random.standard_normal((60, 20))
        y = X[:, :5].sum(axis=1) + random.standard_normal(60)
        if loss in ("logistic", "squared_hinge"):
            y = np.where(y > 0, 1.0, -1.0)
            y[:10] *= -1
        problem = bg.Problem(X, y, loss=loss, alpha=1.0)
        problem = problem.with_alpha(ratio * problem.alpha_max)
        found = solve_on(grid, problem, tol=1e-6)[0]
        assert found.status == "converged"
        assert problem.duality_gap(found.coef, found.intercept, found.dual) <= 1.01e-6 * problem.null_model.objective


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of squares that overflow
@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
@pytest.mark.parametrize("exponents", [(-310,), (-310, 160), (160,)])
@pytest.mark.parametrize("standardize", [False, True])
def test_no_gap_is_not_a_number_where_columns_leave_the_range_of_float64(loss, exponents, standardize):
    random = np.random.default_rng(0)
    X = random.standard_normal((60, 10))
    y = X[:, -1] + random.standard_normal(60)
    X[:, : len(exponents)] *= 10.0 ** np.array(exponents)
    y = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y
    problem = bg.Problem(X, y, loss=loss, alpha=1.0, standardize=standardize)
    problem = problem.with_alpha(0.05 * problem.alpha_max)
    assert bg.solve(problem, n_threads=1).gap >= 0
    assert solve_on((1, 1), problem, max_iter=30)[0].gap >= 0


@pytest.mark.parametrize("seed", [0, 1])
def test_unpenalised_weights_at_their_bounds_do_not_hold_up_the_others(seed):
    random = np.random.default_rng(seed)
    X, y = random.standard_normal((21, 126)), random.standard_normal(21)
    u = np.where(np.arange(126) < 6, 0.0, 10.0 ** random.uniform(-2, 0, 126))
    bounds = {"lower": -0.3 * random.random(126), "upper": 0.3 * random.random(126)}
    problem = bg.Problem(X, y, loss="huber", huber_delta=1e-3, alpha=1.0, penalty_weights=u, **bounds)
    problem = problem.with_alpha(0.03 * problem.alpha_max)
    assert_same_optimum(problem, solve_on((2, 1), problem, tol=1e-8, max_iter=200)[0], 1e-8)


def test_a_start_is_used_and_a_bad_one_is_not():
    problem = made("logistic", {"fit_intercept": True})
    best = bg.solve(problem, tol=1e-9)
    near = solve_on((2, 1), problem, coef_init=best.coef, intercept_init=best.intercept, tol=1e-6)[0]
    far = solve_on((2, 1), problem, coef_init=np.full(problem.n_features, 1e3), intercept_init=0.0, tol=1e-6)[0]
    assert near.n_iter <= 2
    assert_same_optimum(problem, far, 1e-6)


def test_results_are_the_same_bits_on_every_rank_and_for_any_number_of_threads():
    data = bg.data.text_like(3000, 2000, 40.0, seed=1)
    problem = bg.Problem(data, loss="logistic", alpha=1.0, fit_intercept=True)
    problem = problem.with_alpha(0.01 * problem.alpha_max)
    found = [
        run_in_threads(2, lambda ranks, t=threads: bg.solve(problem, cluster=ranks, grid=(2, 1), n_threads=t))
        for threads in (1, 2, 3, 1)
    ]
    first = found[0][0]
    for solution in itertools.chain(*found):
        assert np.array_equal(solution.coef, first.coef)
        assert np.array_equal(solution.dual, first.dual)
        assert solution.intercept == first.intercept


def solver_on(ranks, problem, grid, tol=1e-4):
    shard = shard_of(problem, problem.null_model, Grid(ranks, *grid), 1)
    solver, null = TileSolver(shard, tol), problem.null_model
    solver.start(null.full_coef(problem.n_features)[shard.features], null.intercept)
    while solver.gap > solver.enough and solver.n_iter < 40:
        solver.step()
    return solver


@pytest.mark.parametrize(
    ("ratio", "most_steps", "most_products"), [(0.1, 8, 250), (0.01, 12, 250), (0.001, 16, 1000)]
)
def test_messages_are_few(ratio, most_steps, most_products):
    data = bg.data.text_like(4000, 5000, 40.0, seed=2)
    problem = bg.Problem(data, loss="logistic", alpha=1.0, fit_intercept=True)
    problem = problem.with_alpha(ratio * problem.alpha_max)
    solver = run_in_threads(4, lambda ranks: solver_on(ranks, problem, (2, 2)))[0]
    traffic = solver.shard.grid.traffic
    assert solver.n_iter <= most_steps
    assert solver.n_products <= most_products
    assert traffic.n_rounds <= solver.n_products + 12 * solver.n_iter + 12  # the last for the set-up
    # products carry the working set, at most 4 bytes a column there and back
    assert traffic.by_purpose["products"][0] == solver.n_products


def test_a_store_is_solved_like_the_matrix_it_was_made_of(tmp_path):
    data = bg.data.text_like(900, 700, 20.0, seed=4)
    order = np.random.default_rng(0).integers(0, 3, 700).astype(np.int32)
    partition = bg.Partition.from_labels(order) if hasattr(bg.Partition, "from_labels") else None
    settings = {"partition": partition} if partition is not None else {"column_groups": 3}
    store = convert(Dataset(data.X, data.y), tmp_path / "a.store", row_groups=4, **settings)
    known = bg.Problem(data.X, data.y, loss="logistic", alpha=1.0, fit_intercept=True)
    stored = bg.Problem(store, loss="logistic", alpha=1.0, fit_intercept=True)
    assert stored.alpha_max == pytest.approx(known.alpha_max, rel=1e-12)
    known, stored = known.with_alpha(0.02 * known.alpha_max), stored.with_alpha(0.02 * known.alpha_max)
    for solution in (bg.solve(stored, tol=1e-9), *(solve_on(grid, stored, tol=1e-9)[0] for grid in GRIDS)):
        assert_same_optimum(known, solution, 1e-9)
    assert stored.duality_gap(solution.coef, solution.intercept, solution.dual) <= 1e-8 * known.null_model.objective


def test_columns_far_from_zero_do_not_lose_the_proof(tmp_path):
    random = np.random.default_rng(5)
    n = 400
    stamps = 1.6e9 + 1e4 * random.standard_normal(n)
    X = np.column_stack([stamps, 2000.0 + random.integers(0, 20, n), random.standard_normal((n, 6))])
    y = (stamps - 1.6e9) / 1e4 + X[:, 2] + 0.1 * random.standard_normal(n)
    problem = bg.Problem(X, y, alpha=1e-3, fit_intercept=True, standardize=False)
    store = convert(Dataset(sp.csc_array(X), y), tmp_path / "far.store", row_groups=2, column_groups=2)
    for made_of in (problem, bg.Problem(store, alpha=1e-3, fit_intercept=True)):
        for grid in ((1, 1), (2, 2)):
            assert_same_optimum(problem, solve_on(grid, made_of, tol=1e-7)[0], 1e-7)


@pytest.mark.parametrize("grid", [(1, 1), (2, 2)])
def test_the_guard_refuses_dual_points_that_break_a_constraint(grid):
    problem = made("squared", {"fit_intercept": True})

    def values(ranks):
        solver = solver_on(ranks, problem, grid)
        kept = solver.dual.theta
        found = [solver.verify(solver.weights, solver.intercept)[2]]
        solver.intercept = 0.0  # what is left of the intercept's equality must not pass because it costs nothing
        for theta in (kept + 1e-9 * np.linalg.norm(kept), 1.01 * kept):
            solver.dual.theta = theta
            found.append(solver.verify(solver.weights, solver.intercept)[2])
        return found

    sound, uneven, too_long = run_in_threads(grid[0] * grid[1], values)[0]
    assert sound > 0
    assert uneven == too_long == -np.inf


def test_paths_go_down_the_alphas_together():
    problem = made("logistic", {"fit_intercept": True})
    alone = bg.solve_path(problem, n_alphas=12, tol=1e-7)
    for found in run_in_threads(4, lambda ranks: bg.solve_path(problem, n_alphas=12, tol=1e-7, cluster=ranks)):
        assert found.status == "converged"
        for ours, theirs in zip(found.points, alone.points, strict=True):
            assert ours.objective == pytest.approx(theirs.objective, abs=2e-7 * problem.null_model.objective)


def test_limits_and_callbacks_end_a_run_on_all_ranks():
    problem = made("squared", {})
    assert {s.status for s in solve_on((2, 2), problem, tol=1e-12, max_iter=1)} == {"max_iter"}
    assert {s.status for s in solve_on((2, 1), problem, tol=1e-12, max_seconds=1e-9)} == {"max_seconds"}
    assert {s.status for s in solve_on((2, 1), problem, tol=1e-12, callback=lambda _: True)} == {"interrupted"}


def test_bad_clusters_and_grids_are_refused():
    problem = made("squared", {})
    with pytest.raises(TypeError, match="cluster=3 is not known"):
        bg.solve(problem, cluster=3)
    with pytest.raises(ValueError, match="needs 6 ranks; the cluster has 1"):
        bg.solve(problem, cluster=Alone(), grid=(2, 3))
    with pytest.raises(ValueError, match="two whole numbers"):
        bg.solve(problem, cluster=Alone(), grid=(2,))
    with pytest.raises(ValueError, match="'auto'"):
        bg.solve(problem, "thread-greedy", cluster=Alone())


def test_an_error_on_one_rank_ends_all():
    problem = made("squared", {})

    def work(ranks):
        if ranks.rank == 1:
            raise RuntimeError("lost")
        return bg.solve(problem, cluster=ranks)

    with pytest.raises(RuntimeError, match="lost"):
        run_in_threads(2, work)


@pytest.mark.parametrize("what", ["y", "X", "sample_weight", "offset", "penalty_weights", "upper", "huber_delta"])
def test_ranks_that_were_given_different_problems_are_told_so(what):
    random = np.random.default_rng(0)
    X, y = random.standard_normal((40, 6)), random.standard_normal(40)

    def work(ranks):
        mine, own, options = X, y, {}
        if ranks.rank == 1:
            mine = X + 1 if what == "X" else X
            own = -y if what == "y" else y
            values = {"sample_weight": 1 + y**2, "offset": y, "penalty_weights": np.arange(1.0, 7.0), "upper": 0.01}
            options = {what: {**values, "huber_delta": 2.0}[what]} if what not in ("X", "y") else {}
        return bg.solve(bg.Problem(mine, own, loss="huber", alpha=0.01, **options), cluster=ranks)

    with pytest.raises(ValueError, match=r"ranks must solve the same problem: .* on rank 0 and .* on rank 1"):
        run_in_threads(2, work)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_unpenalised_timestamps_of_a_store_need_no_intercept(loss, tmp_path):
    random = np.random.default_rng(2)
    X = np.column_stack([1.7e9 + 1e6 * random.random(80), random.standard_normal((80, 5))])
    y = np.sign(X[:, 1] + 0.5 + random.standard_normal(80))
    store = convert(Dataset(sp.csc_array(X), y), tmp_path / "a.store", row_groups=2)
    options = {"loss": loss, "alpha": 0.02, "penalty_weights": np.append(0.0, np.ones(5))}
    known, stored = bg.Problem(X, y, **options), bg.Problem(store, **options)
    assert stored.null_model.objective == pytest.approx(known.null_model.objective, rel=1e-9)
    assert stored.alpha_max == pytest.approx(known.alpha_max, rel=1e-9)
    assert_same_optimum(known, solve_on((2, 1), stored, tol=1e-6)[0], 1e-6, close=1e-6)
