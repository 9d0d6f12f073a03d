"""The page in a browser: headless Chromium, light and dark, phone and desktop. Run by make test-browser."""

from __future__ import annotations

import base64
import json
import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from blockgreedy.cli import app
from test_reproduce import write_small_sets

pytestmark = pytest.mark.browser

SCREENSHOTS = Path(__file__).parent.parent / "build" / "screenshots"
WIDTHS = (390, 1280)
SWITCHES = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    place = tmp_path_factory.mktemp("browser")
    folder = write_small_sets(place / "data")
    arguments = ["reproduce", "--data-dir", folder, "--seconds", 0.05, "--out", place / "out", "--quiet"]
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return place / "out" / "index.html"


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


@pytest.fixture(
    scope="module", params=[(w, c) for w in WIDTHS for c in ("light", "dark")], ids=lambda p: f"{p[0]}-{p[1]}"
)
def view(request, browser, page):
    """The page as one reader sees it; the logs begin with its loading."""
    width, scheme = request.param
    feature = {"name": "prefers-color-scheme", "value": scheme}
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.get(page.as_uri())
    logs = {log: browser.get_log(log) for log in ("browser", "performance")}
    _save_screenshot(browser, width, scheme)
    return browser, width, scheme, logs


def _save_screenshot(browser, width, scheme):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    height = min(browser.execute_script("return document.documentElement.scrollHeight"), 8000)
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    (SCREENSHOTS / f"reproduce-{width}-{scheme}.png").write_bytes(base64.b64decode(shot["data"]))


def test_page_opens_without_a_word_on_the_console(view):
    assert view[3]["browser"] == []


def test_page_asks_the_network_for_nothing(view, page):
    events = [json.loads(entry["message"])["message"] for entry in view[3]["performance"]]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert page.as_uri() in asked  # the log works
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert [url for url in asked if url.startswith("file:")] == [page.as_uri()]


def test_every_picture_is_loaded_and_has_words(view):
    pictures = view[0].execute_script(
        "return [...document.images].map(i => [i.complete, i.naturalWidth, i.clientWidth, i.alt])"
    )
    assert len(pictures) > 20
    for complete, natural, shown, words in pictures:
        assert complete
        assert natural > 0
        assert shown > 250  # below that its letters are too small to read
        assert words


def test_nothing_sticks_out_sideways(view):
    browser, width, _, _ = view
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    script = (
        "return [...document.querySelectorAll('body *')].filter(e => !e.closest('.table, details') && "
        "e.getBoundingClientRect().right > window.innerWidth + 0.5).map(e => e.outerHTML.slice(0, 80))"
    )
    assert browser.execute_script(script) == []


def test_letters_stand_out_from_the_page(view):
    browser, _, scheme, _ = view
    script = "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
    ink, paper = (
        sum(map(int, color[color.index("(") + 1 : -1].split(",")[:3])) / 3 for color in browser.execute_script(script)
    )
    assert (ink < 60 and paper > 240) if scheme == "light" else (ink > 200 and paper < 40)
    chosen = browser.execute_script("return document.images[0].currentSrc.length")
    as_light = browser.execute_script(
        "const p = document.querySelector('picture'); "
        "return p.querySelector('img').src === document.images[0].currentSrc"
    )
    assert chosen > 1000
    assert as_light is (scheme == "light")


def test_contents_lead_to_their_sections(view):
    browser = view[0]
    script = "return [...document.querySelectorAll('nav a')].map(a => document.querySelector(a.hash) !== null)"
    found = browser.execute_script(script)
    assert len(found) >= 10
    assert all(found)


def test_screenshots_are_left_for_people_to_look_at(view):
    _, width, scheme, _ = view
    assert os.path.getsize(SCREENSHOTS / f"reproduce-{width}-{scheme}.png") > 20_000
