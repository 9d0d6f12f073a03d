"""Pages in headless Chromium, light and dark, on phone and desk, as they are read. Run by make test-browser."""

from __future__ import annotations

import json
import os
import re

import pytest

from chromium import SCREENSHOTS, SIZES, open_page, press, save_screenshot, unfold

pytestmark = pytest.mark.browser

PAGES = ("reproduce", "fit", "path", "cv", "regression", "blocks")


@pytest.fixture(
    scope="module",
    params=[(name, width, scheme) for name in PAGES for width in SIZES for scheme in ("light", "dark")],
    ids=lambda p: "-".join(map(str, p)),
)
def view(request, browser, page_files):
    """A page as one reader sees it."""
    name, width, scheme = request.param
    logs = open_page(browser, page_files[name], width, scheme)
    unfold(browser)
    save_screenshot(browser, f"{name}-{width}-{scheme}", width)
    return browser, width, scheme, logs, name


def test_page_opens_without_a_word_on_the_console(view):
    assert view[3]["browser"] == []


def test_page_asks_the_network_for_nothing(view, page_files):
    address = page_files[view[4]].as_uri()
    events = [json.loads(entry["message"])["message"] for entry in view[3]["performance"]]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert address in asked  # the log works
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert [url for url in asked if url.startswith("file:")] == [address]


def test_every_picture_is_wide_enough_and_has_words(view):
    pictures = view[0].execute_script(
        "return [...document.querySelectorAll('figure:not([hidden]) svg')]"
        ".map(s => [s.clientWidth, s.clientHeight, s.getAttribute('aria-label')])"
    )
    assert len(pictures) >= {"reproduce": 20, "regression": 2}.get(view[4], 3)
    for width, height, words in pictures:
        assert width > 250  # below that its letters are too small to read
        assert height > 150
        assert words


def test_nothing_sticks_out_sideways(view):
    browser, width = view[:2]
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    script = (
        "return [...document.querySelectorAll('body *')].filter(e => !e.closest('.table, details, svg') && "
        "e.getBoundingClientRect().right > window.innerWidth + 0.5).map(e => e.outerHTML.slice(0, 80))"
    )
    assert browser.execute_script(script) == []


def brightness(color):
    return sum(map(int, re.findall(r"\d+", color)[:3])) / 3


def shades(browser):
    """Letters of the page, the page, and letters of a drawing."""
    script = (
        "const s = getComputedStyle(document.body), d = document.querySelector('figure svg g[style*=\"--ink\"]');"
        "return [s.color, s.backgroundColor, getComputedStyle(d).fill]"
    )
    return [brightness(color) for color in browser.execute_script(script)]


def is_light(browser):
    ink, paper, drawn = shades(browser)
    assert (ink < 60 and paper > 240 and drawn < 60) or (ink > 200 and paper < 40 and drawn > 200)
    return paper > 240


def test_letters_stand_out_from_the_page_in_text_and_drawings(view):
    assert is_light(view[0]) is (view[2] == "light")


def test_contents_lead_to_their_sections(view):
    script = "return [...document.querySelectorAll('nav a')].map(a => document.querySelector(a.hash) !== null)"
    found = view[0].execute_script(script)
    assert len(found) >= {"reproduce": 10, "blocks": 1}.get(view[4], 4)
    assert all(found)


def test_screenshots_are_left_for_people_to_look_at(view):
    name = "-".join(map(str, (view[4], view[1], view[2])))
    assert os.path.getsize(SCREENSHOTS / f"{name}.png") > 20_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_theme_is_the_systems_until_another_is_chosen(browser, page_files, scheme):
    open_page(browser, page_files["fit"], scheme=scheme)
    for name in ("dark", "light", "auto"):
        press(browser, "theme", name)
        browser.execute_script("document.activeElement.blur()")
        assert is_light(browser) is (name == "light" or (name == "auto" and scheme == "light"))


@pytest.mark.parametrize("name", ["fit", "path"])
def test_without_its_script_the_page_shows_everything(browser, page_files, name):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        open_page(browser, page_files[name], 390)
        unfold(browser)
        buttons, shown, drawn = browser.execute_script(
            "return [document.querySelectorAll('button, input, .tip').length, "
            "[...document.querySelectorAll('figure')].filter(f => f.clientHeight > 150).length, "
            "document.querySelectorAll('figure').length]"
        )
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert buttons == 0
    assert shown == drawn == {"fit": 14, "path": 8}[name]


def test_paper_is_white_without_buttons_and_with_all_rows(browser, page_files):
    open_page(browser, page_files["path"], 800, "dark", media="print")
    browser.execute_script("document.documentElement.dataset.theme = 'dark'")
    assert is_light(browser)
    script = "return [...document.querySelectorAll('.switches, .tools, input')].map(e => e.getClientRects().length)"
    hidden = browser.execute_script(script)
    assert len(hidden) >= 3
    assert set(hidden) == {0}
    heights = "return [...document.querySelectorAll('#certificate .table')].map(t => t.clientHeight)"
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    (height,) = browser.execute_script(heights)
    assert height > 12 * 20  # a row for each alpha
    save_screenshot(browser, "print-800", 800)
    browser.execute_script("dispatchEvent(new Event('afterprint'))")
    assert browser.execute_script("return document.querySelectorAll('details[open]').length") == 0


@pytest.mark.parametrize(("motion", "scroll"), [("reduce", "auto"), ("no-preference", "smooth")])
def test_nothing_moves_for_those_who_asked_for_that(browser, page_files, motion, scroll):
    open_page(browser, page_files["fit"], motion=motion)
    script = (
        "return [getComputedStyle(document.documentElement).scrollBehavior, "
        "getComputedStyle(document.querySelector('.switch button')).transitionDuration]"
    )
    behavior, duration = browser.execute_script(script)
    assert behavior == scroll
    assert (duration == "0s") is (motion == "reduce")
