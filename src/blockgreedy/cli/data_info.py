"""``blockgreedy data info``: what is in a file."""

import json
import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from blockgreedy.base.files import replacing
from blockgreedy.cli.advice import codes_advice
from blockgreedy.cli.asked import OfFiles, Reading
from blockgreedy.cli.data import data_app
from blockgreedy.cli.outputs import Output, Outputs
from blockgreedy.cli.shell import Results, fail, failures, in_options, option, takes
from blockgreedy.cli.store_info import show_store
from blockgreedy.cli.texts import THREADS, WRONG_USE
from blockgreedy.data.describe import ColumnFacts, describe, to_plain
from blockgreedy.data.formats import TABLES, data_file
from blockgreedy.data.store import STORE_SUFFIX
from blockgreedy.data.summary import Summary, summarize
from blockgreedy.data.tables import open_table
from blockgreedy.data.treatment import Treatment

MOST_COLUMNS = 60  # of a table that are shown
_BAR = 20  # characters of the longest bar
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_of_data, _of_output = partial(option, "Data"), partial(option, "Output")
_PICTURE = typer.Option(
    "--picture", help="Draw the number of nonzeros of each column into this .png file.", rich_help_panel="Output"
)


@dataclass(frozen=True)
class InfoOptions(Reading, OfFiles):
    """What ``blockgreedy data info`` accepts."""

    duplicates: bool = _of_data(True, "--duplicates/--no-duplicates", "Look for repeated rows and columns.")
    n_threads: int | None = _of_data(None, "--threads", THREADS)
    picture: Annotated[Path | None, _PICTURE] = None
    check: bool = _of_data(False, "--check", "Stores: read all files and compare their checksums.")
    as_json: bool = _of_output(False, "--json", "Print one JSON object per file instead of the table.")

    def describe_table(self, path: Path) -> list[ColumnFacts] | None:
        """The columns of a table, None for another kind of file."""
        file = data_file(path)
        if file.format is not TABLES or not path.is_file():
            return None
        treatment = Treatment.of(**self.of_tables())
        table = open_table(
            path, file.suffix, file.compression, target=self.target, treatment=treatment, labelled=False,
            with_dropped=True, n_threads=self.n_threads,
        )  # fmt: skip
        return describe(table)


@data_app.command()
@takes(InfoOptions)
def info(options: InfoOptions) -> None:
    """Show what is in data files: sizes, values, labels, empty and repeated rows and columns, density of the columns.

    For a table, every column is listed: its type, its distinct and missing values, how it is used, and its range or
    most frequent values. Labels are not needed. A column counts as repeated if it is a multiple of another one.
    A store is described by its statistics; its tiles are not read unless --check is given.

    Exit codes: 0 done, 2 wrong use, 1 any other error, 3 interrupted.

    \b
    [bold]Examples[/]
    [cyan]blockgreedy data info news20.svm.bz2[/]
    [cyan]blockgreedy data info clicks.parquet --target clicked --categorical hour,site --picture density.png[/]
    [cyan]blockgreedy data info *.npz --json[/]
    [cyan]blockgreedy data info big.store --check[/]
    """
    outputs = Outputs(
        options.inputs(*options.data),
        Output("--picture", options.picture, "the picture", (".png",), is_drawn=True),
        *options.caches(*options.data),
    )
    if options.picture is not None and len(options.data) > 1:
        fail(f"--picture takes one data file, got {len(options.data)}", WRONG_USE)
    console = Results()
    for path in options.data:
        with failures():
            if path.suffix.lower() == STORE_SUFFIX:
                show_store(console, path, options.as_json, options.check)
                continue
            columns = options.describe_table(path)
        if columns is not None and not options.as_json:  # shown even if something in them keeps it from being used
            show_columns(console, str(path), columns)
        with failures():
            try:
                dataset = options.read_file(path, labelled=False, n_threads=options.n_threads)
            except ValueError as error:
                if columns is None:
                    raise
                _say_unread(options, path, columns, in_options(str(error)))
                continue
        with failures(code=WRONG_USE):
            found = summarize(dataset, duplicates=options.duplicates, n_threads=options.n_threads)
        outputs.write("picture", partial(_draw, found=found))
        if options.as_json:
            table = {} if columns is None else {"table": [to_plain(facts) for facts in columns]}
            typer.echo(json.dumps({"data": str(path), **found.to_dict(), **table}))
        else:
            show(console, str(path), found)
    raise typer.Exit(outputs.code)


def _say_unread(options: InfoOptions, path: Path, columns: list[ColumnFacts], why: str) -> None:
    """A table is described even if it cannot be fitted as it stands; that is when a description is needed."""
    if options.as_json:
        typer.echo(json.dumps({"data": str(path), "table": [to_plain(facts) for facts in columns], "error": why}))
    else:
        typer.secho(f"Note: with these options the table cannot be fitted: {why}", err=True, fg="yellow")


def show_columns(console: Console, path: str, columns: list[ColumnFacts]) -> None:
    console.print(Text.assemble((path, "bold"), f": a table with {len(columns):,} columns"), soft_wrap=True)
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("column", overflow="ellipsis", no_wrap=True, max_width=24)
    table.add_column("type", overflow="ellipsis", no_wrap=True, max_width=12)
    table.add_column("distinct", justify="right", no_wrap=True)
    table.add_column("missing", justify="right", no_wrap=True)
    table.add_column("used as", no_wrap=True)
    table.add_column("values")  # the only one that gives way where the terminal is narrow
    for facts in columns[:MOST_COLUMNS]:
        counts = ("?" if count is None else f"{count:,}" for count in (facts.distinct, facts.missing))
        table.add_row(
            facts.name, facts.type, *counts, _use(facts), Text(_content(facts), no_wrap=True, overflow="ellipsis")
        )
    console.print(table)
    if len(columns) > MOST_COLUMNS:
        console.print(f"… and {len(columns) - MOST_COLUMNS:,} more columns, which --json lists")
    codes = [facts.name for facts in columns if facts.looks_like_codes]
    if codes:
        console.print(f"Advice: {codes_advice(codes)}", soft_wrap=True)
    unusable = [facts for facts in columns if facts.use == "unusable"]
    if unusable:
        name, kind = unusable[0].name, unusable[0].type
        console.print(
            f"Advice: column {name} has type {kind}, which cannot be used as it is. Leave it out (--drop {name}), or "
            f"use its values as categories (--categorical {name}).",
            soft_wrap=True,
        )
    missing = [facts for facts in columns if facts.use == "number" and facts.missing and facts.fill is None]
    if missing:
        rule = f"--fill {missing[0].name}=median" if len(missing) == 1 else "--fill median"
        names = ", ".join(facts.name for facts in missing[:8]) + (" …" if len(missing) > 8 else "")
        console.print(
            f"Advice: values are missing in {names}. Fill them ({rule}), or leave the column out (--drop).",
            soft_wrap=True,
        )
    console.print("")


def _use(facts: ColumnFacts) -> str:
    if facts.use == "categories":
        one = facts.n_features == 1
        rare = f" of {facts.distinct:,}" if facts.distinct is not None and facts.n_features < facts.distinct else ""
        return f"{facts.n_features:,}{rare} {'category' if one else 'categories'}"
    if facts.use == "number" and facts.fill is not None:
        return f"number, fill {facts.fill if isinstance(facts.fill, str) else format(facts.fill, 'g')}"
    return "cannot be used" if facts.use == "unusable" else facts.use


def _content(facts: ColumnFacts) -> str:
    if facts.span is not None:
        return f"{facts.span[0]:.6g} … {facts.span[1]:.6g}"
    return ", ".join(f"{value}: {count:,}" for value, count in facts.frequent)


def show(console: Console, path: str, found: Summary) -> None:
    size = f"{found.n_samples:,} × {found.n_features:,}, {found.nonzeros:,} nonzeros"
    console.print(Text.assemble((path, "bold"), f": {size}"), soft_wrap=True)
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column()
    for name, fact in _facts(found).items():
        facts.add_row(name, fact)
    console.print(facts, "")
    console.print(_histogram(found), "")


def _facts(found: Summary) -> dict[str, str]:
    zeros = f", and {found.stored_zeros:,} stored zeros" if found.stored_zeros else ""
    facts = {
        "density": f"{_percent(found.density)}{zeros}; {found.storage}, {found.dtype}, {found.megabytes:,.1f} MB",
        "values": _values(found),
        "labels": _labels(found),
        "nonzeros/row": _spread(found.rows),
        "nonzeros/column": _spread(found.columns),
        "empty": f"{found.rows.empty:,} rows, {found.columns.empty:,} columns",
    }
    if found.repeated_rows is not None:
        facts["repeated"] = f"{found.repeated_rows:,} rows, {found.repeated_columns:,} columns"
    return facts


def _values(found: Summary) -> str:
    if found.values is None:
        text = "none"
    elif found.values["least"] == found.values["most"]:
        text = f"all {found.values['least']:g}"
    else:
        text = f"{found.values['least']:g} … {found.values['most']:g}, mean {found.values['mean']:.4g}"
    return text + (f"; {found.not_finite:,} are NaN or infinite" if found.not_finite else "")


def _labels(found: Summary) -> str:
    labels = found.labels
    if not found.labelled:
        return "none in the file"
    if "distinct" not in labels:
        return ", ".join(f"{label}: {count:,}" for label, count in labels.items())
    numbers = f" in {labels['least']:g} … {labels['most']:g}, mean {labels['mean']:.4g}" if "least" in labels else ""
    return f"{labels['distinct']:,} different ones{numbers}"


def _spread(spread: Any) -> str:
    return f"{spread.least:,} … {spread.most:,}, median {spread.median:,.4g}, mean {spread.mean:,.4g}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _histogram(found: Summary) -> Table:
    """Columns by their nonzeros, on a logarithmic scale, and the share of all nonzeros that they hold."""
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("nonzeros in a column", justify="right", no_wrap=True)
    table.add_column("columns", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, width=_BAR)
    table.add_column("share of nonzeros", justify="right", no_wrap=True)
    most = max(part.columns for part in found.bins)
    for part in found.bins:
        if part.high == 0 and not part.columns:
            continue
        between = f"{part.low:,}" if part.low == part.high else f"{part.low:,} … {part.high:,}"
        share = _percent(part.nonzeros / found.nonzeros) if part.nonzeros else ""
        table.add_row(between, f"{part.columns:,}", bar(part.columns / most), share)
    return table


def bar(share: float) -> str:
    """To an eighth of a character; what is not 0 is seen."""
    eighths = math.ceil(share * _BAR * 8) if share * _BAR * 8 < 1 else round(share * _BAR * 8)
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def _draw(path: Path, found: Summary) -> None:
    from blockgreedy.reports.figures import Axis, Line, curves

    counts = np.sort(found.per_column[found.per_column > 0])[::-1]
    picture = curves(
        "density",
        [Line(np.arange(1, len(counts) + 1), counts)],
        Axis("column, most nonzeros first", log=True),
        Axis("nonzeros", log=True),
        title=f"{found.name}: {found.n_samples:,} × {found.n_features:,}, {found.nonzeros:,} nonzeros",
        alt="Nonzeros of each column, in descending order, on logarithmic axes",
    )
    with replacing(path, ".png") as file:
        file.write(picture.png)
