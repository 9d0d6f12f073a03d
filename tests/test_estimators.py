"""The estimators as scikit-learn's tools see them."""

import os
import pickle
import signal
import threading

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import blockgreedy as bg
from conftest import random_design

REGRESSORS = (bg.Lasso, bg.ElasticNet, bg.HuberLasso)
CLASSIFIERS = (bg.LogisticRegression, bg.SquaredHingeClassifier)
CV_ALPHAS = {"n_alphas": 6, "eps": 1e-2}
ALL = [kind() for kind in REGRESSORS + CLASSIFIERS]
# cv=3 as scikit-learn checks its own LogisticRegressionCV: one check (of sparsify) has three rows of each class.
ALL += [bg.LassoCV(**CV_ALPHAS), bg.ElasticNetCV(**CV_ALPHAS), bg.LogisticRegressionCV(**CV_ALPHAS, cv=3)]
OPTIONAL = {"check_array_api_input"}  # needs an environment variable; scikit-learn's own estimators skip it as well


@pytest.mark.filterwarnings("ignore")  # the checks provoke warnings on purpose
@pytest.mark.parametrize("estimator", ALL, ids=lambda estimator: type(estimator).__name__)
def test_scikit_learns_checks_pass_without_exception(estimator):
    results = check_estimator(estimator, on_fail=None)
    assert len(results) > 50
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] not in ("passed", "skipped")}
    assert not failed
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= OPTIONAL


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [bg.LassoCV, bg.ElasticNetCV, bg.LogisticRegressionCV])
def test_default_cross_validation_respects_weights(kind):
    from sklearn.utils.estimator_checks import check_sample_weight_equivalence_on_sparse_data

    check_sample_weight_equivalence_on_sparse_data(kind.__name__, kind())


def regression(rng, n=80, p=30):
    X = random_design(rng, n, p)
    return X, X @ np.r_[np.ones(3), np.zeros(p - 3)] + 0.3 * rng.normal(size=n) + 2


def classes(rng, n=80, p=30, k=2):
    X = random_design(rng, n, p)
    return X, np.array(["b", "a", "d", "c"])[np.argmax((X[:, :k] + 0.3 * rng.normal(size=(n, k))), axis=1)]


@pytest.mark.parametrize("estimator", ALL, ids=lambda estimator: type(estimator).__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pickling_cloning_and_dtypes(rng, estimator, dtype):
    X, y = classes(rng) if hasattr(estimator, "class_weight") else regression(rng)
    estimator = clone(estimator)
    if hasattr(estimator, "C"):
        estimator.set_params(C=3.0)
    elif hasattr(estimator, "alpha"):
        estimator.set_params(alpha=0.02)
    model = estimator.fit(X.astype(dtype), y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert model.coef_.dtype == dtype
    assert np.asarray(model.intercept_).dtype == np.float64  # makes up for what rounding does to the weights
    np.testing.assert_array_equal(model.sparse_coef_.toarray(), np.atleast_2d(model.coef_))
    assert model.sparse_coef_.nnz == np.count_nonzero(model.coef_) > 0
    assert model.status_ == "converged"
    assert np.all(np.asarray(model.dual_gap_) >= 0)
    assert not hasattr(clone(model), "coef_")


def test_grid_search_and_pipeline_on_text():
    cats = ["the cat sat", "a cat purrs", "cats and more cats purr", "my cat sleeps"] * 6
    dogs = ["the dog barks", "a dog runs", "dogs and other dogs bark", "my dog eats"] * 6
    texts, labels = cats + dogs, ["cat"] * 24 + ["dog"] * 24
    pipe = make_pipeline(TfidfVectorizer(dtype=np.float32), bg.LogisticRegression())
    search = GridSearchCV(pipe, {"logisticregression__C": [1e-3, 10.0]}, cv=3).fit(texts, labels)
    assert search.best_params_ == {"logisticregression__C": 10.0}
    assert search.best_score_ == 1.0
    assert search.predict(["cat dog cat cat"]) == ["cat"]
    best = search.best_estimator_[-1]
    assert best.coef_.dtype == np.float32
    assert np.count_nonzero(best.coef_) < 8


def test_set_output_in_a_pipeline(rng):
    X, y = regression(rng)
    X = pd.DataFrame(X.toarray()).add_prefix("x")
    pipe = make_pipeline(StandardScaler(), bg.Lasso(alpha=0.01)).set_output(transform="pandas").fit(X, y)
    np.testing.assert_array_equal(pipe[-1].feature_names_in_, X.columns)
    plain = make_pipeline(StandardScaler(), bg.Lasso(alpha=0.01)).fit(X.to_numpy(), y)
    np.testing.assert_array_equal(pipe.predict(X), plain.predict(X.to_numpy()))


def test_metadata_routing_of_sample_weights(rng):
    X, y = regression(rng)
    weights = rng.random(80) ** 4
    with sklearn.config_context(enable_metadata_routing=True):
        model = bg.Lasso(alpha=0.05).set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        pipe = make_pipeline(model).fit(X, y, sample_weight=weights)
        scores = cross_val_score(model, X, y, params={"sample_weight": weights}, cv=2)
        unasked = cross_val_score(clone(model).set_fit_request(sample_weight=False), X, y, cv=2)
    expected = bg.Lasso(alpha=0.05).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(pipe[-1].coef_, expected.coef_)
    train, test = next(KFold(2).split(X))
    fold = bg.Lasso(alpha=0.05).fit(X[train], y[train], sample_weight=weights[train])
    assert scores[0] == pytest.approx(fold.score(X[test], y[test]), rel=1e-12)
    assert np.any(scores != unasked)


def test_feature_names_are_kept_and_checked():
    X, y = load_iris(return_X_y=True)
    model = bg.LogisticRegression().fit(pd.DataFrame(X, columns=["a", "b", "c", "d"]), y)
    np.testing.assert_array_equal(model.feature_names_in_, ["a", "b", "c", "d"])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(pd.DataFrame(X, columns=["a", "b", "d", "c"]))
    plain = bg.LogisticRegression().fit(X, y)
    np.testing.assert_array_equal(plain.coef_, model.coef_)
    assert plain.n_features_in_ == 4
    with pytest.raises(ValueError, match="X has 3 features, but LogisticRegression is expecting 4"):
        plain.predict(X[:, :3])


def test_read_only_memory_maps(rng, tmp_path):
    X, y = regression(rng)
    expected = bg.Lasso(alpha=0.02).fit(X, y).coef_
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(X, name))
    parts = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("data", "indices", "indptr")]
    mapped = sp.csc_array(tuple(parts), shape=X.shape)
    y.setflags(write=False)
    np.testing.assert_array_equal(bg.Lasso(alpha=0.02).fit(mapped, y).coef_, expected)
    np.save(tmp_path / "dense.npy", np.asfortranarray(X.toarray()))
    dense = np.load(tmp_path / "dense.npy", mmap_mode="r")
    np.testing.assert_allclose(bg.Lasso(alpha=0.02).fit(dense, y).coef_, expected, atol=1e-9)


@pytest.mark.parametrize("form", [sp.csr_array, sp.coo_array, sp.lil_array, sp.csc_matrix])
def test_any_sparse_format_is_taken(rng, form):
    X, y = regression(rng)
    model = bg.Lasso(alpha=0.02).fit(form(X), y)
    np.testing.assert_allclose(model.coef_, bg.Lasso(alpha=0.02).fit(X, y).coef_, rtol=1e-12)
    np.testing.assert_allclose(model.predict(form(X)), X @ model.coef_ + model.intercept_, rtol=1e-12)


def large(rng):
    """More than small data, so that nothing is solved beyond tol."""
    X = random_design(rng, 300, 400)
    return X, X @ np.r_[np.ones(20), np.zeros(380)] + rng.normal(size=300)


def test_warning_says_what_to_change(rng):
    X, y = large(rng)
    with pytest.warns(
        ConvergenceWarning, match=r"Lasso did not converge: stopped at max_iter=1: relative gap .*raise"
    ):
        model = bg.Lasso(alpha=1e-3, max_iter=1, tol=1e-9).fit(X, y)
    assert model.status_ == "max_iter"
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [-2, 2])]
    with pytest.warns(ConvergenceWarning, match=r"class 'high': stopped at max_iter=1.*\(and 2 more\)"):
        bg.LogisticRegression(C=1e3, max_iter=1).fit(X, labels)


def test_small_data_that_stopped_early_but_within_tol_counts_as_converged(rng):
    X, y = regression(rng)
    needed = bg.solve(bg.Problem(X, y, alpha=0.05, fit_intercept=True), tol=1e-4).n_iter
    model = bg.Lasso(alpha=0.05, max_iter=needed).fit(X, y)
    assert model.status_ == "converged"


def test_callback_sees_records_and_can_stop_without_a_warning(rng):
    X, y = large(rng)
    seen = []

    def callback(record):
        seen.append(record.iteration)
        return len(seen) == 2

    model = bg.Lasso(alpha=1e-3, callback=callback, tol=1e-9).fit(X, y)
    assert model.status_ == "interrupted"
    assert seen == [0, 1]
    assert len(model.trace_) == 2
    np.testing.assert_array_equal(model.trace_["iteration"], [0, 1])


@pytest.mark.parametrize("estimator", [bg.Lasso(alpha=1e-3), bg.SquaredHingeClassifier(alpha=1e-3)])
def test_ctrl_c_sets_the_attributes_and_is_raised_again(rng, estimator):
    X, y = large(rng)
    if hasattr(estimator, "C"):
        y = np.digitize(y, [-1, 1])

    def press(record):
        os.kill(os.getpid(), signal.SIGINT)

    estimator.set_params(callback=press, tol=1e-12)
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(X, y)
    assert estimator.status_ == "interrupted"
    assert estimator.predict(X).shape == (300,)


def test_ctrl_c_ends_cross_validation(rng):
    X, y = large(rng)
    model = bg.LassoCV(n_alphas=1000, tol=1e-12)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.set_params(cv=30).fit(X, y)
    finally:
        timer.cancel()
    assert model.status_ == "interrupted"
    assert not hasattr(model, "coef_")


def test_verbose_writes_a_line(rng, capsys):
    X, y = large(rng)
    bg.Lasso(alpha=0.01, verbose=True).fit(X, y)
    assert "Lasso: iteration" in capsys.readouterr().err
    bg.LassoCV(verbose=True, n_alphas=5, cv=3).fit(X, y)
    shown = capsys.readouterr().err
    assert "3 folds: 15 of 15 models, best deviance " in shown
    assert "the fit of all rows: iteration" in shown
    bg.Lasso(alpha=0.01).fit(X, y)
    assert capsys.readouterr() == ("", "")


def test_warm_start_starts_where_the_last_fit_ended(rng):
    X, y = large(rng)
    model = bg.Lasso(alpha=0.01, warm_start=True).fit(X, y)
    first = model.trace_["objective"][0]
    model.fit(X, y)
    assert model.n_iter_ == 1
    assert model.trace_["objective"][0] < 0.5 * first
    model.set_params(positive=True).fit(X, y)  # the start is moved inside the new bounds
    assert np.min(model.coef_) >= 0
    assert model.status_ == "converged"
    several = bg.Lasso(alpha=0.01, warm_start=True).fit(X, np.column_stack([y, -y]))
    assert np.all(several.fit(X, np.column_stack([y, -y])).n_iter_ == 1)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (bg.Lasso(alpha=-1), "alpha=-1"),
        (bg.HuberLasso(delta=0), "delta=0 must be a finite number above 0"),
        (bg.ElasticNet(l1_ratio=1.5), "l1_ratio=1.5 must be from 0 to 1"),
        (bg.LogisticRegression(C=0), "C=0 must be above 0"),
        (bg.LogisticRegression(class_weight="even"), "class_weight='even' must be 'balanced'"),
        (bg.LogisticRegression(class_weight={7: 1.0}), "which y does not hold"),
        (bg.LassoCV(selection="best"), "selection='best' is not known"),
        (bg.LassoCV(eps=2), "eps=2 must be above 0 and at most 1"),
        (bg.LassoCV(alphas=[0.1, -1]), "alphas must be a list of numbers above 0"),
        (bg.ElasticNetCV(l1_ratio=[0.5, 0.0]), "l1_ratio=0 has no largest alpha"),
        (bg.LassoCV(scoring=3), "scoring=3 must be 'deviance'"),
        (bg.Lasso(tol="small"), "tol='small' must be a number"),
    ],
)
def test_bad_arguments_are_named(rng, estimator, message):
    X, y = regression(rng)
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, (y > 2).astype(int))
