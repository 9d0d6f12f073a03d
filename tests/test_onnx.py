"""Models converted to ONNX predict what ours predict."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import blockgreedy as bg

skl2onnx = pytest.importorskip("skl2onnx")
runtime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.filterwarnings("ignore")  # of skl2onnx and onnx, about each other

LABELS = {"numbers": [3, -1, 7], "words": ["no", "yes", "maybe"], "truth": [False, True], "floats": [0.0, 1.0, 2.0]}
CLASSIFIERS = [
    bg.LogisticRegression(alpha=0.005),
    bg.LogisticRegressionCV(n_alphas=3, cv=2),
    bg.SquaredHingeClassifier(C=1.0),
]
REGRESSORS = [
    bg.Lasso(alpha=0.05),
    bg.ElasticNet(alpha=0.05),
    bg.HuberLasso(alpha=0.05),
    bg.LassoCV(n_alphas=3, cv=2),
    bg.ElasticNetCV(n_alphas=3, cv=2),
    bg.Lasso(alpha=0.05, fit_intercept=False),
]


@pytest.fixture(autouse=True, scope="module")
def _registered():
    from blockgreedy.onnx import register

    register()
    register()


def run(model, X, **options):
    converted = skl2onnx.to_onnx(model, X[:1], options={id(last(model)): options} if options else None)
    session = runtime.InferenceSession(converted.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"X": X})


def last(model):
    return model[-1] if hasattr(model, "steps") else model


def classes(labels, n_classes, dtype, scale=1.0):
    X, codes = make_classification(
        300, 12, n_informative=6, n_classes=n_classes, random_state=1, n_clusters_per_class=1
    )
    return (scale * X).astype(dtype), np.array(LABELS[labels])[codes]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("in_pipeline", [False, True])
@pytest.mark.parametrize(("labels", "n_classes"), [("numbers", 2), ("numbers", 3), ("words", 2), ("words", 3)])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
def test_classifiers_give_our_labels_and_probabilities(model, labels, n_classes, in_pipeline, dtype):
    X, y = classes(labels, n_classes, dtype)
    fitted = (make_pipeline(StandardScaler(), model) if in_pipeline else model).fit(X, y)
    is_logistic = hasattr(model, "predict_proba")
    found, scores = run(fitted, X, **({"zipmap": False} if is_logistic else {}))
    expected = fitted.predict_proba(X) if is_logistic else fitted.decision_function(X).reshape(len(X), -1)
    assert np.mean(found == fitted.predict(X)) == 1
    assert scores.dtype == dtype
    assert scores.shape == expected.shape
    np.testing.assert_allclose(scores, expected, atol=1e-6 if is_logistic else 5e-6, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("model", REGRESSORS, ids=lambda model: type(model).__name__)
def test_regressors_give_our_predictions(model, dtype, rng):
    X = rng.normal(size=(200, 9)).astype(dtype)
    y = X[:, 0] - 2 * X[:, 1] + 3
    fitted = make_pipeline(StandardScaler(), model).fit(X, y)
    np.testing.assert_allclose(run(fitted, X)[0][:, 0], fitted.predict(X), rtol=1e-6, atol=1e-6)


def test_several_targets_are_several_columns(rng):
    X = rng.normal(size=(100, 4))
    model = bg.Lasso(alpha=0.01).fit(X, X[:, :3] + 1)
    np.testing.assert_allclose(run(model, X)[0], model.predict(X), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_zipmap_gives_probabilities_by_label(n_classes, dtype):
    X, y = classes("words", n_classes, dtype)
    model = bg.LogisticRegression(alpha=0.005).fit(X, y)
    labels, maps = run(model, X)
    np.testing.assert_array_equal(labels, model.predict(X))
    by_label = np.array([[row[label] for label in model.classes_] for row in maps])
    np.testing.assert_allclose(by_label, model.predict_proba(X), atol=1e-6)
    columns = run(model, X, zipmap="columns")
    np.testing.assert_allclose(np.column_stack(columns[1:])[:, :n_classes], model.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("labels", ["truth", "floats"])
def test_labels_that_are_whole_numbers_become_integers(labels):
    X, y = classes(labels, 2, np.float64)
    model = bg.LogisticRegression(alpha=0.005).fit(X, y)
    found = run(model, X, zipmap=False)[0]
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, model.predict(X).astype(int))


def test_labels_that_onnx_does_not_have_are_refused():
    X, y = classes("numbers", 2, np.float64)
    model = bg.LogisticRegression(alpha=0.005).fit(X, y)
    model.classes_ = np.array([0.5, 1.5])
    with pytest.raises(ValueError, match=r"classes \[0.5, 1.5\] cannot be labels in ONNX.*nocl=True"):
        run(model, X, zipmap=False)
    np.testing.assert_array_equal(run(model, X, nocl=True, zipmap=False)[0], model.decision_function(X) > 0)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_do_not_break_far_from_the_boundary(n_classes):
    X, y = classes("numbers", n_classes, np.float64)
    model = bg.LogisticRegression(alpha=0.001).fit(X, y)
    far = np.vstack([X, -X]) * 1e4
    np.testing.assert_allclose(run(model, far, zipmap=False)[1], model.predict_proba(far), atol=1e-6)


def test_raw_scores_are_decision_values():
    X, y = classes("words", 3, np.float64)
    model = bg.LogisticRegression(alpha=0.005).fit(X, y)
    np.testing.assert_allclose(run(model, X, zipmap=False, raw_scores=True)[1], model.decision_function(X))
    X, y = classes("words", 2, np.float64)
    model.fit(X, y)
    decision = model.decision_function(X)
    np.testing.assert_allclose(run(model, X, zipmap=False, raw_scores=True)[1], np.c_[-decision, decision])


def test_importing_registers_nothing_and_needs_no_skl2onnx():
    script = """
import sys, blockgreedy.onnx
assert not any(name.split(".")[0] in ("skl2onnx", "onnx") for name in sys.modules)
sys.modules["skl2onnx"] = None
try:
    blockgreedy.onnx.register()
except ImportError as error:
    assert "pip install 'blockgreedy[onnx]'" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", script], check=True)
