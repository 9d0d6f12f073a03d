"""Checkpoints: what a fit on tiles writes after every outer iteration, and a later fit goes on from.

A file holds sparse weights in the units of the user, so that any grid of ranks can go on from those of any other. It
is an ``.npz`` archive whatever its name is: ``features``, ``values``, and ``header``, a JSON text.
"""

from __future__ import annotations

import json
import os
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.base.files import replacing
from blockgreedy.base.reading import archive_of, explained, parsed_json
from blockgreedy.problem.tiled_columns import TiledColumns

if TYPE_CHECKING:
    from blockgreedy.problem.problem import Problem

Array = NDArray[np.float64]

_FORMAT, _VERSION = "blockgreedy checkpoint", 1
_SAMPLE = 1 << 20  # entries of a matrix in memory that are looked at to recognise it
_COUNTERS = ("n_iter", "nonzeros_touched")


class CheckpointWarning(RuntimeWarning):
    """A checkpoint could not be written; the fit goes on."""


@dataclass(frozen=True)
class Saved:
    """What a checkpoint holds."""

    features: NDArray[np.int64]
    values: Array
    intercept: float
    n_iter: int
    nonzeros_touched: int

    def can_be_of(self, problem: Problem) -> bool:
        """Whether what a file said is weights and counters at all; types are not known before."""
        features, values, counters = self.features, self.values, (self.n_iter, self.nonzeros_touched)
        if not all(type(count) is int and 0 <= count < 2**63 for count in counters):
            return False
        if type(self.intercept) is not float or not np.isfinite(self.intercept):
            return False
        if features.dtype != np.int64 or values.dtype != np.float64 or features.shape != values.shape:
            return False
        if features.ndim != 1 or len(np.unique(features)) < len(features) or not np.all(np.isfinite(values)):
            return False
        return bool(np.all((features >= 0) & (features < problem.n_features)))

    def start(self, n_features: int) -> tuple[Array, float]:
        coef = np.zeros(n_features)
        coef[self.features] = self.values
        return coef, self.intercept


class Checkpoint:
    """The file of a fit. Only rank 0 reads and writes it."""

    def __init__(self, path: str | os.PathLike[str], problem: Problem) -> None:
        self.path, self.problem = Path(path), problem
        self.failure = ""  # why the last iteration is not in the file
        self._fingerprint: dict[str, Any] | None = None
        if self.path.is_dir() or not self.path.parent.is_dir():
            raise ValueError(f"checkpoint='{path}' must name a file in an existing folder")

    @property
    def fingerprint(self) -> dict[str, Any]:
        if self._fingerprint is None:
            self._fingerprint = fingerprint_of(self.problem)
        return self._fingerprint

    def begin(self, resume: bool) -> Saved | None:
        """Where to go on from; None: from the beginning."""
        if not self.path.exists():
            return None
        if not resume:
            raise ValueError(f"checkpoint='{self.path}' exists already; go on from it with resume=True, or delete it")
        return self._read()

    def _read(self) -> Saved:
        name = f"checkpoint='{self.path}'"
        with explained(f"{name} cannot be read as a checkpoint", "; delete it to start anew"):
            with archive_of(self.path) as file:
                header = parsed_json(str(file["header"]))
                features, values = file["features"], file["values"]
            if header["format"] != _FORMAT:
                raise ValueError("it is another kind of file")
            version, theirs = header["version"], dict(header["problem"])
            saved = Saved(features, values, header["intercept"], *(header[name] for name in _COUNTERS))
        if version != _VERSION:
            raise ValueError(f"{name} has version {version!r}, and this version of blockgreedy reads {_VERSION}")
        self._compare(name, theirs)
        if not saved.can_be_of(self.problem):
            raise ValueError(
                f"{name} cannot be read as a checkpoint: its weights are damaged; delete it to start anew"
            )
        return saved

    def _compare(self, name: str, theirs: dict[str, Any]) -> None:
        ours: dict[str, Any] = json.loads(json.dumps(self.fingerprint))
        for what in ours:
            if not _is_same(theirs.get(what), ours[what]):
                raise ValueError(
                    f"{name} is of another problem: {what} is {theirs.get(what)} there and {ours[what]} here; give "
                    "the same problem, or the name of another file"
                )

    def write(
        self, features: NDArray[Any], values: Array, intercept: float, n_iter: int, nonzeros_touched: int
    ) -> None:
        """Replaces the file. Where that fails the earlier one stays, and a warning says so once."""
        header = {"format": _FORMAT, "version": _VERSION, "problem": self.fingerprint, "intercept": intercept}
        header |= {"n_iter": n_iter, "nonzeros_touched": nonzeros_touched}
        try:
            with replacing(self.path) as file:
                np.savez(file, header=np.array(json.dumps(header)), features=features.astype(np.int64), values=values)
        except OSError as error:
            if not self.failure:
                kept = "the earlier one is kept" if self.path.exists() else "there is none yet"
                warnings.warn(
                    f"the checkpoint cannot be written to {self.path} after iteration {n_iter}: "
                    f"{error.strerror or error}; {kept}, and the fit goes on",
                    CheckpointWarning,
                    stacklevel=2,
                )
            self.failure = error.strerror or str(error)
        else:
            self.failure = ""


def _is_same(theirs: Any, ours: Any) -> bool:
    if isinstance(theirs, float) and isinstance(ours, float):
        # an alpha that is a part of alpha_max depends on the number of ranks in its last bits
        return abs(theirs - ours) <= 1e-12 * abs(ours)
    return bool(theirs == ours)


def fingerprint_of(problem: Problem) -> dict[str, Any]:
    """What makes the problem the same one: sizes, settings, and checksums of what is given by row or feature."""
    design = problem.design
    return {
        "n_samples": problem.n_samples,
        "n_features": problem.n_features,
        "loss": problem.loss.name,
        "huber_delta": getattr(problem.loss, "delta", None),
        "alpha": problem.alpha,
        "l2": problem.l2,
        "fit_intercept": problem.fit_intercept,
        "standardize": problem.standardize,
        "dtype": str(design.dtype),
        "the checksum of X": design.tiles.checksum() if isinstance(design, TiledColumns) else _of_matrix(design),
        **{
            f"the checksum of {name}": _of_array(getattr(problem, name))
            for name in ("y", "row_weights", "offset", "penalty_weights", "lower", "upper")
        },
    }


def _of_matrix(design: Any) -> int:
    """Of some of its entries: a whole matrix takes as long as a pass over it."""
    X = design.columns
    parts = [X] if isinstance(X, np.ndarray) else [X.indptr, X.indices, X.data]
    total = 0
    for part in parts:
        flat = part.ravel(order="K")
        total = _crc(flat[:: len(flat) // _SAMPLE + 1], total)
    return total


def _of_array(values: Any) -> int | float | None:
    if isinstance(values, np.ndarray):
        return _crc(values)
    return None if values is None or np.isinf(values) else float(values)


def _crc(values: NDArray[Any], before: int = 0) -> int:
    plain: Any = np.ascontiguousarray(values)
    return zlib.crc32(plain, before)
