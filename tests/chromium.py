"""Pages in headless Chromium: opened with some screen and some wishes, pointed at, pressed, looked at."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path

SCREENSHOTS = Path(__file__).parent.parent / "build" / "screenshots"
SIZES = (390, 1280)
SWITCHES = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def start(profile):
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert chromium, "chromium is needed: make test-browser installs it"
    assert driver, "chromedriver is needed: make test-browser installs it"
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for switch in (*SWITCHES, f"--user-data-dir={profile}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(driver))


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


def unfold(browser):
    browser.execute_script("for (const part of document.querySelectorAll('details')) part.open = true")


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


def click(browser, x, y):
    for kind in ("mousePressed", "mouseReleased"):
        event = {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}
        browser.execute_cdp_cmd("Input.dispatchMouseEvent", event)


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
    return float(row.split()[-1].replace(",", "").replace("−", "-"))


def shown_words(browser):
    script = (
        "return [...document.querySelectorAll('figure:not([hidden]) svg')].map(s => s.getAttribute('aria-label'))"
    )
    return browser.execute_script(script)


def rows_of_table(browser, selector):
    """Cells of the shown tables that a selector finds, row by row."""
    script = (
        "return [...document.querySelectorAll(arguments[0] + ' tbody tr')]"
        ".map(row => [...row.children].map(cell => cell.textContent))"
    )
    return browser.execute_script(script, selector)
