"""The hunt on data in use: what is late, rough, stale, unnamed or hangs is found."""

from __future__ import annotations

import dataclasses
import time

import numpy as np
import pytest
from hunt import damage, lateness, problems
from hunt.case import Case
from hunt.checks import run
from hunt.forks import fork
from hunt.outcome import Outcome
from hunt.stack import frames

import blockgreedy as bg
from conftest import SANITIZED

own_process = pytest.mark.skipif(bool(SANITIZED), reason="a sanitized process forks slowly")


def plain_case():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6))
    y = X[:, 0] - X[:, 1] + rng.normal(size=40)
    return Case("plain", 0, X, y, problem={"loss": "squared", "alpha": 0.05}, options={"tol": 1e-5})


def test_being_late_three_times_is_a_finding(monkeypatch):
    case = dataclasses.replace(plain_case(), options={"max_seconds": 0.1})
    for seconds, expected in (([9.0, 9.0, 9.0], ["late"]), ([9.0, 0.1, 9.0], []), ([0.69], [])):
        left, outcome = list(seconds), Outcome()
        monkeypatch.setattr(lateness, "timed", lambda call, left=left: (call(), left.pop(0)))
        assert lateness.on_time(case, outcome, lambda: "answer") == "answer"
        assert [finding.check for finding in outcome.findings] == expected
        assert left == []


def test_curves_of_rough_folds_are_found(monkeypatch):
    case = plain_case()
    case.call, case.estimator = "curve", "LassoCV"
    case.options = {"n_alphas": 5, "eps": 0.1, "cv": 3}
    case.problem["fit_intercept"] = True
    honest = getattr(bg, case.estimator).fit

    def rough(model, *given):
        honest(model, *given)
        model.cv_results_["mean_test_score"] = 1.01 * model.cv_results_["mean_test_score"]
        return model

    assert run(case).findings == []
    monkeypatch.setattr(getattr(bg, case.estimator), "fit", rough)
    assert "curve" in {finding.check for finding in run(case).findings}


def test_answers_of_neither_version_of_changed_rows_are_found(monkeypatch):
    use = {"what": "rows", "change": "number", "first": "nothing", "then": "solve", "seed": 0}
    case = dataclasses.replace(plain_case(), call="change", use=use)
    case.options["max_seconds"] = 10.0
    assert run(case).findings == []
    honest = bg.solve

    def lie(problem, *given, **options):
        return dataclasses.replace(honest(problem, *given, **options), gap=0.0, coef=np.ones(6))

    monkeypatch.setattr(bg, "solve", lie)
    assert run(case).worst.check == "stale"


@pytest.mark.parametrize(
    ("error", "check"),
    [(TypeError("a.npz"), "exception"), (ValueError("broken"), "unnamed"), (ValueError("model.npz is broken"), None)],
)
def test_readers_of_damaged_files_must_name_them(monkeypatch, error, check):
    def refuse(path, case):
        raise error

    case = problems.make("damage", 0)
    case.use = {"file": "model.npz", "damage": "bytes", "seed": 0}
    monkeypatch.setitem(damage.READERS, ".npz", refuse)
    outcome = run(case)
    assert [finding.check for finding in outcome.findings] == ([check] if check else [])
    assert (outcome.statuses == ["refused"]) == (check != "exception")


def test_damaged_files_differ_from_sound_ones():
    differ = 0
    for seed in range(20):
        case = problems.make("damage", 0)
        case.use |= {"file": problems.make("damage", seed).use["file"], "seed": seed}
        part, content = damage.damaged(case)
        differ += content != damage.sound_files(case)[case.use["file"]][part]
    assert differ >= 15  # a byte may be drawn as it was


@own_process
def test_children_that_hang_are_seen_with_their_stack():
    def sleep():
        time.sleep(60)

    code, where = fork(sleep, patience=0.5)
    assert code is None
    assert "sleep" in where
    assert fork(lambda: True)[0] == 0
    assert fork(lambda: False)[0] == 3


def test_frames_are_those_of_the_thread_that_ran_the_case():
    stack = """Timeout (0:00:20)!
Thread 0x1 (most recent call first):
  File "/usr/lib/threading.py", line 9 in wait
Thread 0x2 (most recent call first):
  File "/a/working_set.py", line 193 in step
  File "/a/run.py", line 128 in run
"""
    assert frames(stack) == "working_set.py:193 step < run.py:128 run"
