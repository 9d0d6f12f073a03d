"""The hunt itself: the oracle is right, planted defects are found, failing cases become small scripts."""

from __future__ import annotations

import ast
import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hunt import problems
from hunt.case import Case, dense
from hunt.certificates import check_solution
from hunt.checks import run, solve
from hunt.draws import LOSSES
from hunt.forms import forms
from hunt.oracle import Exact
from hunt.outcome import SEVERITY, Finding, Outcome
from hunt.script import script
from hunt.shrink import shrink, still_fails
from hunt.workers import Worker

import blockgreedy as bg
from conftest import SANITIZED

ROOT = Path(__file__).parent.parent
own_process = pytest.mark.skipif(bool(SANITIZED), reason="a sanitized process starts slowly")


# Planted defects.


def plain_case(loss="squared", n=40, p=6, seed=0, **problem):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = X[:, 0] - X[:, 1] + rng.normal(size=n)
    y = np.where(y > 0, 1.0, -1.0) if loss in ("logistic", "squared_hinge") else y
    return Case("plain", 0, X, y, problem={"loss": loss, "alpha": 0.05, **problem}, options={"tol": 1e-5})


def judged(case, change):
    """The checks that a changed Solution fails."""
    problem = bg.Problem(case.X, case.y, **case.problem)
    solution = solve(case, problem)
    change(solution)
    outcome = Outcome()
    check_solution(case, problem, Exact(case.X, case.y, **case.problem), solution, outcome)
    return {finding.check for finding in outcome.findings}


PLANTED = {
    "gap": (lambda s: object.__setattr__(s, "gap", 0.5 * s.gap), "false gap"),
    "negative gap": (lambda s: object.__setattr__(s, "gap", -s.gap), "negative gap"),
    "weights": (lambda s: object.__setattr__(s, "coef", s.coef * 1.01), "false certificate"),
    "objective": (lambda s: object.__setattr__(s, "objective", s.objective * (1 - 1e-9)), "false objective"),
    "dual point": (lambda s: object.__setattr__(s, "dual", s.dual * 1.1), "infeasible dual"),
    "small dual point": (lambda s: object.__setattr__(s, "dual", s.dual * 0.9), "false certificate"),
    "status": (lambda s: object.__setattr__(s, "status", "interrupted"), "status"),
    "message": (lambda s: object.__setattr__(s, "message", "all is well"), "message"),
    "trace": (
        lambda s: s.trace.records.append(dataclasses.replace(s.trace.records[-1], objective=2 * s.objective)),
        "rise",
    ),
}


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_sound_solutions_pass(loss, intercept):
    assert judged(plain_case(loss, fit_intercept=intercept), lambda solution: None) == set()


@pytest.mark.parametrize("what", PLANTED)
@pytest.mark.parametrize("loss", LOSSES)
def test_planted_defects_are_found(loss, what):
    change, check = PLANTED[what]
    assert check in judged(plain_case(loss, fit_intercept=True), change)


def test_carried_sums_that_have_drifted_are_found():
    """Beside 1e6, what is within rounding of the data is far beyond that of the sum."""

    def change(solution):
        object.__setattr__(solution, "objective", solution.objective * (1 + 1e-11))

    case = plain_case(fit_intercept=True)
    case.y = case.y + 1e6
    assert judged(case, change) == {"drift"}


def test_stalls_of_problems_that_must_be_proved_are_found():
    def change(solution):
        object.__setattr__(solution, "status", "stalled")
        object.__setattr__(solution, "gap", 0.5)

    assert "unproved" in judged(dataclasses.replace(plain_case(), must_prove=True), change)
    assert "unproved" not in judged(plain_case(), change)


def test_weights_beyond_their_bounds_are_found():
    def change(solution):
        solution.coef[0] = -1e-300

    assert "outside bounds" in judged(plain_case(positive=True), change)


def test_what_a_call_modifies_is_found(monkeypatch):
    honest = bg.solve

    def meddle(problem, **options):
        solution = honest(problem, **options)
        case.y[0] += 1
        return solution

    case = plain_case()
    monkeypatch.setattr(bg, "solve", meddle)
    assert "modified" in {finding.check for finding in run(case).findings}


def test_errors_are_findings_but_advice_at_extreme_scale_is_not(monkeypatch):
    def refuse(problem, **options):
        raise ValueError("X has values up to 1e+200; rescale X")

    monkeypatch.setattr(bg, "solve", refuse)
    case = plain_case()
    assert run(case).worst.check == "exception"
    refused = run(dataclasses.replace(case, exponent=200))
    assert (refused.findings, refused.statuses) == ([], ["refused"])


def test_worst_finding_names_the_defect():
    outcome = Outcome(findings=[Finding(check, "") for check in reversed(SEVERITY)])
    assert outcome.worst.check == "crash"
    assert Outcome().worst is None


# Problems.


@pytest.mark.parametrize("kind", problems.CLASSES)
def test_class_and_seed_make_the_same_case_again(kind):
    for seed in range(1 if kind in ("curves", "deadlines") else 3):  # large ones
        one, other = problems.make(kind, seed), problems.make(kind, seed)
        assert (one.kind, one.seed) == (kind, seed)
        assert dense(one.X).tobytes() == dense(other.X).tobytes()
        assert one.y.tobytes() == other.y.tobytes()
        assert repr(one) == repr(other)


@pytest.mark.parametrize("kind", ["plain", "duplicates", "formats", "family", "tiles"])
def test_ordinary_problems_pass(kind):
    for seed in range(8):
        assert run(problems.make(kind, seed)).findings == []


def test_forms_hold_the_same_numbers():
    X = np.round(3 * np.random.default_rng(0).normal(size=(9, 4)))
    for _, name, form in forms(X):
        before = form.toarray() if sp.issparse(form) else np.asarray(form)
        assert np.array_equal(before, X), name


# Shrinking, scripts, processes.


def test_shrinking_keeps_only_what_fails():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 20))
    X[17, 4] = 1e3
    options = {"tol": 3.217e-5, "coef_init": rng.normal(size=20)}
    problem = {"loss": "squared", "alpha": 0.1234567, "sample_weight": rng.random(50), "upper": np.ones(20)}
    case = Case("plain", 0, X, rng.normal(size=50), problem=problem, options=options)
    small = shrink(case, lambda trial: np.max(trial.X) > 900)
    assert small.X.tolist() == [[1000.0]]
    assert small.y.shape == (1,)
    assert set(small.problem) == {"loss", "alpha"}
    assert small.options == {}


def test_shrinking_keeps_rows_weights_and_columns_together():
    rng = np.random.default_rng(0)
    X = sp.csc_array(np.arange(40.0).reshape(10, 4))
    problem = {"loss": "squared", "alpha": 1.0, "offset": np.arange(10.0), "penalty_weights": np.arange(4.0)}
    case = Case("plain", 0, X, rng.normal(size=10), problem=problem)

    def fails(trial):
        offset, u = trial.problem.get("offset"), trial.problem.get("penalty_weights")
        return offset is not None and 7 in offset and u is not None and 2 in u

    small = shrink(case, fails)
    assert dense(small.X).tolist() == [[30.0]]
    assert (small.problem["offset"].tolist(), small.problem["penalty_weights"].tolist()) == ([7.0], [2.0])


def scripts_of(kind):
    for seed in range(3):
        yield script(problems.make(kind, seed), Finding("false gap", "planted"))


# what threads do meanwhile and how data change is the hunt's own
@pytest.mark.parametrize("kind", [kind for kind in problems.CLASSES if kind not in ("forks", "changes")])
def test_scripts_are_python_that_needs_nothing_but_the_package(kind):
    for text in scripts_of(kind):
        tree = ast.parse(text)
        modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        plain = {"numpy", "scipy.sparse", "blockgreedy", "tempfile", "base64", "time"}
        assert modules <= plain


@own_process
@pytest.mark.parametrize("kind", ["tables", "bounds", "paths"])
def test_scripts_run(kind, tmp_path):
    text = next(scripts_of(kind))
    path = tmp_path / "found.py"
    path.write_text(text)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    assert done.stdout


def test_script_shows_the_defect_and_its_case(monkeypatch):
    honest = bg.solve

    def lie(problem, **options):
        solution = honest(problem, **options)
        return dataclasses.replace(solution, gap=0.0, coef=0.5 * solution.coef)

    monkeypatch.setattr(bg, "solve", lie)
    case = plain_case()
    fails = still_fails("false certificate")
    assert fails(case)
    small = shrink(case, fails, seconds=2)
    assert small.X.size <= 4
    text = script(small, Finding("false certificate", "planted"))
    assert "--case plain:0" in text
    assert len(text.splitlines()) < 35


@own_process
def test_hangs_and_crashes_are_findings_and_the_worker_goes_on():
    worker = Worker(limit=60.0)
    try:
        assert worker.ask("run", "plain", 0).findings == []
        worker.limit = -1.0
        worker.task, worker.began = ("run", ("plain", 0)), 0.0  # asked, and no answer yet
        late = worker.answer()
        assert [finding.check for finding in late.findings] == ["hang"]
        worker.limit = 60.0
        worker.process.kill()
        worker.process.join()
        worker.task, worker.began = ("run", ("plain", 0)), 0.0
        dead = worker.answer()
        assert [finding.check for finding in dead.findings] == ["crash"]
        worker.limit = 60.0
        assert worker.ask("run", "plain", 0).findings == []
    finally:
        worker.close()


@own_process
def test_command_says_what_it_did():
    command = [
        sys.executable,
        "-m",
        "hunt",
        "--seconds",
        "1",
        "--seed",
        "3",
        "--classes",
        "plain,weights",
        "--jobs",
        "1",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "seed 3" in done.stdout
    assert "0 findings" in done.stdout
    done = subprocess.run([*command[:3], "--classes", "nonsense"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "nonsense not known" in done.stderr
