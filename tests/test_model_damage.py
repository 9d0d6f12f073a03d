"""Files that hold no model, or a damaged one: refused by the name of the field that is wrong."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from dataclasses import replace

import numpy as np
import pytest

import blockgreedy as bg
from blockgreedy.models.model import Model
from test_model_file import same


def test_qualities_that_make_none_are_refused(fitted_model, named_data, tmp_path):
    quality = fitted_model.measure(named_data.X, named_data.y, rows="all rows")
    replace(fitted_model, quality=quality).save(tmp_path / "m.json")
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


def test_other_files_are_refused(tmp_path, fitted_model, named_data):
    bg.save(named_data, tmp_path / "data.npz")
    with pytest.raises(ValueError, match=r"data\.npz cannot be read as a model"):
        Model.load(tmp_path / "data.npz")
    (tmp_path / "x.json").write_text("[1, 2]")
    with pytest.raises(ValueError, match=r"x\.json cannot be read as a model"):
        Model.load(tmp_path / "x.json")
    with pytest.raises(FileNotFoundError, match=r"nothing\.npz"):
        Model.load(tmp_path / "nothing.npz")
    with pytest.raises(ValueError, match=r"path must end in \.npz or \.json"):
        fitted_model.save(tmp_path / "model.pkl")
    fitted_model.save(tmp_path / "model.json")
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


def test_damaged_models_are_refused(fitted_model, tmp_path):
    fitted_model.save(tmp_path / "whole.npz")
    whole = (tmp_path / "whole.npz").read_bytes()
    refused = 0
    for at in range(0, len(whole), 97):
        (tmp_path / "damaged.npz").write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            assert np.array_equal(Model.load(tmp_path / "damaged.npz").coef, fitted_model.coef)
        except ValueError:
            refused += 1
    assert refused > 10


def test_pickles_are_never_loaded(tmp_path):
    np.savez(tmp_path / "evil.npz", header=np.array([object()]))
    with pytest.raises(ValueError, match="cannot be read as a model"):
        Model.load(tmp_path / "evil.npz")


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
def test_what_makes_no_model_is_refused_by_the_name_of_its_field(fitted_model, tmp_path, changes, sentence):
    fitted_model.save(tmp_path / "m.json")
    plain = json.loads((tmp_path / "m.json").read_text(encoding="utf-8"))
    for name, change in changes.items():
        if callable(change):
            plain["arrays"][name] = change(plain["arrays"][name])
        else:
            plain[name] = change
    (tmp_path / "m.json").write_text(json.dumps(plain))
    with pytest.raises(ValueError, match=rf"m\.json cannot be read as a model: {sentence}"):
        Model.load(tmp_path / "m.json")


def test_missing_fields_are_named(fitted_model, tmp_path):
    fitted_model.save(tmp_path / "m.json")
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


def test_arrays_that_are_not_a_models_are_not_decompressed(fitted_model, tmp_path, monkeypatch):
    fitted_model.save(tmp_path / "m.npz")
    big = npy(np.zeros(4_000_000))
    rewritten(tmp_path / "m.npz", tmp_path / "bomb.npz", unknown=big, cv_mean=big)
    tracemalloc.start()
    same(Model.load(tmp_path / "bomb.npz"), fitted_model)
    peak = tracemalloc.get_traced_memory()[1]
    rewritten(tmp_path / "m.npz", tmp_path / "bomb.npz", weights=big)
    with pytest.raises(ValueError, match=r"weights has shape \(4000000,\), expected"):
        Model.load(tmp_path / "bomb.npz")
    rewritten(tmp_path / "m.npz", tmp_path / "bomb.npz", alphas=big)
    with pytest.raises(ValueError, match="there are 1 statuses for 4000000 alphas"):
        Model.load(tmp_path / "bomb.npz")
    assert max(peak, tracemalloc.get_traced_memory()[1]) < 8_000_000
    tracemalloc.stop()


def test_sizes_and_types_that_an_archive_only_claims_are_refused(fitted_model, tmp_path):
    fitted_model.save(tmp_path / "m.npz")
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
