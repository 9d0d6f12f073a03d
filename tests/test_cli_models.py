"""From a file to a model to predictions: fit, path, cv, predict and report on the command line."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import log_loss, roc_auc_score, root_mean_squared_error

import blockgreedy as bg
from command_line import run


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """train.svm, whose last feature is in no row of test.svm, and data.npz."""
    folder = tmp_path_factory.mktemp("models")
    made = bg.data.text_like(500, 800, 20.0, seed=5)
    X = made.X.astype(np.float64)
    used = np.flatnonzero(np.diff(X.tocsc().indptr))
    assert used[-1] > 700
    dump_svmlight_file(X[:350], made.y[:350], str(folder / "train.svm"), zero_based=False)
    test = X[350:].copy()
    test.data[test.indices == test.indices.max()] = 0
    test.eliminate_zeros()
    dump_svmlight_file(test, made.y[350:], str(folder / "test.svm"), zero_based=False)
    bg.save(made, folder / "data.npz")
    return folder


@pytest.fixture(scope="module")
def logistic(folder):
    result = run(
        "fit", folder / "train.svm", "--loss", "logistic", "--alpha-ratio", 0.05, "--intercept", "--tol", 1e-8,
        "--model", folder / "model.npz",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    return folder / "model.npz"


def test_probabilities_are_those_of_the_estimator(folder, logistic):
    train, model = bg.load(folder / "train.svm"), bg.Model.load(logistic)
    test = bg.load(folder / "test.svm", n_features=train.X.shape[1])
    estimator = bg.LogisticRegression(alpha=model.alphas[0], tol=1e-8).fit(train.X, train.y)
    out = folder / "p.csv"
    result = run(
        "predict", logistic, folder / "test.svm", "--what", "probabilities", "--out", out, "--score", "--json"
    )
    assert result.exit_code == 0, result.output
    rows = table(out)
    found = np.array([[float(row["p(-1)"]), float(row["p(1)"])] for row in rows])
    assert np.allclose(found, estimator.predict_proba(test.X), atol=1e-5)
    assert np.array_equal(found, model.predict_proba(test.X))  # to the last bit: written as Python writes numbers
    scores = json.loads(result.stdout)["scores"]
    assert scores["accuracy"] == estimator.score(test.X, test.y)
    assert scores["roc_auc"] == pytest.approx(roc_auc_score(test.y, found[:, 1]))
    assert scores["log_loss"] == pytest.approx(log_loss(test.y, found))


def test_labels_and_decisions(folder, logistic):
    model = bg.Model.load(logistic)
    X = bg.load(folder / "train.svm").X
    result = run("predict", logistic, folder / "train.svm")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "prediction"
    assert [float(line) for line in lines[1:]] == model.predict(X).tolist()
    result = run("predict", logistic, folder / "train.svm", "--what", "decision", "--out", folder / "d.parquet")
    assert result.exit_code == 0, result.output
    import pyarrow.parquet as pq

    assert pq.read_table(folder / "d.parquet")["decision"].to_pylist() == model.decision(X).tolist()


def test_features_beyond_the_model_are_left_out_and_said(folder, logistic):
    n = bg.Model.load(logistic).n_features
    (folder / "wide.svm").write_text(f"1 1:0.5 {n}:1\n1 1:0.5 {n}:1 {n + 3}:7\n")
    result = run("predict", logistic, folder / "wide.svm", "--what", "decision")
    first, second = result.stdout.splitlines()[1:]
    assert first == second
    assert f"3 features beyond the model's {n} have no weight and are left out" in result.stderr


def test_a_file_that_lacks_the_first_feature_keeps_the_models_base(folder):
    (folder / "zero.svm").write_text("1 0:1 1:2\n-1 1:1\n1 0:2\n-1 2:1\n")
    (folder / "later.svm").write_text("1 1:2\n")
    settings = ("--loss", "squared", "--no-intercept", "--alpha", 0.01)
    result = run("fit", folder / "zero.svm", *settings, "--model", folder / "zero.npz")
    assert result.exit_code == 0, result.output
    model = bg.Model.load(folder / "zero.npz")
    assert model.index_base == 0
    result = run("predict", folder / "zero.npz", folder / "later.svm")
    assert float(result.stdout.splitlines()[1]) == pytest.approx(2 * model.coef[1])


@pytest.fixture(scope="module")
def clicks(folder):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    n = 600
    city = np.array(["Köln", "Paris", "Rome", None], dtype=object)[rng.integers(0, 4, n)]
    site = rng.integers(0, 30, n)
    age = rng.normal(size=n)
    score = (city == "Rome") * 2.0 - (site == 3) * 2.0 + age + 0.3 * rng.normal(size=n)
    clicked = np.where(score > 0.3, "yes", "no")
    whole = pa.table({"city": city.tolist(), "site": site, "age": age, "clicked": clicked.tolist()})
    pq.write_table(whole[:400], folder / "train.parquet")
    new = whole[400:]
    city = new["city"].to_pylist()
    city[0] = "Atlantis"  # unknown to the model
    other_order = pa.table({"age": new["age"], "city": city, "site": new["site"]})
    pq.write_table(other_order, folder / "new.parquet")
    return whole


def test_tables_with_categories_from_training_to_prediction(folder, clicks):
    result = run(
        "fit", folder / "train.parquet", "--target", "clicked", "--categorical", "site", "--loss", "logistic",
        "--alpha", 0.005, "--intercept", "--tol", 1e-8, "--model", folder / "clicks.npz",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    result = run("predict", folder / "clicks.npz", folder / "new.parquet", "--what", "probabilities")
    assert result.exit_code == 0, result.output
    rows = list(csv.DictReader(result.stdout.splitlines()))
    import pandas as pd

    frame = clicks.to_pandas()
    features = pd.get_dummies(frame[["city", "site", "age"]], columns=["city", "site"]).astype(float)
    estimator = bg.LogisticRegression(alpha=0.005, tol=1e-8).fit(features[:400], frame["clicked"][:400])
    new = features[400:].copy()
    new.iloc[0, [k for k, name in enumerate(new.columns) if name.startswith("city_")]] = 0.0
    expected = estimator.predict_proba(new)
    found = np.array([[float(row["p(no)"]), float(row["p(yes)"])] for row in rows])
    assert np.allclose(found, expected, atol=1e-5)
    result = run(
        "predict", folder / "clicks.npz", folder / "train.parquet", "--target", "clicked", "--score", "--json"
    )
    assert json.loads(result.stdout)["scores"]["accuracy"] == estimator.score(features[:400], frame["clicked"][:400])


def test_a_path_is_saved_whole_and_predicts_at_the_alpha_asked_for(folder):
    options = ["--loss", "logistic", "--alphas", 9, "--eps", 0.02, "--intercept"]
    result = run("path", folder / "data.npz", *options, "--model", folder / "path.npz", "--csv", folder / "path.csv")
    assert result.exit_code == 0, result.output
    assert "converged at 9 of 9 alphas" in result.stdout
    data = bg.load(folder / "data.npz")
    problem = bg.Problem(data.X, data.y, loss="logistic", alpha=0.0, fit_intercept=True)
    expected = bg.solve_path(problem, n_alphas=9, eps=0.02)
    model = bg.Model.load(folder / "path.npz")
    assert np.array_equal(model.alphas, expected.alphas)
    assert (abs(model.coefs - expected.coefs)).nnz == 0
    rows = table(folder / "path.csv")
    assert [float(row["alpha"]) for row in rows] == expected.alphas.tolist()
    assert [int(row["nonzeros"]) for row in rows] == expected.nonzeros.tolist()
    alpha = expected.alphas[5]
    result = run("predict", folder / "path.npz", folder / "data.npz", "--alpha", alpha, "--what", "decision")
    found = [float(line) for line in result.stdout.splitlines()[1:]]
    assert found == pytest.approx((data.X @ expected.coef(5) + expected.intercepts[5]).tolist())
    result = run("predict", folder / "path.npz", folder / "data.npz")
    assert result.exit_code == 2
    assert "the model has 9 alphas" in result.stderr
    assert "choose one with --alpha" in result.stderr


def test_a_path_as_json(folder):
    result = run("path", folder / "data.npz", "--alphas", 4, "--json")
    found = json.loads(result.stdout)
    assert found["status"] == "converged"
    assert len(found["points"]) == 4
    assert found["points"][0]["alpha"] == pytest.approx(found["alpha_max"])
    result = run("path", folder / "data.npz", "--alphas", 30, "--max-nonzeros", 5, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["status"] == "stopped"


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_cross_validation_chooses_as_the_estimator_does(folder, loss):
    options = ["--loss", loss, "--intercept", "--alphas", 12, "--eps", 0.02, "--folds", 4, "--selection", "1se"]
    result = run("cv", folder / "data.npz", *options, "--json", "--model", folder / "cv.npz")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    data = bg.load(folder / "data.npz")
    kind = bg.LogisticRegressionCV if loss == "logistic" else bg.LassoCV
    estimator = kind(n_alphas=12, eps=0.02, cv=4, selection="1se").fit(data.X, data.y)
    assert found["alpha"] == pytest.approx(estimator.alpha_1se_)
    assert found["alpha_min"] == pytest.approx(estimator.alpha_min_)
    deviance = (-estimator.cv_results_["mean_test_score"]).tolist()
    assert (found["curve"]["mean"], found["curve"]["better"]) == (pytest.approx(deviance), "lower")
    model = bg.Model.load(folder / "cv.npz")
    assert np.allclose(model.coef, np.ravel(estimator.coef_), atol=1e-12)
    assert model.gaps[0] <= 1e-4 * model.f_null
    assert model.cross_validation.alphas == pytest.approx(estimator.alphas_)
    text = run("cv", folder / "data.npz", *options).stdout
    assert "1se" in text
    assert "converged" in text


def test_scores_of_regression(folder):
    run("fit", folder / "data.npz", "--loss", "squared", "--alpha-ratio", 0.05, "--model", folder / "squared.json")
    result = run(
        "predict", folder / "squared.json", folder / "data.npz", "--score", "--json", "--out", folder / "s.csv"
    )
    data, model = bg.load(folder / "data.npz"), bg.Model.load(folder / "squared.json")
    found = json.loads(result.stdout)["scores"]
    assert found["rmse"] == pytest.approx(root_mean_squared_error(data.y, model.predict(data.X)))
    result = run("predict", folder / "squared.json", folder / "data.npz", "--what", "probabilities")
    assert result.exit_code == 2
    assert "needs a logistic model; this one has loss squared" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "train.svm", "--alpha", 1, "--model", "m.pkl"], "--model must end in .npz or .json"),
        (["fit", "train.svm", "--alpha", 1, "--report", "r.txt"], "--report must end in .html"),
        (["fit", "train.svm", "--alpha", 1, "--model", "no/m.npz"], "--model must name a file in an existing folder"),
        (["fit", "train.svm", "--alpha", 1, "--index-base", "2"], "Invalid value for '--index-base'"),
        (["fit", "train.svm", "--alpha", 1, "--dtype", "int8"], "Invalid value for '--dtype'"),
        (["path", "train.svm", "--alphas", 0], "--alphas 0 must"),
        (
            ["cv", "train.svm", "--loss", "huber"],
            "--loss huber: cross-validation takes only the losses squared and logistic",
        ),
        (["cv", "train.svm", "--selection", "best"], "Invalid value for '--selection'"),
        (["predict", "model.npz", "train.svm", "--what", "classes"], "Invalid value for '--what'"),
        (["predict", "model.npz", "train.svm", "--out", "p.txt"], "--out must end in .csv or .parquet"),
    ],
)
def test_wrong_use_is_told_before_any_work(folder, logistic, monkeypatch, arguments, message):
    monkeypatch.chdir(folder)
    result = run(*arguments)
    assert message in result.stderr.replace("\n", " ")
    assert result.exit_code in ((1, 2) if "is not known; use" in message else (2,))


def test_results_never_replace_the_data(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for arguments in (
        ["fit", "data.npz", "--alpha", 1, "--model", "data.npz"],
        ["path", "data.npz", "--model", "data.npz"],
        ["cv", "data.npz", "--model", "./data.npz"],
    ):
        result = run(*arguments)
        assert result.exit_code == 2
        assert "would replace the data" in result.stderr
    assert bg.load("data.npz").X.shape[0] == 500


def test_features_in_another_order_are_refused(folder):
    X = np.random.default_rng(0).normal(size=(30, 3))
    data = bg.Dataset(X, np.where(X[:, 0] > 0, 1, -1), np.array(["a", "b", "c"]))
    bg.save(data, folder / "abc.npz")
    bg.save(bg.Dataset(X[:, [2, 0, 1]], data.y, np.array(["c", "a", "b"])), folder / "cab.npz")
    run("fit", folder / "abc.npz", "--loss", "logistic", "--alpha-ratio", 0.1, "--model", folder / "abc_model.npz")
    assert run("predict", folder / "abc_model.npz", folder / "abc.npz").exit_code == 0
    result = run("predict", folder / "abc_model.npz", folder / "cab.npz")
    assert result.exit_code == 1
    assert "column 1 is 'c', the model's is 'a'" in result.stderr


def test_large_labels_stay_apart_and_odd_names_are_drawn(folder):
    rng = np.random.default_rng(1)
    price = np.array(["$20_$30", "[/b]", "a<b"])[rng.integers(0, 3, 200)]
    label = np.where(price == "[/b]", 1_000_001, 1_000_002)
    lines = ["price,y", *(f"{p},{v}" for p, v in zip(price, label, strict=True))]
    (folder / "odd[bold].csv").write_text("\n".join(lines) + "\n")
    options = ["--loss", "logistic", "--alphas", 8, "--model", folder / "odd.npz", "--report", folder / "odd.html"]
    result = run("path", folder / "odd[bold].csv", *options)
    assert result.exit_code == 0, result.output
    assert "odd[bold].csv" in result.stdout.replace("\n", "")
    alpha = bg.Model.load(folder / "odd.npz").alphas[-1]
    result = run("predict", folder / "odd.npz", folder / "odd[bold].csv", "--alpha", alpha, "--what", "probabilities")
    assert result.stdout.splitlines()[0] == "p(1000001),p(1000002)"


def test_other_files_than_models_are_refused(folder):
    result = run("predict", folder / "data.npz", folder / "data.npz")
    assert result.exit_code == 1
    assert "data.npz cannot be read as a model" in result.stderr
    result = run("report", folder / "nothing.npz")
    assert result.exit_code == 1
    assert "nothing.npz" in result.stderr


def test_reports_are_written_by_fit_and_later_from_the_model(folder, logistic):
    fit = ["fit", folder / "train.svm", "--loss", "logistic", "--alpha-ratio", 0.05]
    result = run(*fit, "--report", folder / "now.html")
    assert result.exit_code == 0, result.output
    result = run("report", logistic, "--out", folder / "later.html")
    assert result.exit_code == 0, result.output
    for name in ("now.html", "later.html"):
        text = (folder / name).read_text(encoding="utf-8")
        assert "<svg" in text
        assert "http" not in text.split("<body>")[1].replace("http://www.w3.org", "")
        top = bg.Model.load(logistic).top(1)[0][0]
        assert top in text


def test_a_path_keeps_the_scores_of_the_model_that_bic_recommends(folder):
    options = ["--loss", "logistic", "--alphas", 8, "--eps", 0.05, "--model", folder / "scored.npz"]
    result = run("path", folder / "train.svm", *options)
    assert result.exit_code == 0, result.output
    model, data = bg.Model.load(folder / "scored.npz"), bg.load(folder / "train.svm")
    expected = model.at("bic").measure(data.X, data.y, rows="all")
    assert model.quality.scores == pytest.approx(expected.scores)
    assert model.quality.rows == "the rows the model was fitted on, by the model of lowest BIC"
