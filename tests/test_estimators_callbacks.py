"""scikit-learn's callbacks (``set_callbacks``) on our estimators."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

import blockgreedy as bg

callbacks = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks since 1.9")


@pytest.fixture
def data(rng):
    X = rng.normal(size=(150, 8))
    return X, X[:, 0] - 2 * X[:, 3] + rng.normal(size=150)


class Recording:
    """A callback of scikit-learn's that notes what it hears."""

    def __init__(self, stop_at=None):
        self.heard, self.fitted, self.stop_at = [], [], stop_at

    def setup(self, estimator, context):
        self.heard.append("setup")

    def teardown(self, estimator, context):
        self.heard.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        self.heard.append(f"begin {context.task_name}")
        self.seen = X, y, metadata

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.heard.append(f"end {context.task_name}")
        if context.task_name == "fit":
            self.fitted.append(fitted_estimator)
        return self.heard.count("end iteration") == self.stop_at


def test_callbacks_hear_of_the_fit_and_of_each_iteration(data):
    X, y = data
    callback, weights = Recording(), np.ones(150)
    model = bg.Lasso(alpha=0.1).set_callbacks(callback).fit(X, y, sample_weight=weights)
    heard = callback.heard
    assert heard[:2] == ["setup", "begin fit"]
    assert heard[-2:] == ["end fit", "teardown"]
    assert heard[2:-2] == ["begin iteration", "end iteration"] * ((len(heard) - 4) // 2)
    assert heard.count("end iteration") >= model.n_iter_
    assert callback.seen[0].shape == X.shape
    np.testing.assert_array_equal(callback.seen[2]["sample_weight"], weights)
    np.testing.assert_array_equal(callback.fitted[0].predict(X), model.predict(X))
    assert not {"_fit_tasks", "_callback_fit_ctx"} & set(vars(model))


def test_a_callback_ends_the_fit_without_a_warning(rng):
    X = rng.normal(size=(300, 400))
    y = X[:, :20].sum(axis=1) + rng.normal(size=300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = bg.Lasso(alpha=0.01).set_callbacks(Recording(stop_at=1)).fit(X, y)
    assert model.status_ == "interrupted"
    assert model.n_iter_ <= 1


def test_callbacks_hear_of_the_models_of_folds(data):
    X, y = data
    callback = Recording()
    bg.LassoCV(n_alphas=4, cv=3).set_callbacks(callback).fit(X, y)
    assert callback.heard.count("end model of a fold") >= 12
    assert callback.heard.count("end iteration") >= 1


def test_callbacks_are_torn_down_where_a_fit_fails(data):
    X, y = data
    callback = Recording()
    model = bg.Lasso(alpha=-1.0).set_callbacks(callback)
    with pytest.raises(ValueError, match="alpha"):
        model.fit(X, y)
    assert callback.heard == ["setup", "begin fit", "teardown"]
    assert "_fit_tasks" not in vars(model)


def test_scikit_learns_own_callbacks_work(data):
    X, y = data
    monitor = callbacks.ScoringMonitor(scoring="r2")
    model = bg.Lasso(alpha=0.1).set_callbacks(monitor).fit(X, y)
    (row,) = monitor.get_logs().data
    assert row["r2"] == pytest.approx(model.score(X, y))


def test_estimators_work_with_a_scikit_learn_that_has_no_callbacks():
    script = """
import sys, sklearn.linear_model, sklearn.model_selection, numpy as np
sys.modules["sklearn.callback"] = None
import blockgreedy as bg
X = np.random.default_rng(0).normal(size=(60, 4))
for model in (bg.Lasso(alpha=0.1), bg.LassoCV(n_alphas=3, cv=2)):
    assert model.fit(X, X[:, 0]).coef_[0] > 0.5
    assert not hasattr(model, "set_callbacks")
"""
    subprocess.run([sys.executable, "-c", script], check=True)
