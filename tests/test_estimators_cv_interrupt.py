"""Ctrl-C during a cross-validation: what is finished in all folds is kept."""

import json
import os
import signal
import time

import numpy as np
import pytest

import blockgreedy as bg
from blockgreedy.solvers.walk import Walk
from command_line import run
from test_estimators_cv import regression


def press_ctrl_c(monkeypatch, after):
    """Presses it when so many points of the folds' paths are solved."""
    walk_to, seen = Walk.to, []

    def pressed(walk, alpha):
        point = walk_to(walk, alpha)
        seen.append(point)
        if len(seen) == after:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)  # until the main thread has noticed
        return point

    monkeypatch.setattr(Walk, "to", pressed)


@pytest.mark.parametrize("kind", [bg.LassoCV, bg.LogisticRegressionCV])
def test_ctrl_c_keeps_the_alphas_that_are_finished_in_all_folds(rng, monkeypatch, kind):
    X, y = regression(rng)
    y = y if kind is bg.LassoCV else y > 1
    whole = kind(n_alphas=30, cv=3).fit(X, y)
    press_ctrl_c(monkeypatch, 2 * 30 + 12)
    model = kind(n_alphas=30, cv=3, n_jobs=1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.status_ == "interrupted"
    np.testing.assert_array_equal(model.score_path_[:12], whole.score_path_[:12])
    assert np.all(np.isfinite(model.score_path_[:, :2]))
    assert np.all(np.isnan(model.score_path_[12:, 2]))
    best = np.argmax(model.score_path_[:12].mean(axis=1))
    assert model.alpha_ == model.alphas_[best]
    monkeypatch.undo()
    final = bg.Lasso if kind is bg.LassoCV else bg.LogisticRegression
    np.testing.assert_allclose(model.coef_, final(alpha=model.alpha_).fit(X, y).coef_, atol=1e-9)
    assert model.predict(X).shape == (120,)


def test_ctrl_c_before_any_alpha_is_finished_in_all_folds_leaves_the_scores_so_far(rng, monkeypatch):
    X, y = regression(rng)
    press_ctrl_c(monkeypatch, 40)
    model = bg.LassoCV(n_alphas=30, cv=3, n_jobs=1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.status_ == "interrupted"
    assert not hasattr(model, "coef_")
    np.testing.assert_array_equal(np.sum(np.isfinite(model.score_path_), axis=0), [30, 10, 0])


def test_the_command_line_saves_what_is_finished_in_all_folds(rng, monkeypatch, tmp_path):
    X, y = regression(rng)
    bg.save(bg.data.Dataset(X, y), tmp_path / "data.npz")
    press_ctrl_c(monkeypatch, 2 * 30 + 12)
    arguments = [tmp_path / "data.npz", "--folds", 3, "--alphas", 30, "--model", tmp_path / "m.npz"]
    arguments += ["--report", tmp_path / "r.html", "--json"]
    result = run("cv", *arguments)
    assert result.exit_code == 3
    assert "interrupted: only 12 of 30 alphas were finished in all folds" in result.stderr
    found = json.loads(result.stdout)
    assert (found["status"], found["alphas_covered"], found["alphas_asked_for"]) == ("interrupted", 12, 30)
    assert len(found["curve"]["alphas"]) == 12
    saved = bg.Model.load(tmp_path / "m.npz")
    assert saved.statuses == ("interrupted",)
    assert len(saved.cross_validation.alphas) == 12
    assert saved.coefs.nnz > 0
    assert (tmp_path / "r.html").stat().st_size > 1000
