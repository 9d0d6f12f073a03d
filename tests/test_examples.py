"""The examples run, and what they print is true; the page on scikit-learn knows all of its parameters."""

import inspect
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn import linear_model, svm
from sklearn.model_selection import KFold, train_test_split

import blockgreedy as bg

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "migrate-scikit-learn.md").read_text()
sys.path.insert(0, str(ROOT / "tools" / "docs"))

import vignettes  # noqa: E402


@pytest.fixture
def run(capsys, monkeypatch):
    """Runs an example as a script; gives what it printed and what it defined."""

    def run_example(name, *arguments):
        path = str(ROOT / "examples" / f"{name}.py")
        monkeypatch.setattr("sys.argv", [path, *map(str, arguments)])
        defined = runpy.run_path(path, run_name="__main__")  # sys.exit(message) would fail the test
        return capsys.readouterr().out, defined

    return run_example


@pytest.mark.parametrize("name", vignettes.ORDER)
def test_vignettes_run_and_draw(name, tmp_path):
    (vignette,) = [found for found in vignettes.all_vignettes() if found.name == name]
    vignette.run(tmp_path)  # each asserts what it says
    assert len(vignette.pictures) >= 4  # two at least, for light and for dark pages
    for picture in vignette.pictures:
        assert picture.read_bytes().startswith(b"\x89PNG")
    page = vignette.page()
    assert page.startswith(f"# {vignette.title}\n")
    for result in vignette.results:
        assert result["output"].rstrip() in page


def test_demo_shows_fit_words_curve_and_page(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")
    printed, defined = run("demo")
    rows = re.findall(r"^(blockgreedy|scikit-learn \S+ \w+) +(\S+) +(\d\.\d{7}) +(\S+) ", printed, flags=re.MULTILINE)
    assert [name.split()[-1] for name, *_ in rows] == ["blockgreedy", "liblinear", "saga"]
    objectives = [float(objective) for _, _, objective, _ in rows]
    assert max(objectives) - min(objectives) < 1e-4  # the same problem, comparable accuracy
    assert "Proven: the objective of blockgreedy is at most" in printed
    words = set(re.findall(r"^(\w+) +\+\d", printed, flags=re.MULTILINE))
    assert words <= set(defined["GOOD"])
    assert len(words) == 6
    curve = re.findall(r"^ +\d\.\d{3} ┤.*[⠉⠒⠤⣀●]", printed, flags=re.MULTILINE)
    assert len(curve) >= 4
    page = Path(re.search(r"any browser: (\S+)", printed)[1])
    assert page == tmp_path / "build" / "demo" / "cv.html"
    assert "<html" in page.read_text(encoding="utf-8")
    assert len(printed.splitlines()) <= 45  # a screen
    assert re.search(r"^\d+\.\d seconds in all", printed, flags=re.MULTILINE)


def test_make_demo_installs_no_tools_of_developers():
    steps = subprocess.run(
        ["make", "-n", "VENV=does-not-exist", "demo"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    extras = set(re.findall(r"tools/requirements\.py (\w+)", steps))
    assert extras == {"demo"}
    wanted = subprocess.run(
        [sys.executable, ROOT / "tools" / "requirements.py", *extras], capture_output=True, text=True, check=True
    ).stdout
    names = {re.match(r"[\w-]+", line)[0] for line in wanted.splitlines()}
    assert {"numpy", "scikit-learn", "matplotlib", "nanobind"} <= names
    assert not names & {"pytest", "ruff", "mypy", "clang-format", "pandas", "hypothesis", "selenium", "mkdocs"}
    assert "examples/demo.py" in steps


def test_default_solver_runs(run):
    printed, _ = run("default_solver")
    assert "gap as reported" in printed


def test_text_classification_finds_the_words_of_each_subject(run):
    printed, defined = run("text_classification")
    subjects = {name: set(words.split()) for name, words in defined["SUBJECTS"].items()}
    for name, words in subjects.items():
        top = re.search(rf"^ *{name}: .* words; (.*)$", printed, flags=re.MULTILINE)
        assert {entry.split()[0] for entry in top[1].split(", ")} <= words
    shares = [float(share) for share in re.findall(r"accuracy (\S+),", printed)]
    assert shares
    assert min(shares) > 0.9


def test_reading_a_path_agrees_with_scikit_learn_and_draws(run, tmp_path):
    picture = tmp_path / "path.png"
    printed, defined = run("reading_a_path", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    X, y, truth = defined["make_data"]()
    rows = [line.split() for line in printed.splitlines() if re.match(r" +\d+ +\d+\.\d+ +\d+ ", line)]
    grid = np.max(np.abs((y - y.mean()) @ X)) / len(y) * np.geomspace(1, 0.01, 60)
    assert len(rows) == 10
    for k, alpha, nonzeros, explained, _ in rows[1:5]:
        oracle = linear_model.Lasso(grid[int(k)], tol=1e-10, max_iter=100_000).fit(X, y)
        assert float(alpha) == pytest.approx(grid[int(k)], abs=6e-4)
        assert int(nonzeros) == np.count_nonzero(oracle.coef_)
        assert float(explained) == pytest.approx(oracle.score(X, y), abs=2e-3)
    assert f"{np.count_nonzero(truth)} of {np.count_nonzero(truth)}" in printed


def test_choosing_alpha_chooses_what_scikit_learns_errors_say(run):
    printed, defined = run("choosing_alpha")
    X, y = defined["make_data"]()
    X, _, y, _ = train_test_split(X, y, test_size=0.5, random_state=0)
    grid = np.max(np.abs((y - y.mean()) @ (X - X.mean(axis=0)))) / len(y) * np.geomspace(1, 0.01, 60)
    oracle = linear_model.LassoCV(
        cv=KFold(10, shuffle=True, random_state=0), alphas=grid, tol=1e-7, max_iter=100_000
    ).fit(X, y)
    mean = oracle.mse_path_.mean(axis=1)
    best = int(np.argmin(mean))
    error = oracle.mse_path_[best].std(ddof=1) / np.sqrt(10)
    largest = grid[np.argmax(mean <= mean[best] + error)]
    for name, alpha in (("alpha_min_", grid[best]), ("alpha_1se_", largest)):
        assert float(re.search(rf"^  {name} (\S+):", printed, flags=re.MULTILINE)[1]) == pytest.approx(
            alpha, abs=6e-5
        )


def test_from_scikit_learn_finds_the_same_minima(run):
    printed, _ = run("from_scikit_learn")
    rows = re.findall(r"^(.*?)  +(\d+\.\d{9})  (\d+\.\d{9}) ", printed, flags=re.MULTILINE)
    assert len(rows) == 7
    for name, theirs, ours in rows:
        if name == "LogisticRegression, liblinear":  # whose intercept is penalised
            assert float(theirs) > float(ours) + 0.01
        else:
            assert float(theirs) == pytest.approx(float(ours), abs=1e-7)


def table(heading):
    """(their names, our names) of each row under a heading."""
    part = PAGE.split(f"### {heading}\n")[1].split("\n#")[0]
    rows = [line.split("|")[1:3] for line in part.splitlines() if line.startswith("| `")]
    return [tuple(re.findall(r"`(\w+)`", cell) for cell in row) for row in rows]


@pytest.mark.parametrize(
    ("heading", "theirs", "ours"),
    [
        ("Lasso, ElasticNet", (linear_model.Lasso, linear_model.ElasticNet), (bg.ElasticNet,)),
        ("LassoCV", (linear_model.LassoCV,), (bg.LassoCV,)),
        (
            "LogisticRegression, LinearSVC",
            (linear_model.LogisticRegression, svm.LinearSVC),
            (bg.LogisticRegression, bg.SquaredHingeClassifier),
        ),
        ("LogisticRegressionCV", (linear_model.LogisticRegressionCV,), (bg.LogisticRegressionCV,)),
    ],
)
def test_the_page_lists_every_parameter_of_scikit_learn_and_only_parameters_of_ours(heading, theirs, ours):
    rows = table(heading)
    listed = {name for names, _ in rows for name in names}
    for kind in theirs:
        assert set(inspect.signature(kind).parameters) <= listed
    for kind in ours:
        known = set(inspect.signature(kind).parameters)
        assert {name for _, names in rows for name in names} <= known
        # what we have under the same name is not said to be missing; selection has another meaning
        assert {name for names, mine in rows if not mine for name in names} & known <= {"selection"}
