"""Folds on sparse data are solved side by side: curves near exact ones, the same choice, and a way back."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import blockgreedy as bg
from blockgreedy.base.deadline import NEVER
from blockgreedy.estimators import fold_groups
from blockgreedy.solvers import fold_group
from blockgreedy.solvers.fold_group import FoldGroup, may_group


@pytest.fixture(scope="module")
def text():
    return bg.data.text_like(1200, 2500, 50.0, seed=2)  # not so small that every point is evaluated again


@pytest.fixture(autouse=True)
def _few_rows_are_enough(monkeypatch):
    monkeypatch.setattr(fold_group, "_LEAST_ROWS", 1000)


@pytest.fixture
def walks(monkeypatch):
    """The groups that were walked: how many folds each had, and whether its points could be trusted."""
    seen, own = [], fold_groups._walk
    monkeypatch.setattr(
        fold_groups, "_walk", lambda paths, *more: (seen.append((len(paths), own(paths, *more))), seen[-1][1])[1]
    )
    return seen


def fit(make, X, y, fold_tol=None, sample_weight=None, **options):
    return make(n_alphas=40, eps=0.05, fold_tol=fold_tol, **options).fit(X, y, sample_weight=sample_weight)


@pytest.mark.parametrize(
    ("make", "options", "n_groups"),
    [
        (bg.LassoCV, {}, 1),
        (bg.LassoCV, {"standardize": True, "fit_intercept": False}, 1),
        (bg.LassoCV, {"cv": 10}, 2),
        (bg.ElasticNetCV, {"l1_ratio": [0.5, 0.9]}, 2),
        (bg.LogisticRegressionCV, {}, 1),
        (bg.LogisticRegressionCV, {"class_weight": "balanced"}, 1),
        (bg.LogisticRegressionCV, {"several": True}, 3),
    ],
)
def test_curves_and_choice_are_those_of_folds_solved_tightly_by_themselves(text, walks, make, options, n_groups, rng):
    y = text.y
    if options.pop("several", False):
        score = text.X @ rng.normal(size=text.X.shape[1])
        y = np.digitize(score, np.quantile(score, [0.3, 0.6]))
    weights = rng.uniform(0.5, 2.0, len(y))
    usual = fit(make, text.X, y, sample_weight=weights, **options)
    assert len(walks) == n_groups
    assert all(trusted for _, trusted in walks)
    tight = fit(make, text.X, y, 1e-7, weights, **options)
    assert len(walks) == n_groups  # not for folds that are to be exact
    curves = [model.cv_results_["mean_test_score"] for model in (usual, tight)]
    np.testing.assert_allclose(curves[0], curves[1], atol=1e-3 * abs(curves[1][0]), rtol=0)
    assert usual.alpha_ == tight.alpha_
    assert usual.status_ == "converged"
    assert usual.coef_ == pytest.approx(tight.coef_, abs=0.05 * float(np.max(np.abs(tight.coef_))))


@pytest.mark.threads
def test_bits_are_the_same_for_any_number_of_threads(text):
    one, other = (fit(bg.LogisticRegressionCV, text.X, text.y, n_threads=k) for k in (1, 3))
    assert np.array_equal(one.score_path_, other.score_path_)
    assert np.array_equal(one.coef_, other.coef_)


def test_the_last_fit_starts_where_the_fit_of_all_rows_came_along(text, monkeypatch):
    seen = []
    own = bg.LassoCV._solve_all

    def solve_all(self, problems, names, max_seconds=None, starts=None):
        seen.append((problems[0], starts))
        return own(self, problems, names, max_seconds, starts)

    monkeypatch.setattr(bg.LassoCV, "_solve_all", solve_all)
    model = fit(bg.LassoCV, text.X, text.y)
    [(problem, [(coef, intercept)])] = seen
    assert problem.objective(coef, intercept) <= problem.objective(model.coef_, model.intercept_) * (1 + 1e-4)


def test_a_group_whose_predictions_drifted_is_solved_by_itself(text, monkeypatch, walks):
    monkeypatch.setattr(FoldGroup, "has_drifted", lambda group: True)
    drifted = fit(bg.LassoCV, text.X, text.y)
    assert walks == [(5, False)]
    monkeypatch.setattr(fold_groups, "may_group", lambda problems: False)
    alone = fit(bg.LassoCV, text.X, text.y)
    assert np.array_equal(drifted.score_path_, alone.score_path_)
    assert not np.any(np.isnan(drifted.score_path_))


def test_columns_that_float32_cannot_hold_send_folds_back_to_themselves(text, walks):
    X = sp.csc_array(text.X, dtype=np.float64)
    X.data[X.indptr[3] : X.indptr[4]] *= 1e-15
    model = fit(bg.LassoCV, X, text.y)
    assert not any(trusted for _, trusted in walks)
    assert np.all(np.isfinite(model.score_path_))


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_group_goes_back_to_an_alpha_and_knows_it_better(text, loss):
    problem = bg.Problem(text.X, text.y, loss=loss, fit_intercept=True, alpha=1.0)
    held_out = np.arange(len(text.y)) % 2 == 0
    folds = [problem.with_sample_weight(mask.astype(float)) for mask in (held_out, ~held_out)]
    alphas = problem.alpha_max * np.geomspace(1, 0.02, 12)
    group = FoldGroup(folds, alphas, 1.0, n_threads=1, deadline=NEVER)
    points = [group.to(i) for i in range(len(alphas))]
    for at in (5, 10, 2):
        found = group.again(at, points[at], 1e-2, 5e-7)
        for k, (fold, point, old) in enumerate(zip(folds, found, points[at], strict=True)):
            own = fold.with_alpha(alphas[at])
            best, coef = bg.solve(own, tol=1e-9), np.zeros(own.n_features)
            coef[point.features] = point.values
            assert point.status == "converged"
            assert point.alpha == alphas[at]
            assert own.objective(coef, point.intercept) == pytest.approx(point.objective, rel=1e-6)
            assert point.objective <= old.objective + 1e-9
            assert point.objective - best.objective <= 2e-6 * own.null_model.objective
            assert group.predictions(k) == pytest.approx(text.X @ coef + point.intercept, abs=1e-4)
    with pytest.raises(RuntimeError, match="has ended"):
        group.core.move_to(alphas[-1], 0.0, alphas[-1])


def test_alphas_that_decide_are_solved_again_side_by_side(text, monkeypatch):
    seen, alone, own = [], [], FoldGroup.again
    monkeypatch.setattr(FoldGroup, "again", lambda group, i, *more: (seen.append(i), own(group, i, *more))[1])
    monkeypatch.setattr(fold_groups.FoldPath, "solve_again", lambda path, at, advance: alone.append(at))
    model = fit(bg.LassoCV, text.X, text.y)
    assert model.alpha_ in model.alphas_[seen]
    assert all(effort.finest_step < fold_groups.FIRST_STEP for at in alone for _, effort in at)


def test_steps_that_do_not_suffice_send_an_alpha_back_to_its_folds(text, monkeypatch):
    monkeypatch.setattr(fold_group, "_MOST_AGAIN", 0)
    alone, own = [], fold_groups.FoldPath.solve_again
    monkeypatch.setattr(
        fold_groups.FoldPath, "solve_again", lambda path, at, advance: (alone.append(at), own(path, at, advance))[1]
    )
    model = fit(bg.LassoCV, text.X, text.y)
    assert len(alone) >= 5
    tight = fit(bg.LassoCV, text.X, text.y, 1e-7)
    assert model.alpha_ == tight.alpha_


@pytest.mark.parametrize(("seed", "estimator", "eps"), [(0, "LassoCV", 0.003), (1, "LogisticRegressionCV", 0.003)])
def test_alphas_far_from_each_other_get_as_many_steps_as_their_scores_need(walks, seed, estimator, eps):
    rng = np.random.default_rng(seed)
    X = sp.random_array((1500, 60), density=0.9, format="csr", rng=rng)
    signal = X @ (rng.normal(size=60) * (rng.random(60) < 0.3))
    y = (signal - signal.mean()) / signal.std() + 0.5 * rng.normal(size=1500)
    y = y if estimator == "LassoCV" else (y > 1).astype(int)
    usual, tight = (getattr(bg, estimator)(n_alphas=4, eps=eps, cv=3, fold_tol=tol).fit(X, y) for tol in (None, 1e-7))
    assert walks == [(3, True)]
    curves = [model.cv_results_["mean_test_score"] for model in (usual, tight)]
    np.testing.assert_allclose(curves[0], curves[1], atol=1e-3 * abs(curves[1][0]), rtol=0)


def test_alphas_that_a_group_does_not_get_right_are_solved_by_their_folds(text, monkeypatch):
    monkeypatch.setattr(fold_group, "_MOST_STEPS", 1)
    again, own = [], fold_groups.FoldPath.solve_again
    monkeypatch.setattr(
        fold_groups.FoldPath, "solve_again", lambda path, at, advance: (again.append(at), own(path, at, advance))[1]
    )
    usual, tight = (bg.LassoCV(n_alphas=4, eps=0.02, cv=3, fold_tol=tol).fit(text.X, text.y) for tol in (None, 1e-7))
    assert len(again) >= 3
    curves = [model.cv_results_["mean_test_score"] for model in (usual, tight)]
    np.testing.assert_allclose(curves[0], curves[1], atol=1e-3 * abs(curves[1][0]), rtol=0)


def test_the_gap_of_weights_that_are_all_zero_is_not_zero(text):
    problem = bg.Problem(text.X, text.y, loss="squared", alpha=1.0)
    folds = [problem.with_sample_weight((np.arange(len(text.y)) % 2 == k).astype(float)) for k in range(2)]
    alphas = 0.2 * problem.alpha_max * np.ones(1)
    group = FoldGroup(folds, alphas, 1.0, n_threads=1, deadline=NEVER)
    assert not group.core.move_to(alphas[0], 0.0, alphas[0])
    for k, fold in enumerate(folds):
        best = bg.solve(fold.with_alpha(alphas[0]), tol=1e-8)
        assert group.core.gap(k) >= group.core.objective(k) - best.objective > 0


def test_logistic_folds_of_few_sparse_rows_are_solved_to_tol(text, monkeypatch):
    monkeypatch.setattr(fold_group, "_LEAST_ROWS", 5000)
    usual, tight = (bg.LogisticRegressionCV(fold_tol=tol).fit(text.X, text.y) for tol in (None, 1e-8))
    curves = [model.cv_results_["mean_test_score"] for model in (usual, tight)]
    np.testing.assert_allclose(curves[0], curves[1], atol=1e-3 * abs(curves[1][0]), rtol=0)


def test_copies_of_columns_get_no_weight(text):
    X = sp.csc_array(sp.hstack([text.X, 2 * text.X[:, :400], text.X[:, :400]]))
    problem = bg.Problem(X, text.y, loss="logistic", fit_intercept=True, alpha=1.0)
    held_out = np.arange(len(text.y)) % 2 == 0
    folds = [problem.with_sample_weight(mask.astype(float)) for mask in (held_out, ~held_out)]
    alphas = problem.alpha_max * np.geomspace(1, 0.02, 20)
    group = FoldGroup(folds, alphas, 1.0, n_threads=1, deadline=NEVER)
    points = [group.to(i) for i in range(len(alphas))][-1]
    for fold, point in zip(folds, points, strict=True):
        own = np.bincount(_original(point.features, 2500, 400))
        assert np.max(own) == 1
        best = bg.solve(fold.with_alpha(alphas[-1]), tol=1e-8)
        assert point.objective <= best.objective * (1 + 1e-4)


def _original(features, n_columns, n_copies):
    """The number of the column that each is a multiple of."""
    copies = features >= n_columns
    return np.where(copies, (features - n_columns) % n_copies, features)


def test_problems_that_are_not_usual_are_not_grouped(text):
    problem = bg.Problem(text.X, text.y, loss="logistic", fit_intercept=True, alpha=1.0)
    assert may_group([problem, problem])
    assert not may_group([problem])
    few = bg.Problem(text.X[:900], text.y[:900], loss="logistic", alpha=1.0)
    assert not may_group([few, few])
    dense = bg.Problem(np.asfortranarray(text.X.toarray()), text.y, loss="logistic", alpha=1.0)
    assert not may_group([dense, dense])
    bounded = bg.Problem(text.X, text.y, loss="logistic", alpha=1.0, positive=True)
    assert not may_group([bounded, bounded])
    shifted = bg.Problem(text.X, text.y, loss="logistic", alpha=1.0, offset=np.ones(len(text.y)))
    assert not may_group([shifted, shifted])


def test_time_that_is_up_ends_a_group_at_its_alpha(text):
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        model = bg.LassoCV(n_alphas=400, eps=1e-4, max_seconds=0.02).fit(text.X, text.y)
    known = np.isfinite(model.score_path_)
    assert 0 < np.sum(known) < known.size
    assert np.array_equal(np.sum(known, axis=0), np.full(5, np.sum(known[:, 0])))


def test_the_core_refuses_misuse(text):
    from blockgreedy import _core
    from blockgreedy.problem.core_problem import CoreProblem

    problem = bg.Problem(text.X, text.y, loss="logistic", alpha=1.0)
    model = CoreProblem(problem, 1)
    with pytest.raises(ValueError, match="1 to 8"):
        _core.FoldPaths([model.core] * 9, [1.0] * 9)
    paths = _core.FoldPaths([model.core], [1.0])
    with pytest.raises(RuntimeError, match="start first"):
        paths.move_to(0.5, 0.0, 0.5)
    with pytest.raises(RuntimeError, match="move_to"):
        paths.step(1e-6)
    with pytest.raises(ValueError, match="no such fold"):
        paths.gap(1)
    with pytest.raises(ValueError, match="features"):
        paths.start(0, np.zeros(text.X.shape[1]), np.array([text.X.shape[1]], dtype=np.int32), 0.0)
