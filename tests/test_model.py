"""Models in files: everything comes back, anyone can read them, and they predict what the estimators predict."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.data.tables import Encoding
from blockgreedy.model import CrossValidation, Model


@pytest.fixture(scope="module")
def dataset():
    made = bg.data.text_like(400, 600, 20.0, seed=2)
    names = np.array([f"wörd {k}" for k in range(600)])
    return bg.Dataset(made.X, made.y, names)


@pytest.fixture(scope="module")
def problem(dataset):
    problem = bg.Problem(dataset.X, dataset.y, loss="logistic", alpha=0.0, fit_intercept=True)
    return problem.with_alpha(0.05 * problem.alpha_max)


@pytest.fixture(scope="module")
def solution(problem):
    return bg.solve(problem, tol=1e-6)


@pytest.fixture(scope="module")
def fitted(problem, solution, dataset):
    return Model.of_solution(problem, solution, dataset, {"command": "blockgreedy fit", "tol": 1e-6})


@pytest.fixture(scope="module")
def along_a_path(problem, dataset):
    return Model.of_path(bg.solve_path(problem, n_alphas=7, eps=0.05), dataset)


def same(a: Model, b: Model) -> None:
    for name in ("alphas", "intercepts", "objectives", "gaps"):
        assert np.array_equal(getattr(a, name), getattr(b, name))
    assert (abs(a.coefs - b.coefs)).nnz == 0
    assert a.coefs.shape == b.coefs.shape
    for name in ("loss", "statuses", "f_null", "index_base", "encoding"):
        assert getattr(a, name) == getattr(b, name)
    assert dict(a.settings) == dict(b.settings)
    assert (a.classes is None) == (b.classes is None)
    assert a.classes is None or a.classes.tolist() == b.classes.tolist()
    assert a.feature_names is None or a.feature_names.tolist() == b.feature_names.tolist()
    assert a.trace is None or [r.objective for r in a.trace] == [r.objective for r in b.trace]


@pytest.mark.parametrize("suffix", [".npz", ".json"])
@pytest.mark.parametrize("kind", ["fitted", "along_a_path"])
def test_everything_comes_back(request, kind, suffix, tmp_path):
    model = request.getfixturevalue(kind)
    model.save(tmp_path / f"model{suffix}")
    again = Model.load(tmp_path / f"model{suffix}")
    same(model, again)
    if model.trace is not None:
        assert np.array_equal(model.trace["gap"], again.trace["gap"], equal_nan=True)
    if model.deviance_explained is not None:
        assert np.array_equal(model.deviance_explained, again.deviance_explained)


def test_cross_validation_and_encodings_come_back(fitted, tmp_path):
    curve = np.linspace(0, 1, 5)
    cross = CrossValidation("roc_auc", curve + 1, curve, curve / 10, curve * 9, 1.5, 1.75, 5)
    encoding = Encoding((("city=x", ("Köln", "a=b")), ("age", None)))
    model = replace(
        fitted,
        cross_validation=cross,
        encoding=encoding,
        coefs=fitted.coefs[:3],
        feature_names=encoding.feature_names,
    )
    for suffix in (".npz", ".json"):
        model.save(tmp_path / f"m{suffix}")
        again = Model.load(tmp_path / f"m{suffix}")
        assert again.encoding == encoding
        assert again.feature_names.tolist() == ["city=x=Köln", "city=x=a=b", "age"]
        for name in ("scoring", "alpha_min", "alpha_1se", "n_folds"):
            assert getattr(again.cross_validation, name) == getattr(cross, name)
        for name in ("alphas", "mean", "std_error", "nonzeros"):
            assert np.array_equal(getattr(again.cross_validation, name), getattr(cross, name))


def test_files_are_readable_without_blockgreedy(fitted, solution, tmp_path):
    fitted.save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz", allow_pickle=False) as archive:
        header = json.loads(str(archive["header"]))
        coef = np.zeros(header["n_features"])
        coef[archive["features"]] = archive["weights"]
        assert np.array_equal(coef, solution.coef)
        assert archive["intercepts"].tolist() == [solution.intercept]
        assert archive["gaps"].tolist() == [solution.gap]
        assert archive["feature_names"][3] == "wörd 3"
    assert header["format"] == "blockgreedy-model"
    fitted.save(tmp_path / "model.json")
    plain = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    assert plain["arrays"]["weights"] == solution.coef[solution.coef != 0].tolist()


def test_it_predicts_what_the_estimator_predicts(fitted, problem, dataset):
    estimator = bg.LogisticRegression(alpha=problem.alpha, tol=1e-6).fit(dataset.X, dataset.y)
    assert np.allclose(fitted.predict_proba(dataset.X), estimator.predict_proba(dataset.X), atol=1e-4)
    assert fitted.predict(dataset.X).tolist() == estimator.predict(dataset.X).tolist()
    dense = fitted.predict_proba(dataset.X.toarray())
    assert np.allclose(dense, fitted.predict_proba(dataset.X))


def test_text_classes_and_regression(tmp_path, dataset):
    words = np.where(dataset.y > 0, "spam", "ham")
    problem = bg.Problem(dataset.X, words, loss="squared_hinge", alpha=0.01)
    model = Model.of_solution(problem, bg.solve(problem))
    model.save(tmp_path / "m.npz")
    again = Model.load(tmp_path / "m.npz")
    assert set(again.predict(dataset.X)) <= {"ham", "spam"}
    assert np.mean(again.predict(dataset.X) == words) > 0.8
    with pytest.raises(ValueError, match="loss='squared_hinge' gives no probabilities"):
        again.predict_proba(dataset.X)
    squared = bg.Problem(dataset.X, dataset.y.astype(float), loss="squared", alpha=0.01)
    solution = bg.solve(squared)
    predicted = Model.of_solution(squared, solution).predict(dataset.X)
    assert np.allclose(predicted, dataset.X @ solution.coef)


def test_a_path_wants_an_alpha(along_a_path, dataset):
    with pytest.raises(ValueError, match=r"this model has 7 alphas; choose one with at\(alpha\)"):
        along_a_path.predict(dataset.X)
    for k, alpha in enumerate(along_a_path.alphas):
        one = along_a_path.at(alpha * 1.01)
        assert one.alphas.tolist() == [alpha]
        assert np.array_equal(one.coef, along_a_path.coefs[:, [k]].toarray()[:, 0])
        assert one.intercept == along_a_path.intercepts[k]
    with pytest.raises(ValueError, match="alpha=0 must be above 0"):
        along_a_path.at(0)


def test_top_features_are_named(fitted, dataset):
    top = fitted.top(5)
    order = np.argsort(-np.abs(fitted.coef))[:5]
    assert [name for name, _ in top] == dataset.feature_names[order].tolist()
    assert [weight for _, weight in top] == fitted.coef[order].tolist()


def test_shapes_are_checked(fitted):
    with pytest.raises(ValueError, match=r"X has shape \(2, 3\), expected two dimensions with 600 columns"):
        fitted.predict(sp.csr_array((2, 3)))


def test_other_files_are_refused(tmp_path, fitted, dataset):
    bg.save(dataset, tmp_path / "data.npz")
    with pytest.raises(ValueError, match=r"data\.npz cannot be read as a model"):
        Model.load(tmp_path / "data.npz")
    (tmp_path / "x.json").write_text("[1, 2]")
    with pytest.raises(ValueError, match=r"x\.json cannot be read as a model"):
        Model.load(tmp_path / "x.json")
    with pytest.raises(FileNotFoundError, match=r"nothing\.npz"):
        Model.load(tmp_path / "nothing.npz")
    with pytest.raises(ValueError, match=r"path must end in \.npz or \.json"):
        fitted.save(tmp_path / "model.pkl")
    fitted.save(tmp_path / "model.json")
    plain = json.loads((tmp_path / "model.json").read_text())
    for change, message in (
        ({"version": 99}, "it is of version 99; this blockgreedy reads up to 1"),
        ({"format": "other"}, "it is no model"),
        ({"loss": "hinge"}, "loss 'hinge' is not known"),
        ({"n_features": 5}, "cannot be read as a model"),
        ({"statuses": []}, "0 statuses for 1 alphas"),
    ):
        (tmp_path / "changed.json").write_text(json.dumps(plain | change))
        with pytest.raises(ValueError, match=message):
            Model.load(tmp_path / "changed.json")
    whole = (tmp_path / "model.json").read_bytes()
    (tmp_path / "cut.json").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="cannot be read as a model"):
        Model.load(tmp_path / "cut.json")


def test_rows_without_a_number_have_no_prediction(fitted, dataset):
    X = dataset.X.astype(np.float64).copy()
    X.data[X.indptr[3]] = np.nan
    with pytest.raises(ValueError, match="X holds NaN or infinite values: row 4 has no prediction"):
        fitted.predict(X)


def test_gaps_that_nothing_proves_come_back_from_json(fitted, tmp_path):
    replace(fitted, gaps=np.array([np.inf])).save(tmp_path / "m.json")
    assert Model.load(tmp_path / "m.json").gaps.tolist() == [np.inf]


def test_damaged_models_are_refused(fitted, tmp_path):
    fitted.save(tmp_path / "whole.npz")
    whole = (tmp_path / "whole.npz").read_bytes()
    refused = 0
    for at in range(0, len(whole), 97):
        (tmp_path / "damaged.npz").write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            assert np.array_equal(Model.load(tmp_path / "damaged.npz").coef, fitted.coef)
        except ValueError:
            refused += 1
    assert refused > 10


def test_pickles_are_never_loaded(tmp_path):
    np.savez(tmp_path / "evil.npz", header=np.array([object()]))
    with pytest.raises(ValueError, match="cannot be read as a model"):
        Model.load(tmp_path / "evil.npz")
