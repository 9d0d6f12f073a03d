"""``plan_cluster`` and ``blockgreedy cluster plan``: what they say of a grid, against what a grid does."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import blockgreedy as bg
from blockgreedy.backends.tiles import calibration, tuning
from blockgreedy.backends.tiles.calibration import calibrate
from blockgreedy.backends.tiles.communicator import Alone
from blockgreedy.backends.tiles.grid import Grid
from blockgreedy.backends.tiles.needs import bytes_needed
from blockgreedy.backends.tiles.plan import Machines, Size, plan_grid
from blockgreedy.backends.tiles.relevant import relevant_columns
from blockgreedy.backends.tiles.share import most_entries, parcel_of, shard_of
from blockgreedy.backends.tiles.solver import TileSolver
from blockgreedy.backends.tiles.terms import Terms
from blockgreedy.backends.tiles.threads import run_in_threads
from blockgreedy.backends.tiles.work import Work, expected_work
from blockgreedy.cli import app
from blockgreedy.data.conversion import convert
from blockgreedy.solvers.cluster_plan import Ranks

KDDA = (8_400_000, 20_000_000, 305_000_000)
CRITEO = (4_400_000_000, 10_000_000, 170_000_000_000)


def run(*arguments, columns=80):
    runner = CliRunner(env={"COLUMNS": str(columns), "NO_COLOR": "1"})
    return runner.invoke(app, ["cluster", "plan", *map(str, arguments)])


def shape(n, p, n_entries):
    return ["--rows", n, "--columns", p, "--entries", n_entries]


@pytest.mark.parametrize("grid", [(1, 4), (4, 1), (2, 2)])
def test_rounds_and_bytes_are_those_that_the_grid_counts(grid):
    data = bg.data.text_like(5000, 4000, 40.0, seed=1)
    X = sp.csc_array(data.X)
    problem = bg.Problem(X, np.asarray(data.y, dtype=np.float64), loss="logistic", alpha=1.0, fit_intercept=True)
    problem = problem.with_alpha(0.05 * problem.alpha_max)
    sizes = []

    def solved(ranks):
        shard = shard_of(problem, problem.null_model, Grid(ranks, *grid), 1)
        solver = TileSolver(shard, 1e-4)
        chosen = solver._recut.chosen

        def noted(places):
            if ranks.rank == 0:
                entries = solver._recut.facts.entries[places]
                sizes.append((len(places), entries.sum() / X.nnz))
            return chosen(places)

        solver._recut.chosen = noted
        solver.start(np.zeros(shard.tile.n_features), problem.null_model.intercept)
        while solver.gap > solver.enough:
            assert solver.step()
        return solver, shard.grid.traffic

    solver, traffic = run_in_threads(4, solved)[0]
    working_set, working_entries = np.mean(sizes, axis=0)
    work = Work(solver.n_iter, solver.n_gradients, solver.n_products, working_set, working_entries, 0.8)
    size = Size(*X.shape, X.nnz, 4, np.diff(X.indptr).astype(np.int64))
    plan = plan_grid(grid, size, Machines(4, 1, 10.0), Terms(), work)
    assert plan.rounds == pytest.approx(traffic.n_rounds, rel=0.2)
    checked = 8 * (X.shape[0] / grid[0] * (grid[1] - 1) / grid[1] * 2 + X.shape[0] * 0.75)  # not done here
    assert plan.n_bytes - checked == pytest.approx(traffic.n_bytes, rel=0.35)


def test_seconds_fall_with_machines_and_with_faster_networks():
    few, many = (bg.plan_cluster(CRITEO, machines=m, cores=16).best for m in (16, 128))
    assert 6 < few.per_iteration / many.per_iteration < 8.5  # the whole dual point at the end gets no faster
    assert many.total < few.total
    slow, fast = (bg.plan_cluster(KDDA, machines=16, cores=16, gbit=gbit) for gbit in (1, 100))
    for before, after in zip(slow.grids, fast.grids, strict=True):
        assert after.total < before.total
        assert after.n_bytes == before.n_bytes
    alone = bg.plan_cluster(KDDA, machines=1, cores=16).best
    assert (alone.grid, alone.rounds, alone.n_bytes) == ((1, 1), 0, 0)


def test_tall_data_is_cut_by_rows():
    assert bg.plan_cluster(CRITEO, machines=16, cores=16).best.grid == (16, 1)
    wide = bg.plan_cluster((10_000, 50_000_000, 500_000_000), machines=16, cores=16)
    assert wide.best.grid == (1, 16)
    assert [grid.grid for grid in wide.grids] == [(1, 16), (2, 8), (4, 4), (8, 2), (16, 1)]


def test_smaller_alphas_take_longer():
    found = [bg.plan_cluster(KDDA, machines=16, cores=16, alpha_ratio=ratio) for ratio in (1, 0.1, 0.01, 0.001, 1e-5)]
    seconds = [plan.best.total for plan in found]
    assert seconds == sorted(seconds)
    assert all(0 < plan.work.working_entries <= 1 and 0 < plan.work.due <= 1 for plan in found)
    more = bg.plan_cluster(KDDA, machines=16, cores=16, iterations=20, products=500, working_set=30_000)
    assert (more.work.iterations, more.work.products, more.work.working_set) == (20, 500, 30_000)


def test_memory_decides_which_grids_fit():
    plan = bg.plan_cluster(KDDA, machines=16, cores=16, memory="2600M")
    assert {grid.fits for grid in plan.grids} == {True, False}
    assert plan.best.memory_in_all <= 2600 * 2**20
    assert bg.plan_cluster(KDDA, machines=2, cores=16, memory="100M").best is None
    one = bg.plan_cluster(KDDA, machines=1, cores=1).grids[0]
    assert one.memory["tile"] >= 8 * KDDA[2]


def test_vectors_over_all_features_take_no_more_than_is_counted(tmp_path):
    n, p = 200, 300_000
    random = np.random.default_rng(0)
    values = np.where(np.arange(p) < 20, 1.0, 0.01).astype(np.float32)  # 20 columns can have a weight
    entries = (values, (random.integers(0, n, p), np.arange(p)))
    X, y = sp.csc_array(sp.coo_array(entries, shape=(n, p))), np.where(np.arange(n) % 2, 1.0, -1.0)
    store = convert(bg.Dataset(X, y), tmp_path / "wide.store")
    counted = bg.plan_cluster(store, machines=1, cores=1, relevant=1e-6).best.memory["whole"]
    problem = bg.Problem(store, loss="logistic", alpha=1.0, fit_intercept=True)
    tracemalloc.start()
    try:
        problem = problem.with_alpha(0.5 * problem.alpha_max)
        bg.solve(problem, n_threads=1)
        assert 24 * p < tracemalloc.get_traced_memory()[1] < counted
    finally:
        tracemalloc.stop()


def test_columns_far_from_zero_count_as_dense_ones(tmp_path):
    random = np.random.default_rng(0)
    X = random.standard_normal((300, 6))
    X[:, 4:] += 1e6
    y = random.standard_normal(300)
    store = convert(bg.Dataset(sp.csc_array(X), y), tmp_path / "far.store")
    problem = bg.Problem(store, loss="huber", alpha=0.1, fit_intercept=True).scaling.inner
    assert len(problem.design.moved) == 2
    grid = Grid(Alone(), 1, 1)
    needed = bytes_needed(problem, grid, relevant_columns(problem, 1))
    parcel = parcel_of(problem, problem.null_model, grid, relevant_columns(problem, 1))
    dense, parcel_bytes = 2 * 300 * store.dtype.itemsize, parcel.nbytes
    problem.design.moved = problem.design.moved[:0]
    assert needed - bytes_needed(problem, grid, relevant_columns(problem, 1)) == dense
    assert parcel_bytes - replace(parcel, moved=parcel.moved[:0]).nbytes == dense


def test_a_limit_of_memory_holds_what_is_beside_the_entries_of_a_working_set():
    problem = bg.Problem(sp.csc_array((100, 5000), dtype=np.float32), np.ones(100), alpha=0.1)
    n_bytes = 200 << 20
    # 4 + 4 bytes of an entry, 3 of private sums, and a fifth that stays empty
    held = most_entries(problem, (1, 1), 0, n_bytes) * 11 * 1.25
    assert held <= n_bytes - tuning.BASE_BYTES - 8 * 9 * 5000


def test_ranks_of_a_machine_send_through_its_memory():
    one = bg.plan_cluster(KDDA, machines=1, cores=16, ranks_per_machine=16, gbit=1)
    apart = bg.plan_cluster(KDDA, machines=16, cores=1, ranks_per_machine=1, gbit=1)
    for near, far in zip(one.grids, apart.grids, strict=True):
        assert near.n_bytes == far.n_bytes
        assert near.total < far.total


def test_a_store_is_planned_with_the_entries_of_its_columns(tmp_path):
    entries = np.zeros((200, 40))
    entries[:, :10] = 1.0  # all in the first columns
    X = sp.csr_array(entries)
    bg.save(bg.Dataset(X, np.tile([0.0, 1.0], 100)), tmp_path / "X.npz")
    store = convert(tmp_path / "X.npz", tmp_path / "X.store", column_groups=2)
    plan = bg.plan_cluster(bg.data.Store(tmp_path / "X.store"), machines=4, cores=1)
    by_columns = next(grid for grid in plan.grids if grid.grid == (1, 4))
    by_rows = next(grid for grid in plan.grids if grid.grid == (4, 1))
    assert plan.size.n_entries == 2000
    assert by_columns.memory["tile"] > 2 * by_rows.memory["tile"]
    assert store is not None
    facts = json.loads(run(tmp_path / "X.store", "--machines", 4, "--cores", 1, "--json").stdout)
    assert (facts["n_samples"], facts["nonzeros"]) == (200, 2000)


def test_calibration_measures_every_term_of_a_machine():
    work = expected_work(2000, 1000, 0.01)
    found = calibrate(Size(2000, 1000, 50_000), work, 1, 1).as_dict()
    default = Terms().as_dict()
    for name in ("gradient", "product", "copy", "cut", "row_of_step", "working", "call"):
        assert 0 < found[name] != default[name], name
    assert found["latency"] == default["latency"]
    together = run_in_threads(2, lambda ranks: calibrate(Size(2000, 1000, 50_000), work, 1, 2, ranks))
    assert together[0] == together[1]
    assert together[0].local_latency > 0


def small_measurements(monkeypatch):
    sizes = {"_LONG": 1000, "_TALL": (3000, 10), "_WIDE": (300, 3000), "_WORKING": (50, 200), "_REPEATS": 1}
    for name, value in sizes.items():
        monkeypatch.setattr(calibration, name, value)


@pytest.mark.parametrize("n_empty", [60, 200])
def test_calibration_takes_made_up_columns_where_the_first_rows_have_no_entries(monkeypatch, tmp_path, n_empty):
    small_measurements(monkeypatch)
    X = sp.random_array((200, 10), density=0.2, rng=np.random.default_rng(0), format="lil")
    X[:n_empty] = 0
    store = convert(bg.Dataset(sp.csc_array(X), np.arange(200) % 2), tmp_path / "a.store", row_groups=2)
    plan = bg.plan_cluster(store, machines=16, cores=2, terms="calibrate")
    assert plan.terms.gradient > 0
    assert plan.terms.product > 0


def test_rows_that_one_rank_cannot_read_end_the_calibration_of_all(monkeypatch, tmp_path):
    small_measurements(monkeypatch)
    X = sp.random_array((200, 10), density=0.2, rng=np.random.default_rng(0), format="csc")
    convert(bg.Dataset(X, np.arange(200) % 2), tmp_path / "a.store")

    def planned(ranks):
        store = bg.data.Store(tmp_path / "a.store")
        if ranks.rank == 1:
            store.tile = lambda *_: (_ for _ in ()).throw(OSError("the disk is gone"))
        try:
            bg.plan_cluster(store, machines=2, cores=1, terms=Ranks(ranks, True))
        except OSError as error:
            return str(error)
        return ""

    assert run_in_threads(2, planned) == ["the disk is gone"] * 2


def test_the_command_prints_a_table_and_json():
    result = run(*shape("8.4e6", "20e6", "305e6"), "--machines", 16, "--cores", 16)
    assert result.exit_code == 0, result.output
    for text in ("1 × 16", "16 × 1", "Best:", "Assumed at alpha_max × 0.01", "8,400,000 × 20,000,000"):
        assert text in result.stdout
    assert "…" not in result.stdout
    facts = json.loads(run(*shape(*KDDA), "--machines", 16, "--cores", 16, "--json").stdout)
    best = next(grid for grid in facts["grids"] if grid["grid"] == facts["best"])
    assert best["seconds"] == min(grid["seconds"] for grid in facts["grids"])
    assert best["seconds"] == pytest.approx(sum(best["seconds_by_part"].values()))
    assert best["memory_bytes"] == pytest.approx(sum(best["memory"].values()), abs=10)
    assert "on 16 machines with 16 cores and 10 Gbit/s: 16 ranks of 16 threads" in result.stdout
    alone = run(*shape(*KDDA), "--machines", 1, "--cores", 1).stdout
    assert "on 1 machine with 1 core and 10 Gbit/s: 1 rank of 1 thread\n" in alone
    none = run(*shape(*KDDA), "--machines", 2, "--cores", 16, "--memory", "100M")
    assert none.exit_code == 0
    assert "No grid fits" in none.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a store, or give all of --rows, --columns, --entries"),
        ([*shape(10, 10, 50), "--gbit", 0], "--gbit 0"),
        (shape(10, 10, 500), "--entries 500"),
        (shape(10.5, 10, 50), "--rows 10.5 must be a whole number"),
        ([*shape(10, 10, 50), "--alpha-ratio", 2], "--alpha-ratio 2"),
        ([*shape(10, 10, 50), "--memory", "much"], "--memory much"),
        ([*shape(10, 10, 50), "--working-set", 11], "--working-set 11"),
        (["nowhere.store"], "nowhere.store"),
    ],
)
def test_wrong_use_is_explained(arguments, message):
    result = run(*arguments, "--machines", 2, "--cores", 2)
    assert result.exit_code in (1, 2)
    assert message in result.output


def test_wrong_arguments_are_explained():
    with pytest.raises(TypeError, match="must be a store"):
        bg.plan_cluster("big.store", machines=2, cores=2)
    with pytest.raises(ValueError, match="machines=0"):
        bg.plan_cluster(KDDA, machines=0, cores=2)
    with pytest.raises(TypeError, match="terms=3"):
        bg.plan_cluster(KDDA, machines=1, cores=2, terms=3)
