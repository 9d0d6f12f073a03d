"""Pages in headless Chromium, handled: pointed at, slid, searched, downloaded. Run by make test-browser."""

from __future__ import annotations

import csv
import time
from dataclasses import replace

import numpy as np
import pytest

from blockgreedy.models.aliases import Aliases
from blockgreedy.reports.model_page import model_page
from chromium import (
    SCREENSHOTS,
    SIZES,
    click,
    corners,
    last_number,
    open_page,
    point_at,
    press,
    rows_of_table,
    save_screenshot,
    shown_words,
    tip,
    unfold,
)
from made_models import HOSTILE

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("width", SIZES)
def test_pointing_at_a_curve_shows_the_numbers_of_the_trace(browser, page_files, page_models, width):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    trace = page_models["fit"].trace
    open_page(browser, page_files["fit"], width)
    unfold(browser)
    places = corners(browser, "duality gap", "teal")
    assert len(places) == len(trace)
    for k in (0, 2, len(trace) - 1):
        x, y = places[k]
        point_at(browser, x, y + 20)  # anywhere above or below will do
        head, row = tip(browser)
        assert head.startswith("seconds ")
        assert row.startswith("duality gap ")
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


def test_pointing_at_a_path_shows_the_weights_of_its_largest_features(browser, page_files, page_models):
    path = page_models["path"]
    dense = path.coefs.toarray()
    open_page(browser, page_files["path"])
    places = corners(browser, "Weights of", "teal")
    for k in (3, 9):
        point_at(browser, *places[k])
        head, *rows = tip(browser)
        assert last_number(head) == pytest.approx(path.alphas[k], rel=1e-5)
        largest = np.argsort(-np.abs(dense).max(axis=1))[:6]
        shown = {row.rsplit(" ", 1)[0]: last_number(row) for row in rows}
        expected = {str(path.feature_names[j]): dense[j, k] for j in largest}
        assert len(shown.keys() - expected.keys()) <= 1  # a thin line, where the pointer is close to it
        assert {name: shown[name] for name in expected} == pytest.approx(expected, rel=1e-5)


def test_pointing_at_scores_shows_mean_and_errors(browser, page_files, page_models):
    found = page_models["cv"].cross_validation
    open_page(browser, page_files["cv"])
    point_at(browser, *corners(browser, "Mean deviance", "teal")[4])
    head, *rows = tip(browser)
    assert last_number(head) == pytest.approx(found.alphas[4], rel=1e-5)
    middle, error = found.shown[4], found.std_error[4]
    expected = {"mean": middle, "− 1 standard error": middle - error, "+ 1 standard error": middle + error}
    expected["fold 3"] = found.shown_folds[2][4]  # of the folds the one that the pointer is on
    assert {row.rsplit(" ", 1)[0]: last_number(row) for row in rows} == pytest.approx(expected, rel=1e-5)


def test_a_finger_shows_numbers_that_stay(browser, page_files, page_models):
    open_page(browser, page_files["fit"], 390)
    unfold(browser)
    x, y = corners(browser, "duality gap", "teal")[1]
    for kind, points in (("touchStart", [{"x": x, "y": y}]), ("touchEnd", [])):
        browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert last_number(tip(browser)[1]) == pytest.approx(page_models["fit"].trace["gap"][1], rel=1e-5)


def test_arrow_keys_walk_along_a_curve(browser, page_files, page_models):
    from selenium.webdriver.common.keys import Keys

    trace = page_models["fit"].trace
    open_page(browser, page_files["fit"])
    unfold(browser)
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


def test_switches_choose_clock_and_scale(browser, page_files, page_models):
    trace = page_models["fit"].trace
    open_page(browser, page_files["fit"])
    unfold(browser)
    assert [words.split(":")[0] for words in shown_words(browser)][-3:] == [
        "objective − best against seconds, log scale", "duality gap against seconds, log scale",
        "Nonzero weights against seconds",
    ]  # fmt: skip
    press(browser, "against", "iterations")
    press(browser, "scale", "linear")
    assert [words.split(":")[0] for words in shown_words(browser)][-3:] == [
        "objective − best against iterations, linear scale", "duality gap against iterations, linear scale",
        "Nonzero weights against iterations",
    ]  # fmt: skip
    point_at(browser, *corners(browser, "duality gap", "teal")[2])
    head, row = tip(browser)
    assert head == f"iterations {trace.records[2].iteration}"
    assert last_number(row) == pytest.approx(trace["gap"][2], rel=1e-5)
    save_screenshot(browser, "switched-1280", 1280)
    press(browser, "against", "seconds")
    assert "duality gap against seconds, linear scale" in [words.split(":")[0] for words in shown_words(browser)]


@pytest.mark.parametrize(
    ("words", "color", "x", "y"),
    [
        ("ROC curve", "teal", "roc_fpr", "roc_tpr"),
        ("Precision against recall", "violet", "pr_recall", "pr_precision"),
    ],
)
def test_pointing_at_a_curve_of_quality_shows_its_nearest_point(browser, page_files, page_models, words, color, x, y):
    curves = page_models["fit"].quality.curves
    open_page(browser, page_files["fit"])
    places = corners(browser, words, color)
    for k in (2, len(places) // 2, len(places) - 2):
        point_at(browser, *places[k])
        across, up = map(last_number, tip(browser))
        assert np.min(np.hypot(curves[x] - across, curves[y] - up)) < 1e-5


def test_pointing_at_a_group_of_the_calibration_shows_its_rows(browser, page_files, page_models):
    found = page_models["fit"].quality.curves
    open_page(browser, page_files["fit"])
    places = corners(browser, "Observed share", "blue")
    point_at(browser, *places[1])
    across, up, rows = tip(browser)
    assert last_number(across) == pytest.approx(found["calibration_predicted"][1], rel=1e-4)
    assert last_number(up) == pytest.approx(found["calibration_observed"][1], rel=1e-4, abs=1e-9)
    assert rows == f"rows {found['calibration_count'][1]:.0f}"


CENTER = """
const svg = [...document.querySelectorAll('figure:not([hidden]) svg')]
  .find(s => s.getAttribute('aria-label').startsWith(arguments[0]));
svg.scrollIntoView({block: 'center', behavior: 'instant'});
const box = svg.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2];
"""


@pytest.mark.parametrize(
    ("page", "words", "rows"),
    [
        ("fit", "Histogram of the predicted", ["predicted probability", "class -1", "class 1"]),
        ("regression", "Observed against", ["predicted", "observed"]),
        ("regression", "Histogram of observed", ["observed − predicted", "rows"]),
        ("blocks", "nonzeros of X", ["block", "random"]),
        ("reproduce", "regularised expected loss", ["", "iterations", "regularised"]),
        ("reproduce", "Nonzeros per block", ["block", "random"]),
        ("reproduce", "Heat map of iterations", ["P,", "value"]),
    ],
)
def test_every_kind_of_picture_answers_the_pointer(browser, page_files, page, words, rows):
    open_page(browser, page_files[page])
    point_at(browser, *browser.execute_script(CENTER, words))
    shown = tip(browser)
    assert len(shown) >= len(rows)
    for found, expected in zip(shown, rows, strict=False):
        assert found.startswith(expected)
    assert browser.get_log("browser") == []


# --------------------------------------------------------------------------------------------- features and path


def slide_to(browser, k):
    script = (
        "const s = document.querySelector('.slider input'); s.value = arguments[0];"
        "s.dispatchEvent(new Event('input'))"
    )
    browser.execute_script(script, k)


RIGHTMOST = """
return Math.max(...[...document.querySelectorAll('.slider dd')].map(fact => {
  const range = document.createRange(); range.selectNodeContents(fact);
  return range.getBoundingClientRect().right; }));
"""


def slider_value(browser):
    return int(browser.execute_script("return document.querySelector('.slider input').value"))


def slider_facts(browser):
    pairs = browser.execute_script(
        "return [...document.querySelectorAll('.slider dl div')].map(d => [...d.children].map(e => e.textContent))"
    )
    return dict(map(tuple, pairs))


@pytest.mark.parametrize("width", SIZES)
def test_the_slider_shows_the_model_of_its_alpha(browser, page_files, page_models, width):
    path = page_models["path"]
    open_page(browser, page_files["path"], width)
    best = int(np.argmin(path.criteria["bic"]))
    assert slider_value(browser) == best
    for k in (best, 6, 11):
        slide_to(browser, k)
        facts = slider_facts(browser)
        assert float(facts["alpha"]) == pytest.approx(path.alphas[k], rel=1e-3)
        assert facts["nonzero weights"] == f"{path.nonzeros[k]} of 300"
        assert facts["deviance explained"] == f"{100 * path.deviance_explained[k]:.3g} %"
        proof, gap = facts["certificate"].rsplit(" ", 1)
        assert proof == "proven, gap"
        assert float(gap) == pytest.approx(path.gaps[k], rel=0.05)
        assert browser.execute_script(RIGHTMOST) <= width
        weights = path.coefs.toarray()[:, k]
        for side, sign in (("div:nth-child(1)", 1), ("div:nth-child(2)", -1)):
            rows = rows_of_table(browser, f".sides > {side}")
            order = np.argsort(-sign * weights, kind="stable")[: min(15, np.count_nonzero(sign * weights > 0))]
            assert [row[0] for row in rows] == [str(path.feature_names[j]) for j in order]
            np.testing.assert_allclose([last_number(row[1]) for row in rows], weights[order], rtol=1e-3)
            assert [int(row[2]) for row in rows] == path.support[order].tolist()
    browser.execute_script("document.querySelector('.slider').scrollIntoView({behavior: 'instant'})")
    browser.save_screenshot(str(SCREENSHOTS / f"slider-{width}.png"))
    assert browser.get_log("browser") == []


def test_the_slider_and_the_curves_follow_each_other(browser, page_files, page_models):
    path = page_models["path"]
    open_page(browser, page_files["path"])
    places = corners(browser, "Nonzero weights against alpha", "violet")
    for k in (2, 9):
        click(browser, *places[k])
        assert slider_value(browser) == k
        line = browser.execute_script(
            "const svg = [...document.querySelectorAll('figure:not([hidden]) svg')].find(s => "
            "s.getAttribute('aria-label').startsWith('Nonzero weights against alpha'));"
            "return svg.querySelector('.chosen line').getBoundingClientRect().x"
        )
        assert line == pytest.approx(places[k][0], abs=1.5)
        places = corners(browser, "Nonzero weights against alpha", "violet")  # tables above may have grown
    press(browser, "go to", "EBIC")
    assert slider_value(browser) == int(np.argmin(path.criteria["ebic"]))


def test_the_slider_is_moved_by_keys_and_says_its_alpha(browser, page_files, page_models):
    from selenium.webdriver.common.keys import Keys

    path = page_models["path"]
    open_page(browser, page_files["path"])
    slider = browser.find_element("css selector", ".slider input")
    slider.send_keys(Keys.HOME, Keys.ARROW_RIGHT)
    assert float(slider.get_attribute("aria-valuetext")) == pytest.approx(path.alphas[1], rel=1e-5)
    assert slider_facts(browser)["nonzero weights"].startswith(f"{path.nonzeros[1]} of")


@pytest.mark.parametrize("width", SIZES)
def test_search_finds_features_by_a_part_of_their_name(browser, page_files, page_models, width):
    fit = page_models["fit"]
    open_page(browser, page_files["fit"], width)
    box = browser.find_element("css selector", "input[type=search]")
    assert rows_of_table(browser, ".features > .table") == []
    box.send_keys("WORD 1")
    order = np.argsort(-np.abs(fit.coef), kind="stable")
    names = [str(fit.feature_names[j]) for j in order if fit.coef[j] and "word 1" in str(fit.feature_names[j])]
    rows = rows_of_table(browser, ".features > .table")
    assert [row[0] for row in rows] == names[:50]
    status = browser.find_element("css selector", ".features > .note").text
    assert status == f"{len(names)} of all {fit.nonzeros[0]} nonzero weights match"
    browser.execute_script("arguments[0].scrollIntoView({block: 'start', behavior: 'instant'})", box)
    browser.save_screenshot(str(SCREENSHOTS / f"search-{width}.png"))
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    box.send_keys(" nowhere")
    assert rows_of_table(browser, ".features > .table") == []
    box.clear()
    box.send_keys("<script>")
    assert rows_of_table(browser, ".features > .table")[0][0].startswith(HOSTILE)
    assert browser.get_log("browser") == []


def is_complete(file):
    """Whether a download is there: Chromium holds its name with an empty file until the whole text has arrived."""
    return file.exists() and file.stat().st_size > 0


def downloaded(browser, folder, name):
    """The rows of the CSV file that the page's button saves under this name."""
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})
    (button,) = [b for b in browser.find_elements("css selector", ".tools button") if b.text == "Download CSV"]
    browser.execute_script("arguments[0].click()", button)
    deadline = time.monotonic() + 10
    while not is_complete(folder / name) and time.monotonic() < deadline:
        time.sleep(0.05)
    with (folder / name).open(newline="") as file:
        return list(csv.DictReader(file))


def test_features_are_downloaded_as_csv(browser, page_files, page_models, tmp_path):
    path = page_models["path"]
    open_page(browser, page_files["path"])
    slide_to(browser, 9)
    rows = downloaded(browser, tmp_path, f"features-alpha-{path.alphas[9]:.6g}.csv")
    weights = path.coefs.toarray()[:, 9]
    assert {row["feature"]: float(row["weight"]) for row in rows} == pytest.approx(
        {str(path.feature_names[j]): weights[j] for j in np.flatnonzero(weights)}, rel=1e-5
    )
    places = {str(name): j for j, name in enumerate(path.feature_names)}
    assert all(int(row["rows"]) == path.support[places[row["feature"]]] for row in rows)


def test_the_badge_opens_the_certificate(browser, page_files):
    open_page(browser, page_files["fit"])
    is_open = "return document.querySelector('#certificate > details').open"
    assert browser.execute_script(is_open) is False
    browser.execute_script("document.querySelector('.badge').click()")
    deadline = time.monotonic() + 5
    while not browser.execute_script(is_open) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert browser.execute_script(is_open) is True


def test_copies_of_features_are_named_found_and_downloaded(browser, page_models, tmp_path):
    fit = page_models["fit"]
    first, *others = (int(j) for j in np.argsort(-np.abs(fit.coef), kind="stable")[: fit.nonzeros[0]])
    absent = np.flatnonzero(fit.coef == 0)[:4]
    aliases = Aliases([np.sort([first, *absent])], fit.coefs.indices)
    model_page(replace(fit, aliases=aliases)).save(tmp_path / "copies.html")
    open_page(browser, tmp_path / "copies.html")
    names = [str(fit.feature_names[j]) for j in absent]
    line = f"same column as {names[0]}, {names[1]} and 2 more"
    own = str(fit.feature_names[first])
    cells = [row[0] for row in rows_of_table(browser, ".sides")]
    assert own + line in cells
    assert sum("same column as" in cell for cell in cells) == 1
    (small,) = browser.find_elements("css selector", ".sides small")
    assert small.get_attribute("title") == f"{', '.join(names[:3])} and {names[3]}"
    browser.find_element("css selector", "input[type=search]").send_keys(names[3])
    assert own + line in [row[0] for row in rows_of_table(browser, ".features > .table")]
    rows = downloaded(browser, tmp_path, "features.csv")
    assert {row["feature"]: row["same as"] for row in rows} == {
        own: small.get_attribute("title"), **{str(fit.feature_names[j]): "" for j in others}
    }  # fmt: skip
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", small)
    browser.save_screenshot(str(SCREENSHOTS / "copies.png"))
    assert browser.get_log("browser") == []
