"""What ``blockgreedy data info`` shows of a store, of which it reads labels and statistics alone."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from blockgreedy.base.memory import bytes_text
from blockgreedy.data.dataset import label_text
from blockgreedy.data.store import Store

_MOST_LABELS = 10


def store_facts(store: Store) -> dict[str, Any]:
    n, p = store.shape
    rows, columns = store.grid
    tiles = [store.tile_bytes(r, c) for r in range(rows) for c in range(columns)]
    least, most, empty, constant = np.inf, -np.inf, 0, 0
    for c in range(columns):
        group = store.statistics_of(c)
        least, most = min(least, float(group.least.min())), max(most, float(group.most.max()))
        empty += int(np.count_nonzero(group.entries == 0))
        constant += int(np.count_nonzero((group.least == group.most) & (group.entries > 0)))
    return {
        "n_samples": n,
        "n_features": p,
        "nonzeros": store.n_entries,
        "density": store.n_entries / (n * p),
        "dtype": store.dtype.name,
        "bytes": store.nbytes,
        "row_groups": rows,
        "column_groups": columns,
        "largest_tile": max(tiles),
        "is_grouped": store.features is not None,
        "least": least,
        "most": most,
        "empty_columns": empty,
        "constant_columns": constant,
        "labels": _labels(store),
        "sample_weight": store.sample_weight is not None,
        "offset": store.offset is not None,
        "files": [file[0] for file in store.made_of.get("files", [])],
    }


def _labels(store: Store) -> dict[str, Any] | None:
    if not store.labelled:
        return None
    values, counts = np.unique(store.y, return_counts=True)
    classes = store.classes
    if len(values) > _MOST_LABELS:
        return {"distinct": len(values), "least": float(values[0]), "most": float(values[-1])}
    names = [label_text(value) if classes is None else str(classes[int(value)]) for value in values]
    return dict(zip(names, counts.tolist(), strict=True))


def show_store(console: Console, path: Path, as_json: bool, check: bool) -> None:
    store = Store(path)
    if check:
        store.check()
    facts = store_facts(store)
    if as_json:
        typer.echo(json.dumps({"data": str(path), **facts, **({"checked": True} if check else {})}))
        return
    size = f"{facts['n_samples']:,} × {facts['n_features']:,}, {facts['nonzeros']:,} nonzeros"
    console.print(Text.assemble((str(path), "bold"), f": a store, {size}"), soft_wrap=True)
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, fact in _lines(facts).items():
        table.add_row(name, fact)
    if check:
        table.add_row("checksums", "all files are as they were written")
    console.print(table, "")


def _lines(facts: dict[str, Any]) -> dict[str, str]:
    labels = facts["labels"]
    if labels is None:
        said = "none"
    elif "distinct" in labels:
        said = f"{labels['distinct']:,} different ones in {labels['least']:g} … {labels['most']:g}"
    else:
        said = ", ".join(f"{label}: {count:,}" for label, count in labels.items())
    with_these = [name for name in ("sample_weight", "offset") if facts[name]]
    grouped = ", columns grouped by a partition" if facts["is_grouped"] else ""
    files = facts["files"]
    lines = {
        "tiles": f"{facts['row_groups']:,} row groups × {facts['column_groups']:,} column groups{grouped}; the "
        f"largest has {bytes_text(facts['largest_tile'])}",
        "size": f"{bytes_text(facts['bytes'])} on disk, {facts['dtype']}",
        "density": f"{100 * facts['density']:.3g} %",
        "values": f"{facts['least']:g} … {facts['most']:g}",
        "labels": said + (f"; with {' and '.join(with_these)}" if with_these else ""),
        "columns": f"{facts['empty_columns']:,} empty, {facts['constant_columns']:,} constant",
    }
    if files:
        lines["made of"] = f"{files[0]}{f' and {len(files) - 1:,} more files' if len(files) > 1 else ''}"
    return lines
