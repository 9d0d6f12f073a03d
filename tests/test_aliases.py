"""Features that are interchangeable: models, their files and pages, and ``fit`` say which they are."""

import json
import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.models.aliases import Aliases
from blockgreedy.models.model import Model
from blockgreedy.partitions.duplicates import copies_of, find_duplicates
from blockgreedy.reports.model_page import model_page
from command_line import run
from test_model_file import same
from test_pages import embedded, rows_of, words

N_BASE = 6


@pytest.fixture(scope="module")
def copied():
    """30 rows; columns 6 to 11 are multiples of 0 to 5, 12 is another copy of 0, 13 is empty."""
    rng = np.random.default_rng(4)
    base = rng.normal(size=(30, N_BASE)) * (rng.random((30, N_BASE)) < 0.6)
    X = np.column_stack([base, -0.5 * base, base[:, 0], np.zeros(30)])
    y = base @ np.array([3.0, -2.0, 1.0, 0.0, 0.0, 0.0]) + 0.01 * rng.normal(size=30)
    return X, y


@pytest.fixture(scope="module")
def fit(copied):
    X, y = copied
    problem = bg.Problem(sp.csc_array(X), y, alpha=0.2)
    return Model.of_solution(problem, bg.solve(problem, tol=1e-8))


@pytest.fixture(scope="module")
def path(copied):
    X, y = copied
    return Model.of_path(bg.solve_path(bg.Problem(X, y, alpha=0), n_alphas=20, tol=1e-6))


@pytest.mark.parametrize("storage", [np.asarray, sp.csc_array, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_groups_are_complete_and_only_those_asked_for(copied, storage, dtype):
    X = storage(copied[0].astype(dtype))

    def groups(*features):
        return [group.tolist() for group in copies_of(X, np.array(features, dtype=np.int64))]

    assert groups(0, 2) == [[0, 6, 12], [2, 8]]
    assert groups(12) == groups(6, 0) == [[0, 6, 12]]
    assert groups(13) == groups() == []


def test_groups_are_those_of_all_columns(rng):
    X = sp.random(8, 400, density=0.2, random_state=3, format="csc", data_rvs=lambda n: np.ones(n))
    first_of = find_duplicates(X).first_of
    features = rng.choice(400, size=60, replace=False)
    expected = {tuple(np.flatnonzero(first_of == first_of[j])) for j in features}
    found = [tuple(group) for group in copies_of(X, features)]
    assert set(found) == {group for group in expected if len(group) > 1}
    assert len(set(found)) == len(found) > 10


def test_stored_zeros_do_not_hide_a_copy():
    X = sp.csc_array((np.array([0.0, 1.0, 2.0]), np.array([0, 1, 1]), np.array([0, 2, 3])), shape=(2, 2))
    assert [group.tolist() for group in copies_of(X, np.array([0]))] == [[0, 1]]


def test_a_model_lists_the_copies_of_its_features(fit):
    assert np.flatnonzero(fit.coef).tolist() == [0, 1, 2]
    assert fit.aliases == {0: [6, 12], 1: [7], 2: [8]}
    assert fit.aliases[np.int64(1)] == [7]


def test_copies_that_share_the_weight_are_listed_for_each(copied):
    X, y = copied
    problem = bg.Problem(X, y, alpha=0.2, l2=0.1)
    model = Model.of_solution(problem, bg.solve(problem))
    assert model.aliases[0] == [6, 12]
    assert model.aliases[12] == [0, 6]


def test_a_model_without_copies_has_an_empty_mapping(copied):
    X, y = copied
    problem = bg.Problem(X[:, :N_BASE], y, alpha=0.2)
    assert Model.of_solution(problem, bg.solve(problem)).aliases == {}
    null = problem.with_alpha(2 * problem.alpha_max)
    assert Model.of_solution(null, bg.solve(null)).aliases == {}


def test_a_path_lists_those_of_all_alphas_and_a_point_of_it_its_own(path):
    assert path.aliases.keys() == set(path.coefs.indices.tolist())
    assert len(path.aliases) == 3
    few = path.at(path.alphas[1])
    assert 0 < few.nonzeros[0] < 3
    assert few.aliases == {j: path.aliases[j] for j in few.coefs.indices.tolist()}


@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_aliases_come_back_from_files(fit, path, tmp_path, suffix):
    for model in (fit, path, replace(fit, aliases=Aliases([], np.array([0]))), replace(fit, aliases=None)):
        model.save(tmp_path / f"m{suffix}")
        again = Model.load(tmp_path / f"m{suffix}")
        same(model, again)
        assert again.aliases == model.aliases


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"alias_indptr": []}, "alias_indptr must begin with 0 and never descend"),
        ({"alias_indptr": [1, 3, 5, 7]}, "alias_indptr must begin with 0 and never descend"),
        ({"alias_indptr": [0, 5, 3, 7]}, "alias_indptr must begin with 0 and never descend"),
        ({"alias_indptr": [0, 3, 4, 7]}, "alias_indptr must divide alias_features into groups of two or more"),
        ({"alias_indptr": [0, 3, 5]}, r"alias_features has shape \(7,\), expected \(5,\)"),
        ({"alias_features": None}, "alias_features is missing"),
        ({"alias_features": [0, 6, 12, 1, 7, 2, 14]}, r"alias_features\[6\]=14 must be one of the 14 features"),
        ({"alias_features": [0, 6, 12, 1, 7, 2, 7]}, r"alias_features\[6\]=7 is there a second time$"),
        ({"alias_features": [0, 6, 12, 1, 7, 2, 8.0]}, r"alias_features\[6\]=8.0 must be a whole number"),
    ],
)
def test_damaged_aliases_are_refused(fit, tmp_path, arrays, sentence):
    fit.save(tmp_path / "m.json")
    plain = json.loads((tmp_path / "m.json").read_text())
    assert plain["arrays"]["alias_indptr"] == [0, 3, 5, 7]
    assert plain["arrays"]["alias_features"] == [0, 6, 12, 1, 7, 2, 8]
    plain["arrays"] = {name: v for name, v in (plain["arrays"] | arrays).items() if v is not None}
    (tmp_path / "m.json").write_text(json.dumps(plain))
    with pytest.raises(ValueError, match=sentence):
        Model.load(tmp_path / "m.json")


# ------------------------------------------------------------------------------------------------------ pages


def with_names(model, groups):
    """The model with these copies, its features named by letters and marks that need escapes."""
    names = np.array([f"<{chr(65 + j)}>" for j in range(model.n_features)])
    return replace(model, feature_names=names, aliases=Aliases([np.array(g) for g in groups], model.coefs.indices))


@pytest.mark.parametrize(
    ("copies", "line"),
    [
        ([6], "same column as <G>"),
        ([6, 12], "same column as <G> and <M>"),
        ([6, 7, 12], "same column as <G>, <H> and 1 more"),
        ([6, 7, 8, 9, 12], "same column as <G>, <H> and 3 more"),
    ],
)
def test_the_table_of_features_names_copies(fit, copies, line):
    page = model_page(with_names(fit, [[0, *copies]]))
    assert rows_of(page, "Positive weights")[0][0] == f"<A>{line}"
    assert rows_of(page, "Negative weights")[0][0] == "<B>"
    (title,) = re.findall(r'<small title="(.*?)">', page.html())
    listed = unescape(title)
    assert [name in listed for name in ("<G>", "<H>", "<I>", "<M>")] == [j in copies for j in (6, 7, 8, 12)]
    assert "more" not in listed
    assert embedded(page)["same"] == [[line, listed], None, None]
    assert "are interchangeable" in words(page)


def test_pages_name_no_more_copies_than_they_have_room_for(fit, monkeypatch):
    model = with_names(fit, [[0, *range(3, 14)]])
    for name, most in (("_MOST_COPIES", 4), ("_MOST_OF_ALL_COPIES", 3)):
        monkeypatch.setattr(f"blockgreedy.reports.page_features.{name}", most)
        assert embedded(model_page(model))["same"][0][1].endswith(f" and {11 - most} more")


def test_pages_of_models_without_copies_say_nothing_of_them(fit):
    for aliases in (None, Aliases([], fit.coefs.indices)):
        page = model_page(replace(fit, aliases=aliases))
        assert embedded(page)["same"] is None
        assert "<small" not in page.html()
        assert "are interchangeable" not in words(page)


# ----------------------------------------------------------------------------------------------- command line


def test_fit_notes_how_many_features_have_copies(copied, tmp_path):
    X, y = copied
    bg.save(bg.Dataset(sp.csr_array(X), y), tmp_path / "copies.npz")
    bg.save(bg.Dataset(sp.csr_array(X[:, :N_BASE]), y), tmp_path / "none.npz")
    asked = ("--alpha", 0.2, "--no-intercept", "--model", tmp_path / "m.npz")
    result = run("fit", tmp_path / "copies.npz", *asked)
    assert result.exit_code == 0, result.output
    assert "Note: 3 features with weights have copies in the data" in result.stderr
    assert Model.load(tmp_path / "m.npz").aliases == {0: [6, 12], 1: [7], 2: [8]}
    page = ("--report", tmp_path / "m.html")
    result = run("fit", tmp_path / "copies.npz", "--alpha-ratio", 0.9, *page)
    assert "1 feature with a weight has copies" in result.stderr
    for data, *more in (("none.npz", *page), ("copies.npz", *page, "--quiet"), ("copies.npz",)):
        assert "copies in the data" not in run("fit", tmp_path / data, "--alpha", 0.2, *more).stderr
