"""The last digits of small models: those of the core are those of the search in NumPy, and proven as before."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.problem.core_problem import CoreProblem
from blockgreedy.solvers.polish import polish, polished


def _made(rng, **options):
    X = rng.normal(size=(120, 12))
    y = 3 * X[:, 0] - 2 * X[:, 1] + X[:, 2] + rng.normal(size=120)
    if options.get("loss") == "logistic":
        y = np.where(y > 0, 1.0, -1.0)
    problem = bg.Problem(X, y, alpha=1.0, fit_intercept=True, **options)
    return problem.with_alpha(0.1 * problem.alpha_max)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("more", [{}, {"l2": 0.01}, {"weights": True}, {"positive": True}, {"sparse": True}])
def test_the_core_settles_where_the_search_in_numpy_ends(rng, loss, more):
    options = {name: value for name, value in more.items() if name in ("l2", "positive")}
    if "weights" in more:
        options |= {"sample_weight": rng.uniform(0.1, 2.0, 120), "penalty_weights": rng.uniform(0.5, 2.0, 12)}
    problem = _made(rng, loss=loss, **options)
    if "sparse" in more:
        problem = bg.Problem(sp.csc_array(problem.X), problem.y, loss=loss, alpha=problem.alpha, fit_intercept=True)
    rough = bg.solve(problem, tol=1e-7)
    found = CoreProblem(problem, 1).settled(rough.coef, rough.intercept)
    assert found is not None
    w, b = polish(problem, rough.coef, rough.intercept)
    np.testing.assert_allclose(found[0], w, rtol=1e-11, atol=1e-13)
    assert found[1] == pytest.approx(b, rel=1e-10, abs=1e-13)
    assert found[2] == pytest.approx(problem.objective(*found[:2]), rel=1e-14)
    assert problem.kkt_residual(*found[:2]) < 1e-14


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_a_polished_gap_is_what_its_weights_and_its_dual_point_show(rng, shift):
    problem = _made(rng)
    problem = problem.with_targets(1e5 * problem.y + shift).with_alpha(1e5 * problem.alpha)
    rough = bg.solve(problem, tol=1e-5)
    fine = polished(problem, rough)
    assert fine.gap <= rough.gap
    assert fine.objective < rough.objective
    objective, gap = problem.objective_and_gap(fine.coef, fine.intercept, fine.dual)
    assert fine.objective == pytest.approx(objective, rel=1e-14)
    assert fine.gap == pytest.approx(gap, abs=1e-14 * problem.null_model.objective)


def test_where_columns_depend_on_each_other_numpy_takes_over(rng):
    X = rng.normal(size=(60, 4))
    X[:, 3] = X[:, 0] + X[:, 1]
    y = X[:, 0] - X[:, 1] + X[:, 3] + 0.1 * rng.normal(size=60)
    problem = bg.Problem(X, y, alpha=1e-3)
    rough = bg.solve(problem, coef_init=np.array([0.5, -0.5, 0.1, 0.7]), tol=1e-6)
    start = np.where(rough.coef == 0, 0.1, rough.coef)
    assert CoreProblem(problem, 1).settled(start, 0.0) is None
    assert polished(problem, rough).gap <= rough.gap


def test_plain_arrays_are_fitted_as_what_scikit_learn_has_looked_at(rng):
    X, y = rng.normal(size=(50, 4)), rng.normal(size=50)
    model = bg.Lasso(alpha=0.01).fit(X, y)
    other = bg.Lasso(alpha=0.01).fit(X.tolist(), y.tolist())
    np.testing.assert_array_equal(model.coef_, other.coef_)
    assert model.n_features_in_ == other.n_features_in_ == 4
    for wrong_X, wrong_y in ((X, y[:-1]), (X, np.where(y > 0, np.nan, y)), (X[:, :0], y), (X[0], y)):
        with pytest.raises(ValueError, match=r"inconsistent|NaN|0 feature|1D"):
            bg.Lasso().fit(wrong_X, wrong_y)
    pandas = pytest.importorskip("pandas")
    model.fit(pandas.DataFrame(X, columns=list("abcd")), y)
    assert list(model.feature_names_in_) == list("abcd")
    assert not hasattr(model.fit(X, y), "feature_names_in_")
