"""The page: escaped, self-contained, in order; and the pictures on it."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

from blockgreedy.reports.figures import (
    DOTS,
    INK,
    NAME_OF,
    OF_KIND,
    RED,
    TEAL,
    Axis,
    Band,
    Line,
    Mark,
    bars,
    color_of,
    curves,
    heat_map,
    thinned,
)
from blockgreedy.reports.figures_axes import spread
from blockgreedy.reports.page import Badge, Finding, Page, Picture
from blockgreedy.reports.page_style import DARK, LIGHT

VOID = {"meta", "link", "img", "source", "br"}


class Outline(HTMLParser):
    """What a test asks of a page: balanced tags, headings, anchors, links, and everything that would be fetched."""

    def __init__(self, text):
        super().__init__()
        self.open, self.headings, self.anchors, self.links, self.fetched, self.words = [], [], [], [], [], []
        self.figures, self.scripts, self.policy = [], 0, ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag not in VOID:
            self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if "id" in values and "svg" not in self.open:
            self.anchors.append(values["id"])
        if tag == "a":
            self.links.append(values["href"])
        elif tag == "svg":
            self.words.append(values["aria-label"])
        elif tag == "figure":
            self.figures.append(values)
        elif tag == "script":
            self.scripts += 1
        elif values.get("http-equiv") == "Content-Security-Policy":
            self.policy = values["content"]
        self.fetched += [values[name] for name in ("src", "srcset", "href") if name in values and tag != "a"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def picture():
    line = Line(np.arange(1, 500), 1 / np.arange(1, 500), color_of("random"), label="random")
    return curves("falls", [line], Axis("seconds", log=True), Axis("loss", log=True), alt='It "falls" & falls')


@pytest.fixture(scope="module")
def page(picture):
    page = Page("A <b> & c", "Lead & more")
    first = page.section("Numbers")
    first.text("x < y & z")
    first.table(["set", "value"], [["a<b", "1,234"], ["c", "–"]], caption="Values & co", note="a < note")
    first.section("Pictures").figures(picture)
    first.findings([Finding("claim <1>", "found", "in part", "why & how")])
    page.section("Numbers").bullets(["<script>alert(1)</script>"])
    return page


def test_everything_that_is_handed_over_is_escaped(page):
    html = page.html()
    assert Outline(html).scripts == 1  # the page's own
    for raw, escaped in (("A <b> &", "A &lt;b&gt; &amp;"), ("claim <1>", "claim &lt;1&gt;"), ("a<b", "a&lt;b")):
        assert raw not in html
        assert escaped in html
    assert "<script>alert(1)" not in html
    assert Outline(html).words == ['It "falls" & falls']


def test_labels_of_curves_survive_the_way_into_the_page_and_out():
    label = """it's <b>"quoted"</b> & more"""
    lines = [Line([1, 2], [3, 4], label=label), Line([1, 2], [5, 6], label="other")]
    page = Page("p")
    page.section("s").figures(curves("c", lines, Axis("x"), Axis("y"), alt="c"))
    outline = Outline(page.html())
    assert outline.open == []
    assert json.loads(outline.figures[0]["data-curves"])["lines"][0]["label"] == label


def test_page_fetches_nothing(page):
    html = page.html()
    outline = Outline(html)
    assert outline.open == []
    assert outline.fetched[0].startswith("data:")  # the icon
    assert len(outline.fetched) > 1  # letters of the drawing are used again and again
    assert all(url.startswith("#") for url in outline.fetched[1:])
    assert "@import" not in html
    assert set(re.findall(r"url\((.)", html)) <= {"#"}


def test_browsers_are_told_to_run_the_one_script_and_to_fetch_nothing(page):
    html = page.html()
    script = html[html.index("<script>") + 8 : html.index("</script>")]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = Outline(html).policy
    assert "default-src 'none'" in policy
    assert policy.endswith(f"script-src 'sha256-{digest}'")


def test_contents_lead_to_every_section_also_to_those_of_equal_title(page):
    outline = Outline(page.html())
    assert outline.links == ["#numbers", "#pictures", "#numbers-2"]
    assert [f"#{name}" for name in outline.anchors] == outline.links
    assert outline.headings == [1, 2, 3, 2]


def test_columns_of_numbers_are_set_right_and_tables_have_captions(page):
    html = page.html()
    assert '<th scope="col" class="number">value</th>' in html
    assert '<td class="number">1,234</td>' in html
    assert "<caption><span>Values &amp; co</span></caption>" in html


def test_a_row_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match=r"row \['a'\] has 1 cells, the table 'T' has 2"):
        Page("p").section("s").table(["x", "y"], [["a"]], "T")


def test_a_folded_table_says_how_many_rows_it_has():
    page = Page("p")
    page.section("s").table(["x"], [["1"], ["2"]], "Many", folded=True)
    assert "<summary>Many: 2 rows</summary>" in page.html()


def test_saved_page_is_the_page(page, tmp_path):
    page.save(tmp_path / "p.html")
    assert (tmp_path / "p.html").read_text(encoding="utf-8") == page.html()


def test_all_pictures_finds_those_of_inner_sections(page, picture):
    assert page.all_pictures() == [picture]


def test_a_drawing_has_its_colours_from_the_page(picture):
    assert ElementTree.fromstring(picture.svg).tag.endswith("svg")
    assert f"var(--ink, {INK})" in picture.svg
    # no colour of the palette is left without its variable
    assert not [c for c in NAME_OF if re.search(rf"(?<!, ){c}", picture.svg)]
    assert picture.png.startswith(b"\x89PNG")


def test_two_drawings_on_a_page_share_no_id(picture):
    other = curves("rises", [Line([1, 2], [1, 2])], Axis("seconds"), Axis("loss"), alt="It rises")
    ids = [re.findall(r' id="([^"]+)"', made.svg) for made in (picture, other)]
    assert ids[0]
    assert not set(ids[0]) & set(ids[1])
    for made, own in zip((picture, other), ids, strict=True):
        assert len(set(own)) == len(own)
        assert {a or b for a, b in re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', made.svg)} == set(own)


def test_every_colour_has_a_dark_form_and_no_two_are_alike():
    assert LIGHT.keys() == DARK.keys()
    assert set(OF_KIND.values()) <= set(NAME_OF)
    assert len(set(OF_KIND.values())) == len(OF_KIND)
    for palette in (LIGHT, DARK):
        assert len(set(palette.values())) == len(palette)
    assert color_of("some new kind") in NAME_OF


def contrast(a, b):
    """WCAG's contrast ratio."""
    shades = []
    for color in (a, b):
        parts = np.array([int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)])
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        shades.append(linear @ [0.2126, 0.7152, 0.0722])
    return (max(shades) + 0.05) / (min(shades) + 0.05)


@pytest.mark.parametrize("kind", OF_KIND)
def test_colours_of_kinds_stand_out_on_light_and_on_dark(kind):
    assert contrast(OF_KIND[kind], LIGHT["paper"]) >= 4
    assert contrast(DARK[NAME_OF[OF_KIND[kind]]], DARK["paper"]) >= 4


def test_thinned_curves_keep_their_ends_and_are_short():
    x, y = thinned(np.arange(10_000), np.arange(10_000) ** 2.0, 50)
    assert len(x) <= 50
    assert (x[0], x[-1], y[-1]) == (0, 9999, 9999.0**2)
    assert len(thinned([1, 2], [3, 4])[0]) == 2


def test_what_a_logarithmic_axis_cannot_show_is_left_out():
    lines = [Line([0, 1, 10], [1, 0, 5]), Line([], [])]
    made = curves("zeros", lines, Axis("x", log=True), Axis("y", log=True), alt="zeros")
    assert "nan" not in made.svg.lower()
    empty = curves("empty", [Line([0], [0])], Axis("x", log=True), Axis("y", log=True), alt="nothing to see")
    assert empty.png.startswith(b"\x89PNG")


def test_bars_and_heat_maps_are_drawn_with_their_blanks():
    made = bars("b", {"random": [1, 2], "clustered": [3, 0.5]}, Axis("block"), Axis("nonzeros"), alt="bars")
    assert f"var(--red, {RED})" in made.svg
    grid = heat_map("h", [[1.0, np.nan]], ["r"], ["c", "d"], texts=[["1", "–"]], x="x", y="y", alt="map", center=1.0)
    assert grid.png.startswith(b"\x89PNG")


def test_values_on_the_page_lie_where_they_are_drawn():
    """Oracle: the path that matplotlib draws, in the drawing's own units, and the numbers as they were given."""
    xs, ys = [1.0, 10.0, 100.0], [0.5, 0.25, 1.5e-7]
    made = curves("c", [Line(xs, ys, TEAL)], Axis("seconds", log=True), Axis("gap", log=True), alt="c")
    (line,) = made.curves["lines"]
    assert made.curves["x"] == "seconds"
    assert (line["label"], line["color"]) == ("gap", "teal")
    assert [point[2:] for point in line["points"]] == [["1", "0.5"], ["10", "0.25"], ["100", "1.5e-7"]]
    drawn = re.search(rf'd="([^"]*)"[^>]*?stroke: var\(--teal, {TEAL}\)', made.svg)[1]
    places = [list(map(float, pair)) for pair in re.findall(r"[ML] ([\d.]+) ([\d.]+)", drawn)]
    np.testing.assert_allclose([point[:2] for point in line["points"]], places, atol=0.11)
    top, bottom = made.curves["box"]
    assert 0 < top < min(p[1] for p in places) < max(p[1] for p in places) < bottom < 252


def test_a_falling_axis_has_its_largest_value_on_the_left():
    made = curves("c", [Line([1.0, 10.0], [1, 2])], Axis("alpha", log=True, falling=True), Axis("y"), alt="c")
    one, ten = (point[0] for point in made.curves["lines"][0]["points"])
    assert ten < one


def test_values_that_are_known_here_and_there_are_all_shown():
    ys = np.full(5_000, np.nan)
    ys[::100] = 1.0  # fewer than a curve may have points
    made = curves("c", [Line(np.arange(5_000), ys)], Axis("x"), Axis("y"), alt="c")
    assert len(made.curves["lines"][0]["points"]) == 50


def test_values_are_shown_of_named_lines_and_of_a_line_alone():
    named, plain = Line([1, 2], [1, 2], label="named"), Line([1, 2], [2, 3])
    both = curves("c", [named, plain], Axis("x"), Axis("y"), alt="c")
    assert [line["label"] for line in both.curves["lines"]] == ["named"]
    neither = curves("c", [plain, plain], Axis("x"), Axis("y"), alt="c")
    assert neither.curves == {}


def test_bands_and_marks_are_drawn_in_their_colours():
    plain = curves("c", [Line([1, 2], [1, 2])], Axis("x"), Axis("y"), alt="c")
    band, mark = Band([1, 2], [0, 1], [2, 3], TEAL), Mark(1.5, "here", RED)
    made = curves("c", [Line([1, 2], [1, 2])], Axis("x"), Axis("y"), alt="c", bands=[band], marks=[mark])
    for color in (TEAL, RED):
        assert color not in plain.svg
        assert color in made.svg


def test_what_pictures_are_picked_by_becomes_the_switches_of_their_group():
    page = Page("p")
    svg = '<svg xmlns="http://www.w3.org/2000/svg"/>'
    pictures = [Picture(f"p{k}", svg, "w", picks={"against": name}) for k, name in enumerate(("s", "i", "s"))]
    page.section("s").figures(*pictures, Picture("always", svg, "w"))
    html = page.html()
    assert """data-picks='{"against":["s","i"]}'""" in html
    assert [json.loads(f.get("data-pick", "{}")) for f in Outline(html).figures] == [
        {"against": "s"}, {"against": "i"}, {"against": "s"}, {},
    ]  # fmt: skip


def test_a_badge_links_to_the_section_that_says_more():
    page = Page("p")
    page.section("First")
    proof = page.section("Proof <1>", folded=True)
    proof.text("Because.")
    page.badge = Badge("Proven", "within 1.2e-08 of <it>", True, proof)
    html = page.html()
    assert 'class="badge good" href="#proof-1"' in html
    assert 'within <span class="whole">1.2e-08</span> of &lt;it&gt;' in html
    assert "<details><summary><h2>Proof &lt;1&gt;</h2></summary><p>Because.</p></details></section>" in html


def test_the_summary_stands_before_the_contents():
    page = Page("p", "lead")
    page.summary.facts([("AUC", "0.9", "")])
    page.section("s")
    html = page.html()
    assert html.index(">lead<") < html.index(">0.9<") < html.index("<nav")


@pytest.mark.parametrize("places", [[0.5, 0.5, 0.5], [0.0, 1.0, 0.95, 0.02], [0.3], []])
def test_labels_that_would_overlap_are_moved_apart_in_their_order(places):
    found = np.array(spread(places, 0.1))
    order = np.argsort(places, kind="stable")
    assert np.all(np.diff(found[order]) >= 0.1 - 1e-12)
    assert np.mean(found) == pytest.approx(np.mean(places)) if places else len(found) == 0


def test_labels_at_the_ends_of_lines_are_drawn_and_take_the_place_of_a_legend():
    lines = [Line([1, 2], [1, k], color, label=f"line {k}") for k, color in ((2, TEAL), (3, RED))]
    drawn = [
        curves("c", lines, Axis("x"), Axis("y"), alt="c", at_ends=ends, entries=None if ends else [])
        for ends in (False, True)
    ]
    letters = [made.svg.count("<use") for made in drawn]
    assert letters[1] > letters[0] + 8
    assert drawn[0].curves["lines"][0]["label"] == "line 2"


def test_points_are_read_one_at_a_time_with_their_notes_and_never_thinned():
    x = np.linspace(0, 1, 300)
    line = Line(x, x**2, TEAL, DOTS, label="row", whole=True, notes=[("rows", str(k)) for k in range(300)])
    made = curves("c", [line], Axis("predicted"), Axis("observed"), alt="c", by_point=True)
    assert made.curves["nearest"] is True
    assert (made.curves["x"], made.curves["y"]) == ("predicted", "observed")
    points = made.curves["lines"][0]["points"]
    assert len(points) == 300
    assert points[-1][2:] == ["1", "1", "rows", "299"]


def test_a_logarithmic_axis_says_where_each_of_its_values_lies():
    made = curves(
        "c", [Line([0.01, 1.0, 10.0], [1, 2, 3])], Axis("alpha", log=True, falling=True), Axis("y"), alt="c"
    )
    origin, slope = made.curves["log"]
    for point in made.curves["lines"][0]["points"]:
        assert origin + slope * np.log10(float(point[2])) == pytest.approx(point[0], abs=0.05)


def test_cells_of_a_heat_map_have_their_values():
    rows, columns = ["r"], ["c", "d\nd"]
    grid = heat_map("h", [[1.0, 2.0]], rows, columns, texts=[["1", "2\nx"]], x="x", y="y", alt="map")
    points = grid.curves["lines"][0]["points"]
    assert [point[2:] for point in points] == [["r, c", "1"], ["r, d d", "2 x"]]


def test_histograms_are_read_between_their_edges():
    groups = {"class 0": [3, 1], "class 1": [0, 2]}
    words, colors = ("p", ["0 to 0.5", "0.5 to 1"]), {"class 0": RED, "class 1": TEAL}
    made = bars("b", groups, Axis("p"), Axis("rows"), alt="b", edges=[0, 0.5, 1], places=words, colors=colors)
    assert [line["color"] for line in made.curves["lines"]] == ["red", "teal"]
    assert [point[2:] for point in made.curves["lines"][1]["points"]] == [["0 to 0.5", "0"], ["0.5 to 1", "2"]]


def test_facts_and_code_are_escaped():
    page = Page("p")
    part = page.section("s")
    part.facts([("what <", "1 < 2", "note &")])
    part.code("a < b && c")
    for text in ("what &lt;", "1 &lt; 2", "note &amp;", "a &lt; b &amp;&amp; c"):
        assert text in page.html()


def test_bars_of_unknown_height_have_no_value_to_show():
    made = bars("b", {"random": [4.0, 0.0, np.nan, 2.0]}, Axis("block"), Axis("nonzeros", log=True), alt="bars")
    (line,) = made.curves["lines"]
    assert [point[2:] for point in line["points"]] == [["0", "4"], ["1", "0"], ["3", "2"]]
    json.dumps(made.curves, allow_nan=False)
