"""Pages in headless Chromium, light and dark, on phone and desk, read and handled. Run by make test-browser."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import blockgreedy as bg
from blockgreedy.cli import app
from blockgreedy.pages import model_page, partition_page
from made_models import make_dataset, make_fit, make_path, with_cross_validation
from test_reproduce import write_small_sets

pytestmark = pytest.mark.browser

SCREENSHOTS = Path(__file__).parent.parent / "build" / "screenshots"
PAGES = ("reproduce", "fit", "path", "cv", "blocks")
SIZES = (390, 1280)
SWITCHES = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@pytest.fixture(scope="module")
def models():
    data = make_dataset()
    fit, path = make_fit(data), make_path(data)
    return {"fit": fit, "path": path, "cv": with_cross_validation(fit, path.alphas)}


@pytest.fixture(scope="module")
def pages(tmp_path_factory, models):
    place = tmp_path_factory.mktemp("browser")
    folder = write_small_sets(place / "data")
    arguments = ["reproduce", "--data-dir", folder, "--seconds", 0.05, "--out", place / "out", "--quiet"]
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    made = {"reproduce": place / "out" / "index.html"}
    for name, model in models.items():
        made[name] = place / f"{name}.html"
        model_page(model).save(made[name])
    data = make_dataset()
    made["blocks"] = place / "blocks.html"
    partition_page(bg.make_partition(data.X, data.y, n_blocks=16, kind="random"), data.X, data.y).save(made["blocks"])
    return made


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert chromium, "chromium is needed: make test-browser installs it"
    assert driver, "chromedriver is needed: make test-browser installs it"
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for switch in (*SWITCHES, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = webdriver.Chrome(options=options, service=Service(driver))
    yield opened
    opened.quit()


def open_page(browser, path, width=1280, scheme="light", media="", motion="no-preference"):
    """Loads a page as a reader with this screen and these wishes does; what was logged meanwhile."""
    wishes = {"prefers-color-scheme": scheme, "prefers-reduced-motion": motion}
    features = [{"name": name, "value": value} for name, value in wishes.items()]
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": width < 600})
    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.get(path.as_uri())
    return {log: browser.get_log(log) for log in ("browser", "performance")}


def save_screenshot(browser, name, width):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    height = min(browser.execute_script("return document.documentElement.scrollHeight"), 8000)
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    (SCREENSHOTS / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))


# ------------------------------------------------------------------------------------------------------ reading


@pytest.fixture(
    scope="module",
    params=[(name, width, scheme) for name in PAGES for width in SIZES for scheme in ("light", "dark")],
    ids=lambda p: "-".join(map(str, p)),
)
def view(request, browser, pages):
    """A page as one reader sees it."""
    name, width, scheme = request.param
    logs = open_page(browser, pages[name], width, scheme)
    save_screenshot(browser, f"{name}-{width}-{scheme}", width)
    return browser, width, scheme, logs, name


def test_page_opens_without_a_word_on_the_console(view):
    assert view[3]["browser"] == []


def test_page_asks_the_network_for_nothing(view, pages):
    address = pages[view[4]].as_uri()
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
    assert len(pictures) >= (20 if view[4] == "reproduce" else 3)
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


# ----------------------------------------------------------------------------------------------------- handling

# Corners of the drawn line of a colour in the shown figure whose words begin so, in pixels of the screen. They are
# read off the drawing, not off the data that the script has.
CORNERS = """
const [words, color] = arguments;
const svg = [...document.querySelectorAll('figure:not([hidden]) svg')]
  .find(s => s.getAttribute('aria-label').startsWith(words));
svg.scrollIntoView({block: 'center', behavior: 'instant'});
const line = [...svg.querySelectorAll('path[clip-path]')]
  .find(p => p.getAttribute('style').includes('stroke: var(--' + color));
return [...line.getAttribute('d').matchAll(/[ML] ([\\d.]+) ([\\d.]+)/g)].map(m => {
  const p = new DOMPoint(+m[1], +m[2]).matrixTransform(svg.getScreenCTM()); return [p.x, p.y]; });
"""
TIP = (
    "return [...document.querySelectorAll('.tip:not([hidden])')].map(t => [...t.children].map(row => row.innerText))"
)


def corners(browser, words, color):
    found = browser.execute_script(CORNERS, words, color)
    assert len(found) > 3
    return found


def point_at(browser, x, y):
    browser.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})


def tip(browser):
    """Rows of the one tooltip that is shown, their parts in a row."""
    shown = browser.execute_script(TIP)
    assert len(shown) <= 1
    return [" ".join(row.split()) for row in shown[0]] if shown else None


def press(browser, group, name):
    """A button of the switch that has this label."""
    script = (
        "const b = [...document.querySelectorAll('.switch[aria-label=\"' + arguments[0] + '\"] button')]"
        ".find(b => b.textContent === arguments[1]); b.focus(); b.click(); return b.getAttribute('aria-pressed')"
    )
    assert browser.execute_script(script, group, name) == "true"


def last_number(row):
    return float(row.split()[-1].replace(",", ""))


def shown_words(browser):
    script = (
        "return [...document.querySelectorAll('figure:not([hidden]) svg')].map(s => s.getAttribute('aria-label'))"
    )
    return browser.execute_script(script)


@pytest.mark.parametrize("width", SIZES)
def test_pointing_at_a_curve_shows_the_numbers_of_the_trace(browser, pages, models, width):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    trace = models["fit"].trace
    open_page(browser, pages["fit"], width)
    places = corners(browser, "dual gap", "teal")
    assert len(places) == len(trace)
    for k in (0, 2, len(trace) - 1):
        x, y = places[k]
        point_at(browser, x, y + 20)  # anywhere above or below will do
        head, row = tip(browser)
        assert head.startswith("seconds ")
        assert row.startswith("dual gap ")
        assert last_number(head) == pytest.approx(trace["seconds"][k], rel=1e-5)
        assert last_number(row) == pytest.approx(trace["gap"][k], rel=1e-5)
        marker = browser.execute_script(
            "const r = document.querySelector('.pointer circle').getBoundingClientRect();"
            "return [r.x + r.width / 2, r.y + r.height / 2]"
        )
        assert marker == pytest.approx([x, y], abs=1.0)
        box = browser.execute_script(
            "const r = document.querySelector('.tip:not([hidden])').getBoundingClientRect(); return [r.left, r.right]"
        )
        assert 0 <= box[0] < box[1] <= width
    browser.save_screenshot(
        str(SCREENSHOTS / f"tip-{width}.png")
    )  # of the whole page it would be without the pointer
    point_at(browser, 1, 1)
    assert tip(browser) is None
    assert browser.get_log("browser") == []


def test_pointing_at_a_path_shows_the_weights_of_its_largest_features(browser, pages, models):
    path = models["path"]
    dense = path.coefs.toarray()
    open_page(browser, pages["path"])
    places = corners(browser, "Weights of", "teal")
    for k in (3, 9):
        point_at(browser, *places[k])
        head, *rows = tip(browser)
        assert last_number(head) == pytest.approx(path.alphas[k], rel=1e-5)
        largest = np.argsort(-np.abs(dense).max(axis=1))[:6]
        assert len(rows) == 6
        shown = {row.rsplit(" ", 1)[0]: last_number(row) for row in rows}
        assert shown == pytest.approx({str(path.feature_names[j]): dense[j, k] for j in largest}, rel=1e-5)


def test_pointing_at_scores_shows_mean_and_errors(browser, pages, models):
    found = models["cv"].cross_validation
    open_page(browser, pages["cv"])
    point_at(browser, *corners(browser, "Mean deviance", "teal")[4])
    head, *rows = tip(browser)
    assert last_number(head) == pytest.approx(found.alphas[4], rel=1e-5)
    middle, error = found.shown[4], found.std_error[4]
    expected = [middle, middle - error, middle + error]
    assert [last_number(row) for row in rows] == pytest.approx(expected, rel=1e-5)


def test_a_finger_shows_numbers_that_stay(browser, pages, models):
    open_page(browser, pages["fit"], 390)
    x, y = corners(browser, "dual gap", "teal")[1]
    for kind, points in (("touchStart", [{"x": x, "y": y}]), ("touchEnd", [])):
        browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert last_number(tip(browser)[1]) == pytest.approx(models["fit"].trace["gap"][1], rel=1e-5)


def test_arrow_keys_walk_along_a_curve(browser, pages, models):
    from selenium.webdriver.common.keys import Keys

    trace = models["fit"].trace
    open_page(browser, pages["fit"])
    corners(browser, "Nonzero weights", "violet")
    figures = browser.find_elements("css selector", "figure:not([hidden])")
    (figure,) = [
        f for f in figures if "Nonzero weights" in f.find_element("tag name", "svg").get_attribute("aria-label")
    ]
    for key, k in (
        (Keys.HOME, 0),
        (Keys.ARROW_RIGHT, 1),
        (Keys.ARROW_RIGHT, 2),
        (Keys.ARROW_LEFT, 1),
        (Keys.END, -1),
    ):
        figure.send_keys(key)
        assert last_number(tip(browser)[1]) == trace["nonzeros"][k]
    figure.send_keys(Keys.ARROW_RIGHT)  # at the end it stays
    assert last_number(tip(browser)[1]) == trace["nonzeros"][-1]
    figure.send_keys(Keys.ESCAPE)
    assert tip(browser) is None


def test_switches_choose_clock_and_scale(browser, pages, models):
    trace = models["fit"].trace
    open_page(browser, pages["fit"])
    assert [words.split(":")[0] for words in shown_words(browser)] == [
        "objective − best against seconds, log scale", "dual gap against seconds, log scale",
        "Nonzero weights against seconds",
    ]  # fmt: skip
    press(browser, "against", "iterations")
    press(browser, "scale", "linear")
    assert [words.split(":")[0] for words in shown_words(browser)] == [
        "objective − best against iterations, linear scale", "dual gap against iterations, linear scale",
        "Nonzero weights against iterations",
    ]  # fmt: skip
    point_at(browser, *corners(browser, "dual gap", "teal")[2])
    head, row = tip(browser)
    assert head == f"iterations {trace.records[2].iteration}"
    assert last_number(row) == pytest.approx(trace["gap"][2], rel=1e-5)
    save_screenshot(browser, "switched-1280", 1280)
    press(browser, "against", "seconds")
    assert "dual gap against seconds, linear scale" in [words.split(":")[0] for words in shown_words(browser)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_theme_is_the_systems_until_another_is_chosen(browser, pages, scheme):
    open_page(browser, pages["fit"], scheme=scheme)
    for name in ("dark", "light", "auto"):
        press(browser, "theme", name)
        browser.execute_script("document.activeElement.blur()")
        assert is_light(browser) is (name == "light" or (name == "auto" and scheme == "light"))


@pytest.mark.parametrize("name", ["fit", "path"])
def test_without_its_script_the_page_shows_everything(browser, pages, name):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        open_page(browser, pages[name], 390)
        buttons, shown, drawn = browser.execute_script(
            "return [document.querySelectorAll('button, .tip').length, "
            "[...document.querySelectorAll('figure')].filter(f => f.clientHeight > 150).length, "
            "document.querySelectorAll('figure').length]"
        )
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert buttons == 0
    assert shown == drawn == {"fit": 10, "path": 4}[name]


def test_paper_is_white_without_buttons_and_with_all_rows(browser, pages):
    open_page(browser, pages["path"], 800, "dark", media="print")
    browser.execute_script("document.documentElement.dataset.theme = 'dark'")
    assert is_light(browser)
    script = "return [...document.querySelectorAll('.switches, summary')].map(e => e.getClientRects().length)"
    hidden = browser.execute_script(script)
    assert len(hidden) >= 3
    assert set(hidden) == {0}
    heights = "return [...document.querySelectorAll('details .table')].map(t => t.clientHeight)"
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    (height,) = browser.execute_script(heights)
    assert height > 12 * 20  # a row for each alpha
    save_screenshot(browser, "print-800", 800)
    browser.execute_script("dispatchEvent(new Event('afterprint'))")
    assert browser.execute_script("return document.querySelectorAll('details[open]').length") == 0


@pytest.mark.parametrize(("motion", "scroll"), [("reduce", "auto"), ("no-preference", "smooth")])
def test_nothing_moves_for_those_who_asked_for_that(browser, pages, motion, scroll):
    open_page(browser, pages["fit"], motion=motion)
    script = (
        "return [getComputedStyle(document.documentElement).scrollBehavior, "
        "getComputedStyle(document.querySelector('.switch button')).transitionDuration]"
    )
    behavior, duration = browser.execute_script(script)
    assert behavior == scroll
    assert (duration == "0s") is (motion == "reduce")
