"""The same data in R's glmnet: tests/glmnet/make.R wrote the coefficients. It stops by its own rule, near 1e-7."""

import csv
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg

FOUND = {
    row[0]: np.array(row[1:], dtype=np.float64)
    for row in csv.reader((Path(__file__).parent / "glmnet" / "coefficients.csv").read_text().splitlines())
}
ROW, COLUMN = np.mgrid[1:121, 1:13]
X = np.sin(1.7 * ROW + 0.37 * ROW * COLUMN + 0.9 * COLUMN**2) * 10 ** ((COLUMN - 6) / 12) + 0.3 * np.cos(COLUMN)
X[(ROW * COLUMN) % 3 == 0] = 0
NOISE = np.sin(12.9898 * np.arange(1, 121))
LINEAR = X[:, :4] @ [8, -4, 2, 1.5]
Y, B = LINEAR + NOISE, (LINEAR + 2 * NOISE > 0.2).astype(int)
W = 1 + (np.arange(1, 121) % 4) / 2
U = np.array([0, 0.5, 1, 2, 1, 1, 3, 1, 1, 0.5, 1, 1])
FACTORS = U * 12 / np.sum(U)  # glmnet scales its penalty factors so that they add up to p

CASES = {
    "plain": (bg.Lasso(alpha=0.02), {}),
    "standardize": (bg.Lasso(alpha=0.02, standardize=True), {}),
    "weights": (bg.Lasso(alpha=0.02, standardize=True), {"sample_weight": W}),
    "factors": (bg.Lasso(alpha=0.02, standardize=True, penalty_weights=FACTORS), {}),
    "positive": (bg.Lasso(alpha=0.02, standardize=True, positive=True), {}),
    "no_intercept": (bg.Lasso(alpha=0.02, fit_intercept=False), {}),
    "logistic": (bg.LogisticRegression(alpha=0.005), {}),
    "logistic_standardize": (bg.LogisticRegression(alpha=0.005, standardize=True), {}),
    "logistic_net": (bg.LogisticRegression(alpha=0.01, l1_ratio=0.4, standardize=True), {"sample_weight": W}),
    "logistic_factors": (
        bg.LogisticRegression(alpha=0.01, standardize=True, penalty_weights=FACTORS),
        {},
    ),
    "logistic_offset": (bg.LogisticRegression(alpha=0.005), {"offset": NOISE / 2}),
}


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", CASES)
def test_coefficients_are_glmnets(name, form):
    model, options = CASES[name]
    model.fit(form(X), B if name.startswith("logistic") else Y, **options)
    mine = np.r_[model.intercept_, np.ravel(model.coef_)]
    assert np.count_nonzero(mine) > 4
    np.testing.assert_allclose(mine, FOUND[name], atol=1e-5 * np.max(np.abs(FOUND[name])))
    np.testing.assert_array_equal(mine != 0, FOUND[name] != 0)
