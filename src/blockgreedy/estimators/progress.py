"""What ``verbose=True`` shows: one line on stderr that keeps up with a fit, or a bar where the end is known."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from blockgreedy.solvers.trace import Record

_PLAIN_SECONDS = 1.0  # between two lines where no line can be rewritten


class Progress:
    """On a terminal rewritten in place by rich, and gone at the end; else a line every second and one at the end."""

    def __init__(self, title: str, total: int | None = None, what: str = "") -> None:
        self.title, self.total, self.what = (
            title,
            total,
            what,
        )  # total: of how many, where that is known; what: of what
        self.text = ""
        self._shown = ""
        self._last = -float("inf")
        self._live: Any = None  # rich's progress display
        self._task: Any = None

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            try:
                from rich import progress as bars
                from rich.console import Console
            except ImportError:
                return self
            bar = (bars.BarColumn(bar_width=14), bars.MofNCompleteColumn()) if self.total is not None else ()
            note = bars.TextColumn("{task.fields[note]}", markup=False)
            columns = (bars.SpinnerColumn(), bars.TextColumn("{task.description}", style="cyan"), *bar, note)
            self._live = bars.Progress(
                *columns, bars.TimeElapsedColumn(), console=Console(stderr=True), transient=True
            )
            self._task = self._live.add_task(self.title, total=self.total, note="")
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
        elif self.text != self._shown:
            self._write()

    def show(self, note: str, done: int = 0) -> None:
        """What is going on now, and how much of it is done where that is known."""
        self.text = f"{self.title}: {note}"
        if self.total is not None:
            self.text = f"{self.title}: {done} of {self.total} {self.what}{note and ', '}{note}"
        if self._live is not None:
            self._live.update(self._task, completed=done, note=note)
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
