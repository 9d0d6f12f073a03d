"""The report of benchmarks/frontier.py: the documentation shows what was measured, and ratios mean what they say."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import frontier, frontier_report  # noqa: E402

ROWS = frontier.read(ROOT / "benchmarks" / "results" / "frontier.csv")
SETS = {"reuters", "dorothea", "enron", "news20", "grouped"}


def test_the_table_of_the_page_is_what_was_measured():
    page = (ROOT / "docs" / "clustering.md").read_text(encoding="utf-8")
    assert set(frontier_report.unique(ROWS, "set")) == SETS
    assert frontier_report.with_table(page, frontier_report.short_table(ROWS)) == page


def test_the_report_is_what_was_measured():
    report = ROOT / "benchmarks" / "results" / "frontier.md"
    assert report.read_text(encoding="utf-8") == frontier_report.markdown(ROWS)


def test_a_run_of_one_set_moves_no_other():
    own = [row for row in ROWS if row["set"] == "reuters"]
    assert frontier.with_set(ROWS, "reuters", own) == ROWS
    assert frontier.with_set(ROWS, "new", [own[0] | {"set": "new"}])[:-1] == ROWS


def points(svg):
    """Where each panel has its points and curves, as parts of its width and height: fonts move the panels."""
    found = []
    for panel in svg.split('<g id="axes_')[1:]:
        box = np.array(re.search(r'<path d="M ([^"]*?)z', panel)[1].replace("L", "").split(), dtype=float)
        marks = np.array(re.findall(r'<use [^>]*x="([^"]+)" y="([^"]+)"', panel), dtype=float)
        corner, size = box.reshape(-1, 2).min(axis=0), np.ptp(box.reshape(-1, 2), axis=0)
        found += ((marks - corner) / size).tolist()
    return found


def test_the_pictures_are_drawn_for_light_and_dark_pages(tmp_path):
    frontier_report.draw(ROWS, tmp_path)
    for shade, colors in frontier_report.INK.items():
        name = f"frontier-{shade}.svg"
        kept, drawn = ((folder / name).read_text() for folder in (ROOT / "docs" / "img", tmp_path))
        assert colors[2] in kept
        assert colors[2] in drawn
        wanted, found = points(drawn), points(kept)
        assert len(found) == len(wanted) > 32
        for one, other in zip(found, wanted, strict=True):
            assert one == pytest.approx(other, abs=1e-4)


def test_the_active_blocks_of_the_page_s_text_are_those_of_the_table():
    page = " ".join((ROOT / "docs" / "clustering.md").read_text(encoding="utf-8").split())
    active = {}  # at the largest alpha, the first of each set
    for row in reversed(ROWS):
        active[row["set"], row["blocks"]] = f"{row['active']:.0f}"
    names = ("news20", "reuters", "dorothea")
    few, spread = ([active[name, kind] for name in names] for kind in ("clustered", "random"))
    assert "{} of 32 hold a weight of the solution on news20, {} on Reuters and {} on Dorothea".format(*few) in page
    assert "(with random blocks {}, {} and {})".format(*spread) in page
    assert active["enron", "clustered"] == active["enron", "random"]
    assert f"on Enron it is {active['enron', 'random']} with both" in page
    other = " ".join((ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8").split())
    assert f"in {few[1]} of 32 clustered blocks and in {spread[1]} random ones" in other


def test_no_measured_partition_is_below_the_bound_for_all():
    for row in ROWS:
        assert row["any partition"] <= row["rho upper"] * (1 + 1e-3)
        assert row["rho lower"] <= row["rho upper"] * (1 + 1e-3)


def run(blocks, alpha, needed, status="ended", load=1.0):
    facts = {"set": "a", "blocks": blocks, "alpha": alpha, "update": "add", "load": load}
    return facts | {"0.01": needed, "status": status, "max_iter": 1000}


def test_ratios_leave_out_runs_that_diverged_and_cells_that_are_over_at_once():
    rows = [
        *(run("capped 1", "1", 50, load=2.0), run("clustered", "1", 100, load=8.0)),
        *(run("capped 1", "2", 10), run("clustered", "2", 2)),  # over at once
        *(run("capped 1", "3", 50), run("clustered", "3", math.inf, "diverged")),
        *(run("capped 1", "4", 125, load=1.0), run("clustered", "4", math.inf, load=1.0)),  # 1,000 at least
        *(run("capped 1", "5", math.inf), run("clustered", "5", math.inf)),
    ]
    iterations, loaded, cells = frontier_report.compare(rows, "add", "capped 1", "clustered")
    assert cells == 2
    assert iterations == pytest.approx(math.sqrt(2 * 8))
    assert loaded == pytest.approx(math.sqrt(2 * 4 * 8))
    assert frontier_report.count_text(rows[5], "0.01") == "diverged"
    assert frontier_report.count_text(rows[7], "0.01") == "> 1000"
