"""Scores of predictions: those of scikit-learn, each beside a constant prediction's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics
from sklearn.calibration import calibration_curve

from blockgreedy.models.quality import CURVES, LABELS, measure

CLASSES = np.array(["ham", "spam"])


def classified(n=1000, ties=False, seed=0):
    rng = np.random.default_rng(seed)
    decision = rng.normal(size=n) - 1
    decision = np.round(decision, 1) if ties else decision
    positive = rng.random(n) < 1 / (1 + np.exp(-2 * decision))
    return decision, CLASSES[positive.astype(int)], rng.integers(0, 4, n).astype(float)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_of_classes_are_those_of_scikit_learn(ties, weighted):
    decision, y, weights = classified(ties=ties)
    w = weights if weighted else None
    found = measure("logistic", CLASSES, decision, y, rows="all", sample_weight=w)
    p, spam = 1 / (1 + np.exp(-decision)), y == "spam"
    constant = np.full(len(y), np.average(spam, weights=w))
    for scores, decided, likely in ((found.scores, decision, p), (found.baseline, constant, constant)):
        assert scores["roc_auc"] == pytest.approx(metrics.roc_auc_score(spam, decided, sample_weight=w))
        expected = metrics.average_precision_score(spam, decided, sample_weight=w)
        assert scores["average_precision"] == pytest.approx(expected)
        assert scores["log_loss"] == pytest.approx(metrics.log_loss(spam, likely, sample_weight=w))
        assert scores["brier"] == pytest.approx(metrics.brier_score_loss(spam, likely, sample_weight=w))
        expected = metrics.accuracy_score(spam, likely > 0.5, sample_weight=w)
        assert scores["accuracy"] == pytest.approx(expected)
    assert found.baseline["base_rate"] == pytest.approx(constant[0])
    assert list(found.scores) == [name for name in LABELS if name in found.scores]
    assert found.rows == "all"
    assert found.n_samples == (np.count_nonzero(weights) if weighted else 1000)


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_of_targets_are_those_of_scikit_learn(loss, weighted):
    rng = np.random.default_rng(1)
    y = 10 + rng.normal(size=300)
    predicted = y + rng.normal(scale=0.3, size=300)
    w = rng.random(300) if weighted else None
    found = measure(loss, None, predicted, y, rows="all", sample_weight=w)
    mean = np.full(300, np.average(y, weights=w))
    for scores, prediction in ((found.scores, predicted), (found.baseline, mean)):
        assert scores["r2"] == pytest.approx(metrics.r2_score(y, prediction, sample_weight=w))
        assert scores["mae"] == pytest.approx(metrics.mean_absolute_error(y, prediction, sample_weight=w))
        expected = metrics.root_mean_squared_error(y, prediction, sample_weight=w)
        assert scores["rmse"] == pytest.approx(expected)
    assert list(found.scores) == ["r2", "mae", "rmse"]
    assert "base_rate" not in found.baseline


def test_a_weight_of_2_is_the_row_twice_and_a_weight_of_0_no_row():
    decision, y, weights = classified(ties=True)
    times = weights.astype(int)
    once = measure("logistic", CLASSES, decision, y, rows="all", sample_weight=weights)
    repeated = measure("logistic", CLASSES, np.repeat(decision, times), np.repeat(y, times), rows="all")
    assert dict(once.scores) == pytest.approx(dict(repeated.scores))
    assert dict(once.baseline) == pytest.approx(dict(repeated.baseline))
    for name in ("roc_fpr", "roc_tpr", "pr_recall", "pr_precision", "calibration_predicted", "calibration_observed"):
        assert once.curves[name] == pytest.approx(repeated.curves[name])


def test_classifiers_without_probabilities_have_no_log_loss_and_no_calibration():
    decision, y, _ = classified()
    found = measure("squared_hinge", CLASSES, decision, y, rows="all")
    assert list(found.scores) == ["roc_auc", "average_precision", "accuracy"]
    assert not [name for name in found.curves if name.startswith("calibration")]
    assert found.curves["scores_edges"][0] == decision.min()


def test_rows_of_one_class_have_no_ranking_and_raise_no_warning():
    for label in CLASSES:
        found = measure("logistic", CLASSES, np.array([-1.0, 2.0, 3.0]), np.array([label] * 3), rows="all")
        assert list(found.scores) == ["log_loss", "brier", "accuracy"]
        assert found.baseline["base_rate"] == float(label == "spam")
        assert found.baseline["log_loss"] == 0.0
        assert found.baseline["accuracy"] == 1.0
        assert "roc_fpr" not in found.curves


def test_a_constant_prediction_scores_as_the_baseline():
    y = CLASSES[np.array([0, 0, 0, 1])]
    found = measure("logistic", CLASSES, np.full(4, np.log(1 / 3)), y, rows="all")
    for name, score in found.scores.items():
        assert score == pytest.approx(found.baseline[name]), name
    assert found.curves["calibration_observed"].tolist() == [0.25]
    assert found.curves["calibration_count"].tolist() == [4.0]
    assert found.curves["scores_negative"].sum() == 3
    y = np.array([1.0, 2.0, 6.0])
    found = measure("squared", None, np.full(3, 3.0), y, rows="all")
    assert dict(found.scores) == pytest.approx(dict(found.baseline))


def test_targets_that_are_all_equal_have_no_r2():
    found = measure("squared", None, np.array([1.0, 2.0]), np.array([1.0, 1.0]), rows="all")
    assert dict(found.scores) == {"mae": 0.5, "rmse": pytest.approx(np.sqrt(0.5))}


@pytest.mark.parametrize("size", [1e-300, 1e-8, 1e9, 1e200])
def test_targets_of_any_size_are_scored(size):
    y = np.array([1.0, 2.0, 4.0]) * size
    found = measure("squared", None, y * 0.9, y, rows="all")
    assert found.scores["r2"] == pytest.approx(metrics.r2_score(y / size, y / size * 0.9))
    assert found.scores["rmse"] == pytest.approx(0.1 * np.sqrt(7) * size)
    assert found.curves["residual_count"].sum() == 3


def test_calibration_bins_hold_equally_many_rows():
    decision, y, _ = classified()
    found = measure("logistic", CLASSES, decision, y, rows="all").curves
    observed, predicted = calibration_curve(y == "spam", 1 / (1 + np.exp(-decision)), n_bins=10, strategy="quantile")
    assert found["calibration_predicted"] == pytest.approx(predicted)
    assert found["calibration_observed"] == pytest.approx(observed)
    assert found["calibration_count"].tolist() == [100.0] * 10


def test_curves_are_small_and_keep_their_shape():
    decision, y, _ = classified(20_000)
    found = measure("logistic", CLASSES, decision, y, rows="all")
    assert set(found.curves) <= set(CURVES)
    assert max(map(len, found.curves.values())) <= 200
    fpr, tpr = found.curves["roc_fpr"], found.curves["roc_tpr"]
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0, 0, 1, 1)
    assert metrics.auc(fpr, tpr) == pytest.approx(found.scores["roc_auc"], abs=1e-3)
    recall, precision = found.curves["pr_recall"], found.curves["pr_precision"]
    assert (recall[0], recall[-1]) == (0, 1)
    assert np.sum(np.diff(recall) * precision[1:]) == pytest.approx(found.scores["average_precision"], abs=3e-3)
    assert found.curves["scores_negative"].sum() + found.curves["scores_positive"].sum() == 20_000

    found = measure("squared", None, decision, decision + 1, rows="all")
    assert len(found.curves["fit_predicted"]) == 500
    assert np.array_equal(found.curves["fit_observed"], found.curves["fit_predicted"] + 1)
    assert found.curves["residual_count"].sum() == 20_000


def test_outlying_residuals_are_counted_in_the_outermost_bars():
    y = np.random.default_rng(0).normal(size=1000)
    y[0] = 1e6
    curves = measure("huber", None, np.zeros(1000), y, rows="all").curves
    assert curves["residual_edges"][-1] < 10
    assert curves["residual_count"].sum() == 1000


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"decision": [0.0, np.nan, 1.0]}, r"decision\[1\] is nan; every value must be finite"),
        ({"decision": [0.0, 1.0]}, r"y has shape \(3,\), expected \(2,\)"),
        ({"decision": []}, "for at least one row"),
        ({"y": ["ham", "spam", "eggs"]}, r"y\[2\] is 'eggs'; the classes of the model are 'ham' and 'spam'"),
        ({"classes": None, "y": [0.0, np.inf, 1.0]}, r"y\[1\] is inf"),
        ({"sample_weight": [1, -1, 1]}, r"sample_weight\[1\] is -1.0; weights must be at least 0"),
        ({"sample_weight": [0, 0, 0]}, "sample_weight is 0 everywhere"),
        ({"loss": "hinge"}, "loss='hinge' is not known"),
    ],
)
def test_what_cannot_be_scored_is_named(changes, sentence):
    given = {"loss": "logistic", "classes": CLASSES, "decision": [0.0, 1.0, -1.0], "y": ["ham", "spam", "ham"]}
    given |= {"rows": "all"} | changes
    with pytest.raises(ValueError, match=sentence):
        measure(**given)
