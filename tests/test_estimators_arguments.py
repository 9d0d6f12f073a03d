"""Arguments of the estimators as users of scikit-learn write them, and what is said of wrong ones."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn.linear_model as sk
from sklearn.exceptions import ConvergenceWarning

import blockgreedy as bg
from conftest import random_design


def regression(rng):
    X = random_design(rng, 80, 20)
    return X, X @ np.r_[np.ones(5), np.zeros(15)] + rng.normal(size=80)


def test_alphas_may_be_their_number(rng):
    X, y = regression(rng)
    mine = bg.LassoCV(alphas=7, eps=0.01).fit(X, y)
    grid = np.max(np.abs((y - y.mean()) @ X)) / len(y) * np.geomspace(1, 0.01, 7)
    np.testing.assert_allclose(mine.alphas_, grid, rtol=1e-10)
    with pytest.raises(ValueError, match="alphas=0 must be a whole number of at least 1"):
        bg.LassoCV(alphas=0).fit(X, y)


def test_n_jobs_of_minus_one_means_all_threads(rng):
    X, y = regression(rng)
    all_jobs, one_job = (bg.LassoCV(n_alphas=5, n_jobs=n).fit(X, y) for n in (-1, 1))
    np.testing.assert_array_equal(all_jobs.score_path_, one_job.score_path_)
    with pytest.raises(ValueError, match="n_jobs=-2 must be a whole number of at least 1"):
        bg.LassoCV(n_jobs=-2).fit(X, y)


@pytest.mark.parametrize("shape", [(), (80,), (80, 1), (80, 2)])
def test_offset_is_taken_off_each_target(rng, shape):
    X, y = regression(rng)
    targets = np.column_stack([y, -2 * y])
    offset = rng.normal(size=shape)
    mine = bg.Lasso(alpha=0.05).fit(X, targets, offset=offset)
    shift = offset.reshape(-1, 1) if np.ndim(offset) == 1 else offset
    theirs = sk.Lasso(alpha=0.05, tol=1e-12, max_iter=50_000).fit(X, targets - shift)
    np.testing.assert_allclose(mine.coef_, theirs.coef_, atol=1e-7)
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, atol=1e-7)


@pytest.mark.parametrize("shape", [(3,), (80, 3), (1, 80)])
def test_offset_of_another_shape_is_named(rng, shape):
    X, y = regression(rng)
    message = rf"offset has shape \({', '.join(map(str, shape))},?\), expected that of y: \(80,\)"
    with pytest.raises(ValueError, match=message):
        bg.Lasso().fit(X, y, offset=np.zeros(shape))


def test_messages_name_classes_as_they_were_given(rng):
    X, _ = regression(rng)
    with pytest.raises(ValueError, match=r"y holds 1 class only \('a'\)"):
        bg.LogisticRegression().fit(X, np.full(80, "a"))
    with pytest.raises(ValueError, match=r"names \{'z'\}, which y does not hold; its classes are \['a', 'b'\]"):
        bg.LogisticRegression(class_weight={"z": 1.0}).fit(X, np.resize(["a", "b"], 80))


@pytest.mark.parametrize("estimator", [bg.Lasso(alpha=1e-4, max_iter=1), bg.LassoCV(n_alphas=5, max_iter=1)])
def test_warnings_name_the_users_line_and_tol(rng, estimator):
    X, y = regression(rng)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.set_params(tol=3e-8).fit(X, y)
    assert {Path(w.filename) for w in caught if w.category is ConvergenceWarning} == {Path(__file__)}
    assert "asked for 3e-08;" in str(caught[-1].message)


@pytest.mark.parametrize("kind", [bg.LassoCV, bg.ElasticNetCV])
def test_folds_of_small_data_that_reach_tol_do_not_warn(rng, kind):
    """Small data are held to a finer tol, which one iteration does not reach."""
    X = rng.normal(size=(300, 40))
    y = X[:, 0] + rng.normal(size=300)
    once = bg.solve_path(bg.Problem(X, y, alpha=1.0, fit_intercept=True), n_alphas=20, tol=1e-8, max_iter=1)
    assert "max_iter" in once.statuses
    assert np.max(once.gaps) <= 0.5 * once.null_loss
    kind(n_alphas=20, tol=0.5, max_iter=1).fit(X, y)  # warnings are errors in this suite
