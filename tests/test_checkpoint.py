"""Checkpoints of fits on tiles, by one process and by ranks that are threads; fits of stores by the command."""

import contextlib
import json
import os
import random
import signal

import numpy as np
import pytest

import blockgreedy as bg
from blockgreedy.backends.tiles.threads import run_in_threads
from blockgreedy.base.threads import own_cores, resolve_threads, share_of_cores
from blockgreedy.data.conversion import convert
from blockgreedy.solvers.checkpoint import Checkpoint
from command_line import fit
from test_tiles import made


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "text.store"
    data = bg.data.text_like(1000, 2000, 20.0, seed=1)
    convert(data, path, row_groups=3, column_groups=2)
    return path


def problem_of(store, ratio=0.01, **options):
    problem = bg.Problem(bg.data.Store(store), loss="logistic", alpha=1.0, **options)
    return problem.with_alpha(ratio * problem.alpha_max)


@pytest.mark.parametrize("options", [{}, {"fit_intercept": True, "offset": "some"}, {"standardize": True}])
def test_any_grid_goes_on_from_the_checkpoint_of_another(options, tmp_path):
    problem, path = made("logistic", options), tmp_path / "c"
    f_null = problem.null_model.objective

    def solve(ranks, grid, **settings):
        return bg.solve(problem, cluster=ranks, grid=grid, tol=1e-9, n_threads=1, checkpoint=path, **settings)

    run_in_threads(4, lambda ranks: solve(ranks, (2, 2), max_iter=2))
    found = run_in_threads(2, lambda ranks: solve(ranks, (2, 1), resume=True))
    best = bg.solve(problem, tol=1e-10)
    for solution in found:
        assert solution.status == "converged"
        assert solution.trace.records[0].iteration == 2
        assert solution.trace.records[0].objective < 0.9 * f_null
        assert abs(solution.objective - best.objective) <= 1e-8 * f_null
    n_iter = found[0].n_iter
    again = run_in_threads(3, lambda ranks: solve(ranks, (1, 3), resume=True))[0]
    assert again.n_iter <= n_iter + 2
    assert again.trace.records[-1].nonzeros_touched > found[0].trace.records[-1].nonzeros_touched


def test_shifted_columns_and_targets_are_saved_in_the_users_units(tmp_path):
    random = np.random.default_rng(0)
    X = random.standard_normal((200, 5)) + np.array([0, 1e4, 0, 0, -1e5])
    y = X[:, 1] - 2 * X[:, 4] + 1e6 + random.standard_normal(200)
    problem, path = bg.Problem(X, y, alpha=0.1, fit_intercept=True), tmp_path / "c"
    settings = {"cluster": bg.backends.tiles.communicator.Alone(), "checkpoint": path, "tol": 1e-10}
    solution = bg.solve(problem, **settings)
    file = np.load(path)
    assert np.array_equal(file["features"], np.flatnonzero(solution.coef))
    assert file["values"] == pytest.approx(solution.coef[file["features"]], rel=1e-9)
    assert bg.solve(problem, resume=True, **settings).objective == pytest.approx(solution.objective, rel=1e-9)


def test_a_checkpoint_that_is_there_is_not_replaced_by_chance(store, tmp_path):
    problem, path = problem_of(store), tmp_path / "c"
    bg.solve(problem, checkpoint=path, max_iter=1)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"exists already; go on from it with resume=True, or delete it"):
        bg.solve(problem, checkpoint=path)
    assert path.read_bytes() == before


def test_the_checkpoint_of_another_problem_is_refused_and_says_what_differs(store, tmp_path):
    path = tmp_path / "c"
    problem = problem_of(store)
    bg.solve(problem, checkpoint=path, max_iter=1)
    y = np.array(problem.y)
    y[0] *= -1
    others = {
        "alpha is ": problem.with_alpha(0.9 * problem.alpha),
        "fit_intercept is False there and True here": problem_of(store, fit_intercept=True).with_alpha(problem.alpha),
        "the checksum of row_weights": problem.with_sample_weight(np.arange(1, 1001)),
        "the checksum of y": bg.Problem(bg.data.Store(store), y, loss="logistic", alpha=problem.alpha),
        "the checksum of X": bg.Problem(
            bg.data.Store(store).dataset().X, problem.y, loss="logistic", alpha=problem.alpha
        ),
    }
    for what, other in others.items():
        cluster = None if other.design.is_tiled else bg.backends.tiles.communicator.Alone()
        with pytest.raises(ValueError, match=f"is of another problem: {what}"):
            bg.solve(other, checkpoint=path, resume=True, cluster=cluster)


def test_the_last_bits_of_alpha_may_differ(store, tmp_path):
    """A part of alpha_max is added up by ranks in another order."""
    problem = problem_of(store)
    bg.solve(problem, checkpoint=tmp_path / "c", max_iter=1)
    other = problem.with_alpha(problem.alpha * (1 + 4e-16))
    assert other.alpha != problem.alpha
    assert bg.solve(other, checkpoint=tmp_path / "c", resume=True).status == "converged"


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x03\x04 cut off"])
def test_a_damaged_checkpoint_is_an_error(store, tmp_path, content):
    path = tmp_path / "c"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"cannot be read as a checkpoint: .*delete it"):
        bg.solve(problem_of(store), checkpoint=path, resume=True)
    bg.Model.of_solution(made("squared", {}), bg.solve(made("squared", {}))).save(tmp_path / "model.npz")
    with pytest.raises(ValueError, match="cannot be read as a checkpoint"):
        bg.solve(problem_of(store), checkpoint=tmp_path / "model.npz", resume=True)


def test_no_changed_byte_of_a_checkpoint_is_a_traceback(store, tmp_path):
    problem, path = problem_of(store), tmp_path / "c"
    bg.solve(problem, checkpoint=path, max_iter=1)
    content, checkpoint, draw = path.read_bytes(), Checkpoint(path, problem), random.Random(0)
    for _ in range(3000):
        at = draw.randrange(len(content))
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << draw.randrange(8)]) + content[at + 1 :])
        with contextlib.suppress(ValueError):
            checkpoint.begin(resume=True)


@pytest.mark.parametrize(
    "change",
    [
        {"values": np.full(3, np.nan)},
        {"features": np.array([0, 0, 1])},
        {"features": np.array([0.5, 1, 2])},
        {"features": np.array(2), "values": np.array(1.0)},
        {"intercept": float("nan")},
        {"n_iter": -5},
        {"nonzeros_touched": 10**30},
        {"problem": None},
    ],
)
def test_numbers_that_no_fit_has_written_are_refused(store, tmp_path, change):
    problem, path = problem_of(store), tmp_path / "c"
    bg.solve(problem, checkpoint=path, max_iter=1)
    with np.load(path) as file:
        header = json.loads(str(file["header"]))
    arrays = {"features": np.arange(3), "values": np.ones(3)}
    for name, value in change.items():
        (arrays if name in arrays else header)[name] = value
    with path.open("wb") as file:
        np.savez(file, header=np.array(json.dumps(header)), **arrays)
    with pytest.raises(ValueError, match=r"cannot be read as a checkpoint: .*delete it"):
        bg.solve(problem, checkpoint=path, resume=True)


def test_arguments_are_checked(store, tmp_path):
    problem = problem_of(store)
    with pytest.raises(ValueError, match="resume=True needs checkpoint"):
        bg.solve(problem, resume=True)
    with pytest.raises(ValueError, match="must name a file in an existing folder"):
        bg.solve(problem, checkpoint=tmp_path / "no" / "c")
    with pytest.raises(ValueError, match="needs a store or cluster"):
        bg.solve(made("squared", {}), checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match=r"memory='2G' needs a store or cluster=…"):
        bg.solve(made("squared", {}), memory="2G")
    with pytest.raises(ValueError, match=r"grid=\(1, 2\) needs cluster=…"):
        bg.solve_path(made("squared", {}), n_alphas=2, grid=(1, 2))
    assert bg.solve(problem, checkpoint=tmp_path / "new", resume=True).status == "converged"  # from the beginning


def test_sigterm_ends_a_fit_with_a_checkpoint_after_the_iteration(store, tmp_path):
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append("outside"))
    try:
        solution = bg.solve(
            problem_of(store),
            tol=1e-9,
            checkpoint=tmp_path / "c",
            callback=lambda record: os.kill(os.getpid(), signal.SIGTERM) if record.iteration == 2 else None,
        )
        assert solution.status == "interrupted"
        assert solution.n_iter == 3
        assert not heard
        os.kill(os.getpid(), signal.SIGTERM)
        assert heard == ["outside"]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_ranks_on_one_machine_share_its_cores():
    own = own_cores()
    assert share_of_cores([own]) == resolve_threads()
    assert share_of_cores([own] * 1000) == 1
    assert share_of_cores([own, frozenset([-1])]) == resolve_threads()  # each has cores of its own


def test_a_store_larger_than_memory_is_fitted_and_its_model_is_that_of_the_matrix(store, tmp_path):
    words = [store, "--alpha-ratio", 0.01, "--tol", 1e-8, "--standardize"]
    outside = fit(*words, "--memory", "100K", "--model", tmp_path / "a.npz", "--report", tmp_path / "a.html")
    assert outside.exit_code == 0, outside.output
    assert "is read a tile at a time: it would take about" in outside.output
    inside = fit(*words, "--model", tmp_path / "b.npz")
    assert inside.exit_code == 0, inside.output
    ours, other = bg.Model.load(tmp_path / "a.npz"), bg.Model.load(tmp_path / "b.npz")
    assert ours.coef == pytest.approx(other.coef, abs=1e-3)
    assert ours.objectives == pytest.approx(other.objectives, rel=1e-7)
    assert np.array_equal(ours.support, other.support)
    assert ours.aliases is None
    assert "too many columns of the store would have to be compared" in " ".join(outside.output.split())
    assert ours.quality.scores == pytest.approx(other.quality.scores, abs=1e-3)


def test_a_stores_weights_and_offsets_are_part_of_the_fit(tmp_path):
    data, random = bg.data.text_like(600, 400, 20.0), np.random.default_rng(0)
    weights, offset = random.integers(0, 3, 600).astype(float), random.standard_normal(600)
    convert(data, tmp_path / "w.store", sample_weight=weights, offset=offset)
    done = fit(tmp_path / "w.store", "--alpha", 0.001, "--standardize", "--model", tmp_path / "m.json", "--tol", 1e-9)
    assert done.exit_code == 0, done.output
    problem = bg.Problem(
        data, loss="logistic", alpha=0.001, sample_weight=weights, offset=offset, fit_intercept=True, standardize=True
    )
    model = bg.Model.load(tmp_path / "m.json")
    assert model.objectives[0] == pytest.approx(bg.solve(problem, tol=1e-9).objective, rel=1e-8)
    assert np.array_equal(model.support, bg.Model.of_solution(problem, bg.solve(problem)).support)


def test_the_command_refuses_what_it_cannot_do_and_says_what_it_can(store, tmp_path):
    for words, said in {
        (tmp_path / "d.npz", "--cluster", "mpi"): "--cluster mpi needs a store: blockgreedy data convert",
        (store, "--cluster", "spark"): "--cluster spark is not known; accepted: mpi",
        (store, "--grid", "2x2"): "--grid 2x2 needs --cluster",
        (store, "--cluster", "mpi", "--grid", "2+2"): "--grid 2+2 must be groups of rows x groups of columns",
        (store, "--resume"): "--resume needs --checkpoint",
        (store, "--memory", "much"): "--memory much must be a number of bytes",
        (store, "--memory", "100K", "--holdout", "0.2"): "--holdout 0.2 needs all of the data in memory",
        (store, "--memory", "100K", "--method", "scd"): "--method scd needs all of the data in memory",
    }.items():
        done = fit(*words, "--alpha", 0.01)
        assert done.exit_code == 2, done.output
        assert said in done.output


def test_ranks_on_a_path_share_the_cores_of_a_machine(monkeypatch):
    import blockgreedy.solvers.path as path

    heard = []
    monkeypatch.setattr(path, "threads_beside", lambda cluster: heard.append(cluster.size) or 1)
    run_in_threads(2, lambda ranks: bg.solve_path(made("squared", {}), n_alphas=2, cluster=ranks))
    assert heard == [2, 2]
