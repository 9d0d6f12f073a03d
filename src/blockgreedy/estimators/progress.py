"""What ``verbose=True`` shows: one line that keeps up with a fit."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from blockgreedy.trace import Record

_PLAIN_SECONDS = 1.0  # between two lines where no line can be rewritten


class Progress:
    """A line on stderr: rewritten in place by rich on a terminal, else one every second and one at the end."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.text = ""
        self._shown = ""
        self._last = -float("inf")
        self._status: Any = None

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            try:
                from rich.console import Console
            except ImportError:
                return self
            self._status = Console(stderr=True).status(self.title)
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None
            self._shown = ""
        if self.text != self._shown:
            self._write()

    def show(self, text: str) -> None:
        self.text = f"{self.title}: {text}"
        if self._status is not None:
            self._status.update(self.text)
        elif time.monotonic() - self._last >= _PLAIN_SECONDS:
            self._write()

    def _write(self) -> None:
        print(self.text, file=sys.stderr, flush=True)
        self._shown, self._last = self.text, time.monotonic()

    def observe(self, record: Record, part: str = "") -> None:
        """The state of a solve."""
        self.show(
            f"{part}iteration {record.iteration}, {record.seconds:.1f} s, objective {record.objective:.6g}, "
            f"gap {record.gap:.2g}, {record.nonzeros} nonzeros"
        )
