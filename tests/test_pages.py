"""The pages of models and partitions, and what notebooks show: the numbers on them are the numbers there are."""

import json
import re
import sys
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

import blockgreedy as bg
from blockgreedy.model import CrossValidation, Model
from blockgreedy.pages import model_page, partition_page
from test_report import Outline

HOSTILE = "<script>'&</script>"
SETTINGS = {
    "command": "blockgreedy fit words.svm --loss logistic --alpha-ratio 0.05 --tol 1e-7",
    "data": "some/folder/words.svm",
    "n_samples": 200,
    "tol": 1e-7,
    "l2": 0.0,
    "max_seconds": None,
    "positive": False,
    "a <new> key": ["x & y", 3],
}


def make_dataset():
    data = bg.data.text_like(200, 300, 12.0, seed=2)
    names = np.array([f"word {j}" for j in range(300)], dtype="U40")
    names[::4] = [f"{HOSTILE}{j}" for j in range(0, 300, 4)]
    return replace(data, feature_names=names)


def make_problem(data, ratio=0.05):
    problem = bg.Problem(data.X, data.y, loss="logistic", alpha=1.0, fit_intercept=True)
    return problem.with_alpha(ratio * problem.alpha_max)


def make_fit(data):
    """On a clock of its own: on a real one two records may lie too close for a pointer to tell them apart."""
    problem = make_problem(data)
    solution = bg.solve(problem, tol=1e-7)
    solution.trace = bg.Trace([replace(r, seconds=0.0123 * (k + 1)) for k, r in enumerate(solution.trace)])
    return Model.of_solution(problem, solution, data, SETTINGS)


def make_path(data):
    path = bg.solve_path(make_problem(data), n_alphas=12, eps=0.05, tol=1e-6)
    return Model.of_path(path, data, SETTINGS)


def with_cross_validation(model, alphas):
    """Scores that nobody measured: best at the eighth alpha, within one error of it from the sixth on."""
    mean = -0.4 - 0.01 * np.abs(np.arange(len(alphas)) - 7.0)
    error = np.full(len(alphas), 0.021)
    found = CrossValidation(
        "deviance", alphas, mean, error, np.arange(len(alphas)) * 1.5, float(alphas[7]), float(alphas[5]), 5
    )
    return replace(model, cross_validation=found)


@pytest.fixture(scope="module")
def data():
    return make_dataset()


@pytest.fixture(scope="module")
def fit(data):
    return make_fit(data)


@pytest.fixture(scope="module")
def path(data):
    return make_path(data)


@pytest.fixture(scope="module")
def pages(fit, path):
    both = with_cross_validation(path, path.alphas)
    models = {"fit": fit, "path": path, "cv": with_cross_validation(fit, path.alphas), "path with cv": both}
    return {name: model_page(model) for name, model in models.items()}


def sections(page):
    return [part.title for part in page.sections]


def words(page):
    """The page as it reads, without tags."""
    html = page.html()
    body = re.sub(r"<svg.*?</svg>|<script>.*?</script>|<style>.*?</style>", "", html, flags=re.DOTALL)
    return unescape(re.sub(r"<[^>]+>", " ", body))


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


def curve(page, name):
    (picture,) = [made for made in page.all_pictures() if made.name == name]
    return {line["label"]: [point[2:] for point in line["points"]] for line in picture.curves["lines"]}


def numbers(points):
    return np.array([[float(x.replace(",", "")), float(y.replace(",", ""))] for x, y in points])


def test_each_kind_of_model_has_its_sections(pages):
    ends = ["Features", "Settings"]
    assert sections(pages["fit"]) == ["What was fitted", "Certificate", "Convergence", *ends]
    assert sections(pages["path"]) == ["What was fitted", "Certificate", "Path", *ends]
    assert sections(pages["cv"]) == ["What was fitted", "Certificate", "Convergence", "Cross-validation", *ends]
    assert sections(pages["path with cv"]) == ["What was fitted", "Certificate", "Path", "Cross-validation", *ends]


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
    settings = dict(rows_of(pages["fit"], "All that is known"))
    assert settings.keys() == {*SETTINGS, "date", "versions", "machine"}
    assert settings["max_seconds"] == "–"
    assert settings["positive"] == "no"
    assert settings["tol"] == "1e-07"
    assert settings["a <new> key"] == "x & y, 3"


def test_certificate_is_that_of_the_weights(data, fit, pages):
    text = words(pages["fit"])
    problem = make_problem(data)
    objective = problem.objective(fit.coef, fit.intercept)  # in NumPy, from the weights alone
    shown = float(re.search(r"objective\s+(0\.\d+)\s+null model", text)[1])
    assert shown == pytest.approx(objective, rel=1e-9)
    gap = float(re.search(r"lower by more than (\S+?)\.? ", text)[1])
    assert gap == pytest.approx(fit.gaps[0], rel=1e-2)
    assert 0 < gap <= 1e-7 * problem.null_model.objective * 1.01
    assert "Converged" in text


@pytest.mark.parametrize("status", ["max_iter", "max_seconds", "interrupted", "stalled", "diverged"])
def test_page_says_what_became_of_a_fit_that_did_not_converge(fit, status):
    text = words(model_page(replace(fit, statuses=(status,), trace=None)))
    assert f"{status}: " in text
    assert "Converged" not in text


def test_a_model_without_proof_says_so(fit):
    text = words(model_page(replace(fit, gaps=np.array([np.inf]), trace=None)))
    assert "no proof" in text
    assert "lower by more than" not in text


def test_a_path_names_the_alpha_that_did_not_converge(path):
    statuses = ("converged",) * 11 + ("max_seconds",)
    text = words(model_page(replace(path, statuses=statuses)))
    assert f"max_seconds, at alpha {path.alphas[11]:.6g}" in text


def test_convergence_curves_are_the_trace(fit, pages):
    trace = fit.trace
    error = trace["objective"] - trace["objective"].min()
    assert len(trace) > 4
    for clock, column in (("seconds", "seconds"), ("iterations", "iteration")):
        gaps = numbers(curve(pages["fit"], f"convergence-gap-{clock}-log")["dual gap"])
        np.testing.assert_allclose(gaps, np.column_stack([trace[column], trace["gap"]]), rtol=1e-5)
        shown = numbers(curve(pages["fit"], f"convergence-objective-{clock}-log")["objective − best"])
        seen = error > 0  # a logarithmic scale has no zero
        np.testing.assert_allclose(shown, np.column_stack([trace[column], error])[seen], rtol=1e-5)
        counts = numbers(curve(pages["fit"], f"convergence-nonzeros-{clock}")["nonzero weights"])
        np.testing.assert_array_equal(counts[:, 1], trace["nonzeros"])
    linear = numbers(curve(pages["fit"], "convergence-objective-iterations-linear")["objective − best"])
    np.testing.assert_allclose(linear[:, 1], error, rtol=1e-5)


def test_path_curves_are_those_of_the_weights(path, pages):
    dense = path.coefs.toarray()
    counts = numbers(curve(pages["path"], "path-nonzeros-linear")["nonzero weights"])
    np.testing.assert_allclose(counts[:, 0], path.alphas, rtol=1e-5)
    np.testing.assert_array_equal(counts[:, 1], np.count_nonzero(dense, axis=0))
    lines = curve(pages["path"], "path-weights")
    largest = np.argsort(-np.abs(dense).max(axis=1))[:6]
    assert set(lines) == {str(path.feature_names[j]) for j in largest}
    for j in largest:
        shown = numbers(lines[str(path.feature_names[j])])[:, 1]
        np.testing.assert_allclose(shown, dense[j], rtol=1e-5, atol=1e-300)
    explained = numbers(curve(pages["path"], "path-deviance")["deviance explained, %"])
    np.testing.assert_allclose(explained[:, 1], 100 * path.deviance_explained, rtol=1e-5, atol=1e-12)


def test_features_enter_in_the_order_of_their_first_nonzero_weight(path, pages):
    dense = path.coefs.toarray()
    rows = rows_of(pages["path"], "The first features to enter")
    assert len(rows) == 20
    places = {str(name): j for j, name in enumerate(path.feature_names)}
    first = [int(np.flatnonzero(dense[j])[0]) if np.any(dense[j]) else 99 for j in range(300)]
    assert [float(row[1]) for row in rows] == pytest.approx([path.alphas[k] for k in sorted(first)[:20]], rel=1e-5)
    for name, alpha, weight in rows:
        assert float(alpha) == pytest.approx(path.alphas[first[places[name]]], rel=1e-5)
        assert float(weight.replace("−", "-")) == pytest.approx(dense[places[name], -1], rel=1e-3)


def test_top_features_are_those_of_largest_weight(fit, pages):
    rows = rows_of(pages["fit"], "Weights at alpha")
    order = np.argsort(-np.abs(fit.coef), kind="stable")[:30]
    assert [row[0] for row in rows] == [str(fit.feature_names[j]) for j in order]
    shown = [float(row[1].replace("−", "-")) for row in rows]
    np.testing.assert_allclose(shown, fit.coef[order], rtol=1e-3)
    text = words(pages["fit"])
    assert f"{np.count_nonzero(fit.coef > 0)} above 0, {np.count_nonzero(fit.coef < 0)} below" in text


def test_a_cross_validated_path_shows_features_of_both_choices(path, pages):
    for name, k in (("alpha_min", 7), ("alpha_1se", 5)):
        rows = rows_of(pages["path with cv"], f"Weights at {name} = {path.alphas[k]:.6g}")
        largest = np.argmax(np.abs(path.coefs.toarray()[:, k]))
        assert rows[0][0] == str(path.feature_names[largest])


def test_cross_validation_curve_has_its_errors_and_choices(path, pages):
    lines = curve(pages["cv"], "cross-validation-score")
    mean = 0.4 + 0.01 * np.abs(np.arange(12) - 7.0)  # a deviance, whose scores are negative
    np.testing.assert_allclose(numbers(lines["mean"]), np.column_stack([path.alphas, mean]), rtol=1e-5)
    np.testing.assert_allclose(numbers(lines["+ 1 standard error"])[:, 1], mean + 0.021, rtol=1e-5)
    np.testing.assert_allclose(numbers(lines["− 1 standard error"])[:, 1], mean - 0.021, rtol=1e-5)
    choices = {row[0]: row[1:] for row in rows_of(pages["cv"], "Choices of alpha")}
    assert choices["alpha_min"] == [f"{path.alphas[7]:.6g}", "0.4 ± 0.021", "10.5"]
    assert choices["alpha_1se"] == [f"{path.alphas[5]:.6g}", "0.42 ± 0.021", "7.5"]


def test_a_saved_model_has_the_same_page(fit, pages, tmp_path):
    fit.save(tmp_path / "m.npz")
    assert model_page(Model.load(tmp_path / "m.npz")).html() == pages["fit"].html()


def test_the_null_model_has_a_page(data):
    problem = make_problem(data, 1.5)
    page = model_page(Model.of_solution(problem, bg.solve(problem), data))
    assert "Every weight is 0" in words(page)


def test_regression_without_names_and_trace_has_a_page(data):
    problem = bg.Problem(data.X, data.X @ np.ones(300), alpha=1e-3)
    model = replace(Model.of_solution(problem, bg.solve(problem)), trace=None)
    page = model_page(model)
    assert "regression" in words(page)
    assert rows_of(page, "Weights")[0][0].startswith("feature ")


@pytest.fixture(scope="module")
def blocks(data):
    return bg.make_partition(data.X, data.y, n_blocks=8, kind="clustered")


def test_blocks_on_the_page_are_counted_as_by_hand(data, blocks):
    page = partition_page(blocks, data.X, data.y, settings={"data": "words.svm"})
    rows = rows_of(page, "Blocks, the heaviest first")
    dense = data.X.toarray()
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


def test_without_targets_there_is_no_mass(data, blocks):
    page = partition_page(blocks, data.X)
    assert [made.name for made in page.all_pictures()] == ["blocks-load", "blocks-density", "blocks-features"]
    assert len(rows_of(page, "Blocks")[0]) == 5


def test_many_blocks_are_curves_and_a_folded_table(data):
    many = bg.make_partition(data.X, n_blocks=150, kind="random")
    page = partition_page(many, data.X)
    assert "<summary>Blocks, the heaviest first: 150 rows</summary>" in page.html()
    assert len(page.all_pictures()) == 3


# ------------------------------------------------------------------------------------------------- plots, notebooks


def test_plot_of_a_solution_draws_its_trace(data):
    solution = bg.solve(make_problem(data), tol=1e-7)
    for x, column in (("seconds", "seconds"), ("iterations", "iteration")):
        upper, lower = solution.plot(x).axes
        lines = {line.get_label(): line.get_xydata() for line in upper.lines}
        expected = np.column_stack([solution.trace[column], solution.trace["gap"]])
        np.testing.assert_array_equal(lines["gap"], expected)
        np.testing.assert_array_equal(lower.lines[0].get_ydata(), solution.trace["nonzeros"])
        assert lower.get_xlabel() == x
    with pytest.raises(ValueError, match="x='hours' is not known; use 'seconds' or 'iterations'"):
        solution.plot("hours")


def test_plot_of_a_partition_draws_its_loads(data, blocks):
    nonzeros, features = blocks.plot(data.X).axes
    heights = [bar.get_height() for bar in nonzeros.patches]
    np.testing.assert_array_equal(heights, np.sort(blocks.nonzeros(data.X))[::-1])
    assert sum(bar.get_height() for bar in features.patches) == 300
    assert len(blocks.plot().axes) == 1
    assert len(blocks.plot(data.X, data.y).axes) == 3
    with pytest.raises(ValueError, match="y goes with X"):
        blocks.plot(y=data.y)


def test_plot_of_a_model_is_of_what_it_has(fit, path):
    assert len(path.plot().axes[0].lines) == np.count_nonzero(np.diff(path.coefs.tocsr().indptr))
    assert fit.plot().axes[0].get_yscale() == "log"
    (bars,) = replace(fit, trace=None).plot().axes
    assert [bar.get_width() for bar in bars.patches] == [weight for _, weight in fit.top()]


@pytest.fixture(scope="module")
def shown(data, fit, path, blocks):
    problem = make_problem(data)
    solved = bg.solve_path(problem, n_alphas=5, eps=0.1)
    return {"Solution": bg.solve(problem), "Path": solved, "Partition": blocks, "Model": fit, "Models": path}


def test_notebooks_show_a_table_and_a_picture(shown):
    for name, thing in shown.items():
        html = thing._repr_html_()
        assert html.startswith(f"<div><strong>{name.removesuffix('s')}")
        assert "data:image/png;base64," in html
        assert f"{getattr(thing, 'n_blocks', 'nonzeros')}" in html


def test_notebooks_show_the_table_without_matplotlib(shown, monkeypatch):
    for loaded in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, loaded, None)
    for thing in shown.values():
        html = thing._repr_html_()
        assert "<table>" in html
        assert "<img" not in html
        with pytest.raises(ImportError, match=r"pip install 'blockgreedy\[report\]'"):
            thing.plot()


def test_names_are_escaped_in_notebooks(fit):
    hostile = replace(fit, feature_names=np.full(300, "<b>name</b>"), trace=None)
    html = hostile._repr_html_()
    assert "<b>name" not in html
    assert "&lt;b&gt;name" in html


def test_curves_for_the_script_are_plain_json(pages):
    for picture in pages["path with cv"].all_pictures():
        assert json.loads(json.dumps(picture.curves, allow_nan=False)) == picture.curves
