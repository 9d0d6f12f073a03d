"""The page of a partition: how even its blocks are, and where weights are to be expected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from blockgreedy.problem.columns import as_columns
from blockgreedy.reports.page import Page
from blockgreedy.reports.page_pictures import block_pictures
from blockgreedy.reports.page_settings import data_name, settings_section, span

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from blockgreedy.partitions.partition import Partition

_LONG = 64  # tables with more rows open on a click


def partition_page(partition: Partition, X: Any, y: Any = None, *, settings: Mapping[str, Any] | None = None) -> Page:
    """Size, load and density of the blocks; with y also where weights are to be expected."""
    columns = as_columns(X)
    n_rows = columns.shape[0]
    sizes, loads = partition.sizes, partition.nonzeros(columns)
    mass = None if y is None else partition.mass(columns, y)
    density = loads / (n_rows * sizes)
    chosen = dict(settings or {})
    name = data_name(chosen)
    page = Page(
        f"{partition.n_blocks:,} {partition.kind} blocks{f' of {name}' if name else ''}",
        f"{partition.n_features:,} features of {n_rows:,} rows, {int(loads.sum()):,} nonzero entries.",
    )
    facts = [
        ("blocks", f"{partition.n_blocks:,}", partition.kind),
        ("features per block", span(sizes.min(), sizes.max()), f"mean {sizes.mean():,.6g}"),
        ("heaviest block", f"{_over_mean(loads)} × mean", "in nonzero entries"),
    ]
    if mass is not None:
        facts.append(("largest gradient mass", f"{_over_mean(mass)} × mean", "of the blocks"))
    if partition.seed is not None:
        facts.append(("seed", str(partition.seed), ""))
    page.summary.facts(facts)
    part = page.section("Blocks")
    part.text(
        "If each thread works on a block of its own, all threads wait for the one whose block has the most nonzero "
        "entries. The more even the blocks are, the less time is lost."
    )
    if mass is not None:
        part.text(
            "Gradient mass says how strongly the features of a block are related to the target: it is the sum of "
            "|x·y|/‖x‖ over the features x of the block, as a share of the sum over all features. Blocks with a "
            "small share will have few nonzero weights."
        )
    part.figures(*block_pictures(partition, loads, density, mass))
    head = ["block", "features", "nonzeros", "× mean", "density", *([] if mass is None else ["mass"])]
    rows = [
        [
            str(b),
            f"{sizes[b]:,}",
            f"{loads[b]:,}",
            f"{loads[b] / max(loads.mean(), 1e-300):.3f}",
            f"{100 * density[b]:.3g} %",
            *([] if mass is None else [f"{100 * mass[b]:.3g} %"]),
        ]
        for b in np.argsort(-loads, kind="stable")
    ]
    note = "Density: share of the block's entries that are not 0." + (
        "" if mass is None else " Mass: share of the gradient mass."
    )
    part.table(head, rows, "Blocks, the heaviest first", note, folded=len(rows) > _LONG)
    if chosen:
        settings_section(page.section("Run settings"), chosen)
    return page


def _over_mean(values: NDArray[Any]) -> str:
    mean = float(values.mean())
    return f"{float(values.max()) / mean:.2f}" if mean > 0 else "1"
