"""How well models predict, as fit, cv, path and predict say it."""

from __future__ import annotations

import csv
import json
import os
import pty
import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, r2_score, roc_auc_score

import blockgreedy as bg
from blockgreedy.cli.scores import split
from command_line import ENVIRONMENT, run
from terminals import read_to_the_end

CLASSES = ["roc_auc", "average_precision", "log_loss", "brier", "accuracy"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """text.npz: 500 rows of two classes, a fifth positive; numbers.npz: 300 rows of numbers."""
    folder = tmp_path_factory.mktemp("scores")
    made = bg.data.text_like(1500, 800, 20.0, seed=5)
    positive, negative = np.flatnonzero(made.y == 1)[:100], np.flatnonzero(made.y == -1)[:400]
    rows = np.sort(np.concatenate([positive, negative]))
    rng = np.random.default_rng(0)
    blurred = made.X[rows].multiply(rng.random((500, 800)) < 0.5).tocsr()  # or all scores are 1
    bg.save(bg.Dataset(blurred, made.y[rows]), folder / "text.npz")
    X = rng.normal(size=(300, 40))
    bg.save(bg.Dataset(X, X[:, :5].sum(axis=1) + rng.normal(size=300) + 10), folder / "numbers.npz")
    return folder


LOGISTIC = ("--loss", "logistic", "--intercept")


def test_fit_scores_rows_that_were_left_out(folder):
    model = folder / "held.npz"
    options = ["--alpha-ratio", 0.05, "--holdout", 0.2, "--seed", 3, "--tol", 1e-6]
    result = run("fit", folder / "text.npz", *LOGISTIC, *options, "--json", "--model", model)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    train, test = split(bg.load(folder / "text.npz"), 0.2, 3)
    assert (found["n_samples"], found["quality"]["n_samples"]) == (400, 100)
    assert (found["holdout"], found["seed"]) == (0.2, 3)
    assert np.mean(test.y == 1) == np.mean(train.y == 1) == 0.2  # stratified
    estimator = bg.LogisticRegression(alpha=found["alpha"], tol=1e-6).fit(train.X, train.y)
    p = estimator.predict_proba(test.X)[:, 1]
    scores = found["quality"]["scores"]
    assert list(scores) == CLASSES
    assert scores["roc_auc"] == pytest.approx(roc_auc_score(test.y, p), abs=1e-3)
    assert scores["average_precision"] == pytest.approx(average_precision_score(test.y, p), abs=1e-2)
    assert scores["log_loss"] == pytest.approx(log_loss(test.y, p), abs=1e-3)
    assert scores["brier"] == pytest.approx(brier_score_loss(test.y, p), abs=1e-3)
    assert scores["accuracy"] == estimator.score(test.X, test.y)
    assert found["quality"]["baseline"]["base_rate"] == 0.2
    saved = bg.Model.load(model).quality
    assert saved.rows == found["quality"]["rows"] == "20 % of the rows, held out"
    assert dict(saved.scores) == scores
    text = run("fit", folder / "text.npz", *LOGISTIC, *options).stdout
    assert "Scores on 20 % of the rows, held out (100 rows, base rate of class 1: 20 %)" in text
    assert "The model was fitted on the other 400 rows." in text
    for words in ("AUC (ROC)", "average precision", "log loss", "Brier score", "constant prediction"):
        assert words in text
    assert "are optimistic" not in text
    other = json.loads(run("fit", folder / "text.npz", *LOGISTIC, *options, "--seed", 4, "--json").stdout)
    assert other["quality"]["scores"] != scores


def test_fit_without_holdout_says_that_its_scores_are_those_of_the_rows_it_has_seen(folder):
    model = folder / "seen.npz"
    result = run("fit", folder / "numbers.npz", "--alpha-ratio", 0.05, "--intercept", "--model", model)
    assert result.exit_code == 0, result.output
    assert "Scores on the rows the model was fitted on (300 rows)" in result.stdout
    assert "These scores are optimistic, because the model was fitted on the same rows." in result.stdout
    fitted, data = bg.Model.load(model), bg.load(folder / "numbers.npz")
    assert fitted.quality.rows == "the rows the model was fitted on"
    assert list(fitted.quality.scores) == ["r2", "mae", "rmse"]
    assert fitted.quality.scores["r2"] == pytest.approx(r2_score(data.y, fitted.predict(data.X)))
    assert fitted.support.tolist() == [300] * 40


def test_the_family_can_hold_out_rows_too(folder):
    options = ["--method", "thread-greedy", "--loss", "logistic", "--alpha-ratio", 0.1, "--holdout", 0.5, "--json"]
    result = run("fit", folder / "text.npz", *options)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["quality"]["n_samples"] == 250


@pytest.mark.parametrize("share", [0, 1, -0.5, 20, "nan"])
def test_a_share_that_is_none_ends_the_command_before_the_data_is_read(folder, share):
    result = run("fit", folder / "nothing.npz", "--alpha", 1, "--holdout", share)
    assert result.exit_code == 2
    assert f"--holdout {share} must lie between 0 and 1" in result.stderr


def test_every_class_stays_among_the_rows_to_fit_on():
    y = np.array(["a"] * 9 + ["b"])
    train, test = split(bg.Dataset(np.arange(10.0)[:, None], y), 0.9, 0)
    assert sorted(set(train.y)) == ["a", "b"]
    assert set(test.y) == {"a"}
    assert sorted([*train.X[:, 0], *test.X[:, 0]]) == list(range(10))
    with pytest.raises(ValueError, match=r"--holdout 0.1 of 2 rows leaves 0 to score on and 2 to fit on"):
        split(bg.Dataset(np.ones((2, 1)), np.array([1.0, 2.0])), 0.1, 0)


def test_cv_scores_rows_by_models_that_had_not_seen_them(folder):
    model = folder / "cv.npz"
    options = [*LOGISTIC, "--alphas", 8, "--eps", 0.02, "--folds", 4]
    result = run("cv", folder / "text.npz", *options, "--json", "--model", model)
    assert result.exit_code == 0, result.output
    assert "CV" not in result.stderr
    found, data = json.loads(result.stdout), bg.load(folder / "text.npz")
    estimator = bg.LogisticRegressionCV(n_alphas=8, eps=0.02, cv=4).fit(data.X, data.y)
    quality = found["quality"]
    assert "4-fold cross-validation" in quality["rows"]
    assert quality["scores"]["roc_auc"] == pytest.approx(roc_auc_score(data.y, estimator.oof_decision_))
    assert 2 * quality["scores"]["log_loss"] == pytest.approx(min(found["curve"]["mean"]), rel=1e-3)
    saved = bg.Model.load(model)
    assert dict(saved.quality.scores) == quality["scores"]
    assert saved.cross_validation.fold_scores.shape == (4, 8)
    weighted = saved.cross_validation.fold_scores.mean(axis=0)  # folds of equal size
    assert weighted == pytest.approx(saved.cross_validation.mean)
    text = run("cv", folder / "text.npz", *options).stdout
    assert "Scores on the held-out rows of 4-fold cross-validation" in text
    assert "more alphas" not in text
    text = run("cv", folder / "numbers.npz", "--intercept", "--alphas", 40, "--folds", 3).stdout
    assert "R²" in text
    assert "more alphas; --json prints all" in text


def test_a_path_recommends_alphas_that_predict_can_use(folder):
    model, table = folder / "path.npz", folder / "path.csv"
    options = ["--intercept", "--alphas", 50, "--model", model, "--csv", table]
    result = run("path", folder / "numbers.npz", *options)
    assert result.exit_code == 0, result.output
    data = bg.load(folder / "numbers.npz")
    path = bg.solve_path(bg.Problem(data.X, data.y, alpha=0.0, fit_intercept=True), n_alphas=50)
    for name in ("bic", "ebic"):
        k = int(np.argmin(getattr(path, name)()))
        said = f"recommended by {name.upper()}: alpha {path.alphas[k]:.4g}, {path.nonzeros[k]} of 40 features"
        assert said in result.stdout
        marked = [line for line in result.stdout.splitlines() if line.split()[-1:] == [name.upper()] or name in line]
        assert any(line.split()[0] == f"{path.alphas[k]:.4g}" for line in marked) or "BIC, EBIC" in result.stdout
    shown = [line for line in result.stdout.splitlines() if "%" in line]
    assert f"… {50 - len(shown)} more alphas; --csv writes all" in result.stdout
    with open(table, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["bic"]) for row in rows] == pytest.approx(path.bic().tolist())
    json_result = json.loads(run("path", folder / "numbers.npz", *options[:3], "--json").stdout)
    assert json_result["recommended"]["bic"]["alpha"] == pytest.approx(path.alphas[path.recommended("bic")])

    result = run("predict", model, folder / "numbers.npz", "--alpha", "bic", "--what", "decision")
    assert result.exit_code == 0, result.output
    k = path.recommended("bic")
    assert f"alpha {path.alphas[k]:.6g} (lowest BIC): {path.nonzeros[k]} nonzero weights" in result.stderr
    found = [float(line) for line in result.stdout.splitlines()[1:]]
    assert found == pytest.approx((data.X @ path.coef(k) + path.intercepts[k]).tolist())
    result = run("predict", model, folder / "numbers.npz")
    assert result.exit_code == 2
    assert "choose one with --alpha (a number, or aic, bic, ebic)" in result.stderr


def test_losses_without_a_likelihood_get_no_recommendation(folder):
    model = folder / "huber.npz"
    result = run("path", folder / "numbers.npz", "--loss", "huber", "--intercept", "--alphas", 5, "--model", model)
    assert result.exit_code == 0, result.output
    assert "recommended" not in result.stdout
    result = run("predict", model, folder / "numbers.npz", "--alpha", "bic")
    assert result.exit_code == 2
    assert "this model has no information criteria" in result.stderr


@pytest.mark.parametrize("alpha", ["best", "-1", "0", "nan", "inf"])
def test_an_alpha_that_is_none_is_wrong_use(folder, alpha):
    result = run("predict", folder / "nothing.npz", folder / "numbers.npz", "--alpha", alpha)
    assert result.exit_code == 2
    assert f"--alpha {alpha} is neither a number above 0 nor one of aic, bic, ebic" in result.stderr


@pytest.fixture(scope="module")
def logistic(folder):
    run("fit", folder / "text.npz", *LOGISTIC, "--alpha-ratio", 0.05, "--model", folder / "logistic.npz")
    return folder / "logistic.npz"


def test_scores_go_to_stdout_alone_and_predictions_to_the_file(folder, logistic):
    result = run("predict", logistic, folder / "text.npz", "--score")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert "base rate of class 1: 20 %" in result.stdout
    assert "prediction\n" not in result.stdout
    accuracy = next(line.split() for line in result.stdout.splitlines() if line.startswith("accuracy"))
    assert float(accuracy[2]) == 0.8  # of always predicting the larger class
    result = run("predict", logistic, folder / "text.npz", "--score", "--json", "--out", folder / "p.csv")
    assert list(json.loads(result.stdout)) == ["rows", "n_samples", "scores", "baseline"]
    assert result.stderr == f"500 predictions in {folder / 'p.csv'}\n"
    assert len((folder / "p.csv").read_text().splitlines()) == 501


def test_rows_of_one_class_are_scored_without_auc(folder, logistic):
    data = bg.load(folder / "text.npz")
    rows = data.y == 1
    bg.save(bg.Dataset(data.X[rows], data.y[rows]), folder / "ones.npz")
    result = run("predict", logistic, folder / "ones.npz", "--score")
    assert result.exit_code == 0, result.output
    assert "All of these rows are of one class, so there is no AUC" in result.stdout
    bg.save(bg.Dataset(data.X, np.where(rows, 2, 1)), folder / "others.npz")
    result = run("predict", logistic, folder / "others.npz", "--score")
    assert result.exit_code == 1
    assert "the classes of the model are -1 and 1" in result.stderr


@pytest.mark.parametrize("quiet", [False, True])
def test_cv_shows_a_bar_with_the_best_score_on_a_terminal(folder, quiet):
    terminal, stderr = pty.openpty()
    arguments = ["cv", folder / "text.npz", *LOGISTIC, "--alphas", 60, "--folds", 7, "--json", *["--quiet"] * quiet]
    process = subprocess.Popen(
        [sys.executable, "-m", "blockgreedy", *map(str, arguments)],
        env={**os.environ, **ENVIRONMENT, "COLUMNS": "90", "TERM": "xterm"}, stdout=subprocess.PIPE, stderr=stderr,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    os.close(stderr)
    shown = read_to_the_end(terminal)
    out, _ = process.communicate(timeout=60)
    assert json.loads(out)["status"] == "converged"
    assert (b"7 folds" in shown) is not quiet
    assert (b"/420" in shown) is not quiet
    assert (b"best deviance" in shown) is not quiet
    assert b"CV" not in shown
    if quiet:
        assert shown == b""


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        ("fit", ["--alpha-ratio", "0.1"]),
        ("path", ["--alphas", "5"]),
        ("cv", ["--alphas", "5", "--folds", "2"]),
        ("predict", ["--score"]),
    ],
)
def test_a_reader_that_has_seen_enough_is_no_failure(folder, logistic, verb, options):
    files = [str(logistic)] * (verb == "predict") + [str(folder / "text.npz")]
    reading, writing = os.pipe()
    os.close(reading)  # as `head` does
    command = [sys.executable, "-m", "blockgreedy", verb, *files, *options]
    done = subprocess.run(
        command, env={**os.environ, **ENVIRONMENT}, stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    assert done.returncode == 0
    assert all(line.startswith("Note: ") for line in done.stderr.splitlines())
