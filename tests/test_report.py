"""The page: escaped, self-contained, in order; and the pictures on it."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

from blockgreedy.figures import DARK, INK, OF_KIND, Axis, Line, bars, color_of, curves, heat_map, thinned
from blockgreedy.report import Finding, Page

VOID = {"meta", "link", "img", "source", "br"}


class Outline(HTMLParser):
    """What a test asks of a page: balanced tags, headings, anchors, links, and everything that would be fetched."""

    def __init__(self, text):
        super().__init__()
        self.open, self.headings, self.anchors, self.links, self.fetched, self.alts = [], [], [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag not in VOID:
            self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if "id" in values:
            self.anchors.append(values["id"])
        if tag == "a":
            self.links.append(values["href"])
        elif tag == "img":
            self.alts.append(values["alt"])
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
    assert "<script" not in html
    for raw, escaped in (("A <b> &", "A &lt;b&gt; &amp;"), ("claim <1>", "claim &lt;1&gt;"), ("a<b", "a&lt;b")):
        assert raw not in html
        assert escaped in html
    assert 'alt="It &quot;falls&quot; &amp; falls"' in html


def test_page_fetches_nothing(page):
    outline = Outline(page.html())
    assert outline.open == []
    assert len(outline.fetched) == 3  # the icon and two forms of the picture
    assert all(url.startswith("data:") for url in outline.fetched)
    assert "@import" not in page.html()
    assert "url(" not in page.html()


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


def test_dark_pictures_differ_only_in_colours(picture):
    assert INK in picture.light
    for svg in (picture.light, picture.dark):
        assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert INK not in picture.dark
    assert DARK[INK] in picture.dark
    recoloured = picture.light
    for light, dark in DARK.items():
        recoloured = recoloured.replace(light, dark)
    assert recoloured == picture.dark
    assert picture.png.startswith(b"\x89PNG")


def test_every_colour_of_a_kind_has_a_dark_form_and_no_two_are_alike():
    assert set(OF_KIND.values()) <= set(DARK)
    assert len(set(OF_KIND.values())) == len(OF_KIND)
    assert len(set(DARK.values())) == len(DARK)
    assert color_of("some new kind") in DARK


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
    assert contrast(OF_KIND[kind], "#ffffff") >= 4
    assert contrast(DARK[OF_KIND[kind]], "#14171b") >= 4


def test_thinned_curves_keep_their_ends_and_are_short():
    x, y = thinned(np.arange(10_000), np.arange(10_000) ** 2.0, 50)
    assert len(x) <= 50
    assert (x[0], x[-1], y[-1]) == (0, 9999, 9999.0**2)
    assert len(thinned([1, 2], [3, 4])[0]) == 2


def test_what_a_logarithmic_axis_cannot_show_is_left_out():
    lines = [Line([0, 1, 10], [1, 0, 5]), Line([], [])]
    made = curves("zeros", lines, Axis("x", log=True), Axis("y", log=True), alt="zeros")
    assert "nan" not in made.light.lower()
    empty = curves("empty", [Line([0], [0])], Axis("x", log=True), Axis("y", log=True), alt="nothing to see")
    assert empty.png.startswith(b"\x89PNG")


def test_bars_and_heat_maps_are_drawn_with_their_blanks():
    made = bars("b", {"random": [1, 2], "clustered": [3, 0.5]}, Axis("block"), Axis("nonzeros"), alt="bars")
    assert color_of("clustered") in made.light
    grid = heat_map("h", [[1.0, np.nan]], ["r"], ["c", "d"], texts=[["1", "–"]], x="x", y="y", alt="map", center=1.0)
    assert grid.png.startswith(b"\x89PNG")
