"""The estimators against scikit-learn's, and what weights, intercepts and penalties must do whatever the solver."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as sk
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

import blockgreedy as bg
from conftest import random_design

TIGHT = 1e-10
REGRESSORS = {
    "Lasso": lambda **options: bg.Lasso(alpha=0.05, tol=TIGHT, **options),
    "ElasticNet": lambda **options: bg.ElasticNet(alpha=0.1, l1_ratio=0.4, tol=TIGHT, **options),
    "HuberLasso": lambda **options: bg.HuberLasso(alpha=0.05, delta=0.5, tol=TIGHT, **options),
}
CLASSIFIERS = {
    "LogisticRegression": lambda **options: bg.LogisticRegression(alpha=0.01, tol=TIGHT, **options),
    "elastic net": lambda **options: bg.LogisticRegression(alpha=0.03, l1_ratio=0.3, tol=TIGHT, **options),
    "SquaredHingeClassifier": lambda **options: bg.SquaredHingeClassifier(alpha=0.02, tol=TIGHT, **options),
}
MODELS = REGRESSORS | CLASSIFIERS


@pytest.fixture(params=["sparse", "dense", "large"])
def data(request, rng):
    """Two shapes of small data, and one beyond what is solved to the last digits."""
    n, p = (500, 60) if request.param == "large" else (90, 40)
    X = random_design(rng, n, p, density=0.8, dense=request.param == "dense")
    y = X @ np.r_[np.linspace(1, -1, 8), np.zeros(p - 8)] + 0.5 * rng.normal(size=n) + 3
    return X, y


def targets(name, y):
    return y if name in REGRESSORS else np.where(y > np.median(y), "yes", "no")


def same(a, b, atol=2e-5):
    np.testing.assert_allclose(a.coef_, b.coef_, atol=atol)
    np.testing.assert_allclose(a.intercept_, b.intercept_, atol=atol)


@pytest.mark.parametrize("name", MODELS)
def test_a_weight_is_a_repetition_and_zero_a_removal(data, name, rng):
    X, y = data
    y = targets(name, y)
    counts = rng.integers(0, 4, size=len(y))
    rows = np.repeat(np.arange(len(y)), counts)
    weighted = MODELS[name]().fit(X, y, sample_weight=counts)
    same(weighted, MODELS[name]().fit(X[rows], y[rows]))
    same(weighted, MODELS[name]().fit(X, y, sample_weight=0.37 * counts))
    same(MODELS[name]().fit(X, y, sample_weight=2.0), MODELS[name]().fit(X, y), atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("options", [{}, {"positive": True}, {"fit_intercept": False}, {"standardize": True}])
def test_alpha_max_is_exact(data, name, options, rng):
    X, y = data
    y, weights = targets(name, y), rng.random(X.shape[0])
    model = MODELS[name](**options)
    loss = {"Lasso": "squared", "ElasticNet": "squared", "HuberLasso": "huber"}.get(name, "logistic")
    loss = "squared_hinge" if name == "SquaredHingeClassifier" else loss
    problem = bg.Problem(
        X, y, loss=loss, alpha=1.0, sample_weight=weights, huber_delta=0.5, **{"fit_intercept": True, **options}
    )
    alpha_max = problem.alpha_max / getattr(model, "l1_ratio", 1.0)
    above = model.set_params(alpha=alpha_max * (1 + 1e-9)).fit(X, y, sample_weight=weights)
    assert not np.any(above.coef_)
    below = model.set_params(alpha=alpha_max * (1 - 1e-3)).fit(X, y, sample_weight=weights)
    assert np.count_nonzero(below.coef_) in (1, 2)
    assert np.all(below.coef_ >= 0) or not options.get("positive")


@pytest.mark.parametrize("name", REGRESSORS)
def test_shifting_y_moves_the_intercept_alone(data, name):
    X, y = data
    model, moved = MODELS[name]().fit(X, y), MODELS[name]().fit(X, y + 100)
    np.testing.assert_allclose(moved.coef_, model.coef_, atol=2e-5)
    assert moved.intercept_ == pytest.approx(model.intercept_ + 100, rel=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_shifting_X_moves_the_intercept_alone(data, name, rng):
    X, y = data
    y, shift = targets(name, y), rng.normal(size=X.shape[1])
    dense = X.toarray() if sp.issparse(X) else X
    model, moved = MODELS[name]().fit(X, y), MODELS[name]().fit(dense + shift, y)
    np.testing.assert_allclose(moved.coef_, model.coef_, atol=5e-5)
    outcome = "predict" if name in REGRESSORS else "decision_function"
    np.testing.assert_allclose(getattr(moved, outcome)(dense + shift), getattr(model, outcome)(X), atol=1e-3)


@pytest.mark.parametrize("options", [{}, {"positive": True}, {"fit_intercept": False}])
@pytest.mark.parametrize("weighted", [False, True])
def test_lasso_and_elastic_net_are_scikit_learns(data, options, weighted, rng):
    X, y = data
    weights = rng.random(len(y)) if weighted else None
    for mine, theirs in (
        (bg.Lasso(alpha=0.05, tol=1e-9, **options), sk.Lasso(alpha=0.05, tol=1e-12, max_iter=100_000, **options)),
        (
            bg.ElasticNet(alpha=0.1, l1_ratio=0.3, tol=1e-9, **options),
            sk.ElasticNet(alpha=0.1, l1_ratio=0.3, tol=1e-12, max_iter=100_000, **options),
        ),
    ):
        same(mine.fit(X, y, sample_weight=weights), theirs.fit(X, y, sample_weight=weights), atol=1e-4)
        np.testing.assert_allclose(mine.predict(X), theirs.predict(X), atol=1e-4)
        assert mine.score(X, y) == pytest.approx(theirs.score(X, y), rel=1e-6)


def objective(model, X, signs, C, l1_ratio=1.0):
    """scikit-learn's: C·Σ loss + penalty."""
    w = model.coef_[0]
    loss = np.sum(np.logaddexp(0, -signs * (X @ w + np.ravel(model.intercept_)[0])))
    return C * loss + l1_ratio * np.sum(np.abs(w)) + 0.5 * (1 - l1_ratio) * w @ w


def test_logistic_regression_is_liblinears_within_the_gap(data):
    X, y = data
    signs = np.where(y > np.median(y), 1.0, -1.0)
    for C in (0.1, 1.0):
        mine = bg.LogisticRegression(C=C, fit_intercept=False, tol=1e-8).fit(X, signs)
        theirs = sk.LogisticRegression(C=C, l1_ratio=1.0, solver="liblinear", fit_intercept=False, tol=1e-7)
        theirs.set_params(max_iter=20_000).fit(X, signs)
        scale = C * X.shape[0]  # our objective is scikit-learn's divided by this
        difference = objective(mine, X, signs, C) - objective(theirs, X, signs, C)
        assert difference <= scale * mine.dual_gap_[0] + 1e-9 * scale
        assert difference >= -1e-5 * scale
        np.testing.assert_allclose(mine.predict_proba(X), theirs.predict_proba(X), atol=2e-3)


@pytest.mark.parametrize("l1_ratio", [1.0, 0.4])
@pytest.mark.parametrize("class_weight", [None, "balanced", {-1.0: 3.0}])
def test_logistic_regression_is_sagas(rng, l1_ratio, class_weight):
    X = random_design(rng, 200, 15, density=0.8)
    signs = np.where(X @ np.r_[1.0, -1.0, 0.5, np.zeros(12)] + 0.5 * rng.normal(size=200) > 0.5, 1.0, -1.0)
    weights = rng.random(200)
    mine = bg.LogisticRegression(C=0.5, l1_ratio=l1_ratio, class_weight=class_weight, tol=1e-10)
    theirs = sk.LogisticRegression(C=0.5, l1_ratio=l1_ratio, class_weight=class_weight, solver="saga", tol=1e-9)
    theirs.set_params(max_iter=20_000, random_state=0)
    same(mine.fit(X, signs, sample_weight=weights), theirs.fit(X, signs, sample_weight=weights), atol=1e-4)
    np.testing.assert_allclose(mine.predict_log_proba(X), theirs.predict_log_proba(X), atol=1e-4)
    np.testing.assert_array_equal(mine.classes_, theirs.classes_)


def test_squared_hinge_is_linear_svc(data):
    X, y = data
    signs = np.where(y > np.median(y), 1.0, -1.0)
    mine = bg.SquaredHingeClassifier(C=0.5, fit_intercept=False, tol=1e-10).fit(X, signs)
    theirs = LinearSVC(C=0.5, penalty="l1", dual=False, fit_intercept=False, tol=1e-8, max_iter=100_000).fit(X, signs)
    np.testing.assert_allclose(mine.coef_, theirs.coef_, atol=2e-4)
    np.testing.assert_allclose(mine.decision_function(X), theirs.decision_function(X), atol=1e-3)
    assert not hasattr(mine, "predict_proba")


@pytest.mark.parametrize("kind", [bg.LogisticRegression, bg.SquaredHingeClassifier])
def test_several_classes_are_one_against_the_rest(kind):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = kind(alpha=0.01, class_weight="balanced").fit(X, names)
    assert model.coef_.shape == (3, 4)
    assert model.dual_gap_.shape == model.n_iter_.shape == model.intercept_.shape == (3,)
    assert len(model.trace_) == 3
    for k, name in enumerate(model.classes_):
        single = kind(alpha=0.01).fit(X, names == name)  # classes of equal size: balanced is no weight
        np.testing.assert_allclose(model.coef_[k], single.coef_[0], atol=1e-12)
    decision = model.decision_function(X)
    np.testing.assert_array_equal(model.predict(X), model.classes_[np.argmax(decision, axis=1)])
    assert model.score(X, names) > 0.9
    if kind is bg.LogisticRegression:
        single = 1 / (1 + np.exp(-decision))
        np.testing.assert_allclose(model.predict_proba(X), single / single.sum(axis=1, keepdims=True), rtol=1e-10)
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X)).sum(axis=1), 1, rtol=1e-12)
        assert np.all(np.isfinite(model.predict_log_proba(-1e6 * X)))


def test_several_targets_are_several_models(data):
    X, y = data
    Y = np.column_stack([y, -2 * y, np.roll(y, 1)])
    model = bg.Lasso(alpha=0.05, tol=1e-9).fit(X, Y)
    same(model, sk.Lasso(alpha=0.05, tol=1e-12, max_iter=100_000).fit(X, Y), atol=1e-4)
    assert model.predict(X).shape == Y.shape
    assert model.dual_gap_.shape == (3,)
    one = bg.Lasso(alpha=0.05).fit(X, y[:, None])
    assert one.coef_.shape == (X.shape[1],)
    assert np.ndim(one.intercept_) == 0


def test_class_weights_are_sample_weights(data):
    X, y = data
    labels = np.where(y > np.quantile(y, 0.8), "rare", "often")
    share = np.mean(labels == "rare")
    rows = np.where(labels == "rare", 0.5 / share, 0.5 / (1 - share))
    balanced = bg.LogisticRegression(C=2.0, class_weight="balanced", tol=TIGHT).fit(X, labels)
    same(balanced, bg.LogisticRegression(C=2.0, tol=TIGHT).fit(X, labels, sample_weight=rows))
    named = bg.LogisticRegression(C=2.0, class_weight={"rare": 5.0}, tol=TIGHT).fit(X, labels)
    rows = np.where(labels == "rare", 5.0, 1.0)
    same(named, bg.LogisticRegression(C=2.0, tol=TIGHT).fit(X, labels, sample_weight=rows))


def test_C_is_an_alpha(data):
    X, y = data
    labels = y > np.median(y)
    by_alpha = bg.LogisticRegression(alpha=1 / (0.3 * len(y)), tol=TIGHT).fit(X, labels)
    same(by_alpha, bg.LogisticRegression(C=0.3, tol=TIGHT).fit(X, labels), atol=1e-8)


def test_offsets_are_added_while_fitting(data, rng):
    X, y = data
    offset = rng.normal(size=len(y))
    same(bg.Lasso(alpha=0.05).fit(X, y, offset=offset), bg.Lasso(alpha=0.05).fit(X, y - offset), atol=1e-6)
    labels = y > np.median(y)
    shifted = bg.LogisticRegression(tol=TIGHT).fit(X, labels, offset=np.full(len(y), 2.0))
    plain = bg.LogisticRegression(tol=TIGHT).fit(X, labels)
    np.testing.assert_allclose(shifted.intercept_ + 2, plain.intercept_, atol=1e-5)
    X, y = load_iris(return_X_y=True)
    both = bg.LogisticRegression(tol=TIGHT).fit(X, y, offset=np.tile([0.0, 1.0, 2.0], (150, 1)))
    plain = bg.LogisticRegression(tol=TIGHT).fit(X, y)
    np.testing.assert_allclose(both.intercept_ + np.arange(3), plain.intercept_, atol=1e-5)
    with pytest.raises(ValueError, match=r"offset has shape \(150,\), expected \(150, 3\)"):
        bg.LogisticRegression().fit(X, y, offset=np.ones(150))


def test_penalties_and_bounds_reach_the_solver(data):
    X, y = data
    u = np.ones(X.shape[1])
    u[0], u[1] = 0.0, np.inf
    model = bg.Lasso(alpha=100.0, penalty_weights=u).fit(X, y)
    np.testing.assert_array_equal(np.flatnonzero(model.coef_), [0])
    boxed = bg.Lasso(alpha=1e-3, lower=-0.1, upper=0.2).fit(X, y)
    assert np.min(boxed.coef_) == -0.1
    assert np.max(boxed.coef_) == 0.2


def test_standardize_is_a_scaler_in_front(data):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = data
    X = (X.toarray() if sp.issparse(X) else X) * np.geomspace(0.01, 100, X.shape[1])
    mine = bg.Lasso(alpha=0.05, standardize=True, tol=1e-9).fit(X, y)
    theirs = make_pipeline(StandardScaler(), sk.Lasso(alpha=0.05, tol=1e-12, max_iter=100_000)).fit(X, y)
    np.testing.assert_allclose(mine.predict(X), theirs.predict(X), atol=1e-4)
    np.testing.assert_allclose(mine.coef_ * X.std(axis=0), theirs[-1].coef_, atol=1e-4)


def test_dual_gap_bounds_the_error(rng):
    X, y = make_classification(2000, 50, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        rough = bg.LogisticRegression(alpha=1e-3, max_iter=2, tol=1e-9).fit(X, y)
    fine = bg.LogisticRegression(alpha=1e-3, tol=1e-9).fit(X, y)
    problem = bg.Problem(X, y, loss="logistic", alpha=1e-3, fit_intercept=True)

    def value(model):
        return problem.objective(model.coef_[0], float(model.intercept_[0]))

    assert 0 < value(rough) - value(fine) <= rough.dual_gap_[0]
    assert fine.dual_gap_[0] <= 1e-9 * problem.null_model.objective


@pytest.mark.parametrize("name", MODELS)
def test_small_data_are_solved_to_the_last_digits(name, rng):
    """The subgradient of the objective vanishes to rounding, which a gap of tol alone would not give."""
    X = random_design(rng, 90, 40, density=0.8)
    y = targets(name, X @ np.r_[np.linspace(1, -1, 8), np.zeros(32)] + 0.5 * rng.normal(size=90) + 3)
    model = MODELS[name]().set_params(tol=1e-4).fit(X, y)
    loss = {"HuberLasso": "huber", "SquaredHingeClassifier": "squared_hinge"}.get(name, "squared")
    loss = "logistic" if name in ("LogisticRegression", "elastic net") else loss
    ratio = getattr(model, "l1_ratio", 1.0)
    problem = bg.Problem(
        X, y, loss=loss, alpha=model.alpha * ratio, l2=model.alpha * (1 - ratio), fit_intercept=True, huber_delta=0.5
    )
    assert problem.kkt_residual(np.atleast_2d(model.coef_)[0], float(np.ravel(model.intercept_)[0])) < 1e-13
