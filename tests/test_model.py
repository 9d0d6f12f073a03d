"""Models in files: everything comes back, anyone can read them, and they predict what the estimators predict."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.data.encoding import Cross, Encoding, Source
from blockgreedy.models.model import CrossValidation, Model


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
    sources = (Source("city=x", ("Köln", "a=b")), Source("age", fill=1.5), Source("hour", ("1",), from_numbers=True))
    encoding = Encoding(sources, (Cross(("city=x", "hour"), np.array([[1], [0]], dtype=np.int32)),), 2, ("id",))
    model = replace(
        fitted,
        cross_validation=cross,
        encoding=encoding,
        coefs=fitted.coefs[:5],
        feature_names=encoding.feature_names,
        support=None,
    )
    for suffix in (".npz", ".json"):
        model.save(tmp_path / f"m{suffix}")
        again = Model.load(tmp_path / f"m{suffix}")
        assert again.encoding == encoding
        assert again.feature_names.tolist() == ["city=x=Köln", "city=x=a=b", "age", "hour=1", "city=x=a=b × hour=1"]
        for name in ("scoring", "alpha_min", "alpha_1se", "n_folds"):
            assert getattr(again.cross_validation, name) == getattr(cross, name)
        for name in ("alphas", "mean", "std_error", "nonzeros"):
            assert np.array_equal(getattr(again.cross_validation, name), getattr(cross, name))


FIXTURES = Path(__file__).parent / "fixtures"


def test_files_of_version_1_still_load():
    fit = Model.load(FIXTURES / "model-1-fit.json")
    assert fit.predict_proba(np.array([[30.0, 0, 1]]))[0, 1] == pytest.approx(0.4708, abs=1e-4)
    path, cross = Model.load(FIXTURES / "model-1-path.npz"), Model.load(FIXTURES / "model-1-cv.npz")
    assert path.nonzeros.tolist() == [0, 15, 39, 44, 48]
    assert cross.cross_validation.alpha_min == cross.alphas[0]
    assert cross.cross_validation.fold_scores is None
    for model in (fit, path, cross):  # what version 2 brought
        assert (model.quality, model.support, model.criteria) == (None, None, None)
    with pytest.raises(ValueError, match="alpha='bic': this model has no information criteria; paths of the squared"):
        path.at("bic")


@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_quality_support_criteria_and_folds_come_back(fitted, along_a_path, dataset, tmp_path, suffix):
    quality = fitted.measure(dataset.X, dataset.y, rows="all rows")
    scores = np.array([[1.0, np.nan], [0.5, 2.0], [0.1, 0.2]])
    two = np.array([2.0, 1.0])
    cross = CrossValidation("deviance", two, -two, two, two, 1.0, 2.0, 3, scores)
    replace(fitted, quality=quality, cross_validation=cross).save(tmp_path / f"m{suffix}")
    again = Model.load(tmp_path / f"m{suffix}")
    assert (again.quality.rows, again.quality.n_samples) == ("all rows", 400)
    assert list(again.quality.scores.items()) == list(quality.scores.items())
    assert list(again.quality.baseline.items()) == list(quality.baseline.items())
    assert set(again.quality.curves) == set(quality.curves)
    assert all(np.array_equal(again.quality.curves[name], curve) for name, curve in quality.curves.items())
    assert np.array_equal(again.support, fitted.support)
    assert again.support.dtype == np.int64
    assert np.array_equal(again.cross_validation.fold_scores, scores, equal_nan=True)
    along_a_path.save(tmp_path / f"p{suffix}")
    again = Model.load(tmp_path / f"p{suffix}")
    assert set(again.criteria) == {"aic", "bic", "ebic"}
    assert all(np.array_equal(again.criteria[name], along_a_path.criteria[name]) for name in again.criteria)
    assert again.quality is None


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


def test_a_path_is_read_at_the_choice_of_a_criterion(problem, dataset):
    path = bg.solve_path(problem, n_alphas=20)
    model = Model.of_path(path, dataset)
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


def test_losses_without_a_likelihood_have_no_criteria(dataset):
    problem = bg.Problem(dataset.X, dataset.y, loss="squared_hinge", alpha=0.0)
    path = bg.solve_path(problem, n_alphas=3)
    assert Model.of_path(path).criteria is None
    with pytest.raises(ValueError, match="loss='squared_hinge' belongs to no likelihood"):
        path.recommended("bic")


def test_settings_tell_when_with_what_and_on_which_kind_of_machine(fitted):
    date = datetime.fromisoformat(fitted.settings["date"])
    assert date.tzinfo is not None
    assert set(fitted.settings["versions"]) == {"python", "blockgreedy", "numpy", "scipy"}
    assert fitted.settings["versions"]["blockgreedy"] == bg.__version__
    assert set(fitted.settings["machine"]) == {"cpu", "cores"}
    assert fitted.settings["command"] == "blockgreedy fit"


def test_qualities_that_make_none_are_refused(fitted, dataset, tmp_path):
    quality = fitted.measure(dataset.X, dataset.y, rows="all rows")
    replace(fitted, quality=quality).save(tmp_path / "m.json")
    plain = json.loads((tmp_path / "m.json").read_text())
    for header, arrays, sentence in (
        ({"quality": 3}, {}, "quality=3 must be null or a table"),
        ({"quality": plain["quality"] | {"rows": 1}}, {}, "quality: rows=1 must be a word"),
        ({"quality": plain["quality"] | {"scores": {"roc_auc": "1"}}}, {}, "must be a table of finite numbers"),
        ({}, {"quality_roc_tpr": [0.0, 1.0]}, r"quality_roc_tpr has shape \(2,\), expected"),
        ({}, {"quality_scores_edges": [0.0]}, r"quality_scores_edges has shape \(1,\), expected \(41,\)"),
        ({}, {"support": [-1] * 600}, r"support\[0\]=-1 must be a number of rows"),
    ):
        changed = plain | header | {"arrays": plain["arrays"] | arrays}
        (tmp_path / "c.json").write_text(json.dumps(changed))
        with pytest.raises(ValueError, match=sentence):
            Model.load(tmp_path / "c.json")


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
        ({"version": 99}, "it is of version 99; this blockgreedy reads up to 2"),
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


@pytest.mark.parametrize("suffix", [".npz", ".json"])
@pytest.mark.parametrize(
    ("names", "text"),
    [
        (np.array(["age", "höhe"], dtype=object), ["age", "höhe"]),  # what pandas gives
        (np.array([0, 1]), ["0", "1"]),
        (np.array(["a", 2.5], dtype=object), ["a", "2.5"]),
        (np.array([b"a", "ä".encode()]), ["a", "ä"]),  # what h5py gives
        (np.array(["2020-01-31", "2021-12-01"], dtype="M8[D]"), ["2020-01-31", "2021-12-01"]),
    ],
)
def test_names_of_every_type_are_kept_as_text(tmp_path, names, text, suffix):
    X = np.random.default_rng(0).normal(size=(30, 2))
    problem = bg.Problem(X, X[:, 0], alpha=0.1)
    data = bg.Dataset(X, X[:, 0], names)
    model = Model.of_solution(problem, bg.solve(problem), data)
    for saved in (model, replace(model, feature_names=names)):  # named by hand, too
        saved.save(tmp_path / f"m{suffix}")
        assert Model.load(tmp_path / f"m{suffix}").feature_names.tolist() == text
    bg.save(data, tmp_path / "d.npz")
    assert bg.load(tmp_path / "d.npz").feature_names.tolist() == text
    assert bg.load(tmp_path / "d.npz").feature_names.dtype.kind == "U"


@pytest.mark.parametrize("name", [None, np.nan, ("a", "b"), b"\xff", object()])
def test_names_that_are_no_text_are_refused(tmp_path, fitted, name):
    names = np.empty(2, dtype=object)
    names[:] = ["a", 1]
    names[1] = name
    with pytest.raises(
        ValueError, match=r"feature_names\[1\]=.* cannot be taken as text; accepted are text, numbers"
    ):
        bg.Dataset(np.ones((1, 2)), np.ones(1), names)
    (tmp_path / "m.npz").write_bytes(b"old")
    with pytest.raises(ValueError, match=r"feature_names\[1\]"):
        replace(fitted, feature_names=names).save(tmp_path / "m.npz")
    assert (tmp_path / "m.npz").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"features": lambda v: [1.5, *v[1:]]}, r"features\[0\]=1.5 must be a whole number"),
        ({"features": lambda v: [-1, *v[1:]]}, r"features\[0\]=-1 must be one of the 600 features, from 0"),
        ({"features": lambda v: [600, *v[1:]]}, r"features\[0\]=600 must be one of the 600 features, from 0"),
        ({"features": lambda v: [*v[:-1], v[0]]}, r"features\[\d+\]=\d+ is there a second time, at the same alpha"),
        ({"features": lambda v: ["3", *v[1:]]}, r"features\[0\]='3' must be a whole number"),
        ({"features": lambda v: v[:-1]}, r"features has shape \(\d+,\), expected"),
        ({"weights": lambda v: ["nan", *v[1:]]}, r"weights\[0\]=nan must be finite"),
        ({"weights": lambda v: [float("inf"), *v[1:]]}, r"weights\[0\]=inf must be finite"),
        ({"weights": lambda v: [None, *v[1:]]}, r"weights\[0\]=None must be a number"),
        ({"weights": lambda v: [*v, 1.0]}, r"weights has shape \(\d+,\), expected"),
        ({"weights": lambda v: None}, "weights must be a list, got None"),
        ({"indptr": lambda v: [1, v[1]]}, "indptr must begin with 0 and never descend"),
        ({"indptr": lambda v: [0, v[1], v[1]]}, r"indptr has shape \(3,\), expected \(2,\)"),
        ({"intercepts": lambda v: ["nan"]}, r"intercepts\[0\]=nan must be finite"),
        ({"intercepts": lambda v: [1.0, 2.0]}, r"intercepts has shape \(2,\), expected \(1,\)"),
        ({"alphas": lambda v: [-1.0]}, r"alphas\[0\]=-1.0 must be a finite number of at least 0"),
        ({"alphas": lambda v: [[1.0]]}, r"alphas\[0\]=\[1.0\] must be a number"),
        ({"feature_names": lambda v: v[:-1]}, r"feature_names has shape \(599,\), expected \(600,\)"),
        ({"feature_names": lambda v: [3, *v[1:]]}, r"feature_names\[0\]=3 must be text"),
        ({"trace_iteration": lambda v: ["nan", *v[1:]]}, r"trace_iteration\[0\]=nan must be a whole number"),
        ({"trace_gap": lambda v: [*v, 1.0]}, r"trace_gap has shape"),
        ({"index_base": 2}, "index_base=2 must be null, 0 or 1"),
        ({"index_base": True}, "index_base=True must be null, 0 or 1"),
        ({"index_base": "1"}, "index_base='1' must be null, 0 or 1"),
        ({"n_features": 600.5}, "n_features=600.5 must be a whole number"),
        ({"n_features": -1}, "n_features=-1 must be a whole number of at least 0"),
        ({"f_null": None}, "f_null=None must be a number"),
        ({"classes": [1, 1]}, r"classes=\[1, 1\] must be two different numbers or words"),
        ({"classes": None}, "classes=None must be two different numbers or words, for the loss logistic"),
        ({"classes": [1, [2]]}, r"classes=\[1, \[2\]\] must be"),
        ({"loss": "squared"}, "classes=.* must be null, for the loss squared"),
        ({"loss": ["logistic"]}, "loss .* is not known"),
        ({"statuses": [1]}, r"statuses=\[1\] must be words"),
        ({"settings": []}, r"settings=\[\] must be a table"),
        ({"version": "1"}, "version='1' must be a whole number"),
        ({"encoding": [["a", "bc"]]}, r"encoding: \['a', 'bc'\] must be the name of a column and its categories"),
        ({"encoding": [["a", None]]}, "encoding has 1 features, expected 600"),
        ({"cv": {"scoring": "r2"}}, "cv: alpha_min=None must be a number"),
        ({"cv": {"scoring": "r2", "alpha_min": 1, "alpha_1se": 1, "n_folds": 5}}, "cv_alphas is missing"),
        ({"arrays": 3}, "its arrays are no table"),
    ],
)
def test_what_makes_no_model_is_refused_by_the_name_of_its_field(fitted, tmp_path, changes, sentence):
    fitted.save(tmp_path / "m.json")
    plain = json.loads((tmp_path / "m.json").read_text(encoding="utf-8"))
    for name, change in changes.items():
        if callable(change):
            plain["arrays"][name] = change(plain["arrays"][name])
        else:
            plain[name] = change
    (tmp_path / "m.json").write_text(json.dumps(plain))
    with pytest.raises(ValueError, match=rf"m\.json cannot be read as a model: {sentence}"):
        Model.load(tmp_path / "m.json")


def test_missing_fields_are_named(fitted, tmp_path):
    fitted.save(tmp_path / "m.json")
    whole = json.loads((tmp_path / "m.json").read_text(encoding="utf-8"))
    for name in ("n_features", "f_null", "statuses", "classes", "index_base", "settings"):
        (tmp_path / "m.json").write_text(json.dumps({k: v for k, v in whole.items() if k != name}))
        with pytest.raises(ValueError, match=f"{name} is missing"):
            Model.load(tmp_path / "m.json")
    for name in ("alphas", "indptr", "features", "weights", "intercepts", "gaps", "trace_gap"):
        arrays = {k: v for k, v in whole["arrays"].items() if k != name}
        (tmp_path / "m.json").write_text(json.dumps(whole | {"arrays": arrays}))
        with pytest.raises(ValueError, match=f"{name} is missing"):
            Model.load(tmp_path / "m.json")


@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_nothing_is_written_that_would_be_refused(fitted, tmp_path, suffix):
    path = tmp_path / f"m{suffix}"
    path.write_bytes(b"old")
    wrong = fitted.coefs.copy()
    wrong.data = wrong.data * np.nan
    for model, sentence in (
        (replace(fitted, coefs=wrong), r"weights\[0\]=nan must be finite"),
        (replace(fitted, settings={"when": object()}), "classes and settings must be numbers, text, lists or tables"),
        (replace(fitted, feature_names=np.array(["a"])), r"feature_names has shape \(1,\), expected \(600,\)"),
    ):
        with pytest.raises(ValueError, match=sentence):
            model.save(path)
        assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def rewritten(path, target, **changed):
    """The archive with some members replaced by others, as bytes of .npy."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.namelist():
            if member.removesuffix(".npy") not in changed:
                new.writestr(member, old.read(member))
        for name, content in changed.items():
            new.writestr(f"{name}.npy", content)


def npy(array, claimed=None):
    file = io.BytesIO()
    np.lib.format.write_array(file, array)
    content = file.getvalue()
    return content if claimed is None else content.replace(str(array.shape).encode(), claimed, 1)


def test_arrays_that_are_not_a_models_are_not_decompressed(fitted, tmp_path, monkeypatch):
    fitted.save(tmp_path / "m.npz")
    big = npy(np.zeros(4_000_000))
    rewritten(tmp_path / "m.npz", tmp_path / "bomb.npz", unknown=big, cv_mean=big)
    tracemalloc.start()
    same(Model.load(tmp_path / "bomb.npz"), fitted)
    peak = tracemalloc.get_traced_memory()[1]
    rewritten(tmp_path / "m.npz", tmp_path / "bomb.npz", weights=big)
    with pytest.raises(ValueError, match=r"weights has shape \(4000000,\), expected"):
        Model.load(tmp_path / "bomb.npz")
    rewritten(tmp_path / "m.npz", tmp_path / "bomb.npz", alphas=big)
    with pytest.raises(ValueError, match="there are 1 statuses for 4000000 alphas"):
        Model.load(tmp_path / "bomb.npz")
    assert max(peak, tracemalloc.get_traced_memory()[1]) < 8_000_000
    tracemalloc.stop()


def test_sizes_and_types_that_an_archive_only_claims_are_refused(fitted, tmp_path):
    fitted.save(tmp_path / "m.npz")
    for changed, sentence in (
        ({"header": npy(np.array("x"), b"(10000,)")}, "cannot be read as a model"),
        ({"header": npy(np.zeros(3))}, "it is no model"),
        ({"intercepts": npy(np.array(["a"]))}, "intercepts must hold numbers, got <U1"),
        ({"features": npy(np.zeros(3))}, "features must hold whole numbers, got float64"),
        ({"features": b"no array at all"}, "cannot be read as a model"),
    ):
        rewritten(tmp_path / "m.npz", tmp_path / "odd.npz", **changed)
        with pytest.raises(ValueError, match=sentence):
            Model.load(tmp_path / "odd.npz")
