"""Models in files: everything comes back, anyone can read them, and they predict what the estimators predict."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.models.model import Model


def test_support_counts_rows_of_weight_in_which_a_feature_is_not_0():
    X = np.array([[1.0, 0, 2], [0, 0, 3], [4, 5, 6], [7, 0, 0]])
    stored_zeros = sp.csc_array(X)
    stored_zeros.data[0] = 0
    y = np.array([1.0, 2, 3, 4])
    for matrix, weights, expected in (
        (X, None, [3, 1, 3]),
        (sp.csr_array(X), None, [3, 1, 3]),
        (stored_zeros, None, [2, 1, 3]),
        (X, [1, 2, 0, 1], [2, 0, 2]),
        (sp.csc_array(X), [1, 2, 0, 1], [2, 0, 2]),
    ):
        problem = bg.Problem(matrix, y, alpha=0.1, sample_weight=weights)
        assert Model.of_solution(problem, bg.solve(problem)).support.tolist() == expected


def test_a_path_is_read_at_the_choice_of_a_criterion(named_problem, named_data):
    path = bg.solve_path(named_problem, n_alphas=20)
    model = Model.of_path(path, named_data)
    for name in ("aic", "bic", "ebic"):
        k = int(np.argmin(getattr(path, name)()))
        assert path.recommended(name) == k
        chosen = model.at(name)
        assert chosen.alphas.tolist() == [path.alphas[k]]
        assert chosen.criteria[name].tolist() == [model.criteria[name][k]]
        assert chosen.at(name).alphas[0] == chosen.alphas[0]
    assert model.at("ebic").nonzeros[0] < model.at("aic").nonzeros[0]
    with pytest.raises(ValueError, match="alpha='cp' is not known; use one of 'aic', 'bic', 'ebic'"):
        model.at("cp")
    with pytest.raises(ValueError, match="criterion='cp' is not known"):
        path.recommended("cp")


def test_no_criterion_chooses_a_model_that_fits_every_row():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 400))
    y = X[:, :3] @ [3.0, -2, 2] + 0.5 * rng.normal(size=50)
    path = bg.solve_path(bg.Problem(X, y, alpha=0.0, fit_intercept=True))
    assert np.argmin(path.bic()) == len(path) - 1  # as residuals vanish
    k = path.recommended("bic")
    assert 3 <= path.nonzeros[k] <= 25
    model = Model.of_path(path)
    assert model.at("bic").alphas[0] == path.alphas[k]
    assert np.array_equal(np.isnan(model.criteria["aic"]), path.degrees_of_freedom > 25)


def test_losses_without_a_likelihood_have_no_criteria(named_data):
    problem = bg.Problem(named_data.X, named_data.y, loss="squared_hinge", alpha=0.0)
    path = bg.solve_path(problem, n_alphas=3)
    assert Model.of_path(path).criteria is None
    with pytest.raises(ValueError, match="loss='squared_hinge' belongs to no likelihood"):
        path.recommended("bic")


def test_settings_tell_when_with_what_and_on_which_kind_of_machine(fitted_model):
    date = datetime.fromisoformat(fitted_model.settings["date"])
    assert date.tzinfo is not None
    assert set(fitted_model.settings["versions"]) == {"python", "blockgreedy", "numpy", "scipy"}
    assert fitted_model.settings["versions"]["blockgreedy"] == bg.__version__
    assert set(fitted_model.settings["machine"]) == {"cpu", "cores"}
    assert fitted_model.settings["command"] == "blockgreedy fit"


def test_it_predicts_what_the_estimator_predicts(fitted_model, named_problem, named_data):
    estimator = bg.LogisticRegression(alpha=named_problem.alpha, tol=1e-6).fit(named_data.X, named_data.y)
    assert np.allclose(fitted_model.predict_proba(named_data.X), estimator.predict_proba(named_data.X), atol=1e-4)
    assert fitted_model.predict(named_data.X).tolist() == estimator.predict(named_data.X).tolist()
    dense = fitted_model.predict_proba(named_data.X.toarray())
    assert np.allclose(dense, fitted_model.predict_proba(named_data.X))


def test_text_classes_and_regression(tmp_path, named_data):
    words = np.where(named_data.y > 0, "spam", "ham")
    problem = bg.Problem(named_data.X, words, loss="squared_hinge", alpha=0.01)
    model = Model.of_solution(problem, bg.solve(problem))
    model.save(tmp_path / "m.npz")
    again = Model.load(tmp_path / "m.npz")
    assert set(again.predict(named_data.X)) <= {"ham", "spam"}
    assert np.mean(again.predict(named_data.X) == words) > 0.8
    with pytest.raises(ValueError, match="loss='squared_hinge' gives no probabilities"):
        again.predict_proba(named_data.X)
    squared = bg.Problem(named_data.X, named_data.y.astype(float), loss="squared", alpha=0.01)
    solution = bg.solve(squared)
    predicted = Model.of_solution(squared, solution).predict(named_data.X)
    assert np.allclose(predicted, named_data.X @ solution.coef)


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (
            lambda p: p.with_alpha(0.02),
            r"solution is of alpha=0.02, and the problem has alpha=0.01; give the problem",
        ),
        (lambda p: p.with_alpha(0.01, 0.5), r"solution is of l2=0.5, and the problem has l2=0;"),
        (
            lambda p: p.with_sample_weight(np.arange(1.0, 1 + p.n_samples)),
            "solution is of another problem: its null model",
        ),
        (lambda p: bg.Problem(p.X, 2 * p.y, alpha=0.01, fit_intercept=True), "solution is of another problem"),
        (lambda p: p.with_features(np.arange(3), 0.01), "solution has 3 weights, and the problem 12 features"),
    ],
)
def test_a_solution_of_another_problem_makes_no_model(rng, other, sentence):
    X = rng.normal(size=(60, 12))
    problem = bg.Problem(X, X[:, 0] ** 2 + X[:, 1], alpha=0.01, fit_intercept=True)
    with pytest.raises(ValueError, match=sentence):
        Model.of_solution(problem, bg.solve(other(problem)))
    there = other(problem)
    assert Model.of_solution(there, bg.solve(there)).gaps[0] >= 0
    assert Model.of_solution(there, bg.solve(there, "thread-greedy", max_iter=50)).gaps[0] >= 0


def test_a_path_wants_an_alpha(path_model, named_data):
    with pytest.raises(ValueError, match=r"this model has 7 alphas; choose one with at\(alpha\)"):
        path_model.predict(named_data.X)
    for k, alpha in enumerate(path_model.alphas):
        one = path_model.at(alpha * 1.01)
        assert one.alphas.tolist() == [alpha]
        assert np.array_equal(one.coef, path_model.coefs[:, [k]].toarray()[:, 0])
        assert one.intercept == path_model.intercepts[k]
    with pytest.raises(ValueError, match="alpha=0 must be above 0"):
        path_model.at(0)


def test_top_features_are_named(fitted_model, named_data):
    top = fitted_model.top(5)
    order = np.argsort(-np.abs(fitted_model.coef))[:5]
    assert [name for name, _ in top] == named_data.feature_names[order].tolist()
    assert [weight for _, weight in top] == fitted_model.coef[order].tolist()


def test_shapes_are_checked(fitted_model):
    with pytest.raises(ValueError, match=r"X has shape \(2, 3\), expected two dimensions with 600 columns"):
        fitted_model.predict(sp.csr_array((2, 3)))


def test_rows_without_a_number_have_no_prediction(fitted_model, named_data):
    X = named_data.X.astype(np.float64).copy()
    X.data[X.indptr[3]] = np.nan
    with pytest.raises(ValueError, match="X holds NaN or infinite values: row 4 has no prediction"):
        fitted_model.predict(X)
