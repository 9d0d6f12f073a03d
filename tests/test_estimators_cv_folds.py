"""Folds without a guard at every alpha: scores from the solver's own predictions, curves near exact ones."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold

import blockgreedy as bg
from blockgreedy.solvers.fold_engine import FoldEngine


def test_the_curve_is_near_that_of_folds_solved_tightly():
    """Without second steps it is 7e-4 off."""
    data = bg.data.text_like(2000, 3000, 30.0, seed=1)
    usual, tight = (
        bg.LogisticRegressionCV(fold_tol=tol, n_alphas=30, eps=0.1, cv=3).fit(data.X, data.y) for tol in (None, 1e-6)
    )
    curves = [model.cv_results_["mean_test_score"] for model in (usual, tight)]
    np.testing.assert_allclose(curves[0], curves[1], atol=3e-4 * abs(curves[1][0]), rtol=0)


def test_single_folds_take_as_many_steps_as_scores_need_where_alphas_are_far_from_each_other(rng):
    X = np.asfortranarray(rng.exponential(size=(4000, 30)))
    signal = X @ rng.normal(size=30)
    y = (signal - signal.mean()) / signal.std() + 0.5 * rng.normal(size=4000) > 1.5
    usual, tight = (
        bg.LogisticRegressionCV(fold_tol=tol, n_alphas=5, eps=0.1, cv=3).fit(X, y) for tol in (None, 1e-7)
    )
    curves = [model.cv_results_["mean_test_score"] for model in (usual, tight)]
    np.testing.assert_allclose(curves[0], curves[1], atol=2e-4 * abs(curves[1][0]), rtol=0)


def test_folds_whose_steps_run_out_say_so(rng):
    X = np.asfortranarray(rng.exponential(size=(4000, 30)))
    y = X @ rng.normal(size=30) > 0
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        bg.LogisticRegressionCV(n_alphas=5, eps=0.001, cv=3, max_iter=1).fit(X, y)


@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"offset": True}])
def test_scores_are_those_of_the_models_of_the_folds(rng, options):
    """The solver keeps predictions of held-out rows too, which are scored where that is possible."""
    data = bg.data.text_like(600, 2000, 40.0, seed=3)  # not so small that every point is evaluated again
    offset = rng.normal(size=600) if options.pop("offset", False) else None
    splits = list(KFold(3).split(data.X))
    model = bg.LassoCV(n_alphas=5, eps=0.05, cv=splits, fold_tol=1e-8, **options).fit(data.X, data.y, offset=offset)
    for k, (train, test) in enumerate(splits):
        for i, alpha in enumerate(model.alphas_):
            own = bg.Lasso(alpha=alpha, tol=1e-9, **options)
            own.fit(data.X[train], data.y[train], offset=None if offset is None else offset[train])
            prediction = own.predict(data.X[test]) + (0 if offset is None else offset[test])
            assert model.mse_path_[i, k] == pytest.approx(np.mean((data.y[test] - prediction) ** 2), rel=1e-4)


def test_folds_whose_predictions_drifted_are_solved_again_with_every_point_checked(monkeypatch):
    data = bg.data.text_like(600, 2000, 40.0, seed=3)
    usual = bg.LassoCV(n_alphas=10, fold_tol=1e-7).fit(data.X, data.y)
    seen = []
    monkeypatch.setattr(FoldEngine, "has_drifted", lambda engine: seen.append(1) or True)
    again = bg.LassoCV(n_alphas=10, fold_tol=1e-7).fit(data.X, data.y)
    assert len(seen) == 5
    np.testing.assert_allclose(again.score_path_, usual.score_path_, rtol=1e-4)


def test_an_engine_notices_that_its_predictions_are_not_those_of_its_weights():
    data = bg.data.text_like(600, 2000, 40.0, seed=3)
    problem = bg.Problem(data.X, data.y, alpha=1.0)
    problem = problem.with_alpha(0.1 * problem.alpha_max)
    engine = FoldEngine(problem, tol=1e-3, n_threads=1, null=problem.null_model, least_alpha=problem.alpha)
    engine.start()
    engine.step(1, 1.0)
    assert not engine.has_drifted()
    engine.coef[engine.core.support()[0]] *= 1.001
    assert engine.has_drifted()


@pytest.mark.parametrize("ratios", [1.0, [0.5, 1.0]])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_of_the_folds_are_kept_if_asked_for(rng, n_classes, ratios):
    X = rng.normal(size=(150, 6))
    y = np.digitize(X[:, 0] + rng.normal(size=150), np.linspace(-1, 1, n_classes + 1)[1:-1])
    options = {"alphas": [0.1, 0.03, 0.01], "cv": 4, "l1_ratio": ratios, "fold_tol": 1e-13}
    model = bg.LogisticRegressionCV(**options, store_coefs=True).fit(X, y)
    n_models, n_ratios = (1 if n_classes == 2 else 3), np.size(ratios)
    assert model.coefs_paths_.shape == (4, n_ratios, n_models)
    assert model.intercepts_paths_.shape == (4, n_ratios, n_models, 3)
    assert model.n_iter_path_.shape == model.score_path_.shape
    assert np.all(model.n_iter_path_ >= 0)
    assert np.sum(model.n_iter_path_) > 0
    for f, (train, _) in enumerate(StratifiedKFold(4).split(X, y)):
        for r, ratio in enumerate(np.atleast_1d(ratios)):
            for i, alpha in enumerate(model.alphas_):
                single = bg.LogisticRegression(alpha=alpha, l1_ratio=ratio).fit(X[train], y[train])
                found = [model.coefs_paths_[f, r, k][[i]].toarray()[0] for k in range(n_models)]
                np.testing.assert_allclose(found, single.coef_, atol=1e-5)
                np.testing.assert_allclose(model.intercepts_paths_[f, r, :, i], single.intercept_, atol=1e-5)
    assert not hasattr(bg.LogisticRegressionCV(**options).fit(X, y), "coefs_paths_")
    with pytest.raises((TypeError, ValueError), match="store_coefs"):
        bg.LogisticRegressionCV(**options, store_coefs="yes").fit(X, y)
