"""Options of fits that read a store tile by tile: in how much memory, by which processes, with which checkpoint."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from blockgreedy.backends.tiles.needs import check_share_of_tiles
from blockgreedy.base.memory import bytes_of, bytes_text, free
from blockgreedy.cli.shell import failures, note, option
from blockgreedy.cli.texts import WRONG_USE
from blockgreedy.cli.together import Company
from blockgreedy.data import Dataset
from blockgreedy.data.store import STORE_SUFFIX, Store

_of_cluster = partial(option, "Stores and clusters")
_IN_MEMORY = 3  # times its entries, which a store takes while it becomes one matrix, and the fit of it


@dataclass(frozen=True, kw_only=True)
class StoreOptions:
    cluster: str | None = _of_cluster(
        None,
        "--cluster",
        "Fit a store in several processes (default: in one). mpi: those that mpirun or srun starts; local: one Dask "
        "worker for each core of this machine; dask://HOST:PORT: the workers of that Dask scheduler.",
    )
    grid: str | None = _of_cluster(
        None,
        "--grid",
        "With --cluster: how the matrix is divided among the processes, as groups of rows x groups of columns, such "
        "as 2x4 for 8 processes (default: the grid with the shortest messages).",
    )
    checkpoint: Path | None = _of_cluster(
        None, "--checkpoint", "Stores: write the weights to this file after every iteration, for --resume."
    )
    resume: bool = _of_cluster(
        False,
        "--resume",
        "Go on from the file of --checkpoint if it exists; another number of processes may have written it.",
    )
    memory: str | None = _of_cluster(
        None,
        "--memory",
        "Stores: memory that the data may take, such as 2G (default: what is free); a larger store is read a tile at "
        "a time, which is slower.",
    )

    def silenced(self) -> Self:
        """For processes other than the first one: nothing is written or said."""
        changes = {"model": None, "report": None, "trace": None, "as_json": False, "quiet": True}
        return replace(self, **changes)  # type: ignore[arg-type]

    @property
    def parsed_grid(self) -> tuple[int, int] | None:
        if self.grid is None:
            return None
        parts = self.grid.lower().replace("×", "x").split("x")
        if len(parts) != 2 or not all(part.isdigit() and int(part) > 0 for part in parts):
            raise ValueError(f"grid={self.grid!r} must be groups of rows x groups of columns, such as 2x4")
        return int(parts[0]), int(parts[1])

    def check_store(self, data: Path, method: str, holdout: float | None, dtype: str | None) -> None:
        """Refuses what needs a store, or what fits of a store on several processes cannot do."""
        if self.memory is not None:
            bytes_of("memory", self.memory)
        if self.parsed_grid is not None and self.cluster is None:
            raise ValueError(f"grid={self.grid!r} needs --cluster, whose processes it arranges")
        if self.resume and self.checkpoint is None:
            raise ValueError("resume=True needs --checkpoint, the file to go on from")
        for name, value in (("cluster", self.cluster), ("checkpoint", self.checkpoint), ("memory", self.memory)):
            if value is None:
                continue
            if data.suffix.lower() != STORE_SUFFIX:
                stem = data.name.split(".")[0] or "data"
                raise ValueError(
                    f"{name}={str(value)!r} needs a store: blockgreedy data convert {data} {stem}{STORE_SUFFIX}, "
                    f"then blockgreedy fit {stem}{STORE_SUFFIX}"
                )
        if self.cluster is not None or self.checkpoint is not None:
            _refuse(method, holdout, dtype)

    def stored(self, data: Path, company: Company) -> Dataset | None:
        """The store itself in place of a matrix; None: what is there is to be read into memory."""
        if data.suffix.lower() != STORE_SUFFIX:
            return None
        store = Store(data)
        wanted = _IN_MEMORY * store.n_entries * (4 + store.dtype.itemsize)
        allowed = free() if self.memory is None else bytes_of("memory", self.memory)
        is_large = allowed is not None and wanted > allowed
        of_rows = store.sample_weight is not None or store.offset is not None
        if company.cluster is None and self.checkpoint is None and not is_large and not of_rows:
            return None
        options: Any = self
        with failures(code=WRONG_USE):
            _refuse(options.method, options.holdout, options.dtype)
        if not store.labelled:
            raise ValueError(f"{data} has no labels; convert data that has")
        if is_large and company.cluster is None and not options.quiet:
            why = f"it would take about {bytes_text(wanted)} in memory, of {bytes_text(allowed or 0)}"
            note(f"{data} is read a tile at a time: {why}")
        check_share_of_tiles(store, company.ranks, company.threads(options.n_threads))
        return Dataset(
            store,
            store.labels,
            store.feature_names,
            name=store.name,
            index_base=store.index_base,
            encoding=store.encoding,
        )


def rows_of(dataset: Dataset) -> dict[str, Any]:
    """What a store knows of its rows beside their labels."""
    X = dataset.X
    return {"sample_weight": X.sample_weight, "offset": X.offset} if isinstance(X, Store) else {}


def _refuse(method: str, holdout: float | None, dtype: str | None) -> None:
    tiles = "a store that is read a tile at a time, or by several processes"
    if method != "auto":
        raise ValueError(f"method={method!r} needs all of the data in memory; {tiles}, is fitted by --method auto")
    if holdout is not None:
        raise ValueError(
            f"holdout={holdout:g} needs all of the data in memory; for {tiles}, convert the rows to score on to a "
            "store of their own, and run blockgreedy predict on it"
        )
    if dtype is not None:
        raise ValueError(f"dtype={dtype!r} is for data in memory; give it to data convert, which makes the store")
