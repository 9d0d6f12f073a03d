"""How a fit is getting on: a line on stderr while it runs."""

import contextlib
import math
import sys
import time
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderResult
from rich.constrain import Constrain
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table

from blockgreedy.solvers.trace import Record


class Progress:
    """One line on stderr, redrawn by rich's own thread; the solver only hands over its latest record."""

    def __init__(self, tol: float) -> None:
        self.began, self.tol = time.perf_counter(), tol
        self.phase, self.f_null, self.gap = "loading", math.nan, math.nan
        self.record: Record | None = None
        self.spinner = Spinner("dots", style="cyan")

    def see(self, record: Record) -> None:
        if not math.isnan(record.gap):
            self.gap = record.gap
        self.record = record

    @contextlib.contextmanager
    def shown(self, wanted: bool) -> Iterator[None]:
        if not (wanted and sys.stderr.isatty()):
            yield
            return
        with Live(self, console=Console(stderr=True), refresh_per_second=10, transient=True):
            yield

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        cells = {"elapsed": f"{time.perf_counter() - self.began:.1f} s"}
        if self.record is None:
            cells["now"] = self.phase
        else:
            r = self.record
            cells["objective"] = f"{r.objective:.6g}"
            cells["relative gap"] = f"{ratio(self.gap, self.f_null):.1e} → {self.tol:g}"
            cells["nonzeros"] = f"{r.nonzeros:,}"
            cells["iterations"] = f"{r.iteration:,}"
            cells["per second"] = f"{r.iteration / r.seconds:,.0f}" if r.seconds > 0 else ""
        table = Table("", box=None, header_style="dim", pad_edge=False)
        for name in cells:
            table.add_column(name, justify="right", no_wrap=True)
        table.add_row(self.spinner, *cells.values())
        yield Constrain(table, options.max_width - 4)  # the terminal's own ^C must not wrap: Live counts lines


def ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else math.inf if part > 0 else part
