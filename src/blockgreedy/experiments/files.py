"""What a run leaves in its folder: index.html, PNG pictures, CSV tables and traces, config.json."""

from __future__ import annotations

import csv
import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from blockgreedy.base.files import replacing, replacing_text
from blockgreedy.base.surroundings import cpu_name
from blockgreedy.experiments.page import make_page
from blockgreedy.experiments.results import Results
from blockgreedy.experiments.tables import Table, all_tables
from blockgreedy.experiments.verdicts import findings
from blockgreedy.solvers.trace import COLUMNS

SUFFIXES = (".html", ".png", ".csv", ".json")  # of what is written


def write(results: Results, folder: Path) -> Path:
    """Everything into the folder; the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    with replacing_text(folder / "config.json") as file:
        file.write(json.dumps(_config(results), indent=2) + "\n")
    if results.sets:
        for table in all_tables(results):
            _write_table(table, folder / f"{table.name}.csv")
        verdicts = [[f.claim, f.found, f.outcome, f.why] for f in findings(results)]
        _write_rows(folder / "findings.csv", ["claim", "found", "outcome", "why"], verdicts)
        _write_traces(results, folder / "traces.csv")
    page = make_page(results)
    for picture in page.all_pictures():
        with replacing(folder / f"{picture.name}.png") as drawn:
            drawn.write(picture.png)
    page.save(folder / "index.html")
    return folder / "index.html"


def about_machine() -> dict[str, Any]:
    """What a reader needs to judge the times; nothing that names the machine or its user."""
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in ("blockgreedy", "numpy", "scipy", "matplotlib")},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _config(results: Results) -> dict[str, Any]:
    return {
        **results.config,
        "interrupted": results.interrupted,
        "remarks": results.remarks,
        "seconds by part": {part: round(seconds, 2) for part, seconds in results.part_seconds.items()},
        "ns per nonzero, one thread": {f.name: f.ns_per_nonzero for f in results.sets},
    }


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
    keys = ["part", "set", "alpha", "blocks", "update", "per_block", "n_blocks", "blocks_per_iter"]
    with replacing_text(path) as file:
        writer = csv.writer(file)
        writer.writerow([*keys, *COLUMNS])
        for run in results.runs:
            s = run.setting
            own = [
                run.part,
                run.set_name,
                repr(run.alpha),
                s.kind,
                s.update,
                s.per_block,
                s.n_blocks,
                s.blocks_per_iter,
            ]
            writer.writerows([*own, *(getattr(record, name) for name in COLUMNS)] for record in run.trace)
