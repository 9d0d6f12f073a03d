"""What must hold of damaged files: what reads them works, or says in one sentence which file is wrong."""

from __future__ import annotations

import io
import resource
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import blockgreedy as bg
from hunt.case import Case
from hunt.outcome import Outcome

_MEMORY = 4 << 30  # bytes that a damaged length may ask for before it gets a MemoryError
_READ = (ValueError, OSError)  # what a reader may raise, with the name of the file


def check_damage(case: Case, outcome: Outcome) -> None:
    name = case.use["file"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        inside, content = damaged(case)
        for part, whole in sound_files(case)[name].items():
            (path if not part else path / part).parent.mkdir(exist_ok=True)
            (path if not part else path / part).write_bytes(content if part == inside else whole)
        try:
            with limited_memory(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                READERS[path.suffix](path, case)
            outcome.statuses.append("read")
        except _READ as error:
            outcome.statuses.append("refused")
            # exactly one of these classes of our own: a UnicodeDecodeError is no sentence
            names = {name, inside} - {""}
            if not any(known in str(error) for known in names) or type(error) is UnicodeDecodeError:
                outcome.found("unnamed", f"{type(error).__name__} does not name {name}: {str(error)[:200]}")


# Reading.


def _read_model(path: Path, case: Case) -> None:
    bg.Model.load(path).predict(case.X)


def _read_data(path: Path, case: Case) -> None:
    bg.load(path, **({"target": "y"} if path.suffix in (".csv", ".feather", ".parquet") else {}))


def _read_store(path: Path, case: Case) -> None:
    store = bg.data.Store(path)
    bg.solve(bg.Problem(store, loss="logistic", alpha=0.01), n_threads=1, max_seconds=5.0)


def _resume(path: Path, case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = bg.data.convert(bg.Dataset(_sparse(case.X), case.y), Path(folder) / "other.store")
        problem = bg.Problem(store, loss="logistic", alpha=0.01)
        bg.solve(problem, checkpoint=path, resume=True, n_threads=1, max_seconds=5.0)


def _read_npz(path: Path, case: Case) -> None:
    (_read_model if path.name == "model.npz" else _read_data)(path, case)


READERS: dict[str, Callable[[Path, Case], None]] = {
    ".npz": _read_npz, ".svm": _read_data, ".csv": _read_data, ".feather": _read_data, ".parquet": _read_data,
    ".store": _read_store, ".checkpoint": _resume,
}  # fmt: skip


@contextmanager
def limited_memory() -> Iterator[None]:
    """A length of 2^60 bytes is a MemoryError here, and no machine that swaps."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


# Making and damaging.


def _sparse(X: np.ndarray) -> Any:
    import scipy.sparse as sp

    return sp.csr_array(np.where(np.abs(X) < 0.3, 0.0, X))


def sound_files(case: Case) -> dict[str, dict[str, bytes]]:
    """Every file of this case, undamaged: a store has several, the others one without a name."""
    return _sound_files(case.X.tobytes(), case.y.tobytes(), case.X.shape)


@cache
def _sound_files(numbers: bytes, targets: bytes, shape: tuple[int, int]) -> dict[str, dict[str, bytes]]:
    import pandas as pd

    X, y = np.frombuffer(numbers).reshape(shape), np.frombuffer(targets)
    dataset = bg.Dataset(_sparse(X), y)
    problem = bg.Problem(dataset.X, y, loss="logistic", alpha=0.01)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(shape[1])]).assign(
        y=y, c=["a", "bb", "c"] * (shape[0] // 3)
    )
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        bg.Model.of_solution(problem, bg.solve(problem), dataset).save(at / "model.npz")
        bg.save(dataset, at / "data.npz")
        rows = [" ".join(f"{j + 1}:{v}" for j, v in enumerate(row) if v) for row in dataset.X.toarray()]
        (at / "data.svm").write_text("".join(f"{label:g} {row}\n" for label, row in zip(y, rows, strict=True)))
        frame.to_csv(at / "data.csv", index=False)
        frame.to_feather(at / "data.feather")
        frame.to_parquet(at / "data.parquet")
        store = bg.data.convert(dataset, at / "made.store", row_groups=2, column_groups=2)
        stored = bg.Problem(store, loss="logistic", alpha=0.01)
        bg.solve(stored, checkpoint=at / "fit.checkpoint", max_iter=2)
        files = {path.name: {"": path.read_bytes()} for path in at.iterdir() if path.is_file()}
        files["made.store"] = {path.name: path.read_bytes() for path in sorted((at / "made.store").iterdir())}
        return files


def damaged(case: Case) -> tuple[str, bytes]:
    """(which file of a store, what is in it now)."""
    rng = np.random.default_rng(case.use["seed"])
    parts = sound_files(case)[case.use["file"]]
    part = list(parts)[int(rng.integers(len(parts)))]
    how, whole = case.use["damage"], parts[part]
    is_archive = whole[:2] == b"PK"
    if how.startswith("member") or (how == "header" and is_archive):
        return part, (_damaged_archive(rng, how, whole) if is_archive else _changed(rng, "bytes", whole))
    return part, _changed(rng, how, whole)


def _changed(rng: np.random.Generator, how: str, whole: bytes) -> bytes:
    content, size = bytearray(whole), max(len(whole), 1)
    if how == "truncated":
        return whole[: int(rng.integers(size))]
    if how == "inserted":
        at = int(rng.integers(size))
        return whole[:at] + rng.bytes(int(rng.integers(1, 9))) + whole[at:]
    if how == "zeros":
        at = int(rng.integers(size))
        content[at : at + 8] = bytes(len(content[at : at + 8]))
        return bytes(content)
    reach = min(size, 128) if how == "header" else size
    for at in rng.integers(0, reach, int(rng.integers(1, 5))):
        content[at : at + 1] = (
            rng.bytes(1) if rng.random() < 0.7 else bytes([content[at] ^ (1 << int(rng.integers(8)))])
        )
    return bytes(content)


def _damaged_archive(rng: np.random.Generator, how: str, whole: bytes) -> bytes:
    """With the checksums of what is in it now: a writer that went wrong, or someone's edit."""
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = list(members)[int(rng.integers(len(members)))]
    if how == "member missing":
        del members[name]
    elif how == "member cut":
        members[name] = members[name][: int(rng.integers(len(members[name])))]
    elif how == "member of others":
        members[name] = members[list(members)[int(rng.integers(len(members)))]]
    else:
        members[name] = _changed(rng, "header", members[name])
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return file.getvalue()
