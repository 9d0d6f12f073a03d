"""Clusters of Dask that a command names: one that runs somewhere, or workers that are started for the command."""

import contextlib
from collections.abc import Iterator
from typing import Any

from blockgreedy.base.threads import resolve_threads
from blockgreedy.cli.shell import fail
from blockgreedy.cli.texts import FAILED

LOCAL = "local"
SCHEME = "dask://"
_TO_CONNECT = 15  # seconds


def is_dask(cluster: str) -> bool:
    return cluster == LOCAL or cluster.startswith(SCHEME)


@contextlib.contextmanager
def client_of(cluster: str) -> Iterator[Any]:
    """``local``: a worker for each core; ``dask://host:port``: the scheduler there, also ``dask://tls://host:port``."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        fail(f"--cluster {cluster} needs Dask: pip install 'blockgreedy[dask]'", FAILED)
    with contextlib.ExitStack() as opened:
        try:
            if cluster == LOCAL:
                started = LocalCluster(
                    n_workers=resolve_threads(), threads_per_worker=1, dashboard_address=None, silence_logs=50
                )
                client = opened.enter_context(Client(opened.enter_context(started)))
            else:
                address = cluster.removeprefix(SCHEME)
                address = address if "://" in address else f"tcp://{address}"
                client = opened.enter_context(Client(address, timeout=_TO_CONNECT))
        except (OSError, ValueError) as error:
            fail(f"--cluster {cluster}: there is no scheduler to talk to ({error})", FAILED)
        yield client
