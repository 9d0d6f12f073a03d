"""LassoCV, ElasticNetCV, LogisticRegressionCV: folds by weights are folds, and the choice is the right one."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as sk
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss, make_scorer, roc_auc_score
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, StratifiedKFold

import blockgreedy as bg
from conftest import SANITIZED, random_design

TIGHT = {"tol": 1e-8}


def regression(rng, n=120, p=40):
    X = random_design(rng, n, p)
    return X, X @ np.r_[np.ones(5), np.zeros(p - 5)] + 0.5 * rng.normal(size=n) + 1


def labels(rng, n=150, p=30):
    X = random_design(rng, n, p)
    score = X @ np.r_[np.linspace(2, 1, 5), np.zeros(p - 5)] + rng.normal(size=n) - 0.5
    return X, np.where(score > 0, "yes", "no")


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_lasso_cv_is_scikit_learns(rng, fit_intercept):
    X, y = regression(rng)
    mine = bg.LassoCV(n_alphas=20, fit_intercept=fit_intercept, **TIGHT).fit(X, y)
    theirs = sk.LassoCV(alphas=20, cv=5, fit_intercept=fit_intercept, tol=1e-10, max_iter=50_000).fit(X, y)
    np.testing.assert_allclose(mine.alphas_, theirs.alphas_, rtol=1e-10)
    np.testing.assert_allclose(mine.mse_path_, theirs.mse_path_, rtol=1e-4)
    assert mine.alpha_ == pytest.approx(theirs.alpha_, rel=1e-10)
    np.testing.assert_allclose(mine.coef_, theirs.coef_, atol=1e-5)


def test_elastic_net_cv_chooses_among_ratios_as_scikit_learn_does(rng):
    X, y = regression(rng)
    ratios = [0.2, 0.7, 1.0]
    mine = bg.ElasticNetCV(l1_ratio=ratios, n_alphas=10, eps=1e-2, **TIGHT).fit(X, y)
    theirs = sk.ElasticNetCV(l1_ratio=ratios, alphas=10, eps=1e-2, cv=5, tol=1e-10, max_iter=50_000).fit(X, y)
    np.testing.assert_allclose(mine.alphas_, theirs.alphas_, rtol=1e-10)
    np.testing.assert_allclose(mine.mse_path_, theirs.mse_path_, rtol=1e-4)
    assert mine.l1_ratio_ == theirs.l1_ratio_
    assert mine.alpha_ == pytest.approx(theirs.alpha_)
    assert mine.score_path_.shape == (3, 10, 5)
    assert len(mine.cv_results_["alpha"]) == len(mine.cv_results_["l1_ratio"]) == 30


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_fold_is_the_model_of_its_training_rows(rng, standardize, weighted):
    """Held-out rows have no influence: the scores are those of fits on copies of the training rows."""
    X, y = regression(rng)
    X = sp.csc_array(X * np.geomspace(0.1, 10, X.shape[1]))
    weights = rng.random(len(y)) if weighted else None
    splitter = ShuffleSplit(3, test_size=0.3, random_state=0)  # not a partition of the rows
    alphas = [0.3, 0.03, 0.003]
    model = bg.LassoCV(alphas=alphas, cv=splitter, standardize=standardize, **TIGHT).fit(X, y, sample_weight=weights)
    for k, (train, test) in enumerate(splitter.split(X)):
        for i, alpha in enumerate(alphas):
            own = None if weights is None else weights[train]
            single = bg.Lasso(alpha=alpha, standardize=standardize, tol=1e-9).fit(
                X[train], y[train], sample_weight=own
            )
            errors = (y[test] - single.predict(X[test])) ** 2
            expected = np.average(errors, weights=None if weights is None else weights[test])
            assert model.mse_path_[i, k] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("selection", ["min", "1se"])
def test_out_of_fold_predictions_are_those_of_models_that_did_not_see_the_row(rng, selection):
    X, y = regression(rng)
    weights = np.where(np.arange(len(y)) % 7, 1.0, 0.0)
    folds = list(KFold(4).split(X))
    model = bg.ElasticNetCV(l1_ratio=[0.5, 1.0], n_alphas=8, cv=folds, selection=selection, **TIGHT)
    model.fit(X, y, sample_weight=weights)
    for train, test in folds:
        alone = bg.ElasticNet(alpha=model.alpha_, l1_ratio=model.l1_ratio_, **TIGHT)
        predicted = alone.fit(X[train], y[train], sample_weight=weights[train]).predict(X[test])
        counted = weights[test] > 0
        np.testing.assert_allclose(model.oof_decision_[test][counted], predicted[counted], atol=1e-4)
        assert np.all(np.isnan(model.oof_decision_[test][~counted]))
    scored = weights > 0
    error = np.mean((y - model.oof_decision_)[scored] ** 2)
    k = np.flatnonzero(model.cv_results_["alpha"] == model.alpha_)
    assert error == pytest.approx(-np.max(model.cv_results_["mean_test_score"][k]), rel=1e-6)


def test_out_of_fold_predictions_of_classes_and_of_rows_held_out_twice(rng):
    X, y = labels(rng)
    offset = rng.normal(size=len(y))
    model = bg.LogisticRegressionCV(n_alphas=5, cv=3, **TIGHT).fit(X, y, offset=offset)
    expected = 2 * log_loss(y, 1 / (1 + np.exp(-model.oof_decision_)))
    assert expected == pytest.approx(-np.max(model.cv_results_["mean_test_score"]), rel=1e-6)
    several = rng.integers(0, 3, len(y))
    assert bg.LogisticRegressionCV(n_alphas=3, cv=3).fit(X, several).oof_decision_.shape == (len(y), 3)
    # held out by two folds, which are equal, or by none
    rows = np.arange(len(y))
    twice = [(rows[50:], rows[:50]), (rows[50:], rows[:50])]
    once = bg.LogisticRegressionCV(n_alphas=5, cv=twice[:1], **TIGHT).fit(X, y)
    again = bg.LogisticRegressionCV(n_alphas=5, cv=twice, **TIGHT).fit(X, y)
    np.testing.assert_array_equal(once.oof_decision_, again.oof_decision_)
    assert np.array_equal(np.isnan(once.oof_decision_), rows >= 50)


def test_class_weights_and_classes_are_those_of_the_training_rows(rng):
    X, y = labels(rng)
    cv = StratifiedKFold(3)
    alphas = [0.1, 0.01]
    model = bg.LogisticRegressionCV(alphas=alphas, cv=cv, class_weight="balanced", **TIGHT).fit(X, y)
    for k, (train, test) in enumerate(cv.split(X, y)):
        for i, alpha in enumerate(alphas):
            single = bg.LogisticRegression(alpha=alpha, class_weight="balanced", tol=1e-9).fit(X[train], y[train])
            deviance = 2 * log_loss(y[test], single.predict_proba(X[test]))
            assert model.score_path_[i, k] == pytest.approx(-deviance, rel=1e-4)
    assert pytest.approx(1 / (model.alpha_ * len(y))) == model.C_
    whole = bg.LogisticRegression(alpha=model.alpha_, class_weight="balanced", tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-7)


@pytest.mark.parametrize(
    ("scoring", "expected"),
    [
        ("accuracy", lambda model, X, y: model.score(X, y)),
        ("roc_auc", lambda model, X, y: roc_auc_score(y, model.decision_function(X))),
        ("neg_log_loss", lambda model, X, y: -log_loss(y, model.predict_proba(X))),
        (make_scorer(lambda y, t: float(np.mean(y == t)) ** 2), lambda model, X, y: model.score(X, y) ** 2),
    ],
)
def test_any_scorer_will_do(rng, scoring, expected):
    X, y = labels(rng)
    model = bg.LogisticRegressionCV(alphas=[0.05, 0.01], cv=3, scoring=scoring, **TIGHT).fit(X, y)
    for k, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
        single = bg.LogisticRegression(alpha=0.01, tol=1e-9).fit(X[train], y[train])
        assert model.score_path_[1, k] == pytest.approx(expected(single, X[test], y[test]), rel=1e-5)


def test_scorers_of_regression_and_of_several_classes(rng):
    X, y = regression(rng)
    model = bg.LassoCV(n_alphas=10, scoring="r2").fit(X, y)
    assert 0.5 < np.max(model.cv_results_["mean_test_score"]) < 1
    assert not hasattr(model, "mse_path_")
    X, y = load_iris(return_X_y=True)
    several = bg.LogisticRegressionCV(n_alphas=8, cv=3, scoring="accuracy").fit(X, y)
    assert several.coef_.shape == (3, 4)
    assert np.max(several.cv_results_["mean_test_score"]) > 0.9
    deviance = bg.LogisticRegressionCV(alphas=[0.01], cv=StratifiedKFold(3)).fit(X, y)
    train, test = next(StratifiedKFold(3).split(X, y))
    single = bg.LogisticRegression(alpha=0.01).fit(X[train], y[train])
    expected = -2 * log_loss(y[test], single.predict_proba(X[test]))
    assert deviance.score_path_[0, 0] == pytest.approx(expected, rel=1e-5)


def test_one_standard_error_is_the_sparser_choice(rng):
    X, y = regression(rng)
    model = bg.LassoCV(n_alphas=50, **TIGHT).fit(X, y)
    mean = np.mean(model.score_path_, axis=1)  # folds of equal size
    error = np.std(model.score_path_, axis=1, ddof=1) / np.sqrt(5)
    best = int(np.argmax(mean))
    assert model.alpha_ == model.alpha_min_ == model.alphas_[best]
    assert model.alpha_1se_ == np.max(model.alphas_[mean >= mean[best] - error[best]])
    assert model.alpha_1se_ > model.alpha_min_
    np.testing.assert_allclose(model.cv_results_["std_error"], error, rtol=1e-10)
    sparser = bg.LassoCV(n_alphas=50, selection="1se", **TIGHT).fit(X, y)
    assert sparser.alpha_ == model.alpha_1se_
    assert np.count_nonzero(sparser.coef_) < np.count_nonzero(model.coef_)
    np.testing.assert_allclose(sparser.coef_, bg.Lasso(alpha=sparser.alpha_, tol=1e-9).fit(X, y).coef_, atol=1e-7)


def test_folds_of_unequal_weight_count_by_their_weight(rng):
    X, y = regression(rng)
    splits = [(np.arange(20, 120), np.arange(20)), (np.arange(80), np.arange(80, 120))]
    model = bg.LassoCV(alphas=[0.1], cv=splits).fit(X, y)
    expected = np.average(model.score_path_[0], weights=[20, 40])
    assert model.cv_results_["mean_test_score"][0] == pytest.approx(expected)


@pytest.mark.threads
def test_threads_and_jobs_change_nothing(rng):
    X, y = labels(rng)
    models = [
        bg.LogisticRegressionCV(n_alphas=10, n_jobs=jobs, n_threads=threads).fit(X, y)
        for jobs, threads in ((1, 1), (1, 2), (3, 2), (None, None))
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.score_path_, models[0].score_path_)
        np.testing.assert_array_equal(model.coef_, models[0].coef_)


def test_groups_and_random_folds(rng):
    X, y = regression(rng)
    groups = np.arange(120) // 10
    grouped = bg.LassoCV(n_alphas=5, cv=GroupKFold(4)).fit(X, y, groups=groups)
    assert grouped.score_path_.shape == (5, 4)
    shuffled = bg.LassoCV(n_alphas=5, cv=4, random_state=3).fit(X, y)
    same = bg.LassoCV(n_alphas=5, cv=KFold(4, shuffle=True, random_state=3)).fit(X, y)
    np.testing.assert_array_equal(shuffled.score_path_, same.score_path_)
    assert np.any(shuffled.score_path_ != bg.LassoCV(n_alphas=5, cv=4).fit(X, y).score_path_)


def test_offsets_count_in_fits_and_in_scores(rng):
    X, y = regression(rng)
    offset = rng.normal(size=len(y))
    with_offset = bg.LassoCV(n_alphas=8, **TIGHT).fit(X, y, offset=offset)
    without = bg.LassoCV(n_alphas=8, **TIGHT).fit(X, y - offset)
    np.testing.assert_allclose(with_offset.mse_path_, without.mse_path_, rtol=1e-6)
    np.testing.assert_allclose(with_offset.coef_, without.coef_, atol=1e-7)


def test_folds_that_end_early_warn(rng):
    X = random_design(rng, 300, 400)
    y = X @ np.r_[np.ones(20), np.zeros(380)] + rng.normal(size=300)
    with (
        pytest.warns(
            ConvergenceWarning, match=r"cross-validation: some folds did not converge at some alphas \(max_iter\)"
        ),
        pytest.warns(ConvergenceWarning, match="the fit of all rows did not converge: stopped at max_iter=1"),
    ):
        bg.LassoCV(n_alphas=5, max_iter=1, tol=1e-7).fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_alphas_that_were_not_reached_are_not_chosen(rng):
    X = random_design(rng, 300, 400)
    y = X @ np.r_[np.ones(20), np.zeros(380)] + rng.normal(size=300)
    model = bg.LassoCV(n_alphas=20, max_seconds=1e-9, tol=1e-7).fit(X, y)
    reached = np.all(np.isfinite(model.score_path_), axis=1)
    assert 1 <= np.sum(reached) < 20
    assert model.alpha_ in model.alphas_[reached]


def test_folds_that_cannot_be_used_are_refused(rng):
    X, y = regression(rng)
    weights = np.r_[np.zeros(24), np.ones(96)]  # the first of five folds has no row that counts
    with pytest.raises(ValueError, match="cv leaves a fold without rows of positive weight"):
        bg.LassoCV().fit(X, y, sample_weight=weights)


@pytest.mark.skipif(bool(SANITIZED), reason="a sanitizer's own memory counts too")
def test_folds_share_the_matrix():
    """Peak memory beyond the matrix is far below a copy of it for each of five folds running side by side."""
    code = (
        "import numpy as np, scipy.sparse as sp, blockgreedy as bg; bg.LassoCV\n"
        "X = sp.random_array((40_000, 500), density=0.1, format='csc', rng=np.random.default_rng(0))\n"
        "y = X @ np.r_[np.ones(5), np.zeros(495)] + np.random.default_rng(1).normal(size=40_000)\n"
        "def peak(): return int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]) * 1024\n"
        "before = peak()\n"
        "bg.LassoCV(n_alphas=5, eps=0.1, n_jobs=5).fit(X, y)\n"
        "print((peak() - before) / (X.data.nbytes + X.indices.nbytes))"
    )
    grown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert float(grown) < 1.5


def autoregressive(seed, n=150, p=300, rho=0.99):
    """Neighbouring columns are nearly the same, so that scores depend on how well a fold was solved."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(n, p))
    X = np.empty((n, p))
    X[:, 0] = noise[:, 0]
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * noise[:, j]
    signal = X[:, rng.choice(p, 10, replace=False)] @ rng.normal(size=10)
    return X, signal + np.std(signal) / np.sqrt([0.3, 1, 3, 10][seed % 4]) * rng.normal(size=n)


@pytest.mark.parametrize("selection", ["min", "1se"])
def test_the_choice_is_that_of_folds_solved_tightly(selection):
    """A tol of 1e-2 in all folds chooses another alpha in some of these."""
    differ = []
    for seed in (101, 103, 106, 110, 113, 117):
        X, y = autoregressive(seed)
        usual, tight, rough = (bg.LassoCV(fold_tol=tol, selection=selection).fit(X, y) for tol in (None, 1e-6, 1e-2))
        assert usual.alpha_ == tight.alpha_
        at = list(usual.alphas_).index(usual.alpha_)
        nonzeros = [model.cv_results_["mean_nonzeros"][at] for model in (usual, tight)]
        assert nonzeros[0] == pytest.approx(nonzeros[1], rel=0.05)
        differ.append(rough.alpha_ != tight.alpha_)
    assert sum(differ) >= 2


def test_folds_are_solved_again_only_where_the_choice_depends_on_it(monkeypatch):
    from blockgreedy.estimators.folds import FoldPath

    data = bg.data.text_like(3000, 5000, 30.0, seed=1)
    again = []
    solve_again = FoldPath.solve_again
    monkeypatch.setattr(
        FoldPath, "solve_again", lambda path, at, advance: again.extend(at) or solve_again(path, at, advance)
    )
    bg.LogisticRegressionCV().fit(data.X, data.y)
    assert 5 <= len(again) <= 25  # of 500 models
    again.clear()
    bg.LogisticRegressionCV(fold_tol=1e-2).fit(data.X, data.y)
    assert not again


def test_a_grid_that_was_given_stays_one_list(rng):
    X, y = regression(rng)
    model = bg.ElasticNetCV(alphas=[0.01, 0.1], l1_ratio=[0.5, 0.7]).fit(X, y)
    np.testing.assert_array_equal(model.alphas_, [0.1, 0.01])
    assert model.mse_path_.shape == (2, 2, 5)


@pytest.mark.parametrize("scoring", ["neg_log_loss", "neg_brier_score", "f1_macro", "accuracy"])
def test_scorers_know_classes_that_a_fold_lacks(rng, scoring):
    X = rng.normal(size=(90, 3))
    y = np.array(["a"] * 50 + ["b"] * 37 + ["c"] * 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scikit-learn's splitter: there are few c
        model = bg.LogisticRegressionCV(alphas=[0.01, 0.1], cv=StratifiedKFold(5), scoring=scoring).fit(X, y)
    assert np.all(np.isfinite(model.score_path_))


@pytest.mark.parametrize("scoring", ["f1", "precision", "neg_log_loss", "neg_brier_score", "roc_auc"])
def test_scorers_of_two_named_classes_take_the_second_as_positive(rng, scoring):
    X, y = labels(rng)
    named = bg.LogisticRegressionCV(alphas=[0.01], cv=3, scoring=scoring).fit(X, y)
    as_numbers = bg.LogisticRegressionCV(alphas=[0.01], cv=3, scoring=scoring).fit(X, (y == "yes").astype(int))
    np.testing.assert_allclose(named.score_path_, as_numbers.score_path_, rtol=1e-9)


def test_score_is_by_scoring(rng):
    X, y = labels(rng)
    model = bg.LogisticRegressionCV(n_alphas=5, scoring="neg_log_loss").fit(X, y)
    assert model.score(X, y) == pytest.approx(-log_loss(y, model.predict_proba(X)))
    weights = rng.random(len(y))
    expected = -log_loss(y, model.predict_proba(X), sample_weight=weights)
    assert model.score(X, y, sample_weight=weights) == pytest.approx(expected)
    assert model.set_params(scoring=None).score(X, y) == np.mean(model.predict(X) == y)
    X, y = regression(rng)
    model = bg.LassoCV(n_alphas=5, scoring="deviance").fit(X, y)
    assert model.score(X, y) == pytest.approx(-np.mean((y - model.predict(X)) ** 2))
    assert 0.5 < model.set_params(scoring=None).score(X, y) < 1


def test_folds_that_lack_a_class_are_named_with_the_way_out(rng):
    X = rng.normal(size=(60, 3))
    y = np.repeat(["a", "b"], [12, 48])
    message = r"the training rows of fold\(s\) 0 lack a class that the held-out rows hold.*StratifiedKFold"
    with pytest.warns(UserWarning, match=message):
        bg.LogisticRegressionCV(n_alphas=3, cv=KFold(5)).fit(X, y)
    y = np.repeat(["a", "b"], [18, 42])
    message = r"scoring='roc_auc' is not defined for the held-out rows of fold 0, which lack a class.*StratifiedKFold"
    with pytest.raises(ValueError, match=message):
        bg.LogisticRegressionCV(cv=KFold(5), scoring="roc_auc").fit(X, y)
    y = np.repeat(["a", "b", "c"], [20, 28, 12])
    with pytest.warns(
        UserWarning, match=r"the training rows of fold\(s\) 4 lack a class that the held-out rows hold"
    ):
        bg.LogisticRegressionCV(n_alphas=3, cv=KFold(5)).fit(X, y)


def test_a_scorer_that_gives_nan_is_blamed_itself(rng):
    X, y = regression(rng)
    with pytest.raises(ValueError, match=r"scoring=.* gives nan at every alpha, first in fold 0"):
        bg.LassoCV(n_alphas=3, scoring=make_scorer(lambda y, t: np.nan)).fit(X, y)
