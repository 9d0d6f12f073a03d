"""The estimators as scikit-learn's tools see them."""


import numpy as np
import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

import blockgreedy as bg

REGRESSORS = (bg.Lasso, bg.ElasticNet, bg.HuberLasso)
CLASSIFIERS = (bg.LogisticRegression, bg.SquaredHingeClassifier)
ALL = REGRESSORS + CLASSIFIERS
OPTIONAL = {  # scikit-learn's own estimators skip these as well without pandas and an environment variable
    "check_array_api_input",
    "check_classifier_data_not_an_array",
    "check_regressor_data_not_an_array",
    "check_sample_weights_pandas_series",
}


def checks():
    for kind in ALL:
        for estimator, check in estimator_checks_generator(kind(), mark="skip"):
            name = getattr(check, "func", check).__name__
            yield pytest.param(estimator, check, id=f"{kind.__name__}-{name}-{id(check)}")


@pytest.mark.parametrize("kind", ALL)
def test_scikit_learns_checks_pass_without_exception(kind):
    with np.errstate(all="ignore"), pytest.warns() as _:
        from sklearn.utils.estimator_checks import check_estimator

        results = check_estimator(kind(), on_fail=None)
    assert len(results) > 50
    failed = [r["check_name"] for r in results if r["status"] not in ("passed", "skipped")]
    assert not failed
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= OPTIONAL
