"""What commands print as JSON and save in models: facts of the data, the problem and the run, by name."""

import math
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.base.design import TiledDesign
from blockgreedy.base.surroundings import surroundings
from blockgreedy.data import Dataset
from blockgreedy.problem.problem import Problem


def pick(record: Any, names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names.split()}


def data_facts(data: Path, dataset: Dataset, problem: Problem) -> dict[str, Any]:
    X = dataset.X
    return {
        "data": str(data),
        **pick(problem, "n_samples n_features"),
        "nonzeros_X": int(X.n_entries if isinstance(X, TiledDesign) else X.nnz if hasattr(X, "nnz") else X.size),
    }


def finite(facts: Mapping[str, Any]) -> dict[str, Any]:
    """For JSON, which has no nan and no inf."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in facts.items()}


def numbers(values: NDArray[np.float64]) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]


def settings_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What a saved model says of how it was made."""
    command = shlex.join(["blockgreedy", *sys.argv[1:]])
    facts = {name: _readable(value) for name, value in facts.items()}
    return {"command": _readable(command), **finite(facts), **surroundings()}


def _readable(value: Any) -> Any:
    """File names may hold bytes that are no text."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
