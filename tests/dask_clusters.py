"""Clusters of Dask on this machine, for tests; they are skipped where Dask is not installed."""

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

distributed = pytest.importorskip("distributed", reason="Dask is not installed")


def started(**options):
    """Workers in processes of their own, which are started again when they die."""
    settings = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": "1GB"}
    return distributed.LocalCluster(dashboard_address=":0", silence_logs=50, **{**settings, **options})


@contextlib.contextmanager
def scheduler_and_workers():
    """Processes of their own, as `dask scheduler` and `dask worker` start them."""
    scheduler_file = str(Path(tempfile.mkdtemp()) / "scheduler.json")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    dask_command = [sys.executable, "-m", "dask"]
    own = ["--scheduler-file", scheduler_file, "--no-dashboard"]
    scheduler = subprocess.Popen([*dask_command, "scheduler", "--host", "127.0.0.1", "--port", "0", *own], **quiet)
    command = [*dask_command, "worker", "--nthreads", "1", "--no-nanny", *own]
    workers = [subprocess.Popen(command, **quiet) for _ in range(2)]
    try:
        deadline = time.perf_counter() + 20
        while not Path(scheduler_file).exists() and time.perf_counter() < deadline:
            time.sleep(0.05)
        yield scheduler, json.loads(Path(scheduler_file).read_text())["address"]
    finally:
        for process in [*workers, scheduler]:
            process.kill()
            process.wait()
