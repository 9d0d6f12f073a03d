"""Some columns of a matrix, and matrices whose numbers scipy has made int64."""

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.problem import columns as columns_module


@pytest.mark.parametrize("form", ["csc", "csr"])
@pytest.mark.parametrize("n", [50, 3000])
def test_sparse_matrices_of_int64_numbers_are_those_of_int32(form, n):
    rng, p = np.random.default_rng(0), 20
    X = sp.random_array((n, p), density=0.5, format=form, rng=rng)
    wide = X.copy()
    wide.indices, wide.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    y, u = rng.standard_normal(n), np.r_[0.0, 0.0, np.ones(p - 2)]
    for make in (
        lambda X: bg.Problem(X, y, alpha=0.1, penalty_weights=u, fit_intercept=True),
        lambda X: bg.Problem(X, y, alpha=0.1).with_features(np.array([0, 2]), 0.01),
        lambda X: bg.Problem(X, y, alpha=0.1, standardize=True, fit_intercept=True),
    ):
        problem, same_problem = make(wide), make(X)
        assert problem.design.take(np.array([1, 0])).indices.dtype == np.int32
        np.testing.assert_array_equal(problem.null_model.coef, same_problem.null_model.coef)
        np.testing.assert_array_equal(bg.solve(problem).coef, bg.solve(same_problem).coef)
    np.testing.assert_array_equal(
        bg.LassoCV(penalty_weights=u, n_alphas=5, cv=3).fit(wide, y).coef_,
        bg.LassoCV(penalty_weights=u, n_alphas=5, cv=3).fit(X, y).coef_,
    )


@pytest.mark.parametrize("features", [[], [4], [7, 2, 2, 0], list(range(30))])
def test_chosen_columns_are_those_of_scipy(features, monkeypatch):
    monkeypatch.setattr(columns_module, "_TOGETHER", 40)  # entries; some columns have more
    X = sp.random_array((200, 30), density=0.15, format="csc", rng=np.random.default_rng(1))
    X = sp.csc_array(X.multiply(np.arange(30) != 4))
    X.eliminate_zeros()
    found = columns_module.chosen_columns(X, np.array(features, dtype=np.int64))
    assert found.indices.dtype == np.int32
    np.testing.assert_array_equal(found.toarray(), X.toarray()[:, features])
