"""The pages of models and partitions: the numbers on them are the numbers there are."""

import json
import re
from dataclasses import replace
from html import unescape
from types import SimpleNamespace

import numpy as np
import pytest

import blockgreedy as bg
from blockgreedy.data.encoding import Encoding
from blockgreedy.models.model import Model
from blockgreedy.models.quality import ON_TRAINING_ROWS
from blockgreedy.reports.model_page import model_page, partition_page
from blockgreedy.reports.page_features import choices, source_names
from made_models import (
    HOSTILE,
    SETTINGS,
    make_problem,
    with_cross_validation,
    with_quality,
)
from test_report import Outline


@pytest.fixture(scope="module")
def pages(page_fit, page_path):
    both = with_cross_validation(page_path, page_path.alphas)
    models = {
        "fit": page_fit,
        "path": page_path,
        "cv": with_cross_validation(page_fit, page_path.alphas),
        "path with cv": both,
    }
    return {name: model_page(model) for name, model in models.items()}


def sections(page):
    return [part.title for part in page.sections]


def words(page):
    """The page as it reads, without tags."""
    html = page.html()
    body = re.sub(r"<svg.*?</svg>|<script>.*?</script>|<style>.*?</style>", "", html, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def rows_of(page, caption):
    """Cells of the table whose caption begins so."""
    for caption_found, body in re.findall(
        r"<caption><span>(.*?)</span>.*?<tbody>(.*?)</tbody>", page.html(), re.DOTALL
    ):
        if unescape(caption_found).startswith(caption):
            rows = re.findall(r"<tr>(.*?)</tr>", body)
            return [
                [unescape(re.sub("<[^>]+>", "", cell)) for cell in re.findall(r"<t[hd].*?</t[hd]>", r)] for r in rows
            ]
    raise AssertionError(f"no table {caption!r}")


def embedded(page):
    """What the page's script knows of the features."""
    (text,) = re.findall(r"data-features='(.*?)'", page.html())
    return json.loads(unescape(text))


def facts(page):
    """The numbers before the contents: what → (value, note)."""
    top = page.html().partition("<nav")[0]
    cells = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>(?:<dd>(.*?)</dd>)?", top)
    return {unescape(what): (unescape(value), unescape(note)) for what, value, note in cells}


def curve(page, name):
    (picture,) = [made for made in page.all_pictures() if made.name == name]
    return {line["label"]: [point[2:] for point in line["points"]] for line in picture.curves["lines"]}


def numbers(points):
    return np.array([[float(x.replace(",", "")), float(y.replace(",", ""))] for x, y in points])


def test_each_kind_of_model_has_its_sections(pages):
    first, last = "Prediction quality", "Run settings"
    assert sections(pages["fit"]) == [first, "Features", "Certificate", "Convergence", last]
    assert sections(pages["path"]) == [first, "Path", "Certificate", last]
    assert sections(pages["cv"]) == [first, "Cross-validation", "Features", "Certificate", "Convergence", last]
    assert sections(pages["path with cv"]) == [first, "Cross-validation", "Path", "Certificate", last]


def test_page_leads_with_the_score_the_alpha_and_the_number_of_features(page_fit, pages):
    top = facts(pages["fit"])
    assert list(top)[:3] == ["AUC", "alpha", "nonzero weights"]
    score, note = top["AUC"]
    assert float(score) == pytest.approx(page_fit.quality.scores["roc_auc"], rel=1e-3)
    assert note == "baseline 0.5; 20 % of the rows, held out"
    assert float(top["alpha"][0]) == pytest.approx(page_fit.alphas[0], rel=1e-3)
    assert top["nonzero weights"] == (str(page_fit.nonzeros[0]), "of 300 features")


@pytest.mark.parametrize("name", ["fit", "path", "cv", "path with cv"])
def test_pages_are_whole_and_run_no_name_of_a_feature(pages, name):
    outline = Outline(pages[name].html())
    assert outline.open == []
    assert outline.scripts == 1
    assert HOSTILE in words(pages[name])
    assert all(outline.words)
    assert len(outline.words) == len(pages[name].all_pictures()) > 0
    names = [made.name for made in pages[name].all_pictures()]
    assert len(set(names)) == len(names)


def test_page_has_the_command_and_every_setting(pages):
    text = words(pages["fit"])
    assert SETTINGS["command"] in text
    settings = dict(rows_of(pages["fit"], "Run settings"))
    assert settings.keys() == (SETTINGS.keys() - {"command"}) | {"date", "versions", "machine"}
    assert settings["versions"].startswith("python: 3.")
    assert settings["max_seconds"] == "–"
    assert settings["positive"] == "no"
    assert settings["tol"] == "1e-07"
    assert settings["a <new> key"] == "x & y, 3"


def test_certificate_is_that_of_the_weights(page_data, page_fit, pages):
    text = words(pages["fit"])
    problem = make_problem(page_data)
    objective = problem.objective(page_fit.coef, page_fit.intercept)  # in NumPy, from the weights alone
    shown = float(re.search(r"objective\s+(0\.\d+)\s+null model", text)[1])
    assert shown == pytest.approx(objective, rel=1e-9)
    badge, said = (float(gap) for gap in re.findall(r"at most\s+(\S+?)\s+above the true minimum", text))
    assert said == pytest.approx(page_fit.gaps[0], rel=1e-2)
    assert badge == pytest.approx(page_fit.gaps[0], rel=0.1)
    assert 0 < said <= 1e-7 * problem.null_model.objective * 1.01
    assert "✓ Proven" in text
    assert 'class="badge good" href="#certificate"' in pages["fit"].html()


@pytest.mark.parametrize("status", ["max_iter", "max_seconds", "interrupted", "stalled", "diverged"])
def test_page_says_what_became_of_a_fit_that_did_not_converge(page_fit, status):
    text = words(model_page(replace(page_fit, statuses=(status,), trace=None)))
    assert f"Status: {status}. " in text
    assert f"! Not converged {status}; even so" in text
    assert "Proven" not in text


def test_a_model_without_proof_says_so(page_fit):
    text = words(model_page(replace(page_fit, gaps=np.array([np.inf]), trace=None)))
    assert "! No proof" in text
    assert "at most" not in text


def test_a_path_names_the_alpha_that_did_not_converge(page_path):
    statuses = ("converged",) * 11 + ("max_seconds",)
    text = words(model_page(replace(page_path, statuses=statuses)))
    assert f"Status: max_seconds (first at alpha {page_path.alphas[11]:.6g})" in text
    assert "! Not converged at 1 of 12 alphas" in text


def test_convergence_curves_are_the_trace(page_fit, pages):
    trace = page_fit.trace
    error = trace["objective"] - trace["objective"].min()
    assert len(trace) > 4
    for clock, column in (("seconds", "seconds"), ("iterations", "iteration")):
        gaps = numbers(curve(pages["fit"], f"convergence-gap-{clock}-log")["duality gap"])
        np.testing.assert_allclose(gaps, np.column_stack([trace[column], trace["gap"]]), rtol=1e-5)
        shown = numbers(curve(pages["fit"], f"convergence-objective-{clock}-log")["objective − best"])
        seen = error > 0  # a logarithmic scale has no zero
        np.testing.assert_allclose(shown, np.column_stack([trace[column], error])[seen], rtol=1e-5)
        counts = numbers(curve(pages["fit"], f"convergence-nonzeros-{clock}")["nonzero weights"])
        np.testing.assert_array_equal(counts[:, 1], trace["nonzeros"])
    linear = numbers(curve(pages["fit"], "convergence-objective-iterations-linear")["objective − best"])
    np.testing.assert_allclose(linear[:, 1], error, rtol=1e-5)


def test_path_curves_are_those_of_the_weights(page_path, pages):
    dense = page_path.coefs.toarray()
    counts = numbers(curve(pages["path"], "path-nonzeros-linear")["nonzero weights"])
    np.testing.assert_allclose(counts[:, 0], page_path.alphas, rtol=1e-5)
    np.testing.assert_array_equal(counts[:, 1], np.count_nonzero(dense, axis=0))
    lines = curve(pages["path"], "path-weights")
    order = np.argsort(-np.abs(dense).max(axis=1))
    largest = order[:6]
    assert set(lines) == {str(page_path.feature_names[j]) for j in order[:60] if np.any(dense[j])}
    (picture,) = [made for made in pages["path"].all_pictures() if made.name == "path-weights"]
    loud = {line["label"] for line in picture.curves["lines"] if not line.get("quiet")}
    assert loud == {str(page_path.feature_names[j]) for j in largest}
    for j in largest:
        shown = numbers(lines[str(page_path.feature_names[j])])[:, 1]
        np.testing.assert_allclose(shown, dense[j], rtol=1e-5, atol=1e-300)
    explained = numbers(curve(pages["path"], "path-deviance")["deviance explained, %"])
    np.testing.assert_allclose(explained[:, 1], 100 * page_path.deviance_explained, rtol=1e-5, atol=1e-12)


def test_features_enter_in_the_order_of_their_first_nonzero_weight(page_path, pages):
    dense = page_path.coefs.toarray()
    rows = rows_of(pages["path"], "The first features to enter the model")
    assert len(rows) == 20
    places = {str(name): j for j, name in enumerate(page_path.feature_names)}
    first = [int(np.flatnonzero(dense[j])[0]) if np.any(dense[j]) else 99 for j in range(300)]
    assert [float(row[1]) for row in rows] == pytest.approx(
        [page_path.alphas[k] for k in sorted(first)[:20]], rel=1e-5
    )
    for name, alpha, weight in rows:
        assert float(alpha) == pytest.approx(page_path.alphas[first[places[name]]], rel=1e-5)
        assert float(weight.replace("−", "-")) == pytest.approx(dense[places[name], -1], rel=1e-3)


@pytest.mark.parametrize(("caption", "sign"), [("For class 1", 1), ("Against class 1", -1)])
def test_weights_of_each_sign_stand_in_their_own_table_with_the_rows_they_occur_in(
    page_data, page_fit, pages, caption, sign
):
    rows = rows_of(pages["fit"], caption)
    count = np.count_nonzero(sign * page_fit.coef > 0)
    assert f"<span>{caption} ({count})</span>" in pages["fit"].html()
    order = np.argsort(-sign * page_fit.coef, kind="stable")[: min(15, count)]
    assert [row[0] for row in rows] == [str(page_fit.feature_names[j]) for j in order]
    np.testing.assert_allclose([float(row[1].replace("−", "-")) for row in rows], page_fit.coef[order], rtol=1e-3)
    assert [int(row[2]) for row in rows] == np.count_nonzero(page_data.X.toarray()[:, order], axis=0).tolist()
    assert "Positive weights raise the probability of class 1." in words(pages["fit"])


def test_the_script_has_all_nonzero_features_of_every_alpha(page_path, pages):
    data, dense = embedded(pages["path"]), page_path.coefs.toarray()
    assert len(data["points"]) == len(page_path)
    for k, point in enumerate(data["points"]):
        found = {data["names"][i]: weight for i, weight in zip(point["of"], point["weights"], strict=True)}
        expected = {str(page_path.feature_names[j]): dense[j, k] for j in np.flatnonzero(dense[:, k])}
        assert found == pytest.approx(expected, rel=1e-5)
        assert point["signs"] == [np.count_nonzero(dense[:, k] > 0), np.count_nonzero(dense[:, k] < 0)]
        assert np.all(np.diff(np.abs(point["weights"])) <= 0)
        assert float(point["alpha"]) == pytest.approx(page_path.alphas[k], rel=1e-5)
        assert point["facts"]["deviance explained"] == f"{100 * page_path.deviance_explained[k]:.3g} %"
        assert point["facts"]["certificate"].startswith("proven, gap ")
    support = dict(zip(data["names"], data["support"], strict=True))
    places = {str(name): j for j, name in enumerate(page_path.feature_names)}
    assert all(support[name] == page_path.support[places[name]] for name in data["names"])


def test_a_wide_model_embeds_only_its_largest_weights(monkeypatch, page_path):
    monkeypatch.setattr("blockgreedy.reports.page_features._MOST_OF_ALL", 36 * len(page_path))
    data = embedded(model_page(page_path))
    assert max(len(point["of"]) for point in data["points"]) == 36
    assert data["points"][-1]["nonzeros"] == page_path.nonzeros[-1] > 36


def test_a_path_opens_at_its_lowest_bic_and_a_cross_validated_one_at_its_best_score(page_path, pages):
    best = int(np.argmin(page_path.criteria["bic"]))
    assert embedded(pages["path"])["open"] == best
    assert facts(pages["path"])["alpha"] == (f"{page_path.alphas[best]:.4g}", "lowest BIC")
    assert embedded(pages["path with cv"])["open"] == 7
    assert [name for name, _ in choices(page_path)] == ["BIC", "EBIC", "AIC"]
    jumps = dict(map(tuple, embedded(pages["path with cv"])["jumps"]))
    assert (jumps["CV minimum"], jumps["CV 1 SE"], jumps["BIC"]) == (7, 5, best)
    assert embedded(model_page(replace(page_path, criteria=None)))["open"] == len(page_path) - 1


def test_scores_stand_beside_the_baseline(page_fit, pages):
    rows = {row[0]: row[1:] for row in rows_of(pages["fit"], "Scores beside the baseline")}
    names = {"AUC (ROC)": "roc_auc", "log loss": "log_loss", "accuracy": "accuracy"}
    for label, name in names.items():
        assert float(rows[label][0]) == pytest.approx(page_fit.quality.scores[name], rel=1e-3)
        assert float(rows[label][1]) == pytest.approx(page_fit.quality.baseline[name], rel=1e-3)
    assert rows["log loss"][2] == "lower"
    drawn = numbers(curve(pages["fit"], "quality-roc")["this model"])
    np.testing.assert_allclose(drawn[:, 0], page_fit.quality.curves["roc_fpr"], rtol=1e-5)
    names = [made.name for made in pages["fit"].all_pictures() if made.name.startswith("quality")]
    assert names == ["quality-roc", "quality-precision-recall", "quality-calibration", "quality-scores"]
    text = words(pages["fit"])
    assert "Measured on 200 rows: 20 % of the rows, held out." in text
    assert "optimistic" not in text


def test_scores_of_training_rows_are_called_optimistic_and_missing_ones_are_missed(page_data, page_fit):
    assert "optimistic" in words(model_page(with_quality(replace(page_fit, trace=None), page_data, ON_TRAINING_ROWS)))
    page = model_page(replace(page_fit, trace=None, quality=None))
    assert "No scores are stored" in words(page)
    assert next(iter(facts(page))) == "alpha"


def test_a_squared_hinge_model_has_no_probabilities(page_data):
    problem = bg.Problem(page_data.X, page_data.y, loss="squared_hinge", alpha=0.005)
    model = with_quality(Model.of_solution(problem, bg.solve(problem), page_data), page_data)
    page = model_page(replace(model, trace=None))
    assert "Positive weights raise the score of class 1." in words(page)
    assert [made.name for made in page.all_pictures()] == [
        "quality-roc",
        "quality-precision-recall",
        "quality-scores",
    ]


def test_weights_are_counted_per_source_column(page_data, page_fit):
    encoding = Encoding.of_json([["age", None], ["site", [*map(str, range(199))]], ["hour", [*map(str, range(100))]]])
    page = model_page(replace(page_fit, encoding=encoding, feature_names=encoding.feature_names, trace=None))
    found = {row[0]: (int(row[1]), int(row[2])) for row in rows_of(page, "Nonzero weights per source column")}
    counts = {"age": (page_fit.coef[:1], 1), "site": (page_fit.coef[1:200], 199), "hour": (page_fit.coef[200:], 100)}
    expected = {name: (np.count_nonzero(weights), of) for name, (weights, of) in counts.items()}
    assert found == {name: pair for name, pair in expected.items() if pair[0]}
    assert embedded(page)["has_sources"]


def test_crosses_are_sources_of_their_own():
    groups = [(("age",), 0, 1), (("site", "hour"), 1, 4)]
    model = SimpleNamespace(encoding=SimpleNamespace(groups=groups), n_features=4)
    assert source_names(model) == ["age"] + 3 * ["site × hour"]
    assert source_names(SimpleNamespace(encoding=None)) is None


def test_cross_validation_curve_has_its_errors_and_choices(page_path, pages):
    lines = curve(pages["cv"], "cross-validation-score")
    mean = 0.4 + 0.01 * np.abs(np.arange(12) - 7.0)  # a deviance, whose scores are negative
    np.testing.assert_allclose(numbers(lines["mean"]), np.column_stack([page_path.alphas, mean]), rtol=1e-5)
    np.testing.assert_allclose(numbers(lines["+ 1 standard error"])[:, 1], mean + 0.021, rtol=1e-5)
    np.testing.assert_allclose(numbers(lines["− 1 standard error"])[:, 1], mean - 0.021, rtol=1e-5)
    for k in range(5):
        np.testing.assert_allclose(numbers(lines[f"fold {k + 1}"])[:, 1], mean - 0.05 * (k - 2), rtol=1e-5)
    chosen = {row[0]: row[1:] for row in rows_of(pages["cv"], "Choices of alpha")}
    assert chosen["minimum"] == [f"{page_path.alphas[7]:.6g}", "0.4 ± 0.021", "10.5"]
    assert chosen["1 SE"] == [f"{page_path.alphas[5]:.6g}", "0.42 ± 0.021", "7.5"]


def test_a_saved_model_has_the_same_page(page_fit, pages, tmp_path):
    page_fit.save(tmp_path / "m.npz")
    assert model_page(Model.load(tmp_path / "m.npz")).html() == pages["fit"].html()


def test_the_null_model_has_a_page(page_data):
    problem = make_problem(page_data, 1.5)
    page = model_page(Model.of_solution(problem, bg.solve(problem), page_data))
    assert "Every weight is 0" in words(page)


def test_regression_without_names_and_trace_has_a_page(page_data):
    problem = bg.Problem(page_data.X, page_data.X @ np.ones(300), alpha=1e-3)
    model = replace(Model.of_solution(problem, bg.solve(problem)), trace=None)
    model = replace(model, quality=model.measure(page_data.X, page_data.X @ np.ones(300), rows="made up"))
    page = model_page(model)
    assert "Linear regression" in words(page)
    assert next(iter(facts(page))) == "R²"
    assert rows_of(page, "Positive weights")[0][0].startswith("feature ")
    assert [made.name for made in page.all_pictures()] == ["quality-fit", "quality-residuals"]
    points = numbers(curve(page, "quality-fit")["row"])
    np.testing.assert_allclose(points[:, 1], model.quality.curves["fit_observed"], rtol=1e-5)


@pytest.fixture(scope="module")
def blocks(page_data):
    return bg.make_partition(page_data.X, page_data.y, n_blocks=8, kind="clustered")


def test_blocks_on_the_page_are_counted_as_by_hand(page_data, blocks):
    page = partition_page(blocks, page_data.X, page_data.y, settings={"data": "words.svm"})
    rows = rows_of(page, "Blocks, the heaviest first")
    dense = page_data.X.toarray()
    loads = [np.count_nonzero(dense[:, blocks.block_of == b]) for b in range(8)]
    sizes = [np.count_nonzero(blocks.block_of == b) for b in range(8)]
    assert [int(row[0]) for row in rows] == sorted(range(8), key=lambda b: (-loads[b], b))
    for row in rows:
        b = int(row[0])
        assert (int(row[1]), int(row[2].replace(",", ""))) == (sizes[b], loads[b])
        assert float(row[4].rstrip(" %")) == pytest.approx(100 * loads[b] / (200 * sizes[b]), rel=1e-2)
    assert sum(float(row[5].rstrip(" %")) for row in rows) == pytest.approx(100, rel=0.02)
    drawn = numbers(curve(page, "blocks-load")["clustered"])
    np.testing.assert_array_equal(drawn[:, 0], [int(row[0]) for row in rows])  # blocks by their own numbers
    np.testing.assert_array_equal(drawn[:, 1], sorted(loads, reverse=True))
    assert "words.svm" in page.title


def test_without_targets_there_is_no_mass(page_data, blocks):
    page = partition_page(blocks, page_data.X)
    assert [made.name for made in page.all_pictures()] == ["blocks-load", "blocks-density", "blocks-features"]
    assert len(rows_of(page, "Blocks")[0]) == 5


def test_many_blocks_are_curves_and_a_folded_table(page_data):
    many = bg.make_partition(page_data.X, n_blocks=150, kind="random")
    page = partition_page(many, page_data.X)
    assert "<summary>Blocks, the heaviest first: 150 rows</summary>" in page.html()
    assert len(page.all_pictures()) == 3


def test_curves_for_the_script_are_plain_json(pages):
    for picture in pages["path with cv"].all_pictures():
        assert json.loads(json.dumps(picture.curves, allow_nan=False)) == picture.curves
