"""Folds without a guard at every alpha: scores from the solver's own predictions, curves near exact ones."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

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
