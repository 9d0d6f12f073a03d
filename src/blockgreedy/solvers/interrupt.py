"""Ctrl-C during work that several processes do together: it is heard when the work is done."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Deferred:
    """While this is entered, Ctrl-C only sets ``pressed``. In threads other than the main one it changes nothing."""

    def __init__(self) -> None:
        self.pressed = False
        self._before: Any = None

    def _note(self, signum: int, frame: FrameType | None) -> None:
        self.pressed = True

    def __enter__(self) -> Deferred:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
