"""What a child of fork() needs: it has only the thread that forked, whatever the others were in the middle of.

Python forks under joblib, multiprocessing and servers while other threads fit. A lock that one of them held stays
held in the child for ever, so every lock of a module is made here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from types import TracebackType


def in_child(renew: Callable[[], None]) -> Callable[[], None]:
    """Calls this in every child of fork() that has yet to come: for modules, since it is never forgotten."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=renew)
    return renew


class ModuleLock:
    """A lock as ``threading.Lock`` makes them, which nobody holds in a child of fork().

    What it guards must be whole whenever another thread could fork: put together first, then assigned at once.
    """

    def __init__(self) -> None:
        self._renew()
        in_child(self._renew)

    def _renew(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
