"""Scorers that look at rows of X and at the model, and metadata routing of the models that choose alpha."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.metrics import accuracy_score, get_scorer, make_scorer
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import blockgreedy as bg

ALPHAS = [0.1, 0.03, 0.003]


@pytest.fixture
def data(rng):
    X = rng.normal(size=(200, 6))
    X[:, 0] = np.arange(200) % 2  # a group
    return X, X[:, 1] - X[:, 2] + X[:, 0] + rng.normal(size=200)


def worst_group(model, X, y):
    column = X[:, [0]].toarray()[:, 0] if sp.issparse(X) else X[:, 0]
    return min(model.score(X[column == g], y[column == g]) for g in (0, 1))


def fewest_features(model, X, y):
    return -float(np.count_nonzero(model.coef_)) - X.shape[1] / 1000 - abs(float(np.sum(model.intercept_)))


@pytest.mark.parametrize("scorer", [worst_group, fewest_features])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csc_array])
@pytest.mark.parametrize("name", ["LassoCV", "ElasticNetCV", "LogisticRegressionCV", "three classes"])
def test_scorers_get_rows_of_x_and_a_fitted_model(data, scorer, kind, name):
    X, y = data
    if name == "three classes":
        y = np.digitize(y, [-0.5, 0.8])
    elif name == "LogisticRegressionCV":
        y = np.where(y > 0, "yes", "no")
    made = {"LassoCV": bg.LassoCV, "ElasticNetCV": bg.ElasticNetCV}.get(name, bg.LogisticRegressionCV)
    one = {"LassoCV": bg.Lasso, "ElasticNetCV": bg.ElasticNet}.get(name, bg.LogisticRegression)
    cv = KFold(4) if one in (bg.Lasso, bg.ElasticNet) else StratifiedKFold(4)
    X = kind(X)
    found = made(alphas=ALPHAS, cv=cv, scoring=scorer).fit(X, y)
    expected = [cross_val_score(one(alpha=alpha), X, y, cv=cv, scoring=scorer) for alpha in ALPHAS]
    atol = 1e-4  # folds are solved to relative gaps of 1e-8, which tell weights to the root of that
    np.testing.assert_allclose(found.score_path_, expected, atol=atol)
    whole = one(alpha=found.alpha_).fit(X, y)
    assert found.score(X, y) == pytest.approx(scorer(whole, X, y), abs=atol)


def test_scorers_of_rows_get_sample_weights_where_they_take_them(data):
    X, y = data
    weights, seen = np.where(np.arange(200) % 4 == 0, 0.0, 1.0 + np.arange(200) % 3), []

    def scorer(model, X, y, sample_weight=None):
        seen.append((len(y), sample_weight))
        return model.score(X, y, sample_weight=sample_weight)

    found = bg.LassoCV(alphas=ALPHAS, cv=4, scoring=scorer).fit(X, y, sample_weight=weights)
    same = bg.LassoCV(alphas=ALPHAS, cv=4, scoring="r2").fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(found.score_path_, same.score_path_, atol=1e-8)
    assert all(len(weights) == n and np.all(weights > 0) for n, weights in seen)
    assert found.score(X, y, sample_weight=weights) == pytest.approx(same.score(X, y, sample_weight=weights))


def test_a_scorer_of_rows_must_return_a_number(data):
    X, y = data
    with pytest.raises(ValueError, match=r"returned \{'a': 1\}; it must return a number"):
        bg.LassoCV(alphas=ALPHAS, cv=3, scoring=lambda model, X, y: {"a": 1}).fit(X, y)


def test_a_scorer_of_rows_is_refused_with_an_offset(data):
    X, y = data
    with pytest.raises(ValueError, match="whose predictions know no offset; with an offset use 'deviance'"):
        bg.LassoCV(alphas=ALPHAS, cv=3, scoring=worst_group).fit(X, y, offset=np.ones(len(y)))


def requesting(name, wanted):
    return get_scorer(name).set_score_request(sample_weight=wanted)


@pytest.mark.parametrize("name", ["accuracy", "r2"])
def test_scores_are_weighted_if_the_scorer_asks_for_weights(data, name):
    X, y = data
    made, y = (bg.LassoCV, y) if name == "r2" else (bg.LogisticRegressionCV, y > 0)
    one = bg.Lasso if name == "r2" else bg.LogisticRegression
    weights = np.where(np.arange(200) < 100, 3.0, 1.0)
    weights[::10] = 0
    cv = KFold(5, shuffle=True, random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        for wanted in (False, True):
            model = made(alphas=ALPHAS, cv=cv, scoring=requesting(name, wanted)).fit(X, y, sample_weight=weights)
            single = [one(alpha=alpha).set_fit_request(sample_weight=True) for alpha in ALPHAS]
            params = {"params": {"sample_weight": weights}, "scoring": requesting(name, wanted), "cv": cv}
            expected = [cross_val_score(estimator, X, y, **params) for estimator in single]
            np.testing.assert_allclose(model.score_path_, expected, atol=1e-7)
            if wanted:
                scored = get_scorer(name)(model, X, y, sample_weight=weights)
                assert model.score(X, y, sample_weight=weights) == pytest.approx(scored)
            else:
                with pytest.raises(TypeError, match=r"unexpected argument\(s\) \{'sample_weight'\}"):
                    model.score(X, y, sample_weight=weights)
        with pytest.raises(UnsetMetadataPassedError, match="not explicitly set as requested or not requested"):
            made(alphas=ALPHAS, cv=cv, scoring=name).fit(X, y, sample_weight=weights)
        deviance = made(alphas=ALPHAS, cv=cv).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(
        deviance.score_path_, made(alphas=ALPHAS, cv=cv).fit(X, y, sample_weight=weights).score_path_
    )


@pytest.mark.parametrize("made", [bg.LassoCV, bg.ElasticNetCV, bg.LogisticRegressionCV])
def test_groups_reach_the_splitter_through_a_pipeline(data, made):
    X, y = data
    y = y > 0 if made is bg.LogisticRegressionCV else y
    groups = np.arange(200) % 9
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), made(alphas=ALPHAS, cv=GroupKFold(3))).fit(X, y, groups=groups)
        with pytest.raises(TypeError, match=r"unexpected argument\(s\) \{'groups'\}"):
            made(alphas=ALPHAS, cv=3).fit(X, y, groups=groups)
    expected = made(alphas=ALPHAS, cv=GroupKFold(3)).fit(StandardScaler().fit_transform(X), y, groups=groups)
    np.testing.assert_array_equal(pipeline[-1].score_path_, expected.score_path_)


class Halves:
    """A splitter that knows nothing of metadata routing."""

    def split(self, X, y=None, groups=None):
        rows = np.arange(X.shape[0])
        yield rows[groups < np.median(groups)], rows[groups >= np.median(groups)]

    def get_n_splits(self, X=None, y=None, groups=None):
        return 1


def test_groups_reach_a_splitter_without_requests_if_the_fit_asks_for_them(data):
    X, y = data
    groups = np.random.default_rng(1).permutation(200)
    expected = bg.LassoCV(alphas=ALPHAS, cv=Halves()).fit(X, y, groups=groups).score_path_
    with sklearn.config_context(enable_metadata_routing=True):
        model = bg.LassoCV(alphas=ALPHAS, cv=Halves()).set_fit_request(groups=True)
        found = make_pipeline(model).fit(X, y, groups=groups)[-1].score_path_
    np.testing.assert_array_equal(found, expected)


def test_outer_groups_do_not_reach_inner_folds_that_do_not_ask_for_them(data):
    X, y = data
    with sklearn.config_context(enable_metadata_routing=True):
        params = {"groups": np.arange(200) % 9}
        scores = cross_val_score(bg.LassoCV(alphas=ALPHAS, cv=3), X, y, cv=GroupKFold(3), params=params)
    assert np.all(np.isfinite(scores))


def test_scorers_get_what_they_ask_for_cut_to_the_rows_held_out(data):
    X, y = data

    def by_price(truth, predicted, price):
        assert len(price) == len(truth)
        return accuracy_score(truth, predicted, sample_weight=price)

    price = np.linspace(1, 3, 200)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = make_scorer(by_price).set_score_request(price=True)
        model = bg.LogisticRegressionCV(alphas=ALPHAS, cv=4, scoring=scorer).fit(X, y > 0, price=price)
        expected = [
            cross_val_score(bg.LogisticRegression(alpha=a), X, y > 0, cv=4, scoring=scorer, params={"price": price})
            for a in ALPHAS
        ]
        assert model.score(X, y > 0, price=price) == by_price(y > 0, model.predict(X), price)
    np.testing.assert_allclose(model.score_path_, expected, atol=1e-7)


def test_other_arguments_need_metadata_routing(data):
    X, y = data
    with pytest.raises(ValueError, match="only supported if enable_metadata_routing=True"):
        bg.LassoCV(alphas=ALPHAS, cv=3).fit(X, y, price=y)


def test_pairs_of_rows_may_be_an_iterator_where_routing_is_on(data):
    X, y = data
    with sklearn.config_context(enable_metadata_routing=True):
        model = bg.LassoCV(alphas=ALPHAS, cv=KFold(3).split(X)).fit(X, y, sample_weight=np.ones(200))
    assert model.score_path_.shape == (3, 3)
