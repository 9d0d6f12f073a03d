"""What a run leaves in its folder: index.html, pictures (SVG, PNG, one PDF), CSV tables and traces, config.json."""

from __future__ import annotations

import csv
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from blockgreedy.base.files import replacing, replacing_text
from blockgreedy.experiments.config import config_of
from blockgreedy.experiments.page import make_page
from blockgreedy.experiments.results import Results, Setting
from blockgreedy.experiments.table import Table
from blockgreedy.experiments.tables import all_tables
from blockgreedy.experiments.verdicts import findings
from blockgreedy.reports.figures_svg import write_pdf
from blockgreedy.solvers.trace import COLUMNS

SUFFIXES = (".html", ".svg", ".png", ".pdf", ".csv", ".json")  # of what is written


def write(results: Results, folder: Path) -> Path:
    """Everything into the folder; the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    with replacing_text(folder / "config.json") as file:
        file.write(_json(config_of(results)))
    if results.sets:
        for table in all_tables(results):
            _write_table(table, folder / f"{table.name}.csv")
        verdicts = [[f.claim, f.found, f.outcome, f.why] for f in findings(results)]
        _write_rows(folder / "findings.csv", ["claim", "found", "outcome", "why"], verdicts)
        _write_traces(results, folder / "traces.csv")
    page = make_page(results)
    pictures = {picture.name: picture for picture in page.all_pictures()}  # some are shown twice
    for picture in pictures.values():
        with replacing(folder / f"{picture.name}.png") as drawn:
            drawn.write(picture.png)
        with replacing_text(folder / f"{picture.name}.svg") as vector:
            vector.write(picture.standalone_svg())
    if pictures:
        with replacing(folder / "figures.pdf") as paged:
            write_pdf(pictures.values(), paged)
    page.save(folder / "index.html")
    return folder / "index.html"


def _json(config: dict[str, Any]) -> str:
    """A line for every run, set and partition, so that people can read it."""
    lines = []
    for name, value in config.items():
        text = json.dumps(value)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            text = "[\n" + ",\n".join(f"    {json.dumps(item)}" for item in value) + "\n  ]"
        lines.append(f"  {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _write_table(table: Table, path: Path) -> None:
    _write_rows(path, _distinct(table.head), table.rows)


def _distinct(head: Any) -> list[str]:
    """Column names of a file must differ: a second "paper's" becomes the paper's of what stands before it."""
    return [f"{head[k - 1]}, paper" if name == "paper's" else name for k, name in enumerate(head)]


def _write_rows(path: Path, head: Any, rows: Any) -> None:
    with replacing_text(path) as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)


def _write_traces(results: Results, path: Path) -> None:
    """Every run's records in one file, keyed by its settings."""
    settings = [f.name for f in fields(Setting) if f.name != "kind"]
    with replacing_text(path) as file:
        writer = csv.writer(file)
        writer.writerow(["part", "set", "alpha", "blocks", *settings, *COLUMNS])
        for run in results.runs:
            values = [getattr(run.setting, name) for name in settings]
            own = [run.part, run.set_name, repr(run.alpha), run.setting.kind, *values]
            writer.writerows([*own, *(getattr(record, name) for name in COLUMNS)] for record in run.trace)
