"""Which data the experiments run on: files of a folder, and generated look-alikes of the paper's sets."""

from __future__ import annotations

import hashlib
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.data import COMPRESSION_SUFFIXES, SVMLIGHT_SUFFIXES, Dataset, load, shaped
from blockgreedy.experiments import paper
from blockgreedy.problem.columns import as_columns, unit_columns
from blockgreedy.problem.problem import Problem

N_ALPHAS = 4  # lambda_0 "is followed by the next three consecutive powers of ten"
_ALIASES = {"real-sim": "realsim", "rcv1": "reuters", "rcv1_train": "reuters"}  # names of LIBSVM's files
# Of the look-alikes: so that a run of a few seconds makes some hundred iterations on two cores.
_SCALES = {"reuters": 1.0, "news20": 0.3, "realsim": 0.5, "kdda": 0.02}
_FULL_SCALES = {"reuters": 1.0, "news20": 1.0, "realsim": 1.0, "kdda": 0.1}


@dataclass(frozen=True)
class Source:
    """Where a set comes from: a file, or the generator if there is none."""

    name: str
    path: Path | None = None
    scale: float = 1.0

    def read(self, seed: int, n_threads: int | None) -> Dataset:
        if self.path is not None:
            return load(self.path)
        return shaped(self.name, seed, self.scale, n_threads)  # type: ignore[arg-type]

    def checksum(self, dataset: Dataset) -> str:
        """SHA-256 of the file, as sha256sum says it; of a generated set, of the bytes of its arrays."""
        if self.path is not None:
            with self.path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        X: Any = dataset.X
        digest = hashlib.sha256()
        for array in (X.indptr, X.indices, X.data, dataset.y) if hasattr(X, "indptr") else (X, dataset.y):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class SetFacts:
    """A set in numbers, without its data."""

    name: str
    origin: str  # a sentence fit for a table
    generated: bool
    n_features: int
    n_samples: int
    nonzeros: int
    empty_columns: int
    alpha_max: float
    alphas: tuple[float, ...]  # lambda_0 first
    f_zero: float  # objective at w = 0
    ns_per_nonzero: float = math.nan  # of a scan on one thread, measured in this run
    read_seconds: float = math.nan
    sha256: str = ""  # of the file; of a generated set, of its arrays
    scale: float = 1.0  # of a generated set

    @property
    def lambda_0(self) -> float:
        return self.alphas[0]

    @property
    def in_paper(self) -> paper.DataSet | None:
        return paper.SETS.get(self.name)

    @property
    def is_the_papers(self) -> bool:
        """Whether it has the paper's size exactly; otherwise it only stands in for the paper's set."""
        own = self.in_paper
        ours = (self.n_features, self.n_samples, self.nonzeros)
        return own is not None and ours == (own.n_features, own.n_samples, own.nonzeros)


def find_files(folder: Path) -> dict[str, Path]:
    """The data files of a folder by the name of their set, the paper's sets first."""
    if not folder.is_dir():
        raise FileNotFoundError(f"--data-dir (or BLOCKGREEDY_DATA) must name an existing folder, got {str(folder)!r}")
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        name = _set_name(path)
        if name is None:
            continue
        if name in found:
            raise ValueError(f"{found[name].name} and {path.name} are both the set {name!r}; keep one of them")
        found[name] = path
    order = {name: k for k, name in enumerate(paper.SETS)}
    return dict(sorted(found.items(), key=lambda item: (order.get(item[0], len(order)), item[0])))


def _set_name(path: Path) -> str | None:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSION_SUFFIXES:
        suffixes.pop()
    is_data = suffixes[-1:] == [".npz"] or (bool(suffixes) and suffixes[-1] in SVMLIGHT_SUFFIXES)
    name = path.name.split(".")[0].lower()
    if not is_data or not path.is_file() or name in ("readme", "license", "notes"):
        return None
    return _ALIASES.get(name, name)


def choose(folder: Path | None, wanted: list[str], full: bool) -> list[Source]:
    """The sets of a run.

    Those of the folder; without a folder, or one without data, look-alikes of the paper's text sets. ``full`` adds
    look-alikes of every set of the paper that is missing. ``wanted`` picks by name, generating what is missing.
    """
    files = {} if folder is None else find_files(folder)
    scales = _FULL_SCALES if full else _SCALES
    if wanted:
        unknown = [name for name in wanted if name not in files and name not in paper.SETS]
        if unknown:
            accepted = ", ".join(map(repr, dict.fromkeys([*files, *paper.SETS])))
            raise ValueError(f"--sets {','.join(wanted)}: {unknown[0]!r} is no known set; accepted are {accepted}")
        names = list(dict.fromkeys(wanted))
    elif files:
        names = [*files, *([name for name in paper.SETS if name not in files] if full else [])]
    else:
        names = [name for name in paper.SETS if full or name != "kdda"]
    return [Source(name, files.get(name), scales.get(name, 1.0)) for name in names]


def data_folder(given: Path | None) -> Path | None:
    """--data-dir, else the folder that BLOCKGREEDY_DATA names, else none."""
    named = os.environ.get("BLOCKGREEDY_DATA")
    return given if given is not None else Path(named) if named else None


def prepare(source: Source, *, raw: bool, seed: int, n_threads: int | None) -> tuple[Problem, SetFacts]:
    """The logistic problem of a set (alpha is set later) and its facts; columns of unit norm unless raw."""
    dataset = source.read(seed, n_threads)
    X: Any = as_columns(dataset.X, n_threads) if raw else unit_columns(dataset.X, n_threads)
    problem = Problem(X, dataset.y, loss="logistic", alpha=1.0)
    if not problem.alpha_max > 0:
        raise ValueError(f"{source.name}: no feature has anything to do with the labels (alpha_max is 0)")
    counts = _column_counts(X)
    facts = SetFacts(
        name=source.name,
        origin="generated look-alike" if source.path is None else f"file {source.path.name}",
        generated=source.path is None,
        n_features=problem.n_features,
        n_samples=problem.n_samples,
        nonzeros=int(counts.sum()),
        empty_columns=int(np.count_nonzero(counts == 0)),
        alpha_max=problem.alpha_max,
        alphas=alphas_of(problem.alpha_max),
        f_zero=problem.objective(np.zeros(problem.n_features)),
        sha256=source.checksum(dataset),
        scale=source.scale,
    )
    return problem, facts


def alphas_of(alpha_max: float) -> tuple[float, ...]:
    """lambda_0, the largest power of ten with any nonzero weight (so below alpha_max), and the next three."""
    exponent = math.ceil(math.log10(alpha_max)) - 1
    while _power(exponent) >= alpha_max:  # the logarithm may be off by its last bit
        exponent -= 1
    while _power(exponent + 1) < alpha_max:
        exponent += 1
    return tuple(_power(exponent - k) for k in range(N_ALPHAS))


def alpha_text(alpha: float) -> str:
    """1e-4 rather than 0.0001 or 1e-04."""
    exponent = round(math.log10(alpha)) if alpha > 0 else 0
    return f"1e{exponent}" if alpha > 0 and _power(exponent) == alpha else f"{alpha:g}"


def _power(exponent: int) -> float:
    return float(f"1e{exponent}")  # 10.0**-5 is not the double nearest to 1e-5


def _column_counts(X: Any) -> NDArray[np.int64]:
    return np.asarray(np.diff(X.indptr) if hasattr(X, "indptr") else np.count_nonzero(X, axis=0), dtype=np.int64)
