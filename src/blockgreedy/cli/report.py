"""``blockgreedy report``: the page of a saved model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from blockgreedy.cli.outputs import Outputs, report_output
from blockgreedy.cli.shell import app, fail, failures, takes
from blockgreedy.cli.texts import WRONG_USE
from blockgreedy.models.model import Model

_MODEL = typer.Argument(metavar="MODEL", help="Model file that fit, path or cv saved with --model.")
_OUT = typer.Option(
    "--out",
    "-o",
    help="HTML file to write (default: the model's name with the ending .html; an existing file is not replaced).",
)


@dataclass(frozen=True)
class ReportOptions:
    model: Annotated[Path, _MODEL]
    out: Annotated[Path | None, _OUT] = None


@app.command()
@takes(ReportOptions)
def report(options: ReportOptions) -> None:
    """Write an HTML report of a saved model: how well it predicts, its features, and the proof of its accuracy.

    Exit codes: 0 done, 2 wrong use, 1 any other error.

    \b
    [bold]Example[/]
    [cyan]blockgreedy report model.npz --out model.html[/]
    """
    out = options.out or options.model.with_suffix(".html")
    if options.out is None and out.exists():
        fail(f"{out} exists already; name it with --out to replace it, or give another name", WRONG_USE)
    outputs = Outputs([("the model", options.model)], report_output(out, "--out"))
    with failures("interrupted; nothing was written"):
        model = Model.load(options.model)
        outputs.write_model(lambda: model, report="out")
    for path in outputs.written.values():
        Console(stderr=True, markup=False).print(str(path), highlight=False)
    raise typer.Exit(outputs.code)
