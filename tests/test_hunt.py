"""The hunt itself: the oracle is right, planted defects are found, failing cases become small scripts."""

from __future__ import annotations

import ast
import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from hunt import problems
from hunt.case import Case, dense
from hunt.certificates import check_solution
from hunt.checks import run, solve
from hunt.draws import LOSSES
from hunt.forms import forms
from hunt.optimum import minimise
from hunt.oracle import Exact
from hunt.outcome import SEVERITY, Finding, Outcome
from hunt.script import script
from hunt.shrink import shrink, still_fails
from hunt.workers import Worker

import blockgreedy as bg
from conftest import SANITIZED

ROOT = Path(__file__).parent.parent
own_process = pytest.mark.skipif(bool(SANITIZED), reason="a sanitized process starts slowly")


def orthogonal(n=32, p=5, seed=0):
    """Columns with x_j·x_k = n if j = k, else 0, and sums of 0; a target about 1e6."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(np.column_stack([np.ones(n), rng.normal(size=(n, p))]))
    X = np.sqrt(n) * Q[:, 1:]
    return X, 1e6 + X @ rng.normal(size=p) + rng.normal(size=n)


# The oracle.


def test_oracle_agrees_with_the_closed_form_of_orthogonal_columns():
    X, y = orthogonal()
    alpha = 0.3
    exact = Exact(X, y, alpha=alpha, fit_intercept=True)
    product = X.T @ (y - y.mean()) / len(y)
    w = np.sign(product) * np.maximum(np.abs(product) - alpha, 0)
    residual = y - y.mean() - X @ w
    value = 0.5 * np.mean(residual**2) + alpha * np.sum(np.abs(w))
    assert float(exact.primal(w, y.mean())) == pytest.approx(value, rel=1e-11)
    verdict = exact.dual(-(residual - residual.mean()) / len(y), w)
    assert not verdict.complaints
    assert abs(exact.primal(w, y.mean()) - verdict.value) <= 1e-9 * value  # residuals of 1 of targets of 1e6
    assert float(exact.alpha_max()) == pytest.approx(np.max(np.abs(product)), rel=1e-9)
    found, _, best = minimise(exact, np.zeros(5), 0.0)
    assert found == pytest.approx(w, abs=1e-8)
    assert abs(best - value) <= 1e-9 * value


def test_null_models_agree_with_their_closed_forms():
    y = np.array([1.0, 1.0, 1.0, -1.0, 0.0])
    X, weights = np.ones((5, 1)), np.array([1.0, 2.0, 1.0, 1.0, 0.0])
    options = {"alpha": 1.0, "fit_intercept": True, "sample_weight": weights}
    entropy = -0.8 * np.log(0.8) - 0.2 * np.log(0.2)
    labels = np.where(y > 0, 1.0, -1.0)
    assert float(Exact(X, labels, loss="logistic", **options).null_objective()) == pytest.approx(entropy, rel=1e-14)
    assert float(Exact(X, labels, loss="squared_hinge", **options).null_objective()) == pytest.approx(0.64, rel=1e-14)
    assert float(Exact(X, y, **options).null_objective()) == pytest.approx(0.32, rel=1e-14)
    # 4 rows about 1, one far away: slopes (b − 1)·0.8 + 0.5·0.2 = 0
    huber = Exact(X, y, loss="huber", huber_delta=0.5, **options)
    assert float(huber.best_intercept()) == pytest.approx(0.875, rel=1e-12)
    assert Exact(X, np.ones(5), loss="logistic", alpha=1.0, fit_intercept=True).null_objective() is None


@pytest.mark.parametrize("loss", LOSSES)
def test_any_feasible_dual_point_is_below_any_primal_point(loss):
    rng = np.random.default_rng(1)
    X, offset = rng.normal(size=(20, 3)), rng.normal(size=20)
    y = np.sign(X[:, 0] + rng.normal(size=20))
    options = {"l2": 0.1, "upper": np.array([0.2, np.inf, 0.0]), "penalty_weights": np.array([1.0, 0.5, 2.0])}
    exact = Exact(X, y, loss=loss, alpha=0.05, offset=offset, sample_weight=rng.integers(0, 3, 20), **options)
    w, _, best = minimise(exact, np.zeros(3), 0.0)
    theta = np.zeros(20)
    _, slope, _ = exact.losses(exact.predictions(w))
    theta[exact.used] = exact.omega * slope
    at_best = exact.dual(theta, w)
    assert not at_best.complaints
    assert best - at_best.value == pytest.approx(0, abs=1e-9)
    for scale in (0.0, 0.5, 0.9):
        assert exact.dual(scale * theta, w).value < best


def test_dual_values_of_rows_that_are_right_by_far_keep_their_digits():
    """The loss of such a row is exp(−margin), far below the last digit of 1."""
    y, offset = np.array([-1.0, 1.0]), np.array([-60.7, 55.6])
    exact = Exact(np.zeros((2, 1)), y, loss="logistic", alpha=1.0, offset=offset, sample_weight=np.array([0.2, 0.7]))
    _, slope, _ = exact.losses(exact.predictions(np.zeros(1)))
    theta, primal = exact.omega * slope, exact.primal(np.zeros(1))
    assert 0 < primal < 1e-24
    assert abs(primal - exact.dual(theta, np.zeros(1)).value) <= 1e-15 * primal
    half = exact.dual(theta / 2, np.zeros(1)).value
    assert primal - half == pytest.approx(0.5 * (1 - np.log(2)) * primal, rel=1e-9)


def test_infeasible_dual_points_are_complained_of():
    X, y = orthogonal()
    exact = Exact(X, y, alpha=0.3, fit_intercept=True)
    residual = y - y.mean()
    theta = -(residual - residual.mean()) / len(y)
    assert "allowed" in exact.dual(theta, np.zeros(5)).complaints[0]
    assert "Σθ" in exact.dual(1e-3 * theta + 1e-6, np.zeros(5)).complaints[0]
    free = Exact(X, y, alpha=0.3, penalty_weights=np.r_[0.0, np.ones(4)])
    assert "unpenalised" in free.dual(1e-3 * X[:, 0], np.zeros(5)).complaints[0]
    huber = Exact(X, y, alpha=1e9, loss="huber", huber_delta=0.1)
    assert "domain" in huber.dual(theta, np.zeros(5)).complaints[0]


@pytest.mark.parametrize("loss", LOSSES)
def test_optimum_of_the_oracle_is_that_of_another_optimiser(loss):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 4)) * [1, 10, 0.1, 1] + [0, 1e3, 0, 5]
    y = np.sign(X[:, 0] + 0.5 * rng.normal(size=40))
    exact = Exact(X, y, loss=loss, alpha=0.02, fit_intercept=True, lower=-0.5)
    _, _, best = minimise(exact, np.zeros(4), 0.0)
    Z = np.asarray(exact.centred, dtype=np.float64)

    def value(z):  # w = a − c, both at least 0; centred columns
        return float(np.sum(exact.omega * exact.losses(Z @ (z[:4] - z[4:8]) + z[8])[0]) + 0.02 * np.sum(z[:8]))

    limits = [(0, None)] * 4 + [(0, 0.5)] * 4 + [(None, None)]
    found = scipy.optimize.minimize(value, np.zeros(9), bounds=limits, method="L-BFGS-B", options={"ftol": 1e-14})
    assert best <= found.fun + 1e-12
    assert best == pytest.approx(found.fun, rel=1e-3)


@pytest.mark.parametrize("name", ["case", "problems", "grids", "oracle", "optimum"])
def test_judge_and_problems_share_no_code_with_the_package(name):
    tree = ast.parse((ROOT / "hunt" / f"{name}.py").read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not [module for module in names if module.startswith("blockgreedy")]


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
    for seed in range(3):
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


@pytest.mark.parametrize("kind", problems.CLASSES)
def test_scripts_are_python_that_needs_nothing_but_the_package(kind):
    for text in scripts_of(kind):
        tree = ast.parse(text)
        modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        assert modules <= {"numpy", "scipy.sparse", "blockgreedy", "tempfile"}


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
        "plain,family",
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
