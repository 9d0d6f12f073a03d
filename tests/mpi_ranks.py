"""What the ranks of the tests of MPI run: python mpi_ranks.py NAME ARGUMENTS, started by mpirun.

``kill`` and its like are done by a rank to itself, at a named place of the fit.
"""

import os
import resource
import signal
import sys
import time
import warnings

from mpi4py import MPI

import blockgreedy as bg
from blockgreedy.backends.tiles import watch
from blockgreedy.backends.tiles.mpi import MpiRank
from blockgreedy.backends.tiles.solver import TileSolver
from blockgreedy.base import memory
from blockgreedy.problem.tiled_columns import shared_by
from blockgreedy.solvers import cluster
from blockgreedy.solvers.checkpoint import Checkpoint, CheckpointWarning
from test_tiles import LOSSES, OPTIONS, assert_same_optimum, made

WORLD = MPI.COMM_WORLD
PLACES = {
    "loading": (cluster, "check_tiles"),
    "gradient": (TileSolver, "_scan"),
    "model": (TileSolver, "_minimise"),
    "line search": (TileSolver, "_line_search"),
    "checkpoint": (Checkpoint, "write"),
}


def at(place, act, rank=1, times=3):
    """Makes a rank act when it is at a place of the fit for the third time; loading and rank 0's parts come once."""
    owner, name = PLACES[place]
    before, count = getattr(owner, name), 0

    def act_first(*args, **settings):
        nonlocal count
        count += 1
        if WORLD.rank == rank and count == (1 if place == "loading" else times):
            act()
        return before(*args, **settings)

    setattr(owner, name, act_first)


def to_itself(name):
    return lambda: os.kill(os.getpid(), getattr(signal, name))


def say(*words):
    if WORLD.rank == 0:
        print(*words, flush=True)


def problem_of(store, ratio=0.01, **options):
    problem = bg.Problem(bg.data.Store(store), loss="logistic", alpha=1.0, fit_intercept=True, **options)
    return problem.with_alpha(ratio * problem.alpha_max)


def optimum():
    """Every loss and option on every grid: pairs of ranks at the same time, then all four."""
    pair = WORLD.Split(WORLD.rank // 2, WORLD.rank)
    of_pair = [(1, 2), (2, 1)][WORLD.rank // 2]
    for loss in LOSSES:
        for name, options in OPTIONS.items():
            problem = made(loss, options, seed=len(name))
            grids = [(pair, of_pair), (WORLD, (2, 2)), (WORLD, (4, 1))]
            grids += [(MPI.COMM_SELF, (1, 1))] if WORLD.rank == 3 else []
            for ranks, grid in grids:
                solution = bg.solve(problem, cluster=ranks, grid=grid, tol=1e-9, n_threads=1)
                if ranks.rank == 0:
                    assert_same_optimum(problem, solution, 1e-9)
                assert ranks.bcast(solution.coef.tobytes()) == solution.coef.tobytes()
    say("all the same")


def fit(store, checkpoint, *words):
    """One fit; words: ``kill 1 gradient`` and the like, ``resume``, ``errors`` of one rank, a full disk."""
    acts = {"kill": "SIGKILL", "stop": "SIGSTOP", "terminate": "SIGTERM"}
    words = list(words)
    resume, tol = "resume" in words, 1e-7
    if words and words[0] in acts:
        at(words[2], to_itself(acts[words[0]]), int(words[1]))
    if "fail" in words:
        at("gradient", lambda: 1 / 0)
    if "full" in words:
        at("checkpoint", lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)), rank=0)
    if "small" in words and WORLD.rank == 1:
        memory.free = lambda: 1000
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", CheckpointWarning)
        try:
            problem = problem_of(store)
            solution = bg.solve(problem, cluster=WORLD, tol=tol, n_threads=1, checkpoint=checkpoint, resume=resume)
        except (ValueError, MemoryError) as error:
            print(f"rank {WORLD.rank}: {type(error).__name__}: {error}", flush=True)
            return
    for warning in heard:
        say(str(warning.message))
    say(solution.status, solution.n_iter, repr(solution.objective), solution.message)


def refusals(store):
    """Errors of which all ranks hear in step; the ranks are as good as new afterwards."""
    data = bg.data.text_like(400, 300, 10.0)

    def fail(record):
        raise RuntimeError("the callback failed")

    for settings, more in (({"alpha": 0.1 + WORLD.rank}, {}), ({"alpha": 0.001}, {"callback": fail})):
        try:
            bg.solve(bg.Problem(data, **settings), cluster=WORLD, **more)
        except (ValueError, RuntimeError) as error:
            print(f"rank {WORLD.rank}: {error}", flush=True)
    alone = bg.Problem(bg.data.Store(store), loss="logistic", alpha=1.0).alpha_max
    with shared_by(MpiRank(WORLD)):
        together = bg.Problem(bg.data.Store(store), loss="logistic", alpha=1.0).alpha_max
    assert abs(together - alone) <= 1e-14 * alone
    say("alpha_max is shared")


def slow(store):
    """A rank that computes for longer than others wait for a beat is not taken for dead."""
    watch.LOST, watch.BEAT = 2.5, 0.2
    at("gradient", lambda: time.sleep(5))
    say(bg.solve(problem_of(store), cluster=WORLD, n_threads=1).status)


def blas(store):
    """Threads of NumPy's BLAS before, during and after a fit."""
    from threadpoolctl import threadpool_info, threadpool_limits

    seen = []

    def look(_=None):
        seen.append(max(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"))

    with threadpool_limits(limits=2, user_api="blas"):
        look()
        bg.solve(problem_of(store), cluster=WORLD, n_threads=1, callback=look)
        look()
    say(seen[0], *sorted(set(seen[1:-1])), seen[-1])


def impatient(store, checkpoint, *words):
    """A fit in which the watch waits less long, so that the test does not."""
    watch.LOST, watch.BEAT = 3.0, 0.5
    fit(store, checkpoint, *words)


def command(*words):
    """The command line, with what a rank does to itself before ``--``."""
    own, arguments = list(words[: words.index("--")]), list(words[words.index("--") + 1 :])
    if own:
        at(own[2], to_itself({"kill": "SIGKILL", "user": "SIGUSR1"}[own[0]]), int(own[1]))
    sys.argv = ["blockgreedy", *arguments]
    from blockgreedy.cli import main

    main()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
