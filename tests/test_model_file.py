"""Files of models: complete, readable by anyone, and refused by the name of the field that is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import blockgreedy as bg
from blockgreedy.data.encoding import Cross, Encoding, Source
from blockgreedy.models.model import CrossValidation, Model


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
@pytest.mark.parametrize("kind", ["fitted_model", "path_model"])
def test_everything_comes_back(request, kind, suffix, tmp_path):
    model = request.getfixturevalue(kind)
    model.save(tmp_path / f"model{suffix}")
    again = Model.load(tmp_path / f"model{suffix}")
    same(model, again)
    if model.trace is not None:
        assert np.array_equal(model.trace["gap"], again.trace["gap"], equal_nan=True)
    if model.deviance_explained is not None:
        assert np.array_equal(model.deviance_explained, again.deviance_explained)


def test_cross_validation_and_encodings_come_back(fitted_model, tmp_path):
    curve = np.linspace(0, 1, 5)
    cross = CrossValidation("roc_auc", curve + 1, curve, curve / 10, curve * 9, 1.5, 1.75, 5)
    sources = (Source("city=x", ("Köln", "a=b")), Source("age", fill=1.5), Source("hour", ("1",), from_numbers=True))
    encoding = Encoding(sources, (Cross(("city=x", "hour"), np.array([[1], [0]], dtype=np.int32)),), 2, ("id",))
    model = replace(
        fitted_model,
        cross_validation=cross,
        encoding=encoding,
        coefs=fitted_model.coefs[:5],
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
def test_quality_support_criteria_and_folds_come_back(fitted_model, path_model, named_data, tmp_path, suffix):
    quality = fitted_model.measure(named_data.X, named_data.y, rows="all rows")
    scores = np.array([[1.0, np.nan], [0.5, 2.0], [0.1, 0.2]])
    two = np.array([2.0, 1.0])
    cross = CrossValidation("deviance", two, -two, two, two, 1.0, 2.0, 3, scores)
    replace(fitted_model, quality=quality, cross_validation=cross).save(tmp_path / f"m{suffix}")
    again = Model.load(tmp_path / f"m{suffix}")
    assert (again.quality.rows, again.quality.n_samples) == ("all rows", 400)
    assert list(again.quality.scores.items()) == list(quality.scores.items())
    assert list(again.quality.baseline.items()) == list(quality.baseline.items())
    assert set(again.quality.curves) == set(quality.curves)
    assert all(np.array_equal(again.quality.curves[name], curve) for name, curve in quality.curves.items())
    assert np.array_equal(again.support, fitted_model.support)
    assert again.support.dtype == np.int64
    assert np.array_equal(again.cross_validation.fold_scores, scores, equal_nan=True)
    path_model.save(tmp_path / f"p{suffix}")
    again = Model.load(tmp_path / f"p{suffix}")
    assert set(again.criteria) == {"aic", "bic", "ebic"}
    assert all(np.array_equal(again.criteria[name], path_model.criteria[name]) for name in again.criteria)
    assert again.quality is None


def test_files_are_readable_without_blockgreedy(fitted_model, named_solution, tmp_path):
    fitted_model.save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz", allow_pickle=False) as archive:
        header = json.loads(str(archive["header"]))
        coef = np.zeros(header["n_features"])
        coef[archive["features"]] = archive["weights"]
        assert np.array_equal(coef, named_solution.coef)
        assert archive["intercepts"].tolist() == [named_solution.intercept]
        assert archive["gaps"].tolist() == [named_solution.gap]
        assert archive["feature_names"][3] == "wörd 3"
    assert header["format"] == "blockgreedy-model"
    fitted_model.save(tmp_path / "model.json")
    plain = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    assert plain["arrays"]["weights"] == named_solution.coef[named_solution.coef != 0].tolist()


def test_gaps_that_nothing_proves_come_back_from_json(fitted_model, tmp_path):
    replace(fitted_model, gaps=np.array([np.inf])).save(tmp_path / "m.json")
    assert Model.load(tmp_path / "m.json").gaps.tolist() == [np.inf]


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
def test_names_that_are_no_text_are_refused(tmp_path, fitted_model, name):
    names = np.empty(2, dtype=object)
    names[:] = ["a", 1]
    names[1] = name
    with pytest.raises(
        ValueError, match=r"feature_names\[1\]=.* cannot be taken as text; accepted are text, numbers"
    ):
        bg.Dataset(np.ones((1, 2)), np.ones(1), names)
    (tmp_path / "m.npz").write_bytes(b"old")
    with pytest.raises(ValueError, match=r"feature_names\[1\]"):
        replace(fitted_model, feature_names=names).save(tmp_path / "m.npz")
    assert (tmp_path / "m.npz").read_bytes() == b"old"


@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_nothing_is_written_that_would_be_refused(fitted_model, tmp_path, suffix):
    path = tmp_path / f"m{suffix}"
    path.write_bytes(b"old")
    wrong = fitted_model.coefs.copy()
    wrong.data = wrong.data * np.nan
    for model, sentence in (
        (replace(fitted_model, coefs=wrong), r"weights\[0\]=nan must be finite"),
        (
            replace(fitted_model, settings={"when": object()}),
            "classes and settings must be numbers, text, lists or tables",
        ),
        (replace(fitted_model, feature_names=np.array(["a"])), r"feature_names has shape \(1,\), expected \(600,\)"),
    ):
        with pytest.raises(ValueError, match=sentence):
            model.save(path)
        assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
