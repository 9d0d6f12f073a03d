"""What plot() draws and notebooks show: the numbers there are, by name, once."""

import re
import sys
from dataclasses import replace
from html import unescape
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import blockgreedy as bg
from blockgreedy.models.model import Model
from made_models import HOSTILE, make_problem, with_cross_validation


@pytest.fixture(scope="module")
def blocks(page_data):
    return bg.make_partition(page_data.X, page_data.y, n_blocks=8, kind="clustered")


def test_plot_of_a_solution_draws_its_trace(page_data):
    solution = bg.solve(make_problem(page_data), tol=1e-7)
    for x, column in (("seconds", "seconds"), ("iterations", "iteration")):
        upper, lower = solution.plot(x).axes
        lines = {line.get_label(): line.get_xydata() for line in upper.lines}
        expected = np.column_stack([solution.trace[column], solution.trace["gap"]])
        np.testing.assert_array_equal(lines["gap"], expected)
        np.testing.assert_array_equal(lower.lines[0].get_ydata(), solution.trace["nonzeros"])
        assert lower.get_xlabel() == x
    with pytest.raises(ValueError, match="x='hours' is not known; use 'seconds' or 'iterations'"):
        solution.plot("hours")


def test_plot_of_a_partition_draws_its_loads(page_data, blocks):
    nonzeros, features = blocks.plot(page_data.X).axes
    heights = [bar.get_height() for bar in nonzeros.patches]
    np.testing.assert_array_equal(heights, np.sort(blocks.nonzeros(page_data.X))[::-1])
    assert sum(bar.get_height() for bar in features.patches) == 300
    assert len(blocks.plot().axes) == 1
    assert len(blocks.plot(page_data.X, page_data.y).axes) == 3
    with pytest.raises(ValueError, match="y goes with X"):
        blocks.plot(y=page_data.y)


def test_plot_of_a_model_is_of_what_it_has(page_fit, page_path):
    assert len(page_path.plot().axes[0].lines) == np.count_nonzero(np.diff(page_path.coefs.tocsr().indptr))
    assert page_fit.plot().axes[0].get_yscale() == "log"
    (bars,) = replace(page_fit, trace=None).plot().axes
    assert [bar.get_width() for bar in bars.patches] == [weight for _, weight in page_fit.top()]


@pytest.fixture(scope="module")
def shown(page_data, page_fit, page_path, blocks):
    problem = make_problem(page_data)
    solved = bg.solve_path(problem, n_alphas=5, eps=0.1)
    return {
        "Solution": bg.solve(problem),
        "SolutionPath": solved,
        "Partition": blocks,
        "Model": page_fit,
        "Models": page_path,
    }


def test_plot_of_a_cross_validated_estimator_draws_means_errors_folds_and_choices(page_data):
    found = bg.LogisticRegressionCV(n_alphas=10, eps=0.05, cv=3).fit(page_data.X, page_data.y)
    (axes,) = found.plot().axes
    lines = {line.get_label(): line.get_xydata() for line in axes.lines}
    results = found.cv_results_
    np.testing.assert_allclose(lines["each fold"][:, 1], -results["split0_test_score"])
    ((mean, _, (bars,)),) = axes.containers
    np.testing.assert_allclose(mean.get_ydata(), -results["mean_test_score"])
    lengths = [np.ptp(segment[:, 1]) for segment in bars.get_segments()]
    np.testing.assert_allclose(lengths, 2 * results["std_error"])
    assert f"minimum, alpha {found.alpha_min_:.3g}" in lines
    assert axes.get_ylabel() == "deviance"
    squares = bg.ElasticNetCV(n_alphas=5, eps=0.1, cv=3, l1_ratio=[0.5, 1.0]).fit(page_data.X, page_data.y)
    assert squares.plot().axes[0].get_ylabel() == "mean squared error"
    with pytest.raises(Exception, match="not fitted"):
        bg.LassoCV().plot()


def test_plot_of_a_cross_validated_model_is_the_curve(page_fit, page_path):
    (axes,) = with_cross_validation(page_fit, page_path.alphas).plot().axes
    assert axes.get_ylabel() == "deviance"


@pytest.fixture
def pyplot(monkeypatch):
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")
    for name in ("matplotlib.pyplot",):
        monkeypatch.delitem(sys.modules, name)


def test_figures_are_pyplots_where_pyplot_is_imported(page_fit, pyplot):
    figure = page_fit.plot()
    assert pyplot.gcf() is figure
    pyplot.close(figure)
    assert pyplot.get_fignums() == []
    page_fit._repr_html_()  # its picture is nobody else's
    assert pyplot.get_fignums() == []


def test_figures_leave_pyplot_alone_where_it_is_not_imported(page_fit, monkeypatch):
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    page_fit.plot()
    assert "matplotlib.pyplot" not in sys.modules


def test_a_notebook_shows_a_figure_once(page_fit, pyplot, monkeypatch):
    seen = []
    fake = SimpleNamespace(display=seen.append, Image=lambda data: data)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(display=fake, get_ipython=lambda: None))
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    figure = page_fit.plot()
    figure._ipython_display_()
    assert [data[:4] for data in seen] == [b"\x89PNG"]
    assert pyplot.get_fignums() == []  # at the end of a cell notebooks show what is open


@pytest.mark.parametrize("named", ["frame", "dataset", "numbers"])
def test_a_problem_keeps_the_names_of_columns(named, page_data):
    dense = page_data.X.toarray()
    given = {
        "frame": pd.DataFrame(dense, columns=page_data.feature_names),
        "dataset": page_data,
        "numbers": pd.DataFrame(dense),
    }[named]
    problem = bg.Problem(given, None if named == "dataset" else page_data.y, loss="logistic", alpha=1e-3)
    solution = bg.solve(problem)
    largest = int(np.argmax(np.abs(solution.coef)))
    name = f"feature {largest}" if named == "numbers" else str(page_data.feature_names[largest])
    assert solution.top(1) == [(name, solution.coef[largest])]
    path = bg.solve_path(problem, n_alphas=4, eps=0.1)
    assert name in {text.get_text() for text in path.plot().axes[0].get_legend().get_texts()}
    assert (
        path.refit(3).top(1)[0][0] in ([name] if named == "numbers" else page_data.feature_names.tolist())
        or named == "numbers"
    )
    assert Model.of_path(path).name_of(largest) == name
    few = problem.with_features(np.array([largest]), alpha=0.0)
    assert few.feature_names is None if named == "numbers" else few.feature_names.tolist() == [name]


def test_targets_may_be_left_out_of_a_labelled_dataset_only(page_data):
    np.testing.assert_array_equal(bg.Problem(page_data, alpha=1.0).y, page_data.y)
    with pytest.raises(TypeError, match="y is missing"):
        bg.Problem(page_data.X, alpha=1.0)
    with pytest.raises(ValueError, match="has no labels; give y"):
        bg.Problem(replace(page_data, labelled=False), alpha=1.0)


def test_notebooks_show_the_largest_weights_of_a_solution_by_name(page_data):
    solution = bg.solve(bg.Problem(page_data, loss="logistic", alpha=1e-3))
    assert solution.nonzeros > 10
    text = unescape(re.sub("<[^>]+>", " ", solution._repr_html_()))
    for name, weight in solution.top(10):
        assert f"{name}  {weight:+.4g}" in text


def test_notebooks_show_datasets_and_diagnoses(page_data, blocks):
    text = unescape(re.sub("<[^>]+>", " ", page_data._repr_html_()))
    for part in ("Dataset", "200", "300", "word 1", "(290 more)", "float32"):
        assert part in text
    assert HOSTILE not in page_data._repr_html_()
    found = bg.diagnose(page_data.X, blocks, page_data.y)
    text = unescape(re.sub("<[^>]+>", " ", found._repr_html_()))
    assert "8 of 8 blocks per iteration: epsilon" in text
    assert found.advice
    assert all(sentence in text for sentence in found.advice)


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


def test_names_are_escaped_in_notebooks(page_fit):
    hostile = replace(page_fit, feature_names=np.full(300, "<b>name</b>"), trace=None)
    html = hostile._repr_html_()
    assert "<b>name" not in html
    assert "&lt;b&gt;name" in html
