"""Work that every rank does by itself and that may fail on some: then all of them fail, with the same error."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from blockgreedy.backends.tiles.communicator import Communicator

Result = TypeVar("Result")

_KINDS: dict[str, type[Exception]] = {
    kind.__name__: kind for kind in (ValueError, TypeError, RuntimeError, MemoryError, OSError, FileNotFoundError)
}


def agreed(ranks: Communicator, work: Callable[[], Result]) -> Result:
    """What ``work`` returns. If it fails on some ranks, every rank raises the error of the first of them."""
    if ranks.size == 1:
        return work()
    failure: Exception | None = None
    try:
        result = work()
    except Exception as error:  # raised again below, on every rank
        failure = error
    told = "" if failure is None else f"{type(failure).__name__}\n{failure}"
    texts = [part.tobytes().decode() for part in ranks.gather(np.frombuffer(told.encode(), dtype=np.uint8))]
    first = next((rank for rank, text in enumerate(texts) if text), None)
    if first is None:
        return result
    if first == ranks.rank and failure is not None:
        raise failure
    kind, _, text = texts[first].partition("\n")
    raise error_of(kind, text)


def error_of(kind: str, text: str) -> BaseException:
    """An error that another rank had."""
    if kind == "KeyboardInterrupt":
        return KeyboardInterrupt()
    return _KINDS.get(kind, RuntimeError)(text if kind in _KINDS else f"{kind}: {text}")
