"""What scikit-learn's estimators have beside fit and predict: sparse weights, warnings, links, models of its own."""

import importlib.metadata
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import blockgreedy as bg


@pytest.fixture
def data(rng):
    X = rng.normal(size=(150, 8))
    return X, X[:, 0] - 2 * X[:, 3] + rng.normal(size=150)


MODELS = {
    "Lasso": (bg.Lasso(alpha=0.1), "numbers"),
    "several targets": (bg.Lasso(alpha=0.1), "targets"),
    "LassoCV": (bg.LassoCV(n_alphas=4, cv=2), "numbers"),
    "two classes": (bg.LogisticRegression(alpha=0.01), "two"),
    "three classes": (bg.LogisticRegression(alpha=0.01), "three"),
    "SquaredHingeClassifier": (bg.SquaredHingeClassifier(alpha=0.01), "three"),
    "LogisticRegressionCV": (bg.LogisticRegressionCV(n_alphas=4, cv=2), "two"),
}


def targets(y, kind):
    if kind == "targets":
        return np.column_stack([y, -y, y**2])
    return {"numbers": y, "two": np.where(y > 0, "b", "a"), "three": np.digitize(y, [-1, 1])}[kind]


@pytest.mark.parametrize("name", MODELS)
def test_sparse_weights_predict_the_same(data, name):
    X, y = data
    model, kind = MODELS[name]
    model = clone(model).fit(X, targets(y, kind))
    expected, coef = model.predict(X), model.coef_
    assert model.sparsify() is model
    assert sp.issparse(model.coef_)
    np.testing.assert_array_equal(model.sparse_coef_.toarray(), np.atleast_2d(coef))
    for kind_of_X in (X, sp.csr_matrix(X), sp.csc_array(X)):
        np.testing.assert_allclose(model.predict(kind_of_X), expected) if kind in ("numbers", "targets") else (
            np.testing.assert_array_equal(model.predict(kind_of_X), expected)
        )
    assert model.densify() is model
    np.testing.assert_array_equal(model.coef_, coef)
    assert model.coef_.shape == coef.shape


def test_a_warm_start_begins_at_sparse_weights(data):
    X, y = data
    model = bg.Lasso(alpha=0.1, warm_start=True).fit(X, y)
    again = clone(model).fit(X, y).sparsify().fit(X, y)
    assert isinstance(again.coef_, np.ndarray)
    np.testing.assert_allclose(again.coef_, model.coef_)


@pytest.mark.parametrize("make", [bg.Lasso, bg.LassoCV, bg.LogisticRegression, bg.LogisticRegressionCV])
def test_warnings_name_the_line_that_called_fit(rng, make):
    X = rng.normal(size=(150, 200))
    y = X[:, :20].sum(axis=1) + rng.normal(size=150)
    y = y > 0 if "Logistic" in make.__name__ else y
    model = make(max_iter=1, tol=1e-7, **({"n_alphas": 3, "cv": 2} if "CV" in make.__name__ else {}))
    if not hasattr(model, "cv"):
        model.set_params(alpha=0.005)
    with pytest.warns(ConvergenceWarning) as found:
        model.fit(X, y)
    assert {warning.filename for warning in found} == {__file__}


def test_the_link_leads_to_the_site_that_the_package_names(monkeypatch):
    assert "blockgreedy" in bg.Lasso()._doc_link_module
    known = importlib.metadata.metadata("blockgreedy")
    del known["Project-URL"]
    monkeypatch.setattr("blockgreedy.estimators.doc_link.metadata", lambda name: known)
    assert bg.Lasso()._get_doc_link() == ""
    known["Project-URL"] = "Documentation, https://docs.example/"
    expected = "https://docs.example/api-estimators/#blockgreedy.estimators.LassoCV"
    assert bg.LassoCV()._get_doc_link() == expected
    assert (
        "https://docs.example/api-estimators/#blockgreedy.estimators.TableEncoder" in bg.TableEncoder()._repr_html_()
    )


COUNTERPARTS = {
    "Lasso": (bg.Lasso(alpha=0.1), "numbers", "Lasso"),
    "Lasso, no intercept": (bg.Lasso(alpha=0.1, fit_intercept=False, standardize=True), "numbers", "Lasso"),
    "Lasso, targets": (bg.Lasso(alpha=0.1), "targets", "Lasso"),
    "ElasticNet": (bg.ElasticNet(alpha=0.1), "numbers", "ElasticNet"),
    "HuberLasso": (bg.HuberLasso(alpha=0.1), "numbers", "SGDRegressor"),
    "HuberLasso, targets": (bg.HuberLasso(alpha=0.1), "targets", "MultiOutputRegressor"),
    "LassoCV": (bg.LassoCV(n_alphas=4, cv=2), "numbers", "Lasso"),
    "ElasticNetCV": (bg.ElasticNetCV(n_alphas=4, cv=2), "numbers", "ElasticNet"),
    "two classes": (bg.LogisticRegression(alpha=0.01), "two", "LogisticRegression"),
    "no penalty": (bg.LogisticRegression(alpha=0.0), "two", "LogisticRegression"),
    "elastic": (bg.LogisticRegression(C=2.0, l1_ratio=0.3), "two", "LogisticRegression"),
    "three classes": (bg.LogisticRegression(alpha=0.01), "three", "OneVsRestClassifier"),
    "LogisticRegressionCV": (bg.LogisticRegressionCV(n_alphas=4, cv=2), "two", "LogisticRegression"),
    "hinge": (bg.SquaredHingeClassifier(alpha=0.01), "two", "LinearSVC"),
    "hinge, three": (bg.SquaredHingeClassifier(alpha=0.01), "three", "LinearSVC"),
    "hinge, elastic": (bg.SquaredHingeClassifier(alpha=0.01, l1_ratio=0.5), "three", "SGDClassifier"),
}


@pytest.mark.parametrize("name", COUNTERPARTS)
def test_the_model_of_scikit_learn_predicts_the_same(data, name):
    X, y = data
    ours, kind, expected = COUNTERPARTS[name]
    ours = clone(ours).fit(X, targets(y, kind))
    theirs = ours.to_sklearn()
    assert type(theirs).__module__.startswith("sklearn.")
    assert type(theirs).__name__ == expected
    for rows in (X, sp.csr_matrix(X)):
        for method in ("predict", "decision_function", "predict_proba", "predict_log_proba"):
            if hasattr(ours, method) and not (method == "predict_log_proba" and kind == "three"):
                found, known = getattr(theirs, method)(rows), getattr(ours, method)(rows)
                if known.dtype.kind == "f":
                    np.testing.assert_allclose(found, known, rtol=1e-9, atol=1e-12)
                else:
                    np.testing.assert_array_equal(found, known)
    assert b"blockgreedy" not in pickle.dumps(theirs)
    theirs.get_params()
    repr(theirs)


@pytest.mark.parametrize("name", ["Lasso", "ElasticNet", "two classes", "elastic", "hinge"])
def test_the_model_of_scikit_learn_states_the_same_objective(data, name):
    """Fitted again, it comes to the same weights."""
    X, y = data
    ours, kind, _ = COUNTERPARTS[name]
    y = targets(y, kind)
    X = X - X.mean(axis=0)
    ours = clone(ours).set_params(tol=1e-9, fit_intercept=False).fit(X, y)
    theirs = ours.to_sklearn().set_params(tol=1e-9, max_iter=100_000)
    coef = ours.coef_.copy()
    np.testing.assert_allclose(theirs.fit(X, y).coef_, coef, atol=1e-4)


def test_names_of_features_go_along(data):
    pandas = pytest.importorskip("pandas")
    X, y = data
    table = pandas.DataFrame(X, columns=[f"x{k}" for k in range(8)])
    theirs = bg.Lasso(alpha=0.1).fit(table, y).to_sklearn()
    np.testing.assert_array_equal(theirs.feature_names_in_, table.columns)
    theirs.predict(table)


def test_only_a_fitted_model_has_a_counterpart():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        bg.Lasso().to_sklearn()
