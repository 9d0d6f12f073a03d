"""Arguments of the estimators as users of scikit-learn write them, and what is said of wrong ones."""

import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import sklearn.linear_model as sk
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import KFold, cross_val_score

import blockgreedy as bg
from conftest import random_design


def regression(rng):
    X = random_design(rng, 80, 20)
    return X, X @ np.r_[np.ones(5), np.zeros(15)] + rng.normal(size=80)


def test_alphas_may_be_their_number(rng):
    X, y = regression(rng)
    mine = bg.LassoCV(alphas=7, eps=0.01).fit(X, y)
    grid = np.max(np.abs((y - y.mean()) @ X)) / len(y) * np.geomspace(1, 0.01, 7)
    np.testing.assert_allclose(mine.alphas_, grid, rtol=1e-10)
    with pytest.raises(ValueError, match="alphas=0 must be a whole number of at least 1"):
        bg.LassoCV(alphas=0).fit(X, y)


def test_n_jobs_of_minus_one_means_all_threads(rng):
    X, y = regression(rng)
    all_jobs, one_job = (bg.LassoCV(n_alphas=5, n_jobs=n).fit(X, y) for n in (-1, 1))
    np.testing.assert_array_equal(all_jobs.score_path_, one_job.score_path_)
    np.testing.assert_array_equal(bg.LassoCV(n_alphas=5, n_jobs=-2).fit(X, y).score_path_, one_job.score_path_)
    for wrong in (0, 1.5, "all"):
        with pytest.raises(ValueError, match=f"n_jobs={wrong!r} must be a whole number from 1"):
            bg.LassoCV(n_jobs=wrong).fit(X, y)


@pytest.mark.parametrize("shape", [(), (80,), (80, 1), (80, 2)])
def test_offset_is_taken_off_each_target(rng, shape):
    X, y = regression(rng)
    targets = np.column_stack([y, -2 * y])
    offset = rng.normal(size=shape)
    mine = bg.Lasso(alpha=0.05).fit(X, targets, offset=offset)
    shift = offset.reshape(-1, 1) if np.ndim(offset) == 1 else offset
    theirs = sk.Lasso(alpha=0.05, tol=1e-12, max_iter=50_000).fit(X, targets - shift)
    np.testing.assert_allclose(mine.coef_, theirs.coef_, atol=1e-7)
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, atol=1e-7)


@pytest.mark.parametrize("shape", [(3,), (80, 3), (1, 80)])
def test_offset_of_another_shape_is_named(rng, shape):
    X, y = regression(rng)
    message = rf"offset has shape \({', '.join(map(str, shape))},?\), expected that of y: \(80,\)"
    with pytest.raises(ValueError, match=message):
        bg.Lasso().fit(X, y, offset=np.zeros(shape))


def test_messages_name_classes_as_they_were_given(rng):
    X, _ = regression(rng)
    with pytest.raises(ValueError, match=r"y holds 1 class only \('a'\)"):
        bg.LogisticRegression().fit(X, np.full(80, "a"))
    with pytest.raises(ValueError, match=r"names \{'z'\}, which y does not hold; its classes are \['a', 'b'\]"):
        bg.LogisticRegression(class_weight={"z": 1.0}).fit(X, np.resize(["a", "b"], 80))


@pytest.mark.parametrize("estimator", [bg.Lasso(alpha=1e-4, max_iter=1), bg.LassoCV(n_alphas=5, max_iter=1)])
def test_warnings_name_the_users_line_and_tol(rng, estimator):
    X, y = regression(rng)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.set_params(tol=3e-8).fit(X, y)
    assert {Path(w.filename) for w in caught if w.category is ConvergenceWarning} == {Path(__file__)}
    assert "asked for 3e-08;" in str(caught[-1].message)


@pytest.mark.parametrize("kind", [bg.LassoCV, bg.ElasticNetCV])
def test_folds_of_small_data_that_reach_tol_do_not_warn(rng, kind):
    """Small data are held to a finer tol, which one iteration does not reach."""
    X = rng.normal(size=(300, 40))
    y = X[:, 0] + rng.normal(size=300)
    once = bg.solve_path(bg.Problem(X, y, alpha=1.0, fit_intercept=True), n_alphas=20, tol=1e-8, max_iter=1)
    assert "max_iter" in once.statuses
    assert np.max(once.gaps) <= 0.5 * once.null_loss
    kind(n_alphas=20, tol=0.5, max_iter=1).fit(X, y)  # warnings are errors in this suite


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tol": None}, "tol=None must be a finite number of at least 0"),
        ({"tol": -1.0}, r"tol=-1.0 must be a finite number of at least 0"),
        ({"fold_tol": "a"}, "fold_tol='a' must be a finite number of at least 0"),
        ({"alphas": (1, 1.0, "1")}, r"alphas must be a list of numbers above 0, .*; \[2\] is '1'"),
        ({"alphas": "0.1"}, "alphas='0.1' must be a list of numbers above 0"),
        ({"alphas": [0.1, True]}, r"\[1\] is True"),
        ({"alphas": 0.5}, "alphas=0.5 must be a list"),
        ({"alphas": []}, r"alphas=\[\] must be a list"),
        ({"n_threads": 10**12}, "n_threads=1000000000000 must be a whole number from 1 to 1024"),
        ({"n_threads": 0}, "n_threads=0 must be a whole number from 1"),
    ],
)
def test_wrong_arguments_of_cross_validation_are_named_with_what_is_accepted(rng, options, message):
    X, y = regression(rng)
    with pytest.raises(ValueError, match=message):
        bg.LassoCV(**options).fit(X, y)


def test_eps_of_one_is_one_alpha_many_times(rng):
    X, y = regression(rng)
    model = bg.LassoCV(eps=1, n_alphas=3).fit(X, y)
    assert len(set(model.alphas_)) == 1
    assert model.alpha_ == model.alphas_[0]


def test_class_weight_may_name_a_class_that_these_rows_lack(rng):
    """As scikit-learn: part of the rows, in a fold say, is no error; a slip in a name is."""
    X, _ = regression(rng)
    y = np.resize(["a", "b"], 80)
    weight = {"a": 1.0, "b": 2.0, "c": 3.0}
    mine = bg.LogisticRegression(class_weight=weight).fit(X, y)
    np.testing.assert_array_equal(mine.coef_, bg.LogisticRegression(class_weight={"b": 2.0}).fit(X, y).coef_)
    y[-1] = "c"
    assert np.all(np.isfinite(cross_val_score(bg.LogisticRegression(class_weight=weight), X, y, cv=KFold(4))))


def test_alpha_and_C_together_are_refused(rng):
    X, y = regression(rng)
    with pytest.raises(ValueError, match=r"alpha=0.1 and C=0.5 both set the weight of the penalty; give one of them"):
        bg.LogisticRegression(alpha=0.1, C=0.5).fit(X, y > 0)


def test_a_warm_start_needs_only_weights(rng):
    X, y = regression(rng)
    model = bg.Lasso(alpha=0.1, warm_start=True)
    model.coef_ = np.zeros(20)
    np.testing.assert_allclose(model.fit(X, y).coef_, bg.Lasso(alpha=0.1).fit(X, y).coef_, atol=1e-9)


@pytest.mark.parametrize("stop", [np.True_, 1, [0]])
def test_a_callback_may_return_anything_true(rng, stop):
    X, y = regression(rng)
    model = bg.Lasso(alpha=1e-4, callback=lambda record: stop).fit(X, y)
    assert model.status_ == "interrupted"


@pytest.mark.parametrize(
    "model",
    [bg.SquaredHingeClassifier(C=0.5), bg.LogisticRegression(C=0.5), bg.LogisticRegressionCV(n_alphas=5, cv=3)],
    ids=lambda model: type(model).__name__,
)
def test_select_from_model_keeps_all_that_is_not_zero(rng, model):
    X, y = regression(rng)
    chosen = SelectFromModel(model).fit(X, y > 0)
    kept = np.abs(chosen.estimator_.coef_[0]) > 1e-5
    assert 1 < np.sum(kept) < 20
    np.testing.assert_array_equal(chosen.get_support(), kept)
    with pytest.raises(AttributeError):
        model.penalty = "l2"
    assert "penalty" not in model.get_params()
    assert clone(model).set_params(l1_ratio=0.5).penalty == "elasticnet"


class OnDevice:
    """What a GPU array shows of itself."""

    __cuda_array_interface__: ClassVar = {"shape": (80, 20), "typestr": "<f8", "data": (0, False), "version": 3}
    shape, ndim, dtype = (80, 20), 2, np.dtype(np.float64)

    def __len__(self):
        return 80


def test_arrays_of_a_gpu_are_named_with_the_way_out(rng):
    X, y = regression(rng)
    message = "X is a .*OnDevice in the memory of a GPU; this solver runs on the CPU: copy it to host memory first"
    for attempt in (
        lambda: bg.Problem(OnDevice(), y, alpha=0.1),
        lambda: bg.Lasso().fit(OnDevice(), y),
        lambda: bg.Lasso().fit(X, y).predict(OnDevice()),
    ):
        with pytest.raises(TypeError, match=message):
            attempt()
    with pytest.raises(TypeError, match=r"y is a .*OnDevice in the memory of a GPU"):
        bg.Lasso().fit(X, OnDevice())
    with pytest.raises(TypeError, match=r"y is a .*OnDevice in the memory of a GPU"):
        bg.Problem(X, OnDevice(), alpha=0.1)
    with pytest.raises(TypeError, match=r"sample_weight is a .*OnDevice in the memory of a GPU"):
        bg.Problem(X, y, alpha=0.1, sample_weight=OnDevice())


def test_tensors_of_a_gpu_are_told_to_go_to_the_cpu():
    kind = type("Tensor", (), {"__module__": "torch", "device": SimpleNamespace(type="cuda"), "shape": (2, 2)})
    with pytest.raises(TypeError, match=r"X is a torch.Tensor in the memory of a GPU.* with X.cpu\(\)"):
        bg.Problem(kind(), [1.0, 2.0], alpha=0.1)


def test_a_frame_with_text_is_sent_to_the_encoder():
    frame = pd.DataFrame({"site": ["a", "b", "a", "b"], "price": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(ValueError, match=r"could not convert string to float.*TableEncoder"):
        bg.LogisticRegression().fit(frame, [0, 1, 0, 1])
    assert bg.LogisticRegression().fit(bg.TableEncoder().fit_transform(frame), [0, 1, 0, 1]).status_ == "converged"
