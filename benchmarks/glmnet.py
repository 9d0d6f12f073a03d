"""R's glmnet in a session of its own. Arrays travel in files; the clock is R's and runs around the fit alone.

It needs Rscript with the package glmnet (Debian: r-base-core, r-cran-glmnet; r-cran-domc for parallel folds).
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

SCRIPT = Path(__file__).with_suffix(".R")
FAMILIES = {"squared": "gaussian", "logistic": "binomial"}


@functools.cache
def version() -> str:
    """Raises where R or its glmnet is missing."""
    if not shutil.which("Rscript"):
        raise ModuleNotFoundError("Rscript is not installed (Debian: r-base-core, r-cran-glmnet)")
    command = ["Rscript", "-e", 'cat(as.character(packageVersion("glmnet")))']
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise ModuleNotFoundError("R has no package glmnet (Debian: r-cran-glmnet)")
    return done.stdout.strip()


class Session:
    """One R process with one problem loaded; ends with the object."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="glmnet-")
        command = ["Rscript", "--vanilla", str(SCRIPT)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.listen()

    def __del__(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.folder.cleanup()

    def ask(self, *words: object) -> tuple[float, float]:
        """Seconds of what was asked for, by the clock and of the processor."""
        assert self.process.stdin is not None
        self.process.stdin.write("\t".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        seconds, cpu_seconds = map(float, self.listen().split())
        return seconds, cpu_seconds

    def listen(self) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("answer "):  # R prints as it likes
                _, outcome, text = line.strip().split(maxsplit=2)
                if outcome == "failed":
                    raise RuntimeError(text)
                return text
        raise RuntimeError(f"R ended (exit code {self.process.wait()})")

    def load(self, X: Any, y: NDArray[np.float64], alphas: NDArray[np.float64], folds: Any = None) -> None:
        """``folds``: the fold of each row from 0, or nothing."""
        X = sp.csc_matrix(X, dtype=np.float64)
        X.sort_indices()
        parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
        for name, values in (parts | {"y": y, "alphas": alphas}).items():
            self.write(name, values, "<f8" if values.dtype.kind == "f" else "<i4")
        if folds is not None:
            self.write("folds", np.asarray(folds) + 1, "<i4")
        self.ask("load", self.folder.name)
        self.shape = (X.shape[1], len(alphas))

    def write(self, name: str, values: NDArray[Any], dtype: str) -> None:
        values.astype(dtype).tofile(Path(self.folder.name) / f"{name}.bin")

    def read(self, name: str, dtype: str = "<f8") -> NDArray[Any]:
        return np.fromfile(Path(self.folder.name) / f"{name}.bin", dtype=dtype)

    def coefs(self) -> Any:
        """Of the last path: CSC, p × k."""
        parts = (self.read("beta_data"), self.read("beta_indices", "<i4"), self.read("beta_indptr", "<i4"))
        return sp.csc_matrix(parts, shape=self.shape)
