"""What every iteration of the family did: selected blocks, accepted features, their steps and gains. Plain data.

The trace looks at a run from time to time; telemetry has a row for each iteration. Its rows are of different lengths,
so they are kept end to end in flat arrays. CSV and Parquet files have one row for each iteration.
"""

from __future__ import annotations

import csv
import math
import os
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blockgreedy.base.files import replacing, replacing_text

COLUMNS = ("iteration", "selected", "accepted", "steps", "gains", "objective", "spectral_radius")
_LISTS: dict[str, Any] = {"selected": np.int64, "accepted": np.int64, "steps": np.float64, "gains": np.float64}


@dataclass(frozen=True)
class Iteration:
    """One row of a telemetry: what one iteration did."""

    iteration: int  # the first one is 1, as in the trace
    selected: NDArray[np.int64]  # blocks
    accepted: NDArray[np.int64]  # features, in the order in which they were accepted
    steps: NDArray[np.float64]  # what the update added to the weight of each of them
    gains: NDArray[np.float64]  # the decrease of the objective that each proposal guarantees if it alone is taken
    objective: float  # after the iteration, and a fit of the intercept that follows; nan where it was not computed
    spectral_radius: float  # of the accepted columns scaled to norm 1; nan where it was not computed


class Telemetry:
    """What every iteration of a run did.

    ``Telemetry()`` is empty; ``append`` adds one iteration, ``extend`` many at once from flat arrays, as the core has
    them. ``telemetry["objective"]`` is one column as an array. The columns "selected", "accepted", "steps" and
    "gains" have several entries for each iteration: they are lists of arrays.

    Examples
    --------
    >>> from blockgreedy.solvers.telemetry import Telemetry
    >>> telemetry = Telemetry()
    >>> telemetry.append(1, selected=[0, 2], accepted=[5, 17], steps=[0.5, -0.25], gains=[0.1, 0.02])
    >>> telemetry["accepted"][0].tolist()
    [5, 17]
    >>> {name: column.tolist() for name, column in telemetry.moves().items()}
    {'iteration': [1, 1], 'feature': [5, 17], 'step': [0.5, -0.25], 'gain': [0.1, 0.02]}
    """

    def __init__(self) -> None:
        # array.array grows in place, and an entry costs 8 bytes instead of an object
        self._numbers: dict[str, array[Any]] = {
            "iteration": array("q"),
            "objective": array("d"),
            "spectral_radius": array("d"),
        }
        self._flat: dict[str, array[Any]] = {
            name: array("q" if kind is np.int64 else "d") for name, kind in _LISTS.items()
        }
        self._counts: dict[str, array[Any]] = {"selected": array("q"), "accepted": array("q")}

    def append(
        self,
        iteration: int,
        *,
        selected: ArrayLike,
        accepted: ArrayLike,
        steps: ArrayLike,
        gains: ArrayLike,
        objective: float = math.nan,
        spectral_radius: float = math.nan,
    ) -> None:
        """Adds one iteration; ``accepted``, ``steps`` and ``gains`` are as long as each other."""
        blocks, features = np.asarray(selected, dtype=np.int64), np.asarray(accepted, dtype=np.int64)
        self.extend(
            [iteration],
            selected=blocks,
            selected_counts=[blocks.size],
            accepted=features,
            accepted_counts=[features.size],
            steps=steps,
            gains=gains,
            objective=[objective],
            spectral_radius=[spectral_radius],
        )

    def extend(
        self,
        iteration: ArrayLike,
        *,
        selected: ArrayLike,
        selected_counts: ArrayLike,
        accepted: ArrayLike,
        accepted_counts: ArrayLike,
        steps: ArrayLike,
        gains: ArrayLike,
        objective: ArrayLike | None = None,
        spectral_radius: ArrayLike | None = None,
    ) -> None:
        """Adds several iterations.

        ``selected`` holds the blocks of all of them end to end, ``selected_counts`` how many each has; likewise
        ``accepted`` and ``accepted_counts``, and ``steps`` and ``gains`` in the order of ``accepted``. Without
        ``objective`` or ``spectral_radius`` that column is nan.
        """
        numbers = np.atleast_1d(np.asarray(iteration, dtype=np.int64))
        unknown = np.full(len(numbers), math.nan)
        given: dict[str, Any] = {"selected": selected, "accepted": accepted, "steps": steps, "gains": gains}
        flat = {name: np.asarray(values, dtype=_LISTS[name]).ravel() for name, values in given.items()}
        counts = {
            "selected": np.asarray(selected_counts, dtype=np.int64),
            "accepted": np.asarray(accepted_counts, dtype=np.int64),
        }
        rows = {
            "iteration": numbers,
            "objective": unknown if objective is None else np.asarray(objective, dtype=np.float64),
            "spectral_radius": unknown if spectral_radius is None else np.asarray(spectral_radius, dtype=np.float64),
        }
        for name, values in [*counts.items(), *rows.items()]:
            _check_length(name, len(values), len(numbers), "iterations")
        for name, values in flat.items():
            total = int(counts["selected" if name == "selected" else "accepted"].sum())
            _check_length(name, len(values), total, "entries by its counts")
        for kept, new in ((self._numbers, rows), (self._flat, flat), (self._counts, counts)):
            for name, values in new.items():
                kept[name].frombytes(np.ascontiguousarray(values).tobytes())

    def correct_objective(self, iteration: int, objective: float) -> None:
        """Replaces the objective of the last row, if it is that of this iteration and has one."""
        numbers, objectives = self._numbers["iteration"], self._numbers["objective"]
        if len(numbers) and numbers[-1] == iteration and not math.isnan(objectives[-1]):
            objectives[-1] = objective

    def __len__(self) -> int:
        return len(self._numbers["iteration"])

    def __repr__(self) -> str:
        return f"Telemetry({len(self):,} iterations, {len(self._flat['accepted']):,} accepted features)"

    def __getitem__(self, name: str) -> Any:
        """One column: an array, or for columns with several entries in each iteration a list of arrays."""
        if name in self._numbers:
            return np.array(self._numbers[name])
        if name not in _LISTS:
            raise KeyError(f"{name!r} is not a column of the telemetry; there are {', '.join(COLUMNS)}")
        ends = np.cumsum(self._counts["selected" if name == "selected" else "accepted"], dtype=np.int64)
        return np.split(np.array(self._flat[name]), ends[:-1]) if len(ends) else []

    def __iter__(self) -> Iterator[Iteration]:
        for row in zip(*self.columns().values(), strict=True):
            iteration, selected, accepted, steps, gains, objective, radius = row
            yield Iteration(int(iteration), selected, accepted, steps, gains, float(objective), float(radius))

    def columns(self) -> dict[str, Any]:
        """All columns, one row for each iteration: ``pandas.DataFrame(telemetry.columns())`` is a table of them."""
        return {name: self[name] for name in COLUMNS}

    def moves(self) -> dict[str, NDArray[Any]]:
        """One row for each accepted feature: its iteration, the feature, its step and its gain."""
        counts = np.array(self._counts["accepted"], dtype=np.int64)
        return {
            "iteration": np.repeat(self["iteration"], counts),
            "feature": np.array(self._flat["accepted"]),
            "step": np.array(self._flat["steps"]),
            "gain": np.array(self._flat["gains"]),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a Parquet file if the name ends in .parquet, else CSV."""
        if os.fspath(path).lower().endswith(".parquet"):
            self.to_parquet(path)
        else:
            self.to_csv(path)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes one line for each iteration, with all digits; entries of a list are divided by spaces.

        The file is written under a temporary name and then renamed.
        """
        with replacing_text(path) as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            columns = [
                [_line(row) for row in self[name]] if name in _LISTS else map(repr, self[name].tolist())
                for name in COLUMNS
            ]
            writer.writerows(zip(*columns, strict=True))

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str]) -> Telemetry:
        """Reads what ``to_csv`` wrote."""
        telemetry = cls()
        with open(path, newline="") as file:
            reader = csv.reader(file)
            if tuple(next(reader, ())) != COLUMNS:
                raise ValueError(f"{path} is not a telemetry: its first line must be {','.join(COLUMNS)}")
            for number, line in enumerate(reader, start=2):
                try:
                    row = dict(zip(COLUMNS, line, strict=True))
                    lists = {name: np.array(row[name].split(), dtype=kind) for name, kind in _LISTS.items()}
                    telemetry.append(
                        int(row["iteration"]),
                        **lists,
                        objective=float(row["objective"]),
                        spectral_radius=float(row["spectral_radius"]),
                    )
                except ValueError as error:
                    raise ValueError(f"{path}, line {number}, is no iteration as to_csv writes it: {error}") from None
        return telemetry

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes a Parquet file with one row for each iteration; needs pyarrow."""
        arrow, parquet = _pyarrow()
        columns = {name: self[name] for name in self._numbers}
        for name in _LISTS:
            counts = np.array(self._counts["selected" if name == "selected" else "accepted"], dtype=np.int64)
            offsets = np.concatenate([[0], np.cumsum(counts)])
            columns[name] = arrow.LargeListArray.from_arrays(offsets, np.array(self._flat[name]))
        with replacing(path) as file:
            parquet.write_table(arrow.table({name: columns[name] for name in COLUMNS}), file)

    @classmethod
    def from_parquet(cls, path: str | os.PathLike[str]) -> Telemetry:
        """Reads what ``to_parquet`` wrote; needs pyarrow."""
        arrow, parquet = _pyarrow()
        try:
            table = parquet.read_table(path)
        except arrow.ArrowInvalid as error:
            raise ValueError(f"{path} is not a telemetry: {error}") from None
        if tuple(table.column_names) != COLUMNS:
            raise ValueError(f"{path} is not a telemetry: its columns must be {', '.join(COLUMNS)}")
        columns = {name: table[name].combine_chunks() for name in COLUMNS}
        telemetry = cls()
        telemetry.extend(
            columns["iteration"].to_numpy(),
            **{name: columns[name].flatten().to_numpy(zero_copy_only=False) for name in _LISTS},
            selected_counts=columns["selected"].value_lengths().to_numpy(),
            accepted_counts=columns["accepted"].value_lengths().to_numpy(),
            objective=columns["objective"].to_numpy(),
            spectral_radius=columns["spectral_radius"].to_numpy(),
        )
        return telemetry


def _check_length(name: str, found: int, wanted: int, what: str) -> None:
    if found != wanted:
        raise ValueError(f"{name} has {found} values, there are {wanted} {what}")


def _line(values: NDArray[Any]) -> str:
    return " ".join(map(repr, values.tolist()))


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError(
            "Parquet files need pyarrow: pip install 'blockgreedy[data]' (or use to_csv, which needs nothing)"
        ) from None
    return pyarrow, pyarrow.parquet
