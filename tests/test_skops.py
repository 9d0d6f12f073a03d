"""Files of skops hold types of our list and nothing else."""

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.estimators import SKOPS_TYPES

skops = pytest.importorskip("skops.io")
pytestmark = pytest.mark.filterwarnings("ignore")  # of skops, about itself

CV = {"n_alphas": 3, "cv": 2}
MODELS = [
    *(bg.Lasso(alpha=0.1), bg.ElasticNet(alpha=0.1), bg.HuberLasso(alpha=0.1), bg.SquaredHingeClassifier()),
    *(bg.LogisticRegression(), bg.LassoCV(**CV), bg.ElasticNetCV(**CV), bg.LogisticRegressionCV(**CV)),
]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_estimators_load_with_the_trusted_types(model, sparse, rng):
    X = rng.normal(size=(90, 5))
    model = model.fit(sp.csr_matrix(X) if sparse else X, np.digitize(X[:, 0], [-0.5, 0.5]))
    model = model.sparsify() if sparse else model
    again = skops.loads(skops.dumps(model), trusted=SKOPS_TYPES)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_encoders_load_with_the_trusted_types():
    table = {
        "a": ["x", "y", "x"],
        "b": ["u", "u", "v"],
        "n": [1.0, np.nan, 3],
        "k": [1, 2, 2],
        "t": [True, False, True],
    }
    for encoder in (bg.TableEncoder(fill="mean"), bg.TableEncoder("k", drop="t", fill={"n": 1.0}, cross="a,b")):
        encoder.fit(table)
        again = skops.loads(skops.dumps(encoder), trusted=SKOPS_TYPES)
        np.testing.assert_array_equal(again.transform(table).toarray(), encoder.transform(table).toarray())


def test_no_trusted_type_is_superfluous(rng):
    X = rng.normal(size=(90, 5))
    fitted = [model.fit(X, X[:, 0] > 0).sparsify() for model in MODELS]
    fitted.append(bg.TableEncoder(cross="a,b").fit({"a": ["x", "y"], "b": ["u", "v"]}))
    found = {name for model in fitted for name in skops.get_untrusted_types(data=skops.dumps(model))}
    assert found == set(SKOPS_TYPES)
